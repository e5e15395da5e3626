"""Bodies are read as files with the same bytes are."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import thresher
from thresher.data.chunk import Chunk, concat
from thresher.data.errors import DataError
from thresher.data.formats.listing import TABLES
from thresher.data.opening import open_source
from thresher.data.sources.reader import Parsed
from thresher.serving.bodies import Bodies
from thresher.serving.errors import RefusedError, refusal
from thresher.serving.openapi import MEDIA

BOM = b"\xef\xbb\xbf"
REFUSED = (RefusedError, DataError)
"""What is an answer with the status of an error"""
TYPES = {form: media for media, form in MEDIA.items()}
ROWS = [
    {"label": 1, "size": 0.5, "day": "2024-03-01", "colour": "red", "kinds": 3},
    {"label": 0, "size": 2, "day": "2024-03-02", "colour": "blue", "kinds": 4},
    {"label": 1, "size": -1.5, "day": "2024-03-03", "colour": "red, dark", "kinds": 3},
]
BODIES = {
    "jsonl": [
        b'{"label": 1, "size": 0.25, "colour": "red", "kinds": 3, "day": "2024-03-01"}\n',
        b'{"label": 1, "size": 0.25, "colour": "red"}\r\n{"colour": "blue", "size": 3, "label": 0}',
        b'{"label": 1, "size": null, "colour": null, "new": [1, {"a": 2}], "kinds": 3.0}\n',
        b'{"label": 1, "size": 1}\n\n  \n{"label": 0, "kinds": 18446744073709551617}\n',
        b'{"label": 1, "size": NaN}\n{"label": 1, "size": 1e400}\n{"label": 0, "size": 1e39}\n{"label": 0}\n',
        b'{"label": 1, "size": 1' + b"0" * 450 + b', "kinds": 1' + b"0" * 450 + b"}\n",
        b'{"label": 1, "colour": "caf\\u00e9 \\ud83d\\ude00", "day": "1 March 2024", "kinds": 0.1e1}\n',
        b'{"label": 1, "colour": "\\ud800"}\n{"label": 0, "colour": "a\\u0000b", "kinds": true}\n',
        b'{"label": 1, "size": 1, "size": 2, "kinds": "3"}\n',
        b'{"label": 1, "size": "3"}\n{"label": 0, "size": true}\n{"label": 0, "kinds": [3]}\nnull\n[]\n{\n',
        BOM + b'{"label": 1, "size": 1, "colour": ""}\n{"label": 0, "colour": " "}\n',
        b'{"label": 1, "colour": "caf\xe9"}\n{"label": 0, "size": -0.0}\n{"label": 0, "size": 1\0}\n',
        b'{"label": 7}\n{"label": "a"}\n{"size": 1}\n{"label": 1, "size": 1e-320, "kinds": 1e-320}\n',
        b'{"label": 1, "size": 16777217, "kinds": -0}\n{"label": 0, "size": 1}, {"label": 0}\n',
    ],
    "csv": [
        b"label,size,day,colour,kinds\n1,0.5,2024-03-01,red,3\n0,2,2024-03-02,blue,4",
        b'colour,label,new,size\r\n"red, dark",1,x,1e39\r\n"say ""hi""",0,y,7\r\n',
        BOM + b'label,"size",colour\n\n1,,\n\n0,3,"open\n1,nan,red\n1,abc,red\n1,1\n1,1,a,b\n9,1,red\n',
        b"label,size,colour\n1,3,caf\xe9\n0,4,a\0b\nlabel,size,colour\n1,00001.50,caf\xc3\xa9\n,1,red\n",
        b"label,size,kinds\n1,16777217,3.0\n0,0." + b"1" * 900 + b",18446744073709551617\n1,-0,1e0\n",
    ],
    "tsv": [b'label\tsize\tcolour\n1\t0.5\t"red"\n0\t\tblue\tx\n', b"label\tsize\tcolour\r\n1\t3\ta b"],
    "vw": [
        b"1 'tag|a size:0.5 red\n-1 |a blue |b size:2 size:3",
        BOM + b"1 2.5 |a:2 x:3 y\r\n\n  \n-1 |\n1 |a x:nan\n1 |a x:1e39 y:b\n7 |a x\n|a x\n",
        b"1 |a caf\xe9\n-1 |a b\0c\n1 |a 3:4 18446744073709551615:1\n1 |a x:0." + b"1" * 900 + b"\n",
    ],
    "svmlight": [
        b"1 1:0.5 3:1\n-1 2:1 1:1 # comment\n",
        BOM
        + b"1 qid:3 1:1e39\r\n\n# nothing\n0 18446744073709551615:1 1:1 1:2\nx 1:1\n1 1:nan\n3 1:1\n1:3\n",
        b"1 1:0." + b"1" * 900 + b"\n1 1:1\0 2:1\n1 18446744073709551616:1\n1",
    ],
}


def written(form: str) -> bytes:
    if form == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in ROWS).encode() * 3
    if form in ("csv", "tsv"):
        mark = "," if form == "csv" else "\t"
        cells = [list(ROWS[0]), *([str(one) for one in row.values()] for row in ROWS * 3)]
        lines = [mark.join(f'"{one}"' if mark in one else one for one in row) for row in cells]
        return "\n".join(lines).encode() + b"\n"
    return {
        "vw": b"1 |a size:0.5 red\n-1 |a size:2 blue |b x\n" * 3,
        "svmlight": b"1 1:0.5 3:1\n-1 2:1 1:1\n" * 3,
    }[form]


@cache
def model_of(form: str, **options: Any) -> Any:
    """Learned once for all tests, which do not change it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"train.{form}"
        path.write_bytes(written(form))
        return thresher.train(path, format=form, passes=1, **options)


class AsFile(NamedTuple):
    """What a source of a file with the bytes of a body reads."""

    chunk: Chunk
    gaps: list[int]
    places: list[tuple[int, int]]


def as_file(folder: Path, model: Any, form: str, body: bytes, labelled: bool) -> AsFile:
    """What a file reads; lines of JSON come after one that shows the types of all fields."""
    before = written(form).partition(b"\n")[0] + b"\n" if form == "jsonl" else b""
    path = folder / "body"
    path.write_bytes(before + body.removeprefix(BOM) if before else body)
    domain = model.head.domain if labelled else model.head.open_domain
    options: Any = {"on_error": "skip", "unlabelled": not labelled, "domain": domain, "threads": 1}
    layout, first = model.layout.in_format(form), int(bool(before))
    source = open_source(str(path), layout=layout, **options)
    found = list[Parsed]()
    with suppress(DataError):  # no examples
        found.extend(source.rows())
    gaps, examples = list[int](), 0
    for rows in found:
        gaps += [examples + gap - first for gap in rows.gaps]
        examples += len(rows.chunk)
    places = [(one.line - first, one.column) for one in source.report.first_bad]
    chunk = concat([rows.chunk for rows in found])
    return AsFile(chunk.rows(first, len(chunk)), gaps, places)


def assert_same(found: Chunk, expected: Chunk) -> None:
    for name in ("indptr", "keys", "values", "labels", "weights", "targets"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8), name)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("form", BODIES)
def test_a_body_is_read_as_a_file(form: str, labelled: bool, tmp_path: Path) -> None:
    model = model_of(form, **({"categorical": "kinds"} if form in TABLES else {}))
    bodies = Bodies(model, 1000)
    for body in BODIES[form] * 2:  # the second time with parsers that have been used
        expected = as_file(tmp_path, model, form, body, labelled)
        found = bodies.read(body, TYPES[form], labelled=labelled)
        assert_same(found.chunk, expected.chunk)
        assert [*found.gaps] == expected.gaps
        assert [(one.line, one.column) for one in found.bad[:10]] == expected.places
        assert len(found.bad) == len(found.gaps)
        assert found.ids is None


SETTINGS: dict[str, dict[str, Any]] = {
    "few-bits": {"bits": 2},
    "gaps": {"centre": True},
    "interactions": {"interact": "colour,day"},
    "text": {"text": "colour", "ngrams": "words=2"},
    "bins": {"bins": "size"},
}


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("name", SETTINGS)
def test_whatever_columns_become(name: str, form: str, tmp_path: Path) -> None:
    model = model_of(form, **SETTINGS[name])
    bodies = Bodies(model, 1000)
    for body in BODIES[form]:
        expected = as_file(tmp_path, model, form, body, labelled=False)
        found = bodies.read(body, TYPES[form], labelled=False)
        assert_same(found.chunk, expected.chunk)
        assert [*found.gaps] == expected.gaps


def has_features(bodies: Bodies, line: bytes) -> bool:
    try:
        rows = bodies.read(line, TYPES["jsonl"], labelled=False)
    except REFUSED:
        return False
    return bool(rows.bad) or bool(rows.chunk.values.any())


def test_wrong_late_labels_are_answered_with_one_that_fits() -> None:
    for outputs, words, example in ((None, ["no", "yes"], '"no"'), ("classes", ["7", "9"], "7")):
        model = thresher.train(([{"a": 1.0}, {"b": 1.0}], words), outputs=outputs, passes=1)
        bodies = Bodies(model, 1000)
        with pytest.raises(REFUSED, match=rf'expected lines such as {{"id": "a", "label": {example}}}'):
            bodies.read_labels(b'{"id": "r3", "label": [1]}')
        assert bodies.read_labels(f'{{"id": "a", "label": {example}}}'.encode()).good == 1


def test_rows_without_a_column_of_the_model_are_refused() -> None:
    model = model_of("jsonl")
    bodies, known = Bodies(model, 1000), ", ".join(model.layout.features)
    for body in (b'{"instances": [{"size": 1}]}', b'{"other": 1}\n{"another": 2}'):
        with pytest.raises(REFUSED, match=rf"no column of the body .* is one of the model's \({known}\)$"):
            bodies.read(body, TYPES["jsonl"], labelled=False)
    assert bodies.read_together([b'{"size": 1}', b'{"other": 1}'], TYPES["jsonl"]) is None
    for body in (b'{"label": 1}', b'{"label": 1, "Size": 3}'):
        with pytest.raises(REFUSED, match=r"no column of the body \(label.* is one of the model's"):
            bodies.read(body, TYPES["jsonl"], labelled=True)
        assert bodies.read_together([body, b'{"label": 1, "size": 1}'], TYPES["jsonl"], labelled=True) is None
    for body in (b"{}", b'{"size": 0, "other": 1}', b'{"size": null, "other": 1}'):
        assert bodies.read(body, TYPES["jsonl"], labelled=False).good == 1


def test_a_field_that_is_absent_is_not_null(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("label,log_years,x\n" + "1,0.5,2\n0,0.2,1\n" * 20)
    bodies = Bodies(thresher.train(data, offset="log_years", loss="poisson"), 1000)
    for body, found in (
        (b'{"x": 2, "LogYears": 1}', "no such field: did you mean 'LogYears'?"),
        (b'{"x": 2}', "no such field"),
        (b'{"x": 2, "log_years": null}', "null"),
    ):
        (bad,) = bodies.read(body, TYPES["jsonl"], labelled=False).bad
        assert bad.error == f"expected an offset in column 'log_years', found {found}"


def test_a_body_of_a_table_that_begins_like_json_is_json() -> None:
    bodies = Bodies(model_of("csv"), 1000)
    body = b'{"size": 0.5, "colour": "red"}'
    found = bodies.read(body, "application/x-www-form-urlencoded", labelled=False)
    assert_same(found.chunk, bodies.read(body, TYPES["jsonl"], labelled=False).chunk)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("form", BODIES)
def test_bodies_read_together_are_read_as_alone(form: str, labelled: bool) -> None:
    bodies = Bodies(model_of(form), 1000)
    single: dict[bytes, list[bytes]] = {}
    for body in BODIES[form]:
        lines = body.removeprefix(BOM).replace(b"\r", b"").split(b"\n")
        header = lines.pop(0) if form in ("csv", "tsv") else b""
        odd = (b"", b"# nothing", header)
        rows = [line for line in lines if line.strip() and b"\0" not in line and line not in odd]
        if form == "jsonl":  # what is no object may be the beginning of several lines
            rows = [line for line in rows if line[:1] + line[-1:] == b"{}"]
            rows = [line for line in rows if has_features(bodies, line)]
        if labelled:  # rows that are too large to learn are read alone
            rows = [line for line in rows if b"18446744073709551617" not in line]
        begin = header + b"\n" * bool(header)
        single.setdefault(header, []).extend(begin + row + b"\n" * (k % 2) for k, row in enumerate(rows))
    for given in single.values():
        found = bodies.read_together(given, TYPES[form], labelled=labelled)
        assert found is not None
        alone = [bodies.read(one, TYPES[form], labelled=labelled) for one in given]
        whole = found[0].whole
        assert_same(whole, concat([one.chunk for one in alone]))
        for one, other in zip(found, alone, strict=True):
            assert_same(one.chunk, other.chunk)
            assert [*one.gaps] == [*other.gaps]
            assert (one.bad, one.ids) == (other.bad, other.ids)


def test_what_must_be_read_alone() -> None:
    table, lines = Bodies(model_of("csv"), 10), Bodies(model_of("vw"), 10)
    one = b"size,colour\n1,red\n"
    assert table.read_together([one, one], "text/csv") is not None
    assert table.read_together([one, b"colour,size\nred,1\n"], "text/csv") is None
    assert table.read_together([one, b"size,colour\n1,re\0d\n"], "text/csv") is None
    assert table.read_together([one, b""], "text/csv") is None
    assert table.read_together([one], "image/png") is None
    assert lines.read_together([b"|a x", b"|a x\n\n|a y"], "text/x-vw") is None


def test_json_that_is_not_one_object_a_line() -> None:
    bodies = Bodies(model_of("jsonl"), 10)
    found = bodies.read(
        b'\n{ "size": 2}\r\n[{"size": 1}]\n', "application/json; charset=utf-8", labelled=False
    )
    assert (found.chunk.values == 2).any()
    assert [one.line for one in found.bad] == [3]
    for wrong, message in {
        b'[{"size": 1}, {"size": 2}]': "an object on each line: jq -c '.[]' makes lines of a list",
        b' [\n  {"size": 1}\n]': "an object on each line",
        b'{\n"size": 2\n}': "an object on each line",
        b"[" * 100_000: "an object on each line",
        b"": "the body is empty",
        b"\n \r\n": "the body is empty",
    }.items():
        with pytest.raises(REFUSED, match=re.escape(message)) as caught:
            bodies.read(wrong, "application/json", labelled=False)
        assert refusal(caught.value).status == 400
        assert "\n" not in caught.value.args[0]


def test_an_arrow_stream(tmp_path: Path) -> None:
    model = model_of("jsonl")
    table = pa.Table.from_pylist([*ROWS, {"size": None}]).append_column("new", pa.array([1, 2, 3, 4]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=2)
    body, bodies = sink.getvalue().to_pybytes(), Bodies(model, 10)
    for labelled in (False, True):
        expected = as_file(tmp_path, model, "arrow", body, labelled)
        found = bodies.read(body, TYPES["arrow"], labelled=labelled)
        assert_same(found.chunk, expected.chunk)
        assert [*found.gaps] == expected.gaps == [3] * labelled
        assert found.unknown == ("new",)
    assert bodies.read(body, TYPES["arrow"], labelled=False, ids="new").ids == ["1", "2", "3", "4"]
    assert b"new" in body
    for wrong in (body[:-8], body + b"x", body[:100], b"ARROW1", b"", body.replace(b"new", b"n\xffw")):
        with pytest.raises(REFUSED, match=r"the body.*") as caught:
            bodies.read(wrong, TYPES["arrow"], labelled=False)
        assert refusal(caught.value).status == 400
    with pytest.raises(REFUSED, match="more than 3 rows"):
        Bodies(model, 3).read(body, TYPES["arrow"], labelled=False)


def test_ids() -> None:
    json_rows = b'{"id": 7.10, "size": 1}\n{"size": "x", "id": "a"}\n{"size": 2}\n'
    read = Bodies(model_of("jsonl"), 10).read
    found = read(json_rows, "", labelled=False, ids="id")
    assert found.ids == ["7.10", "a", ""]
    assert [(one.line, "an id" in one.error) for one in found.bad] == [(2, False), (3, True)]
    for body in (json_rows, json_rows[:24]):
        with pytest.raises(REFUSED, match=r"no column is called 'iid'; did you mean 'id'\?"):
            read(body, "", labelled=False, ids="iid")
    assert read(b'{"size": 2, "id": null}', "", labelled=False, ids="id").ids == [""]
    assert len(read(b'{"size": 2,}', "", labelled=False, ids="iid").bad) == 1
    read = Bodies(model_of("csv"), 10).read
    assert read(b"size,id\n1,a\nx,b\n", "", labelled=False, ids="id").ids == ["a", "b"]
    with pytest.raises(REFUSED, match="no column is called 'id'"):
        read(b"size\n1\n", "", labelled=False, ids="id")
    read = Bodies(model_of("vw"), 10).read
    assert read(b"'a|a x\n|a y\n", "", labelled=False, ids="tag").ids == ["a", ""]
    with pytest.raises(REFUSED, match="what identifies a row is its tag"):
        read(b"'a|a x\n", "", labelled=False, ids="id")


@pytest.mark.parametrize(
    ("head", "what"),
    [(b"PAR1", "Parquet"), (b"ARROW1", "Arrow"), (b"\x1f\x8b", "binary"), (b"\xff\xfe", "UTF-16")],
)
def test_what_is_no_text_is_refused_with_the_media_types(head: bytes, what: str) -> None:
    read = Bodies(model_of("csv"), 10).read
    with pytest.raises(REFUSED) as caught:
        read(head + b"\0\1\2\3" * 20, "", labelled=False)
    assert refusal(caught.value).status == 415
    told = f"the body is not UTF-8 text ({what}"
    assert caught.value.args[0].startswith(told)
    assert "; send application/json, " in caught.value.args[0]
    assert "--" not in caught.value.args[0]


@pytest.mark.parametrize("between", ["", " "])
def test_objects_whose_line_ends_are_gone(between: str) -> None:
    read = Bodies(model_of("jsonl"), 10).read
    body = between.join(['{"size": 1, "city": "Köln"}'] * 3).encode()
    (bad,) = read(body, "", labelled=False).bad
    assert bad.column == 28 + len(between)
    assert bad.error.startswith('expected the end of the line after its object, found \'{"size": 1')
    assert bad.error.endswith("; curl -d removes line ends: use --data-binary")
    (bad,) = read(b'{"size": 1,}', "", labelled=False).bad
    assert "curl" not in bad.error


LONG = "a" * 1000


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        *(('"\\ud800"', "\\ud800"), ('["a"]', '["a"]'), ('{"a": {}}', '{"a": {}}'), ("NaN", "NaN")),
        *(("-Infinity", "-Infinity"), ("null", ""), ('""', "")),
        (f'"{LONG}a"', f"{LONG}a"),
    ],
)
def test_what_is_no_id_makes_its_row_bad(given: str, shown: str) -> None:
    bodies = Bodies(model_of("jsonl"), 20)
    texts = ["[1]", "{a", "NaN", "inf", "null", "nullable", "\U0001f600", LONG]
    good = [*map(json.dumps, texts), "7.10", "true"]
    rows = [f'{{"size": {k}, "id": {one}}}' for k, one in enumerate([*good[:4], given, *good[4:]])]
    rows.insert(2, '{"size": "no", "id": "\\udfff"}')
    found = bodies.read("\n".join(rows).encode(), "", labelled=False, ids="id")
    assert found.ids == [*texts[:2], "\\udfff", *texts[2:4], shown, *texts[4:], "7.10", "true"]
    assert found.good_ids == [*texts, "7.10", "true"]
    assert (found.good, len(found.chunk), found.gaps) == (10, 10, [2, 4])
    assert [one.line for one in found.bad] == [3, 6]
    assert found.bad[1].error.startswith("expected an id: a text of 1 to 1,000 letters in valid Unicode")


@pytest.mark.parametrize("ids", [[[1]], [{"a": 1}], [float("nan")], [None]])
def test_what_is_no_id_in_an_arrow_stream(ids: list[Any]) -> None:
    bodies, sink = Bodies(model_of("jsonl"), 10), pa.BufferOutputStream()
    table = pa.table({"size": [1.0], "id": pa.array(ids), "name": ["[1]"]})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    body = sink.getvalue().to_pybytes()
    assert [one.line for one in bodies.read(body, TYPES["arrow"], labelled=False, ids="id").bad] == [1]
    assert not bodies.read(body, TYPES["arrow"], labelled=False, ids="name").bad


def test_what_a_model_cannot_read() -> None:
    for form in BODIES:
        bodies = Bodies(model_of(form), 10)
        assert TYPES[form] in bodies.media
        for media, other in MEDIA.items():
            if media not in bodies.media:
                with pytest.raises(REFUSED, match=f"; send .*{TYPES[form]}") as caught:
                    bodies.read(BODIES.get(other, [b"x"])[0], media, labelled=False)
                assert refusal(caught.value).status == 415
    table = Bodies(model_of("csv"), 10)
    assert table.media == [media for media, form in MEDIA.items() if form in TABLES]
    with pytest.raises(REFUSED, match="whose features are columns; the features of svmlight are ids"):
        table.read(b"1 1:1", "text/x-svmlight", labelled=False)
    with pytest.raises(REFUSED, match="rows cannot be read from image/png") as caught:
        table.read(b"x", "image/PNG", labelled=False)
    assert refusal(caught.value).status == 415


def test_too_many_rows() -> None:
    for form, row in (("csv", b"1,red\n"), ("jsonl", b'{"size": 1}\n'), ("svmlight", b"1 1:1\n")):
        bodies, header = Bodies(model_of(form), 3), b"size,colour\n" if form == "csv" else b""
        assert len(bodies.read(header + 3 * row, TYPES[form], labelled=False).chunk) == 3
        with pytest.raises(REFUSED, match="more than 3 rows") as caught:
            bodies.read(header + 4 * row, TYPES[form], labelled=False)
        assert refusal(caught.value).status == 413


def test_too_many_columns_are_refused_before_they_are_read() -> None:
    bodies = Bodies(model_of("jsonl"), 100_000)
    few, many = ({"size": 1} | {f"new {k}": 1 for k in range(count)} for count in (9_990, 10_010))
    told = "the body has more than 10,000 columns that the model does not know: leave them out"

    def stream(row: dict[str, int]) -> bytes:
        table, sink = pa.Table.from_pylist([row]), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table)
        whole: bytes = sink.getvalue().to_pybytes()
        return whole

    for row, refused in ((few, False), (many, True)):
        for media, body in (
            ("text/csv", "\n".join([",".join(row), ",".join("1" * len(row))]).encode()),
            ("application/vnd.apache.arrow.stream", stream(row)),
        ):
            if refused:
                with pytest.raises(REFUSED, match=told) as error:
                    bodies.read(body, media, labelled=False)
                assert refusal(error.value).status == 413
            else:
                assert bodies.read(body, media, labelled=False).good == 1
    lines = "\n".join(json.dumps({"size": 1, name: one}) for name, one in many.items() if name != "size")
    assert bodies.read(lines.encode(), "application/json", labelled=False).good == 10_010


@pytest.mark.parametrize("form", ["jsonl", "csv", "vw"])
def test_rows_that_weigh_too_much_are_bad(form: str) -> None:
    given: Any = {} if form == "vw" else {"weight": "kinds", "categorical": "colour"}
    model = model_of(form, **given)
    body = {
        "jsonl": b'{"label": 1, "size": 1, "kinds": 1e15}\n{"label": 1, "size": 2, "kinds": 2e15}\n'
        b'{"label": 7, "size": 3}\n{"label": 0, "size": 4, "kinds": 3e38}\n{"label": 0, "size": 5}\n',
        "csv": b"label,size,kinds\n1,1,1e15\n1,2,2e15\n7,3,1\n0,4,3e38\n0,5,1\n",
        "vw": b"1 1e15 |a size:1\n1 2e15 |a size:2\n7 |a size:3\n-1 3e38 |a size:4\n-1 |a size:5\n",
    }[form]
    bodies, first = Bodies(model, 100), int(form == "csv")
    assert bodies.read_together([body, body], TYPES[form], labelled=True) is None
    found = bodies.read(body, TYPES[form], labelled=True)
    last = form == "jsonl"  # its importance is missing
    assert found.chunk.values.tolist() == [1.0] if last else [1.0, 5.0]
    assert [one.line - first for one in found.bad] == [2, 3, 4] + [5] * last
    assert [*found.gaps] == [1, 1, 1] + [1] * last
    light = "expected an importance that is at most 1e+15 (times the label, if that is above 1)"
    assert found.bad[0].error == found.bad[2].error == light
    assert bodies.read(body, TYPES[form], labelled=False).good == 5


def test_rows_with_an_offset_that_no_model_survives_are_bad(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("y,x,o\n" + "1,1,0.5\n0,2,0\n3,3,1\n" * 9)
    model: Any = thresher.train(str(tmp_path / "rows.csv"), loss="poisson", label="y", offset="o", passes=1)
    bodies, body = Bodies(model, 100), b"y,x,o\n1,1,0.5\n1,1,50\n1,1,-50\n1,1,1000\n"
    for labelled in (True, False):
        assert bodies.read_together([body, body], "text/csv", labelled=labelled) is None
        found = bodies.read(body, "text/csv", labelled=labelled)
        assert [one.line for one in found.bad] == [3, 5]
        assert [*found.gaps] == [1, 2]
        limits = "expected an offset from -1e+15 to 34.53, the limits of this loss"
        assert {one.error for one in found.bad} == {f"{limits} (of an exposure, give the logarithm)"}
        assert len(found.chunk) == 2


@pytest.mark.parametrize("form", ["jsonl", "csv", "vw", "svmlight"])
def test_rows_to_learn_with_values_whose_squares_overflow_are_bad(tmp_path: Path, form: str) -> None:
    given = {"vw": "1 |a x:1\n-1 |a x:2\n", "svmlight": "1 7:1\n-1 7:2\n"}
    path = tmp_path / f"rows.{form if form in given else 'csv'}"
    path.write_text("label,x\n" * (form not in given) + given.get(form, "1,1\n0,2\n") * 9)
    model: Any = thresher.train(str(path), passes=1)
    lines = {
        "jsonl": '{{"label": 1, "x": {}}}\n',
        "csv": "1,{}\n",
        "vw": "1 'id|a x:{}\n",
        "svmlight": "1 7:{}\n",
    }[form]
    values, header = ("1", "-2.4e18", "2.3e18", "1e30"), "label,x\n" if form == "csv" else ""
    body = (header + "".join(map(lines.format, values))).encode()
    bodies, name = Bodies(model, 100), {"vw": "feature ", "svmlight": "feature 7"}.get(form, "column x")
    assert bodies.read_together([body, body], TYPES[form], labelled=True) is None
    ids = {"jsonl": "label", "csv": "label", "vw": "tag", "svmlight": ""}[form]
    for labelled, column in ((True, ""), *([(False, ids)] if ids else [])):
        found = bodies.read(body, TYPES[form], labelled=labelled, ids=column)
        assert [one.line - bool(header) for one in found.bad] == [2, 4]
        limit = "expected a value below 2^61 (2.3e+18) in magnitude"
        assert found.bad[0].error.startswith(f"{limit}, found -2.4e+18 in {name}")
        assert found.bad[1].error.startswith(f"{limit}, found 1e+30 in {name}")
        assert len(found.chunk) == 2
    assert bodies.read(body, TYPES[form], labelled=False).good == 4


def test_models_of_data_in_memory() -> None:
    y = [1, 0, 1, 0]
    matrix: Any = thresher.train((np.eye(4), y))
    found = Bodies(matrix, 10).read(b"1 1:2 3:4\n2:1\n", "", labelled=False)
    assert found.chunk.keys.tolist() == [1, 3, 2]
    assert Bodies(matrix, 10).read(b"1 1:2 3:4\n2:1\n", "", labelled=True).bad[0].line == 2
    with pytest.raises(REFUSED, match="the features of VW text are names") as caught:
        Bodies(matrix, 10).read(b"1 |a x y", "text/x-vw", labelled=False)
    assert refusal(caught.value).status == 400
    assert Bodies(matrix, 10).read(b"| 1:2", "text/x-vw", labelled=False).chunk.keys.tolist() == [1]
    named: Any = thresher.train(([{"a": 1}, {"b": 2}, {"a": 1}, {"b": 2}], y))
    with pytest.raises(REFUSED) as caught:
        Bodies(named, 10).read(b"1 1:2", "text/x-svmlight", labelled=False)
    assert refusal(caught.value).status == 415
    with pytest.raises(
        REFUSED, match=r"not on JSON lines: let a new model learn a table, .*; send text/x-vw"
    ):
        Bodies(named, 10).read(b'{"a": 1}', "application/json", labelled=False)
    found = Bodies(named, 10).read(b"| a:1\n| b:2\n", "text/x-vw", labelled=False)
    np.testing.assert_array_equal(named.margins(found.chunk), named.predict([{"a": 1}, {"b": 2}], "margin"))
    table: Any = thresher.train((pa.table({"size": [1, 2, 3, 4]}), y))
    assert len(Bodies(table, 10).read(b'{"size": 3}', "", labelled=False).chunk) == 1
    assert Bodies(table, 10).read(b'{"size": 3, "label": 1}', "", labelled=True).chunk.labels == [1]
    table.layout = replace(table.layout, kinds=("numeric", "ignore"))
    with pytest.raises(REFUSED, match="the labels of the training data were not in a column"):
        Bodies(table, 10).read(b'{"size": 3, "label": 1}', "", labelled=True)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_label_may_be_a_number_that_is_written_as_text(form: str) -> None:
    bodies = Bodies(model_of(form), 100)
    given = [b'"0"', b"1", b'"1"', b"0.0", b'"1.0"', b"true", b'"false"', b'" 1"']
    body = b"".join(b'{"label": %b, "size": 1}\n' % one for one in [*given, b'"x"', b'""', b"[1]"])
    found = bodies.read(body, TYPES["jsonl"], labelled=True)
    assert found.chunk.labels.tolist() == [0, 1, 1, 0, 1, 1, 0, 1]
    assert [one.line for one in found.bad] == [9, 10, 11]
    assert "expected a finite number as label in column 'label', found 'x'" in found.bad[0].error


def test_threads() -> None:
    bodies = Bodies(model_of("jsonl"), 1000)
    given = [
        b'{"size": %d, "colour": "c%d", "day": "2024-03-%02d"}' % (k, k % 7, k % 28 + 1) for k in range(200)
    ]
    expected = concat([bodies.read(one, "", labelled=False).chunk for one in given])
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda one: bodies.read(one, "", labelled=False).chunk, given)
        assert_same(concat([*found]), expected)


@pytest.mark.parametrize("form", ["jsonl", "csv", "vw", "svmlight"])
def test_names_of_features(form: str) -> None:
    interact = {"svmlight": "*,*", "vw": "a,a"}.get(form, "colour,day")
    bodies = Bodies(model_of(form, interact=interact), 10)
    body = {
        "jsonl": b'{"size": 2, "colour": "red", "day": "2024-03-01"}',
        "csv": b"colour,day,size\nred,2024-03-01,2\n",
        "vw": b"|a size:2 red",
        "svmlight": b"1 1:2 3:1",
    }[form]
    keys = bodies.read(body, TYPES[form], labelled=False).chunk.keys
    names = {*bodies.names(body, TYPES[form], keys[::-1]).values()}
    table = {"size", "colour=red", "day=2024-03-01", "colour=red × day=2024-03-01"}
    expected = {"vw": {"a=size", "a=red"}, "svmlight": {"1 × 3"}}.get(form, table)
    assert expected <= names
