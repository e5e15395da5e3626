"""A log of rows: what was written whole is read again; damage is an error, or the rows before it."""

import errno
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.logs import NOON, LogEntry, packed, write_log
from tests.streams import case
from thresher.data.chunk import Chunk, concat
from thresher.data.errors import DataError, reason_of
from thresher.data.layout import SettledLayout
from thresher.data.log import segments
from thresher.data.log.origin import LogOrigin
from thresher.data.log.records import (
    GONE,
    KEPT,
    ROWS,
    PackedEntry,
    RecordHead,
    seal,
)
from thresher.data.log.segments import LogError, LogPosition, LogRun, header_bytes, records_from, segment_name
from thresher.data.log.source import LogSource, contents_of
from thresher.data.log.writer import LogFailedError, LogFullError, LogWriter
from thresher.data.stored import said

ORIGIN = LogOrigin(None, "binary", "0")


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


def test_what_another_model_differs_in_is_told_in_brief() -> None:
    words = [f"w{k}" for k in range(1000)]
    have, more, other = (
        LogOrigin(SettledLayout(classes=tuple(one)), "classes:max=2000", "")
        for one in (words, [*words, "late"], words[::-1])
    )
    assert have.unlike(have) == ""
    assert have.unlike(more) == "more classes (late)"
    assert have.unlike(other).startswith("other labels (w999, w998, w997,")
    assert more.unlike(have).endswith("and 993 more)")


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
            one, found = seal(packed(entry), at.row, at.offset, at.hash)
            whole += one
            rows = len(entry.chunk) if entry.kind == ROWS else 0
            at = LogPosition(at.offset + len(one), at.row + rows, found)
        run = LogRun.found(whole + b"thR1 and no record", LogPosition(800, 5, 2**64 - 3))
        assert (len(run), run.end) == (4, at)
        for record, entry in zip(run, entries, strict=True):
            chunk, kept = record.rows(), entry.chunk
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
        assert next(iter(run.part(k, 5))).offset == record.offset
        assert run.part(0, k + 1).end == record.end


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


START = LogOrigin(None, "binary", "c0ffee")


def rows(count: int, first: int = 1) -> Chunk:
    return Chunk.of_rows([(1.0, {k: 0.5, k + 1000: float(k)}) for k in range(first, first + count)])


ENTRIES = [
    LogEntry(ROWS, rows(2), {"key": "a"}, NOON),
    LogEntry(KEPT, rows(1, 3), {"ids": ["x"]}, NOON),
    LogEntry(ROWS, rows(1, 4)),
    LogEntry(ROWS, rows(3, 5)),
]
KEYS = np.concatenate([one.chunk.keys for one in ENTRIES if one.kind == ROWS])


def keys_in(folder: Path) -> Any:
    return concat([*LogSource(folder).chunks()]).keys


def check_no_other_rows(folder: Path) -> bool:
    """Read a log; whether that is an error. What comes before are rows of the undamaged log, in order."""
    found, failed = list[Chunk](), False
    try:
        for chunk in LogSource(folder).chunks():
            found.append(chunk)
    except DataError:
        failed = True
    keys = concat(found).keys
    assert np.array_equal(keys, KEYS[: len(keys)])
    assert (contents_of(folder)["damage"] is None) <= (not failed or not len(keys))
    return failed


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
def test_every_changed_byte_is_noticed(tmp_path: Path, segment_bytes: int) -> None:
    """Those of the last write may be taken for a write that was cut short."""
    log = write_log(tmp_path / "log", ENTRIES, segment_bytes=segment_bytes)
    paths = sorted(log.glob("*.log"))
    last = len(packed(ENTRIES[-1]).body) + 72
    for path in paths:
        whole = path.read_bytes()
        for place in range(0, len(whole), 1 + 4 * (segment_bytes == 1)):
            with case(path.name, place):
                path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
                unsynced = path == paths[-1] and place >= len(whole) - last
                assert check_no_other_rows(log) != unsynced
        path.write_bytes(whole)
    assert np.array_equal(keys_in(log), KEYS)


def test_a_file_that_is_taken_away_while_the_log_is_read(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", ENTRIES, segment_bytes=1)
    second = sorted(log.glob("*.log"))[1]
    reading = records_from(log)
    next(reading)
    second.unlink()
    with pytest.raises(LogError, match=f"{second}: No such file or directory"):
        next(reading)


def test_every_truncation(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", ENTRIES, segment_bytes=1)
    paths = sorted(log.glob("*.log"))
    for path in paths:
        whole = path.read_bytes()
        for size in range(len(whole)):
            with case(path.name, size):
                path.write_bytes(whole[:size])
                failed = check_no_other_rows(log)
                assert failed or path == paths[-1]
        path.write_bytes(whole)


def test_a_segment_is_missing_or_of_another_log(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", ENTRIES, segment_bytes=1)
    others = [LogEntry(ROWS, rows(2, 9), {"key": "b"}, NOON), *ENTRIES[1:]]  # of the same lengths
    other = write_log(tmp_path / "other", others, segment_bytes=1)
    paths = sorted(log.glob("*.log"))
    assert [one.name for one in paths] == [one.name for one in sorted(other.glob("*.log"))]
    for path in paths:
        whole = path.read_bytes()
        path.unlink()
        if path == paths[-1]:
            assert np.array_equal(keys_in(log), KEYS[: -len(ENTRIES[-1].chunk.keys)])
        elif path != paths[0]:
            with pytest.raises(LogError, match="missing"):
                keys_in(log)
            with pytest.raises(LogError, match="do not end where"):
                LogWriter(log, START)
        shutil.copy(other / path.name, path)
        with pytest.raises(LogError, match="of another log: it does not follow"):
            keys_in(log)
        path.write_bytes(whole)
    paths[1].rename(log / segment_name(7))
    with pytest.raises(LogError, match="not that of a segment of this name"):
        keys_in(log)


def test_a_log_whose_beginning_was_removed_begins_later(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", ENTRIES, segment_bytes=1)
    min(log.glob("*.log")).unlink()
    assert np.array_equal(keys_in(log), KEYS[len(ENTRIES[0].chunk.keys) :])
    with pytest.raises(LogError, match="begins with row 3; what was before has been removed"):
        [*records_from(log, LogPosition(0, 0, 0))]


@pytest.mark.parametrize("zeros", [1, 8, 4096, 3 << 20])
def test_zeros_at_the_end_are_cut_off(tmp_path: Path, zeros: int) -> None:
    """File systems leave them after a power failure."""
    log = write_log(tmp_path / "log", ENTRIES)
    (path,) = log.glob("*.log")
    with path.open("ab") as file:
        file.write(bytes(zeros))
    assert np.array_equal(keys_in(log), KEYS)
    assert contents_of(log)["unfinished_bytes"] == zeros
    with closing(LogWriter(log, START)) as writer:
        assert writer.cut == zeros
        writer.append([packed(LogEntry(ROWS, rows(1, 8)))])
    assert len(keys_in(log)) == len(KEYS) + 2


def test_reading_goes_on_only_where_it_stopped(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log", ENTRIES)
    ends = [one.end for some in records_from(log) for one in some]
    other = write_log(tmp_path / "other", [*reversed(ENTRIES)])
    for at in ends:
        assert all(one.offset >= at.offset for some in records_from(log, at) for one in some)
        with pytest.raises(LogError, match="not the log that was read before"):
            [*records_from(other, at)]
    with pytest.raises(LogError, match="not the log that was read before, up to row 99"):
        [*records_from(log, LogPosition(10**6, 99, 0))]


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
def test_rows_may_end_before_what_was_read(tmp_path: Path, segment_bytes: int) -> None:
    """A checkpoint has the place after the rows that were learned, and the hash of all that was read."""
    entries = [*ENTRIES, ENTRIES[1], LogEntry(GONE, note={"ids": ["x"]}, time=NOON)]
    log = write_log(tmp_path / "log", entries, segment_bytes=segment_bytes)
    first = LogSource(log)
    first.most_rows = 1  # each record is a chunk
    found = [*first.chunks()]
    for k, chunk in enumerate(found):
        again = LogSource(log)
        again.expect(first.content, whole=True)
        left = concat([*again.chunks(chunk.after)]).keys
        assert np.array_equal(left, concat(found[k + 1 :]).keys)
        for changed in (write_log(tmp_path / f"other {k}", [*reversed(entries)]), tmp_path / f"short {k}"):
            if not changed.exists():
                write_log(changed, ENTRIES, segment_bytes=segment_bytes)
            other = LogSource(changed)
            other.expect(first.content, whole=True)
            with pytest.raises(LogError, match="not the log that was read before, up to row"):
                [*other.chunks(chunk.after)]


def forged(folder: Path, *records: bytes) -> Path:
    folder.mkdir()
    begin = header_bytes(LogPosition(0, 0, 0), said(START))
    (folder / segment_name(0)).write_bytes(begin + b"".join(records))
    return folder


def one(kind: int = ROWS, **changes: Any) -> bytes:
    """A record whose hash is right, and whose content may be anything."""
    entry = packed(LogEntry(kind, rows(2), changes.pop("said", {})))
    body = changes.pop("body", entry.body)
    head = entry.head._replace(**{"size": len(body), **changes})
    return seal(PackedEntry(head, body), 0, 0, 0)[0]


def of_arrays(**changes: Any) -> bytes:
    chunk = rows(2)
    arrays = {name: getattr(chunk, name).copy() for name in ("indptr", "keys", "values", "labels", "weights")}
    return seal(packed(LogEntry(ROWS, Chunk(**arrays | changes))), 0, 0, 0)[0]


HOSTILE: dict[str, bytes] = {
    "value": of_arrays(values=np.array([1, np.nan, 1, 1], np.float32)),
    "label": of_arrays(labels=np.array([1, np.inf], np.float32)),
    "class": of_arrays(labels=np.array([1, 7], np.float32)),
    "weight": of_arrays(weights=np.array([1, -1], np.float32)),
    "unsorted": of_arrays(keys=np.array([5, 4, 1, 2], np.uint64)),
    "repeated": of_arrays(keys=np.array([5, 5, 1, 2], np.uint64)),
    "targets": seal(packed(LogEntry(ROWS, Chunk.from_csr([0, 0], [], [], [[1.0, 2.0]]))), 0, 0, 0)[0],
    "counts": of_arrays(indptr=np.array([0, 2**31, 4])),
    "list": one(said=["a"]),
    "number": one(said={"key": 5}),
    "ids": one(said={"ids": [{}]}),
    "text": one(said={"ids": "x"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_records_with_a_right_hash(name: str, tmp_path: Path) -> None:
    log = forged(tmp_path / "log", HOSTILE[name])
    assert contents_of(log, 1)["damage"] is not None
    if name not in ("list", "number", "ids", "text"):
        with pytest.raises(LogError, match="after row 0: "):
            keys_in(log)


def test_records_with_different_numbers_of_labels(tmp_path: Path) -> None:
    first, second = (LogEntry(ROWS, Chunk.from_csr([0, 0], [], [], [[1.0] * n])) for n in (2, 3))
    log = write_log(tmp_path / "log", [first, second], domain="values")
    with pytest.raises(LogError, match="after row 0: "):
        keys_in(log)


@pytest.mark.parametrize("field", ["rows", "nnz", "note", "targets", "kind"])
def test_absurd_counts(field: str, tmp_path: Path) -> None:
    """They are no head of a record, or do not fit its body; in either case there is nothing to read."""
    most = {"targets": 2**16 - 1, "kind": 255, "nnz": 2**64 - 1}.get(field, 2**32 - 1)
    for number in (most, most // 2, 5):
        log = forged(tmp_path / f"{number}", one(**{field: number}))
        with pytest.raises(DataError, match="no examples"):
            keys_in(log)


def test_deep_json(tmp_path: Path) -> None:
    deep = b'{"ids":' + b"[" * 10**6 + b"]" * 10**6 + b"}"
    body = deep + bytes(-len(deep) % 8)
    head = RecordHead(len(body), len(deep), 0, 0, 0, NOON, 0, 0, GONE, 0, 0, 0, 0)
    entry = PackedEntry(head, body)
    assert "the note of a record" in contents_of(forged(tmp_path / "log", seal(entry, 0, 0, 0)[0]))["damage"]
    folder = tmp_path / "header"
    folder.mkdir()
    nested: Any = []
    for _ in range(800):
        nested = [nested]
    for origin in (nested, {"layout": {"format": 5}, "domain": "", "model": ""}, {"layout": 5}):
        (folder / segment_name(0)).write_bytes(header_bytes(LogPosition(0, 0, 0), origin))
        with pytest.raises(LogError):
            LogSource(folder)
    for begin in ((-1, 0, 0), (0.5, 0, 0), (0, "x", 0), (0, 0, 2**64)):
        (folder / segment_name(0)).write_bytes(header_bytes(LogPosition(*begin), said(START)))
        with pytest.raises(LogError, match="header"):
            LogSource(folder)


def test_keys_beyond_the_bits_of_the_layout(tmp_path: Path) -> None:
    wide = Chunk.of_rows([(1.0, {1 << 18: 1.0})])
    log = write_log(tmp_path / "log", [wide], SettledLayout("vw", hash="vw", bits=18))
    with pytest.raises(LogError, match="a key has more than 18 bits"):
        keys_in(log)


class Disk:
    def __init__(self, patch: pytest.MonkeyPatch, name: str, reason: int, after: int = 0) -> None:
        self.left, self.reason, self.real = after, reason, getattr(os, name)
        patch.setattr(os, name, self)

    def __call__(self, *arguments: Any) -> Any:
        if self.left:
            self.left -= 1
            return self.real(*arguments)
        raise OSError(self.reason, os.strerror(self.reason))


def failing(log: Path, name: str, reason: int, error: type[Exception], segment_bytes: int = 1 << 20) -> Any:
    """A writer whose second write fails."""
    writer = LogWriter(log, START, segment_bytes=segment_bytes)
    writer.append([packed(ENTRIES[0])])
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, name, reason)
        with pytest.raises(error, match=reason_of(OSError(reason, os.strerror(reason)))):
            writer.append([packed(ENTRIES[2])])
    return writer


@pytest.mark.parametrize("name", ["write", "replace"])
@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT])
def test_without_room_a_write_can_be_tried_again(tmp_path: Path, name: str, reason: int) -> None:
    log = tmp_path / "log"
    with closing(failing(log, name, reason, LogFullError, 1 if name == "replace" else 1 << 20)) as writer:
        assert len(keys_in(log)) == len(ENTRIES[0].chunk.keys)
        for entry in ENTRIES[2:]:
            writer.append([packed(entry)])
    assert np.array_equal(keys_in(log), KEYS)


def test_what_was_written_before_there_was_no_room_is_removed(tmp_path: Path) -> None:
    writer, real = LogWriter(tmp_path / "log", START), os.write
    writer.append([packed(ENTRIES[0])])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", lambda file, some: real(file, some[:50]))
        writer.append([packed(ENTRIES[2])])
        Disk(patch, "write", errno.ENOSPC, after=2)
        with pytest.raises(LogFullError):
            writer.append([packed(ENTRIES[3])] * 2)
    writer.append([packed(ENTRIES[3])])
    writer.close()
    assert np.array_equal(keys_in(tmp_path / "log"), KEYS)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("fdatasync", errno.EIO), ("fdatasync", errno.ENOSPC), ("write", errno.EIO), ("replace", errno.EIO)],
)
def test_after_a_failed_sync_nothing_is_written(tmp_path: Path, name: str, reason: int) -> None:
    log, size = tmp_path / "log", 1 if name == "replace" else 1 << 20
    with closing(failing(log, name, reason, LogFailedError, size)) as writer:
        with pytest.raises(LogFailedError, match="an earlier write failed"):
            writer.append([packed(ENTRIES[2])])
        rows_then = writer.end.row
    with closing(LogWriter(log, START)) as writer:
        assert writer.end.row in (rows_then, 3)
    assert not check_no_other_rows(log)


def test_a_write_that_cannot_be_taken_back_is_the_last(tmp_path: Path) -> None:
    with closing(LogWriter(tmp_path / "log", START)) as writer, pytest.MonkeyPatch.context() as patch:
        Disk(patch, "write", errno.ENOSPC)
        Disk(patch, "ftruncate", errno.EIO)
        with pytest.raises(LogFailedError):
            writer.append([packed(ENTRIES[0])])
        with pytest.raises(LogFailedError, match="an earlier write failed"):
            writer.append([packed(ENTRIES[0])])


OTHER = """
import sys, time
from pathlib import Path
from thresher.data.log.writer import LogWriter
from thresher.data.log.origin import LogOrigin
writer = LogWriter(Path(sys.argv[1]), LogOrigin(None, *sys.argv[2:]))
print("here", flush=True)
time.sleep(60)
"""


def test_one_process_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OTHER, str(tmp_path / "log"), START.domain, START.model]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "here\n"
        with pytest.raises(LogError, match="another server writes this log"):
            LogWriter(tmp_path / "log", START)
        process.kill()
    LogWriter(tmp_path / "log", START).close()


def test_a_record_just_being_written_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sees half of it, and then, when it looks for later ones, all of them."""
    log = write_log(tmp_path / "log", ENTRIES)
    (path,) = log.glob("*.log")
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"thR1", whole.index(b"thR1") + 1) + 100])
    real = segments.is_unsynced

    def after_writing(*arguments: Any) -> bool:
        path.write_bytes(whole)
        return real(*arguments)

    monkeypatch.setattr(segments, "is_unsynced", after_writing)
    assert np.array_equal(keys_in(log), KEYS)
