"""Make pages of docs/papers: ``python -m experiments.papers --data DATA [--only NAME...]``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from experiments.papers import NAMES, make
from experiments.papers.page import DOCS, write
from experiments.papers.sets import MissingDataError, Sets


def main() -> None:
    """Make the pages; report seconds and verdicts."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.papers", description="Make the figures and tables of the papers again."
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data sets")
    parser.add_argument("--only", nargs="+", default=NAMES, choices=NAMES, metavar="NAME", help="some pages")
    parser.add_argument("--out", type=Path, default=DOCS, metavar="DIR", help="default: docs/papers")
    parser.add_argument("--quick", action="store_true", help="small data that ship or are generated")
    parser.add_argument("--list", action="store_true", help="print the names of the pages")
    given = parser.parse_args()
    if given.list:
        print("\n".join(NAMES))
        return
    if given.data is None and not given.quick:
        parser.error("give --data DIR, or --quick; docs/papers/data.md tells where the data come from")
    if given.quick and given.out == DOCS:
        parser.error("--quick needs --out DIR: docs/papers shows the full size")
    sets, start = Sets(given.data, quick=given.quick), time.perf_counter()
    for name in given.only:
        begun = time.perf_counter()
        try:
            page = make(name, sets)
        except MissingDataError as error:
            sys.exit(f"{name}: {error}")
        write(given.out, name, page, NAMES)
        held = sum(verdict.holds for verdict in page.verdicts)
        took = time.perf_counter() - begun
        print(f"{name}: {held} of {len(page.verdicts)} claims hold; {took:.1f} s", flush=True)
    print(f"{len(given.only)} pages in {time.perf_counter() - start:.0f} s: {given.out}")


if __name__ == "__main__":
    main()
