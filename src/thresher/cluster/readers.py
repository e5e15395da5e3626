"""The learner's side: it hands out pieces to readers, and takes their blocks in order.

Each reader is an actor of Ray, which is asked for the next batches of its piece before they are needed: for
`_AHEAD` of each of `_PIECES` pieces. So memory is bounded on all machines, and the readers never get far
ahead of the learner. If a reader or a batch is lost, the learner reads the rest of the piece itself, and
another reader the next one.

Readers are actors, and asked, because streaming generators of Ray hold a processor while they wait for their
consumer: if the cluster is smaller than expected, later pieces then block the first one for ever. An actor
that is asked waits without deadlock, and keeps its parser and its compiled code from piece to piece. Ray's
own retries are off: the learner knows how far it has read a piece, and goes on from there. Checkpoints and
the cache need content hashes, which the learner then computes by reading local files once more.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thresher.cluster.connection import Connection, LostRayError
from thresher.cluster.packing import unpack
from thresher.cluster.reader import Note, Reader, Setting, Task, machine, versions
from thresher.data.chunk import StreamPosition
from thresher.data.errors import DataError
from thresher.data.files.remote import is_remote
from thresher.data.sources import reader as reading

if TYPE_CHECKING:
    from thresher.data.files.content import Watches
    from thresher.data.sources.parsed import TextSource


_AHEAD = 5
"""Batches of a piece that are made, or wait, before the learner takes them"""
_PIECES = 2
"""Pieces for each reader that are begun before the learner has them"""
_ARENAS = 4
_TRIES = 3
"""How many readers may fail to start"""
PATIENCE = 15.0
"""Seconds to wait for the first reader, and for one that can take the next piece, or the learner reads it"""
POLL = 0.2
"""Seconds between two looks at whether Ray lives"""
REPORTED = 5
"""Losses of readers that are reported."""


class RayReaders:
    """`count` readers, for one pass after the other. See `data.sources.reader.current_readers`.

    They are started when the first file is read.
    """

    connection: Connection
    ray: Any

    def __init__(
        self, count: int | None, address: str | None, say: Callable[[str], None], warn: Callable[[str], None]
    ) -> None:
        """`say` is called with a line when Ray starts, `warn` when a reader is lost or does not start."""
        self.count, self._address, self._say, self.warn = count or 0, address, say, warn
        self._started = False
        self.idle, self.starting = list[Any](), list[tuple[Any, Any]]()
        """readers that wait for a piece; those that start, with the answer that they run"""
        self._failed = self.losses = 0
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
        self.start_readers()
        self.has_started(PATIENCE)

    def start_readers(self, busy: int = 0) -> None:
        """Start as many as are missing if so many are busy, as far as that is possible."""
        for _ in range(self.count - busy - len(self.idle) - len(self.starting)):
            with self.connection.calling():
                reader = self._kind.remote()
                self.starting.append((reader, reader.ready.remote()))

    def has_started(self, patience: float = 0.0) -> bool:
        """Whether a reader waits for a piece, or does so within so many seconds. `DataError` if many fail."""
        until = time.monotonic() + patience
        while self.starting:
            left = 0.0 if self.idle else until - time.monotonic()
            if not (there := self.connection.wait([answer for _, answer in self.starting], left)):
                break
            for one in [one for one in self.starting if one[1] in there]:
                self.starting.remove(one)
                try:
                    with self.connection.calling():
                        self.ray.get(one[1])
                except self.ray.exceptions.RayError as error:
                    self._failed += 1
                    if self._failed >= _TRIES:
                        raise DataError(f"Ray failed: {_first_line(error)}") from error
                else:
                    self.idle.append(one[0])
                    self.alone, self._failed = False, 0
        return bool(self.idle)

    def read(self, source: TextSource, start: StreamPosition, watches: Watches | None) -> Pass:
        """Begin a pass over `source`, or the rest of one from `start` on."""
        self.start()
        return Pass(self, source, start, watches)

    def close(self) -> None:
        """Stop the readers and disconnect."""
        if self._started:
            self.kill(*self.idle, *(reader for reader, _ in self.starting))
            self.connection.close()

    def kill(self, *readers: object) -> None:
        """End the processes of readers."""
        self.idle = [one for one in self.idle if one not in readers]
        self.starting = [one for one in self.starting if one[0] not in readers]
        for reader in readers:
            with suppress(LostRayError, self.ray.exceptions.RayError), self.connection.calling():
                self.ray.kill(reader)


@dataclass(eq=False)
class _Stream:
    """A piece that a reader reads."""

    piece: reading.Piece
    reader: Any
    """None once it has read all"""
    asked: deque[tuple[Any, Any]]
    """notes and batches that it was asked for, as references"""


class Pass:
    """The blocks of one pass, in order; see `data.sources.reader.current_readers`."""

    def __init__(
        self, readers: RayReaders, source: TextSource, start: StreamPosition, watches: Watches | None
    ) -> None:
        self._readers, self._source, self._ray = readers, source, readers.ray
        self._calling = readers.connection.calling
        alike = ("layout", "block_bytes", "unlabelled", "where", "ids", "marked")
        read = {name: getattr(source, name) for name in alike} | {"domain": source.domain.name}
        # rejected lines are sent to the learner, which alone writes them
        kind = source.on_error.kind
        read["on_error"] = f"{reading.QUARANTINE}={os.devnull}" if kind == reading.QUARANTINE else kind
        setting = Setting(read, tuple(source.sliced), versions(), machine())
        with self._calling():
            self._setting: object = self._ray.put(setting)
        self._stamps = [None if is_remote(name) else reading.stamp_of(name) for name in source.names]
        self._positions, self._arenas = reading.Positions(source.names, watches), reading.Arenas(_ARENAS)
        self._pieces = reading.pieces_of(source, start)
        self._next = next(self._pieces, None)
        self._streams = deque[_Stream]()
        """pieces that are read, in order"""

    def __iter__(self) -> Iterator[tuple[reading.Span, reading.Parsed]]:
        """All blocks, unpacked; the error of a block is raised in its turn."""
        readers = self._readers
        while self._streams or self._next is not None:
            self._begin()
            if self._streams:
                yield from self._blocks_of(self._streams[0])
                self._streams.popleft()
            elif not readers.has_started(POLL if readers.alone else PATIENCE):
                if not readers.alone:
                    readers.warn("no worker takes the next piece; this process reads until one does")
                    readers.alone = True
                assert self._next is not None
                piece, self._next = self._next, next(self._pieces, None)
                yield from self._read_here(piece)
        self._positions.begin(len(self._source.names) - 1)

    def _begin(self) -> None:
        """Let readers that have nothing to do read the next pieces."""
        busy = [one for one in self._streams if one.reader is not None and one.asked]
        with suppress(self._ray.exceptions.RayError), self._calling():  # a failure is told in its turn
            if busy and self._next is not None:
                last = [one.asked[-1][0] for one in busy]
                there = self._ray.wait(last, num_returns=len(last), timeout=0)[0]
                for stream, note_of in zip(busy, last, strict=True):
                    if note_of in there and self._ray.get(note_of).ended:
                        self._free(stream)
        readers = self._readers
        readers.start_readers(sum(one.reader is not None for one in self._streams))
        most = _PIECES * readers.count
        while self._next is not None and len(self._streams) < most and readers.has_started():
            (file, start, stop), reader = self._next, readers.idle.pop()
            self._streams.append(stream := _Stream(self._next, reader, deque()))
            self._next = next(self._pieces, None)
            name = self._source.names[file]
            path = name if is_remote(name) else os.path.abspath(name)
            task = Task(path, name, start, stop, self._stamps[file])
            with self._calling():
                reader.begin.remote(self._setting, task)
                stream.asked.extend(self._following(reader) for _ in range(_AHEAD))

    def _following(self, reader: Any) -> tuple[object, object]:
        note, batch = reader.next.options(num_returns=2).remote()
        return note, batch

    def _free(self, stream: _Stream) -> None:
        """The reader of this piece has read all that it was asked for."""
        if stream.reader is not None:
            self._readers.idle.append(stream.reader)
            stream.reader = None

    def _blocks_of(self, stream: _Stream) -> Iterator[tuple[reading.Span, reading.Parsed]]:
        piece, at, name = stream.piece, stream.piece.start, self._source.names[stream.piece.file]
        readers = self._readers
        while True:
            try:
                note_of, batch = stream.asked.popleft()
                readers.connection.wait([note_of, batch], count=2)
                with self._calling():
                    try:
                        note: Note = self._ray.get(note_of)
                    except self._ray.exceptions.RayTaskError as error:
                        raise DataError(f"a reader failed: {_first_line(error)}") from error
                    if stream.reader is not None and not note.ended:
                        stream.asked.append(self._following(stream.reader))
                if note.error:
                    raise DataError(note.error)
                if note.ended:
                    self._free(stream)
                    return
                with readers.connection.borrowed(batch) as packed:
                    for k, span in enumerate(note.spans):
                        yield self._positions.span(piece.file, *span), unpack(packed[k], self._arenas)
                        at = span[1]
                self._begin()
            except self._ray.exceptions.RayError:
                readers.losses += 1
                last = " (further losses are not reported)" if readers.losses == REPORTED else ""
                if readers.losses <= REPORTED:
                    readers.warn(
                        f"a reader of {name} was lost; this process reads the rest of its piece{last}"
                    )
                if stream.reader is not None:
                    readers.kill(stream.reader)
                    stream.reader = None
                yield from self._read_here(piece._replace(start=at))
                return

    def _read_here(self, piece: reading.Piece) -> Iterator[tuple[reading.Span, reading.Parsed]]:
        """What the learner reads itself."""
        for block, parsed in reading.read_piece(self._source, piece):
            yield self._positions.span(piece.file, block.offset, block.end, block.raw_position), parsed

    def close(self, patient: bool = True) -> None:
        """Stop reading; unless all is read, the readers are killed."""
        readers = self._readers
        if self._streams or self._next is not None:
            busy = (one.reader for one in self._streams if one.reader is not None)
            readers.kill(*busy, *readers.idle, *(one for one, _ in readers.starting))


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
