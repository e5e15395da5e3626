"""The shell of the tests, when a command fails."""

import os
from collections.abc import Iterator

import pytest

from tests.served import Shell, served
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
