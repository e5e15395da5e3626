"""What a format makes of a block of text, and the memory it puts it in."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.errors import BadLine
from thresher.data.files.blocks import Block
from thresher.data.labels import Domain

FAIL, SKIP, QUARANTINE = "fail", "skip", "quarantine"
"""What to do about a bad line."""


class Tally(NamedTuple):
    """Lines of a block by what came of them; ``lines = examples + blank + skipped``."""

    lines: int = 0
    examples: int = 0
    blank: int = 0
    """lines with nothing on them but blanks or a comment"""
    skipped: int = 0
    merged: int = 0
    """examples whose features were repeated, or (where order is worth a word) out of order"""


class Reading(NamedTuple):
    """What a parser is made for, beside its layout."""

    domain: Domain
    """which labels there may be"""
    on_error: str
    arenas: Arenas
    namer: Any = None
    """a `Namer` to be told the names of features, or None"""

    @property
    def naming(self) -> Any:
        """What compiled code tells names to, or None."""
        return self.namer and self.namer.table

    def take_names(self, spaces: Sequence[str] = ()) -> None:
        """Have the namer take what it was told of a file with the columns `spaces`."""
        if self.namer is not None:
            self.namer.take(spaces)


class Parsed(NamedTuple):
    """A block read: its examples, its tally, and what was bad about it.

    `bad` are the first bad lines (under `FAIL` only one, and the rest of the block is not read),
    with lines counted from the start of the block and no file; `rejected` all bad lines byte for
    byte (under `QUARANTINE`).
    """

    chunk: Chunk
    tally: Tally
    bad: list[BadLine]
    rejected: bytes
    uncounted: int = 0
    """lines that the tally does not count: those that begin inside of a row, rows that a filter leaves out"""


class Parser(Protocol):
    """A format. One instance serves one thread."""

    def parse(self, block: Block) -> Parsed:
        """The examples of a block."""
        ...


class Columns(NamedTuple):
    """Room for the rows of a chunk."""

    indptr: NDArray[np.int64]
    keys: NDArray[np.uint64]
    values: NDArray[np.float32]
    labels: NDArray[np.float32]
    weights: NDArray[np.float32]
    targets: NDArray[np.float32] | None

    def chunk(self, rows: int, nnz: int) -> Chunk:
        """The first `rows` rows with `nnz` numbers, as views."""
        return Chunk(
            self.indptr[: rows + 1],
            self.keys[:nnz],
            self.values[:nnz],
            self.labels[:rows],
            self.weights[:rows],
            targets=self.targets[:rows] if self.targets is not None and self.targets.size else None,
        )


class Arenas:
    """Memory for columns, used again when the last array in it is gone.

    Fresh memory costs a page fault every 4 kB, which for the chunks of a stream is as much time as
    parsing. An anonymous map is backed by pages only where it is written (and by small ones), so
    room for the worst case is free. An arena comes back when nothing refers to it any more, whoever
    holds the arrays and wherever.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._free: list[mmap.mmap] = []

    def columns(self, rows: int, nnz: int, width: int | None = None) -> Columns:
        """Uninitialised columns with room for `rows` rows, `nnz` numbers, and `width` targets a row."""
        cells = rows * (width or 0)
        memory = self._take(8 * (rows + 1) + 12 * nnz + 8 * rows + 4 * cells)
        root = np.frombuffer(memory, np.uint8)
        weakref.finalize(root, self._give, memory).atexit = False
        spans: list[tuple[int, Any]] = [(rows + 1, np.int64), (nnz, np.uint64)]
        spans += [(nnz, np.float32), (rows, np.float32), (rows, np.float32), (cells, np.float32)]
        arrays, at = list[Any](), 0
        for length, kind in spans:
            size = length * np.dtype(kind).itemsize
            arrays.append(root[at : at + size].view(kind))
            at += size
        arrays[-1] = None if width is None else arrays[-1].reshape(rows, width)
        return Columns(*arrays)

    def roomier(self, columns: Columns, rows: int, nnz: int) -> Columns:
        """Columns with room for twice the numbers, and the first rows and numbers of `columns`."""
        width = None if columns.targets is None else columns.targets.shape[1]
        more = self.columns(len(columns.labels), 2 * len(columns.keys), width)
        for new, old, used in zip(more, columns, (rows + 1, nnz, nnz, rows, rows, rows + 1), strict=True):
            if new is not None and old is not None:
                new[:used] = old[:used]
        return more

    def _take(self, need: int) -> mmap.mmap:
        while self._free:
            try:
                memory = self._free.pop()
            except IndexError:  # another thread took the last one
                break
            if len(memory) >= need:
                return memory
        return mmap.mmap(-1, need)

    def _give(self, memory: mmap.mmap) -> None:
        if len(self._free) < self._keep:
            self._free.append(memory)
