"""A service in this process, asked without sockets."""

import asyncio
import json
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thresher.serving.app import make_app
from thresher.serving.endpoints import Endpoints
from thresher.serving.errors import RefusedError
from thresher.serving.intake import Limits
from thresher.serving.metrics import Metrics
from thresher.serving.predicting import Predictions
from thresher.serving.requests import Ack, Labelled
from thresher.serving.service import Service, Status

TOKEN = b"Bearer secret"


class Learning(Service):
    """Acknowledges as a service that learns does, and keeps what it was given."""

    learns = True

    def __init__(self, path: Path) -> None:
        super().__init__(path, "clicks")
        self.rows, self.kept, self.labels = list[Any](), dict[str, Any](), list[Any]()
        self.keys = dict[str, Ack]()
        self.refusal: RefusedError | None = None

    def status(self) -> Any:
        reason = "" if self.refusal is None else self.refusal.message
        return Status(not reason, True, reason, learned=len(self.rows), log_bytes=77, sync_seconds=0.5)

    def learn(self, *given: Any) -> Any:
        chunk, key = given
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
        ids, _, margins = given
        self.kept |= dict(zip(ids, margins.tolist(), strict=True))
        return done(Ack(0, 0, False))

    def label(self, *given: Any) -> Any:
        ids, labels, weights = given
        self.labels += [*zip(ids, labels.tolist(), weights.tolist(), strict=True)]
        return done(Labelled(1, len(ids), len(ids), 0, 0, []))

    def promote(self, *given: Any) -> Any:
        raise RefusedError(404, f"there is no shadow model {given[0]}")


def done(found: Any) -> Future[Any]:
    future = Future[Any]()
    future.set_result(found)
    return future


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
    """An application, and what it answers."""

    def __init__(self, service: Any, *, body: int = 10_000, rows: int = 100, token: bool = False) -> None:
        self.metrics = Metrics(service)
        self.predicting = Predictions(service, rows, self.metrics)
        limits = Limits(body, rows, 10, 1.0)
        self.endpoints = Endpoints(service, self.predicting, limits, self.metrics, ThreadPoolExecutor(1))
        self.app = make_app(self.endpoints, self.metrics, (lambda one: one == TOKEN) if token else None)

    def __call__(
        self, method: str, target: str, body: bytes | list[bytes] | None = b"", **headers: str
    ) -> Told:
        """Ask; a list comes in parts, and its length is not told; None is a client that leaves."""
        return asyncio.run(self._asked(method, target, body, headers))

    async def _asked(self, method: str, target: str, body: Any, headers: dict[str, str]) -> Told:
        path, _, query = target.partition("?")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        parts = [body] if isinstance(body, bytes) else body or []
        if isinstance(body, bytes):
            named.setdefault("content-length", str(len(body)))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "scheme": "http",
        }
        coming, sent = [*parts], list[Any]()

        async def receive() -> Any:
            if body is None:
                return {"type": "http.disconnect"}
            if not coming:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": coming.pop(0), "more_body": bool(coming)}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]} if sent else {}
        status = sent[0]["status"] if sent else 0
        return Told(status, found, b"".join(one.get("body", b"") for one in sent[1:]))
