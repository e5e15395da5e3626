"""Progress of training: sums of losses, rows of the table, what receives them, and the curve of a model.

The curve is loss and number of weights during training, in a few points. A point is kept at each power of two
of examples, and at the ends of passes 1 to 32, 64, 128 and so on. The curve does not depend on how the data
were cut, on stops and resumes, or on how often a table was printed.

The curve is the model's, not the run's, so a lane of `path`, `cv` or `tune` has the same curve as the model
trained alone (except `features_seen` once rows were freed). The progressive loss is that of the first pass:
losses of rows that come again are summed apart (`Model.repeated`), and what follows a first pass with an
incomplete batch counts that batch as if training ended there. Counting weights this often costs less than
could be measured (about 1 ms of 30 ms by estimate, RCV1 in memory); in large tables with few features it
would cost more, so there the first points have no count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from thresher.learning.training.interruption import Stopper
from thresher.options.messages import as_shown

if TYPE_CHECKING:
    from thresher.learning.model.objective import Objective


_HEAD = (
    f"{'examples':>12} {'since last':>10} {'average':>10} {'label':>9} {'prediction':>10} {'non-zero':>10}"
    f" {'rows/s':>11}"
)


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


Figures = dict[str, float | int | None]


class Row(NamedTuple):
    """A row of the progressive table."""

    examples: int
    """examples learned so far"""
    loss_since: float
    """average loss since the previous row; after the first pass, of examples that were learned before"""
    average: float
    """average progressive loss: that of the first pass"""
    label: float
    """label of the last example"""
    prediction: float
    """prediction for it, before it was learned"""
    nonzero: int
    """number of nonzero weights"""
    features_seen: int
    """number of distinct features seen"""
    in_pass: int
    """the pass over the data, from 1"""
    rate: float
    """examples per second since the start"""


class Ui:
    """The user of a run, who is told what happens in it; every call must return at once.

    This one is a program, which is told nothing; Ctrl-C stops training where that loses nothing.
    """

    report_every: int | None = None
    """examples between rows of the table, if nobody said; see `TrainingPlan`"""
    hears = True
    """whether Ctrl-C is for the training"""

    def show_classes(self, head: Objective, words: Sequence[str]) -> None:
        """Show classes by name from here on."""

    def row(self, row: Row) -> None:
        """A row of the table is due."""

    def advance(self, examples: int, done: float | None) -> None:
        """A chunk was learned; `done` is the share of the bytes of all passes read, None if unknown."""

    def passed(self, number: int, holdout: Figures | None) -> None:
        """Pass `number` has ended."""

    def replay(self, rows: int, number: int, passes: int) -> None:
        """Pass `number` of so many begins, over rows in memory; called for the first such pass of a run."""

    def say(self, line: str) -> None:
        """A line on what the run is doing."""

    def warn(self, line: str) -> None:
        """A line that must be seen."""

    def stopper(self, *, checkpoint: bool) -> Stopper:
        """What stops training on a signal, from here on; `checkpoint` says whether it can go on later."""
        stopper = Stopper()
        if checkpoint and self.hears:
            stopper.listen_here()
        return stopper


class ProgressLines(Ui):
    """Somebody who reads lines: the rows of the table, and the figures on the hold-out."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._started, self._later = say, False, False
        self._head: Objective | None = None
        self._words: Sequence[str] = ()

    def show_classes(self, head: Objective, words: Sequence[str]) -> None:
        """Show classes by name from here on."""
        self._head, self._words = head, words

    def row(self, row: Row) -> None:
        """Say the row, after the heading if it is the first, and that rows come again if they do."""
        if not self._started:
            self._started = True
            self._say(_HEAD)
        if row.in_pass > 1 and not self._later:
            self._come_again(f"pass {row.in_pass}")
        one_of_several = self._head is not None and self._head.outputs.kind == "classes"
        label, prediction = self._named(row.label), "-"
        if one_of_several:
            prediction = self._named(row.prediction)
        elif not math.isnan(row.prediction):
            prediction = f"{row.prediction:.4f}"
        losses = ("-" if math.isnan(loss) else f"{loss:.6f}" for loss in (row.loss_since, row.average))
        self._say(
            "{:>12,} {:>10} {:>10} {:>9} {:>10} {:>10,} {:>11,.0f}".format(
                row.examples, *losses, _cut(label, 9), _cut(prediction, 10), row.nonzero, row.rate
            )
        )

    def _come_again(self, when: str) -> None:
        """Say what the table, if there is one, shows from here on."""
        self._later = True
        self._say(f"{when}; since last: loss on rows seen before" if self._started else when)

    def _named(self, number: float) -> str:
        """A label, by name if classes have names; empty if there is none."""
        if math.isnan(number):
            return ""
        return f"{number:.6g}" if self._head is None else self._head.named(number, self._words)

    def passed(self, number: int, holdout: Figures | None) -> None:
        """Say the figures on the hold-out; without one, that a pass has ended, if there is no table."""
        from thresher.learning.inspection.formatting import format_figure

        if holdout is not None:
            figures = ", ".join(f"{name} {format_figure(value)}" for name, value in holdout.items())
            self._say(f"pass {number}, held-out: {figures}")
        elif not self._started:
            self._say(f"pass {number} done")

    def replay(self, rows: int, number: int, passes: int) -> None:
        """Say that replay begins."""
        self._come_again(f"replaying {rows:,} rows from memory, pass {number} of {passes}")

    def warn(self, line: str) -> None:
        """Say it."""
        self._say(as_shown(line))


def _cut(text: str, width: int) -> str:
    from thresher.data.errors import printable

    shown = printable(text)
    return shown if len(shown) <= width else f"{shown[: width - 2]}.."


class CurvePoint(NamedTuple):
    """State of a model during training."""

    examples: int
    """examples learned so far"""
    loss: float
    """sum of importance times progressive loss"""
    weight: float
    """sum of importances"""
    nonzero: int | None
    """number of nonzero weights; None while most rows of a large table are empty: see `Model.mark`"""
    features_seen: int
    """number of distinct features seen"""

    @property
    def tally(self) -> Tally:
        """The sums."""
        return Tally(self.loss, self.weight)

    def as_dict(self) -> dict[str, Any]:
        """The content in JSON."""
        own = {"examples": self.examples, "progressive_loss": self.tally.average}
        return own | {"nonzero": self.nonzero, "features_seen": self.features_seen}


Curve = tuple[CurvePoint, ...]


def until_due(done: int) -> int:
    """Number of examples from example `done` to the next point."""
    return (1 << done.bit_length()) - done if done else 1


def is_due(done: int) -> bool:
    """Whether there is a point after this many examples."""
    return done & (done - 1) == 0
