"""A log of rows: what is appended is read again, and nothing that was not written whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from thresher.data.chunk import Chunk, concat
from thresher.data.log.records import ROWS, LogEntry, packed
from thresher.data.log.segments import LogError
from thresher.data.log.source import LogOrigin, LogSource
from thresher.data.log.writer import LogWriter

ORIGIN = LogOrigin(None, "binary", "0").as_dict()


def _rows(count: int, seed: int = 0) -> Chunk:
    draw = np.random.default_rng(seed)
    wide = draw.integers(0, 2**63, (count, 3), np.uint64)
    return Chunk.of_rows([(1.0, {int(key): 0.5 for key in row}) for row in wide])


def _written(folder: Path, chunks: list[Chunk], segment_bytes: int = 1 << 20) -> None:
    writer = LogWriter(folder, ORIGIN, segment_bytes=segment_bytes)
    for chunk in chunks:
        writer.append([packed(LogEntry(ROWS, chunk))])
    writer.close()


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
def test_what_is_appended_is_read_again(tmp_path: Path, segment_bytes: int) -> None:
    chunks = [_rows(n, n) for n in (1, 5, 2)]
    _written(tmp_path, chunks, segment_bytes)
    whole, read = concat(chunks), concat([*LogSource(tmp_path).chunks()])
    for name in ("indptr", "keys", "values", "labels", "weights"):
        assert np.array_equal(getattr(whole, name), getattr(read, name))


def test_every_cut_of_the_last_write_is_noticed_and_cut_off(tmp_path: Path) -> None:
    _written(tmp_path, [_rows(2), _rows(1)])
    file = next(tmp_path.glob("*.log"))
    whole = file.read_bytes()
    first = len(whole) - len(packed(LogEntry(ROWS, _rows(1))).body) - 72
    for size in range(first, len(whole)):
        file.write_bytes(whole[:size])
        assert sum(map(len, LogSource(tmp_path).chunks())) == 2
        writer = LogWriter(tmp_path, ORIGIN)
        assert (writer.cut, writer.end.row, file.stat().st_size) == (size - first, 2, first)
        writer.close()


def test_a_changed_byte_of_what_was_synced_is_an_error(tmp_path: Path) -> None:
    _written(tmp_path, [_rows(2), _rows(1)])
    file = next(tmp_path.glob("*.log"))
    whole = bytearray(file.read_bytes())
    place = whole.index(b"thR1") + 100
    whole[place] ^= 1
    file.write_bytes(whole)
    with pytest.raises(LogError, match="damaged at byte"):
        list(LogSource(tmp_path).chunks())


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, ORIGIN)
    with pytest.raises(LogError, match="another server writes this log"):
        LogWriter(tmp_path, ORIGIN)
    writer.close()
    LogWriter(tmp_path, ORIGIN).close()
