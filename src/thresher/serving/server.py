"""The process that serves a model: from options to a port, and from a signal to the end."""

from __future__ import annotations

import asyncio
import gc
import hmac
import os
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from math import inf
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

from thresher.learning.training.interruption import take
from thresher.options.messages import flag_of
from thresher.options.option import UsageError, given_in
from thresher.options.serving import LearningOptions
from thresher.serving.endpoints import Endpoints, Limits
from thresher.serving.errors import tell_fault
from thresher.serving.following import token_in
from thresher.serving.learning import MOST_ROWS, Snapshots
from thresher.serving.metrics import Metrics
from thresher.serving.predicting import Predictions
from thresher.serving.protocol import AccessLog, HttpConnection, Site
from thresher.serving.service import LearningService, Service, Settings

try:
    import uvloop
except ImportError:  # Windows
    uvloop = asyncio  # type: ignore[misc]
try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_SWITCH = 0.0005
"""seconds after which a thread that runs Python gives way; usual are 0.005, for which others would wait"""
_OTHER_FILES = 64
"""descriptors that are not connections"""
_THREADS = 2
_TICK = 0.1
"""seconds between two looks for signals and slow clients"""
_BACKLOG = 2048


def serve(model: Path, options: Any) -> None:
    """Serve the model until a signal comes. `UsageError`, `ModelFileError`, `DataError`, OSError."""
    limits = Limits(
        int(options["most_body"].amount),
        options["most_rows"],
        _room_for(options["most_connections"]),
        options["timeout"].amount,
    )
    allowed, log = guard(options["token"]), options["access_log"] and AccessLog(options["access_log"])
    with listening(options["host"], options["port"]) as listener, ThreadPoolExecutor(_THREADS) as pool:
        service = open_service(model, options)
        service.start()
        try:
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            sys.setswitchinterval(_SWITCH)
            server = Server(service, limits, allowed, pool, log)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(server.run(listener, lambda: tell(f"serving {model} at http://{shown}:{port}")))
        finally:
            service.close()


def open_service(model: Path, options: Any) -> Service:
    """The service that the options ask for. `UsageError`, `ModelFileError`, `LogError`, OSError."""
    if options["learn"] != (options["log"] is not None):
        raise UsageError("a server that learns needs a log: use --learn and --log DIR together")
    if not options["learn"]:
        if idle := [flag_of(name) for name in given_in(options, LearningOptions)]:
            raise UsageError(f"{idle[0]} is for a server that learns: use --learn and --log DIR")
        return Service(model, options["name"], tell)
    settings = settings_of(options)
    return LearningService(model, options["log"], settings, options["name"], tell)


def settings_of(options: Any) -> Settings:
    """How a service learns. `UsageError` for two shadows of one name."""
    every, keep, shadows = options["snapshot_every"], options["keep"], options["shadow"]
    names = [one.name for one in shadows]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"two models are called {twice}: give one of them another name, NAME=SPEC")
    rows = int(every.amount) if every.of == "rows" else MOST_ROWS
    return Settings(
        wait=options["wait"].amount,
        unlabelled=options["unlabelled"],
        most_kept=options["most_pending"],
        snapshots=Snapshots(rows, every.amount if every.of == "seconds" else inf),
        keep_bytes=int(keep.amount) if keep and keep.of == "bytes" else None,
        keep_seconds=keep.amount if keep and keep.of == "seconds" else None,
        shadows={one.name: one.spec for one in shadows},
    )


def tell(line: str) -> None:
    """Say something on standard error."""
    print(f"thresher: {line}", file=sys.stderr, flush=True)


class Server:
    """Answers requests until a signal comes."""

    def __init__(
        self,
        service: Any,
        limits: Limits,
        allowed: Callable[[bytes], bool] | None,
        pool: Executor,
        log: AccessLog | None,
    ) -> None:
        """`allowed` says whether the header Authorization has the token; None if there is none."""
        metrics = Metrics(service)
        self._predicting, self._timeout = Predictions(service, limits.rows, metrics), limits.timeout
        endpoints = Endpoints(service, self._predicting, limits, metrics, pool, allowed)
        self._site = Site(endpoints, self._predicting, limits, metrics, log)
        self._signals = 0

    async def run(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Serve; after a signal, answer what has been asked, unless that takes too long or another comes."""
        loop, site = asyncio.get_running_loop(), self._site
        loop.set_exception_handler(
            lambda _, found: tell_fault(found.get("exception") or RuntimeError(str(found.get("message"))))
        )
        if threading.current_thread() is threading.main_thread():
            take(self._asked_to_stop)
        self._predicting.warm()
        gc.collect()
        gc.freeze()  # or a search for garbage among all modules would hold up requests
        server = await loop.create_server(lambda: HttpConnection(site), sock=listener, backlog=_BACKLOG)
        ready()
        while not self._signals:
            await asyncio.sleep(_TICK)
            site.tick()
        tell("draining: no new connections; requests under way are answered")
        server.close()
        for one in [*site.connections]:
            one.shutdown()
        end = monotonic() + self._timeout
        while (site.connections or site.tasks) and self._signals == 1 and monotonic() < end:
            await asyncio.sleep(_TICK)
            site.tick()
        for one in [*site.connections]:
            one.transport.abort()

    def _asked_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1


def _room_for(connections: int) -> int:
    """As many connections as there may be descriptors."""
    if resource is None:
        return connections
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    room = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, room), most))
    return max(1, room - _OTHER_FILES)


def guard(file: Path | None) -> Callable[[bytes], bool] | None:
    """Whether the header Authorization has the token of a file; None without a file. `UsageError`."""
    if file is None:
        return None
    token = token_in(file).encode()

    def allowed(given: bytes) -> bool:
        scheme, _, found = given.partition(b" ")
        return hmac.compare_digest(found.strip(), token) and scheme.lower() == b"bearer"

    return allowed


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens. `UsageError`."""
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        named = isinstance(error, socket.gaierror)
        reason = str(error.strerror) if named else os.strerror(error.errno or 0)  # without Python's additions
        raise UsageError(f"cannot listen at {host}, port {port}: {reason.lower()}") from error
