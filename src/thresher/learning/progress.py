"""Progress of training: rows of the table, and the interface that receives them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from thresher.learning.head import Head

_HEAD = (
    f"{'examples':>12} {'since last':>10} {'average':>10} {'label':>9} {'prediction':>10} {'non-zero':>10}"
    f" {'rows/s':>11}"
)
_WIDTHS = 9, 10
"""Columns of the label and the prediction."""


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

    @classmethod
    def of(cls, given: Sequence[Any]) -> Row:
        """The row in a checkpoint; older ones do not have the pass."""
        return cls(*given) if len(given) == len(cls._fields) else cls(*[*given[:-1], 1, given[-1]])


class PassEnd(NamedTuple):
    """The end of one pass over the data."""

    number: int
    examples: int
    loss: float
    """mean loss in this pass: in the first the progressive loss, then that of rows seen before"""
    holdout: dict[str, float | int | None] | None


class Watcher(Protocol):
    """Receives the events of the training loop; every call must return at once."""

    def row(self, row: Row) -> None:
        """A row of the table is due."""

    def advance(self, examples: int, done: float | None) -> None:
        """A chunk was learned; `done` is the share of the bytes of all passes read, None if unknown."""

    def passed(self, end: PassEnd) -> None:
        """A pass has ended."""

    def replay(self, rows: int, number: int, passes: int) -> None:
        """Pass `number` of so many begins, over rows in memory; called for the first such pass of a run."""

    def say(self, message: str) -> None:
        """A message for the user."""


class Silent:
    """A Watcher that ignores everything."""

    def row(self, row: Row) -> None:
        """Ignored."""

    def advance(self, examples: int, done: float | None) -> None:
        """Ignored."""

    def passed(self, end: PassEnd) -> None:
        """Ignored."""

    def replay(self, rows: int, number: int, passes: int) -> None:
        """Ignored."""

    def say(self, message: str) -> None:
        """Ignored."""


class Lines(Silent):
    """A Watcher that says the rows of the table, and the figures on the hold-out, as lines of text."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._started, self._later = say, False, False
        self._head: Head | None = None
        self._words: Sequence[str] = ()

    def show_classes(self, head: Head, words: Sequence[str]) -> None:
        """Show classes by name from here on."""
        self._head, self._words = head, words

    def row(self, row: Row) -> None:
        """Say the row, after the heading if it is the first, and that rows come again if they do."""
        if not self._started:
            self._started = True
            self._say(_HEAD)
        if row.in_pass > 1 and not self._later:
            self._come_again(f"pass {row.in_pass}")
        self._say(self._line(row))

    def _come_again(self, when: str) -> None:
        """Say what the table, if there is one, shows from here on."""
        self._later = True
        self._say(f"{when}; since last: loss on rows seen before" if self._started else when)

    def passed(self, end: PassEnd) -> None:
        """Say the figures on the hold-out."""
        from thresher.learning.figures import shown

        if end.holdout is not None:
            figures = ", ".join(f"{name} {shown(value)}" for name, value in end.holdout.items())
            self._say(f"pass {end.number}, held-out: {figures}")

    def replay(self, rows: int, number: int, passes: int) -> None:
        """Say that replay begins."""
        self._come_again(f"replaying {rows:,} rows from memory, pass {number} of {passes}")

    def say(self, message: str) -> None:
        """Say a message."""
        self._say(message)

    def _line(self, row: Row) -> str:
        label = self._named(row.label)
        prediction = "-" if math.isnan(row.prediction) else f"{row.prediction:.4f}"
        if self._head is not None and self._head.outputs.kind == "classes":
            prediction = self._named(row.prediction)
        label, prediction = (
            _cut(text, width) for text, width in zip((label, prediction), _WIDTHS, strict=True)
        )
        since, average = (
            "-" if math.isnan(loss) else f"{loss:.6f}" for loss in (row.loss_since, row.average)
        )
        return (
            f"{row.examples:>12,} {since:>10} {average:>10} {label:>9} {prediction:>10}"
            f" {row.nonzero:>10,} {row.rate:>11,.0f}"
        )

    def _named(self, number: float) -> str:
        """A label, by name if classes have names; empty if there is none."""
        if math.isnan(number):
            return ""
        if self._head is None or not self._words:
            return f"{number:.6g}"
        return self._words[
            int(number - self._head.outputs.low if self._head.outputs.kind == "classes" else number > 0)
        ]


def _cut(text: str, width: int) -> str:
    from thresher.data.errors import printable

    shown = printable(text)
    return shown if len(shown) <= width else f"{shown[: width - 2]}.."
