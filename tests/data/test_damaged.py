"""Damaged tables: all rows or one line, no crash; no parser leaves its memory."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.data.guarded import cases, parser
from tests.data.samples import SAMPLES
from tests.forks import forked
from thresher.data import DataError, open_source
from thresher.data.files.blocks import LINES, PAD, Block
from thresher.data.layout import Layout
from thresher.data.sources.reader import Arenas

ROWS = 60


def outcome(path: Path, layout: Layout) -> int | str:
    try:
        source = open_source(path, layout=layout, on_error="skip", threads=1)
        learned = sum(len(chunk) for chunk in source.chunks())
    except DataError as error:
        return str(error)
    return learned + source.report.skipped


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.list_(pa.string()), "indices"]
)
@pytest.mark.parametrize("ending", [".arrow", ".arrows"])
def test_offsets_that_lead_out_of_the_file(tmp_path: Path, kind: Any, ending: str) -> None:
    """Reading with pyarrow does not check such arrays."""
    words = ["a" * 4000, "b", "c"]
    whole = pa.array([[word] for word in words] if kind == pa.list_(pa.string()) else words)
    array = whole.dictionary_encode() if kind == "indices" else whole.cast(kind)
    table = pa.table({"label": [1, 1, 1], "c": array})
    path = tmp_path / f"d{ending}"
    with (pa.ipc.new_file if ending == ".arrow" else pa.ipc.new_stream)(path, table.schema) as file:
        file.write_table(table)
    places = np.int64 if kind == pa.large_string() else np.int32
    right = np.arange(3, dtype=np.int32)
    if kind != "indices":
        right = np.frombuffer(array.buffers()[1], places, 4)
    wrong = right.copy()
    wrong[-1] = 10**9
    data = path.read_bytes()
    assert data.count(right.tobytes()) >= 1
    assert outcome(path, Layout("arrow")) == 3
    path.write_bytes(data.replace(right.tobytes(), wrong.tobytes()))
    assert "damaged or cut off" in str(outcome(path, Layout("arrow")))


def test_what_follows_a_stream_is_not_passed_over(tmp_path: Path) -> None:
    sample = SAMPLES["arrow stream"]
    path = tmp_path / "two.arrows"
    sample.write(sample.good(ROWS, 1), path)
    path.write_bytes(path.read_bytes() * 2)
    assert str(outcome(path, sample.layout)).endswith("unexpected bytes after the end of the stream")


def test_a_stream_cut_off_between_two_batches_is_no_shorter_stream(tmp_path: Path) -> None:
    sample = SAMPLES["arrow stream"]
    path, ends = tmp_path / "d.arrows", list[int]()
    sample.write(sample.good(ROWS, 1), path)
    data = path.read_bytes()
    with pa.ipc.open_stream(file := pa.BufferReader(data)) as reader:
        ends += [file.tell() for _ in reader]
    assert len(ends) == 4
    for end in ends:
        path.write_bytes(data[:end])
        assert "has no end mark" in str(outcome(path, sample.layout))


def test_bad_rows_with_bytes_that_are_no_text(tmp_path: Path) -> None:
    """They are quarantined with these bytes escaped."""
    words = pa.array([b"\xff\xfe", b"b", b"\xc3"]).view(pa.string())
    table = pa.table({"label": pa.array([None, 1, 7]), "c": words})
    path = tmp_path / "d.arrow"
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    source = open_source(path, on_error=f"quarantine={tmp_path / 'bad'}")
    assert [len(chunk) for chunk in source.chunks()] == [1]
    lines = [json.loads(line) for line in (tmp_path / "bad").read_text().splitlines()]
    assert lines == [{"label": None, "c": "\\xff\\xfe"}, {"label": 7, "c": "\\xc3"}]
    assert [one.line for one in source.report.first_bad] == [1, 3]


def guarded(*arguments: str) -> tuple[int, str]:
    """Status and output of the program that parses in guarded memory."""
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    code, place = "from tests.data.guarded import main\nmain()", Path(__file__).parents[2]
    with forked([*arguments], code, cwd=place, env=os.environ, text=True, **pipes) as process:
        output, _ = process.communicate(timeout=600)
    return process.returncode, output


def test_parsers_stay_in_their_memory(tmp_path: Path) -> None:
    for _, sample, layout, domain in cases():  # compiled here, where more is known
        text = np.frombuffer(bytearray(sample.good(1, 0)[0] + b"\n" + b" " * PAD), np.uint8)
        lines = Block(text, len(text) - PAD, LINES, 0, 1, 0, 0)
        parser(sample, layout, tmp_path, Arenas(1), domain).parse(lines)
    status, output = guarded()
    assert status == 0, output
    for name, sample in SAMPLES.items():
        assert name in output or not sample.packed
    assert "batches" in output


def test_a_byte_beyond_ends_the_program() -> None:
    assert guarded("beyond")[0] in (-signal.SIGSEGV, -signal.SIGBUS)
