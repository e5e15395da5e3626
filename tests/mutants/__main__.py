"""Hand-made faults, applied one at a time to a copy of the project: does a test fail?

`mutants.toml` has what each mutant breaks, where, and which tests must fail for it. First all tests that are
named must pass without any mutant.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutants.faults import Mutant, all_mutants, applied

ROOT = Path(__file__).parents[2]
COPIED = (
    *("src", "tests", "examples", "docs", "benchmarks", "experiments"),
    *("pyproject.toml", "README.md", "CONTRIBUTING.md"),
)
_SOME_FAILED, _ENDLESS = 1, -1
_LEFT_OUT = shutil.ignore_patterns("__pycache__")


def copy_of_project(folder: Path) -> Path:
    """What the tests need, in `folder`."""
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_LEFT_OUT)
        else:
            shutil.copy(source, folder)
    return folder


def test(project: Path, tests: Sequence[str], cache: Path, minutes: float) -> tuple[int, str]:
    """Run some tests: pytest's status and what it prints."""
    known = {"PYTHONPATH": str(project / "src"), "XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", *tests]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(
        command, cwd=project, env=os.environ | known, **pipes, start_new_session=True
    ) as run:
        try:
            out, _ = run.communicate(timeout=60 * minutes)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            return _ENDLESS, ""
    return run.returncode, out


def verdict(project: Path, mutant: Mutant, cache: Path) -> tuple[str, float]:
    """``caught``, or what happened instead, and the seconds it took."""
    began = time.perf_counter()
    with applied(mutant, project / "src"):
        status, out = test(project, mutant.fails, cache, 5)
    seconds = time.perf_counter() - began
    words = {0: "SURVIVED", _SOME_FAILED: "caught", _ENDLESS: "ENDLESS"}
    return words.get(status, f"NO TEST RAN\n{out}"), seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each mutant; returns 1 if any survives."""
    known = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    known.add_argument("--only", action="append", metavar="NAME", help="this mutant (may be repeated)")
    known.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants tried side by side")
    known.add_argument("--list", action="store_true", help="print names and what they break, try none")
    chosen = known.parse_args(arguments)
    mutants = all_mutants()
    if chosen.only:
        unknown = {*chosen.only} - {mutant.name for mutant in mutants}
        if unknown:
            raise SystemExit(f"no mutants are called {', '.join(sorted(unknown))}")
        mutants = [mutant for mutant in mutants if mutant.name in chosen.only]
    if chosen.list:
        for mutant in mutants:
            print(f"{mutant.name:<34} {mutant.breaks}")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        return try_all(mutants, Path(scratch), chosen.jobs)


def try_all(mutants: Sequence[Mutant], scratch: Path, jobs: int) -> int:
    """Run the tests without mutants, then each mutant in one of several copies of the project."""
    cache, copies = scratch / "cache", SimpleQueue[Path]()
    for number in range(jobs):
        copies.put(copy_of_project(scratch / f"copy{number}"))
    first = copies.get()
    status, out = test(first, sorted({name for mutant in mutants for name in mutant.fails}), cache, 60)
    copies.put(first)
    if status:
        print(out)
        print("some of the named tests fail, or are not there, without any mutant")
        return 1

    def attempt(mutant: Mutant) -> bool:
        project = copies.get()
        try:
            found, seconds = verdict(project, mutant, cache)
        finally:
            copies.put(project)
        print(f"{mutant.name:<34} {seconds:5.1f} s  {found:<9} {mutant.breaks}", flush=True)
        return found == "caught"

    with ThreadPoolExecutor(jobs) as workers:
        caught = sum(workers.map(attempt, mutants))
    print(f"{caught} of {len(mutants)} mutants are caught")
    return int(caught < len(mutants))


if __name__ == "__main__":
    sys.exit(main())
