"""Counts trials: a test calls ``tried(n)``, or counts as one; the sums are printed at the end."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CalledProcessError, run
from typing import Any

import pytest

from tests.commands import own_cache

Tried = Callable[[int], None]
_CASES = "cases"


@pytest.fixture
def tried(request: pytest.FixtureRequest) -> Tried:
    """Returns a function that records how many cases a test has tried."""
    return lambda count: request.node.user_properties.append((_CASES, count))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with its own data cache."""
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


SmallDisk = Callable[[int], Path]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Mounts an empty disk of a given size at ``disk`` in the working folder, replacing the one before."""
    place, mounted = tmp_path / "disk", list[Path]()
    place.mkdir()

    def unmount() -> None:
        while mounted:
            run(["umount", mounted.pop()], check=True)

    def mount(size: int) -> Path:
        unmount()
        try:
            options = f"size={size},mode=0700"
            run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True, capture_output=True)
        except (CalledProcessError, FileNotFoundError):
            pytest.skip("only root can mount a disk")
        mounted.append(place)
        return place

    yield mount
    unmount()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    tests, cases = Counter[str](), Counter[str]()
    for report in terminalreporter.stats.get("passed", []):
        name = Path(report.nodeid.partition("::")[0])
        if report.when == "call" and name.parent.name == "hostile":
            tests[name.stem] += 1
            cases[name.stem] += sum(n for what, n in report.user_properties if what == _CASES) or 1
    if not tests:
        return
    terminalreporter.section("hostile trials that were withstood")
    for stem in [*sorted(tests), "total"]:
        counts = (tests.total(), cases.total()) if stem == "total" else (tests[stem], cases[stem])
        terminalreporter.line(f"{stem:<20} {counts[0]:>6,} tests {counts[1]:>8,} cases")
