"""What each path does, and who may ask for it. Methods have the names of `openapi.ENDPOINTS` without rows."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec
import pyarrow as pa
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from thresher.data.files.paths import name_errors
from thresher.runs import files
from thresher.serving import openapi
from thresher.serving.errors import Answer, RefusedError, json_answer, refusal
from thresher.serving.metrics import Metrics
from thresher.serving.openapi import ENDPOINTS
from thresher.serving.predicting import BatchKind, Later, Predictions
from thresher.serving.reading import Asked, HttpRequest, head_of
from thresher.serving.service import Service

SMALL = 16_384
"""bytes of a body that is read in the thread of the loop: handing it to another would take longer"""
_OPEN = "/health/"
"""Paths for which no token is needed begin so"""
NAMES = {one.path: name for name, one in ENDPOINTS.items()}
"""Of the endpoints, by path"""
_PACKINGS = {"gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd"}


class Limits(NamedTuple):
    """How much clients may send, and how long they may take."""

    body: int
    """bytes, packed or not"""
    rows: int = 100_000
    connections: int = 900
    """fewer than files may usually be open"""
    timeout: float = 30.0
    """seconds for a request to arrive"""


class Endpoints:
    """The paths of a service. `allowed` says whether the header Authorization has the token, if any."""

    def __init__(
        self,
        service: Service,
        predicting: Predictions,
        limits: Limits,
        metrics: Metrics,
        pool: Executor,
        allowed: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._service, self._predicting, self._limits = service, predicting, limits
        self._metrics, self._pool, self._allowed = metrics, pool, allowed or (lambda given: True)
        self._document = msgspec.json.encode(openapi.document())

    def asked(self, text: bytes) -> Asked:
        """What a head asks for; the same for the same text. `RefusedError` if it is not valid HTTP."""
        asked = head_of(text)
        query = asked.target.partition(b"?")[2].decode()
        given = parse_qsl(query, keep_blank_values=True)
        name = NAMES.get(asked.path, "")
        asked = asked._replace(name=name, query=dict(given))
        token = asked.headers.get(b"authorization", b"")
        try:
            if not (asked.path.startswith(_OPEN) or self._allowed(token)):
                why = "the token is missing or wrong: send Authorization: Bearer TOKEN"
                raise RefusedError(401, why, headers={"WWW-Authenticate": "Bearer"})
            if not name:
                raise RefusedError(404, f"there is no such path; there are {', '.join(NAMES)}")
            endpoint = ENDPOINTS[name]
            methods = ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,)
            if asked.method.decode() not in methods:
                allow = ", ".join(methods)
                raise RefusedError(405, f"use the method {allow}", headers={"Allow": allow})
            choices = {one.name: one.choices for one in endpoint.parameters if one.place == "query"}
            for one, value in given:
                if one not in choices:
                    known = f"known: {', '.join(sorted(choices))}" if choices else "it takes none"
                    raise RefusedError(400, f"{asked.path} has no parameter {one[:40]!r}; {known}")
                if [name for name, _ in given].count(one) > 1:
                    raise RefusedError(400, f"the parameter {one} is given twice")
                if choices[one] and value not in choices[one]:
                    raise RefusedError(400, f"{one} must be one of {', '.join(choices[one])}")
                if not value:
                    raise RefusedError(400, f"the parameter {one} is empty")
        except RefusedError as error:
            return asked._replace(refusal=refusal(error))
        return asked._replace(kind=BatchKind.of(asked) if endpoint.takes else None)

    def answer(self, request: HttpRequest) -> list[Answer] | Later:
        """The answer to a request; found elsewhere if rows are many, packed or the first of their kind."""
        asked, work = request.asked, partial(self._answer, request)
        is_small = len(request.body) <= SMALL and not asked.header(b"content-encoding")
        if is_small and (asked.kind is None or self._predicting.now.bodies.is_loaded(asked.media)):
            return work()
        done = self._pool.submit(work)
        return Later([done], done.result)

    def _answer(self, request: HttpRequest) -> list[Answer] | Later:
        """The answer to a request, whose body is unpacked before, which takes a second for the largest."""
        asked, body = request.asked, request.body
        packing = asked.header(b"content-encoding").lower() or "identity"
        if packing != "identity":
            if packing not in _PACKINGS:
                accepted = {"Accept-Encoding": "gzip, zstd"}
                raise RefusedError(
                    415, "bodies may be packed by gzip or zstd, nothing else", headers=accepted
                )
            with (
                name_errors("the body"),
                pa.CompressedInputStream(pa.BufferReader(body), _PACKINGS[packing]) as stream,
            ):
                body = stream.read(self._limits.body + 1)
            if len(body) > self._limits.body:
                raise too_large(self._limits)
        if asked.kind is not None:
            return self._predicting.work([body], [asked.key], asked.kind)
        found: Answer | Later = getattr(self, asked.name)(request)
        return [found] if isinstance(found, Answer) else found

    def metrics(self, request: HttpRequest) -> Answer:
        return Answer(200, generate_latest(self._metrics.registry), CONTENT_TYPE_LATEST)

    def live(self, request: HttpRequest) -> Answer:
        return json_answer(openapi.Live(True))

    def ready(self, request: HttpRequest) -> Answer:
        status = self._service.status()
        if not status.ready:
            raise RefusedError(503, status.reason or "not ready yet", 1)
        return json_answer(openapi.ServiceReady(True, status.learning, status.reason))

    def about(self, request: HttpRequest) -> Later:
        found = self._pool.submit(files.describe, self._service.snapshot()[0])
        return Later([found], lambda: [json_answer(found.result())])

    def openapi(self, request: HttpRequest) -> Answer:
        return Answer(200, self._document)

    def snapshot(self, request: HttpRequest) -> Answer:
        path, sequence = self._service.snapshot()
        # the row alone would not tell a model from another file that has taken its place
        tag = {"ETag": f'"{sequence}-{path.stat().st_mtime_ns:x}"'}
        if request.asked.header(b"if-none-match") == tag["ETag"]:
            return Answer(304, b"", "", tag)
        return Answer(200, b"", "application/octet-stream", tag, file=path.open("rb"))


def too_large(limits: Limits) -> RefusedError:
    """Why a body is not read."""
    return RefusedError(413, f"the body is larger than {limits.body:,} bytes")
