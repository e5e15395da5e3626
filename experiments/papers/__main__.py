"""Make pages of docs/papers: ``python -m experiments.papers --data DATA [--only NAME...]``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments.papers import NAMES, make
from experiments.papers.page import DOCS, write
from experiments.papers.sets import MissingDataError, Sets
from thresher.cli import signals
from thresher.data.errors import OneLineError

ORIGIN = "docs/papers/data.md says where the data sets are from and how to convert them"


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
    if given.quick and given.out == DOCS:
        parser.error("--quick needs --out DIR: docs/papers shows the full size")
    if not given.quick and (given.data is None or not given.data.is_dir()):
        missing = "" if given.data is None else f"there is no folder {given.data}: "
        parser.error(f"{missing}give --data DIR (make papers DATA=DIR), or --quick; {ORIGIN}")
    signals.install_handlers()  # a compiler can swallow KeyboardInterrupt
    try:
        sys.exit(made(given.only, Sets(given.data, quick=given.quick), given.out))
    except KeyboardInterrupt:
        print("\ninterrupted; the pages reported above are written", file=sys.stderr)
        sys.exit(130)


def made(names: Sequence[str], sets: Sets, folder: Path) -> int:
    """Make these pages; status 1 if files for some were missing or damaged."""
    start, failed = time.perf_counter(), 0
    for name in names:
        begun = time.perf_counter()
        try:
            page = make(name, sets)
        except (MissingDataError, OneLineError) as error:
            print(f"{name}: not made: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        write(folder, name, page, NAMES)
        held = sum(verdict.holds for verdict in page.verdicts)
        took = time.perf_counter() - begun
        print(f"{name}: {held} of {len(page.verdicts)} claims hold; {took:.1f} s", flush=True)
    print(f"{len(names) - failed} of {len(names)} pages in {time.perf_counter() - start:.0f} s: {folder}")
    if failed:
        print(ORIGIN, file=sys.stderr)
    return int(failed > 0)


if __name__ == "__main__":
    main()
