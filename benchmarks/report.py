"""Printing of a run: the machine, versions, aligned tables, and which goals were met."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measure import Summary

PACKAGES = ("thresher", "numpy", "numba", "pyarrow", "scikit-learn", "vowpalwabbit", "river")


class Goal(NamedTuple):
    """A goal and its measured value."""

    what: str
    goal: str
    measured: str
    met: bool | None
    """None if unknown, for instance at a smaller scale"""


class Table(NamedTuple):
    """A table as it was printed."""

    title: str
    head: list[str]
    rows: list[list[str]]


_printed: list[Table] = []


def taken() -> list[Table]:
    """The tables printed since the last call."""
    found = _printed.copy()
    _printed.clear()
    return found


def version(package: str) -> str | None:
    """Return the version of an installed package; thresher need not be installed, only importable."""
    if package == "thresher":
        import thresher

        return thresher.__version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def processor() -> str:
    """Return the name of the processor, or the architecture if the system does not report a name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def machine() -> str:
    """Describe processor, system and versions."""
    found = ((package, version(package)) for package in PACKAGES)
    packages = ", ".join(f"{package} {number or 'not installed'}" for package, number in found)
    system = f"{platform.system()} {platform.release()}"
    return (
        f"{processor()}, {os.cpu_count()} cores; {system}; load {os.getloadavg()[0]:.1f}\n"
        f"Python {platform.python_version()}, {packages}"
    )


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print an aligned table; the first column is left-aligned."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    _printed.append(Table(title, lines[0], lines[1:]))
    print(f"\n{title}")
    for line in lines:
        cells = [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        print("  " + "  ".join(cells).rstrip(), flush=True)


def markdown(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """The lines of a table in Markdown; all columns but the first are aligned to the right.

    >>> markdown(("", "s"), [("one", 0.5)]).splitlines()
    ['|  | s |', '| --- | ---: |', '| one | 0.5 |']
    """
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def figure(value: float, form: str = ".3f") -> str:
    """Format a number; NaN gives an empty string."""
    return "" if value != value else format(value, form)


def times(title: str, found: Mapping[str, Summary], baseline: str, units: Mapping[str, float]) -> None:
    """Print wall, least and CPU time, the ratio of wall times to the `baseline`, and the wall time per unit.

    ``"MB/s": 905.1`` gives an amount per second, ``"ns/nnz": 59e6`` nanoseconds per item.
    """
    head = ["", "wall s", "least", "cpu s", "others", *units, f"x {baseline}"]
    rows = []
    for name, s in found.items():
        per = [s.wall / n * 1e9 if unit.startswith("ns") else n / s.wall for unit, n in units.items()]
        cells = [*(figure(v) for v in (s.wall, s.least, s.cpu)), figure(s.others, ".1f")]
        cells += [figure(v, ".2f" if v < 100 else ",.0f") for v in per]
        relative = found[baseline].wall if baseline in found else float("nan")
        rows.append([name, *cells, figure(s.wall / relative, ".2f")])
    table(title, head, rows)


def ratio(found: Mapping[str, Summary], above: str, below: str) -> tuple[float, str]:
    """Return the ratio of median wall times, and a text with that of the least too; NaN if one is missing."""
    if above not in found or below not in found:
        return float("nan"), "not measured"
    a, b = found[above], found[below]
    return a.wall / b.wall, f"{a.wall / b.wall:.2f} (leasts {a.least / b.least:.2f})"


def verdict(met: bool | None) -> str:
    """Format for the last table."""
    return {True: "yes", False: "NO", None: "-"}[met]


def goals(found: Iterable[Goal]) -> None:
    """Print all goals of a run."""
    rows = [(r.what, r.goal, r.measured, verdict(r.met)) for r in found]
    if rows:
        table("goals", ("", "goal", "measured", "met"), rows)
