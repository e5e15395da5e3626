"""What clients ask of the log: rows to learn, rows to keep, labels; and the thread that writes it.

It handles requests in order, many with one sync, and answers them after it. A `Draft` holds what those of one
write would change, so that nothing has changed if the write fails.
"""

from __future__ import annotations

import hashlib
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, concat
from thresher.data.formats.tables.jsonl import is_broken
from thresher.data.log.records import (
    GONE,
    KEPT,
    LABELS,
    NOTHING,
    PROMOTED,
    ROWS,
    LogEntry,
    PackedEntry,
    chunk_of,
    packed,
)
from thresher.data.log.segments import LogPosition
from thresher.data.log.writer import LogFailedError, LogFullError, LogWriter
from thresher.serving.errors import RefusedError

A = TypeVar("A")
FIRST = "-"
"""What the log calls the model that the server was started with, which no shadow can be called"""
MOST_LETTERS = 1000
"""Of a key or an id, many of which are in memory"""
AN_ID = f"an id: a text of 1 to {MOST_LETTERS:,} letters in valid Unicode, a number, true or false"
_NO_ID = re.compile(r"[\[{]|null|-?(?:nan|inf)", re.IGNORECASE)
"""How values begin that can be no ids, unless they are texts"""
MICRO = 1_000_000
"""Microseconds in a second"""
_EACH = 300
"""Bytes that a row takes besides its id and its cells, approximately"""
_MOST_AT_ONCE = 4096
_MOST_BYTES = 32 << 20
"""Of one write, approximately"""
_RETRY = 5.0
"""Seconds after which a client may try again whether the disk has room"""


def ticking() -> int:
    """Microseconds by a clock that nobody sets, so that rows are waited for as long as they should be."""
    return time.monotonic_ns() // 1000


def is_id(written: str, is_text: bool) -> bool:
    """Whether what is written so, without the quotes of a text, can be the id of a row."""
    fits = 0 < len(written) <= MOST_LETTERS and not is_broken(written)
    return fits and (is_text or _NO_ID.match(written) is None)


def fingerprint(text: str) -> bytes:
    """What is remembered of a key or an id, however long it is; no other text has the same."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Ack(NamedTuple):
    """Rows are on disk."""

    first: int
    """the number of the first row in the log, from 1"""
    last: int
    repeated: bool = False
    """whether they were acknowledged before, and not learned again"""


class Labelled(NamedTuple):
    """Labels are on disk, with the rows that they belong to."""

    first: int
    last: int
    learned: int
    waiting: int
    """labels of rows that are learned once they have waited"""
    repeated: int
    """labels of rows whose label was known"""
    unknown: Sequence[str]
    """ids of rows that are not kept"""


class KeptRow(NamedTuple):
    """A row whose label is still to come; a copy, since a view would hold all of the body that brought it."""

    cells: bytes
    """its keys, then its values"""
    since: int
    """when it came, by the clock of `ticking`"""
    learned: bool
    """whether it is learned already, as negative"""
    offset: int = 0
    """where the log has it"""
    given: tuple[float, float] | None = None
    """its label and importance, if they have come, and it is learned once it has waited"""

    @classmethod
    def of(cls, chunk: Chunk, k: int, since: int, learned: bool, offset: int = 0) -> KeptRow:
        """Row k of a chunk."""
        lo, hi = chunk.indptr[k : k + 2]
        return cls(chunk.keys[lo:hi].tobytes() + chunk.values[lo:hi].tobytes(), since, learned, offset)

    def labelled(self, label: float, importance: float) -> Chunk:
        """The row with a label and an importance."""
        count = len(self.cells) // 12
        keys, values = np.frombuffer(self.cells, np.uint64, count), self.cells[8 * count :]
        labels, weights = np.array([label], np.float32), np.array([importance], np.float32)
        return Chunk(np.array([0, count]), keys, np.frombuffer(values, np.float32), labels, weights)

    def size(self, one: str) -> int:
        """Bytes of memory that it takes, with this id."""
        return len(self.cells) + sys.getsizeof(one) + _EACH


class KnownRows(NamedTuple):
    """The rows that a request with a key has brought."""

    first: int
    last: int
    hash: int


class LearnedRow(NamedTuple):
    """What is known of a row that was kept and learned."""

    since: int
    """when it was, by the clock of `ticking`"""
    labelled: bool
    """whether its label had come"""


@dataclass
class Memory:
    """What is known of earlier requests; all of it can be read from the log. Of keys, the `fingerprint`."""

    most_kept: int
    most_keys: int
    """and ids of rows that are learned"""
    most_bytes: int = 1 << 30
    """of rows that are kept"""
    keys: dict[bytes, KnownRows] = field(default_factory=dict)
    kept: dict[str, KeptRow] = field(default_factory=dict)
    """by id, in the order in which they came"""
    kept_bytes: int = 0
    """of these"""
    learned: dict[bytes, LearnedRow] = field(default_factory=dict)
    """by id, in the order in which they were learned"""
    log_time: int = 0
    """when the last record was written, by the clock of the log, in which times are until it is read"""
    promoted: str = FIRST
    """the model that took over last"""
    promoted_at: int = 0
    """where the log says so"""

    def keep(self, one: str, row: KeptRow) -> None:
        """Keep a row under an id."""
        self.let_go(one)
        self.kept[one] = row
        self.kept_bytes += row.size(one)

    def let_go(self, one: str) -> None:
        """Keep the row under this id no longer, if there is one."""
        if row := self.kept.pop(one, None):
            self.kept_bytes -= row.size(one)

    def label(self, one: str, given: tuple[float, float]) -> None:
        """Note the label and the importance of a row, in its place among those that are kept."""
        if row := self.kept.get(one):
            self.kept[one] = row._replace(given=given)

    def go_on(self) -> None:
        """The log is read: go on from the time of its end, as if no time had passed since.

        Rows that came earlier have waited longer, whatever the clock said when they came.
        """
        since = ticking()
        later = since - self.log_time
        for one, row in reversed(self.kept.items()):
            since = min(since, row.since + later)
            self.kept[one] = row._replace(since=since)
        for mark, learned in self.learned.items():
            self.learned[mark] = learned._replace(since=learned.since + later)

    def forget(self, before: int) -> None:
        """Forget ids of rows that were learned before a time, and the oldest of all beyond `most_keys`."""
        # lists first: the first entry of a dictionary is found again and again behind those removed
        for one in [*takewhile(lambda one: self.learned[one].since < before, self.learned)]:
            del self.learned[one]
        known: dict[bytes, Any]
        for known in (self.keys, self.learned):
            for one in [*islice(known, max(len(known) - self.most_keys, 0))]:
                del known[one]


class Draft:
    """The entries of one write, and what they will change in the memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.now, self.time = memory, ticking(), _microseconds()
        self.entries = list[LogEntry]()
        self.bytes = memory.kept_bytes
        """of rows that are kept"""
        self.keys = dict[bytes, int]()
        """keys of entries, by number"""
        self.promoted = ""
        self._kept, self._gone = dict[str, KeptRow](), set[str]()
        self._given, self._learned = dict[str, tuple[float, float]](), dict[bytes, LearnedRow]()
        self._learned_now = [LearnedRow(self.now, labelled) for labelled in (False, True)]

    def add(self, kind: int, chunk: Chunk, **note: Any) -> int:
        """Add an entry; return its number."""
        self.entries.append(LogEntry(kind, chunk, {k: v for k, v in note.items() if v}, self.time))
        return len(self.entries) - 1

    def kept(self, one: str) -> KeptRow | None:
        """The row that is kept under this id, if any."""
        row = None if one in self._gone else self._kept.get(one) or self.memory.kept.get(one)
        return row._replace(given=self._given[one]) if row and one in self._given else row

    def learned(self, one: str) -> LearnedRow | None:
        """What is known of a row that was kept under this id and learned."""
        mark = fingerprint(one)
        return self._learned.get(mark) or self.memory.learned.get(mark)

    def keep(self, one: str, row: KeptRow) -> None:
        """Keep a row until its label comes."""
        self._kept[one] = row
        self._gone.discard(one)
        self.bytes += row.size(one)

    def label(self, one: str, given: tuple[float, float]) -> None:
        """Note the label and the importance of a row that is kept."""
        self._given[one] = given

    def let_go(self, one: str, *, learned: bool, labelled: bool) -> None:
        """Keep a row no longer; whether it is learned, and with a label that has come."""
        self._gone.add(one)
        if learned:
            self._learned[fingerprint(one)] = self._learned_now[labelled]

    @property
    def count(self) -> int:
        """How many rows are kept."""
        new = sum(one not in self.memory.kept for one in self._kept)
        return len(self.memory.kept) + new - len(self._gone)

    def settle(
        self, rows: Sequence[tuple[int, int]], offsets: Sequence[int], entries: Sequence[PackedEntry]
    ) -> None:
        """The entries are on disk: `rows` are the first and last row of each."""
        memory = self.memory
        for key, number in self.keys.items():
            memory.keys[key] = KnownRows(*rows[number], entries[number].rows_hash)
        for one, kept in self._kept.items():
            memory.keep(one, kept._replace(offset=offsets[0]))
        for one, given in self._given.items():
            memory.label(one, given)
        for one in self._gone:
            memory.let_go(one)
        if self.promoted:
            memory.promoted, memory.promoted_at = self.promoted, offsets[0]
        memory.learned.update(self._learned)


@dataclass
class Request(Generic[A]):
    """Something that is to be written to the log."""

    done: Future[A] = field(default_factory=Future, init=False)
    number: int = field(default=-1, init=False)
    """of its entry; -1: none"""

    def draft(self, draft: Draft) -> None:
        """Add what is to be written. `RefusedError`."""
        raise NotImplementedError

    def answer(self, rows: Sequence[tuple[int, int]]) -> A:
        """The answer, once that is on disk."""
        raise NotImplementedError


@dataclass
class LearnRequest(Request[Ack]):
    """Rows with labels."""

    chunk: Chunk
    key: str = ""
    _known: tuple[int, int] | None = field(default=None, init=False)

    def draft(self, draft: Draft) -> None:
        """Add the rows, unless the key is known."""
        if len(self.key) > MOST_LETTERS:
            raise RefusedError(400, f"the key has more than {MOST_LETTERS:,} letters")
        mark = fingerprint(self.key)
        if known := draft.memory.keys.get(mark):
            self._check(known.hash)
            self._known = known.first, known.last
        elif mark in draft.keys:
            self.number, self._known = draft.keys[mark], (0, 0)
            self._check(packed(draft.entries[self.number]).rows_hash)
        else:
            self.number = draft.add(ROWS, self.chunk, key=self.key)
            if self.key:
                draft.keys[mark] = self.number

    def _check(self, known: int) -> None:
        """`RefusedError` unless the rows have this hash."""
        if packed(LogEntry(ROWS, self.chunk)).rows_hash != known:
            raise RefusedError(
                422, "this Idempotency-Key was used for other rows: use a key of its own for each request"
            )

    def answer(self, rows: Sequence[tuple[int, int]]) -> Ack:
        """The numbers of the rows."""
        found = rows[self.number] if self.number >= 0 else self._known or (0, 0)
        return Ack(*found, self._known is not None)


@dataclass
class KeepRequest(Request[Ack]):
    """Rows to keep until their labels come; rows that are kept or learned already stay as they are.

    With `negative`, these are learned as they are at once: with that label, and their importances.
    """

    ids: Sequence[str]
    chunk: Chunk
    negative: bool = False

    def draft(self, draft: Draft) -> None:
        """Add the rows that are new."""
        firsts = {one: k for k, one in reversed([*enumerate(self.ids)])}
        known = (one for one in firsts if draft.kept(one) or draft.learned(one))
        new = sorted({*firsts.values()} - {firsts[one] for one in known})
        if len(new) > draft.memory.most_kept:
            raise RefusedError(413, f"at most {draft.memory.most_kept:,} rows can wait for their labels")
        if draft.count + len(new) > draft.memory.most_kept:
            raise RefusedError(429, f"{draft.count:,} rows wait for their labels already", 1.0)
        if not new:
            return
        chunk = self.chunk if len(new) == len(self.chunk) else self.chunk.take(np.array(new, np.int64))
        ids = [self.ids[k] for k in new]
        kept = {one: KeptRow.of(chunk, k, draft.now, self.negative) for k, one in enumerate(ids)}
        size, most = sum(row.size(one) for one, row in kept.items()), draft.memory.most_bytes
        if size > most:
            raise RefusedError(413, f"rows of {most:,} bytes at most can wait for their labels")
        if draft.bytes + size > most:
            raise RefusedError(429, f"rows of {draft.bytes:,} bytes wait for their labels already", 1.0)
        self.number = draft.add(ROWS, chunk, kept=ids) if self.negative else draft.add(KEPT, chunk, ids=ids)
        for one, row in kept.items():
            draft.keep(one, row)

    def answer(self, rows: Sequence[tuple[int, int]]) -> Ack:
        """The rows are kept."""
        return Ack(*rows[self.number]) if self.number >= 0 else Ack(0, 0, True)


@dataclass
class LabelRequest(Request[Labelled]):
    """Labels of rows that are kept."""

    ids: Sequence[str]
    labels: NDArray[np.float32]
    importances: NDArray[np.float32]
    correct: Callable[[Chunk, float], float]
    """a factor of the importance of a row that was learned as negative, given its label"""
    later: bool = False
    """whether rows are learned once they have waited, in the order in which they came"""
    _repeated: int = field(default=0, init=False)
    _unknown: list[str] = field(default_factory=list, init=False)
    _learned: int = field(default=0, init=False)
    _waiting: int = field(default=0, init=False)

    def draft(self, draft: Draft) -> None:
        """Add the rows with their labels, or the labels alone."""
        rows, ids, waiting = list[Chunk](), list[str](), dict[str, tuple[float, float]]()
        for one, label, importance in zip(
            self.ids, self.labels.tolist(), self.importances.tolist(), strict=True
        ):
            kept, learned = draft.kept(one), draft.learned(one)
            if kept is None and not (learned and learned.labelled):
                self._unknown.append(one)
            elif kept is None or kept.given is not None:
                self._repeated += 1
            elif self.later and not kept.learned:
                waiting[one] = label, importance
                draft.label(one, waiting[one])
            else:
                row = kept.labelled(label, importance)
                if kept.learned:
                    row = replace(row, weights=row.weights * np.float32(self.correct(row, label)))
                rows.append(row)
                ids.append(one)
                draft.let_go(one, learned=True, labelled=True)
        self._learned, self._waiting = len(rows), len(waiting)
        if rows:
            self.number = draft.add(ROWS, concat(rows), ids=ids)
        if waiting:
            labels, weights = np.array([*waiting.values()], np.float32).T.copy()
            starts = np.zeros(len(labels) + 1, np.int64)
            chunk = Chunk(starts, NOTHING.keys, NOTHING.values, labels, weights)
            draft.add(LABELS, chunk, ids=[*waiting])

    def answer(self, rows: Sequence[tuple[int, int]]) -> Labelled:
        """What was learned."""
        first, last = rows[self.number] if self.number >= 0 else (0, 0)
        return Labelled(first, last, self._learned, self._waiting, self._repeated, self._unknown)


@dataclass
class ExpireRequest(Request[int]):
    """Rows that have waited: learned with the label that has come; without one as negative, or let go."""

    before: int
    """by the clock of `ticking`; rows that came later are still waited for"""
    negative: float | None
    """the label to learn without one; None: none"""
    most: int = 10_000
    """rows at once"""
    _count: int = field(default=0, init=False)

    def draft(self, draft: Draft) -> None:
        """Add the rows, or their ids."""
        self.memory = draft.memory
        rows, ids, labelled, gone = list[Chunk](), list[str](), list[str](), list[str]()
        for one, there in draft.memory.kept.items():
            if there.since >= self.before or self._count >= self.most:
                break
            if (kept := draft.kept(one)) is None:
                continue
            self._count += 1
            without = None if self.negative is None or kept.learned else (self.negative, 1.0)
            if given := kept.given or without:
                rows.append(kept.labelled(*given))
                ids.append(one)
                labelled += [one] * (kept.given is not None)
            else:
                gone.append(one)
            draft.let_go(one, learned=given is not None or kept.learned, labelled=kept.given is not None)
        if rows:
            self.number = draft.add(ROWS, concat(rows), expired=ids, labelled=labelled)
        if gone:
            draft.add(GONE, NOTHING, ids=gone)

    def answer(self, rows: Sequence[tuple[int, int]]) -> int:
        """How many rows are kept no longer; the ids of those learned are forgotten after as long again."""
        self.memory.forget(self.before)
        return self._count


@dataclass
class PromoteRequest(Request[Ack]):
    """Another model takes over."""

    name: str
    """`FIRST`, or that of a shadow"""

    def draft(self, draft: Draft) -> None:
        """Add that to the log."""
        self.number, draft.promoted = draft.add(PROMOTED, NOTHING, model=self.name), self.name

    def answer(self, rows: Sequence[tuple[int, int]]) -> Ack:
        """The last row before."""
        last = rows[self.number][1]
        return Ack(last, last)


def remembered(memory: Memory, records: Iterable[Any]) -> None:
    """Bring a memory up to date with records of the log. Those from a time to come were written just now."""
    wall = _microseconds()
    for record in records:
        note, kind = record.note(), record.head.kind
        memory.log_time = since = min(record.head.time, wall)
        ids: list[str] = note.get("ids", [])
        if kind == PROMOTED:
            memory.promoted, memory.promoted_at = note["model"], record.offset
        if kind == ROWS and "key" in note:
            known = KnownRows(record.head.row + 1, record.head.last, record.rows_hash)
            memory.keys[fingerprint(note["key"])] = known
        kept = ids if kind == KEPT else note.get("kept", [])
        chunk = chunk_of(record.buffer, record.at, record.head) if kept or kind == LABELS else NOTHING
        if kind == LABELS:
            for one, *given in zip(ids, chunk.labels.tolist(), chunk.weights.tolist(), strict=True):
                memory.label(one, (given[0], given[1]))
        elif kept:
            for k, one in enumerate(kept):
                memory.keep(one, KeptRow.of(chunk, k, since, kind == ROWS, record.offset))
        else:
            labelled = {*note.get("labelled", ids if kind == ROWS else [])}
            for one in [*ids, *note.get("expired", [])]:
                learned = kind == ROWS or (one in memory.kept and memory.kept[one].learned)
                memory.let_go(one)
                if learned:
                    memory.learned[fingerprint(one)] = LearnedRow(since, one in labelled)


def _microseconds() -> int:
    """Since 1970, as the clock of the machine says now."""
    return time.time_ns() // 1000


class Appender:
    """Takes requests from any thread. `synced` is called with the new end of the log after each write."""

    def __init__(
        self, writer: LogWriter, memory: Memory, most_waiting: int, synced: Callable[[LogPosition], None]
    ) -> None:
        self.writer, self.memory = writer, memory
        self.trouble = ""
        """why nothing can be written at the moment"""
        self.sync_seconds, self.syncs = 0.0, 0
        self._most, self._synced = most_waiting, synced
        self._queue: queue.SimpleQueue[Request[Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="thresher-log", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def submit(self, request: Request[Any]) -> None:
        """Put a request in line. `RefusedError`."""
        if self._closed:
            raise RefusedError(503, "the server is stopping")
        if self._queue.qsize() >= self._most:
            raise RefusedError(429, f"{self._most:,} requests wait to be written already", 1.0)
        self._queue.put(request)

    def close(self) -> None:
        """Write what is in line, and end."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self.writer.close()

    def _work(self) -> None:
        going = True
        while going:
            some, size = [self._queue.get()], 0
            while some[-1] is not None and len(some) < _MOST_AT_ONCE and size < _MOST_BYTES:
                chunk = getattr(some[-1], "chunk", None)
                size += 0 if chunk is None else 12 * chunk.nnz
                try:
                    some.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            going = some[-1] is not None
            requests = [one for one in some if one is not None]
            if requests:
                self._write(requests)

    def _write(self, requests: list[Request[Any]]) -> None:
        draft, accepted = Draft(self.memory), list[Request[Any]]()
        for one in requests:
            try:
                one.draft(draft)
                accepted.append(one)
            except RefusedError as error:
                one.done.set_exception(error)
            except Exception as error:  # noqa: BLE001  one request must not end the thread of all
                one.done.set_exception(self._fault(error))
        try:
            rows = self._append(draft)
        except LogFullError as error:
            self.trouble = str(error)
            self._refuse(accepted, RefusedError(503, f"nothing can be learned: {error}", _RETRY))
            return
        except LogFailedError as error:
            self.trouble = str(error)
            self._refuse(accepted, RefusedError(503, f"nothing can be learned until a restart: {error}"))
            return
        except Exception as error:  # noqa: BLE001  likewise; nothing has been written
            self._refuse(accepted, self._fault(error))
            return
        self.trouble = ""
        for one in accepted:
            one.done.set_result(one.answer(rows))

    def _append(self, draft: Draft) -> list[tuple[int, int]]:
        """Write the entries, and let the memory know; the first and last row of each."""
        begin = self.writer.end
        self.writer.roll_if_due(draft.time)  # also of a log that does not grow, whose files get old
        if not draft.entries:
            return []
        bodies, started = [packed(one) for one in draft.entries], time.perf_counter()
        ends = self.writer.append(bodies)
        self.sync_seconds += time.perf_counter() - started
        self.syncs += 1
        begins = [begin, *ends[:-1]]
        rows = [(a.row + 1, b.row) for a, b in zip(begins, ends, strict=True)]
        draft.settle(rows, [one.offset for one in begins], bodies)
        self._synced(ends[-1])
        return rows

    @staticmethod
    def _fault(error: Exception) -> RefusedError:
        return RefusedError(500, f"this cannot be written to the log: {str(error) or type(error).__name__}")

    @staticmethod
    def _refuse(requests: list[Request[Any]], error: RefusedError) -> None:
        for one in requests:
            one.done.set_exception(error)
