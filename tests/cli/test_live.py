"""``thresher predict MODEL -``: each row is answered as soon as it has arrived, in every format."""

import bz2
import gc
import gzip
import json
import lzma
import os
import select
import sys
import threading
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.conftest import Thresher
from tests.cli.test_predicting import FORMATS, A, learned_from
from thresher.cli.main import status_of

LONGEST = 60.0
"""Seconds after which a row counts as not answered"""
Talk = Callable[..., list[bytes]]
"""Writes pieces of data to a command, each after the answer to the one before, and returns the answers."""

gc.freeze()


class Conversation:
    """Writes a piece, reads its answer, writes the next; in a thread beside the command."""

    def __init__(
        self, pieces: Sequence[bytes], into: Callable[[], IO[bytes]], answers: int, begin: bytes, end: bytes
    ) -> None:
        self.answers: list[bytes] = []
        self.late: bytes | None = None
        """a piece that was not answered"""
        self._pieces, self._into, self._from = pieces, into, answers
        self._begin, self._end = begin, end
        self._thread = threading.Thread(target=self._talk)
        self._thread.start()

    def _talk(self) -> None:
        with self._into() as into:
            into.write(self._begin)
            into.flush()
            for piece in self._pieces:
                into.write(piece)
                into.flush()
                if not select.select([self._from], [], [], LONGEST)[0]:
                    self.late = piece
                    return
                self.answers.append(os.read(self._from, 1 << 16))
            into.write(self._end)

    def end(self) -> list[bytes]:
        """The answers, after the command has ended."""
        self._thread.join()
        assert self.late is None, f"no answer to {self.late!r}"
        return self.answers


@pytest.fixture
def talk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """Runs ``thresher COMMAND`` with pieces of data for standard input, or for the named pipe ``fifo``."""

    def run(
        command: str,
        pieces: Sequence[bytes],
        status: int = 0,
        begin: bytes = b"",
        end: bytes = b"",
        rest: bytes | None = b"",
    ) -> list[bytes]:
        """What is written at the `begin` and `end` is not answered, except by the `rest`; None: anything."""
        reading, writing = os.pipe()
        answers, out = os.pipe()
        into: Callable[[], IO[bytes]] = lambda: os.fdopen(writing, "wb")  # noqa: E731
        if "fifo" in command:
            os.mkfifo("fifo")
            into = lambda: open("fifo", "wb")  # noqa: E731, SIM115
        with monkeypatch.context() as patch, os.fdopen(reading) as stdin, os.fdopen(out, "w") as stdout:
            patch.setattr(sys, "stdin", stdin)
            patch.setattr(sys, "stdout", stdout)
            told = Conversation(pieces, into, answers, begin, end)
            found = status_of(command.split())
        assert found == status
        got = told.end()
        with os.fdopen(answers, "rb") as file:
            assert file.read() == rest or rest is None
        return got

    return run


def in_rows(text: bytes, header: bool) -> list[bytes]:
    """The rows of a text: each with the blank lines and comments before it, the first with the header."""
    rows, before, left = list[bytes](), b"", header
    for line in text.splitlines(keepends=True):
        before += line
        if line.strip() and not line.startswith(b"#"):
            if not left:
                rows.append(before)
                before = b""
            left = False
    return rows


LINES = [name for name in FORMATS if name not in ("parquet", "arrow")]


@pytest.fixture(params=LINES)
def form(request: pytest.FixtureRequest, plainly: None, thresher: Thresher) -> str:
    return learned_from(request.param, thresher)


def test_each_row_is_answered_before_the_next_is_written(form: str, thresher: Thresher, talk: Talk) -> None:
    text, identity = Path("rows").read_bytes().rstrip(b"\n") + b"\n", FORMATS[form][1]
    rows = in_rows(text, form in ("csv", "tsv"))
    assert len(rows) == len(A)
    more = f"--id {identity}" if identity else ""
    for output, source in (("margin", "-"), ("label", "fifo")):
        options = f"--format {form} --on-error skip --output {output} {more}"
        whole = thresher(f"predict m rows {options}").out.encode().splitlines(keepends=True)
        assert talk(f"predict m {source} {options}", rows) == whole


@pytest.fixture
def table(narrow: None, thresher: Thresher) -> bytes:
    Path("train.csv").write_text("a,b,label\n1,x,1\n2,y,0\n3,x,1\n5,z,0\n")
    assert thresher("train train.csv -m m -q").status == 0
    return predicted(thresher, b"a,b\n1,x\n")


def predicted(thresher: Thresher, text: bytes, options: str = "--format csv") -> bytes:
    Path("file").write_bytes(text)
    return thresher(f"predict m file {options}").out.encode()


@pytest.mark.parametrize(
    ("options", "first", "row"),
    [
        ("", b"a,b\n", b"1,x\n"),
        ("", b"\xef\xbb\xbf\r\n\n\na,b\r\n", b"1,x\r\n"),
        ("", b'\n"b","a"\n', b'"x","1"\n'),
        ("--id c", b'"a","b","c"\n', b"1,x,\n"),
        ("--no-header", b"", b"1,x\n"),
        ("--delimiter ;", b"a;b\n", b"1;x\n"),
    ],
)
def test_headers_of_all_kinds(
    options: str, first: bytes, row: bytes, table: bytes, thresher: Thresher, talk: Talk
) -> None:
    """Written with the first row, before it, or in halves."""
    answer = (b"\t" if "id" in options else b"") + table
    for k in (0, len(first) // 2, len(first)):
        rows = [first[k:] + row, *[row] * 2]
        assert talk(f"predict m - --format csv {options}", rows, begin=first[:k]) == [answer] * 3


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.usefixtures("table")
def test_a_compressed_pipe_is_read_as_far_as_it_goes(packed: Any, thresher: Thresher, talk: Talk) -> None:
    """One member for each row; a gzip writer may also flush what it has."""
    texts = [b"a,b\n1,x\n", b"2,y\n", b"\n3,q\n"]
    whole = predicted(thresher, b"".join(texts)).splitlines(keepends=True)
    members = [packed(text) for text in texts]
    assert talk("predict m - --format csv", members) == whole
    if packed is gzip.compress:
        writer = zlib.compressobj(wbits=31)
        flushed = [writer.compress(text) + writer.flush(zlib.Z_SYNC_FLUSH) for text in texts]
        assert talk("predict m - --format csv", flushed, end=writer.flush()) == whole


@pytest.mark.usefixtures("narrow")
def test_the_first_object_says_little_about_the_others(thresher: Thresher, talk: Talk) -> None:
    """Its fields may be missing, empty or wrong; the others are answered as if each were a file."""
    rows = [
        {"a": k, "b": "xyz"[k % 3], "l": ["u", "v"][: k % 3], "n": k % 2 > 0, "label": k % 2}
        for k in range(9)
    ]
    Path("train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert thresher("train train.jsonl -m m -q").status == 0
    whole = [b'{"a": 1, "b": "x", "l": ["u"], "n": true}\n', b'{"a": 2.5, "b": "y", "l": ["v", "u"]}\n']
    answers = [predicted(thresher, row, "--format jsonl") for row in whole]
    for first in (
        *(b"{}", b'{"a": null, "b": null, "l": [], "n": null}', b"oops"),
        *(b'{"a": true, "b": 27000000, "l": [5], "n": "yes"}', b'{"a": "1", "b": {}, "l": "u"}'),
    ):
        (nothing, *rest) = talk("predict m - --format jsonl --on-error skip", [first + b"\n", *whole])
        assert rest == answers
        assert (nothing == b"nan\n") == (first in (b"oops", b'{"a": "1", "b": {}, "l": "u"}'))


@pytest.mark.usefixtures("table")
def test_rows_before_a_bad_one_are_answered_however_they_came(thresher: Thresher, talk: Talk) -> None:
    rows = [b"1,x\n", b"2,y\n", b"oops,x\n", b"3,z\n"]
    answers = predicted(thresher, b"a,b\n1,x\n2,y\n").splitlines(keepends=True)
    assert talk("predict m - --format csv", rows[:2], status=1, begin=b"a,b\n", end=rows[2]) == answers
    assert predicted(thresher, b"a,b\n" + b"".join(rows)) == b"".join(answers)
    ids = predicted(thresher, b"a,b\n" + b"".join(rows), "--format csv --id b").splitlines()
    assert [line.partition(b"\t")[0] for line in ids] == [b"x", b"y"]


def test_a_row_is_not_answered_before_its_end_has_come(table: bytes, thresher: Thresher, talk: Talk) -> None:
    assert talk("predict m - --format csv", [b"a,b\n1,x\n1,"], end=b"x", rest=table) == [table]


CUT = "this last line has no line end: was it cut off?"
ENDS = [
    ("csv", b"", "standard input: empty, no examples"),
    ("jsonl", gzip.compress(b"", mtime=0), "standard input: empty, no examples"),
    ("csv", b"a,b\n", "standard input: no examples, only a header"),
    ("csv", b"a,b\n1,x\n2", f"-:3:2: expected 2 columns, found 1; {CUT}"),
    ("csv", b"a,b\n1,x\n2\n", "-:3:2: expected 2 columns, found 1"),
    ("jsonl", b'{"a": 1, "b": "x"}\n{"a": 2, "b', CUT),
    ("svmlight", b"1 1:1\n1 2", CUT),
    ("vw", b"| a:1\n| a:", CUT),
    ("csv", gzip.compress(b"a,b\n1,x\n" * 99, mtime=0)[:30], "(damaged or cut off)"),
    ("csv", b"PAR1\x15\n" + bytes(99), "a binary file, not text (Parquet: try --format parquet)"),
    ("csv", "a,b\n1,x\n".encode("utf-16-be"), "iconv -f UTF-16BE -t UTF-8"),
]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("form", "text", "said"), ENDS)
def test_pipes_that_end_early(
    form: str, text: bytes, said: str, thresher: Thresher, talk: Talk, capfd: pytest.CaptureFixture[str]
) -> None:
    if form in ("svmlight", "vw"):
        Path("train").write_bytes(b"1 1:1\n0 2:1\n" if form == "svmlight" else b"1 | a\n-1 | b\n")
        assert thresher(f"train train --format {form} -m m -q").status == 0
    capfd.readouterr()
    answers = talk(f"predict m - --format {form}", [], status=1, begin=text, rest=None)
    err = capfd.readouterr().err
    assert said in err
    assert (CUT in err) == (CUT in said)
    assert answers == []
