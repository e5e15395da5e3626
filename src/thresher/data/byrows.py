"""Sources other than files, identified by the rows they yield."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from thresher.data.chunk import Chunk, Place
from thresher.data.files.content import Content, changed
from thresher.data.matrices import Matrix, mixed
from thresher.data.source import Through

_U1 = np.uint64(0x9E3779B97F4A7C15)
_MASK = (1 << 64) - 1


def identified(source: Any) -> Any:
    """`source` if it can identify its content, as file sources can; otherwise `source` in a `ByRows`."""
    return source if hasattr(source, "identity") or isinstance(source, ByRows) else ByRows(source)


class ByRows(Through):
    """A source whose content is identified by the number of its rows and the sum of their hashes.

    Each pass may yield the rows in a different order, as a query does, but they must be the same rows.
    """

    keep_hash = False
    """whether to hash what is read"""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._whole = False
        self.content: Sequence[Content] = ()
        """content of the longest pass so far; of all rows once a pass is complete"""
        self._missing: int | None = None
        """number of rows expected, until this pass has read them all; then None"""

    def expect(self, content: Sequence[Content], whole: bool, now: bool = False) -> None:
        """Expect the `content` that an earlier run read: all rows (`whole`), or the first ones."""
        self.keep_hash, self.content, self._whole = True, content, whole

    def confirm(self) -> None:
        """Raise `DataError` unless everything expected has been read."""
        if self._missing is not None:
            raise changed(self._source.names[0], self._missing, self._missing, "rows")

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """One pass; with `keep_hash`, raises `DataError` if its rows differ from those read before."""
        if not self.keep_hash:
            yield from self._source.chunks(start)
            return
        before, rows, total = [*self.content, Content(0, 0)][0], 0, 0
        self._missing = before.size or None
        with closing(self._source.chunks()) as chunks:
            for chunk in chunks:
                rows, total = rows + len(chunk), (total + _hash(chunk)) & _MASK
                if rows == before.size:
                    if total != before.hash:
                        raise changed(self._source.names[0], rows, rows, "rows")
                    self._missing = None
                if rows > before.size and not self._whole:
                    self.content = [Content(total, rows)]
                if start is None or (chunk.place is not None and chunk.place >= start):
                    yield chunk
        if rows < before.size or (self._whole and rows > before.size):
            raise changed(self._source.names[0], rows, before.size, "rows")
        self.content, self._whole = [Content(total, rows)], True


def _hash(chunk: Chunk) -> int:
    """The sum of the hashes of the rows of `chunk`."""
    matrix = Matrix(chunk.indptr, chunk.keys, chunk.values, chunk.labels, chunk.targets)
    weights = chunk.weights.view(np.uint32).astype(np.uint64)
    return int(mixed(matrix.hashes() ^ (weights * _U1)).sum(dtype=np.uint64))
