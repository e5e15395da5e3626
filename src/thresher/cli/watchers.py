"""Progress on standard error: a table, and on a terminal a bar with the time left too."""

from __future__ import annotations

import sys
from typing import Any

from thresher.cli.output import one_line
from thresher.learning.training.progress import ProgressLines, Watcher


class Quiet(Watcher):
    """Prints only important messages."""

    def say(self, message: str) -> None:
        """Print a line."""
        print(one_line(message), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing."""


class Plain(Quiet, ProgressLines):
    """Prints lines, for logs and pipes."""

    def __init__(self) -> None:
        super().__init__(self.say)


class Terminal(Plain):
    """Prints the same lines above a progress bar."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        super().__init__()
        self._console = Console(stderr=True, highlight=False)
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._task: Any = None

    def advance(self, examples: int, done: float | None) -> None:
        """Update the bar."""
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task("", total=None if done is None else 1.0)
        self._bar.update(self._task, description=f"{examples:,} examples", completed=done or 0.0)

    def say(self, message: str) -> None:
        """Print a line above the bar."""
        self._console.print(one_line(message), markup=False, soft_wrap=True)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def watcher(quiet: bool) -> Quiet:
    """The watcher for this standard error: terminal, plain or quiet."""
    if quiet:
        return Quiet()
    return Terminal() if sys.stderr.isatty() else Plain()
