"""A connection to Ray: a Ray of this machine, started and stopped here, or a cluster that runs already."""

from __future__ import annotations

import logging
import math
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from thresher.data.errors import OneLineError
from thresher.options.messages import mention

_AFTER_ERROR = 1.0
"""Seconds in which a node whose other connections break must end, if that is why."""


class LostRayError(OneLineError):
    """The Ray node of this machine has ended: nothing can be asked of Ray any more."""


_PER_READER, _STORE = 64 << 20, 128 << 20
"""Shared memory for blocks on their way, for each reader and besides."""
_PATIENCE = 10.0
_POLL = 0.2
_PREFIX = "thresher-ray-"
_ATTEMPTS, _PAUSE = 100, 0.1
_SHORT = "/tmp"
LONGEST_SOCKET = 103
"""Bytes in the path of a socket: 107 on Linux, 103 on macOS."""
_ONE_THREAD = threading.RLock()
"""Held by each connection: one thread of this process uses Ray for thresher"""


class NoRayError(OneLineError):
    """No cluster answers, or another thread uses Ray; the message names the remedy."""


class Connection:
    """The connection to a Ray; `close` ends it, and with it a Ray that was started here.

    Ray ends a process without a word 15 seconds after the node (its "raylet") that it is connected to has
    died. So all calls to Ray stand in a block of `calling`, which looks first whether it lives, by a
    connection to its socket, which ends with it; if it is gone, this process is disconnected.
    """

    def __init__(self, address: str | None, readers: int | None) -> None:
        """Connect to `address`; None: start a Ray for `readers` readers on this machine."""
        self._unreturned: list[list[object]] = []
        """what was borrowed when the connection was lost"""
        if address is not None and "ray" not in sys.modules:
            check_answers(address)  # sooner than to import Ray
        self.ray: Any = import_ray()
        if not _ONE_THREAD.acquire(blocking=False):  # who ends first would end Ray for both
            raise NoRayError("another thread of this process reads with workers= or ray=; wait for its end")
        with ExitStack() as ends:
            ends.callback(_ONE_THREAD.release)
            connected = self.ray.is_initialized()
            if not connected:
                with _own_handlers():
                    self._connect(address, readers, ends)
            here = self.ray.get_runtime_context()
            port = (address or "").rpartition(":")[2]
            if connected and port.isdecimal() and port != here.gcs_address.rpartition(":")[2]:
                to = f"the Ray cluster at {here.gcs_address}, not to {address}"
                raise NoRayError(f"this process is connected to {to}")
            own = here.get_node_id()
            paths = (str(node["RayletSocketName"]) for node in self.ray.nodes() if node["NodeID"] == own)
            self.watch(next(paths, ""))
            self._ends = ends.pop_all()

    def _connect(self, address: str | None, readers: int | None, ends: ExitStack) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        _silence(True)
        ends.callback(_silence, False)
        if address is not None:
            check_answers(address)
            ends.callback(self.ray.shutdown)
            try:
                self.ray.init(address=address, **quiet)
            except (ConnectionError, ValueError, RuntimeError, self.ray.exceptions.RayError) as error:
                why = _in_one_line(error)
                if "RAY_AUTH_MODE" not in os.environ:
                    why += "; if it asks for a token, set RAY_AUTH_MODE=token here too"
                raise NoRayError(f"no Ray cluster at '{address}': {why}") from error
            return
        # what processes of this user left that were killed; a folder of another user could not be written to
        for path in Path(_place()).glob(f"{_PREFIX}*-*"):
            pid = path.name.removeprefix(_PREFIX).partition("-")[0]
            with suppress(OSError):
                if pid.isdecimal() and path.stat().st_uid == os.getuid():
                    try:
                        os.kill(int(pid), 0)
                    except ProcessLookupError:
                        shutil.rmtree(path, ignore_errors=True)
        try:
            folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_place())
            ends.callback(_remove, folder)
            ends.callback(self.ray.shutdown)
            self.ray.init(
                address="local",  # whatever RAY_ADDRESS says
                num_cpus=readers or 1,
                include_dashboard=False,
                object_store_memory=_STORE + _PER_READER * (readers or 1),
                _temp_dir=folder,
                **quiet,
            )
        except Exception as error:  # Ray itself raises no narrower one
            raise NoRayError(f"Ray could not be started on this machine: {_in_one_line(error)}") from error

    def watch(self, path: str) -> None:
        """Look at the node with this socket, if that is on this machine."""
        self._look, self._lost = select.poll(), False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
            self._look.register(self._socket, select.POLLIN)  # a node that lives does not speak first
        except OSError:
            self._socket.close()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """A block in which Ray may be called. `LostRayError` if the node has ended."""
        self._check()
        try:
            yield
        except OSError:
            self._check(_AFTER_ERROR)
            raise

    def _check(self, patience: float = 0.0) -> None:
        """`LostRayError` if the node has ended, or does within so many seconds."""
        if not self._lost and self._look.poll(int(1000 * patience)):
            self._lost = True
            # References to what it held are still dropped. Ray ends this process if one is dropped in the
            # middle of `ray.shutdown`; it ignores them while it has no core worker.
            worker: Any = sys.modules.get("ray._private.worker")
            core = None if worker is None else vars(worker.global_worker).pop("core_worker", None)
            if core is not None:
                core.shutdown_driver()
            self.ray.shutdown()
        if self._lost:
            lost = "the connection to Ray is lost: its node on this machine has ended"
            raise LostRayError(f"{lost}; begin again, or go on from a checkpoint with {mention(resume=True)}")

    @contextmanager
    def borrowed(self, reference: object) -> Iterator[list[Any]]:
        """The list that a call which is done returned, whose arrays lie in shared memory, in this block only.

        To give memory back is a call to Ray. Raises the error of the call, and `LostRayError`.
        """
        with self.calling():
            found: list[Any] = self.ray.get(reference)
        try:
            yield found
        finally:
            try:
                with self.calling():
                    found.clear()
            except LostRayError:
                self._unreturned.append(found)

    def wait(self, references: list[Any], patience: float = math.inf, count: int = 1) -> list[Any]:
        """Those that are there, once so many are; none after so many seconds. Raises `LostRayError`."""
        until = time.monotonic() + patience
        while True:
            with self.calling():
                left = min(_POLL, max(until - time.monotonic(), 0.0))
                found: list[Any] = self.ray.wait(references, num_returns=count, timeout=left)[0]
            if len(found) >= count:
                return found
            if time.monotonic() >= until:
                return []

    def close(self) -> None:
        """Disconnect; stop the Ray that was started here, and remove its files."""
        self._socket.close()
        self._ends.close()


def _remove(folder: str) -> None:
    for _ in range(_ATTEMPTS):  # some of Ray's processes may still be ending and writing
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            break
        time.sleep(_PAUSE)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _own_handlers() -> Iterator[None]:
    """Keep the signal handlers of this process, which Ray replaces by its own.

    Raises KeyboardInterrupt in place of the SystemExit with which Ray's handler ends a process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except SystemExit:
        raise KeyboardInterrupt from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _place() -> str:
    """The folder for temporary files; /tmp if the paths of Ray's sockets in it would be too long."""
    folder, pid = tempfile.gettempdir(), os.getpid()
    session = f"session_2000-01-01_00-00-00_000000_{pid}/sockets/plasma_store"
    path = f"{folder}/{_PREFIX}{pid}-abcdefgh/{session}"
    return _SHORT if len(os.fsencode(path)) > LONGEST_SOCKET and os.path.isdir(_SHORT) else folder


def _silence(silent: bool) -> None:
    """Keep Ray from printing its own messages to standard output, where predictions may go."""
    worker: Any = sys.modules.get("ray._private.worker")
    if worker is not None:
        worker._worker_logs_enabled = not silent


def check_answers(address: str) -> None:
    """Raise `NoRayError` if nothing listens at HOST:PORT; Ray itself would wait for many minutes."""
    found = address
    if address == "auto":  # the given one, or the cluster that was started last on this machine
        noted = Path(os.environ.get("RAY_TMPDIR") or _SHORT) / "ray" / "ray_current_cluster"
        found = os.environ.get("RAY_ADDRESS") or (noted.read_text().strip() if noted.exists() else "")
    host, _, port = found.rpartition("://")[2].rpartition(":")
    if not (host and port.isdecimal()):
        return
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        at = f"'{address}'" if found == address else f"{found}, which '{address}' stands for"
        raise NoRayError(f"no Ray cluster at {at}: {error}") from error


def import_ray() -> Any:
    """The module `ray`."""
    if sys.modules.get("yaml", sys) is None:  # the command line keeps Numba from importing it
        del sys.modules["yaml"]
    import ray
    import ray.exceptions

    return ray
