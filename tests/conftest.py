"""Settings of all tests.

Hypothesis tries the same examples every time, or new ones with HYPOTHESIS_PROFILE=search.

Tests that need the same compiled code run on the same worker: those of parsers, those of one rule in files
that try all rules, and those of one file. Signals have their default effect on processes started by tests,
even if ``nohup`` or a shell ignores them for background jobs.

Compiled code has the same source as plain Python, and Numba is not ours to test. So each rule is compiled
once, with the default settings, and compared with its dense oracle; for other dtypes, stores, losses, rates,
outputs and averages, one rule of each kind of state is compiled. `make mutants` guards against having too few
tests. From cold caches, 8,650 tests take 950 s of processor on two cores. The first 5,800 of them took 784 s
on a busy machine: 357 s compiling (77 variants of `learn` 93 s, 33 of parsers 139 s, 44 of the loops of
lanes, batches and many outputs 79 s), 69 s in child processes, and the rest plain Python in so many places
that what all of them do had to be made faster (`tests/plain.py`); collecting took 33 s before. A test of few
rows with options that no other test compiles belongs to `plainly`, unless it compares margins with sums or
exports to the last bit: plain Python rounds them to float32. Large data are cheaper compiled: the pages of
`docs` would take 226 s plain and take 25 s.

Laws run as one test per rule that names the case in its message, on streams just long enough for a rule to
truncate, forget and revive. Waiting costs as much as working, so files are not synced to the disk, and
there is a worker more than processors. Code is compiled once for all workers and their processes: see
`compiled_once`, `ByCode` and `tests/plain.py`. What a test leaves changed in a class or in a module that
compiled code names is part of its key, and would have it compiled again.
Workers import the test files in different orders before they collect them: in a fresh clone each compiles
some to bytecode for the others. Tried without gain: other pass managers and optimisation levels, garbage
collection, scikit-learn's checks in plain Python.
"""

import fcntl
import gc
import importlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from thresher import parts
from thresher.engine.compile import codecache, machine
from thresher.engine.compile.jit import Kernel

os.environ["SCIPY_ARRAY_API"] = "1"  # read when numba imports scipy; without it, scikit-learn skips a check

for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:  # child processes inherit this
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

ROOT = Path(__file__).parent.parent
LONGEST_FIRST = sorted(parts.REGISTRY["rule"], key=len, reverse=True)
READING = re.compile(
    r"tests/(data/|cluster/test_readers|fuzz/test_targets|test_formats_docs"
    r"|test_references|learning/test_resume)"
)
RULE = re.compile(rf"[\[-]({'|'.join(LONGEST_FIRST)})[] :-]")
TRIES_ALL_RULES = re.compile(r"tests/(learning/)?test_")
PARTS = [re.compile(part) for part in (r"reading|tests/(batch|cli|cluster)/", r"tests/[d-s]\w+/")]
"""Tests that compile parsers, and tests in plain Python; others compile what learns"""


def pytest_configure(config: pytest.Config) -> None:
    """Tests learn rows again, and measure models on them, to see that figures are right."""
    config.addinivalue_line("filterwarnings", r"ignore:.*\[learned-(rows|before)\]")


@pytest.fixture(autouse=True, scope="session")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A worker waits for code that another compiles, and finds it in the cache."""
    folder = tmp_path_factory.getbasetemp() / (".." if "PYTEST_XDIST_WORKER" in os.environ else "")
    code_for = Kernel.code_for

    def code_once(kernel: Kernel, args: tuple[Any, ...]) -> Any:
        if (kind := machine.kind_of(args)) in kernel.entries:
            return code_for(kernel, args)
        place = codecache.place_of(kernel.function, kind)
        with open(folder / f"{place[0].stem if place else os.getpid()}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return code_for(kernel, args)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Kernel, "code_for", code_once)
        yield


@pytest.fixture(autouse=True, scope="session")
def no_power_cut() -> Iterator[None]:
    """Do not wait until files are on the disk: they need to survive a process, not the machine."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(autouse=True, scope="module")
def searched_for_garbage_once() -> None:
    """Exclude what earlier files left from garbage collection: above all Numba's millions of objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def sizes_as_users_have_them() -> Iterator[None]:
    """Fail in the file that leaves table sizes changed, not in the next file."""
    from thresher.engine import index

    before = index.FIRST_SIZE, index.ALWAYS_KEPT
    yield
    assert before == (index.FIRST_SIZE, index.ALWAYS_KEPT)


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models learn in plain Python: for small data, with parts that no other test has compiled.

    Further changes by a test are undone together with this one, in the right order.
    """
    from tests.plain import compile_nothing

    compile_nothing(monkeypatch)


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The growing store sweeps from its ninth row on, and examples are resolved in small pieces."""
    from thresher.testing.laws import SMALL_TABLES

    for one in SMALL_TABLES:
        monkeypatch.setattr(*one)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, with its own cache of data and the compiled code of other tests."""
    from tests.commands import own_cache

    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path)))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def as_commands_say() -> Iterator[None]:
    """Messages name options as the command line does, not as Python does."""
    from thresher.options.messages import on_the_command_line

    with on_the_command_line():
        yield


def pytest_sessionstart(session: pytest.Session) -> None:
    """Workers import the test files in different orders: each compiles some to bytecode for the others."""
    if session.config.option.file_or_dir or not hasattr(session.config, "workerinput"):
        return
    own, workers = (session.config.workerinput[name] for name in ("workerid", "workercount"))
    files = sorted(ROOT.glob("tests/**/test_*.py"))
    first = len(files) * int(own.removeprefix("gw")) // workers
    for path in [*files[first:], *files[:first]]:
        importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


class ByCode(LoadScopeScheduling):
    """Schedule tests that compile the same code together, and those that compile similar code on one worker.

    Worker k begins with the files of `PARTS[k]`; one that is done with its own takes the last of another's.
    """

    def _assign_work_unit(self, node: Any) -> None:
        left: list[list[str]] = [[] for _ in range(len(PARTS) + 1)]
        for scope in sorted(self.workqueue, key="reading".__ne__):  # that first, as it compiles most
            left[next((k for k, part in enumerate(PARTS) if part.match(scope)), len(PARTS))].append(scope)
        own = left[self.nodes.index(node) % len(left)]
        self.workqueue.move_to_end(own[0] if own else max(left, key=len)[-1], last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        if READING.match(nodeid):
            return "reading"
        found = RULE.search(nodeid) if TRIES_ALL_RULES.match(nodeid) else None
        return found[1] if found else nodeid.partition("::")[0]


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are processors, because some tests wait for other processes."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByCode:
    """Replaces the scheduler chosen by ``--dist``."""
    config.option.loadscopereorder = False  # in the order of the files, slow tests of Ray begin early
    return ByCode(config, log)
