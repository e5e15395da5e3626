"""Stopping on request: a signal is heeded between two examples, or at once while data is waited for."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class Interrupted(Exception):  # noqa: N818  (not an error: the user asked for it)
    """Training was stopped; what it had learned is in `checkpoint` (None: nowhere)."""

    def __init__(self, checkpoint: Path | None, examples: int) -> None:
        where = f"; checkpoint in {checkpoint}, go on with --resume" if checkpoint else ""
        super().__init__(f"stopped after {examples:,} examples{where}")
        self.checkpoint = checkpoint
        self.examples = examples


class _WaitingError(Exception):
    """Raised in the signal handler while nothing but waiting is under way."""


class Stopper:
    """Asked to stop by `ask()` or by a signal between `listen()` and `close()`."""

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False
        self._old: dict[int, Any] = {}

    def listen(self) -> Stopper:
        """Take Ctrl-C and SIGTERM unless they are ignored (by nohup, say); from the main thread only."""
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._old[number] = signal.signal(number, self._heed)
        return self

    def close(self) -> None:
        """Give the signals back."""
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()

    def ask(self) -> None:
        """Stop before the next example."""
        self.asked = True

    def _heed(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        if self._waiting:
            raise _WaitingError

    def wait(self, items: Iterator[T], stop: Callable[[], None]) -> T | None:
        """The next item, None at the end; `stop()` (which raises) when asked to stop before it comes."""
        try:
            self._waiting = True
            if self.asked:
                raise _WaitingError
            item = next(items, None)
            self._waiting = False
        except _WaitingError:
            self._waiting = False
            stop()
            raise AssertionError("stop() must raise") from None
        finally:
            self._waiting = False
        return item
