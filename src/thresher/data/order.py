"""The order in which a pass yields the rows of its source: as is, permuted, or through a shuffling buffer.

The order depends only on the seed and the number of the pass, not on how the source is split into chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import OF_VALUES, Chunk, StreamPosition
from thresher.data.errors import DataError
from thresher.data.report import Report
from thresher.data.source import Chunks, Source, SourceWrapper
from thresher.engine.compile.jit import kernel
from thresher.options.messages import mention
from thresher.options.synonyms import did_you_mean

_GROWTH = 1.25
CHUNK_ROWS, CHUNK_VALUES = 1 << 15, 1 << 18
"""Rows and values per chunk at most, unless one row has more values."""


class StoredRows:
    """Concatenated chunks: 12 bytes per non-zero and 16 per row, up to a quarter more while it grows.

    Places are not kept.
    """

    def __init__(self, room: int = 0) -> None:
        """`room`: bytes of the rows that are expected, of which those that are written take memory."""
        rows, values = room // 16, room // 12
        each: Any = (np.empty(count, np.float32) for count in (values, rows, rows))  # which can be resized
        self._arrays = Chunk(np.zeros(rows + 1, np.int64), np.empty(values, np.uint64), *each)
        self._count = 0
        """rows in use, and arrays with room for them"""

    def __len__(self) -> int:
        return self._count

    def add(self, chunk: Chunk) -> None:
        """Append a copy of all rows of `chunk`."""
        own, before, first = self._arrays, self._count, int(self._arrays.indptr[self._count])
        count, nnz = before + len(chunk), first + chunk.nnz
        if not before:
            given = chunk.extras().items()
            fresh: Any = {name: np.empty((len(own), *one.shape[1:]), one.dtype) for name, one in given}
            own = self._arrays = replace(own, **fresh)
        if chunk.rests is not None and own.rests is None:
            own = self._arrays = replace(own, rests=np.zeros(own.nnz, np.float32))
        if count > len(own) or nnz > own.nnz:
            wanted = (count, len(own)), (nnz, own.nnz)
            _resize(own, *(max(need, int(room * _GROWTH)) if need > room else room for need, room in wanted))
        own.indptr[before + 1 : count + 1] = chunk.indptr[1:] + first
        for name, array in own.arrays().items():
            if name != "indptr":
                part = array[first:nnz] if name in OF_VALUES else array[before:count]
                part[...] = 0 if (one := getattr(chunk, name)) is None else one
        self._count = count

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows (n,), in this order."""
        self._count, self._arrays = len(rows), self.chunk().take(rows)

    def trim(self) -> None:
        """Release unused memory."""
        _resize(self._arrays, self._count, int(self._arrays.indptr[self._count]))

    def chunk(self) -> Chunk:
        """All rows, as views."""
        return self._arrays.rows(0, self._count)

    def chunks(self, first: int = 0) -> Iterator[Chunk]:
        """The rows from row `first` on, as views, in chunks that do not depend on how the rows came.

        In a `StreamPosition`, offset and line both count rows.
        """
        for piece in filter(len, self._arrays.rows(first, self._count).pieces(CHUNK_VALUES, CHUNK_ROWS)):
            begin, first = first, first + len(piece)
            yield piece.at(StreamPosition(0, begin, begin), StreamPosition(0, first, first))


def _resize(arrays: Chunk, rows: int, values: int) -> None:
    """Resize in place, so that old and new arrays need not fit in memory together."""
    for name, array in arrays.arrays().items():
        length = values if name in OF_VALUES else rows + (name == "indptr")
        array.resize((length, *array.shape[1:]), refcheck=False)


class Order:
    """An order of rows: that of the source, unless a subclass has another."""

    spec = "as-is"
    """the order as written on the command line"""
    steady = True
    """whether every pass has the same order"""
    held = False
    """whether all rows are kept in memory, so that the source is read only once"""

    def over(self, source: Source, number: int) -> Source:
        """The source of pass `number` (from 1), given `source` in its own order."""
        return source


def make_order(spec: str, seed: int = 0) -> Order:
    """Parse ``as-is``, ``once``, ``every`` or ``buffer:N``; raises `DataError` for anything else."""
    name, _, size = spec.partition(":")
    if name == "buffer" and size.isdecimal() and int(size) > 0:
        return Shuffled(f"buffer:{int(size)}", seed, int(size))
    if spec in ("once", "every"):
        return Shuffled(spec, seed)
    if spec != "as-is":
        near = did_you_mean(spec, ("once", "every", "as-is", "buffer:N"))
        raise DataError(
            f"{mention('order')} must be as-is, once, every or buffer:N with N rows at least 1,"
            f" not '{spec}'{near}"
        )
    return Order()


class Shuffled(Order):
    """A random order: a permutation of all rows, or as they leave a buffer of `size` rows.

    The permutation is the same in every pass (``once``), or a new one each (``every``). The first pass reads
    the whole source before it yields a row. All passes take the rows from memory (see `StoredRows` for how
    much).

    Once a buffer is full, each new row replaces a random one, which is yielded. At the end the buffer is
    emptied in random order. So a row comes at most `size` places early, and every pass has a different order.
    The buffer uses memory for up to twice `size` rows, and briefly three times, since rows already yielded
    are cleared away only now and then.
    """

    def __init__(self, spec: str, seed: int, size: int = 0) -> None:
        self.spec, self.steady, self.held, self._seed, self._size = spec, spec == "once", not size, seed, size
        self._source: Source | None = None
        self._rows: tuple[StoredRows, Report] | None = None

    def over(self, source: Source, number: int) -> Source:
        """The rows of `source` in this order; a permutation is that of the first one passed."""
        if self.held:
            source = self._source = self._source or source
        chance = np.random.default_rng([self._seed % 2**64, 1 if self.steady else number])
        return _Ordered(source, partial(self._permute if self.held else self._mix, source, chance))

    def _permute(self, source: Source, chance: np.random.Generator) -> Iterator[tuple[Chunk, int]]:
        if self._rows is None:
            rows = StoredRows()
            with closing(source.chunks()) as chunks:
                for chunk in chunks:
                    rows.add(chunk)
            rows.trim()
            self._rows = rows, source.report
        rows, source.report = self._rows  # the report of reading them holds for every pass
        order = chance.permutation(len(rows))
        for first in range(0, len(order), CHUNK_ROWS):
            piece = order[first : first + CHUNK_ROWS]
            yield rows.chunk().take(piece), (source.total_bytes or 0) * (first + len(piece)) // len(order)

    def _mix(self, source: Source, chance: np.random.Generator) -> Iterator[tuple[Chunk, int]]:
        rows, slots = StoredRows(), np.empty(0, np.int64)
        with closing(source.chunks()) as chunks:
            for chunk in chunks:
                incoming = np.arange(len(rows), len(rows) + len(chunk))
                rows.add(chunk)
                filling = incoming[: self._size - len(slots)]
                slots, incoming = np.concatenate([slots, filling]), incoming[len(filling) :]
                if len(incoming):
                    # draw one double per row: whole numbers might depend on how many are drawn at a time
                    drawn = (chance.random(len(incoming)) * len(slots)).astype(np.int64)
                    outgoing = np.empty_like(incoming)
                    _exchange(slots, drawn, incoming, outgoing)
                    yield rows.chunk().take(outgoing), source.position_bytes
                if len(rows) > 2 * self._size:
                    rows.keep(slots)
                    slots = np.arange(len(slots))
        slots = chance.permutation(slots)
        for first in range(0, len(slots), CHUNK_ROWS):
            yield rows.chunk().take(slots[first : first + CHUNK_ROWS]), source.position_bytes


class _Ordered(SourceWrapper[Source]):
    """A source in another order. A `StreamPosition` counts the rows yielded."""

    position_bytes: int = 0

    def __init__(self, source: Source, shuffled: Callable[[], Iterator[tuple[Chunk, int]]]) -> None:
        """`shuffled`: the rows of a pass, and how many of the bytes of the source have been used so far."""
        super().__init__(source)
        self._shuffled = shuffled

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """One pass; rows before `start` are shuffled again and skipped."""
        done = 0
        for chunk, used in self._shuffled():
            self.position_bytes = used
            place, done = StreamPosition(0, done, done), done + len(chunk)
            if start is None or place >= start:
                yield chunk.at(place, StreamPosition(0, done, done))


@kernel
def _exchange(slots, drawn, incoming, outgoing):  # type: ignore[no-untyped-def]
    for i in range(len(incoming)):
        outgoing[i] = slots[drawn[i]]
        slots[drawn[i]] = incoming[i]
