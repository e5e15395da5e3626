"""The learner's side: it hands out pieces to readers, and takes their blocks in order.

It measures how fast readers read and the learner learns, and which of them waits for the other.

Each reader is an actor of Ray, driven by one thread here. A thread takes the next piece, asks its reader for
one batch of blocks after the other, and keeps references to at most `_AHEAD` batches that the learner has
not taken yet. So memory is bounded on all machines, and the readers never get far ahead of the learner. A
batch that was lost, with its reader or its machine, is read again from where the learner is.

Readers are actors, and asked, because streaming generators of Ray hold a processor while they wait for their
consumer: if the cluster is smaller than expected, later pieces then block the first one for ever. An actor
that is asked waits without deadlock, and keeps its parser and its compiled code from piece to piece. Ray's
own retries are off: the learner knows how far it has read a piece, so another reader, or the learner itself,
goes on from there. Checkpoints and the cache need content hashes, which the learner then computes by reading
local files once more.
"""

from __future__ import annotations

import math
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from thresher.cluster.connection import Connection, LostRayError
from thresher.cluster.packing import unpack
from thresher.cluster.reader import Note, Reader, Setting, Task, machine, versions
from thresher.data.chunk import StreamPosition
from thresher.data.errors import DataError
from thresher.data.files.remote import is_remote
from thresher.data.sources.reader import (
    QUARANTINE,
    Arenas,
    Parsed,
    Piece,
    Positions,
    Span,
    pieces_of,
    read_piece,
    stamp_of,
)

if TYPE_CHECKING:
    from thresher.data.files.content import Watches
    from thresher.data.sources.parsed import TextSource


_SHORT = 2.0
"""A pass shorter than this many seconds is not reported."""
_EVERY = 60.0
_CLEAR = 1.1
"""One side is said to wait for the other if it is this many times as fast."""


class Pace:
    """Rates of one pass, from the second batch on: the first pays for start-up and compiling.

    The readers' rate is what all of them can read if nobody makes them wait; the learner's rate is what it
    can learn if there are always rows.
    """

    def __init__(
        self, readers: int, say: Callable[[str], None], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._readers, self._say, self._clock = readers, say, clock
        self._begun = self._last_told = self._asked = math.nan
        self._waited = 0.0
        self._rows = self._read_rows = 0
        self._reading = 0.0
        self.alone = False
        """whether the learner itself reads a piece of this pass, whose rates say nothing any more"""

    def ask(self) -> None:
        """The learner begins to wait for a batch, if it does not wait already."""
        if math.isnan(self._asked):
            self._asked = self._clock()

    def receive(self, rows: int, seconds: float) -> None:
        """The learner has a batch of so many rows, for which its reader took this time; 0 if unknown."""
        now = self._clock()
        if math.isnan(self._begun):
            self._begun = self._last_told = now
        else:
            self._waited += now - self._asked
        self._asked = math.nan
        if now - self._last_told > _EVERY:
            self._last_told = now
            self._tell(now)
        self._rows += rows
        if seconds > 0:
            self._read_rows += rows
            self._reading += seconds

    def finish(self) -> None:
        """The pass ends."""
        now = self._clock()
        if now - self._begun > _SHORT:
            self._tell(now)

    def _tell(self, now: float) -> None:
        learning = now - self._begun - self._waited
        if learning <= 0 or not self._reading or self.alone:
            return
        learner, each = self._rows / learning, self._read_rows / self._reading

        def shown(rows: float) -> str:
            digits = max(0, int(math.log10(max(rows, 1.0))) - 2)
            return f"{round(rows, -digits):,.0f}"

        faster, verdict = each * self._readers / learner, "neither waits for the other"
        if faster > _CLEAR:
            verdict = "the workers wait for the learner"
        elif faster < 1 / _CLEAR:
            verdict = f"the learner waits; {math.ceil(learner / each)} workers could keep it busy"
        many = "1 worker reads" if self._readers == 1 else f"{self._readers} workers read"
        can = f"{many} up to {shown(each * self._readers)} rows/s, the learner learns up to {shown(learner)}"
        self._say(f"{can}: {verdict}")


_AHEAD = 2
"""Batches of a piece that wait for the learner; one more is being made."""
_ASKED = 2
"""Calls to a reader under way at once."""
_TRIES = 3
"""How often a piece is begun by another reader before the learner reads it itself."""
SOON, PATIENCE = 15.0, 60.0
"""Seconds to wait for readers before the user is told, and before training begins; then they are waited for
while reading."""
REPLACED = 15.0
"""Seconds to wait for another reader after one was lost; then the learner reads the piece itself."""
_MINUTE = 60.0
POLL = 0.2
"""Seconds between two looks at whether the pass has ended."""
REPORTED = 5
"""Losses of readers that are reported."""


class RayReaders:
    """`count` readers, for one pass after the other. See `data.sources.pieces.Readers`.

    They are started when the first file is read.
    """

    connection: Connection
    ray: Any

    def __init__(
        self, count: int | None, address: str | None, say: Callable[[str], None], warn: Callable[[str], None]
    ) -> None:
        """`say` is called with a line on how fast they are, `warn` when one is lost or does not start."""
        self.count, self._address, self._say, self.warn = count or 0, address, say, warn
        self._started = False
        self._idle: list[Any] = []
        self._lock, self._losses, self._ray_lost = threading.Lock(), 0, False
        self._told_pace = -math.inf
        self.alone = False
        """whether no reader takes pieces at the moment"""

    def start(self, connection: Connection | None = None) -> None:
        """Connect to Ray, unless that is done."""
        if self._started:
            return
        if connection is None:
            here, at = self._address is None, f"connecting to Ray at {self._address}"
            self._say("starting Ray on this machine" if here else at)
            connection = Connection(self._address, self.count or None)
        self.connection, self.ray, self._started = connection, connection.ray, True
        self.count = self.count or max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        self._kind = self.ray.remote(num_cpus=1, max_restarts=0)(Reader)

    def prepare(self) -> None:
        """Start the readers, and wait for the first."""
        self.start()
        with suppress(LostRayError, self.ray.exceptions.RayError):
            started = [self.take() for _ in range(self.count)]
            with self.connection.calling():
                answers = [one.ready.remote() for one in started]
            if not self._wait_for_one(answers, SOON):
                self.warn("no worker has started yet: the cluster may have no free processor")
                self._wait_for_one(answers, PATIENCE - SOON)
            for one in started:
                self.give_back(one)

    def _wait_for_one(self, answers: list[Any], patience: float) -> bool:
        """Whether one of the answers is there within so many seconds."""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            with self.connection.calling():
                if self.ray.wait(answers, timeout=POLL)[0]:
                    return True
        return False

    def say_lost(self, name: str, then: str) -> None:
        """Say that a reader of a file was lost, the first few times; or once, that Ray was."""
        with self._lock:
            if self.connection.lost:
                if not self._ray_lost:
                    self.warn("the connection to Ray is lost; this process goes on alone")
                self._ray_lost = True
                return
            self._losses += 1
            last = " (further losses are not reported)" if self._losses == REPORTED else ""
            if self._losses <= REPORTED:
                self.warn(f"a reader of {name} was lost; {then}{last}")

    def say_pace(self, line: str) -> None:
        """Say how fast readers and learner are, at most once a minute however short the passes."""
        now = time.monotonic()
        if now - self._told_pace >= _MINUTE:
            self._told_pace = now
            self._say(line)

    def take(self) -> Any:
        """A reader that waits for work, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            with self.connection.calling():
                return self._kind.remote()

    def give_back(self, reader: Any) -> None:
        """Keep a reader for the next pass."""
        with self._lock:
            self._idle.append(reader)

    def read(self, source: TextSource, start: StreamPosition, watches: Watches | None) -> Pass:
        """Begin a pass over `source`, or the rest of one from `start` on."""
        self.start()
        return Pass(self, source, start, watches)

    def close(self) -> None:
        """Stop the readers and disconnect."""
        if not self._started:
            return
        for reader in self._idle:
            self.kill(reader)
        self._idle.clear()
        self.connection.close()

    def kill(self, reader: Any) -> None:
        """End the process of a reader."""
        with suppress(LostRayError, self.ray.exceptions.RayError), self.connection.calling():
            self.ray.kill(reader)


class _Stream:
    """The batches of a piece, as references."""

    def __init__(self, piece: Piece, by_reader: bool) -> None:
        self.piece, self.by_reader = piece, by_reader
        self.batches: queue.Queue[tuple[Note, Any]] = queue.Queue(_AHEAD)
        self.abandoned = False
        """whether the learner reads the rest itself"""


_LOST = Note((), ended=False)
"""Instead of a batch: the learner must read the rest of the piece itself."""


class Pass:
    """The blocks of one pass, in order; see `data.sources.pieces.RemoteBlocks`."""

    def __init__(
        self, readers: RayReaders, source: TextSource, start: StreamPosition, watches: Watches | None
    ) -> None:
        self._readers, self._source, self._ray = readers, source, readers.ray
        alike = ("layout", "block_bytes", "unlabelled", "where", "ids", "marked")
        read = {name: getattr(source, name) for name in alike} | {"domain": str(source.domain)}
        # rejected lines are sent to the learner, which alone writes them
        kind = source.on_error.kind
        read["on_error"] = f"{QUARANTINE}={os.devnull}" if kind == QUARANTINE else kind
        setting = Setting(read, tuple(source.sliced), versions(), machine())
        self._failures = (LostRayError, self._ray.exceptions.RayError)
        self._setting: Any = None
        with suppress(LostRayError), readers.connection.calling():
            self._setting = self._ray.put(setting)
        self._stamps = [None if is_remote(name) else stamp_of(name) for name in source.names]
        self._positions = Positions(source.names, watches)
        self._arenas = Arenas(_AHEAD + 2)
        self._pieces = pieces_of(source, start)
        self._turn = threading.Lock()
        self._streams: queue.SimpleQueue[_Stream | Exception | None] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._finished = False
        self._pace = Pace(readers.count, readers.say_pace)
        self._threads = [
            threading.Thread(target=self._work, name=f"thresher-remote-{k}", daemon=True)
            for k in range(readers.count)
        ]

    def __iter__(self) -> Iterator[tuple[Span, Parsed]]:
        """All blocks, unpacked; the error of a block is raised in its turn."""
        for thread in self._threads:
            thread.start()
        readers = self._readers
        while True:
            self._pace.ask()
            try:
                stream = self._streams.get(timeout=POLL if readers.alone else REPLACED)
            except queue.Empty:  # this process reads the next piece itself, as no reader takes it in time
                if not readers.alone:
                    readers.warn("no worker takes the next piece; this process reads until one does")
                readers.alone = True
                if (mine := self._take(by_reader=False)) is not None:
                    mine.batches.put((_LOST, None))
                continue
            readers.alone = readers.alone and not (isinstance(stream, _Stream) and stream.by_reader)
            if isinstance(stream, Exception):
                raise stream
            if stream is None:
                break
            yield from self._blocks_of(stream)
        self._positions.begin(len(self._source.names) - 1)
        self._pace.finish()
        self._finished = True

    def _blocks_of(self, stream: _Stream) -> Iterator[tuple[Span, Parsed]]:
        piece, at = stream.piece, stream.piece.start
        while True:
            self._pace.ask()
            note, reference = stream.batches.get()
            if note.error:
                raise DataError(note.error)
            if note.ended:
                return
            try:
                if note is _LOST:
                    raise LostRayError
                with self._readers.connection.borrowed(reference) as packed:
                    self._pace.receive(sum(len(one.lengths) for one in packed), note.seconds)
                    for k, span in enumerate(note.spans):
                        yield self._positions.span(piece.file, *span), unpack(packed[k], self._arenas)
                        at = span[1]
            except self._failures:
                stream.abandoned = True
                if stream.by_reader:
                    name = self._source.names[piece.file]
                    self._readers.say_lost(name, "this process reads the rest of its piece")
                self._pace.alone = True
                for block, parsed in read_piece(self._source, piece._replace(start=at)):
                    ends = block.offset, block.end, block.raw_position
                    yield self._positions.span(piece.file, *ends), parsed
                return

    def _work(self) -> None:
        reader = None
        try:
            reader = self._started()
            while (stream := self._take()) is not None:
                reader = self._read(stream, reader) or self._started()
        except self._ray.exceptions.RayError as error:
            self._streams.put(DataError(f"Ray failed: {_first_line(error)}"))
        except Exception as error:  # noqa: BLE001 raised again in the thread that uses the blocks
            self._streams.put(error)
        if reader is not None:
            if self._stopped.is_set():
                self._readers.kill(reader)
            else:
                self._readers.give_back(reader)

    def _started(self, patience: float = math.inf) -> Any:
        """A reader whose process runs; None if none is needed or can be had, or after `patience` seconds."""
        for tries_left in reversed(range(_TRIES)):
            try:
                reader = self._readers.take()
                with self._readers.connection.calling():
                    answer = reader.ready.remote()
                if self._wait(answer, patience):
                    return reader
            except LostRayError:
                return None
            except self._ray.exceptions.RayError:
                if not tries_left:
                    raise
            else:
                self._readers.kill(reader)
                break
        return None

    def _wait(self, reference: Any, patience: float = math.inf) -> bool:
        """Wait for a result; False if the pass has ended, or after `patience` seconds."""
        until = time.monotonic() + patience
        while not (self._stopped.is_set() or self._finished) and time.monotonic() < until:
            with self._readers.connection.calling():
                if self._ray.wait([reference], timeout=POLL)[0]:
                    self._ray.get(reference)
                    return True
        return False

    def _take(self, by_reader: bool = True) -> _Stream | None:
        with self._turn:
            piece = None if self._stopped.is_set() else next(self._pieces, None)
            if piece is None:
                if not self._stopped.is_set():
                    self._streams.put(None)
                return None
            stream = _Stream(piece, by_reader)
            self._streams.put(stream)
            return stream

    def _read(self, stream: _Stream, reader: Any) -> Any:
        """Let a reader read a piece; returns it, or the reader that replaced it, or None.

        Without a reader, the learner reads the piece.
        """
        at, tries = stream.piece.start, 0
        while True:
            if reader is None:
                self._put(stream, _LOST, None)
                return None
            try:
                for note, reference in self._batches(stream.piece._replace(start=at), reader):
                    self._put(stream, note, reference)
                    if stream.abandoned:
                        break
                    at, tries = (note.spans[-1][1], 0) if note.spans else (at, tries)
                return reader
            except self._ray.exceptions.RayTaskError as error:
                self._put(stream, Note((), True, f"a reader failed: {_first_line(error)}"), None)
                return reader
            except self._failures:
                tries += 1
                if not self._stopped.is_set():
                    self._readers.say_lost(self._source.names[stream.piece.file], "another takes over")
                reader = self._started(REPLACED) if tries < _TRIES else None

    def _batches(self, piece: Piece, reader: Any) -> Iterator[tuple[Note, Any]]:
        name = self._source.names[piece.file]
        path = name if is_remote(name) else os.path.abspath(name)
        task = Task(path, name, piece.start, piece.stop, self._stamps[piece.file])
        calling = self._readers.connection.calling
        with calling():
            reader.begin.remote(self._setting, task)
            following = reader.next.options(num_returns=2)
            asked = deque(following.remote() for _ in range(_ASKED))
        while True:
            note_of, reference = asked.popleft()
            if not self._wait(note_of):
                return
            with calling():
                note: Note = self._ray.get(note_of)
            yield note, reference
            if note.ended:
                return
            with calling():
                asked.append(following.remote())

    def _put(self, stream: _Stream, note: Note, reference: Any) -> None:
        while not self._stopped.is_set() and not stream.abandoned:
            try:
                stream.batches.put((note, reference), timeout=POLL)
                return
            except queue.Full:
                continue

    def close(self, patient: bool = True) -> None:
        """Stop reading; readers in the middle of a piece are killed."""
        if not self._finished:
            self._stopped.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
