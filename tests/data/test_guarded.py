"""No parser reads or writes outside its memory."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.data.samples import SAMPLES
from tests.forks import forked


def guarded(*arguments: str) -> tuple[int, str]:
    """Status and output of the program that parses in guarded memory."""
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    code, place = "from tests.data.guarded import main\nmain()", Path(__file__).parents[2]
    with forked([*arguments], code, cwd=place, env=os.environ, text=True, **pipes) as process:
        output, _ = process.communicate(timeout=600)
    return process.returncode, output


def test_parsers_stay_in_their_memory() -> None:
    status, output = guarded()
    assert status == 0, output
    for name, sample in SAMPLES.items():
        assert name in output or not sample.packed
    assert "batches" in output


def test_a_byte_beyond_ends_the_program() -> None:
    assert guarded("beyond")[0] in (-signal.SIGSEGV, -signal.SIGBUS)
