"""The progress table, and on a terminal a progress bar with the time left, on standard error."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.learning.head import Head
    from thresher.learning.progress import PassEnd, Row

_HEAD = (
    f"{'examples':>12} {'since last':>10} {'average':>10} {'label':>9} {'prediction':>10} {'non-zero':>10}"
    f" {'rows/s':>11}"
)


_WIDTHS = 9, 10
"""Columns of the label and the prediction."""


def _cut(text: str, width: int) -> str:
    from thresher.data.errors import printable

    shown = printable(text)
    return shown if len(shown) <= width else f"{shown[: width - 2]}.."


class Quiet:
    """Prints only important messages."""

    head: Head | None = None
    words: Sequence[str] = ()
    """names of the classes"""

    def show_classes(self, head: Head, words: Sequence[str]) -> None:
        """Show classes by name from here on."""
        self.head, self.words = head, words

    def row(self, row: Row) -> None:
        """Do nothing."""

    def advance(self, examples: int, done: float | None) -> None:
        """Do nothing."""

    def passed(self, end: PassEnd) -> None:
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
        self._started = False

    def row(self, row: Row) -> None:
        """Print the row, after the heading if it is the first."""
        if not self._started:
            self._started = True
            self.say(_HEAD)
        self.say(self._line(row))

    def _line(self, row: Row) -> str:
        label = self._named(row.label)
        prediction = "-" if math.isnan(row.prediction) else f"{row.prediction:.4f}"
        if self.head is not None and self.head.outputs.kind == "classes":
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
        if self.head is None or not self.words:
            return f"{number:.6g}"
        return self.words[
            int(number - self.head.outputs.low if self.head.outputs.kind == "classes" else number > 0)
        ]

    def passed(self, end: PassEnd) -> None:
        """Print the metrics on the hold-out."""
        from thresher.learning.figures import shown

        if end.holdout is not None:
            figures = ", ".join(f"{name} {shown(value)}" for name, value in end.holdout.items())
            self.say(f"pass {end.number}, held-out: {figures}")


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


def say_unless(quiet: bool, watching: Quiet) -> Callable[[str], None]:
    """A function that prints a line, or does nothing if `quiet`."""
    return (lambda message: None) if quiet else watching.say


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
