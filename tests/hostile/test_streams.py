"""Processes that are stopped while they read a pipe."""

import signal
import time
from pathlib import Path

from tests.commands import start
from tests.hostile.conftest import Tried
from tests.hostile.trials import here, said, svmlight


def test_a_process_that_is_halted_and_goes_on(folder: Path, tried: Tried) -> None:
    """At any time, while a reader or a writer waits for it."""
    data = svmlight(folder / "d.svm", 5000).read_bytes()
    assert here("train", "d.svm", "-m", "whole", "-q", folder=folder)[0] == 0
    with start("train", "-", "-m", "m", "-q", folder=folder, stdin=-1) as process:
        for k in range(10):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
            process.send_signal(signal.SIGCONT)
            process.stdin.write(data[len(data) * k // 10 : len(data) * (k + 1) // 10])
            process.stdin.flush()
            time.sleep(0.04)
            tried(1)
        _, err = process.communicate(timeout=120)
    assert (process.returncode, said(err)) == (0, "")
    assert Path("m").read_bytes() == Path("whole").read_bytes()
