"""Data unlike those of a model: the message names what the model was trained on, and what works there."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Thresher
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
        assert ("no column" in ran.err) == (name == "tsv"), ran.err
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
        assert (
            ran.err == f"thresher: {name}.data: not Parquet: this looks like {title}: try --format {name}\n"
        )
        assert thresher(f"predict p {name}.data --format {name}").out == thresher("predict p t.parquet").out
    whole = Path("t.parquet").read_bytes()
    Path("t.parquet").write_bytes(whole[:-9])
    assert "damaged or cut off" in thresher("predict p t.parquet").err


@pytest.mark.usefixtures("models")
def test_features_of_another_kind_get_no_option(thresher: Thresher) -> None:
    assert thresher("evaluate m s.svm").err.endswith("like svmlight, but the model was trained on CSV\n")
    for name, title in (("csv", "CSV"), ("jsonl", "JSON lines"), ("parquet", "Parquet")):
        ran = thresher(f"evaluate s t.{name}")
        assert ran.err.rstrip(")\n").endswith(f"{title}, but the model was trained on svmlight"), ran.err


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("words", [("no", "yes"), ("none", "click")])
def test_words_as_labels_for_a_model_of_numbers(thresher: Thresher, words: tuple[str, str]) -> None:
    rows = [row | {"click": words[k % 2]} for k, row in enumerate(ROWS)]
    Path("w.csv").write_text(delimited(rows, ","))
    Path("w.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = "the labels in training were 0 and 1: write these in place of words"
    for name in ("csv", "jsonl"):
        ran = thresher(f"evaluate m w.{name} --format {name}")
        assert ran.err.endswith(f"found '{words[0]}'; {said}\n"), ran.err
    with pytest.raises(DataError, match=said):
        evaluate(load("m"), "w.csv")
    told = thresher("train w.csv --label click -m n -q --classes " + ",".join(words))
    assert told.status == 0, told.err


def test_none_may_be_a_word_and_nan_is_none(tmp_path: Path) -> None:
    for name, line in (
        ("d.csv", "label,a\n{},1\n"),
        ("d.svm", "{} 1:1\n"),
        ("d.jsonl", '{{"label": "{}"}}\n'),
    ):
        for label, hinted in (("none", True), ("NULL", True), ("NaN", False), ("?", False)):
            (tmp_path / name).write_text(line.format(label))
            with pytest.raises(DataError, match="found") as error:
                list(open_source(tmp_path / name).chunks())
            assert str(error.value).endswith('name them: classes="WORD,WORD,..."') == hinted, error.value
