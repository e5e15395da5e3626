"""Draw docs/benchmarks.md from the runs in benchmarks/runs: ``python -m benchmarks.page``, or ``make pages``.

Each table is of the newest run that has it. The page says with a mark what comes between it and
``<!-- end -->``:

* ``<!-- run: learning -->``: the tables of a benchmark
* ``<!-- run: clicks: quality -->``: those of them whose title contains these words
* ``<!-- run: machine -->``, ``<!-- run: headlines -->``, ``<!-- run: goals -->``: where and when the runs
  were made, the table of `HEADLINES`, and what was aimed at
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import kept
from benchmarks.report import markdown, verdict

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
MARK = re.compile(r"(<!-- run: ([a-z-]+)(?:: ([^>]+?))? -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
FIGURE = re.compile(r"\{([a-z-]+)\|([^|}]+)\|([^|}]+)\}")

HEADLINES = Path(__file__).parent / "headlines.tsv"
"""What the page begins with: a task, thresher, others; a figure is ``{benchmark|row|column}``."""

Run = dict[str, Any]


def drawn(text: str, runs: Sequence[Run]) -> str:
    """The page with what the runs say between its marks."""

    def filled(mark: re.Match[str]) -> str:
        head, what, words, _, end = mark.groups()
        return f"{head}\n{SECTIONS[what](runs) if what in SECTIONS else _tables(runs, what, words)}\n{end}"

    return MARK.sub(filled, text)


def run_of(runs: Sequence[Run], benchmark: str) -> Run:
    """The newest run that has tables of a benchmark. KeyError if none has."""
    for run in runs:
        if run["benchmarks"].get(benchmark):
            return run
    raise KeyError(f"no run has tables of {benchmark!r}")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown that shows cells as they are.

    >>> print(table(("", "s"), [("one | two*", "0.5"), ("--l1 2", "1")]), end="")
    |  | s |
    | --- | ---: |
    | one &#124; two&#42; | 0.5 |
    | `--l1 2` | 1 |
    """
    return markdown(head, ([_cell(text) for text in row] for row in rows)) + "\n"


def _cell(text: str) -> str:
    """As code if it has options, whose hyphens would become dashes."""
    return f"`{text}`" if "--" in text else text.replace("|", "&#124;").replace("*", "&#42;")


def _tables(runs: Sequence[Run], name: str, words: str | None) -> str:
    """The tables of a benchmark, with their titles."""
    tables = run_of(runs, name)["benchmarks"][name]
    found = [one for one in tables if words is None or words in one["title"]]
    if not found:
        raise KeyError(f"{name!r} has no table {words!r}")
    return "\n".join(f"*{_cell(one['title'])}*\n\n{table(one['head'], one['rows'])}" for one in found)


def _machine(runs: Sequence[Run]) -> str:
    """Where and when the runs were made that the page shows."""
    names = {
        name: run_of(runs, name) for run in runs for name in run["benchmarks"] if run["benchmarks"][name]
    }
    lines = []
    for run in reversed(runs):
        its = [f"`{name}`" for name, of in names.items() if of is run]
        if its:
            most = len(its) > len(names) / 2
            lines.append(f"* {'all but the following' if most else ', '.join(its)}: {_made(run)}\n")
    return "".join(lines)


def _made(run: Run) -> str:
    versions = ", ".join(f"{package} {number}" for package, number in run["versions"].items() if number)
    return (
        f"{run['machine']}; Python {run['python']}; {versions}; {run['began'][:10]}, commit {run['commit']},"
        f" scale {run['scale']:g}, medians of {run['repeat']}"
    )


def _goals(runs: Sequence[Run]) -> str:
    """What was aimed at, and what was measured."""
    rows = [
        (one["what"], one["goal"], one["measured"], verdict(one["met"]).lower())
        for run in reversed(runs)
        for one in run["goals"]
        if run_of(runs, one["benchmark"]) is run
    ]
    return table(("what", "goal", "measured", "met"), rows)


def _headlines(runs: Sequence[Run]) -> str:
    """The table of `HEADLINES`."""
    text = FIGURE.sub(lambda mark: figure(runs, *mark.groups()), HEADLINES.read_text(encoding="utf-8"))
    head, *lines = [f"| {line.replace(chr(9), ' | ')} |\n" for line in text.splitlines()]
    return f"{head}|---|---|---|\n{''.join(lines)}"


def figure(runs: Sequence[Run], name: str, row: str, column: str) -> str:
    """The figure in the first table of a benchmark that has this row and this column. KeyError."""
    for one in run_of(runs, name)["benchmarks"][name]:
        for line in one["rows"] if column in one["head"] else ():
            if line[0] == row:
                return str(line[one["head"].index(column)])
    raise KeyError(f"{name!r} has no row {row!r} with {column!r}")


SECTIONS: dict[str, Callable[[Sequence[Run]], str]] = {
    "machine": _machine,
    "goals": _goals,
    "headlines": _headlines,
}


def main() -> None:
    """Draw it."""
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8"), kept()), encoding="utf-8")


if __name__ == "__main__":
    main()
