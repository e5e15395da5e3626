"""What clients ask of the log: rows to learn, rows to keep, labels; and the thread that writes it.

It handles requests in order, many with one sync, and answers them after it. A `Draft` holds what those of one
write would change, so that nothing has changed if the write fails.
"""

from __future__ import annotations

import hashlib
import queue
import sys
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.data import bodies
from thresher.data.chunk import Chunk, concat
from thresher.data.labels import WordTable
from thresher.data.log import records, segments
from thresher.data.log import writer as writing
from thresher.serving.errors import RefusedError
from thresher.serving.openapi import LabelsLearned

A = TypeVar("A")
_Request = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]
"""Where the answer goes, the method of `Draft` that is asked, and its arguments"""
MICRO = 1_000_000
"""Microseconds in a second"""
_EACH = 400
"""Bytes that a row takes besides its id and its cells, approximately"""
_MOST_AT_ONCE = 4096
EXPIRED_AT_ONCE = 10_000
"""Rows that have waited, let go in one write"""
_MOST_BYTES = 32 << 20
"""Of one write, approximately"""
_RETRY = 5.0
"""Seconds after which a client may try again whether the disk has room"""


def ticking() -> int:
    """Microseconds by a clock that nobody sets, so that rows are waited for as long as they should be."""
    return time.monotonic_ns() // 1000


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


class KeptRow(NamedTuple):
    """A row whose label is still to come; a copy, since a view would hold all of the body that brought it."""

    cells: tuple[bytes, ...]
    """its keys, values, rests and offset; empty if there are none"""
    since: int
    """when it came, by the clock of `ticking`"""
    offset: int
    """where the log has it"""
    given: tuple[float, float] | None = None
    """its label and importance, if they have come, and it is learned once it has waited"""

    @classmethod
    def of(cls, chunk: Chunk, k: int, since: int, offset: int) -> KeptRow:
        """Row k of a chunk."""
        part, own = slice(*chunk.indptr[k : k + 2].tolist()), slice(k, k + 1)
        parts = (chunk.keys, part), (chunk.values, part), (chunk.rests, part), (chunk.offsets, own)
        cells = tuple(b"" if array is None else array[there].tobytes() for array, there in parts)
        return cls(cells, since, offset)

    def labelled(self) -> Chunk:
        """The row with the label and the importance that it is `given`."""
        keys, given = np.frombuffer(self.cells[0], np.uint64), np.array([self.given], np.float32).T
        values, rests, offsets = (np.frombuffer(one, np.float32) for one in self.cells[1:])
        row = Chunk(np.array([0, len(keys)]), keys, values, *given)
        return replace(row, rests=rests if rests.size else None, offsets=offsets if offsets.size else None)

    def size(self, one: str) -> int:
        """Bytes of memory that it takes, with this id."""
        return sum(map(len, self.cells)) + sys.getsizeof(one) + _EACH


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
    words: WordTable | None = None
    """the classes, if these are met on the way"""
    named: int = 0
    """how many of them the log knows"""

    def keep(self, one: str, row: KeptRow) -> None:
        """Keep a row under an id, in the place of an earlier one."""
        earlier = self.kept.get(one)
        self.kept_bytes += row.size(one) - (earlier.size(one) if earlier else 0)
        self.kept[one] = row

    def let_go(self, one: str) -> None:
        """Keep the row under this id no longer, if there is one."""
        if row := self.kept.pop(one, None):
            self.kept_bytes -= row.size(one)

    def forget(self, before: int) -> None:
        """Forget ids of rows that were learned before a time, and the oldest of all beyond `most_keys`."""
        # lists first: the first entry of a dictionary is found again and again behind those removed
        for one in [*takewhile(lambda one: self.learned[one].since < before, self.learned)]:
            del self.learned[one]
        known: dict[bytes, Any]
        for known in (self.keys, self.learned):
            for one in [*islice(known, max(len(known) - self.most_keys, 0))]:
                del known[one]

    def read(self, folder: Path, wait: int) -> None:
        """Read a log whose rows wait so many microseconds, and go on as if no time had passed since its end.

        Rows that came earlier have waited longer, whatever the clock said when they came; a record from a
        time to come was written just now.
        """
        time_of_log, wall = 0, time.time_ns() // 1000
        for some in segments.records_from(folder):
            for record in some:
                note, head = record.note(), record.head
                if self.words is not None and "classes" in note:
                    self.named = self.words.add(note["classes"]) + 1
                ids, time_of_log = note.get("ids", []), min(head.time, wall)
                if head.kind == records.KEPT:
                    chunk = record.rows()
                    for k, one in enumerate(ids):
                        self.let_go(one)
                        self.keep(one, KeptRow.of(chunk, k, time_of_log, record.offset))
                elif head.kind == records.LABELS:
                    late = record.rows()
                    for one, *given in zip(ids, late.labels.tolist(), late.weights.tolist(), strict=True):
                        if row := self.kept.get(one):
                            self.keep(one, row._replace(given=(given[0], given[1])))
                else:
                    if "key" in note:
                        rows = KnownRows(head.row + 1, head.last, head.hash_of_rows(record.body))
                        self.keys[fingerprint(note["key"])] = rows
                    labelled = {*note.get("labelled", ids)}
                    for one in [*ids, *note.get("expired", [])]:
                        if head.kind == records.ROWS:
                            self.learned[fingerprint(one)] = LearnedRow(time_of_log, one in labelled)
                        self.let_go(one)
            self.forget(time_of_log - wait)
        since = ticking()
        later = since - time_of_log
        for one, row in reversed(self.kept.items()):
            since = min(since, row.since + later)
            self.kept[one] = row._replace(since=since)
        for mark, row_learned in self.learned.items():
            self.learned[mark] = row_learned._replace(since=row_learned.since + later)


class Draft:
    """The entries of one write, and what they will change in the memory. `RefusedError`."""

    def __init__(self, memory: Memory, end: segments.LogPosition) -> None:
        """`end` of the log, where the first entry is written."""
        self._memory, self._now, self.time = memory, ticking(), time.time_ns() // 1000
        self.entries = list[records.PackedEntry]()
        self._count, self._bytes = len(memory.kept), memory.kept_bytes
        """of rows that are kept"""
        self._offset, self._row, self._named = end.offset, end.row, memory.named
        self._old = 0
        """the time before which ids of learned rows may be forgotten"""
        self._keys = ChainMap[bytes, KnownRows]({}, memory.keys)
        self._learned = ChainMap[bytes, LearnedRow]({}, memory.learned)
        self._kept, self._gone = ChainMap[str, KeptRow | None]({}, memory.kept), set[str]()  # type: ignore[arg-type]
        """as the memory will be; None for rows that are kept no longer, and their ids"""

    def _add(self, kind: int, chunk: Chunk, **note: Any) -> Ack:
        """Add an entry; return the numbers of its first and last row."""
        given = {name: value for name, value in note.items() if value}
        known, labelled = self._memory.words, kind in (records.ROWS, records.LABELS) and len(chunk)
        if known is not None and labelled and (most := int(chunk.labels.max()) + 1) > self._named:
            given["classes"], self._named = known.names()[self._named : most], most
        self.entries.append(records.pack(kind, chunk, given, self.time))
        first = self._row + 1
        self._row += len(chunk) if kind == records.ROWS else 0
        return Ack(first, self._row)

    def _let_go(self, rows: Mapping[str, KeptRow]) -> None:
        """Keep rows no longer."""
        self._gone.update(rows)
        self._kept.update(dict.fromkeys(rows))
        self._count -= len(rows)
        self._bytes -= sum(row.size(one) for one, row in rows.items())

    def _learn_kept(self, rows: Mapping[str, KeptRow], known: Set[str], **note: Any) -> None:
        """Add an entry with rows that were kept, each with what it is `given`; `known`: whose labels came."""
        self._add(records.ROWS, concat([row.labelled() for row in rows.values()]), **note)
        self._learned.update({fingerprint(one): LearnedRow(self._now, one in known) for one in rows})
        self._let_go(rows)

    def settle(self) -> None:
        """The entries are on disk: let the memory know."""
        memory = self._memory
        memory.named = self._named
        memory.keys.update(self._keys.maps[0])
        for one in self._gone:
            memory.let_go(one)
        for one, row in self._kept.maps[0].items():
            if row is not None:
                memory.keep(one, row)
        memory.learned.update(self._learned.maps[0])
        if self._old:
            memory.forget(self._old)

    # what clients ask

    def learn(self, chunk: Chunk, key: str = "") -> Ack:
        """Add rows with labels; those with a key that is known are not learned again."""
        if len(key) > bodies.MOST_LETTERS:
            raise RefusedError(400, f"the key has more than {bodies.MOST_LETTERS:,} letters")
        mark = fingerprint(key)
        known = self._keys.get(mark)
        if known is None:
            ack = self._add(records.ROWS, chunk, key=key)
            if key:
                entry = self.entries[-1]
                self._keys[mark] = KnownRows(ack.first, ack.last, entry.head.hash_of_rows(entry.body))
            return ack
        again = records.pack(records.ROWS, chunk)
        if again.head.hash_of_rows(again.body) != known.hash:
            raise RefusedError(
                422, "this Idempotency-Key was used for other rows: use a key of its own for each request"
            )
        return Ack(known.first, known.last, True)

    @staticmethod
    def _check_room(what: str, more: int, held: int, most: int) -> None:
        if more > most:
            raise RefusedError(413, f"at most {most:,} {what} can wait for their labels")
        if held + more > most:
            raise RefusedError(429, f"{held:,} {what} wait for their labels already", 1.0)

    def keep(self, ids: Sequence[str], chunk: Chunk) -> Ack:
        """Keep rows until their labels come; rows that are kept or learned already stay as they are."""
        firsts = {one: k for k, one in reversed([*enumerate(ids)])}
        new = sorted(
            k for one, k in firsts.items() if not (self._kept.get(one) or fingerprint(one) in self._learned)
        )
        self._check_room("rows", len(new), self._count, self._memory.most_kept)
        if not new:
            return Ack(0, 0, True)
        chunk = chunk if len(new) == len(chunk) else chunk.take(np.array(new, np.int64))
        ids = [ids[k] for k in new]
        rows = [KeptRow.of(chunk, k, self._now, self._offset) for k in range(len(ids))]
        size = sum(row.size(one) for one, row in zip(ids, rows, strict=True))
        self._check_room("bytes of rows", size, self._bytes, self._memory.most_bytes)
        ack = self._add(records.KEPT, chunk, ids=ids)
        for one, row in zip(ids, rows, strict=True):
            self._kept.maps[0].pop(one, None)  # the order is that in which they came
            self._kept[one] = row
        self._count += len(rows)
        self._bytes += size
        return ack

    def label(
        self,
        several: Sequence[Sequence[str]],
        labels: NDArray[np.float32],
        importances: NDArray[np.float32],
        later: bool,
    ) -> list[LabelsLearned]:
        """Add kept rows with their labels; if they are learned `later`, once they have waited, labels alone.

        What became of the ids of each of `several` requests.
        """
        found, before = list[LabelsLearned](), self._row
        taken, all_given = dict[str, KeptRow](), zip(labels.tolist(), importances.tolist(), strict=True)
        for ids in several:
            begin, repeated, unknown = len(taken), 0, list[str]()
            for one, given in zip(ids, all_given, strict=False):
                kept, learned = self._kept.get(one), self._learned.get(fingerprint(one))
                if one in taken or (kept.given if kept else learned and learned.labelled):
                    repeated += 1
                elif kept is None:
                    unknown.append(one)
                else:
                    taken[one] = kept._replace(given=given)
            count = len(taken) - begin
            learned_now = 0 if later else count
            place = (before + begin + 1, before + len(taken)) if learned_now else (0, 0)
            found.append(LabelsLearned(*place, learned_now, count - learned_now, repeated, unknown))
        if taken and later:
            numbers = np.array([row.given for row in taken.values()], np.float32).T.copy()
            starts = np.zeros(len(taken) + 1, np.int64)
            late = Chunk(starts, records.NOTHING.keys, records.NOTHING.values, *numbers)
            self._add(records.LABELS, late, ids=[*taken])
            self._kept.update(taken)
        elif taken:
            self._learn_kept(taken, {*taken}, ids=[*taken])
        return found

    def expire(self, before: int, negative: float | None) -> int:
        """Add rows that came before a time by `ticking`: learned with their label if it has come.

        Without one they are learned with the label `negative`, or let go if that is None. Returns how many,
        at most `EXPIRED_AT_ONCE`. The ids of those learned are forgotten after as long again.
        """
        old = takewhile(lambda one: one[1].since < before, self._memory.kept.items())
        still_kept = ((one, kept) for one, _ in old if (kept := self._kept.get(one)))
        waited = dict(islice(still_kept, EXPIRED_AT_ONCE))
        labelled = [one for one, kept in waited.items() if kept.given]
        gone = {one: kept for one, kept in waited.items() if negative is None and not kept.given}
        rows = {
            one: kept._replace(given=kept.given or (negative or 0.0, 1.0))
            for one, kept in waited.items()
            if one not in gone
        }
        if rows:
            self._learn_kept(rows, {*labelled}, expired=[*rows], labelled=labelled)
        if gone:
            self._add(records.GONE, records.NOTHING, ids=[*gone])
            self._let_go(gone)
        self._old = before
        return len(waited)


class Appender:
    """Takes requests from any thread. `synced` is called with the new end of the log after each write."""

    def __init__(
        self,
        writer: writing.LogWriter,
        memory: Memory,
        most_waiting: int,
        synced: Callable[[segments.LogPosition], None],
    ) -> None:
        self.writer, self.memory = writer, memory
        self.trouble = ""
        """why nothing can be written at the moment"""
        self.sync_seconds, self.syncs = 0.0, 0
        self._most, self._synced = most_waiting, synced
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._closed = False
        self.thread = threading.Thread(target=self._work, name="thresher-log", daemon=True)
        """which writes, once it is started"""

    def submit(self, work: Callable[..., A], *given: object) -> Future[A]:
        """Put in line what is asked of a `Draft`, one of its methods, with its arguments. `RefusedError`."""
        if self._closed:
            raise RefusedError(503, "the server is stopping")
        if self._queue.qsize() >= self._most:
            raise RefusedError(429, f"{self._most:,} requests wait to be written already", 1.0)
        done = Future[A]()
        self._queue.put((done, work, given))
        return done

    def close(self) -> None:
        """Write what is in line, and end."""
        self._closed = True
        self._queue.put(None)
        self.thread.join()
        self.writer.close()

    def _work(self) -> None:
        going = True
        while going:
            requests, size = list[_Request](), 0
            one = self._queue.get()
            while one is not None:
                requests.append(one)
                size += sum(12 * given.nnz for given in one[2] if isinstance(given, Chunk))
                if len(requests) == _MOST_AT_ONCE or size >= _MOST_BYTES or self._queue.empty():
                    break
                one = self._queue.get()
            going = one is not None
            if requests:
                self._write(requests)

    def _write(self, requests: Sequence[_Request]) -> None:
        draft, accepted = Draft(self.memory, self.writer.end), list[tuple[Future[Any], Any]]()
        for done, work, given in requests:
            try:
                accepted.append((done, work(draft, *given)))
            except Exception as error:  # noqa: BLE001  one request must not end the thread of all
                done.set_exception(self._refusal(error))
        try:
            self.writer.roll_if_due(draft.time)  # also of a log that does not grow, whose files get old
            if draft.entries:
                started = time.perf_counter()
                self.writer.append(draft.entries)
                self.sync_seconds += time.perf_counter() - started
                self.syncs += 1
            draft.settle()
            if draft.entries:
                self._synced(self.writer.end)
        except Exception as error:  # noqa: BLE001  likewise
            refusal = self._refusal(error)
            for done, _ in accepted:
                done.set_exception(refusal)
            return
        self.trouble = ""
        for done, answer in accepted:
            done.set_result(answer)

    def _refusal(self, error: Exception) -> RefusedError:
        if isinstance(error, RefusedError):
            return error
        if isinstance(error, writing.LogFullError | writing.LogFailedError):
            self.trouble = str(error)
            full = isinstance(error, writing.LogFullError)
            told = f"nothing can be learned{'' if full else ' until a restart'}: {error}"
            return RefusedError(503, told, _RETRY if full else None)
        return RefusedError(500, f"this cannot be written to the log: {str(error) or type(error).__name__}")
