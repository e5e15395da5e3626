"""Interactions: every reader yields the products that enumerating all combinations gives."""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import combinations_with_replacement, permutations
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thresher.data import Chunk, DataError, concat, open_source
from thresher.data.feature_specs import grams_of, terms_of
from thresher.data.features.murmur import hash_bytes, seed_of
from thresher.data.features.ngrams import rows_of_texts
from thresher.data.layout import Layout

ALL = 2**64 - 1
PAIR, TRIPLE = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03


class Feature(NamedTuple):
    space: str
    key: int
    value: float
    apart: bool


def finish(word: int) -> int:
    for by in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        word = (word ^ word >> 33) * by & ALL
    return word ^ word >> 33


def product_key(keys: Sequence[int], mask: int) -> int:
    constant = PAIR if len(keys) == 2 else TRIPLE
    return finish((sum(map(finish, keys)) + constant) & ALL) & mask


def crossed(row: Sequence[Feature], interact: Sequence[str], mask: int = ALL) -> dict[int, float]:
    """The features of a row and the products of all combinations that match a term in any order."""
    found: dict[int, float] = defaultdict(float)
    for one in row:
        found[one.key] += one.value
    for term in interact:
        pieces = term.split(",")
        for chosen in combinations_with_replacement(range(len(row)), len(pieces)):
            taken = [row[k] for k in chosen]
            squared = any(one.apart and chosen.count(k) > 1 for k, one in zip(chosen, taken, strict=True))
            fits = any(
                all(p == s or fnmatchcase(s, p) for p, s in zip(pieces, order, strict=True))
                for order in permutations(one.space for one in taken)
            )
            if fits and not squared:
                found[product_key([one.key for one in taken], mask)] += prod(one.value for one in taken)
    return found


def rows_of(chunk: Chunk) -> list[dict[int, float]]:
    return [
        dict(zip(chunk.keys[a:b].tolist(), chunk.values[a:b].tolist(), strict=True))
        for a, b in zip(chunk.indptr, chunk.indptr[1:], strict=False)
    ]


def read(path: Path, layout: Layout, **options: Any) -> Chunk:
    return concat(list(open_source(path, layout=layout, domain="real", **options).chunks()))


def same(found: Chunk, wanted: Sequence[dict[int, float]]) -> None:
    for have, want in zip(rows_of(found), wanted, strict=True):
        assert have.keys() == want.keys()
        assert all(have[key] == pytest.approx(want[key], rel=1e-5) for key in want)
    assert all(
        (np.diff(found.keys[a:b].astype(object)) > 0).all()
        for a, b in zip(found.indptr, found.indptr[1:], strict=False)
    )


SPACES = ("user", "ad", "")
TERMS = ("user,ad", ",ad", "ad,ad", "user,user,ad", "*,ad,ad", "*,*")


def written(rng: np.random.Generator) -> tuple[str, list[Feature]]:
    """A line of VW text whose namespaces may repeat, and its features."""
    line, row = "1", list[Feature]()
    for space in rng.choice(SPACES, 3).tolist():
        line += f" |{space}"
        for name in rng.choice(list("abcdefgh"), 2).tolist():
            value = int(rng.integers(1, 5)) / 2
            line += f" {name}:{value}"
            row.append(Feature(space, hash_bytes(name.encode(), seed_of(space)), value, False))
    return line, row


@pytest.mark.parametrize("term", TERMS)
def test_vw_text(tmp_path: Path, term: str) -> None:
    rng = np.random.default_rng(1)
    lines, rows = zip(*(written(rng) for _ in range(20)), strict=True)
    (path := tmp_path / "a.vw").write_text("\n".join(lines) + "\n")
    same(read(path, Layout("vw", interact=(term,))), [crossed(row, [term]) for row in rows])


SAID = json.loads((Path(__file__).parent / "vw_interactions.json").read_text(encoding="utf-8"))
"""The indices of the weights of vowpalwabbit 9.11 after learning a line with -q or --cubic."""


@pytest.mark.parametrize("said", SAID, ids=lambda said: said["vw"])
def test_by_the_hash_vw_products_have_the_indices_of_vowpal_wabbit(tmp_path: Path, said: Any) -> None:
    (path := tmp_path / "a.vw").write_text(said["line"] + "\n")
    chunk = read(path, Layout("vw", hash="vw", bits=18, interact=tuple(said["interact"])))
    assert chunk.keys.tolist() == said["indices"]


def bin_of(value: float) -> int:
    """Bins of width one up to 2, then by the squared logarithm; mirrored for negative numbers."""
    place = int(math.log(abs(value)) ** 2) + 2 if abs(value) > 2 else int(abs(value))
    return -place if value < 0 else place


def table_rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(2)
    return [
        {
            "label": 1.0,
            "n1": int(rng.integers(0, 4)) / 2,
            "n2": int(rng.integers(0, 4)) / 4,
            "b": [0.0, -1.5, 2.0, 3.0, 40.0, -5e6, None][int(rng.integers(0, 7))],
            "c1": str(rng.choice(["x", "y", ""])),
            "c2": str(rng.choice(["x", "z"])),
            "tags": rng.choice(["p", "q", "r"], int(rng.integers(0, 4))).tolist(),
            "t": " ".join(rng.choice(["good", "bad", "film"], 3)),
        }
        for _ in range(12)
    ]


def features(row: dict[str, Any]) -> list[Feature]:
    found = [Feature(name, hash_bytes(name.encode()), row[name], False) for name in ("n1", "n2") if row[name]]
    bins = [] if row["b"] is None else [("b", str(bin_of(row["b"])))]
    listed = [*bins, ("c1", row["c1"]), ("c2", row["c2"]), *(("tags", tag) for tag in row.get("tags", ()))]
    found += [
        Feature(name, hash_bytes(text.encode(), seed_of(name)), 1.0, True) for name, text in listed if text
    ]
    _, keys, values = rows_of_texts([row["t"]], grams_of("words=1"), seed_of("t"))
    return found + [Feature("t", *one, False) for one in zip(keys.tolist(), values.tolist(), strict=True)]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        lines = [",".join("" if row[name] is None else str(row[name]) for name in rows[0]) for row in rows]
        path.write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)


TABLE_TERMS = (
    *("c1,c2", "n1,n1", "n*,c1", "tags,tags", "t,c1", "t,t", "c1,c2,n1", "tags,tags,n2", "*,*", "*,*,c1"),
)


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_tables(tmp_path: Path, name: str) -> None:
    rows = table_rows()
    write(tmp_path / name, rows)
    for term in TABLE_TERMS:
        layout = Layout(text=("t",), bins=("b",), interact=(term,))
        same(read(tmp_path / name, layout), [crossed(features(row), [term]) for row in rows])


def test_delimited_tables_are_the_same_as_others(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "tags"} for row in table_rows()]
    interact = ("c1,c2", "n*,c*", "t,t,c1", "n1,n2,n1", "b,b", "b,n1")
    layout = Layout(text=("t",), bins=("b",), interact=interact, bits=40)
    for name in ("a.csv", "a.jsonl"):
        write(tmp_path / name, rows)
    first, second = (read(tmp_path / name, layout) for name in ("a.csv", "a.jsonl"))
    mask = layout.mask
    cut = [[one._replace(key=one.key & mask) for one in features(row)] for row in rows]
    same(first, [crossed(row, interact, mask) for row in cut])
    assert first.keys.tolist() == second.keys.tolist()
    assert first.values.tobytes() == second.values.tobytes()


def test_svmlight_is_one_namespace_and_rows_may_outgrow_their_room(tmp_path: Path) -> None:
    rows = [dict.fromkeys(range(1, n + 1), 0.5) for n in (40, 1, 25)]
    text = "".join("1 " + " ".join(f"{k}:{v}" for k, v in row.items()) + "\n" for row in rows)
    (path := tmp_path / "a.svm").write_text(text)
    wanted = [crossed([Feature("", k, v, False) for k, v in row.items()], ["*,*,*"]) for row in rows]
    same(read(path, Layout("svmlight", interact=("*,*,*",))), wanted)
    (tmp_path / "b.vw").write_text(text.replace("1 ", "1 | ", 3))
    again = read(tmp_path / "b.vw", Layout("vw", interact=(",,",)))
    assert again.keys.tolist() == read(path, Layout("svmlight", interact=(",,",))).keys.tolist()


@pytest.mark.parametrize(
    "line", ["1 | a:1e30 b:1e30", "1 | " + " ".join(f"f{k}" for k in range(6000)), "1" + " |u a" * 5000]
)
def test_products_that_are_too_much_are_bad_lines(tmp_path: Path, line: str) -> None:
    (path := tmp_path / "a.vw").write_text(f"1 | x y\n{line}\n-1 | x\n")
    layout = Layout("vw", interact=("*,*",))
    with pytest.raises(DataError, match=r"a\.vw:2:1: expected at most 2\^24 features including interactions"):
        read(path, layout)
    assert len(read(path, layout, on_error="skip")) == 2


def test_terms_that_are_none() -> None:
    for wrong in ("a", "a,b,c,d", ""):
        with pytest.raises(DataError, match="an interaction has two or three factors"):
            Layout(interact=(wrong,))
    with pytest.raises(DataError, match="at most 62"):
        terms_of([f"a{k},b{k}" for k in range(32)])


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", table_rows())
    for wrong in ("n1,colour", "label,n1"):
        with pytest.raises(DataError, match=r"a\.jsonl: --interact: no feature column is called"):
            read(tmp_path / "a.jsonl", Layout(interact=(wrong,)))
    (tmp_path / "a.svm").write_text("1 3:1\n")
    with pytest.raises(DataError, match=r"svmlight has no namespaces: .* not 'user'"):
        read(tmp_path / "a.svm", Layout(interact=("user,ad",)))
