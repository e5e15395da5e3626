"""Sums over the examples that a model has predicted and learned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Tally(NamedTuple):
    """Sums over examples, each of which was predicted before it was learned."""

    loss: float
    """sum of importance times loss"""
    weight: float
    """sum of importances"""

    @property
    def average(self) -> float:
        """Mean loss; NaN before the first example."""
        return self.loss / self.weight if self.weight else float("nan")

    @property
    def known(self) -> float | None:
        """Mean loss; None before the first example."""
        return self.average if self.weight else None

    def since(self, earlier: Tally) -> Tally:
        """Sums over the examples after those of an earlier tally."""
        return Tally(self.loss - earlier.loss, self.weight - earlier.weight)


def total(tallies: Iterable[Tally]) -> Tally:
    """Sums over the examples of several tallies."""
    found = [*tallies]
    return Tally(sum(one.loss for one in found), sum(one.weight for one in found))


class Recent(NamedTuple):
    """Sums over the last rows that a server has learned, which outlast it in its checkpoint."""

    rows: int = 0
    tally: Tally = Tally(0.0, 0.0)
    predicted: float = 0.0
    """sum of importance times prediction, of the rows that were looked at"""
    labels: float = 0.0
    """sum of importance times label, of these"""
    looked: float = 0.0
    """sum of importances, of these"""
