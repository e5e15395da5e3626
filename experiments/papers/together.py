"""Files that belong together: all are written, or none; and folders that one process at a time may change."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from thresher.engine.atomic import SUFFIX, clear_abandoned, whole_file

if sys.platform != "win32":
    import fcntl

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write the files, all under temporary names; then rename them, in this order, undisturbed by signals.

    Folders are made. If a file cannot be written, all are as before; the OSError names it.
    """
    with ExitStack() as renaming:
        files = []
        for path in reversed(list(contents)):  # the last one entered is the first to be renamed
            path.parent.mkdir(parents=True, exist_ok=True)
            clear_abandoned(path)
            files.append((path, renaming.enter_context(whole_file(path, "wb"))))
        for path, file in files:
            try:
                file.write(contents[path])
                file.flush()
                os.fsync(file.fileno())
            except OSError as error:
                error.filename = str(path)
                raise
        with _undisturbed():
            renaming.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let signals that end the process wait until the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def wait(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    before = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    before |= {number: signal.SIG_DFL for number in _SIGNALS if signal.getsignal(number) == signal.SIG_DFL}
    for number in before:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in arrived:
            signal.raise_signal(number)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for the folder, if its file system has locks."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def clear_unfinished(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while writing to the folder."""
    for left in folder.glob(f".*{SUFFIX}"):
        found = re.fullmatch(rf"\.(.+)(\.[0-9a-f]{{8}}){{2}}{re.escape(SUFFIX)}", left.name)
        clear_abandoned(folder / (found[1] if found else left.name))
