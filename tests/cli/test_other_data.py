"""Data unlike those of a model, in columns, format or names: what is told, and that it works."""

import csv
import gzip
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pyarrow.parquet as pq
import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.data.test_late_columns import LATE, late_jsonl
from thresher.api import evaluate, load
from thresher.data import DataError, open_source

pytestmark = pytest.mark.usefixtures("plainly")
ROWS = [{"click": k % 2, "c": "abc"[k % 3], "x": k + 0.5} for k in range(12)]


def delimited(rows: list[dict[str, object]], by: str) -> str:
    lines = [rows[0].keys(), *(map(str, row.values()) for row in rows)]
    return "".join(by.join(line) + "\n" for line in lines)


@pytest.fixture
def models(folder: Path, thresher: Thresher) -> None:
    """Rows in several formats; a model ``m`` of CSV, and a model ``s`` of svmlight."""
    Path("t.csv").write_text(delimited(ROWS, ","))
    Path("t.tsv").write_text(delimited(ROWS, "\t"))
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    pq.write_table(pa.Table.from_pylist(ROWS), "t.parquet")
    Path("s.svm").write_text("".join(f"{k % 2} {k % 3 + 1}:1\n" for k in range(12)))
    assert thresher("train t.csv --label click -m m -q").status == 0
    assert thresher("train s.svm -m s -q").status == 0


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_another_format_is_named_and_what_is_said_works(thresher: Thresher, command: str) -> None:
    expected = thresher(f"{command} m t.csv").out
    for name, title in (("tsv", "TSV"), ("jsonl", "JSON lines"), ("parquet", "Parquet")):
        Path(f"t.{name}").rename(f"{name}.data")  # a name that tells nothing
        ran = thresher(f"{command} m {name}.data")
        assert ran.status == 1
        assert ran.err.endswith((f"{title}: try --format {name}\n", f"{title}: try --format {name})\n"))
        assert thresher(f"{command} m {name}.data --format {name}").out == expected


@pytest.mark.usefixtures("models")
def test_objects_without_blanks_are_recognised_too(thresher: Thresher) -> None:
    rows = [{**row, "c": f"{row['c']} {row['c']}"} for row in ROWS]
    Path("compact.data").write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    assert thresher("predict m compact.data").err.endswith("this looks like JSON lines: try --format jsonl\n")
    assert thresher("predict m compact.data --format jsonl").status == 0


@pytest.mark.usefixtures("models")
def test_a_model_of_parquet_names_the_format_of_a_text(thresher: Thresher) -> None:
    assert thresher("train t.parquet --label click -m p -q").status == 0
    for name, title in (("csv", "CSV"), ("tsv", "TSV"), ("jsonl", "JSON lines")):
        Path(f"t.{name}").rename(f"{name}.data")
        ran = thresher(f"predict p {name}.data")
        assert ran.err.endswith(f"; this looks like {title}: try --format {name}\n")
        assert thresher(f"predict p {name}.data --format {name}").out == thresher("predict p t.parquet").out
    whole = Path("t.parquet").read_bytes()
    Path("t.parquet").write_bytes(whole[:-9])
    assert "damaged or cut off" in thresher("predict p t.parquet").err


@pytest.mark.usefixtures("models")
def test_features_of_another_kind_get_no_option(thresher: Thresher) -> None:
    assert thresher("evaluate m s.svm").err.endswith("like svmlight, but the model was trained on CSV\n")
    for name, title in (("csv", "CSV"), ("jsonl", "JSON lines")):
        ran = thresher(f"evaluate s t.{name}")
        assert ran.err.rstrip(")\n").endswith(f"{title}, but the model was trained on svmlight"), ran.err
    Path("rows.csv").write_text(delimited(ROWS, ",").partition("\n")[2])
    thresher.ok("train rows.csv -m r -q --no-header --label 1")
    for command in ("evaluate r s.svm", "train --continue r s.svm -m n"):
        assert thresher(command).err.endswith("like svmlight, but the model was trained on CSV\n")


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("words", [("no", "yes"), ("none", "click")])
def test_words_as_labels_for_a_model_of_numbers(thresher: Thresher, words: tuple[str, str]) -> None:
    rows = [row | {"click": words[k % 2]} for k, row in enumerate(ROWS)]
    Path("w.csv").write_text(delimited(rows, ","))
    Path("w.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = "the labels in training were 1, and 0 or -1: write these in place of words"
    for name in ("csv", "jsonl"):
        ran = thresher(f"evaluate m w.{name} --format {name}")
        assert ran.err.endswith(f"found '{words[0]}'; {said}\n"), ran.err
    with pytest.raises(DataError, match=said):
        evaluate(load("m"), "w.csv")
    thresher.ok("train w.csv --label click -m n -q --classes " + ",".join(words))


def test_none_may_be_a_word_and_nan_is_none(tmp_path: Path) -> None:
    for name, line in (
        *(("d.csv", "label,a\n{},1\n"), ("d.svm", "{} 1:1\n"), ("d.jsonl", '{{"label": "{}"}}\n')),
    ):
        for label, hinted in (("none", True), ("NULL", True), ("NaN", False), ("?", False)):
            (tmp_path / name).write_text(line.format(label))
            with pytest.raises(DataError, match="found") as error:
                list(open_source(tmp_path / name).chunks())
            assert str(error.value).endswith('name them: classes="WORD,WORD,..."') == hinted, error.value


VISITS = [{"label": k % 2, "size": k % 7 - k % 2, "colour": ["red", "?", "blue"][k % 3]} for k in range(60)]
KNOWN = [row | {"colour": None if row["colour"] == "?" else row["colour"]} for row in VISITS]
LINES = "".join(json.dumps(row) + "\n" for row in KNOWN)
NAMES = ["d.csv", "d.tsv", "d.jsonl", "d.ndjson", "d.parquet", "d.arrow", "d.csv.gz"]


@pytest.fixture
def files(folder: Path) -> None:
    for name, delimiter in (("d.csv", ","), ("d.tsv", "\t")):
        with open(name, "w", newline="") as file:
            rows = csv.DictWriter(file, [*VISITS[0]], delimiter=delimiter, lineterminator="\n")
            rows.writeheader()
            rows.writerows(VISITS)
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
        assert package.load("m").predict(name).tolist() == inside, name
    assert thresher("evaluate", "m", name, "--json").json["examples"] == len(VISITS)
    assert thresher("train", "--continue", "m", name, "-m", "n", "-q").status == 0


@pytest.mark.usefixtures("files")
def test_the_content_must_agree_with_the_name(thresher: Thresher) -> None:
    assert thresher("train d.csv -m m -q").status == 0
    wanted = thresher("predict m d.csv").out
    for name in ("cells.jsonl", "cells.tsv", "cells.vw"):
        Path(name).write_bytes(Path("d.csv").read_bytes())
        assert thresher("predict", "m", name).out == wanted
    Path("lines.json").write_text(LINES)
    ran = thresher("predict m lines.json")
    assert ran.err.endswith("; this looks like JSON lines: try --format jsonl\n")
    Path("semicolons.csv").write_text(Path("d.csv").read_text().replace(",", ";"))
    assert thresher("train semicolons.csv -m n -q --delimiter ;").status == 0
    assert thresher("predict n d.jsonl").out.count("\n") == len(VISITS)


@pytest.mark.usefixtures("files")
def test_what_is_missing_in_csv_is_no_option_for_a_frame(thresher: Thresher) -> None:
    assert thresher("train", "d.csv", "-m", "m", "-q", "--missing", "?").status == 0
    model = package.train(pd.DataFrame(KNOWN), continue_from="m")
    assert model.layout.missing == ("?",)
    assert model.predict("d.csv").tolist() == model.predict("d.jsonl").tolist()
    with pytest.raises(package.DataError, match="missing is only for csv and tsv"):
        package.train(pd.DataFrame(VISITS), missing="?")


def write_two(folder: Path) -> None:
    (folder / "one.csv").write_text("label,a,x\n" + "1,2,5\n0,1,6\n" * 20)
    (folder / "two.csv").write_text("b,label,a\n" + "7,1,2\n8,0,1\n" * 20)


def warned(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("warning: ")]


def test_late_fields(thresher: Thresher, folder: Path) -> None:
    late_jsonl(folder, [{key: value for key, value in row.items() if key != "d"} for row in LATE[:2]])
    train = "train late.jsonl -m m -q --no-centre --ignore pad --json"
    ran = thresher(train)
    (one,) = ran.json["warnings"]
    assert one["name"] == "late-columns"
    assert one["message"] == (
        "columns b (late.jsonl:5), c (late.jsonl:5), n (late.jsonl:5) are ignored, because the first rows"
        " have no value there: use --numeric b,n --categorical c to learn from them, or --ignore b,c,n"
    )
    assert warned(ran.err) == [f"warning: {one['message']}"]
    learned = thresher(f"{train} --numeric b,n --categorical c").json
    assert (learned["warnings"], learned["features_seen"]) == ([], 4)
    assert thresher("info m --json").json["warnings"] == [], "rows had values in b, n and c"
    ignored = thresher(f"{train[:-7]},b,c,n --json").json
    assert (ignored["warnings"], ignored["features_seen"]) == ([], 1)
    ran = thresher(f"{train} --numeric b,n,aa --categorical c").json["warnings"]
    assert [tuple(one.values()) for one in ran] == [
        ("no-such-column", "no row has a value in column aa (--numeric aa): did you mean 'a'?")
    ]


@pytest.mark.parametrize("name", ["amonut", "Amount", "amount_"])
def test_a_misspelt_column_of_new_data(thresher: Thresher, folder: Path, name: str) -> None:
    (folder / "d.csv").write_text("label,amount,price,x\n" + "1,2,5,3\n0,1,6,4\n" * 20)
    (folder / "e.csv").write_text(f"label,{name},prize,x,other\n" + "1,2,5,3,3\n0,1,6,4,3\n" * 20)
    assert thresher("train d.csv -m m -q").status == 0
    meant = (
        "e.csv has no column amount, price, so every row has a missing value there;"
        f" column {name}, prize is ignored: did you mean amount, price?"
    )
    for command in ("predict", "evaluate"):
        unknown, renamed = warned(thresher(f"{command} m e.csv").err)
        assert "column other (e.csv) is ignored" in unknown
        assert renamed == f"warning: {meant}"


def test_a_misspelt_field_of_objects(thresher: Thresher, folder: Path) -> None:
    """Objects leave out what is missing, so a field counts as lacking only if another may mean it."""
    (folder / "d.csv").write_text("label,amount,x\n" + "1,2,5\n0,1,6\n" * 20)
    (folder / "e.jsonl").write_text('{"label":1,"Amount":2,"x":1,"other":3}\n{"label":0}\n' * 20)
    assert thresher("train d.csv -m m -q").status == 0
    meant = "every row has a missing value there; column Amount is ignored: did you mean amount?"
    unknown, renamed = warned(thresher("evaluate m e.jsonl").err)
    assert "column other (e.jsonl:1) is ignored" in unknown
    assert renamed == f"warning: e.jsonl has no column amount, so {meant}"
    _, heard = hears(lambda: package.load("m").predict([{"Amount": 2}, {"x": 3}]))
    assert heard == [f"the table has no column amount, so {meant} [missing-columns]"]
    (folder / "later.jsonl").write_text('{"label":1,"Amount":2,"x":1}\n{"label":0,"amount":1}\n' * 20)
    (found,) = warned(thresher("predict m later.jsonl").err)
    assert "column Amount (later.jsonl:1) is ignored, because the model was trained without" in found


def test_objects_without_any_column_of_the_model(thresher: Thresher, folder: Path) -> None:
    (folder / "d.csv").write_text("label,amount,x\n" + "1,2,5\n0,1,6\n" * 20)
    (folder / "e.jsonl").write_text('{"LABEL":1,"AMOUNT":2,"X":5}\n{"LABEL":0,"AMOUNT":1}\n')
    (folder / "f.jsonl").write_text('{"Label":1,"amount":2}\n')
    (folder / "g.jsonl").write_text('{"label":1}\n{"label":0}\n')
    (folder / "h.jsonl").write_text("{}\n{}\n")
    assert thresher("train d.csv -m m -q").status == 0
    error = "no column 'amount' (numeric in the training data); did you mean 'AMOUNT'?"
    labels = "no column 'label' of labels: name theirs, --label, to evaluate; did you mean 'LABEL'?"
    both = ("evaluate m e.jsonl", labels), ("train d.csv -m m2 --holdout e.jsonl", labels)
    for command, said in (("predict m e.jsonl", error), *both):
        ran = thresher(command)
        assert (ran.status, ran.out) == (1, "")
        assert f"e.jsonl: {said}\n" in ran.err
    with pytest.raises(package.DataError, match=re.escape(f"the table: {error}")):
        package.load("m").predict([{"AMOUNT": 2, "X": 5}])
    assert "g.jsonl: no column 'amount'" in thresher("predict m g.jsonl").err
    ran = thresher("evaluate m f.jsonl")
    assert "f.jsonl: no column 'label' of labels" in ran.err
    assert ran.err.endswith("did you mean 'Label'?\n")
    assert (
        len(thresher("predict m h.jsonl").out.splitlines()) == len(package.load("m").predict([{}, {}])) == 2
    )


def test_a_misspelt_column_among_training_files(thresher: Thresher, folder: Path) -> None:
    for name, column in (("a", "amount"), ("b", "Amount")):
        (folder / f"{name}.csv").write_text(f"label,{column},x\n" + "1,2,5\n0,1,6\n" * 20)
        (folder / f"{name}.jsonl").write_text(f'{{"label":1,"{column}":2,"x":5}}\n{{"label":0}}\n' * 20)
    for form in ("csv", "jsonl"):
        lacks = f"warning: b.{form} has no column amount, so every row has a missing value there"
        meant = f"{lacks}; column Amount is"
        found = warned(thresher(f"train a.{form} b.{form} -m m -q").err)
        assert found == [f"{meant} ignored: did you mean amount?"]
        assert thresher(f"train a.{form} -m m -q").status == 0
        for option in ("continue", "init"):
            found = warned(thresher(f"train b.{form} --{option} m -m m2 -q").err)
            assert found == [f"{meant} new: did you mean amount?"]


def test_a_start_from_a_model_with_fewer_columns(thresher: Thresher, folder: Path) -> None:
    write_two(folder)
    assert thresher("train one.csv -m m -q --ignore x").status == 0
    for options, kind in (("", "numeric"), ("--categorical b", "categorical"), ("--ignore b", "ignore")):
        ran = thresher(f"train two.csv --init m -m m2 -q {options}")
        assert (ran.status, warned(ran.err)) == (0, [])
        layout = package.load("m2").layout
        assert dict(zip(layout.columns, layout.kinds, strict=True))["b"] == kind
    ran = thresher("train two.csv --init m -m m2 -q --categorical a")
    assert "the model was trained with other columns" in ran.err


def hears(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(one.message) for one in caught if one.category is package.TroubleWarning]


def test_what_python_says(folder: Path) -> None:
    write_two(folder)
    model, heard = hears(lambda: package.train(["one.csv", "two.csv"]))
    assert 'use numeric="b" to learn from it, or ignore="b" [late-columns]' in heard[0]
    assert len(heard) == 2
    wrong: list[tuple[Any, str]] = [
        (lambda: model.predict("two.csv"), "column b"),
        (lambda: package.evaluate(model, [{"label": 1, "a": 2, "x": 1, "q": 3}]), "column q"),
        (lambda: model.learn([{"label": 1, "a": 2, "x": 1, "q": 3}]), "column q"),
        (lambda: package.report(model, "two.csv", "page.html"), "column b"),
        (lambda: package.boost(["one.csv", "two.csv"]), "column b"),
    ]
    for call, which in wrong:
        assert f"{which} " in hears(call)[1][0]
    start = package.train("one.csv", ignore="x")
    again: Any = package.train("two.csv", init=start)
    assert again.layout.kinds == ("numeric", "label", "numeric", "ignore")
