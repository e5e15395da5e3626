"""Notice that the Ray node of this machine, or the head of the cluster, has ended, before this process is.

Ray ends a process 15 seconds after the node (its "raylet") that it is connected to has died, and 60 seconds
after the head (its "GCS") has. A process that disconnects in time lives on, and can do the rest of the work
itself. So a thread here holds a connection to the node's socket, which ends with the node, and tries to reach
the head every few seconds; if one of them is gone, it waits until no call to Ray is under way, and
disconnects. All calls to Ray therefore stand in a block of `calling`, and are short.

Ray gives no warning, and ends a process at once if it gives shared memory back to a dead node. The return of
borrowed arrays is therefore a call too. Of 24 learners whose node was killed soon after they had begun, 1
still ended with Ray; before, all did.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_PATIENCE = 10.0
"""Seconds to wait for calls under way."""
EVERY = 5.0
"""Seconds from one attempt to reach the head to the next, and for each."""
_AFTER_ERROR = 1.0
"""Seconds in which a node whose other connections break must end, if that is why."""
WITHOUT_HEAD = 40.0
"""Seconds for which the head may be out of reach; it may be starting again."""


class LostRayError(Exception):
    """The Ray node of this machine has ended, or the cluster's head: nothing can be asked of Ray any more."""


class Lifeline:
    """Whether node and head live; when one has ended, `disconnect` is called in another thread."""

    def __init__(self, disconnect: Callable[[], None]) -> None:
        self._disconnect = disconnect
        self._changed = threading.Condition()
        self._calls = 0
        self._lost = self._closed = False
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._look: select.poll | None = None
        self._head: tuple[str, int] | None = None

    @property
    def lost(self) -> bool:
        """Whether node or head has ended."""
        return self._lost

    def watch(self, path: str, head: str = "") -> None:
        """Watch the node with this socket, and the head at HOST:PORT if it can be reached now.

        Does nothing if there is no such socket on this machine.
        """
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.connect(path)
        except OSError:
            line.close()
            return
        line.settimeout(EVERY)
        self._look = select.poll()
        self._look.register(line, select.POLLIN)
        self._socket = line
        host, _, port = head.rpartition(":")
        if port.isdecimal() and _answers((host, int(port))):
            self._head = (host, int(port))
        self._thread = threading.Thread(
            target=self._wait, args=(line,), name="thresher-lifeline", daemon=True
        )
        self._thread.start()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """A block in which Ray may be called. Raises `LostRayError` if node or head has ended."""
        with self._changed:
            self._lost = self._has_ended(0.0)
            if self._lost:
                raise LostRayError
            self._calls += 1
        try:
            yield
        except OSError as error:
            if self._has_ended(_AFTER_ERROR):
                raise LostRayError from error
            raise
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Stop watching; returns after the end of a disconnection that is under way."""
        with self._changed:
            self._closed = True
        self._look = None
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join()

    def _has_ended(self, patience: float) -> bool:
        """Whether node or head has ended, or the node does within so many seconds."""
        look = self._look
        return self._lost or (look is not None and bool(look.poll(int(1000 * patience))))

    def _wait(self, line: socket.socket) -> None:
        with line:
            self._wait_for_an_end(line)
        with self._changed:
            if self._closed:
                return
            self._lost = True
            self._look = None
            self._changed.wait_for(lambda: not self._calls, _PATIENCE)
        self._disconnect()

    def _wait_for_an_end(self, line: socket.socket) -> None:
        reached = time.monotonic()
        while time.monotonic() - reached < WITHOUT_HEAD:
            try:
                if not line.recv(1 << 10):  # a node that lives does not speak first
                    return
            except TimeoutError:
                pass
            except OSError:
                return
            if self._head is None or _answers(self._head):
                reached = time.monotonic()


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, EVERY).close()
    except OSError:
        return False
    return True
