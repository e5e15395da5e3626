"""What a `Trainer` trains."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from thresher.data.chunk import Chunk
from thresher.learning.head import Head
from thresher.learning.recipe import Recipe
from thresher.learning.record import Record


class Tally(NamedTuple):
    """What learning has met so far."""

    loss: float
    """sum of importance times progressive loss"""
    weight: float
    """sum of importances"""

    @property
    def average(self) -> float:
        """Progressive loss; NaN before the first example."""
        return self.loss / self.weight if self.weight else float("nan")


class Trained(Protocol):
    """What learns: a Model, or several side by side."""

    @property
    def recipe(self) -> Recipe:
        """What is learning, or one of several."""

    @property
    def head(self) -> Head:
        """What margins mean."""

    @property
    def examples(self) -> int:
        """How many were given to learn."""

    @property
    def tally(self) -> Tally:
        """Sums of progressive loss and importance."""

    @property
    def last_prediction(self) -> float:
        """For the last example learned from, before it was."""

    @property
    def nonzero(self) -> int:
        """Weights that are not zero."""

    @property
    def features_seen(self) -> int:
        """Distinct features met so far."""

    def begin_pass(self, number: int) -> None:
        """Pass `number` begins, or goes on after a stop."""

    def learn(self, chunk: Chunk, /, lo: int = 0, hi: int | None = None, *, again: bool = False) -> None:
        """Predict, then learn, rows lo <= i < hi."""

    def mark(self) -> None:
        """Note a point of the progressive curve."""

    def finish(self) -> None:
        """Learn what waits for the rest of its batch."""

    def check_finite(self) -> None:
        """Raises `DivergedError`."""

    def keep_record(self, record: Record) -> None:
        """Note how the model came to be."""
