"""Names: the name found for a key hashes to that key, in every format; no other names are found."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.test_interactions import product_key, table_rows, write
from thresher.data import concat, open_source
from thresher.data.features import names as module
from thresher.data.features.murmur import hash_bytes, seed_of
from thresher.data.features.names import BETWEEN, Names, find_names
from thresher.data.layout import AnyLayout, Layout
from thresher.data.sources.parsed import TextSource

NUMERIC = ("n1", "n2")


def key_of(name: str) -> int:
    if BETWEEN in name:
        return product_key([key_of(one) for one in name.split(BETWEEN)], 2**64 - 1)
    space, _, rest = name.rpartition("=")
    if space or name in NUMERIC:
        return hash_bytes(rest.encode(), seed_of(space))
    return int(name) if name.isdigit() else hash_bytes(name.encode())


def opened(path: Path, layout: AnyLayout) -> TextSource:
    return open_source(path, layout=layout, domain="real", on_error="skip")


def all_named(path: Path, layout: Layout) -> list[str]:
    source = opened(path, layout)
    keys = np.unique(concat(list(source.chunks())).keys)
    assert source.layout is not None
    names = find_names(opened(path, source.layout), keys)
    found = [names.get(key) for key in keys.tolist()]
    for key, name in zip(keys.tolist(), found, strict=True):
        assert name is not None
        assert key_of(name) == key
    return [name for name in found if name]


def test_names_of_vw_text(tmp_path: Path) -> None:
    (path := tmp_path / "a.vw").write_text(
        "1 |user anna:2 bert |ad a_long_name_of_a_feature:0.5\nbad\n-1 tag|user:2 anna | 17 plain\n"
    )
    found = all_named(path, Layout("vw", interact=("user,ad", "user,user")))
    assert {"user=anna", "ad=a_long_name_of_a_feature", "17", "plain"} <= set(found)
    assert "user=bert × ad=a_long_name_of_a_feature" in found
    assert len(found) == 5 + 2 + 3
    (path := tmp_path / "a.vw").write_text("1 |user town:Ulm\n")
    keys = concat(list(opened(path, Layout("vw")).chunks())).keys
    assert find_names(opened(path, Layout("vw")), keys).get(int(keys[0])) == "user=town:Ulm"


def test_names_of_texts_in_vw_text(tmp_path: Path) -> None:
    (path := tmp_path / "a.vw").write_text("1 |t Not good|u good | bare\n-1 |t good |t not\n")
    layout = Layout("vw", text=("t", ""), ngrams="words=1-2")
    assert {*all_named(path, layout)} == {"t=not", "t=good", "t=not good", "u=good", "bare"}


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_tables(tmp_path: Path, name: str) -> None:
    rows = table_rows()
    if name == "a.csv":
        rows = [{key: value for key, value in row.items() if key != "tags"} for row in rows]
    write(tmp_path / name, rows)
    layout = Layout(text=("t",), bins=("b",), ngrams="words=1-2", interact=("c1,c2", "n1,t"))
    found = set(all_named(tmp_path / name, layout))
    assert {"n1", "n2", "b=0", "b=15", "b=-239", "c1=x", "t=good", "n1 × t=film"} <= found
    assert any(one.startswith("c1=") and " × c2=" in one for one in found)
    assert any(" " in one and one.startswith("t=") and BETWEEN not in one for one in found)
    assert ("tags=p" in found) == (name != "a.csv")


def test_dictionary_columns_and_numbers_as_categories(tmp_path: Path) -> None:
    table = pa.table(
        {"label": [1.0, 0.0], "c": pa.array(["x", None]).dictionary_encode(), "k": [17, 3], "b": [True, None]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    found = all_named(tmp_path / "a.parquet", Layout(categorical=("k",)))
    assert set(found) == {"c=x", "k=17", "k=3", "b=true"}


def test_factors_of_svmlight_are_called_by_their_ids(tmp_path: Path) -> None:
    (path := tmp_path / "a.svm").write_text("1 3:1 20:2\n")
    keys = concat(list(opened(path, Layout("svmlight", interact=("*,*",))).chunks())).keys
    names = find_names(opened(path, Layout("svmlight", interact=("*,*",))), keys)
    assert sorted(filter(None, map(names.get, keys.tolist()))) == ["20 × 20", "3 × 20", "3 × 3"]


def test_factors_that_went_by_are_found_in_a_second_reading(tmp_path: Path) -> None:
    (path := tmp_path / "a.vw").write_text("1 |a x |b y\n1 |c z\n")
    wanted = product_key([key_of("a=x"), key_of("b=y")], 2**64 - 1)
    names = find_names(opened(path, Layout("vw", interact=("a,b",))), np.array([wanted], np.uint64))
    assert names.get(wanted) == "a=x × b=y"
    assert len(names) == 1


def test_names_come_in_readings_where_room_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAME_BYTES", 40)
    (path := tmp_path / "a.vw").write_text("1 |s " + " ".join(f"name{k}" for k in range(20)) + "\n")
    assert len(all_named(path, Layout("vw"))) == 20


def test_reading_ends_with_the_last_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "a.vw").write_text("1 |s early\n" + "1 |s other\n" * 100_000)
    source = open_source(path, layout=Layout("vw"), block_bytes=1 << 12)
    find_names(source, np.array([key_of("s=early")], np.uint64))
    assert source.report.lines < 100_001


def test_what_is_kept() -> None:
    names = Names.of({5: b"five", 2: "zwei €".encode(), 9: b"\xff"})
    assert [names.get(key) for key in (2, 5, 9, 3, 10)] == ["zwei €", "five", "\\xff", None, None]
    assert json.dumps([names.only(np.array([9, 2, 4], np.uint64)).get(key) for key in (2, 5)]) == json.dumps(
        ["zwei €", None]
    )
    joined = names.only(np.array([5], np.uint64)).union(Names.of({7: b"", 1: b"one"}))
    assert [joined.get(key) for key in (1, 5, 7)] == ["one", "five", ""]
    assert Names.of({}).union(names).get(5) == "five"


def test_names_that_coincide_get_their_keys() -> None:
    """Whatever is known already, and in whatever order names are found, each name is that of one feature."""
    given = {1: b"a=b", 4: b"\\xff", 6: b"c", 7: b"a=b", 8: b"\xff", 9: b"3", 11: b"12"}
    keys = np.array([*given, 3], np.uint64)
    names = Names.of(given).distinct(keys)
    marked = ["a=b [1]", "\\xff [4]", "c", "a=b [7]", "\\xff [8]", "3 [9]", "12"]
    assert [names[key] for key in given] == marked
    again = names.only(np.array([1, 4, 6, 11], np.uint64))
    assert [*again.distinct(again.features).values()] == ["a=b", "\\xff", "c", "12"], "the others are gone"
    for first in given:
        known = Names.of({first: given[first]}).union(
            Names.of({key: name for key, name in given.items() if key != first})
        )
        assert [*known.distinct(keys).values()] == marked


@pytest.mark.parametrize(
    ("layout", "text", "expected"),
    [
        (Layout("vw"), "1 |a b=c\n1 | a=b=c\n1 |a=b c d\n", ["a=b=c [", "a=b=c [", "a=b=c [", "a=b=d"]),
        (Layout("csv"), "label,a,a=b\n1,b=c,c\n1,x,c\n", ["a=b=c [", "a=b=c [", "a=x"]),
        (
            Layout("csv", text=("t",), ngrams="words=1,chars=3"),
            "label,t\n1,the cat\n",
            ['t="cat"', 't="e c"', 't="he "', 't="the"', 't=" ca"', "t=cat", "t=the"],
        ),
    ],
)
def test_names_differ_in_every_format(tmp_path: Path, layout: Layout, text: str, expected: list[str]) -> None:
    (path := tmp_path / "data").write_text(text)
    keys = np.unique(concat([*opened(path, layout).chunks()]).keys)
    names = find_names(opened(path, layout), keys).distinct(keys)
    assert sorted(name.partition("[")[0] + "[" * ("[" in name) for name in names.values()) == sorted(expected)
    assert all(name.endswith(f" [{key}]") for key, name in names.items() if "[" in name)
