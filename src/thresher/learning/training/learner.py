"""The interface of what a `Trainer` trains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from thresher.data.chunk import Chunk
from thresher.learning.model.objective import Head
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.record import Record

if TYPE_CHECKING:
    from thresher.learning.diagnostics.stream_statistics import Seen


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


class Trained(Protocol):
    """A model that learns, or several side by side."""

    @property
    def recipe(self) -> Recipe:
        """The recipe of the model, or of one of several."""

    @property
    def head(self) -> Head:
        """The meaning of margins."""

    @property
    def examples(self) -> int:
        """Number of examples given so far."""

    @property
    def tally(self) -> Tally:
        """Sums of progressive loss and importance: those of the first pass."""

    @property
    def repeated(self) -> Tally:
        """Sums of loss and importance over rows that came again, in later passes."""

    @property
    def left_out(self) -> int:
        """Number of these left out of a sample."""

    @property
    def last_prediction(self) -> float:
        """Prediction for the last example, before it was learned."""

    def last_label(self, given: Chunk) -> float:
        """Label of the last example that was learned, that of the rows `given` unless they are sampled."""

    @property
    def nonzero(self) -> int:
        """Number of nonzero weights."""

    @property
    def features_seen(self) -> int:
        """Number of distinct features seen so far."""

    def may_replay(self, steady: bool) -> bool:
        """Whether rows in memory may be passed over again without being asked, in a steady order or not."""

    def begin_pass(self, number: int, passes: int = 0) -> None:
        """Pass `number` of `passes` begins, or resumes after a stop."""

    def end_passes(self) -> None:
        """The passes over the same data are over."""

    def learn(self, chunk: Chunk, /, lo: int = 0, hi: int | None = None, *, again: bool = False) -> None:
        """Predict, then learn, rows lo <= i < hi."""

    def mark(self) -> None:
        """Note a point of the progressive curve."""

    def finish(self) -> None:
        """Learn the examples of an incomplete batch."""

    def check_finite(self) -> None:
        """Raise `DivergedError` if any state is not finite."""

    def keep_record(self, record: Record, seen: Seen) -> None:
        """Set the record of the training."""
