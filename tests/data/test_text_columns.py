"""Text columns in tables: n-grams together with other columns, the same in every format."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.reference import Row, read_all, rows_of, same
from tests.data.tables import WRITERS, meaning, write_jsonl
from tests.data.test_ngrams import expected
from thresher.data import Chunk, DataError, open_source
from thresher.data.feature_specs import grams_of
from thresher.data.features.murmur import seed_of
from thresher.data.layout import Layout

FORMATS = pytest.mark.parametrize("name", WRITERS)
SPECS = ("words=1-2,scale=log", "words=0,chars=2-3,norm", "words=1,shortest=1,case")
OTHERS = {"label": "label", "n": "numeric", "city": "categorical"}
texts = st.none() | st.lists(st.sampled_from(["Fine", "fine,", "Öl", "東京", "a", "'x'", "_", "—"])).map(
    " ".join
)


def layout(spec: str) -> Layout:
    return Layout(text=("body",), ngrams=spec, numeric=("n",))


def table(bodies: list[str | None]) -> list[dict[str, Any]]:
    first = {"label": 1, "n": 0.5, "city": "Ulm", "body": "a fine day in Ulm"}
    return [first, *({"label": -1, "n": 2, "city": None, "body": body} for body in bodies)]


def wanted(rows: list[dict[str, Any]], spec: str) -> list[dict[int, float]]:
    found = []
    for row in rows:
        others = meaning(row, OTHERS)
        assert isinstance(others, Row)
        grams = expected(row["body"] or "", grams_of(spec), seed_of("body"))
        found.append(dict(sorted({**{key: float(v) for key, v in others.features.items()}, **grams}.items())))
    return found


def agrees(chunk: Chunk, rows: list[dict[int, float]]) -> bool:
    ends = chunk.indptr.tolist()
    for i, row in enumerate(rows):
        entries = slice(ends[i], ends[i + 1])
        if chunk.keys[entries].tolist() != list(row):
            return False
        if not np.allclose(chunk.values[entries], list(row.values()), rtol=1e-6):
            return False
    return len(chunk) == len(rows)


@FORMATS
@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(texts, max_size=8))
def test_every_format_finds_the_same_words(
    tmp_path: Path, name: str, spec: str, bodies: list[str | None]
) -> None:
    rows = table([body or None for body in bodies])
    WRITERS[name](rows, tmp_path / name)
    assert agrees(read_all(tmp_path / name, layout=layout(spec)), wanted(rows, spec))


@cache
def long_texts() -> tuple[list[dict[str, Any]], list[dict[int, float]]]:
    """A table, and the features it has with the first of `SPECS`."""
    rng = np.random.default_rng(3)
    words = [f"word{k}" for k in range(300)]
    rows = table([" ".join(rng.choice(words, 500)) for _ in range(40)])
    return rows, wanted(rows, SPECS[0])


@FORMATS
def test_long_texts_threads_and_blocks(tmp_path: Path, name: str) -> None:
    rows, features = long_texts()
    WRITERS[name](rows, tmp_path / name)
    chunks = []
    for threads, block in ((1, 1 << 22), (1, 5000), (3, 5000)):
        source = open_source(tmp_path / name, layout=layout(SPECS[0]), threads=threads, block_bytes=block)
        chunks.append([row for chunk in source.chunks() for row in rows_of(chunk)])
    assert chunks[0] == chunks[1] == chunks[2]
    assert agrees(read_all(tmp_path / name, layout=layout(SPECS[0])), features)


@FORMATS
@pytest.mark.parametrize("bits", [3, 20])
def test_keys_of_fewer_bits(tmp_path: Path, name: str, bits: int) -> None:
    """The values of colliding names add up, and nothing else changes."""
    rows = table(["fine and short", None, "dull and long"])
    WRITERS[name](rows, tmp_path / name)
    whole = read_all(tmp_path / name, layout=layout(SPECS[0]))
    short = read_all(tmp_path / name, layout=replace(layout(SPECS[0]), bits=bits))
    assert len(whole) == len(short) == 4
    for i in range(4):
        one, other = whole.rows(i, i + 1), short.rows(i, i + 1)
        folded: dict[int, float] = {}
        for key, value in zip(one.keys.tolist(), one.values.tolist(), strict=True):
            folded[key % 2**bits] = folded.get(key % 2**bits, 0.0) + value
        assert other.keys.tolist() == sorted(folded)
        assert np.allclose(other.values, [folded[key] for key in sorted(folded)])
    with pytest.raises(DataError, match="the hash vw is only for VW text"):
        open_source(tmp_path / name, layout=Layout(bits=18, hash="vw"))


def test_several_columns_of_text(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"label": 1, "title": "fine words", "body": "fine days"},
        {"label": 0, "title": None, "body": "x"},
    ]
    write_jsonl(rows, tmp_path / "a.jsonl")
    both = read_all(tmp_path / "a.jsonl", layout=Layout(text=("title", "body")))
    one = read_all(tmp_path / "a.jsonl", layout=Layout(text=("title",), ignore=("body",)))
    assert np.diff(both.indptr).tolist() == [4, 0]
    assert set(one.keys.tolist()) < set(both.keys.tolist())
    again = read_all(tmp_path / "a.jsonl", layout=Layout(text=("t*", "body")))
    assert same(both, again)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"text": ("body",), "categorical": ("body",)}, "'body' is listed in both --categorical and --text"),
        ({"text": ("bodies",)}, "no column is called 'bodies'"),
        ({"ngrams": "words=2"}, r"n-grams need a text column \(--text COL\)"),
    ],
)
def test_what_is_said_wrong(tmp_path: Path, wrong: dict[str, Any], reason: str) -> None:
    write_jsonl(table([]), tmp_path / "a.jsonl")
    with pytest.raises(DataError, match=reason):
        open_source(tmp_path / "a.jsonl", layout=Layout(**wrong))
    with pytest.raises(DataError, match="has no columns"):
        open_source("examples/data/rcv1_train2000.dat.gz", layout=Layout(**wrong))
