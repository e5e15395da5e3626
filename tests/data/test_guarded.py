"""No parser reads or writes outside its memory."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.data.samples import SAMPLES


def guarded(*arguments: str) -> tuple[int, str]:
    """Status and output of the program that parses in guarded memory."""
    command = [sys.executable, "-m", "tests.data.guarded", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def test_parsers_stay_in_their_memory() -> None:
    status, output = guarded()
    assert status == 0, output
    for name, sample in SAMPLES.items():
        assert name in output or not sample.packed
    assert "batches" in output


def test_a_byte_beyond_ends_the_program() -> None:
    assert guarded("beyond")[0] in (-signal.SIGSEGV, -signal.SIGBUS)
