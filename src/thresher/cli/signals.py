"""Handle Ctrl-C, SIGTERM and SIGHUP from start to exit, and standard streams that are closed or full."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from thresher.cli.errors import INTERRUPTED, INTERRUPTED_LINE


def prepare() -> None:
    """Make sure that all three standard streams exist, and that printing a message never fails.

    If a descriptor was closed at start, the next file opened would get its number, and messages would end up
    in a model. So we open it, in a mode in which using it fails.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # an unbuffered one (PYTHONUNBUFFERED) loses what a full disk rejects
        whole: Any = io.BufferedWriter(sys.stdout.buffer)
        sys.stdout = io.TextIOWrapper(whole, sys.stdout.encoding, sys.stdout.errors, line_buffering=True)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Forgiving(2, "w", closefd=False)),
        encoding="utf-8" if sys.stderr is None else sys.stderr.encoding,
        errors="backslashreplace",
        line_buffering=True,
        write_through=True,
    )


class _Forgiving(io.FileIO):
    """Drops what the stream does not accept."""

    def write(self, data: Any) -> int:
        with contextlib.suppress(OSError):
            return super().write(data) or len(data)
        return len(data)


def discard_unwritten(stream: Any) -> None:
    """Drop what a closed pipe or full disk did not accept: Python would retry at exit and complain."""
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            stream.flush()


_GRACE = 2.0
"""seconds to shut down cleanly"""


def _end() -> None:
    wholefile = sys.modules.get("thresher.engine.atomic")  # too late to import anything
    if wholefile is not None:
        wholefile.remove_unfinished()
    say_at_once(INTERRUPTED_LINE)
    os._exit(INTERRUPTED)


class Interrupter:
    """Raises KeyboardInterrupt once, and ends the process if that does not (a compiler is running)."""

    came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self.came:
            self.came = True
            timer = threading.Timer(_GRACE, _end)
            timer.daemon = True
            timer.start()
            raise KeyboardInterrupt


INTERRUPTER = Interrupter()
"""The handler of this process."""


def install_handlers() -> None:
    """Raise KeyboardInterrupt on every signal that asks the program to stop, unless it is ignored."""
    from thresher.learning.training.interruption import PLAIN, take

    PLAIN.add(INTERRUPTER)
    take(INTERRUPTER)


def ignore() -> None:
    """Ignore all signals: the process is about to exit."""
    from thresher.learning.training.interruption import take

    take(signal.SIG_IGN)


def say_at_once(line: str) -> None:
    """Write a line on standard error from a signal handler, unbuffered, and over a bar if there is one."""
    with contextlib.suppress(OSError):
        erased = "\r\x1b[K" if os.isatty(2) and os.environ.get("TERM") != "dumb" else ""
        os.write(2, f"{erased}{line}\n".encode())
