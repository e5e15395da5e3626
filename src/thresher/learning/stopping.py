"""Stopping on request: a signal is heeded between two examples, or at once while data are waited for."""

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


_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What asks a program to stop; Windows has no SIGHUP."""


def take(handler: Any) -> dict[int, Any]:
    """Handle the signals that ask to stop, but for those that are ignored (by nohup, say); the old handlers.

    From the main thread only.
    """
    return {n: signal.signal(n, handler) for n in _SIGNALS if signal.getsignal(n) != signal.SIG_IGN}


class _WaitingError(BaseException):
    """Raised in the signal handler while what is under way can be broken off anywhere."""


class Stopper:
    """Asked to stop by `ask()` or by a signal between `listen()` and `close()`.

    Before anything worth keeping has been learned, a signal goes to whoever handled it before. Later it
    is heeded between two examples, and `tell` is told at once that it was noticed.
    """

    def __init__(self, tell: Callable[[str], None] = lambda line: None) -> None:
        self.asked = False
        self.worth_keeping = False
        """something has been learned, or is being written, that no signal may lose"""
        self._tell = tell
        self._waiting = False
        self._old: dict[int, Any] = {}

    def listen(self) -> Stopper:
        """Take the signals that ask to stop; from the main thread only."""
        self._old = take(self._heed)
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
        before, self.asked = self.asked, True
        if not self.worth_keeping:
            earlier = self._old[number]
            if not callable(earlier):
                raise KeyboardInterrupt
            earlier(number, frame)
        elif self._waiting:
            self._waiting = False  # another signal may come before the error is caught
            raise _WaitingError
        elif not before:
            self._tell("thresher: stopping as soon as what is under way is done")

    def wait(self, items: Iterator[T], stop: Callable[[], None]) -> T | None:
        """The next item, None at the end; `stop()` (which raises) when asked to stop before it comes."""
        found: list[T | None] = []
        if not self.unless_asked(lambda: found.append(next(items, None))):
            stop()
            raise AssertionError("stop() must raise")
        return found[0]

    def unless_asked(self, work: Callable[[], object]) -> bool:
        """Do `work`, which a signal breaks off at once, wherever it is; whether it was done."""
        try:
            self._waiting = True
            if self.asked:
                raise _WaitingError
            work()
            self._waiting = False
        except _WaitingError:
            return False
        finally:
            self._waiting = False
        return True
