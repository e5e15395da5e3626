"""Reading and parsing blocks with several threads, in order; what parsing yields, and the memory for it.

Data are divided into pieces that other processes can read, and that together give the blocks of one pass.
"""

from __future__ import annotations

import mmap
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, StreamPosition
from thresher.data.errors import BadLine
from thresher.data.files.blocks import Block, BlockReader, TextBuffer
from thresher.data.files.content import ReadSoFar
from thresher.data.files.paths import size_of
from thresher.data.labels import Domain
from thresher.data.layout import AnyLayout
from thresher.data.report import FIRST_BAD

if TYPE_CHECKING:
    from thresher.data.files.content import Watches
    from thresher.data.sources.parsed import TextSource

T = TypeVar("T")
TAG = "tag"
"""What identifies a row of VW text."""
FAIL, SKIP, QUARANTINE = "fail", "skip", "quarantine"
"""What to do with a bad line."""


class LineTally(NamedTuple):
    """Counts of the lines of a block; ``lines = examples + blank + skipped``."""

    lines: int = 0
    examples: int = 0
    blank: int = 0
    """lines with only white space or a comment"""
    skipped: int = 0
    merged: int = 0
    """examples with repeated features, or (in a format that should be ordered) with features out of order"""


class Reading(NamedTuple):
    """Settings of a parser besides its layout."""

    domain: Domain
    """which labels are allowed"""
    on_error: str
    arenas: Arenas
    namer: Any = None
    """a `Namer` that receives the names of features, or None"""
    ids: str = ""
    """the column (in VW text `TAG`) that identifies rows; empty: ids are not read"""
    sliced: Sequence[str] = ()
    """columns whose cells are wanted beside the rows"""
    described: int = FIRST_BAD
    """how many bad lines of a block are described"""

    @property
    def naming(self) -> Any:
        """The table in which compiled code enters names, or None."""
        return self.namer and self.namer.table


class RowsAsked(NamedTuple):
    """Which rows of files are read, and what is wanted of them: the options of `open_source`."""

    unlabelled: bool = False
    where: str = ""
    ids: str = ""
    marked: str = ""
    live: bool = False


class OpenOptions(TypedDict, total=False):
    """How data are read, as `open_source` takes it."""

    layout: AnyLayout | None
    on_error: str
    threads: int | None
    block_bytes: int | None
    unlabelled: bool
    where: str
    ids: str
    marked: str
    live: bool


def fill_gaps(good: Sequence[T], gaps: Iterable[int], bad: Iterable[T]) -> list[T]:
    """What there is for each example, with one of `bad` for each gap, which comes after so many examples."""
    found, before = list[T](), 0
    for gap, one in zip(gaps, bad, strict=False):
        found += [*good[before:gap], one]
        before = gap
    return [*found, *good[before:]]


class Parsed(NamedTuple):
    """What is read at a time, such as a parsed block: its examples, its tally, and its bad lines.

    `bad` are the first bad lines, as many as are to be described (with `FAIL` only one; the rest of the block
    is not parsed), with lines counted from the start of the block, and without a file. `rejected` are all bad
    lines byte for byte (with `QUARANTINE`).
    """

    chunk: Chunk
    tally: LineTally = LineTally()
    bad: Sequence[BadLine] = ()
    rejected: bytes = b""
    excluded: int = 0
    """lines that a filter leaves out, which are not in the tally"""
    noticed: tuple[tuple[str, str, int, str], ...] = ()
    """what the block shows of columns: see `report.Noticed`; the line from the start of the block, or 0"""
    gaps: Sequence[int] = ()
    """for each skipped row, the number of examples before it in the block"""
    ids: Sequence[str] | None = None
    """the ids of all rows in order, examples and skipped ones, if `Reading.ids` asks for them"""
    cells: Sequence[Sequence[str]] = ()
    """for each column of `Reading.sliced`, its cells in the same rows; empty texts where there is none"""

    def in_place(self, good: Sequence[T], skipped: T) -> list[T]:
        """What there is for each example, with `skipped` for each row skipped among them."""
        return fill_gaps(good, self.gaps, repeat(skipped))

    def of_examples(self, texts: Sequence[T]) -> Sequence[T]:
        """Of texts of all rows, those of the examples."""
        count = len(self.chunk)
        if not self.gaps:
            return texts[:count]
        skipped = {before + k for k, before in enumerate(self.gaps)}
        return [text for row, text in enumerate(texts) if row not in skipped][:count]

    def with_cells(self, chunk: Chunk) -> Chunk:
        """`chunk`, which has the examples, with their cells, if any are wanted."""
        if not self.cells:
            return chunk
        cells = np.empty((len(chunk), len(self.cells)), object)
        for k, column in enumerate(self.cells):
            cells[:, k] = self.of_examples(column)
        return replace(chunk, cells=cells)


class Parser(Protocol):
    """The parser of a format. Each thread needs its own."""

    def parse(self, block: Block) -> Parsed:
        """Parse the examples of a block."""
        ...


_TYPES = np.int64, np.uint64, *5 * (np.float32,)


class RowArrays(NamedTuple):
    """Arrays for the rows of a chunk."""

    indptr: NDArray[np.int64]
    keys: NDArray[np.uint64]
    values: NDArray[np.float32]
    labels: NDArray[np.float32]
    weights: NDArray[np.float32]
    offsets: NDArray[np.float32]
    """empty unless rows have offsets"""
    targets: NDArray[np.float32] | None

    def chunk(self, rows: int, nnz: int) -> Chunk:
        """The first `rows` rows, with `nnz` stored values, as views."""
        return Chunk(
            self.indptr[: rows + 1],
            self.keys[:nnz],
            self.values[:nnz],
            self.labels[:rows],
            self.weights[:rows],
            targets=self.targets[:rows] if self.targets is not None and self.targets.size else None,
            offsets=self.offsets[:rows] if self.offsets.size else None,
        )


_SMALL = 1 << 16
"""Bytes below which fresh memory costs less than an arena"""


class Arenas:
    """Memory for columns, reused once the last array in it has been freed.

    Fresh memory costs a page fault every 4 kB, which for the chunks of a stream takes as long as parsing. An
    anonymous map gets (small) pages only where it is written, so room for the worst case costs nothing. An
    arena returns to the pool when nothing refers to its arrays any more.
    """

    def __init__(self, keep: int) -> None:
        """`keep`: how many pieces of memory that are free."""
        self._free = deque[mmap.mmap](maxlen=keep)

    def columns(self, rows: int, nnz: int, width: int | None = None, shifted: bool = False) -> RowArrays:
        """Uninitialised columns for `rows` rows, `nnz` values, `width` targets per row; offsets if `shifted`.

        They are one after the other in one piece of memory, unless they are small.
        """
        cells, shifts, at, arrays = rows * (width or 0), (rows + 1) * shifted, 0, list[Any]()
        root = self._memory(8 * (rows + 1) + 12 * nnz + 8 * rows + 4 * (shifts + cells))
        for length, kind in zip((rows + 1, nnz, nnz, rows, rows, shifts, cells), _TYPES, strict=True):
            arrays.append(np.empty(length, kind) if root is None else np.ndarray(length, kind, root, at))
            at += arrays[-1].nbytes
        arrays[-1] = None if width is None else arrays[-1].reshape(rows, width)
        return RowArrays(*arrays)

    def _memory(self, need: int) -> NDArray[np.uint8] | None:
        if need < _SMALL:
            return None
        memory = None
        while memory is None or len(memory) < need:
            try:
                memory = self._free.pop()
            except IndexError:  # there is none, or another thread took the last one
                memory = mmap.mmap(-1, need)
        root = np.frombuffer(memory, np.uint8)
        weakref.finalize(root, self._free.append, memory).atexit = False
        return root

    def roomier(self, columns: RowArrays, rows: int, nnz: int) -> RowArrays:
        """Columns for twice as many values, with a copy of the first `rows` rows and `nnz` values."""
        width = None if columns.targets is None else columns.targets.shape[1]
        more = self.columns(len(columns.labels), 2 * len(columns.keys), width, columns.offsets.size > 0)
        for new, old, used in zip(more, columns, (rows + 1, nnz, nnz, *4 * (rows + 1,)), strict=True):
            if new is not None and old is not None:
                new[:used] = old[:used]
        return more


_AHEAD = 2
"""Blocks in progress or waiting, in addition to one per thread."""
_PATIENCE = 0.2


def default_threads() -> int:
    """One thread per processor that this process may use, at most four."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(4, usable)


class Pipeline:
    """One pass over the blocks of a reader.

    Each thread in turn takes the next block under a lock, which serializes reading and decompressing, then
    parses it in parallel with the others while its text is warm in the cache. At most ``threads + 2`` parsed
    blocks wait, in order. If `live`, a block ends where a stream pauses, unless as many blocks as there are
    threads are being parsed or used: so a fast stream is read in large blocks, and a slow one row by row.
    With no threads, all is done in that of the caller. If blocks wait, `finder` looks up their keys.
    """

    def __init__(
        self,
        blocks: BlockReader,
        parser: Callable[[], Parser],
        threads: int,
        size: int,
        live: bool = False,
        finder: Callable[[Chunk], Chunk] | None = None,
    ) -> None:
        self._blocks, self._finder = blocks, finder
        self._busy = self.has_enough if live else None
        self._taken = self._used = 0
        self._parser, self._size, self._count = parser, size, threads
        self._turn = threading.Lock()
        self._room = threading.Semaphore(threads + _AHEAD)
        self._waiting: queue.SimpleQueue[Future[tuple[Block, Parsed] | None]] = queue.SimpleQueue()
        self._stopped = False
        self._threads = list[threading.Thread]()

    def _work(self, parser: Parser) -> None:
        buffer = None
        while True:
            self._room.acquire()
            place: Future[tuple[Block, Parsed] | None] = Future()
            try:
                with self._turn:
                    if self._stopped:
                        return
                    try:
                        buffer = buffer or TextBuffer(self._size)
                        block = self._blocks.fill(buffer, self._busy)
                    finally:
                        self._waiting.put(place)
                    self._taken += block is not None
                if block is None:
                    self._stop()
                    place.set_result(None)
                    return
                parsed, behind = parser.parse(block), self._taken - self._used > self._count
                if behind and self._finder is not None:
                    parsed = parsed._replace(chunk=self._finder(parsed.chunk))
                place.set_result((block, parsed))
            except Exception as error:  # noqa: BLE001 raised again in the thread that uses the chunks
                self._stop()
                place.set_exception(error)
                return

    def has_enough(self) -> bool:
        """Whether each thread has a block that is being parsed, or is parsed and not used yet."""
        return self._taken - self._used >= self._count and not self._stopped

    def _stop(self) -> None:
        self._stopped = True
        self._room.release(max(self._count, 1))

    def __iter__(self) -> Iterator[tuple[Block, Parsed]]:
        """All blocks in order; the error of a block is raised in its turn."""
        if not self._count:
            buffer, parser = TextBuffer(self._size), self._parser()
            while (block := self._blocks.fill(buffer, self._busy)) is not None:
                yield block, parser.parse(block)
            return
        for k in range(self._count):
            given, name = (self._parser(),), f"thresher-reader-{k}"
            self._threads.append(threading.Thread(target=self._work, args=given, name=name, daemon=True))
            self._threads[-1].start()
        while (done := self._waiting.get().result()) is not None:
            self._room.release()
            yield done
            self._used += 1

    def close(self, patient: bool = True) -> None:
        """Stop the threads and close the file. If not `patient`, abandon a thread that is stuck in a read."""
        self._stop()
        if isinstance(self._blocks, BlockReader):  # not batches
            self._blocks.stop()
        for thread in self._threads:
            thread.join(None if patient else _PATIENCE)
        if not any(thread.is_alive() for thread in self._threads):
            self._blocks.close()


PIECE_BYTES, PIECE_ROWS = 16 << 20, 1 << 17
"""Least size of a piece, in the unit of the format, unless a file ends earlier."""


class Span(NamedTuple):
    """Where a parsed block lies in its source; as in `files.blocks.Block`."""

    file: int
    offset: int
    end: int
    raw_position: int
    so_far: ReadSoFar | None = None


class Piece(NamedTuple):
    """Part of a file, in the unit of its format."""

    file: int
    start: int
    stop: int | None
    """where the next piece begins; None: the piece goes on to the end of the file"""


current_readers: ContextVar[Any] = ContextVar("readers", default=None)
"""Other processes that read and parse for sources opened here; None: threads of this process.

``prepare()`` starts them, so that a pass can begin at once. ``read(source, start, watches)`` begins a pass
over a `TextSource`, or the rest of one: it returns the parsed blocks in order, as a `Pipeline` does, but with
a `Span` for each block."""


def prepare_readers() -> float:
    """Start the readers that sources opened here will use, if any; the seconds that took."""
    started = time.perf_counter()
    if (readers := current_readers.get()) is not None:
        readers.prepare()
    return time.perf_counter() - started


def pieces_of(source: TextSource, start: StreamPosition) -> Iterator[Piece]:
    """The pieces of the rest of a pass, in order; found one by one, as they are needed."""
    least = PIECE_ROWS if source.counts_rows else PIECE_BYTES
    for file in range(start.file, len(source.names)):
        at = start.offset if file == start.file else 0
        for cut in source.cuts(file, at):
            if cut - at >= least:
                yield Piece(file, at, cut)
                at = cut
        yield Piece(file, at, None)


def read_piece(source: TextSource, piece: Piece) -> Iterator[tuple[Any, Parsed]]:
    """The blocks of a piece, and what they hold."""
    blocks = source.blocks(StreamPosition(piece.file, piece.start, 0))
    buffer, parser = TextBuffer(source.block_bytes), source.parser()
    with closing(blocks):
        while (block := blocks.fill(buffer)) is not None:
            if block.file != piece.file or (piece.stop is not None and block.offset >= piece.stop):
                return
            yield block, parser.parse(block)
            if block.end == piece.stop:
                return


@dataclass
class Positions:
    """The spans of blocks in their source, from their places in their own files."""

    names: Sequence[str]
    watches: Watches | None
    file: int = -1
    before: int = 0
    """bytes of the files before"""

    def span(self, file: int, offset: int, end: int, position: int) -> Span:
        """The span of a block of `file`, of which `position` bytes as stored had been read."""
        self.begin(file)
        so_far = self.watches.so_far() if self.watches else None
        return Span(file, offset, end, self.before + position, so_far)

    def begin(self, file: int) -> None:
        """Begin a file, and those before it; the last one at the end of a pass."""
        while self.file < file:
            self.before += (size_of(self.names[self.file]) or 0) if self.file >= 0 else 0
            self.file += 1
            if self.watches is not None and self.file == file:
                self.watches.open(file)


def stamp_of(name: str) -> tuple[int, int] | None:
    """Size and time of change of a local file, which are the same on every machine that shares it."""
    with suppress(OSError):
        status = os.stat(name)
        return status.st_size, status.st_mtime_ns
    return None
