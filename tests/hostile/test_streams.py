"""Pipes that stall, processes that are stopped, files that change while they are read."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import start
from tests.hostile.conftest import Tried
from tests.hostile.trials import here, said, svmlight
from thresher.data import Chunk, DataError, open_source

ROWS = 10_000
BLOCK = 1 << 16


@pytest.fixture
def whole(folder: Path) -> tuple[bytes, bytes]:
    """Data and their model."""
    data = svmlight(folder / "d.svm", 5000)
    assert here("train", data, "-m", "whole", "-q", folder=folder)[0] == 0
    return data.read_bytes(), (folder / "whole").read_bytes()


def test_a_pipe_that_stalls_and_goes_on(folder: Path, whole: tuple[bytes, bytes], tried: Tried) -> None:
    """At the first byte, inside a line, at the end of a line: the model is that of the file."""
    data, model = whole
    os.mkfifo("pipe")
    places = [0, 1, 7, data.index(b"\n") + 1, len(data) // 2, len(data) - 1, len(data)]
    with start("train", "pipe", "-m", "m", "-q", folder=folder) as process:
        with open("pipe", "wb") as pipe:
            for begin, end in zip([0, *places], [*places, len(data)], strict=True):
                pipe.write(data[begin:end])
                pipe.flush()
                time.sleep(0.03)
        _, err = process.communicate(timeout=120)
    assert (process.returncode, said(err)) == (0, "")
    assert Path("m").read_bytes() == model
    tried(len(places))


def test_a_pipe_whose_writer_ends(folder: Path, whole: tuple[bytes, bytes], tried: Tried) -> None:
    """If it ends before the first byte, there is no example; inside a line, that line is bad."""
    os.mkfifo("pipe")
    for text, status in ((b"", 1), (b"1 1:1\n1 2:", 1), (b"1 1:1\n1 2:1", 0)):
        with start("train", "pipe", "-m", "m", "-q", folder=folder) as process:
            with open("pipe", "wb") as pipe:
                pipe.write(text)
            _, err = process.communicate(timeout=120)
        assert process.returncode == status
        assert said(err).count("\n") == status
        tried(1)


def test_a_process_that_is_halted_and_goes_on(folder: Path, whole: tuple[bytes, bytes], tried: Tried) -> None:
    """At any time, while a reader or a writer waits for it."""
    data, model = whole
    with start("train", "-", "-m", "m", "-q", folder=folder, stdin=-1) as process:
        for k in range(10):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
            process.send_signal(signal.SIGCONT)
            process.stdin.write(data[len(data) * k // 10 : len(data) * (k + 1) // 10])
            process.stdin.flush()
            time.sleep(0.04)
            tried(1)
        _, err = process.communicate(timeout=120)
    assert (process.returncode, said(err)) == (0, "")
    assert Path("m").read_bytes() == model


def _lines(line: bytes, head: bytes = b"") -> Callable[[Path], None]:
    return lambda path: (path.write_bytes(head + line * ROWS), None)[1]


def _table() -> pa.Table:
    random = np.random.default_rng(0)
    return pa.table(
        {"label": random.integers(0, 2, ROWS), "x": random.random(ROWS), "y": random.random(ROWS)}
    )


def _ipc(make: Callable[..., Any]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with make(path, _table().schema) as file:
            file.write_table(_table(), ROWS // 10)

    return write


LONG: dict[str, Callable[[Path], None]] = {
    "d.svm": _lines(b"1 1:0.5 2:0.25 3:12345.678\n" * 2),
    "d.vw": _lines(b"1 |a x:0.5 y:12345.678 some more words here\n"),
    "d.csv": _lines(b"1,0.5,0.25,12345.678,0.123456789012\n", b"label,x,y,z,a\n"),
    "d.jsonl": _lines(b'{"label":1,"x":0.5,"y":12345.678}\n'),
    "d.parquet": lambda path: pq.write_table(_table(), path, row_group_size=ROWS // 10),
    "d.arrow": _ipc(pa.ipc.new_file),
    "d.arrows": _ipc(pa.ipc.new_stream),
}


@pytest.mark.parametrize("name", LONG)
def test_a_file_that_is_cut_off_while_it_is_read(folder: Path, name: str, tried: Tried) -> None:
    """Wherever the cut is, even at the end of a line, it is not taken for a shorter file."""
    path = Path(name)
    LONG[name](path)
    whole = sum(len(chunk) for chunk in open_source(path, threads=1).chunks())
    data = path.read_bytes()
    for share in (0, 0.55, 0.9):
        places = [int(len(data) * share), data.find(b"\n", int(len(data) * share)) + 1]
        for place in places if path.suffix in (".svm", ".vw", ".csv", ".jsonl") else places[:1]:
            path.write_bytes(data)
            chunks = open_source(path, threads=1, block_bytes=BLOCK).chunks()
            first = len(next(chunks))
            os.truncate(path, place)
            found = rest(chunks)
            assert path.name in str(found) or found == whole - first
            tried(1)


def rest(chunks: Iterator[Chunk]) -> int | str:
    """How many rows remain, or the error; all of them may have been read ahead."""
    try:
        return sum(len(chunk) for chunk in chunks)
    except DataError as error:
        return str(error)


def test_a_file_that_grows_while_it_is_read(folder: Path) -> None:
    """Whole lines are read, whether or not lines added meanwhile are included."""
    path = svmlight(folder / "d.svm", 20_000)
    source = open_source(path, threads=1, block_bytes=1 << 16)
    chunks = source.chunks()
    rows = len(next(chunks))
    with open(path, "ab") as file:
        file.write(b"1 1:1\n" * 1000)
    rows += sum(len(chunk) for chunk in chunks)
    assert 20_000 <= rows <= 21_000
