"""Preparing examples before they are learned, if need be: scales, means, and which features are admitted.

A feature is admitted, and enters the model, once it has been seen often enough.

An intake counts rows as they are passed to `learn`, before they wait for a batch or a piece of the table, so
the result does not depend on how the stream is split. If values are scaled or features left out, the result
is a new Chunk and the loops do not know; a model without either does not even copy. Counting happens in the
first pass (``learn(..., again=True)`` afterwards): if it happened in every pass, three passes with `--admit
3` would admit everything in the data. After a `DivergedError` it has counted the whole chunk.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.data.errors import OneLineError
from thresher.data.layout import SettledLayout
from thresher.engine import centring as preparing
from thresher.engine.sound import MOST_STEPS, State, Tensors, check_tensor, require
from thresher.learning.model.sampling import Sampler
from thresher.learning.model.scaling import FIRST, NO_MEANS, SCALES, Centring, Divisors, Means
from thresher.options.messages import mention

BITS = 24
_LEAST_BITS, _MOST_BITS, _MOST_NEEDED = 10, 34, 255
_SPEC = re.compile(r"(?:([0-9]{1,18})|poisson:([^,]+))(?:,bits=([0-9]{1,18}))?")


def admission_terms(spec: str | int) -> tuple[int, float, int]:
    """When features enter: at which counted sighting, the chance that one counts, and the bits of the filter.

    From ``N``, ``poisson:P``, ``N,bits=B`` or ``poisson:P,bits=B``; ValueError for anything else.
    """
    found = _SPEC.fullmatch(str(spec))
    try:
        chance = float(found[2]) if found and found[2] else 1.0
    except ValueError:
        found = None
    if found is not None and 0.0 < chance <= 1.0:
        needed, bits = int(found[1] or 1), int(found[3] or BITS)
        if 1 <= needed <= _MOST_NEEDED and _LEAST_BITS <= bits <= _MOST_BITS:
            return needed, chance, bits
    span = f"N from 1 to {_MOST_NEEDED}, P in (0, 1] and B in {_LEAST_BITS}..{_MOST_BITS}"
    form = f"N or poisson:P, optionally followed by ,bits=B, with {span}"
    raise OneLineError(f"{mention('admit')} must be {form}, not {spec!r}")


class Admission:
    """Features enter at their `needed`-th sighting, counted in a counting Bloom filter of 2^bits bytes.

    A sighting is an example that contains the feature, whatever its value and its importance above 0. With
    `chance` p, a sighting counts with probability p, drawn from `seed`, key and number of the example.

    ``N`` needs N sightings; ``poisson:P`` needs one that counts, which takes 1/P sightings on average. Both
    may end in ``,bits=B`` (default 24).

    A key has four 8-bit counters in one 64-byte block. Only the lowest of the four are incremented, so their
    minimum is never below the true count. Keys that share all four enter too early; none enters too late.

    Reference: McMahan et al. (KDD 2013), section 4.1; Fan et al. (2000) for the filter, Putze, Sanders
    and Singler (2007) for its blocks.
    """

    def __init__(self, spec: str | int, seed: int) -> None:
        self.needed, self.chance, bits = admission_terms(spec)
        self._seed = np.uint64(seed % 2**64)
        line = int(preparing.LINE)  # each block lies in one cache line
        room = np.zeros((1 << bits) + line, np.uint8)
        first = -room.ctypes.data % line
        self._counters = room[first : first + (1 << bits)]
        self._counts = np.zeros(2, np.int64)

    @property
    def waiting(self) -> int | None:
        """Features seen but not admitted, as far as the filter can tell; None if admission is random."""
        met, admitted = (int(count) for count in self._counts)
        return max(met - admitted, 0) if self.chance == 1.0 else None

    def transform(self, chunk: Chunk, before: int, again: bool) -> Chunk:
        """`chunk` without the features still waiting; `before` is the number of examples before it.

        With `again`, the rows were counted in an earlier pass and are not counted now.
        """
        ends, keys = np.empty(len(chunk) + 1, np.int64), np.empty(chunk.nnz, np.uint64)
        values, chance = np.empty(chunk.nnz, np.float32), 0.0 if again else self.chance
        rows = (read_only(array) for array in (chunk.indptr, chunk.keys, chunk.values))
        numbers = (self.needed, chance, self._seed, before)
        preparing.admit(self._counters, *numbers, *rows, self._counts, ends, keys, values)
        return chunk.with_features(ends, keys[: ends[-1]], values[: ends[-1]])

    def state(self) -> State:
        """The filter."""
        return {"admit.counters": self._counters, "admit.counts": self._counts}

    def check(self, state: Tensors) -> None:
        """Raise StateError unless `state` holds a filter of this size."""
        check_tensor(state, "admit.counters", self._counters.shape, np.uint8)
        check_tensor(state, "admit.counts", self._counts.shape, np.int64)

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self._counters[:], self._counts[:] = state["admit.counters"], state["admit.counts"]


def admission_spec(spec: str | int) -> str:
    """The SPEC of an admission in full. ValueError."""
    needed, chance, bits = admission_terms(spec)
    return f"{f'poisson:{chance}' if chance < 1.0 else needed},bits={bits}"


class Preprocessor:
    """Draws rows (`Sampler`), centres and scales columns, then drops rare features (`Admission`).

    All count the examples of the stream one by one, so it does not matter where the stream is cut.
    """

    def __init__(
        self,
        scale: str | None = None,
        admit: str | int | None = None,
        seed: int = 0,
        centre: bool = False,
        sampler: Sampler | None = None,
    ) -> None:
        self.sampler = sampler
        """which rows are learned; None: all"""
        self._centring = Centring() if centre else None
        self._scaling = None if scale is None else SCALES[scale]()
        self.admission = None if admit is None else Admission(admit, seed)
        """which features are admitted; None: all"""
        self.only_means = None if self._scaling is not None else self._centring or NO_MEANS
        """the means, if rows are prepared for prediction by these alone"""
        parts = sampler, self._centring, self._scaling, self.admission
        self._parts = [part for part in parts if part is not None]
        self._rows = 0

    def means(self) -> Means | None:
        """The current means of columns; None unless columns are centred."""
        found = self._centring
        return None if found is None else Means(found.keys, found.kept.copy(), found.gaps)

    def start_from(self, means: Means) -> None:
        """Continue from the means of another model, if columns are centred."""
        assert self._centring is not None
        counts = np.maximum(means.kept[:, preparing.COUNT], preparing.UNDECIDED)
        kept = np.column_stack([counts, np.zeros(len(counts)), means.means])
        self._centring.keys, self._centring.kept, self._rows = means.keys, kept, FIRST

    def divisors(self, needed: NDArray[np.uint64] | None = None) -> Divisors | None:
        """The current divisors of columns; None without a scale. See `Scaling.divisors`."""
        return None if self._scaling is None else self._scaling.divisors(self._rows, needed)

    def bind(self, layout: SettledLayout | None) -> None:
        """Set the layout of the data; `DataError` if such data cannot be scaled."""
        for part in (self._centring, self._scaling, self.sampler):
            if part is not None:
                part.bind(layout)

    def transform(self, chunk: Chunk, again: bool) -> Chunk:
        """`chunk` prepared for learning. Its rows are counted unless they come `again`, in a later pass."""
        before = self._rows
        for part in self._parts:
            chunk = part.transform(chunk, before, again)
        self._rows += 0 if again else len(chunk)
        return chunk

    def read(self, chunk: Chunk) -> Chunk:
        """`chunk` prepared for prediction: by the current means and divisors, which do not change."""
        for part in (self._centring, self._scaling):
            chunk = chunk if part is None else part.read(chunk, self._rows)
        return chunk

    @property
    def counts_only_means(self) -> bool:
        """Whether the next row is prepared by means alone, and makes no new columns."""
        if self._centring is None:
            return not self._parts
        return len(self._parts) == 1 and self._rows >= FIRST

    def count_row(self, changed: bool) -> None:
        """A row was added to the means, which may have `changed` which columns there are."""
        if self._centring is not None:
            self._rows += 1
            if changed:
                self._centring.drop_columns()

    def state(self) -> State:
        """The state that counting continues from."""
        whole = {"intake.rows": np.array([self._rows])} if self._parts else {}
        for part in self._parts:
            whole |= part.state()
        return whole

    def check(self, state: Tensors) -> None:
        """StateError if counting examples cannot lead to `state`."""
        if self._parts:
            (rows,) = check_tensor(state, "intake.rows", (1,), np.int64)
            require(0 <= rows <= MOST_STEPS, "intake.rows", "the number of examples is out of range")
        for part in self._parts:
            part.check(state)

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        for part in self._parts:
            part.restore(state)
        self._rows = int(state["intake.rows"][0]) if self._parts else 0
