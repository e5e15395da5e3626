"""Waiting for what other threads and processes do."""

import time
from collections.abc import Callable


def until(met: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for `met`; a busy machine may be slow, so there is time to spare."""
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, f"waited for {seconds:.0f} seconds"
        time.sleep(0.01)
