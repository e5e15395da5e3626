"""The shell and the covering lists of the tests."""

import os
from collections.abc import Iterator
from itertools import combinations, product

import pytest

from tests.covering import covering, covering_for
from tests.served import Shell, served
from tests.streams import RULES
from thresher.cli import main


@pytest.fixture
def shell() -> Iterator[Shell]:
    with served() as shell:
        yield shell


def test_a_reader_that_has_gone_leaves_the_streams_as_they_were(shell: Shell) -> None:
    before = [os.fstat(number).st_ino for number in range(3)]
    done = shell.run("thresher rules | true; thresher rules | head -n 1", env=_environment(shell))
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert [os.fstat(number).st_ino for number in range(3)] == before


def test_a_fault_in_a_command_is_raised_here(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: list[str]) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(main, "status_of", broken)
    with pytest.raises(ZeroDivisionError):
        shell.run("thresher rules; cat", env=_environment(shell))


def _environment(shell: Shell) -> dict[str, str]:
    return os.environ | {"PATH": f"{shell.folder}:{os.environ['PATH']}"}


AXES = ("abcdefg", (0, 1), ("x", "y", "z"), (True, False), ("only",))


def test_covering_lists_cover() -> None:
    for seed in range(9):
        found = covering(*AXES, seed=seed)
        assert len(found) == len(AXES[0])
        for place, axis in enumerate(AXES):
            assert {case[place] for case in found} == {*axis}
    every = [case for name in RULES for case in covering_for(name, *AXES)]
    for one, other in combinations(range(len(AXES)), 2):
        assert {(case[one], case[other]) for case in every} == {*product(AXES[one], AXES[other])}
