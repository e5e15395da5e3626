"""JSON lines: the meaning of a line does not depend on the lines around it."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.reference import rows_of
from tests.plain import not_compiled
from thresher.data import DataError, open_source
from thresher.data.features.names import find_names
from thresher.data.formats.line_status import NEEDS_CARE
from thresher.data.formats.lines import line_rows
from thresher.data.formats.tables import jsonl
from thresher.data.layout import Layout
from thresher.data.sources.reader import Arenas, RowArrays
from thresher.engine.compile.machine import kind_of

HEAD = '{"label": 1, "x": 1.5, "c": "a", "k": 3, "b": true, "t": ["u"], "o": {"p": 1}, '
HEAD += '"n": {"x": 1, "m": {"c": "a"}}}\n'
LAYOUT = Layout("", categorical=("k",), ignore=("o", "z*"))
VALUES = (
    *("1", "-1", "0", "2.5", "1.0", "1e400", "-0", "123456789012345678901234567890", "9223372036854775807"),
    *("null", "true", '"a"', '""', '"\\u00e9"', '"\\ud800"', '"\\u0000"', '"2020-01-01"', '["u", "v"]', "[]"),
    *("[1]", "[null]", "{}", '{"p": [1]}', "nan", "NaN", "01", "1.", "'a'", '"a', "[", "[[]]", '"\\x"'),
    *("Infinity", "1e-400", '"\t"', '{"x": 2, "m": {"c": "b"}}', '{"x": 2, "x": 3}', '{"m": {}, "y": 1}'),
    *(
        '{"m.c": "b", "x": null}',
        '{"x": {"c": 1}, "m": {"c": "a",}}',
        '{"m": {"c": "\\u0062"} , "z": [{"c": 1}]}',
    ),
)
ODD = ("", "  ", "5", "{}", '{"label": 1} {"label": 1}', '{"label": 1,}', "\ufeff{}", '{"label": 0}\r')
names = st.sampled_from(["label", "x", "c", "k", "b", "t", "o", "zz", "new", "n", "n", "n", "n.x", "n.m"])
fields = st.lists(st.tuples(names, st.sampled_from(VALUES)), max_size=5)
usual = fields.map(lambda pairs: ", ".join(f'"{name}": {value}' for name, value in pairs if name != "label"))
lines = st.one_of(
    usual.map(lambda text: f'{{"label": 1{", " + text if text else ""}}}'),
    fields.map(lambda pairs: "{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}"),
    st.sampled_from(ODD),
)


def read(path: Path, block: int, cut: bool = False, layout: Any = LAYOUT, domain: str = "binary") -> Any:
    """Rows, bad lines, number of blank ones, what was noticed; or why the file is rejected.

    If `cut`, blocks of usual lines are read by compiled code.
    """
    compiled = jsonl.JsonlParser.usual if cut else lambda *_: NEEDS_CARE
    with mock.patch.object(jsonl.JsonlParser, "usual", staticmethod(compiled)):
        return _read(path, block, layout, domain)


def _read(path: Path, block: int, layout: Any, domain: str) -> Any:
    try:
        source = open_source(
            path, layout=layout, domain=domain, on_error="skip", block_bytes=block, threads=1
        )
        rows = [row for chunk in source.chunks() for row in rows_of(chunk)]
    except DataError as error:
        return str(error)
    return rows, source.report.first_bad, source.report.blank, source.report.noticed


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(lines, max_size=6))
def test_a_line_means_what_it_means_alone(tmp_path: Path, body: list[str]) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(HEAD + "\n".join(body), encoding="utf-8", newline="")
    alone = read(path, 1)
    assert read(path, 1 << 20) == alone
    assert read(path, 1 << 20, cut=True) == read(path, 1, cut=True) == alone


PLAIN = '{"label": 1, "x": 2.5, "c": "a", "k": 3, "b": true, "t": ["u"]}'


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_unusual_lines_among_many_usual_ones(tmp_path: Path, data: st.DataObject) -> None:
    """They are read one by one, and the others with compiled code."""
    some = data.draw(st.lists(st.tuples(st.integers(0, 99), lines), max_size=5))
    body = [PLAIN] * 100
    for place, line in some:
        body[place] = line
    path = tmp_path / "d.jsonl"
    path.write_text(HEAD + "\n".join(body), encoding="utf-8", newline="")
    alone = read(path, 1)
    assert read(path, 1 << 20) == read(path, 1 << 20, cut=True) == alone


WRITTEN = (
    '{"label": 1, "after": {"x": 1, "at": {"city": "c", "größe": 1}}, "a.b": {"c.d": 2}, '
    '"before": {"x": 7}}\n',
    '{"a.b": {"c.d": 2}, "after": {"at": {"gr\\u00f6\\u00dfe": 1, "city": "c"} , "x": 1}, "label": 1, '
    '"before": null}\n',
)


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("ignore", ["before", "before.*"])
def test_objects_within_objects(written: str, ignore: str, tmp_path: Path) -> None:
    """Their fields are columns with the names of both, and read by compiled code whatever has a dot."""
    path = tmp_path / "d.jsonl"
    path.write_text(written * 1000, encoding="utf-8")
    layout, calls = Layout("", ignore=(ignore,)), mock.Mock(side_effect=jsonl.JsonlParser._object)
    with mock.patch.object(jsonl.JsonlParser, "_object", lambda *given: calls(*given)):
        rows, bad, _, noticed = read(path, 1 << 20, cut=True, layout=layout)
    assert calls.call_count <= 2
    assert (len(rows), bad, noticed) == (1000, [], [])
    flat = {"label": 1, "after.x": 1, "after.at.city": "c", "after.at.größe": 1, "a.b.c.d": 2}
    path.write_text(json.dumps(flat) + "\n")
    assert {repr(one) for one in rows} == {repr(read(path, 1, layout=Layout(""))[0][0])}


def test_few_lines_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    body = [PLAIN] * 1000
    body[300], body[301], body[900] = "", '{"label": 1, ', "5"
    path.write_text(HEAD + "\n".join(body) + "\n")
    with mock.patch.object(
        jsonl.JsonlParser, "_object", autospec=True, side_effect=jsonl.JsonlParser._object
    ) as one:
        rows, bad, blank, _ = read(path, 1 << 20, cut=True)
    assert len(rows) == 998
    assert ([line.line for line in bad], blank) == ([303, 902], 1)
    assert one.call_count <= 10


ROWS = [
    *('"x": 3', '"x": 2.5', '"x": true', '"x": "1"', '"x": {}', '"c": 27000000', '"c": 2.0', '"c": true'),
    *('"c": "27000000"', '"k": "b"', '"k": 7', '"k": 7.0', '"k": false', '"b": "true"', '"b": 1'),
    *('"t": ["u", 5]', '"t": [5]', '"t": []', '"w": true', '"w": 2', '"x": null'),
]


@pytest.mark.parametrize("label", ["1", "true", '"a"'])
def test_the_first_row_decides_nothing_once_columns_are_settled(tmp_path: Path, label: str) -> None:
    """Each row means the same whatever the first one holds, in training and with a settled layout."""
    path = tmp_path / "d.jsonl"
    given = Layout("", categorical=("k",), weight="w", classes=("a", "b") if "a" in label else ())
    usual = f'{{"label": {label}, "x": 1.5, "c": "a", "k": 3, "b": true, "t": ["u"], "w": 1}}'
    path.write_text(usual + "\n")
    settled = open_source(path, layout=given).layout
    rows = [f'{{"label": {label}, "w": 1, {row}}}' for row in ROWS]

    def meanings(lines: list[str], layout: Any) -> list[Any]:
        path.write_text("\n".join(lines) + "\n")
        source = open_source(path, layout=layout, on_error="skip", threads=1)
        found = [row for chunk in source.chunks() for row in rows_of(chunk)]
        bad = {one.line for one in source.report.first_bad}
        good = iter(found)
        return [None if k + 1 in bad else next(good) for k in range(len(lines))]

    whole = meanings([usual, *rows], settled)
    assert meanings([usual, *rows], given) == whole
    assert [row for row, found in zip(ROWS, whole[1:], strict=True) if found is None] == [
        '"x": "1"',
        '"x": {}',
    ]
    for k, row in enumerate(rows):
        assert meanings([row, usual, *rows], settled) == [whole[1 + k], *whole]


def test_no_line_is_an_object(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("1\n[2]\n")
    with pytest.raises(DataError, match="none of its first lines is a JSON object"):
        open_source(tmp_path / "d.jsonl")


DEEP = ("[" * 150_000 + "]" * 150_000, *('{"o":' * deep + "1" + "}" * deep for deep in (200, 400, 60_000)))


@pytest.mark.parametrize("value", [*DEEP, "1" * 5000])
def test_values_that_readers_give_up_at(tmp_path: Path, value: str) -> None:
    """Long numbers raise ValueError in Python."""
    lines = [HEAD * 2, f'{{"label": 1, "x": {value}}}\n', f'{{"label": 1, "o": {value}}}\n', HEAD]
    path = tmp_path / "d.jsonl"
    for first in range(3):
        path.write_text("".join([*lines[first:], *lines[:first]]))
        whole = read(path, 1 << 20)
        assert whole == read(path, 1)
        rows, bad, *_ = whole
        assert len(rows) + len(bad) == 5
        assert len(bad) == (1 if value not in DEEP else 2)


def test_blocks_without_a_row_begin_at_0(tmp_path: Path) -> None:
    """Compiled code reads none of their lines."""
    path = tmp_path / "d.jsonl"
    path.write_bytes(HEAD.encode() + b'{"label": 1, "c": "\xff"}\n' * 3)
    source = open_source(path, layout=LAYOUT, on_error="skip", block_bytes=1, threads=1)
    with mock.patch.object(Arenas, "_memory", lambda _, need: np.full(need, 77, np.uint8)):
        assert {int(rows.chunk.indptr[0]) for rows in source.rows()} == {0}


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"label": 1, "\\ud800": 1}\n' + HEAD)
    rows, bad, *_ = read(path, 1 << 20)
    assert (len(rows), [one.line for one in bad]) == (1, [1])


texts = st.text(max_size=12).filter(lambda text: "\x00" not in text and "\ud800" not in text)
numbers_ = st.one_of(  # which have fewer than 19 digits, and exponents of at most 22
    st.integers(-(10**17), 10**17), st.floats(-(2.0**50), 2.0**50, width=32), st.floats(-1e9, 1e9)
)
texts = texts | st.just("\U0001d54f")
plain = st.one_of(
    st.none(),
    st.booleans(),
    texts,
    st.integers(-(10**14), 10**14),
    st.decimals(-999, 999, places=3).map(float),
)
objects = st.fixed_dictionaries(
    {"label": st.sampled_from([0, 1, True])},
    optional={
        "x": st.none() | st.booleans() | numbers_,
        "c": plain,
        "k": plain,
        "a longer name": texts,
        "words": st.none() | texts,
        "o": plain,
        "tags": st.none() | st.lists(texts | st.none() | st.integers(-9, 9)),
        "day": st.sampled_from(
            ["2024-05-01T00:00:00Z", f"2024-05-01T01:00:00.{'7' * 39}+00:00", "1.50", None]
        ),
        "late": plain,
    },
)


@st.composite
def usual_lines(draw: st.DrawFn) -> list[str]:
    lines = list[str]()
    for one in draw(st.lists(objects, min_size=1, max_size=20)):
        pairs = draw(st.permutations([*one.items()]))
        separators, plain = (
            draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")])),
            draw(st.booleans()),
        )
        lines.append(
            json.dumps(dict(pairs), ensure_ascii=plain, separators=separators)
            + draw(st.sampled_from(["", "\r"]))
        )
    return lines


FIRST = (
    '{"label": 1, "x": 0.5, "c": "a", "k": 3, "a longer name": "a", "words": "a b", "o": 1, '
    '"tags": ["u"], "day": "2024-05-01", "late": null}\n'
)


@pytest.mark.parametrize("gaps", [False, True])
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(usual_lines())
def test_usual_objects_are_cut(tmp_path: Path, gaps: bool, body: list[str]) -> None:
    """Compiled code reads them, to the same rows as all other ways."""
    path = tmp_path / "d.jsonl"
    path.write_text(FIRST)
    given = Layout("", categorical=("k",), text=("words",), ignore=("o",), gaps=gaps)
    layout: Any = open_source(path, layout=given).layout
    path.write_text(FIRST + "\n".join(body) + "\n", encoding="utf-8", newline="")
    slow = read(path, 1 << 20, layout=layout)
    with mock.patch.object(jsonl.JsonlParser, "_object", None):
        assert read(path, 1 << 20, cut=True, layout=layout) == slow


ODD_NAMES = ("a\\b", 'p": 1, "q', 'a"b', "\\alpha", "a\\", "a\tb", "größe")
ODD_LINES = (
    *('{"label": 1, "a\\b": 2}', '{"label": 1, "p": 1, "q": 2}', '{"label": 1, "a"b": 2}'),
    *('{"label": 1, "\\alpha": 2}', '{"label": 1, "a\\": 2}', '{"label": 1, "a\tb": 2}'),
)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_that_are_written_otherwise(name: str, tmp_path: Path) -> None:
    """A name with an escape is not taken for the same letters without one."""
    path = tmp_path / "d.jsonl"
    first = json.dumps({"label": 1, "x": 1, name: 3}) + "\n"
    path.write_text(first)
    layout = open_source(path).layout
    for line in ODD_LINES:
        path.write_text('{"label": 0, "x": 1}\n' + line + "\n")
        assert read(path, 1 << 20, cut=True, layout=layout) == read(path, 1 << 20, layout=layout)
    plain = json.dumps({"label": 1, "x": 1, name: 3}, ensure_ascii=False) + "\n"
    path.write_text(first + plain, encoding="utf-8")
    expected = read(path, 1 << 20, layout=layout)
    with mock.patch.object(jsonl.JsonlParser, "_object", None):
        assert read(path, 1 << 20, cut=True, layout=layout) == expected


LISTS_OF_CLASSES = (
    *("[]", "[0]", "[1, 4]", "[4, 1]", "[0.0]", "null", "[null]", "[1, 1]", "[7]", '["a"]', "[true]", "3"),
    "[1e0, 2]",
)


def test_lists_of_classes(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    lines = [f'{{"label": {label}, "x": 1}}\n' for label in LISTS_OF_CLASSES]
    path.write_text('{"label": [2], "x": 1}\n' + "".join(lines))
    slow, quick = (read(path, 1 << 20, cut, Layout(""), "labels:0-4") for cut in (False, True))
    assert quick == slow
    assert [one.line for one in quick[1]] == [7, 8, 9, 10, 11, 13]
    path.write_text("".join(lines[:5]) * 9)
    with mock.patch.object(jsonl.JsonlParser, "_object", None):
        assert len(read(path, 1 << 20, True, Layout(""), "labels:0-4")[0]) == 45


@pytest.mark.parametrize(("label", "domain"), [("[1]", "binary"), ("1", "labels:0-4")])
def test_labels_that_outputs_cannot_use(tmp_path: Path, label: str, domain: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(f'{{"label": {label}, "x": 1}}\n' * 3)
    found = "lists" if label == "[1]" else "no lists"
    with pytest.raises(DataError, match=f"column 'label' has {found}, but these outputs need"):
        list(open_source(path, domain=domain).chunks())


@pytest.mark.parametrize("cut", [False, True])
def test_names_of_features(cut: bool, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    values = (
        *('"x": 2.5, "b": 7, "c": "a", "t": ["u", 5]', '"x": 0, "c": "ü", "t": [null]'),
        '"b": -40, "t": ["v"]',
    )
    path.write_text("".join(f'{{"label": 1, {one}}}\n' for one in values), encoding="utf-8")
    source = open_source(path, layout=Layout("", bins=("b",)), threads=1)
    usual = staticmethod(jsonl.JsonlParser.usual if cut else lambda *_: NEEDS_CARE)
    with mock.patch.object(jsonl.JsonlParser, "usual", usual):
        keys = np.unique(np.concatenate([chunk.keys for chunk in source.chunks()]))
        names = find_names(source, keys)
    assert sorted(names.values()) == ["b=-15", "b=5", "c=a", "c=ü", "t=5", "t=u", "t=v", "x"]


def test_a_text_in_a_column_of_lists(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"label": 1, "t": ["u", "v"]}\n{"label": 1, "t": "u"}\n')
    _, bad, *_ = found = read(path, 1 << 20, cut=True, layout=Layout(""))
    assert found == read(path, 1 << 20, layout=Layout(""))
    assert [one.line for one in bad] == [2]


def test_spellings_that_are_longer_than_what_was_written(tmp_path: Path) -> None:
    """Of values with escapes, whose spellings have many digits that are not written."""
    path, names = tmp_path / "d.jsonl", [f"c{k}" for k in range(100)]
    path.write_text(json.dumps({"label": 1, **dict.fromkeys(names, "2024-05-01")}) + "\n")
    layout = open_source(path).layout
    value = f"2024-05-01T01:00:00.{'123456789' * 4}"
    line = json.dumps({"label": 0, **dict.fromkeys(names, value)}).replace('9"', '9\\u005a"')
    path.write_text(f"{line}\n" * 30)
    assert read(path, 1 << 20, cut=True, layout=layout) == read(path, 1 << 20, layout=layout)


def test_numbers_beyond_float64_are_categories_as_they_are_written(tmp_path: Path) -> None:
    """Infinity, and 0, would be one category for all of them, and another than that of CSV."""
    numbers = [
        *("1e400", "-1e400", "1E+401", "1e-400", f"1{'0' * 400}", f"1{'0' * 399}1", "5", "2.5", "0.0"),
        f"0.{'0' * 400}1",
    ]
    (tmp_path / "d.csv").write_text("label,k\n" + "".join(f"1,{number}\n" for number in numbers))
    (tmp_path / "d.jsonl").write_text("".join(f'{{"label": 1, "k": {one}}}\n' for one in numbers))
    layout = Layout("", categorical=("k",))
    keys = read(tmp_path / "d.jsonl", 1 << 20, layout=layout)[0]
    assert keys == read(tmp_path / "d.csv", 1 << 20, layout=layout)[0]
    assert len({str(row) for row in keys}) == len(numbers)


def test_lines_that_lack_most_fields_take_little_memory(tmp_path: Path) -> None:
    path, names = tmp_path / "d.jsonl", [f"c{k}" for k in range(1000)]
    path.write_text(json.dumps({"label": 1, **dict.fromkeys(names, "a")}) + "\n" + '{"label": 0}\n' * 400)
    columns, room = Arenas.columns, list[int]()

    def noted(self: Arenas, rows: int, nnz: int, *more: Any) -> RowArrays:
        room.append(rows * 8 + nnz * 12)
        return columns(self, rows, nnz, *more)

    with mock.patch.object(Arenas, "columns", noted):
        assert len(read(path, 1 << 20, cut=True, layout=Layout(""))[0]) == 401
    assert max(room) < 20 * path.stat().st_size


@pytest.mark.parametrize("first", ["1.5", "1.10", "2", '"s"', "12345678901234567890", "null", "true"])
@pytest.mark.parametrize("kind", ["categorical", "text"])
def test_all_digits_count_whatever_is_in_the_first_row(tmp_path: Path, first: str, kind: str) -> None:
    """Read as fractions, two whole numbers of 16 digits would be one; so would fractions below float64."""
    path = tmp_path / "d.jsonl"
    numbers = (
        "9007199254740993",
        "9007199254740992",
        "0." + 400 * "0" + "1",
        "0." + 300 * "0" + "1",
        "0.1e-320",
    )
    rows = [f'{{"label": 1, "k": {number}}}' for number in (first, *numbers)]
    path.write_text("\n".join(rows) + "\n")
    layout = Layout("", categorical=("k",)) if kind == "categorical" else Layout("", text=("k",))
    alone = read(path, 1, layout=layout)
    assert read(path, 1 << 20, layout=layout) == read(path, 1 << 20, cut=True, layout=layout) == alone


@pytest.mark.parametrize("value", ["1", '{"x": 1}', "null"])
def test_names_that_only_a_line_has_make_no_table_of_names_times_lines(tmp_path: Path, value: str) -> None:
    path = tmp_path / "wide.jsonl"
    usual = ['{"label": 1, "x": 1.5}\n'] * 5_000
    path.write_text("".join(usual + [f'{{"label": 0, "k{k}": {value}}}\n' for k in range(2_000)] + usual))

    with mock.patch.object(jsonl, "beginning", return_value=HEAD.encode()):
        rows, bad, blank, noticed = read(path, 1 << 20, cut=True)
    assert (len(rows), bad, blank) == (12_000, [], 0)
    assert len(noticed) == (0 if value == "null" else 20)
    assert [one.place for one in noticed] == [f"{path}:{5_001 + k}" for k in range(len(noticed))]


def test_odd_lines_are_read_by_the_code_of_usual_ones(tmp_path: Path) -> None:
    """Nothing is compiled for them."""
    (tmp_path / "a.jsonl").write_text(
        '{"label": 1, "x": 1}\n{"label": 0, "\\u0078": 2}\n{"label": 1, "x": 3}\n'
    )
    kinds, parse_lines = list[Any](), line_rows.parse_lines

    def parse(*args: Any) -> Any:
        kinds.append(kind_of(args))
        return parse_lines(*args)

    with (
        not_compiled(),
        mock.patch.object(jsonl.JsonlParser, "usual", staticmethod(parse)),
        mock.patch.object(jsonl, "parse_lines", parse),
    ):
        (chunk,) = open_source(tmp_path / "a.jsonl").chunks()
    assert chunk.values.tolist() == [1, 2, 3]
    assert len(kinds) > 2
    assert len({*kinds}) == 1
