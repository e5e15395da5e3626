"""Admission: a feature enters the model when it has been seen often enough."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, read_only
from thresher.engine import preparing
from thresher.engine.sound import Tensors, given

BITS = 24
_LEAST_BITS, _MOST_BITS, _MOST_NEEDED = 10, 34, 255
_SPEC = re.compile(r"(?:([0-9]{1,18})|poisson:([^,]+))(?:,bits=([0-9]{1,18}))?")


class Terms(NamedTuple):
    """When features enter: at their `needed`-th sighting of those counted, each by `chance`."""

    needed: int
    chance: float
    bits: int

    @classmethod
    def of(cls, spec: str | int) -> Terms:
        """From ``N``, ``poisson:P``, ``N,bits=B`` or ``poisson:P,bits=B``; ValueError for others."""
        found = _SPEC.fullmatch(str(spec))
        try:
            chance = float(found[2]) if found and found[2] else 1.0
        except ValueError:
            found = None
        if found is None:
            raise ValueError(f"admit is N or poisson:P, either with ,bits=B behind it, not {spec!r}")
        terms = cls(int(found[1] or 1), chance, int(found[3] or BITS))
        terms._check()
        return terms

    def _check(self) -> None:
        if not 1 <= self.needed <= _MOST_NEEDED:
            raise ValueError(
                f"admit: a feature can wait for 1 to {_MOST_NEEDED} sightings, not {self.needed}"
            )
        if not 0.0 < self.chance <= 1.0:
            raise ValueError(f"admit: the probability must lie in (0, 1], not {self.chance}")
        if not _LEAST_BITS <= self.bits <= _MOST_BITS:
            raise ValueError(f"admit: bits must lie in {_LEAST_BITS}..{_MOST_BITS}, not {self.bits}")

    @property
    def spec(self) -> str:
        """What `of` makes it of again."""
        rule = f"poisson:{self.chance}" if self.chance < 1.0 else str(self.needed)
        return f"{rule},bits={self.bits}"


class Admission:
    """Features enter at their `needed`-th sighting, counted in a counting Bloom filter of 2^bits bytes.

    A sighting is an example that names the feature, whatever value and importance it has. With `chance` p
    each is counted with probability p only, drawn by `seed`, key and number of the example.

    ``N`` needs N sightings; ``poisson:P`` needs one that is counted with probability P, so 1/P sightings
    in the mean. Both may end in ``,bits=B`` (24 if not).

    A key has four counters of 8 bits in one block of 64; of those the lowest are raised, so the least says
    at least how often the key was seen. Keys that share all four enter too early; none enters too late.

    Reference: McMahan et al. (KDD 2013), section 4.1; Fan et al. (2000) for the filter, Putze, Sanders
    and Singler (2007) for its blocks.
    """

    def __init__(self, spec: str | int, seed: int) -> None:
        self.needed, self.chance, bits = Terms.of(spec)
        self._seed = np.uint64(seed % 2**64)
        self._counters = _zeros_in_lines(1 << bits)
        self._counts = np.zeros(2, np.int64)

    @property
    def waiting(self) -> int | None:
        """Features seen that are not in, as far as the filter can tell; None if that is left to chance."""
        met, admitted = (int(count) for count in self._counts)
        return max(met - admitted, 0) if self.chance == 1.0 else None

    def kept(self, chunk: Chunk, before: int, again: bool) -> Chunk:
        """`chunk` without the features that wait; `before` examples came before it.

        With `again` its rows have been counted in an earlier pass, and are not now.
        """
        ends, keys = np.empty(len(chunk) + 1, np.int64), np.empty(chunk.nnz, np.uint64)
        values, chance = np.empty(chunk.nnz, np.float32), 0.0 if again else self.chance
        rows = (read_only(array) for array in (chunk.indptr, chunk.keys, chunk.values))
        numbers = (self.needed, chance, self._seed, before)
        preparing.admit(self._counters, *numbers, *rows, self._counts, ends, keys, values)
        return replace(chunk, indptr=ends, keys=keys[: ends[-1]], values=values[: ends[-1]])

    def state(self) -> dict[str, NDArray[Any]]:
        """The filter."""
        return {"admit.counters": self._counters, "admit.counts": self._counts}

    def check(self, state: Tensors) -> None:
        """StateError for what is no filter of this size."""
        given(state, "admit.counters", self._counters.shape, np.uint8)
        given(state, "admit.counts", self._counts.shape, np.int64)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from `state`."""
        self._counters[:], self._counts[:] = state["admit.counters"], state["admit.counts"]


def _zeros_in_lines(size: int) -> NDArray[np.uint8]:
    """Counters of which every block lies in one line of the cache."""
    line = int(preparing.LINE)
    room = np.zeros(size + line, np.uint8)
    first = -room.ctypes.data % line
    return room[first : first + size]
