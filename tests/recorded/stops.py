"""A signal at a chosen place, wherever in the code that is."""

import fnmatch
import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any


def stop_at(name: str, event: str, words: str, number: int) -> None:
    """Send this process a signal just before the event happens for the `number`-th time."""
    left = [number]

    def seen() -> None:
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.Signals[name])

    if event == "print":
        for stream in ("stdout", "stderr"):
            told = _told(getattr(sys, stream), words.encode(), seen)
            setattr(sys, stream, told)
            setattr(sys, f"__{stream}__", told)  # or it is closed when the program wraps its raw stream anew
        return

    def watch(happened: str, given: tuple[Any, ...]) -> None:
        path = given[0] if (event, happened) == ("open", "open") else None
        path = given[1] if (event, happened) == ("replace", "os.rename") else path
        of_main = threading.current_thread() is threading.main_thread()
        named = isinstance(path, str | os.PathLike) and of_main
        if named and fnmatch.fnmatch(os.path.basename(str(path)), words):
            seen()

    sys.addaudithook(watch)


def _told(stream: Any, words: bytes, tell: Callable[[], None]) -> Any:
    """The stream, which tells when certain words are written."""
    raw = io.BufferedWriter(_Told(stream.fileno(), words, tell))
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=True)


class _Told(io.FileIO):
    def __init__(self, number: int, words: bytes, tell: Callable[[], None]) -> None:
        super().__init__(number, "w", closefd=False)
        self._words, self._tell = words, tell

    def write(self, data: Any) -> int:
        if self._words in bytes(data):
            self._tell()
        return super().write(data) or 0
