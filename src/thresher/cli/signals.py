"""Handle Ctrl-C, SIGTERM and SIGHUP from start to exit."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from types import FrameType

from thresher.cli.errors import INTERRUPTED, INTERRUPTED_LINE

_GRACE = 2.0
"""seconds to shut down cleanly"""


class _Interrupter:
    """Raises KeyboardInterrupt once; exits the process if that does not end it (a compiler is running)."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.came:
            self.came = True
            timer = threading.Timer(_GRACE, _end)
            timer.daemon = True
            timer.start()
            raise KeyboardInterrupt


_interrupter = _Interrupter()


def came() -> bool:
    """Whether a signal has arrived."""
    return _interrupter.came


def _end() -> None:
    wholefile = sys.modules.get("thresher.learning.wholefile")  # too late to import anything
    if wholefile is not None:
        wholefile.remove_unfinished()
    say_at_once(INTERRUPTED_LINE)
    os._exit(INTERRUPTED)


def install_handlers() -> None:
    """Raise KeyboardInterrupt on every signal that asks the program to stop, unless it is ignored."""
    from thresher.learning.stopping import PLAIN, take

    PLAIN.add(_interrupter)
    take(_interrupter)


def ignore() -> None:
    """Ignore all signals: the process is about to exit."""
    from thresher.learning.stopping import take

    take(signal.SIG_IGN)


def say_at_once(line: str) -> None:
    """Write a line on standard error from a signal handler, without buffering."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode())
