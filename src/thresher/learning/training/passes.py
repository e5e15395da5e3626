"""The source of each pass: the data in the first; then a binary cache, or rows that are kept in memory.

With ``passes="auto"`` the rows decide how often they are passed over, within a budget of memory, ``replay``.

Rows are kept as the first pass learns them (`ReplayBuffer`), after held-out rows were removed and before they
are shuffled. So a later pass needs neither the data nor the hold-out, and every order draws as it would over
data that are read again: ``passes="auto"`` equals ``passes=N``, bit for bit, which is what its tests compare.
Whether the rows fit, and how often they are passed over, depends on the rows alone: on their bytes as compact
rows, their non-zeros and how many different keys they have, not on files, threads or chunks, and not on rows
that are held out or have importance 0. Keys are counted from the rows (linear counting, 2.6 ns each), because
a model counts features as its store does: hashed rows share a count, freed rows are estimated, and lanes and
ensembles differ from a model alone.

The places of a replay count rows, so a run that is resumed there may read the data in other chunks; it reads
them once, without learning, checks their content, and goes on.

Copies go into memory that is reserved 64 MB at a time: only what is written takes memory, nothing is moved as
it grows, and one large array returns to the system at once when a stream does not fit. Getting 64 MB from the
system costs 10 to 70 ms, a tenth of the time of a stream of 9 million non-zeros. So nothing is kept of files
whose beginning says that they are 1.25 times too long. Sources that are in memory as chunks (matrices,
`Chunk`s) and orders that hold all rows are counted, not copied.

A rule says with `AUTOMATIC` that more passes are good for it; the papers' rules do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.cache import CacheWriter, open_cache
from thresher.data.chunk import Chunk, StreamPosition
from thresher.data.errors import DataError, OneLineError
from thresher.data.files.paths import STDIN
from thresher.data.inputs.matrices import DistinctKeys, identify
from thresher.data.order import StoredRows
from thresher.data.report import Report
from thresher.data.source import Chunks, Source, SourceWrapper
from thresher.data.sources.parsed import TextSource
from thresher.learning.training.wide import may_be_wide
from thresher.options.messages import mention

AUTO = "auto"
REPLAY = "64MB"
"""The budget if nobody says; about 129,000 rows of 40 features."""
MOST_REPLAY = 1 << 50
LEAST_BYTES = 16
"""What a row takes, without its values"""
_ROOM = 64 << 20
"""Bytes that are reserved for rows at most; more are added as they come."""
_CROWDED, _ROOMY = 15, 30
"""Examples for each feature up to which later passes soon bring noise, and from which they bring none."""
MANY, FEW, LEAST = 40, 5, 3
"""Passes over rows that are roomy, over crowded ones, and over very many rows."""
_WORK = 4_000_000
"""Non-zeros in all passes from which there are only `LEAST`: about a tenth of a second."""
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+(?= ?[KMGTB]))?) ?([KMGT]?B)?", re.IGNORECASE)


class Size(NamedTuple):
    """How many rows there are, and the memory that they take as `StoredRows`.

    Rows of importance 0 do not count.
    """

    rows: int = 0
    nonzeros: int = 0
    bytes: int = 0
    """12 for each non-zero, 16 for each row, 4 for each of several labels of a row, 8 for its group"""
    features: int = 0
    """distinct features in them, if they have been counted"""


def passes_for(size: Size) -> int:
    """How many passes are made over rows of this size, which fit in the budget.

    A table of 600 rows and 20 columns, one of 450, 2,000 rows of text, and a million rows of few columns:

    >>> passes_for(Size(600, 12_000, features=20)), passes_for(Size(450, 9_000, features=20))
    (40, 22)
    >>> passes_for(Size(2_000, 184_000, features=4_800))
    5
    >>> passes_for(Size(1_000_000, 4_000_000, features=50))
    3
    """
    if not size.rows:
        return 1
    least, most = _CROWDED * size.features, _ROOMY * size.features
    beyond = min(max(size.rows, least), most) - least
    passes = FEW + (MANY - FEW) * beyond // max(most - least, 1) if size.features else MANY
    return min(passes, max(LEAST, _WORK // max(size.nonzeros, 1)))


def passes_over(matrix: Chunk, rows: NDArray[np.int64]) -> int:
    """How many passes are made over these rows of a matrix, whatever its size."""
    size = Size(rows=len(rows), nonzeros=int((matrix.indptr[rows + 1] - matrix.indptr[rows]).sum()))
    crowded = passes_for(size._replace(features=size.rows))
    if passes_for(size) == crowded:  # features make no difference, and counting them takes time
        return crowded
    wanted = np.zeros(len(matrix), bool)
    wanted[rows] = True
    keys = matrix.keys if wanted.all() else matrix.keys[np.repeat(wanted, np.diff(matrix.indptr))]
    return passes_for(size._replace(features=DistinctKeys.of(keys.astype(np.uint64))))


def bytes_of(replay: int | str) -> int:
    """A budget in bytes; 0: never replay. ValueError.

    >>> bytes_of("64MB"), bytes_of("1.5 GB"), bytes_of(0)
    (64000000, 1500000000, 0)
    """
    found = _SIZE.fullmatch(str(replay).strip())
    if found is None or (size := float(found[1]) * _UNITS[(found[2] or "").upper()]) > MOST_REPLAY:
        known = "a size such as 64MB or 1GB, or 0 for never"
        raise OneLineError(f"{mention('replay')} must be {known}, not {replay!r}")
    return int(size)


def bytes_to_keep(replay: int, repeats: bool, cause: str) -> int:
    """The bytes to keep: `replay`, or none unless rows are passed over again. `DataError` if asked for.

    `cause` says what makes one pass of ``passes="auto"``.
    """
    if repeats or replay in (0, bytes_of(REPLAY)):
        return replay if repeats else 0
    reason = f"with {cause}, {mention(passes='auto')} is one pass, which keeps no rows"
    raise DataError(f"{reason}: leave {mention('replay')} out, or use {mention(passes=5)}")


def settle_passes(passes: int | str, replay: int | str) -> tuple[int, int]:
    """The fields `passes` and `replay` of a `TrainingPlan`, from what the user said. ValueError.

    >>> settle_passes("auto", "64MB"), settle_passes(5, "64MB")
    ((1, 64000000), (5, 0))
    """
    budget = bytes_of(replay)
    if passes == AUTO:
        return 1, budget
    if budget not in (0, bytes_of(REPLAY)):
        reason = f"{mention('replay')} has no effect with {mention(passes=passes)}"
        raise OneLineError(f"{reason}: leave it out, or use {mention(passes='auto')}")
    return int(passes), 0


_FAR = 1.25
"""Rows are not kept if the data seem to be so many times as long as fits in memory."""


class Passes:
    """The sources of the first pass and of later passes.

    With `cached`, the first pass reads the cache of an earlier run over the same content, or writes a cache
    if more passes follow. If the cache cannot be written, only time is lost, except for standard input, which
    cannot be read twice without one. Rows with interactions are not cached: computing them is faster than
    reading them. Later passes that read the data again raise `DataError` if the content has changed.
    """

    def __init__(self, source: Source, passes: int, *, cached: bool) -> None:
        self.first = source = identify(source)
        if passes > 1 and not source.in_memory:
            source.keep_hash = True
        if cached and source.origin is not None and not (source.layout and source.layout.interact):
            whole = not source.sliced and source.words is None  # a cache has neither cells nor words
            found = open_cache(source.origin) if whole else None
            self.first = found or (Recorded(source, source.origin) if passes > 1 else source)
        elif passes > 1 and not source.rereadable:
            once = "standard input" if STDIN in source.names else ", ".join(source.names)
            remedy = "later passes need the cache" if source.origin else "make a list or a table of it first"
            raise DataError(f"{once} can be read only once: {remedy}")

    def later(self) -> Source:
        """The source of each pass after the first."""
        if not isinstance(self.first, Recorded):
            return self.first
        self.first.ahead = not (self.first.rereadable or self.first.origin.finished)
        return self.first.cache or self.first


class Recorded(SourceWrapper[Source]):
    """A source that writes the cache of its files the first time it is read from beginning to end."""

    cache: Source | None = None
    ahead = False
    """whether to record everything before yielding, to resume a later pass over data piped in again"""
    _failed = False
    """whether the cache could not be written; then it is neither tried nor reported again"""

    def __init__(self, source: Source, files: TextSource) -> None:
        super().__init__(source)
        self._files = files

    @property
    def origin(self) -> TextSource:
        """The files."""
        return self._files

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """One pass. A pass from the beginning leaves a cache; so does every pass over read-once data."""
        if self.ahead:
            self.ahead, report = False, self.report
            for _ in self.chunks():
                pass
            self.ahead, self._source, self.report = True, self.cache or self._source, report
            self.rereadable = self._source.rereadable
        known = self.ahead or self._failed or self.cache is not None
        if known or (start is not None and self._source.rereadable):
            yield from self._source.chunks(start)
            return
        writer = CacheWriter(self._files)
        try:
            for chunk in self._source.chunks():
                writer.write(replace(chunk, cells=None))
                if start is None or (chunk.place is not None and chunk.place >= start):
                    yield chunk
            self.cache = writer.commit()
            self._failed = self.cache is None
            if self.cache is not None:
                self.cache.words = self.words
        finally:
            writer.abandon()


class ReplayBuffer(SourceWrapper[Source]):
    """A source that keeps its rows when it is first read, for later passes from memory.

    Beyond the budget the rows are dropped at once, and there are no later passes. From files that seem to be
    longer by far none are kept, because getting memory takes time; if they end earlier, they are read again.
    """

    def __init__(self, source: Source, budget: float, *, held: bool = False) -> None:
        """`held`: the order of the rows holds them in memory, so they are only counted."""
        super().__init__(source)
        self._budget, self._held = budget, held
        self._copying = not (held or source.in_memory)
        self._rows: StoredRows | None = None
        self._keys = DistinctKeys()
        self.size = Size()
        """of the rows read so far"""
        self.dropped = False
        """whether the rows do not fit in the budget"""
        self._whole: Report | None = None
        self._again = False
        """whether rows come from memory"""
        self._postponed = False
        """whether rows are only counted, and read again if there are later passes"""

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """A pass; the first reads from the beginning even if `start` is given, to keep all rows."""
        if self._again:  # a later pass first reads the rows that are not kept yet
            if self._whole is None or self._postponed:
                self._budget, self._postponed, self._again = float("inf"), False, False
                for _ in self.chunks():
                    pass
                self._again = True
            assert self._rows is not None
            assert self._whole is not None
            self.report = self._whole
            for chunk in self._rows.chunks(0 if start is None else start.offset):
                assert chunk.after is not None
                self.position_bytes = (self.total_bytes or 0) * chunk.after.offset // max(len(self._rows), 1)
                yield chunk
            return
        self._rows = StoredRows(int(min(self._budget, _ROOM))) if self._copying else None
        self._keys, self.size = DistinctKeys(), Size()
        with closing(self._source.chunks()) as chunks:
            for chunk in chunks:
                if not self.dropped:
                    self._keep(chunk)
                if start is None or (chunk.place is not None and chunk.place >= start):
                    yield chunk
        self._whole = self.report

    def _keep(self, chunk: Chunk) -> None:
        counting, size = chunk.weights > 0, self.size
        rows = int(np.count_nonzero(counting))
        nonzeros = chunk.nnz if rows == len(chunk) else int(np.diff(chunk.indptr)[counting].sum())
        each = LEAST_BYTES + (0 if chunk.targets is None else 4 * chunk.targets.shape[1])
        each += 0 if chunk.groups is None else 8
        self.size = Size(size.rows + rows, size.nonzeros + nonzeros, size.bytes + 12 * nonzeros + each * rows)
        if self.size.bytes > self._budget:
            self.drop()
        elif self._held:
            self._keys.add(chunk.counting().keys)
        elif self._rows is not None:
            source, share = self._source, 1.0
            if source.rereadable and source.total_bytes:
                share = _FAR * source.position_bytes / source.total_bytes
            if self.size.bytes > share * self._budget:  # the rest, if it is alike, is too long by far
                self._rows, self._postponed = None, True
            else:
                self._rows.add(replace(chunk, cells=None))  # which later passes do not want

    @property
    def whole(self) -> Size:
        """The size of all rows, with the number of their features."""
        if not self._held:
            for chunk in self.later().chunks():
                self._keys.add(chunk.counting().keys)
        return self.size._replace(features=self._keys.count)

    def drop(self) -> None:
        """Free the rows: there are no later passes."""
        self._rows, self.dropped = None, True

    @property
    def complete(self) -> bool:
        """Whether all rows have been read, and are there for later passes."""
        return self._whole is not None and not self.dropped

    def later(self) -> Source:
        """The source of each pass after the first."""
        self._again = self._copying
        return self if self._again else self._source


class Replay:
    """How many passes a training makes, and the rows of each.

    With a budget there is one pass, and more if all rows can be kept in memory.
    """

    def __init__(self, passes: int, budget: int) -> None:
        self.passes, self.budget = passes, budget
        self.settled = not budget
        """whether the number of passes is known"""
        self._kept: ReplayBuffer | None = None

    @property
    def keeps(self) -> bool:
        """Whether rows are kept in memory."""
        return self.budget > 0 and not (self.settled and self.passes == 1)

    def resume(self, passes: int, settled: bool) -> None:
        """Go on as an earlier run did, unless another number of passes was asked for."""
        if self.budget:
            asked = self.passes > 1
            self.passes, self.settled = self.passes if asked else passes, settled or asked

    def over(self, source: Source, number: int, *, held: bool) -> Source:
        """The rows of pass `number`: those of `source`, or those kept of it, as in `ReplayBuffer`."""
        if not self.keeps:
            return source
        self._kept = self._kept or ReplayBuffer(source, self.budget, held=held)
        return self._kept if number == 1 else self._kept.later()

    @property
    def may_be_wide(self) -> bool:
        """Whether all rows are kept, it is open how often they come again, and columns may outnumber them."""
        kept = self._kept
        return not self.settled and kept is not None and kept.complete and may_be_wide(*kept.size[:2])

    def end(self) -> None:
        """Make no more passes."""
        self.passes, self.settled = 1, True
        if self._kept is not None:
            self._kept.drop()

    def expected(self, within: float, features: int) -> int:
        """How many passes there will be, as far as can be told after a share of the data with `features`."""
        if self.settled or self._kept is None or not within:
            return self.passes
        rows, nonzeros, size = (round(number * (1 / within)) for number in self._kept.size[:3])
        return passes_for(Size(rows, nonzeros, size, features)) if size <= self.budget else 1

    def settle(self, over: bool, most: Callable[[int], int] = int) -> None:
        """Decide on the number of passes, at the end of the first, or once the rows do not fit in memory.

        `most` gives the passes that any model makes, of the number for all rows.
        """
        if self.settled or self._kept is None:
            return
        if self._kept.dropped:
            self.settled = True
        elif over:
            self.passes, self.settled = most(passes_for(self._kept.whole)), True
        if not self.keeps:
            self._kept.drop()
