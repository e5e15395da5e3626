"""What training tells while it runs: rows of the table, and who is told."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Row(NamedTuple):
    """One line of the progressive table."""

    examples: int
    """learned from so far"""
    loss_since: float
    """average loss since the line before"""
    average: float
    """average progressive loss"""
    label: float
    """of the last example"""
    prediction: float
    """for it, before it was learned from"""
    nonzero: int
    """weights that are not zero"""
    features_seen: int
    """distinct features met"""
    rate: float
    """examples a second since the start"""


class PassEnd(NamedTuple):
    """The end of one pass over the data."""

    number: int
    examples: int
    holdout: dict[str, float | int | None] | None


class Watcher(Protocol):
    """Told by the training loop; every call returns at once."""

    def row(self, row: Row) -> None:
        """A line of the table is due."""

    def advance(self, examples: int, done: float | None) -> None:
        """A chunk is learned; `done` is the share of all passes' bytes read, where it is known."""

    def passed(self, end: PassEnd) -> None:
        """A pass is over."""

    def say(self, message: str) -> None:
        """Something the user should know."""


class Silent:
    """A Watcher that listens to nothing."""

    def row(self, row: Row) -> None:
        """Ignored."""

    def advance(self, examples: int, done: float | None) -> None:
        """Ignored."""

    def passed(self, end: PassEnd) -> None:
        """Ignored."""

    def say(self, message: str) -> None:
        """Ignored."""
