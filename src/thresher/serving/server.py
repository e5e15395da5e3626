"""The process that serves a model: from options to a port, and from a signal to the end."""

from __future__ import annotations

import asyncio
import gc
import hmac
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

from thresher.learning.training.interruption import take
from thresher.options.messages import flag_of
from thresher.options.option import Options, UsageError, given_options
from thresher.options.serving import LearningOptions
from thresher.serving.endpoints import Endpoints, Limits
from thresher.serving.errors import tell_fault
from thresher.serving.metrics import Metrics
from thresher.serving.predicting import Predictions
from thresher.serving.protocol import HttpConnection, Site
from thresher.serving.service import LearningService, Service

try:
    import uvloop
except ImportError:  # Windows
    uvloop = asyncio  # type: ignore[misc]

_SWITCH = 5e-5
"""Seconds after which a thread that runs Python gives way; usual are 0.005. The loop takes the interpreter's
lock again for each socket that it reads, so 64 requests would wait 64 times for the thread that learns."""
_THREADS = 2
_TICK = 0.1
"""seconds between two looks for signals and slow clients"""
_BACKLOG = 2048
LIMITS = Limits(0)
"""Those that no option sets"""


def serve(model: Path, options: Options) -> None:
    """Serve the model until a signal comes. `UsageError`, `ModelFileError`, `DataError`, OSError."""
    limits, allowed = LIMITS._replace(body=int(options["most_body"].amount)), None
    if options["token"] is not None:
        token = options["token"].read_bytes().strip()
        if not token or not all(33 <= byte < 127 for byte in token):
            form = "a token is a line of letters, digits and signs, without spaces"
            raise UsageError(f"{options['token']}: {form}")

        def allowed(given: bytes) -> bool:
            scheme, _, found = given.partition(b" ")
            return hmac.compare_digest(found.strip(), token) and scheme.lower() == b"bearer"

    with _listening(options["host"], options["port"]) as listener, ThreadPoolExecutor(_THREADS) as pool:
        if options["learn"] != (options["log"] is not None):
            raise UsageError("a server that learns needs a log: use --learn and --log DIR together")
        if options["learn"]:
            service: Service = LearningService(model, options["log"], options, tell)
        elif idle := [flag_of(name) for name in given_options(options, LearningOptions)]:
            raise UsageError(f"{idle[0]} is for a server that learns: use --learn and --log DIR")
        else:
            service = Service(model, tell)
        service.start()
        try:
            sys.setswitchinterval(_SWITCH)
            metrics = Metrics(service)
            predicting = Predictions(service, limits.rows, metrics)
            endpoints = Endpoints(service, predicting, limits, metrics, pool, allowed)
            site = Site(endpoints, predicting, limits, metrics)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_answer(site, predicting, limits.timeout, listener, model))
        finally:
            service.close()


def tell(line: str) -> None:
    """Say something on standard error."""
    print(f"thresher: {line}", file=sys.stderr, flush=True)


async def _answer(
    site: Site, predicting: Predictions, timeout: float, listener: socket.socket, model: Path
) -> None:
    """Serve; after a signal, answer what has been asked, unless that takes too long or another comes."""
    loop, signals = asyncio.get_running_loop(), list[int]()
    loop.set_exception_handler(
        lambda _, found: tell_fault(found.get("exception") or RuntimeError(str(found.get("message"))))
    )
    if threading.current_thread() is threading.main_thread():
        take(lambda number, frame: signals.append(number))
    predicting.warm()
    gc.collect()
    gc.freeze()  # or a search for garbage among all modules would hold up requests
    server = await loop.create_server(lambda: HttpConnection(site), sock=listener, backlog=_BACKLOG)
    host, port = listener.getsockname()[:2]
    tell(f"serving {model} at http://{f'[{host}]' if ':' in host else host}:{port}")
    while not signals:
        await asyncio.sleep(_TICK)
        site.tick()
    tell("draining: no new connections; requests under way are answered")
    server.close()
    for one in [*site.connections]:
        one.shutdown()
    end = monotonic() + timeout
    while (site.connections or site.tasks) and len(signals) == 1 and monotonic() < end:
        await asyncio.sleep(_TICK)
        site.tick()
    for one in [*site.connections]:
        one.transport.abort()


def _listening(host: str, port: int) -> socket.socket:
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
