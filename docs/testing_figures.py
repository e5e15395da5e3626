"""Write the figures of docs/testing.md: ``python -m docs.testing_figures [build/coverage/total.json]``.

Counts that nearly every change would alter are rounded down. With a report of coverage, its table is written
too: `make coverage` does that after all tests.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from platform import machine, python_version, system
from typing import Any

from tests.fuzz.targets import TARGETS
from tests.mutants.faults import all_mutants
from tests.oracles import ORACLES
from tests.pages import PAGES, blocks, session
from tests.recorded.sessions import sessions
from thresher.cli.app import EXAMPLES
from thresher.parts import REGISTRY

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "testing.md"
VERDICTS = ROOT / "docs" / "papers" / "verdicts.tsv"
BEGIN, END = "<!-- figures: written by `make pages` -->\n", "<!-- end of figures -->\n"
MEASURED, SO_FAR = "<!-- coverage: written by `make coverage` -->\n", "<!-- end of coverage -->\n"


def over(count: int) -> str:
    """Two digits of a large number: 12,345 is over 12,000.

    >>> over(207), over(34)
    ('over 200', '34')
    """
    unit = 10 ** max(len(str(count)) - 2, 0)
    return f"over {count // unit * unit:,}" if unit > 1 else str(count)


def texts(folder: str, names: str = "*.py") -> list[str]:
    """The contents of the Python files in a folder."""
    return [path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob(names))]


def lines_of(folder: str) -> str:
    """How many lines of Python a folder has."""
    return over(sum(text.count("\n") for text in texts(folder)))


def files_of_earlier_versions() -> int:
    """Files beside the archives of tests/golden, and those in them."""
    folder = ROOT / "tests" / "golden"
    listed = [line.split()[1] for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
    archives = [name for name in listed if ".tar" in name]
    packed = 0
    for name in archives:
        with tarfile.open(folder / name) as archive:
            packed += sum(member.isfile() for member in archive)
    return len(listed) - len(archives) + packed


def figures() -> Iterator[tuple[str, str]]:
    """What is counted, and how many there are."""
    files = texts("tests", "test_*.py")
    tests, recorded = "\n".join(files), sessions()
    mutants = all_mutants()
    verdicts = list(csv.DictReader(VERDICTS.read_text(encoding="utf-8").splitlines(), delimiter="\t"))
    hold = Counter(row["verdict"] for row in verdicts)["holds"]
    steps = sum(len(session(block)) for page in PAGES for block in blocks(page, "console"))
    yield "lines of Python in `src/thresher`", lines_of("src/thresher")
    yield "lines of Python in `tests`", lines_of("tests")
    yield "functions that begin with `test_`", over(len(re.findall(r"^ *def test_", tests, re.M)))
    yield "files that hold them", over(len(files))
    yield "of these functions, given data by hypothesis", over(len(re.findall(r"^ *@given\(", tests, re.M)))
    yield "rules; rules with a dense oracle", f"{len(REGISTRY['rule'])}; {len(ORACLES)}"
    yield "losses of one output; losses of several", f"{len(REGISTRY['loss'])}; {len(REGISTRY['joint loss'])}"
    yield "mutants", over(len(mutants))
    yield "tests that mutants name", over(len({test for mutant in mutants for test in mutant.fails}))
    yield "parsers and layouts that are fuzzed", over(len(TARGETS))
    yield "recorded sessions", over(len(recorded))
    yield "commands in the documentation", over(steps)
    yield "blocks of Python in the documentation", over(sum(len(blocks(page, "python")) for page in PAGES))
    yield "examples in the help of commands", over(sum(map(len, EXAMPLES.values())))
    yield "files that later versions must read", over(files_of_earlier_versions())
    yield "claims of papers tried again; those that hold", f"{len(verdicts)}; {hold}"


def between(text: str, begin: str, new: str, end: str) -> str:
    """The text with `new` between two marks."""
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{new}\n{end}{rest.partition(end)[2]}"


def with_figures(text: str) -> str:
    """The page with the counts of today."""
    rows = "".join(f"| {what} | {count} |\n" for what, count in figures())
    return between(text, BEGIN, f"| | how many |\n|---|---:|\n{rows}", END)


def with_coverage(text: str, report: dict[str, Any]) -> str:
    """The page with a report of coverage: all modules, and those of each folder."""
    wings = defaultdict[str, Counter[str]](Counter)
    for name, file in report["files"].items():
        wing = name.partition("src/thresher/")[2].partition("/")[0]
        for one in ("all", wing):
            wings[one].update({key: file["summary"][key] for key in _COUNTED})
    rows = "".join(f"| {_row(name, found)} |\n" for name, found in sorted(wings.items(), key=_last_of_all))
    place = f"Python {python_version()} on {system()}, {machine()}"
    said = f"Measured on {date.today().isoformat()} with coverage {report['meta']['version']}, {place}."
    table = f"| `src/thresher/` | lines | run | branches | taken |\n|---|---:|---:|---:|---:|\n{rows}"
    return between(text, MEASURED, f"{said}\n\n{table}", SO_FAR)


_COUNTED = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def _last_of_all(item: tuple[str, Counter[str]]) -> tuple[bool, str]:
    return item[0] == "all", item[0]


def _row(name: str, found: Counter[str]) -> str:
    lines, run, branches, taken = (found[key] for key in _COUNTED)
    return f"{name} | {lines:,} | {_share(run, lines)} | {branches:,} | {_share(taken, branches)}"


def _share(part: int, whole: int) -> str:
    """In percent, rounded down: 100 means all."""
    return f"{1000 * part // whole / 10:.1f} %" if whole else ""


def main() -> None:
    """Write them."""
    text = with_figures(PAGE.read_text(encoding="utf-8"))
    for report in sys.argv[1:]:
        text = with_coverage(text, json.loads(Path(report).read_text(encoding="utf-8")))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
