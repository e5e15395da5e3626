"""A log of rows: what is appended is read again, and nothing that was not written whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from thresher.data.chunk import Chunk, concat
from thresher.data.log.records import KEPT, ROWS, LogEntry, chunk_of, is_whole, packed, sealed
from thresher.data.log.segments import LogError, LogPosition, LogRun, records_from
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


def _any_rows(draw: np.random.Generator) -> Chunk:
    """Rows of all kinds: none, empty, wide keys, values and importances that are 1, several labels."""
    count, width = int(draw.integers(0, 6)), int(draw.integers(0, 4))
    lengths = draw.integers(0, 5, count)
    top = 2 ** int(draw.choice([8, 32, 64])) - 1
    keys = [np.unique(draw.integers(0, top, n, np.uint64, endpoint=True)) for n in lengths]
    flat = np.concatenate([*keys, np.empty(0, np.uint64)])
    values, weights = draw.normal(size=len(flat)), draw.random(count)
    values = values if draw.random() < 0.5 else np.ones(len(flat))
    weights = weights if draw.random() < 0.5 else np.ones(count)
    labels = draw.normal(size=(count, width) if width and count else count)
    return Chunk.from_csr(np.cumsum([0, *map(len, keys)]), flat, values, labels, weights)


def test_records_hold_any_rows_and_notes() -> None:
    draw = np.random.default_rng(3)
    for _ in range(500):
        entries = [
            LogEntry(
                int(draw.choice([ROWS, KEPT])), _any_rows(draw), {"key": "k" * int(draw.integers(0, 20))}
            )
            for _ in range(4)
        ]
        at, whole = LogPosition(800, 5, 2**64 - 3), b""
        for entry in entries:
            one, found = sealed(packed(entry), at.row, at.offset, at.hash)
            whole += one
            rows = len(entry.chunk) if entry.kind == ROWS else 0
            at = LogPosition(at.offset + len(one), at.row + rows, found)
        run = LogRun.found(whole + b"thR1 and no record", LogPosition(800, 5, 2**64 - 3))
        assert (len(run), run.end) == (4, at)
        for record, entry in zip(run, entries, strict=True):
            chunk, kept = chunk_of(record.buffer, record.at, record.head), entry.chunk
            assert is_whole(record.buffer, record.at, record.head)
            assert (record.head.kind, record.note()) == (entry.kind, entry.note)
            for name in ("indptr", "keys", "values", "labels", "weights", "targets"):
                assert np.array_equal(getattr(chunk, name), getattr(kept, name)), name


def test_runs_of_records_are_cut_where_asked(tmp_path: Path) -> None:
    _written(tmp_path, [_rows(n, n) for n in (1, 5, 2, 1, 1)])
    (run,) = records_from(tmp_path)
    assert [[one.head.rows for one in some] for some in run.pieces(3, 99)] == [[1, 5], [2, 1], [1]]
    assert [[one.head.rows for one in some] for some in run.pieces(99, 6)] == [[1, 5], [2], [1, 1]]
    assert [len(some.rows()) for some in run.pieces(1, 1)] == [1, 5, 2, 1, 1]
    for k, record in enumerate(run):
        assert len(run.before(record.offset)) == k
        assert len(run.before(record.offset + 1)) == k + 1
        assert run[k:].begin == record.begin
        assert run[: k + 1].end == record.end
    assert [*run[-2:]] == [run[-2], run[-1]]
    with pytest.raises(IndexError):
        run[5]


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
