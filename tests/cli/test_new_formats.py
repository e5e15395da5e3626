"""New data in another format than the training data, and files whose names say nothing of their format."""

import csv
import gzip
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import thresher as package
from tests.cli.conftest import Thresher

pytestmark = pytest.mark.usefixtures("plainly")
ROWS = [{"label": k % 2, "size": k % 7 - k % 2, "colour": ["red", "?", "blue"][k % 3]} for k in range(60)]
KNOWN = [row | {"colour": None if row["colour"] == "?" else row["colour"]} for row in ROWS]
LINES = "".join(json.dumps(row) + "\n" for row in KNOWN)
NAMES = ["d.csv", "d.tsv", "d.jsonl", "d.ndjson", "d.parquet", "d.arrow", "d.csv.gz"]


@pytest.fixture
def files(folder: Path) -> None:
    for name, delimiter in (("d.csv", ","), ("d.tsv", "\t")):
        with open(name, "w", newline="") as file:
            rows = csv.DictWriter(file, [*ROWS[0]], delimiter=delimiter, lineterminator="\n")
            rows.writeheader()
            rows.writerows(ROWS)
    Path("d.jsonl").write_text(LINES)
    Path("d.ndjson").write_text(LINES)
    Path("d.csv.gz").write_bytes(gzip.compress(Path("d.csv").read_bytes()))
    pa.parquet.write_table(pa.Table.from_pylist(KNOWN), "d.parquet")
    pa.feather.write_feather(pa.Table.from_pylist(KNOWN), "d.arrow")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("trained", ["d.csv", "d.jsonl", "d.parquet"])
def test_the_name_decides_the_format_of_new_data(thresher: Thresher, trained: str) -> None:
    missing = ["--missing", "?"] if trained == "d.csv" else []
    assert thresher("train", trained, "-m", "m", "-q", *missing).status == 0
    wanted = thresher("predict", "m", trained).out
    inside = package.load("m").predict(trained).tolist()
    names = NAMES if missing else [name for name in NAMES if "sv" not in name]
    for name in names:
        ran = thresher("predict", "m", name)
        assert (ran.out, ran.err) == (wanted, ""), name
        assert thresher("evaluate", "m", name, "--json").json["examples"] == len(ROWS)
        assert thresher("train", "--continue", "m", name, "-m", "n", "-q").status == 0
        assert package.load("m").predict(name).tolist() == inside, name


@pytest.mark.usefixtures("files")
def test_the_content_must_agree_with_the_name(thresher: Thresher) -> None:
    assert thresher("train d.csv -m m -q").status == 0
    wanted = thresher("predict m d.csv").out
    for name in ("cells.jsonl", "cells.tsv", "cells.vw"):
        Path(name).write_bytes(Path("d.csv").read_bytes())
        assert thresher("predict", "m", name).out == wanted
    Path("lines.json").write_text(LINES)
    ran = thresher("predict m lines.json")
    assert ran.err == "thresher: lines.json: this looks like JSON lines: try --format jsonl\n"
    Path("semicolons.csv").write_text(Path("d.csv").read_text().replace(",", ";"))
    assert thresher("train semicolons.csv -m n -q --delimiter ;").status == 0
    assert thresher("predict n d.jsonl").out.count("\n") == len(ROWS)


@pytest.mark.filterwarnings("ignore:.*learned-before")
@pytest.mark.usefixtures("files")
def test_what_is_missing_in_csv_is_no_option_for_a_frame(thresher: Thresher) -> None:
    assert thresher("train", "d.csv", "-m", "m", "-q", "--missing", "?").status == 0
    model = package.train(pd.DataFrame(KNOWN), continue_from="m")
    assert model.layout is not None
    assert model.layout.missing == ("?",)
    assert model.predict("d.csv").tolist() == model.predict("d.jsonl").tolist()
    with pytest.raises(package.DataError, match="missing is only for csv and tsv"):
        package.train(pd.DataFrame(ROWS), missing="?")


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("d.json", LINES, "JSON lines: try --format jsonl --label COL"),
        (
            "d.json",
            json.dumps(KNOWN),
            "a JSON array: write one object per line (jq -c '.[]') and use --format jsonl --label COL",
        ),
        (
            "d.arff",
            "@relation d\n@attribute size numeric\n@data\n1\n",
            "ARFF: remove the header (sed '1,/^@data/Id; /^%/d') and use --format csv --no-header --label N",
        ),
        ("d.txt", "label,size\n1,2\n", "CSV: try --format csv --label COL"),
        ("d.data", "label\tsize\n1\t2\n", "TSV: try --format tsv --label COL"),
    ],
)
def test_options_for_columns_with_a_name_that_implies_none(
    thresher: Thresher, name: str, text: str, hint: str
) -> None:
    Path(name).write_text(text)
    assert thresher("train", name, "-m", "m", "--label", "size").err == (
        f"thresher: {name}: this looks like {hint}\n"
    )
