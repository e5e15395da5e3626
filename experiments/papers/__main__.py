"""Make pages of docs/papers: ``python -m experiments.papers --data DATA [--only NAME...]``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from experiments.papers import NAMES, make
from experiments.papers.known import files_of
from experiments.papers.page import DOCS, Origin, PageError, is_docs, saved, write
from experiments.papers.sets import MissingDataError, Sets
from thresher.cli import signals
from thresher.data.errors import OneLineError, printable
from thresher.options.synonyms import did_you_mean

ORIGIN = "docs/papers/data.md says where the data sets are from and how to convert them"
# what an experiment runs into on data that can be read, but are not what it expects
UNFIT = (ArithmeticError, AssertionError, LookupError, MemoryError, TypeError, ValueError)


def page_name(text: str) -> str:
    """The name of a page; the error suggests one."""
    if text in NAMES:
        return text
    hint = did_you_mean(text, NAMES).removeprefix("; ") or "--list prints the names"
    raise argparse.ArgumentTypeError(f"there is no page {text!r}: {hint}")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m experiments.papers", description="Make the figures and tables of the papers again."
    )
    made.add_argument("--data", type=Path, metavar="DIR", help="folder of the data sets")
    made.add_argument(
        "--only", nargs="+", action="extend", type=page_name, metavar="NAME", help="some pages: see --list"
    )
    made.add_argument("--out", type=Path, default=DOCS, metavar="DIR", help="default: docs/papers")
    made.add_argument("--quick", action="store_true", help="small data that ship or are generated")
    made.add_argument("--list", action="store_true", help="print the names of the pages")
    return made


def main(words: Sequence[str] | None = None) -> None:
    """Make the pages; report seconds and verdicts."""
    usage = parser()
    given = usage.parse_args(words)
    if given.list:
        say("\n".join(NAMES))
        return
    if given.quick and is_docs(given.out):
        usage.error("--quick needs --out DIR, another folder than docs/papers, which shows the full size")
    if not given.quick and (given.data is None or not given.data.is_dir()):
        missing = "" if given.data is None else f"there is no folder {given.data}: "
        usage.error(
            f"{missing}give --data DIR (make papers DATA=DIR), or --quick --out DIR "
            f"(make papers QUICK=DIR) for small data; {ORIGIN}"
        )
    signals.install_handlers()  # a compiler can swallow KeyboardInterrupt
    try:
        check(given.out)
        names = tuple(dict.fromkeys(given.only or NAMES))
        sys.exit(made(names, Sets(given.data, quick=given.quick), given.out))
    except (OSError, PageError) as error:
        sys.exit(_line(error))
    except KeyboardInterrupt:
        print("\ninterrupted; the pages reported above are written", file=sys.stderr)
        sys.exit(130)


def check(folder: Path) -> None:
    """OSError or `PageError` if pages cannot be written to the folder: now, not after the work."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        saved(folder)


def made(names: Sequence[str], sets: Sets, folder: Path) -> int:
    """Make these pages; status 1 if some could not be made or written."""
    start, failed = time.perf_counter(), 0
    for name in names:
        begun = time.perf_counter()
        sets.used.clear()
        try:
            page = make(name, sets)
            files = sorted(sets.used | files_of(name))
            origin = Origin(sets.quick, [sets.other[file] for file in files if file in sets.other])
            write(folder, name, page, NAMES, origin)
        except (MissingDataError, OneLineError, PageError, ImportError, OSError, *UNFIT) as error:
            print(f"{name}: not made: {_line(error)}", file=sys.stderr, flush=True)
            failed += 1
            continue
        held = sum(verdict.holds for verdict in page.verdicts)
        took = time.perf_counter() - begun
        say(f"{name}: {held} of {len(page.verdicts)} claims hold{origin.mark}; {took:.1f} s")
    say(f"{len(names) - failed} of {len(names)} pages in {time.perf_counter() - start:.0f} s: {folder}")
    if failed:
        print(ORIGIN, file=sys.stderr)
    return int(failed > 0)


def _line(error: BaseException) -> str:
    """The reason, in one line; of an error that does not name a file, its place in the program."""
    if isinstance(error, OSError):
        return printable(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    if isinstance(error, ImportError):
        return printable(f"{error}; make .venv/.ready installs what the experiments need")
    if isinstance(error, UNFIT) and not isinstance(error, OneLineError):
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename}, line {place.lineno}"
        return printable(
            f"{type(error).__name__} in {where}: {error}; are the data those of {DOCS / 'data.md'}?"
        )
    return printable(str(error))


def say(text: str) -> None:
    """Print; if nobody reads it any more, go on in silence, since the pages are what counts."""
    try:
        print(text, flush=True)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


if __name__ == "__main__":
    main()
