"""The process that serves a model: from options to a port, and from a signal to the end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hmac
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from math import ceil, inf
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import uvicorn

from thresher.learning.training.interruption import take
from thresher.options.messages import flag_of
from thresher.options.option import UsageError, given_in
from thresher.options.serving import LearningOptions
from thresher.serving.access_log import AccessLog
from thresher.serving.app import make_app
from thresher.serving.batching import Batcher
from thresher.serving.endpoints import Endpoints
from thresher.serving.errors import tell_fault
from thresher.serving.following import token_in
from thresher.serving.intake import Limits
from thresher.serving.learning import MOST_ROWS, Snapshots
from thresher.serving.metrics import Metrics
from thresher.serving.predicting import Predictions
from thresher.serving.protocol import HttpConnection, Ways
from thresher.serving.service import LearningService, Service, Settings

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_SWITCH = 0.0005
"""seconds after which a thread that runs Python gives way; usual are 0.005, for which others would wait"""
_OTHER_FILES = 64
"""descriptors that are not connections"""
_THREADS = 2
_CHECK = 5
"""ticks between two looks for slow clients"""


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
        service = opened(model, options)
        service.start()
        try:
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            _quiet()
            server = Server(service, limits, allowed, pool, log)
            server.ready = lambda: tell(f"serving {model} at http://{shown}:{port}")
            server.run(sockets=[listener])
        finally:
            service.close()


def opened(model: Path, options: Any) -> Service:
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


class Server(uvicorn.Server):
    """uvicorn's, which checks connections and ends with status 0."""

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
        work = Predictions(service, limits.rows, metrics)
        endpoints = Endpoints(service, work, limits, metrics, pool)
        self._metrics, self._warm = metrics, work.warm
        self._batcher = Batcher(work.work, metrics.answered, log)
        ways = Ways(self._batcher, work.kind_of, allowed, limits, log)
        protocol: Any = type("HttpConnection", (HttpConnection,), {"ways": ways})
        super().__init__(
            uvicorn.Config(
                make_app(endpoints, metrics, allowed, log),
                http=protocol,
                loop="auto",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=ceil(limits.timeout),
                timeout_graceful_shutdown=ceil(limits.timeout),
            )
        )
        self.ready: Callable[[], None] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        asyncio.get_running_loop().set_exception_handler(lambda _, found: tell_fault(_error_in(found)))
        self._warm()
        gc.collect()
        gc.freeze()  # or a search for garbage among all modules would hold up requests
        await super().startup(sockets)
        self.ready()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: notice signals, and clients that are too slow."""
        ends = await super().on_tick(counter)
        connections = [*self.server_state.connections]
        self._batcher.headers = self.server_state.default_headers
        self._metrics.connections.set(len(connections))
        if counter % _CHECK == 0:
            now = monotonic()
            for one in connections:
                one.check(now)  # type: ignore[union-attr]
        return ends

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what has been asked."""
        tell("draining: no new connections; requests under way are answered")
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let a signal end the service, which is no failure."""
        if threading.current_thread() is threading.main_thread():
            take(self._asked_to_stop)
        yield

    def _asked_to_stop(self, number: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def _error_in(found: dict[str, Any]) -> BaseException:
    error = found.get("exception")
    return error if isinstance(error, BaseException) else RuntimeError(str(found.get("message")))


def _quiet() -> None:
    """Give threads that run Python shorter turns, and let the server say what uvicorn would log."""
    sys.setswitchinterval(_SWITCH)
    for name in ("uvicorn.error", "uvicorn.access"):
        log = logging.getLogger(name)
        log.propagate, log.handlers = False, [logging.NullHandler()]


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
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        named = isinstance(error, socket.gaierror)
        reason = str(error.strerror) if named else os.strerror(error.errno or 0)  # without Python's additions
        raise UsageError(f"cannot listen at {host}, port {port}: {reason.lower()}") from error
