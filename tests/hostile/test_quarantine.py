"""The quarantine file has the rejected lines byte for byte, in order, each with a newline at its end."""

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.covering import covering
from tests.hostile.conftest import Tried
from thresher.data import open_source
from thresher.data.files.blocks import BlockReader
from thresher.data.layout import Layout
from thresher.data.sources import parsed as reading

ROWS = 300


class Case(NamedTuple):
    head: bytes
    good: bytes
    bad: Sequence[bytes]
    layout: Layout


_CELLS = [b"x,2", b"1,z", b"1,\xff\xfe", b"1", b"1,2,3", b'1,"x"y', b"2,\x7f\x01", b"1," + b"9" * 5000]
_QUOTED = [b'1,"3', b'x,"\r"', b'1,"z""', b'1,"\xff']
CASES = {
    "d.svm": Case(
        b"",
        b"1 1:1",
        [
            *(b"oops", b"1 a:\xff\xfe", b"1 1:1 x", b"2x", b"1 1:nan", b"\xf0\x9f\x98\x80 1:1"),
            b"1 1:1e99 " * 900,
        ],
        Layout(),
    ),
    "d.vw": Case(
        b"",
        b"1 |a x:2",
        [b"\xff |a y", b"x |a y", b"1 1 1 1 |a \xff", b"1 |a b:1e99", b"1 -1 |a x", b"nan |a x"],
        Layout(),
    ),
    "d.csv": Case(b"a,b\n", b"1,2", _CELLS, Layout("csv", label="a", numeric=("b",))),
    "quoted.csv": Case(
        b"a,b\n",
        b'1,"2"',
        [*_CELLS, *_QUOTED],
        Layout("csv", label="a", numeric=("b",)),
    ),
    "d.tsv": Case(
        b"a\tb\n", b"1\t2", [cell.replace(b",", b"\t") for cell in _CELLS], Layout(label="a", numeric=("b",))
    ),
    "d.jsonl": Case(
        b"",
        b'{"label":1,"x":2}',
        [b"{", b"\xff", b'{"label":1,"x":"a"}', b'{"label":"\xff","x":1}', b'{"label":1,"x":2} 1', b"[]"],
        Layout(),
    ),
}


def mixed(case: Case, end: bytes, seed: int) -> tuple[bytes, bytes]:
    """A file of good and bad lines, half of them with CRLF and the last with `end`; and the bad lines."""
    chance = random.Random(seed)
    kinds = [(case.good, False), *((line, True) for line in case.bad)]
    lines = [(case.good, False), *chance.choices(kinds, k=ROWS), (case.bad[0], True)]
    text, rejected = case.head, b""
    for k, (line, bad) in enumerate(lines):
        last = k == len(lines) - 1
        line += b"\r" if chance.random() < 0.5 and not last else b""
        text += line + (end if last else b"\n")
        rejected += line + end.removesuffix(b"\n") * last + b"\n" if bad else b""
    return text, rejected


@pytest.mark.parametrize(("name", "end"), covering([*CASES], [b"", b"\n", b"\r", b"\r\n"]))
def test_rejected_lines_byte_for_byte(folder: Path, name: str, end: bytes, tried: Tried) -> None:
    text, rejected = mixed(CASES[name], end, 1)
    Path(name).write_bytes(text)
    others = Path(f"other-{name}")
    others.write_bytes(text)
    for threads in (1, 4):
        for block in (200, 1 << 20):
            source = open_source(
                [name, others],
                on_error="quarantine=left",
                threads=threads,
                block_bytes=block,
                layout=CASES[name].layout,
            )
            rows = sum(len(chunk) for chunk in source.chunks())
            assert Path("left").read_bytes() == rejected * 2, (threads, block)
            assert rows + source.report.skipped == source.report.lines - source.report.blank
            tried(2 * rejected.count(b"\n"))


def test_bad_lines_that_are_too_long(folder: Path, tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not their file ends with a newline, they do not run into the next line."""
    monkeypatch.setattr(reading, "BlockReader", partial(BlockReader, longest=6 << 20))  # instead of 64 MB
    for end in (b"", b"\n"):
        for size in (7 << 20, 6 << 20):
            long = b"1 " + b"1:1 " * (size // 4) + b"x"
            Path("a.svm").write_bytes(b"1 1:1\n" + long[-size:] + end)
            Path("b.svm").write_bytes(b"bad\n1 1:1\n")
            source = open_source(["a.svm", "b.svm"], on_error="quarantine=left", threads=2)
            assert sum(len(chunk) for chunk in source.chunks()) == 2
            assert Path("left").read_bytes() == long[-size:] + b"\nbad\n"
            tried(1)
