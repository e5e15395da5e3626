"""What a run tells its user while it works, and how it is told to stop."""

from __future__ import annotations

from thresher.learning.training.interruption import Stopper
from thresher.learning.training.progress import Watcher


class Ui:
    """The user of a run: a program, which is told nothing; Ctrl-C stops training where that loses nothing."""

    report_every: int | None = None
    """examples between lines of the table of progress, if nobody said; see `TrainingPlan`"""
    forks = False
    """whether this process may fork, to compile ahead"""

    def __init__(self, watcher: Watcher | None = None) -> None:
        self.watcher = watcher or Watcher()
        """receives the progress of training"""

    def say(self, line: str) -> None:
        """A line on what the run is doing."""

    def warn(self, line: str) -> None:
        """A line that must be seen."""

    def stopper(self, *, checkpoint: bool) -> Stopper:
        """What stops training on a signal, from here on; `checkpoint` says whether it can go on later."""
        stopper = Stopper()
        if checkpoint:
            stopper.listen_here()
        return stopper
