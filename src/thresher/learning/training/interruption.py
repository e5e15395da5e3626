"""Stopping on request: signals take effect between two examples, or at once while waiting for data."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

from thresher.options.messages import as_shown, mention

T = TypeVar("T")


class Interrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C or another signal; `checkpoint` (None: nowhere) continues it.

    `saved` says what else was saved.
    """

    def __init__(self, checkpoint: Path | None, examples: int, saved: str = "") -> None:
        where = f"; checkpoint in {checkpoint}, continue with {mention(resume=True)}" if checkpoint else ""
        super().__init__(f"stopped after {examples:,} examples{saved}{where}")
        self.checkpoint = checkpoint
        self.examples = examples

    def __str__(self) -> str:
        return as_shown(super().__str__())


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a program to stop"""


PLAIN: set[Any] = {signal.default_int_handler}
"""Handlers of Ctrl-C that only raise KeyboardInterrupt"""


def take(handler: Any) -> dict[int, Any]:
    """Install `handler` for these signals, except ignored ones (e.g. under nohup); return the old handlers.

    Call it from the main thread only.
    """
    return {n: signal.signal(n, handler) for n in SIGNALS if signal.getsignal(n) != signal.SIG_IGN}


class _WaitingError(BaseException):
    """Raised in the signal handler while the current operation may be interrupted anywhere."""


@dataclass(eq=False)
class Stopper:
    """Stops training if it is `asked` to, or on a signal between `listen()` and `close()`.

    As long as nothing worth keeping has been learned, a signal goes to its previous handler. After that it
    takes effect between two examples, and `tell` receives an immediate message.
    """

    tell: Callable[[str], None] = lambda line: None
    asked: bool = False
    worth_keeping: bool = False
    """something has been learned, or is being written, that must not be lost"""
    _waiting: bool = False
    _old: dict[int, Any] = field(default_factory=dict)

    def listen(self) -> Stopper:
        """Install the signal handlers; call it from the main thread only."""
        self._old = take(self._on_signal)
        return self

    def listen_here(self) -> bool:
        """Let Ctrl-C stop training where no one else handles it; return whether it does.

        It does not in other threads, and in programs that handle Ctrl-C themselves.
        """
        number = signal.SIGINT
        main = threading.current_thread() is threading.main_thread()
        if not main or self._old or signal.getsignal(number) not in PLAIN:
            return False
        self._old = {number: signal.signal(number, self._on_signal)}
        return True

    def close(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        before, self.asked = self.asked, True
        if not self.worth_keeping:
            earlier = self._old[number]
            if not callable(earlier):
                raise KeyboardInterrupt
            earlier(number, frame)
        elif self._waiting:
            self._waiting = False  # another signal may arrive before the error is caught
            raise _WaitingError
        elif not before:
            self.tell("thresher: stopping after the current step")

    def each(self, items: Iterator[T], stop: Callable[[], NoReturn]) -> Iterator[T]:
        """The items; if a stop is requested before the next one, call `stop()`, which raises."""
        found: list[T | None] = []
        while self.unless_asked(lambda: found.append(next(items, None))):
            if (item := found.pop()) is None:
                return
            yield item
        stop()

    def unless_asked(self, work: Callable[[], object]) -> bool:
        """Do `work`, which a signal interrupts at once; return whether it was completed."""
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
