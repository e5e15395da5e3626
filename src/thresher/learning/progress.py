"""Progress of training: rows of the table, and the interface that receives them."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Row(NamedTuple):
    """A row of the progressive table."""

    examples: int
    """examples learned so far"""
    loss_since: float
    """average loss since the previous row"""
    average: float
    """average progressive loss"""
    label: float
    """label of the last example"""
    prediction: float
    """prediction for it, before it was learned"""
    nonzero: int
    """number of nonzero weights"""
    features_seen: int
    """number of distinct features seen"""
    rate: float
    """examples per second since the start"""


class PassEnd(NamedTuple):
    """The end of one pass over the data."""

    number: int
    examples: int
    holdout: dict[str, float | int | None] | None


class Watcher(Protocol):
    """Receives the events of the training loop; every call must return at once."""

    def row(self, row: Row) -> None:
        """A row of the table is due."""

    def advance(self, examples: int, done: float | None) -> None:
        """A chunk was learned; `done` is the share of the bytes of all passes read, None if unknown."""

    def passed(self, end: PassEnd) -> None:
        """A pass has ended."""

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

    def say(self, message: str) -> None:
        """Ignored."""
