"""The user of a command: progress and messages on standard error, signals that stop training.

Progress is a table, and on a terminal a bar with the time left too.
"""

from __future__ import annotations

import sys
from typing import Any

from thresher.cli.output import one_line
from thresher.cli.signals import say_at_once
from thresher.cluster import remote_readers
from thresher.engine.compile import notices
from thresher.learning.training.interruption import Stopper
from thresher.learning.training.progress import ProgressLines, Ui
from thresher.options.option import Options


class Quiet(Ui):
    """Prints only what must be seen."""

    report_every = 0

    def __init__(self) -> None:
        notices.when_compiling(None)

    def warn(self, line: str) -> None:
        """Print a line."""
        print(one_line(line), file=sys.stderr, flush=True)

    def stopper(self, *, checkpoint: bool) -> Stopper:
        """Signals stop training between two examples once something is learned; the command ends it."""
        return Stopper(say_at_once)

    def close(self) -> None:
        """Do nothing."""


class Plain(Quiet, ProgressLines):
    """Prints lines, for logs and pipes."""

    def __init__(self) -> None:
        ProgressLines.__init__(self, self.warn)
        notices.when_compiling(self.warn)

    def say(self, line: str) -> None:
        """Print a line."""
        self.warn(line)


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

    def warn(self, line: str) -> None:
        """Print a line above the bar."""
        self._console.print(one_line(line), markup=False, soft_wrap=True)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def console(quiet: bool) -> Quiet:
    """Somebody who reads standard error, and perhaps only what must be seen."""
    return Quiet() if quiet else Terminal() if sys.stderr.isatty() else Plain()


def tell(line: str) -> None:
    """Print a line about the run."""
    print(f"thresher: {line}", file=sys.stderr, flush=True)


def reading_elsewhere(options: Options) -> Any:
    """Within this block, files are read as `workers` and `ray` say."""
    quiet = options.get("quiet", False)
    return remote_readers.reading_elsewhere(
        options["workers"], options["ray"], lambda line: None if quiet else tell(line), tell
    )
