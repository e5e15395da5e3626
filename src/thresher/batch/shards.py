"""All examples of a source in memory, stored by feature: as a whole, or in shards, here or through Ray.

Shards are the rows of the data in a fixed number of parts; each adds its part to a parallel step.

Which shard a row is in depends on its number alone, and sums over rows are sums over shards in their order.
So the result does not depend on how many threads or processes hold the shards.

Row r is in shard floor(r / 256) mod 16. Only the masses and steps of features pass between shard and solver,
so shards can be in other processes, and the same code serves threads and workers. Before, threads shared the
columns, and each row's margin was the sum over 16 blocks of columns, in 16 buffers of a double per row. On
RCV1-CCAT with one thread shards take 1.07 (logistic) to 1.2 (exponential) times as long as that, with two
threads 1.06 and 0.85 times, in the same number of sweeps.

A lost worker takes its rows and margins with it. Margins are sums of all steps so far, so replaying them
costs as much as starting again, which needs no code of its own: after a loss the data are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.batch import descent, kernels
from thresher.cluster.reader import difference, versions
from thresher.data.chunk import Chunk, concat
from thresher.data.errors import DataError, OneLineError
from thresher.data.source import Source
from thresher.engine.compile.jit import kernel

_SPARSE = 4
"""Keys are numbered by a lookup table instead of sorting, up to this many times the stored values."""


@dataclass(frozen=True, slots=True, eq=False)
class FeatureColumns:
    """n examples with d features in compressed columns; an intercept, if any, is column d.

    Rows ascend within a column.
    """

    keys: NDArray[np.uint64]
    """(d,) feature keys, ascending"""
    starts: NDArray[np.int64]
    """column j is ``rows[starts[j]:starts[j + 1]]``"""
    rows: NDArray[np.int32]
    """(nnz,) index of the example"""
    values: NDArray[np.float32]
    """(nnz,)"""
    labels: NDArray[np.float64]
    """(n,)"""
    weights: NDArray[np.float64]
    """(n,) importance weights"""
    base: NDArray[np.float64]
    """(n,) what is added to the margins: see `Chunk.base`"""

    @property
    def intercept(self) -> bool:
        """Whether there is a column for the intercept."""
        return len(self.starts) == len(self.keys) + 2


def rows_of(source: Source) -> Chunk:
    """All rows of a pass, also those of importance 0; raises the errors of the source."""
    return concat([concat([chunk]) for chunk in source.chunks()])


def columns_of(source: Source, intercept: bool) -> FeatureColumns:
    """Read a whole pass of `source`, without rows of importance 0.

    Takes 24 bytes per stored value at the peak and 8 afterwards. Raises the errors of the source, and
    OverflowError for more than 2**31 - 1 examples.
    """
    return in_columns(rows_of(source).counting(), intercept)


def in_columns(whole: Chunk, intercept: bool) -> FeatureColumns:
    """The examples of a chunk by feature; OverflowError for more than 2**31 - 1."""
    if len(whole) > np.iinfo(np.int32).max:
        raise OverflowError(f"{len(whole):,} examples: the batch solver takes at most 2**31 - 1")
    keys, column = _numbered(whole.keys)
    counts = np.bincount(column, minlength=len(keys))
    if intercept:
        counts = np.append(counts, len(whole))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    _transpose(whole.indptr, column, whole.values, starts[:-1].copy(), rows, values)
    if intercept:
        rows[starts[-2] :], values[starts[-2] :] = np.arange(len(whole)), 1.0
    labels, weights = whole.labels.astype(np.float64), whole.weights.astype(np.float64)
    return FeatureColumns(keys, starts, rows, values, labels, weights, whole.base())


def _numbered(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The distinct keys, ascending, and the index of each of `keys` among them."""
    top = int(keys.max(initial=0))
    if top >= _SPARSE * (len(keys) + 1024):
        different, number = np.unique(keys, return_inverse=True)
        return different, number.astype(np.int32)
    met = np.zeros(top + 1, np.bool_)
    met[keys] = True
    place = np.cumsum(met, dtype=np.int32)[keys]
    place -= 1
    return np.flatnonzero(met).astype(np.uint64), place


@kernel
def _transpose(
    indptr: NDArray[np.int64],
    column: NDArray[np.int32],
    given: NDArray[np.float32],
    ends: NDArray[np.int64],
    rows: NDArray[np.int32],
    values: NDArray[np.float32],
) -> None:
    """Append every value to its column; `ends` holds the next free position of each column."""
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            place = ends[column[p]]
            ends[column[p]] = place + 1
            rows[place] = i
            values[place] = given[p]


F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

SHARDS = 16
STRIPE = 256
"""Rows in a row of one shard: row r is in shard (r // 256) mod 16"""


class LostWorkerError(OneLineError):
    """A process that held shards, or its machine, is gone, and its rows with it."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__("a worker was lost, and its rows with it")
        self.warn = warn


class Contribution(NamedTuple):
    """What a shard adds to the chosen columns."""

    loss: float
    """sum of the losses of its rows"""
    up: F64
    down: F64
    """(k,) masses of those of the chosen columns that it has"""


class Shard:
    """Some of the rows, by feature, with their margins.

    It holds the margin, and the slope of the loss times importance, of each of its examples.
    """

    def __init__(self, chunks: Sequence[Chunk], intercept: bool) -> None:
        self.columns: FeatureColumns = in_columns(concat(chunks), intercept)
        self._z, self._before, self._slopes = (np.zeros(len(self.columns.labels)) for _ in range(3))

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
        kernels.widest(own, c.starts, c.rows, c.values, sums, widths)
        return places, widths

    def measure(self, whole: bool) -> Contribution:
        """The loss, and the masses of its chosen columns, or of all it has."""
        c = self.columns
        chosen = np.arange(len(self._numbers)) if whole else self._chosen
        up, down = np.zeros(len(chosen)), np.zeros(len(chosen))
        kernels.add_up(chosen, c.starts, c.rows, c.values, self._slopes, up, down)
        return Contribution(self._sum, up, down)

    def move(self, steps: F64, again: bool) -> Contribution:
        """Move the chosen columns by `steps`, `again` instead of the last move; returns what is then so."""
        c, source, target = self.columns, self._before, self._z
        if not again:
            source, target = target, source
        target[:] = source
        descent.shift_rows(self._chosen, steps[self._places], c.starts, c.rows, c.values, self._z)
        self._weigh()
        return self.measure(False)

    def facts(self) -> tuple[bool, bool, bool]:
        """Whether there is a positive label, a negative one, and no example on the wrong side of the margin.

        Examples that do not count are ignored.
        """
        counts = self.columns.weights > 0
        labels = self.columns.labels[counts]
        separated = (self._z[counts] * np.where(labels > 0, 1, -1) > 0).all()
        return bool((labels > 0).any()), bool((labels <= 0).any()), bool(separated)

    def _weigh(self) -> None:
        c, compiled = self.columns, kernels.weigh.for_parts(self._loss)
        self._sum = float(compiled(self._loss, c.labels, c.weights, self._z, self._slopes))


class Worker:
    """Some of the shards, in one process."""

    difference = staticmethod(difference)
    """How versions here differ from those of the learner; empty if they do not"""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._chunks: dict[int, list[Chunk]] = {number: [] for number in numbers}
        self.shards: list[Shard] = []

    def add(self, number: int, chunk: Chunk) -> None:
        """Add rows to a shard."""
        self._chunks[number].append(chunk)

    def build(self, intercept: bool) -> list[tuple[NDArray[np.uint64], int, float]]:
        """Make the shards of the rows added: their keys, numbers of rows, and lowest labels."""
        self.shards = [Shard(self._chunks.pop(number), intercept) for number in list(self._chunks)]
        return [
            (one.columns.keys, len(one.columns.labels), float(one.columns.labels.min(initial=0.0)))
            for one in self.shards
        ]

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of each shard."""
        return [getattr(one, method)(*arguments) for one in self.shards]


class Here(Worker):
    """Holds all shards in this process; `threads` work on them."""

    def __init__(self, threads: int) -> None:
        super().__init__(range(SHARDS))
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every shard; the results are in the order of the shards."""
        if self._pool is None:
            return super().call(method, *arguments)
        return list(self._pool.map(lambda one: getattr(one, method)(*arguments), self.shards))

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def stripes(first: int, chunk: Chunk) -> Iterator[tuple[int, Chunk]]:
    """The rows of a chunk, whose first row has the number `first`, by shard."""
    shards = np.arange(first, first + len(chunk)) // STRIPE % SHARDS
    for number in np.unique(shards).tolist():
        yield number, chunk.take(shards == number)


_WAITING = 8
"""Blocks of rows on their way to the workers at once."""


class There:
    """Holds all shards in processes of the Ray of `current_cluster`; used like `Here`."""

    def __init__(self, cluster: Any) -> None:
        self._cluster, self._ray = cluster, cluster.connection.ray
        self._count = min(cluster.count, SHARDS)
        self._waiting: list[object] = []
        kind = self._ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(Worker)
        with self._calling():
            self._workers = [kind.remote(range(k, SHARDS, self._count)) for k in range(self._count)]
        try:
            if differs := next(filter(None, self._all("difference", versions())), ""):
                raise DataError(differs)
        except BaseException:
            self.close()
            raise

    def add(self, number: int, chunk: Chunk) -> None:
        """Add rows to a shard."""
        with self._calling():
            self._waiting.append(self._workers[number % self._count].add.remote(number, chunk))
        if len(self._waiting) > _WAITING:
            self._get([self._waiting.pop(0)])

    def build(self, intercept: bool) -> list[tuple[NDArray[np.uint64], int, float]]:
        """Make the shards."""
        while self._waiting:
            self._get([self._waiting.pop()])
        return self._of_shards("build", intercept)

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every shard; the results are in the order of the shards."""
        return self._of_shards("call", method, *arguments)

    def close(self) -> None:
        """End the processes."""
        with suppress(LostWorkerError), self._calling():
            for worker in self._workers:
                self._ray.kill(worker)

    def _of_shards(self, method: str, *arguments: object) -> list[Any]:
        results: list[object] = [None] * SHARDS
        for first, found in enumerate(self._all(method, *arguments)):
            results[first :: self._count] = found
        return results

    def _all(self, method: str, *arguments: object) -> list[Any]:
        """The results of all workers; large arguments are sent to each machine once."""
        with self._calling():
            sent = [self._ray.put(one) if isinstance(one, np.ndarray) else one for one in arguments]
            asked = [getattr(worker, method).remote(*sent) for worker in self._workers]
        return self._get(asked)

    def _get(self, references: list[Any]) -> list[Any]:
        with self._errors():
            found: list[object] = self._cluster.connection.get(references)
        return found

    @contextmanager
    def _calling(self) -> Iterator[None]:
        with self._errors(), self._cluster.connection.calling():
            yield

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what Ray raises into `LostWorkerError`, but for faults of the program."""
        try:
            yield
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            raise LostWorkerError(self._cluster.warn) from error
