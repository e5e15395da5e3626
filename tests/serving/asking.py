"""A service in this process, asked without sockets."""

import asyncio
import json
from concurrent.futures import Future, ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thresher.serving.appending import Ack
from thresher.serving.endpoints import Endpoints, Limits
from thresher.serving.errors import RefusedError
from thresher.serving.metrics import Metrics
from thresher.serving.openapi import LabelsLearned
from thresher.serving.predicting import Predictions
from thresher.serving.protocol import HttpConnection, Site
from thresher.serving.service import Service, Status

TOKEN = b"Bearer secret"


class Learning(Service):
    """Acknowledges as a service that learns does, and keeps what it was given."""

    learns = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rows, self.kept, self.labels = list[Any](), dict[str, Any](), list[Any]()
        self.keys = dict[str, Ack]()
        self.refusal: RefusedError | None = None

    def status(self) -> Any:
        reason = "" if self.refusal is None else self.refusal.message
        return Status(not reason, True, reason, learned=len(self.rows), log_bytes=77, sync_seconds=0.5)

    def learn(self, *given: Any) -> Any:
        chunk, key = (*given, "")[:2]
        if self.refusal is not None:
            raise self.refusal
        if key in self.keys:
            return done(self.keys[key]._replace(repeated=True))
        first = len(self.rows) + 1
        self.rows += [*zip(chunk.labels.tolist(), np.diff(chunk.indptr).tolist(), strict=True)]
        ack = Ack(first, len(self.rows), False)
        if key:
            self.keys[key] = ack
        return done(ack)

    def keep(self, *given: Any) -> Any:
        ids, chunk = given
        self.kept |= dict(zip(ids, np.diff(chunk.indptr).tolist(), strict=True))
        return done(Ack(0, 0, False))

    def label(self, *given: Any) -> Any:
        several, labels, weights = given
        ids = [one for ids in several for one in ids]
        self.labels += [*zip(ids, labels.tolist(), weights.tolist(), strict=True)]
        return done([LabelsLearned(1, len(ids), len(ids), 0, 0, [])] * len(several))


def done(found: Any) -> Future[Any]:
    future = Future[Any]()
    future.set_result(found)
    return future


class Transport(asyncio.Transport):
    """A socket, of which the test is the other side."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.paused, self.closed = b"", False, False

    def write(self, data: Any) -> None:
        assert not self.closed
        self.written += data

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed


class Told(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]


class Asked:
    """A server of a service, and what it answers."""

    def __init__(self, service: Any, *, body: int = 10_000, rows: int = 100, token: bool = False) -> None:
        metrics, limits = Metrics(service), Limits(body, rows, 10, 1.0)
        self.predicting = Predictions(service, rows, metrics)
        allowed = (lambda one: one == TOKEN) if token else None
        pool = ThreadPoolExecutor(1)
        self.site = Site(
            Endpoints(service, self.predicting, limits, metrics, pool, allowed),
            self.predicting,
            limits,
            metrics,
        )

    def __call__(
        self, method: str, target: str, body: bytes | list[bytes] | None = b"", **headers: str
    ) -> Told:
        """Ask; a list comes in parts, and its length is not told; None is a client that leaves."""
        return asyncio.run(self._asked(method, target, body, headers))

    async def _asked(self, method: str, target: str, body: Any, headers: dict[str, str]) -> Told:
        named = {name.replace("_", "-"): value for name, value in headers.items()} | {"host": "a"}
        parts = (
            [b"%x\r\n%b\r\n" % (len(one), one) for one in body] if isinstance(body, list) else [body or b""]
        )
        if isinstance(body, list):
            parts.append(b"0\r\n\r\n")
            named["transfer-encoding"] = "chunked"
        else:
            named["content-length"] = "1" if body is None else str(len(body))
        head = [f"{method} {target} HTTP/1.1", *map(": ".join, named.items()), "", ""]
        transport, connection = Transport(), HttpConnection(self.site)
        connection.connection_made(transport)
        for part in ["\r\n".join(head).encode(), *parts]:
            if not transport.closed:
                connection.data_received(part)
        while connection.owing:
            await asyncio.sleep(0.0005)
        transport.closed = True
        connection.connection_lost(None)
        text, _, found = transport.written.partition(b"\r\n\r\n")
        if not text:
            return Told(0, {}, b"")
        begin, *lines = text.decode().split("\r\n")
        told = dict(line.split(": ", 1) for line in lines)
        parsedate_to_datetime(told.pop("date"))
        return Told(int(begin.split()[1]), told, found)
