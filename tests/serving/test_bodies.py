"""Bodies are read as files with the same bytes are."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import thresher
from thresher.data.chunk import Chunk, concat
from thresher.data.errors import DataError
from thresher.data.formats.listing import TABLES
from thresher.data.opening import open_source
from thresher.data.source import ReadRows
from thresher.serving.bodies import MEDIA, Bodies

BOM = b"\xef\xbb\xbf"
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
    "libffm": [b"1 1:3:0.5 2:7:1\n-1 1:4:1 2:9:0.75 1:3:1\n", b"1 1:3:x\r\n\n1 1:3:1\n5 1:1:1"],
}


def written(form: str) -> bytes:
    """The training data in a format."""
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
        "libffm": b"1 1:3:0.5 2:7:1\n-1 1:4:1 2:9:0.75\n" * 3,
    }[form]


def model_of(folder: Path, form: str, **options: Any) -> Any:
    """A model of the training data in a format."""
    path = folder / f"train.{form}"
    path.write_bytes(written(form))
    return thresher.train(path, format=form, **options)


class AsFile(NamedTuple):
    """What a source of a file with the bytes of a body reads."""

    chunk: Chunk
    gaps: list[int]
    places: list[tuple[int, int]]
    lines: int


def as_file(folder: Path, model: Any, form: str, body: bytes, labelled: bool) -> AsFile:
    """What a file reads; lines of JSON come after one that shows the types of all fields."""
    before = written(form).partition(b"\n")[0] + b"\n" if form == "jsonl" else b""
    path = folder / "body"
    path.write_bytes(before + body.removeprefix(BOM) if before else body)
    domain = model.head.domain if labelled else model.head.open_domain
    options: Any = {"on_error": "skip", "unlabelled": not labelled, "domain": domain, "threads": 1}
    layout, first = model.layout.in_format(form), int(bool(before))
    source = open_source(str(path), layout=layout, **options)
    found = list[ReadRows]()
    with suppress(DataError):  # no examples
        found.extend(source.rows())
    gaps, examples = list[int](), 0
    for rows in found:
        gaps += [examples + gap - first for gap in rows.gaps]
        examples += len(rows.chunk)
    places = [(one.line - first, one.column) for one in source.report.first_bad]
    chunk = concat([rows.chunk for rows in found])
    return AsFile(chunk.rows(first, len(chunk)), gaps, places, source.report.lines - first)


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
    model = model_of(tmp_path, form, **({"categorical": "kinds"} if form in TABLES else {}))
    bodies = Bodies(model, 1000)
    for body in BODIES[form] * 2:  # the second time with parsers that have been used
        expected = as_file(tmp_path, model, form, body, labelled)
        found = bodies.read(body, TYPES[form], labelled=labelled)
        assert_same(found.chunk, expected.chunk)
        assert [*found.gaps] == expected.gaps
        assert [(one.line, one.column) for one in found.bad[:10]] == expected.places
        assert len(found.bad) == len(found.gaps)
        assert found.lines == expected.lines
        assert found.ids is None
