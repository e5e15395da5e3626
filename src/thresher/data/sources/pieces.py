"""Dividing data into pieces that can be read apart, so that together they give the blocks of one pass."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from thresher.data.chunk import Place
from thresher.data.errors import DataError
from thresher.data.files.blocks import TextBuffer
from thresher.data.files.content import ReadSoFar
from thresher.data.files.paths import called, is_stream, size_of
from thresher.data.sources.reader import Parsed

if TYPE_CHECKING:
    from thresher.data.files.content import Watches
    from thresher.data.sources.parsed import TextSource

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


class RemoteBlocks(Protocol):
    """The parsed blocks of a pass, in order."""

    def __iter__(self) -> Iterator[tuple[Span, Parsed]]:
        """All blocks; the error of a block is raised in its turn."""
        ...

    def close(self, patient: bool = True) -> None:
        """Stop reading."""
        ...


class Readers(Protocol):
    """Other processes that read and parse."""

    def prepare(self) -> None:
        """Start them, so that a pass can begin at once."""
        ...

    def read(self, source: TextSource, start: Place, watches: Watches | None) -> RemoteBlocks:
        """Begin a pass over `source`, or the rest of one from `start` on."""
        ...


_current: ContextVar[Readers | None] = ContextVar("readers", default=None)


def current_readers() -> Readers | None:
    """The readers that sources opened here will use; None: threads of this process."""
    return _current.get()


def prepare_readers() -> float:
    """Start the readers that sources opened here will use, if any; the seconds that took."""
    started = time.perf_counter()
    if (readers := current_readers()) is not None:
        readers.prepare()
    return time.perf_counter() - started


def readers_for(names: Sequence[str]) -> Readers | None:
    """`current_readers`, for these files; `DataError` if one of them can be read by this process only."""
    readers = current_readers()
    once = next(filter(is_stream, names), None) if readers is not None else None
    if once is not None:
        raise DataError(f"{called(once)}: other processes cannot read standard input or a pipe; give a file")
    return readers


@contextmanager
def reading_with(readers: Readers | None) -> Iterator[None]:
    """Within this block, the files that are opened are read by `readers`; None: as outside the block."""
    before = _current.set(readers or _current.get())
    try:
        yield
    finally:
        _current.reset(before)


def pieces_of(source: TextSource, start: Place) -> Iterator[Piece]:
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
    blocks = source.blocks(Place(piece.file, piece.start, 0))
    buffer, parser = TextBuffer(source.block_bytes), source.parser()
    with closing(blocks):
        while (block := blocks.fill(buffer)) is not None:
            if block.file != piece.file or (piece.stop is not None and block.offset >= piece.stop):
                return
            yield block, parser.parse(block)
            if block.end == piece.stop:
                return


class Positions:
    """The spans of blocks in their source, from their places in their own files."""

    def __init__(self, names: Sequence[str], watches: Watches | None) -> None:
        self._names, self._watches = names, watches
        self._file, self._before = -1, 0

    def span(self, file: int, offset: int, end: int, position: int) -> Span:
        """The span of a block of `file`, of which `position` bytes as stored had been read."""
        self._begin(file)
        so_far = self._watches.so_far() if self._watches else None
        return Span(file, offset, end, self._before + position, so_far)

    def finish(self) -> None:
        """End the pass."""
        self._begin(len(self._names) - 1)

    def _begin(self, file: int) -> None:
        while self._file < file:
            self._before += (size_of(self._names[self._file]) or 0) if self._file >= 0 else 0
            self._file += 1
            if self._watches is not None and self._file == file:
                self._watches.open(file)


def stamp_of(name: str) -> tuple[int, int] | None:
    """Size and time of change of a local file, which are the same on every machine that shares it."""
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
