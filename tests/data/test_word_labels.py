"""Labels that are words: how readers look them up, and the first look that finds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.tables import Streamed
from thresher.data import DataError, open_source, table_source
from thresher.data.chunk import concat
from thresher.data.labels import MOST_CLASSES, WordTable, any_words, classes
from thresher.data.layout import Layout, SettledLayout
from thresher.data.opening import with_words

WORDS = tuple(sorted(["ad.", "nonad.", "Ünïcode", "a b", "7", "x" * 300, *(f"class{k}" for k in range(90))]))
LAYOUT = Layout(label="y", classes=WORDS)


def labels_of(source: Any) -> list[float]:
    found: list[float] = concat(list(source.chunks())).labels.tolist()
    return found


def some_words(count: int = 3000) -> list[str]:
    return [WORDS[k] for k in np.random.default_rng(0).integers(0, len(WORDS), count)]


def written(words: list[str], folder: Path) -> dict[str, Path]:
    """The same labels in every kind of format."""
    table = pa.table({"y": words, "x": np.arange(len(words)) % 5})
    csv = "y,x\n" + "".join(f'"{w}",{i % 5}\n' if i % 3 else f" {w} ,{i % 5}\n" for i, w in enumerate(words))
    (folder / "a.csv").write_text(csv)
    rows = [{"y": word, "x": i % 5} for i, word in enumerate(words)]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(table, folder / "a.parquet")
    pq.write_table(table.set_column(0, "y", table["y"].dictionary_encode()), folder / "b.parquet")
    return {name: folder / name for name in ("a.csv", "a.jsonl", "a.parquet", "b.parquet")}


def test_words_are_numbered_in_their_order_in_every_format(tmp_path: Path) -> None:
    words = some_words()
    expected = [WORDS.index(word) + 5.0 for word in words]
    domain = classes(5, 4 + len(WORDS))
    for path in written(words, tmp_path).values():
        assert labels_of(open_source(path, layout=LAYOUT, domain=domain)) == expected, path
        assert (
            labels_of(open_source(path, layout=LAYOUT, domain=domain, threads=2, block_bytes=999)) == expected
        )
    table = pa.table({"y": pa.array(words).cast(pa.large_binary()), "x": [1] * len(words)})
    assert labels_of(table_source(Streamed(table), layout=LAYOUT, domain=domain)) == expected


def test_lines_of_words(tmp_path: Path) -> None:
    layout = Layout("vw", classes=("no", "yes"))
    (tmp_path / "a.vw").write_text("yes | a\nno 2 'tag| b\nyes tag| c\n")
    source = open_source(tmp_path / "a.vw", layout=layout)
    assert labels_of(source) == [1, -1, 1]
    assert concat(list(source.chunks())).weights.tolist() == [1, 2, 1]
    layout = Layout("svmlight", classes=("no", "yes"), label_weights=True)
    (tmp_path / "a.svm").write_text("yes 1:2\nno:3 2:1 # yes\nyes\n")
    source = open_source(tmp_path / "a.svm", layout=layout)
    assert labels_of(source) == [1, -1, 1]
    assert concat(list(source.chunks())).weights.tolist() == [1, 3, 1]
    (tmp_path / "b.svm").write_text("yes 1:2\nmaybe 2:1\n")
    with pytest.raises(
        DataError, match=r"b.svm:2:1: expected one of the classes no, yes as label, found 'maybe'"
    ):
        labels_of(open_source(tmp_path / "b.svm", layout=layout))


def looked(data: Any, on_error: str = "fail", layout: Layout | None = None) -> Any:
    """The layout after the first look."""

    def opened(layout: Any, domain: Any) -> Any:
        if isinstance(data, Streamed):
            return table_source(data, layout=layout, domain=domain)
        return open_source(data, layout=layout, domain=domain, on_error=on_error, block_bytes=1 << 12)

    return with_words(opened, layout or Layout(label="y"))


def test_a_look_finds_all_words_sorted(tmp_path: Path) -> None:
    words = some_words()
    for path in written(words, tmp_path).values():
        found = looked(path)
        assert found.classes == WORDS, path
        settled = open_source(path, layout=found, domain=f"classes:1-{len(WORDS)}").layout
        assert settled.classes == WORDS, path
        assert SettledLayout.from_dict(json.loads(json.dumps(settled.as_dict()))) == settled
    assert looked(Streamed(pa.table({"y": words, "x": [1] * len(words)}))).classes == WORDS


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "b.parquet"])
def test_numbers_in_a_column_of_texts_are_numbers(tmp_path: Path, name: str) -> None:
    path = written(["1", "0", " 1", "1.0", "-1e0"], tmp_path)[name]
    assert looked(path).classes == ()
    assert labels_of(open_source(path, layout=Layout(label="y"))) == [1, 0, 1, 1, -1]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "b.parquet"])
def test_what_is_no_number_there_is_a_bad_row(tmp_path: Path, name: str) -> None:
    path = written(["1", "0", "one", "1", "0"], tmp_path)[name]
    assert looked(path, "skip").classes == ()
    expected = (
        "expected a finite number as label in column 'y', found ' ?one ?'; to use words as labels, name"
    )
    with pytest.raises(DataError, match=expected):
        labels_of(open_source(path, layout=Layout(label="y")))
    path = written(["1", "0", "", "1", "0"], tmp_path)[name]
    with pytest.raises(DataError, match="expected a label in column 'y'"):
        labels_of(open_source(path, layout=Layout(label="y")))


def test_bad_rows_name_no_classes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,x\nham,1\njunk\nspam,2\njunk,1,2\nodd,high\n" + "ham,3\n" * 3000)
    assert looked(path, "skip", Layout(label="y", numeric=("x",))).classes == ("ham", "spam")
    with pytest.raises(DataError, match=r"a.csv:3:5: expected 2 columns"):
        looked(path)


def test_too_many_words_and_words_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y\n" + "".join(f"w{k}\n" for k in range(MOST_CLASSES + 1)))
    with pytest.raises(DataError, match=f"a.csv:{MOST_CLASSES + 2}:1: .* at most 65,536 different labels"):
        looked(path)
    path.write_bytes(b"y\nok\n\xff\xfe\n")
    with pytest.raises(DataError, match=r"the label '\\xff\\xfe' is not UTF-8"):
        looked(path)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=2, max_size=50, unique=True))
def test_a_table_of_words_is_a_dictionary(words: list[str]) -> None:
    table, met = WordTable(words, -3, 2), any_words().words
    assert met is not None
    assert [table.number_of(word.encode()) for word in words] == [-3 + 2 * k for k in range(len(words))]
    assert [met.number_of(word.encode()) for word in words * 2] == [*range(len(words))] * 2
    assert met.words() == {k: word.encode() for k, word in enumerate(words)}
    assert table.number_of(b"\xff") == table.number_of(b"") == 1 << 30
