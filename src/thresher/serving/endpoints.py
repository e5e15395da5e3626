"""What each path does. The methods have the names of `openapi.ENDPOINTS`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from thresher._version import __version__
from thresher.serving.errors import NOT_JSON, RefusedError, why_not_json
from thresher.serving.intake import BodyIntake, Limits
from thresher.serving.late_labels import read_labels
from thresher.serving.metrics import Metrics
from thresher.serving.openapi import (
    ARROW,
    JSON,
    LINES,
    LabelsLearned,
    Live,
    ModelReady,
    Promoted,
    ServerName,
    ServiceReady,
    document,
)
from thresher.serving.predicting import Predictions, ids_of, status_of
from thresher.serving.taking import acknowledgement, check_some

T = TypeVar("T")
ROWS_READ = "thresher.rows"
"""where the scope of a request has the number of its rows"""
_SMALL = 16_384
"""bytes of a body that is read in the thread of the loop: handing it to another would take longer"""
_BLOCK = 1 << 20


class _Promotion(msgspec.Struct, forbid_unknown_fields=True):
    model: str


class Endpoints:
    """The paths of a service."""

    def __init__(
        self, service: Any, predicting: Predictions, limits: Limits, metrics: Metrics, pool: Executor
    ) -> None:
        self._service, self._predicting, self._limits = service, predicting, limits
        self._metrics, self._pool, self._intake = metrics, pool, BodyIntake(limits.body)
        self._document = msgspec.json.encode(document())

    async def predict(self, request: Request) -> Response:
        """Predict rows."""
        output, top, ids = (request.query_params.get(name, "") for name in ("output", "top", "ids"))
        arrow = ARROW in request.headers.get("accept", "")
        async with self._intake.body(request) as body:
            work, media = self._predicting, _media(request)
            found = await self._done(body, media, lambda: work.predict(body, media, output, ids, top))
            request.scope[ROWS_READ] = found.rows.all
            if ids:
                good = ids_of(found.rows)
                await _kept(self._service.keep(good, found.rows.chunk, found.margins))
            written = await self._done(body, media, lambda: work.written(found, arrow))
        return Response(written, status_of(found.rows), media_type=ARROW if arrow else LINES)

    async def learn(self, request: Request) -> Response:
        """Learn labelled rows."""
        key = request.headers.get("idempotency-key", "")
        async with self._intake.body(request) as body:
            media = _media(request)
            rows = await self._done(body, media, lambda: self._predicting.labelled(body, media))
            request.scope[ROWS_READ] = rows.all
            ack = await _kept(self._service.learn(check_some(rows).chunk, key))
        return _json(acknowledgement(rows, ack))

    async def label(self, request: Request) -> Response:
        """Learn rows that were kept."""
        async with self._intake.body(request) as body:
            late = read_labels(body, self._service.model, self._limits.rows)
            request.scope[ROWS_READ] = len(late.ids)
            return _json(LabelsLearned(*await _kept(self._service.label(*late))))

    async def metrics(self, request: Request) -> Response:
        """Tell figures."""
        return Response(self._metrics.page(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def live(self, request: Request) -> Response:
        """Answer."""
        return _json(Live(True))

    async def ready(self, request: Request) -> Response:
        """Tell whether all is well."""
        status = self._service.status()
        if not status.ready:
            raise RefusedError(503, status.reason or "not ready yet", 1)
        return _json(ServiceReady(True, status.learning, status.reason))

    live_v2, ready_v2 = live, ready

    async def about(self, request: Request) -> Response:
        """Tell what is in the model."""
        return _json(await asyncio.get_running_loop().run_in_executor(self._pool, self._service.info))

    async def openapi(self, request: Request) -> Response:
        """Tell what may be asked."""
        return Response(self._document, media_type=JSON)

    async def server(self, request: Request) -> Response:
        """Tell who answers."""
        return _json(ServerName("thresher", __version__, []))

    async def described(self, request: Request) -> Response:
        """Tell what the model takes and gives."""
        self._check_name(request)
        return _json(self._predicting.inference.described())

    async def infer(self, request: Request) -> Response:
        """Predict tensors."""
        self._check_name(request)
        async with self._intake.body(request) as body:
            return Response(
                await self._done(body, JSON, lambda: self._predicting.infer(body)), media_type=JSON
            )

    async def model_ready(self, request: Request) -> Response:
        """Tell whether the model can predict."""
        self._check_name(request)
        return _json(ModelReady(self._service.name, True))

    async def snapshot(self, request: Request) -> Response:
        """Give the newest model on disk."""
        path, sequence = self._service.snapshot()
        # the row alone would not tell one model from another that has taken over, or from a replaced file
        tag = {"ETag": f'"{sequence}-{path.stat().st_mtime_ns:x}"'}
        if request.headers.get("if-none-match") == tag["ETag"]:
            return Response(status_code=304, headers=tag)
        return FileResponse(path, tag)

    async def promote(self, request: Request) -> Response:
        """Let another model take over."""
        async with self._intake.body(request) as body:
            try:
                wanted = msgspec.json.decode(body, type=_Promotion)
            except NOT_JSON as error:
                raise RefusedError(400, f'expected {{"model": NAME}}: {why_not_json(error)}') from error
            return _json(Promoted(*await _kept(self._service.promote(wanted.model))))

    def _check_name(self, request: Request) -> None:
        if request.path_params["name"] != self._service.name:
            raise RefusedError(404, f"there is one model here, {self._service.name}")

    async def _done(self, body: bytes, media: str, work: Callable[[], T]) -> T:
        """Do some work on a body, elsewhere if it is large or the first of its kind."""
        if len(body) <= _SMALL and self._predicting.is_loaded(media):
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


async def _kept(future: Future[T]) -> T:
    """What a future gives; it goes on if the client leaves."""
    return await asyncio.shield(asyncio.wrap_future(future))


def _media(request: Request) -> str:
    return request.headers.get("content-type", "")


def _json(found: Any) -> Response:
    return Response(msgspec.json.encode(found, enc_hook=str) + b"\n", media_type=JSON)


class FileResponse(Response):
    """The content of a file as it is now, if another takes its place too; closed whatever the client does."""

    def __init__(self, path: Path, headers: dict[str, str]) -> None:
        self._file = path.open("rb")
        length = {"Content-Length": str(os.fstat(self._file.fileno()).st_size)}
        super().__init__(headers=headers | length, media_type="application/octet-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        with self._file as file:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while block := file.read(_BLOCK):
                await send({"type": "http.response.body", "body": block, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
