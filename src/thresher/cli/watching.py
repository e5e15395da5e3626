"""The progress table, and on a terminal a progress bar with the time left, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.learning.head import Head
    from thresher.learning.progress import PassEnd, Row


class Quiet:
    """Prints only important messages."""

    def show_classes(self, head: Head, words: Sequence[str]) -> None:
        """Show classes by name from here on."""

    def row(self, row: Row) -> None:
        """Do nothing."""

    def advance(self, examples: int, done: float | None) -> None:
        """Do nothing."""

    def passed(self, end: PassEnd) -> None:
        """Do nothing."""

    def replay(self, rows: int, number: int, passes: int) -> None:
        """Do nothing."""

    def say(self, message: str) -> None:
        """Print a line."""
        from thresher.data.errors import printable

        print(printable(message), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing."""


class Plain(Quiet):
    """Prints lines, for logs and pipes."""

    def __init__(self) -> None:
        from thresher.learning.progress import Lines

        self._lines = Lines(self.say)

    def show_classes(self, head: Head, words: Sequence[str]) -> None:
        """Show classes by name from here on."""
        self._lines.show_classes(head, words)

    def row(self, row: Row) -> None:
        """Print the row, after the heading if it is the first."""
        self._lines.row(row)

    def passed(self, end: PassEnd) -> None:
        """Print the metrics on the hold-out."""
        self._lines.passed(end)

    def replay(self, rows: int, number: int, passes: int) -> None:
        """Print that replay begins."""
        self._lines.replay(rows, number, passes)


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
        from thresher.data.errors import printable

        self._console.print(printable(message), markup=False, soft_wrap=True)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def watcher(quiet: bool) -> Quiet:
    """The watcher for this standard error: terminal, plain or quiet."""
    if quiet:
        return Quiet()
    return Terminal() if sys.stderr.isatty() else Plain()


def write_curve(path: Path, table: Iterable[Row]) -> None:
    """Write the table as tab-separated values with a header."""
    from thresher.learning.progress import Row
    from thresher.learning.wholefile import whole_file

    rows = ["\t".join(Row._fields), *("\t".join(f"{value:.9g}" for value in row) for row in table)]
    with whole_file(path) as file:
        file.write("\n".join(rows) + "\n")
