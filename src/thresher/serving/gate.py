"""Turns of one model: it is read between two pieces of learning, and readers go first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENCE = 0.005
"""Seconds that learning waits for readers, of whom others may come all the time"""


class Gate:
    """Lets one thread at a time read or change a model.

    A plain lock would be taken again by the thread that learns before any reader wakes up. Here that thread
    waits until the readers that stand in line have been let in, or its `patience` is over.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._waiting, self._nobody = 0, threading.Event()
        self._nobody.set()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Within this context nothing is learned."""
        with self._counting:
            self._waiting += 1
            self._nobody.clear()
        with self._lock:
            with self._counting:
                self._waiting -= 1
                if not self._waiting:
                    self._nobody.set()
            yield

    def pause(self) -> None:
        """While learning: let the readers in that stand in line."""
        if self._waiting:
            self._lock.release()
            try:
                self._nobody.wait(self._patience)
            finally:
                self._lock.acquire()

    @contextmanager
    def learning(self) -> Iterator[None]:
        """Within this context nothing is read."""
        self._nobody.wait(self._patience)
        with self._lock:
            yield
