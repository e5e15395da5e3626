"""Shards: the rows of the data in a fixed number of parts, and what each part adds to a parallel step.

Which shard a row is in depends on its number alone, and sums over rows are sums over shards in their order.
So the result does not depend on how many threads or processes hold the shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.batch import kernels
from thresher.batch.csc import Columns, in_columns
from thresher.data.chunk import Chunk, concat
from thresher.data.errors import OneLineError

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

SHARDS = 16
_STRIPE = 256
"""Rows in a row of one shard: row r is in shard (r // 256) mod 16"""


class LostWorkerError(OneLineError):
    """A process that held shards, or its machine, is gone, and its rows with it."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__("a worker was lost, and its rows with it")
        self.warn = warn


class Share(NamedTuple):
    """What a shard adds to the chosen columns."""

    loss: float
    """sum of the losses of its rows"""
    up: F64
    down: F64
    """(k,) masses of those of the chosen columns that it has"""


class Facts(NamedTuple):
    """What is known of the labels of a shard, and of its margins."""

    positive: bool
    negative: bool
    """whether it has such a label, of an example that counts"""
    separated: bool
    """whether all these examples are on the right side of the margin"""


class Shard:
    """Some of the rows, by feature, with their margins.

    Like `Solver`, it holds y times the margin, the mass, and loss times importance of each of its examples.
    """

    def __init__(self, chunks: Sequence[Chunk], intercept: bool) -> None:
        self.columns: Columns = in_columns(concat(chunks), intercept)
        self._z, self._before, self._q, self._value = (np.zeros(len(self.columns.labels)) for _ in range(4))

    def begin(self, loss: Any, keys: NDArray[np.uint64]) -> I64:
        """Compute all masses, with no weights; returns which of the columns of all `keys` it has."""
        self._loss = loss
        own = self.columns
        self._numbers = np.searchsorted(keys, own.keys)
        if own.intercept:
            self._numbers = np.append(self._numbers, len(keys))
        self._weigh()
        return self._numbers

    def choose(self, chosen: I64) -> tuple[I64, F64]:
        """Choose columns, ascending: the places among them of its own, and how wide a step of all makes rows.

        The width of a column is the largest sum of |x| of all chosen columns in any of its rows.
        """
        _, places, own = np.intersect1d(chosen, self._numbers, assume_unique=True, return_indices=True)
        self._places, self._chosen, c = places, own, self.columns
        sums, widths = np.zeros(len(self._z)), np.zeros(len(own))
        kernels.widen(own, c.starts, c.rows, c.values, sums)
        kernels.widest(own, c.starts, c.rows, c.values, sums, widths)
        return places, widths

    def measure(self, whole: bool) -> Share:
        """The loss, and the masses of its chosen columns, or of all it has."""
        c = self.columns
        chosen = np.arange(len(self._numbers)) if whole else self._chosen
        up, down = np.zeros(len(chosen)), np.zeros(len(chosen))
        kernels.add_up(chosen, c.starts, c.rows, c.values, self._q, up, down)
        return Share(self._sum, up, down)

    def move(self, steps: F64, again: bool) -> Share:
        """Move the chosen columns by `steps`, `again` instead of the last move; returns what is then so."""
        c, source, target = self.columns, self._before, self._z
        if not again:
            source, target = target, source
        target[:] = source
        kernels.shift_rows(self._chosen, steps[self._places], c.starts, c.rows, c.values, self._z)
        self._weigh()
        return self.measure(False)

    def facts(self) -> Facts:
        """What is known of its examples."""
        counts = self.columns.weights > 0
        labels = self.columns.labels[counts]
        return Facts(bool((labels > 0).any()), bool((labels < 0).any()), bool((self._z[counts] > 0).all()))

    def _weigh(self) -> None:
        c, compiled = self.columns, kernels.weigh.for_parts(self._loss)
        examples = c.labels, c.weights, self._z, self._q, self._value
        self._sum = float(compiled(self._loss, 0, len(self._z), *examples))


class Holder(Protocol):
    """What holds the shards: threads of this process, or other processes."""

    def add(self, number: int, chunk: Chunk) -> None:
        """Add rows to a shard."""
        ...

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every shard; the results are in the order of the shards."""
        ...

    def build(self, intercept: bool) -> list[tuple[NDArray[np.uint64], int, float]]:
        """Make the shards of the rows added: their keys, numbers of rows, and lowest labels."""
        ...

    def close(self) -> None:
        """Let the shards go."""
        ...


class Group:
    """Some of the shards, in one process."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._chunks: dict[int, list[Chunk]] = {number: [] for number in numbers}
        self.shards: list[Shard] = []

    def add(self, number: int, chunk: Chunk) -> None:
        """Add rows to a shard."""
        self._chunks[number].append(chunk)

    def build(self, intercept: bool) -> list[tuple[NDArray[np.uint64], int, float]]:
        """Make the shards; see `Holder`."""
        self.shards = [Shard(self._chunks.pop(number), intercept) for number in list(self._chunks)]
        return [(one.columns.keys, len(one.columns.labels), one.columns.lowest_label) for one in self.shards]

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of each shard."""
        return [getattr(one, method)(*arguments) for one in self.shards]


class Here:
    """Holds all shards in this process; `threads` work on them."""

    def __init__(self, threads: int) -> None:
        self._group = Group(range(SHARDS))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.add, self.build = self._group.add, self._group.build

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every shard; see `Holder`."""
        if self._pool is None:
            return self._group.call(method, *arguments)
        return list(self._pool.map(lambda one: getattr(one, method)(*arguments), self._group.shards))

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def stripes(first: int, chunk: Chunk) -> Iterator[tuple[int, Chunk]]:
    """The rows of a chunk, whose first row has the number `first`, by shard."""
    shards = np.arange(first, first + len(chunk)) // _STRIPE % SHARDS
    for number in np.unique(shards).tolist():
        yield number, chunk.take(shards == number)
