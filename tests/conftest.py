"""How the tests search: the same examples every time, or new ones with HYPOTHESIS_PROFILE=search.

And where they run: those of one rule on one worker, which so compiles each of its kernels once, those of
reading on one, where parsers share what they are made of, and those of a file on one, which mostly need the
same code. Signals do to the processes that tests start what they do to those of a terminal, even where
``nohup`` or a background job of a shell has them ignored.
"""

import gc
import os
import re
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from thresher import parts

os.environ["SCIPY_ARRAY_API"] = (
    "1"  # read when scipy is imported, as numba does: else scikit-learn leaves a check out
)

for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:  # which processes inherit
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

LONGEST_FIRST = sorted(parts.REGISTRY["rule"], key=len, reverse=True)
READING = re.compile(
    r"tests/(data/|cluster/test_readers|fuzz/test_targets|test_formats_docs"
    r"|test_references\.py::test_parsers|learning/test_resume)"
)
RULE = re.compile(rf"[\[-]({'|'.join(LONGEST_FIRST)})[] :-]")


@pytest.fixture(autouse=True, scope="session")
def in_one_process() -> Iterator[None]:
    """No training here begins a second process: that would compile more than the test needs."""
    from thresher.learning import ahead

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(ahead, "compile_ahead", lambda *given: ahead.Ahead())
        yield


@pytest.fixture(autouse=True, scope="module")
def searched_for_garbage_once() -> None:
    """What earlier files left, Numba's millions of objects above all, is looked through no more."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def sizes_as_users_have_them() -> Iterator[None]:
    """A file that leaves tables small behind it fails by itself, not in whatever file comes next."""
    from thresher.engine import index

    before = index._FIRST_SIZE, index._ALWAYS_KEPT
    yield
    assert before == (index._FIRST_SIZE, index._ALWAYS_KEPT)


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models learn as plain Python: for small data with parts that no other test has compiled.

    What a test changes besides is undone with this, in the right order.
    """
    from tests.plain import compile_nothing

    compile_nothing(monkeypatch)


@pytest.fixture
def as_commands_say() -> Iterator[None]:
    """Messages name options as the command line does, not as Python does."""
    from thresher.data.wording import on_the_command_line

    with on_the_command_line():
        yield


class ByCode(LoadScopeScheduling):
    """Tests that compile the same go together, so that no two workers do so at the same time."""

    def _split_scope(self, nodeid: str) -> str:
        if READING.match(nodeid):
            return "reading"
        found = RULE.search(nodeid)
        return found[1] if found else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByCode:
    """In place of the one that ``--dist`` names."""
    return ByCode(config, log)
