"""What a run tells its user while it works, and how it is told to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from thresher.learning.training.interruption import Stopper
from thresher.learning.training.progress import ProgressLines, Watcher

if TYPE_CHECKING:
    from thresher.learning.model.objective import Objective


class Ui(Protocol):
    """The user of a run: somebody at a terminal, a log, or a program."""

    report_every: int | None
    """examples between lines of the table of progress, if nobody said; see `TrainingPlan`"""
    forks: bool
    """whether this process may fork, to compile ahead"""

    @property
    def watcher(self) -> Watcher:
        """Receives the progress of training."""

    def say(self, line: str) -> None:
        """A line on what the run is doing."""

    def warn(self, line: str) -> None:
        """A line that must be seen."""

    def show_classes(self, head: Objective, words: Sequence[str]) -> None:
        """Show classes by name from here on."""

    def stopper(self, *, checkpoint: bool) -> Stopper:
        """What stops training on a signal, from here on; `checkpoint` says whether it can go on later."""


class Silent:
    """A program: nothing is told, and Ctrl-C stops training where that loses nothing."""

    report_every: int | None = None
    forks = False

    def __init__(self) -> None:
        self.watcher = Watcher()

    def say(self, line: str) -> None:
        """Do nothing."""

    def warn(self, line: str) -> None:
        """Do nothing."""

    def show_classes(self, head: Objective, words: Sequence[str]) -> None:
        """Do nothing."""

    def stopper(self, *, checkpoint: bool) -> Stopper:
        """Ctrl-C leaves a checkpoint, if there is one to leave."""
        stopper = Stopper()
        if checkpoint:
            stopper.listen_here()
        return stopper


class Printing(Silent):
    """A program that prints the table of progress."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = ProgressLines(print)
        self.watcher = self._lines

    def show_classes(self, head: Objective, words: Sequence[str]) -> None:
        """Show classes by name from here on."""
        self._lines.show_classes(head, words)
