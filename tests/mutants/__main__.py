"""Hand-made faults, applied one at a time to a copy of the project: does a test fail?

A mutant is a patch in this folder. Its first lines say what it breaks and which tests must fail for it::

    Breaks: the lazy update of a weight has the wrong sign
    Fails: tests/test_laws.py::test_lazy_is_eager_on_any_stream[fobos]

First all tests that are named must pass without any mutant.
"""

from __future__ import annotations

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
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
COPIED = (
    *("src", "tests", "examples", "docs", "benchmarks", "experiments"),
    *("pyproject.toml", "README.md", "CONTRIBUTING.md"),
)
_SOME_FAILED, _ENDLESS = 1, -1
_LEFT_OUT = shutil.ignore_patterns("__pycache__")


class Mutant(NamedTuple):
    """One fault."""

    name: str
    path: Path
    breaks: str
    fails: list[str]


def mutant_of(path: Path) -> Mutant:
    """Read a patch."""
    head = path.read_text(encoding="utf-8").partition("\n--- ")[0].splitlines()
    said = [line.partition(": ") for line in head if line]
    breaks = [text for key, _, text in said if key == "Breaks"]
    fails = [text for key, _, text in said if key == "Fails"]
    if len(breaks) != 1 or not fails or len(said) != len(breaks) + len(fails):
        raise SystemExit(f"{path.name}: begin with one line 'Breaks: ...' and lines 'Fails: a test'")
    return Mutant(path.stem, path, breaks[0], fails)


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


def patch(project: Path, mutant: Mutant, *options: str) -> None:
    """Apply the patch to the copy, or undo it with ``--reverse``."""
    command = ["git", "apply", "-C1", *options, str(mutant.path)]
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(project.parent)}
    done = subprocess.run(command, cwd=project, env=alone, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{mutant.name} does not fit the sources any more:\n{done.stderr}")


def verdict(project: Path, mutant: Mutant, cache: Path) -> tuple[str, float]:
    """``caught``, or what happened instead, and the seconds it took."""
    began = time.perf_counter()
    patch(project, mutant)
    try:
        status, out = test(project, mutant.fails, cache, 5)
    finally:
        patch(project, mutant, "--reverse")
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
    mutants = [mutant_of(path) for path in sorted(Path(__file__).parent.glob("*.patch"))]
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
