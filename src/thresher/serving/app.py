"""The ASGI application: who may ask what, what is counted, and how errors are told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import monotonic
from typing import Any

from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thresher.data.errors import DataError
from thresher.serving.access_log import AccessLog
from thresher.serving.endpoints import ROWS_READ, Endpoints
from thresher.serving.errors import RefusedError, as_json, refusal_of
from thresher.serving.intake import check_query
from thresher.serving.metrics import Metrics
from thresher.serving.openapi import ENDPOINTS, JSON, PATHS, Endpoint

Answering = Callable[[Request], Awaitable[Response]]

_OPEN = "/health/"
"""Paths for which no token is needed begin so"""
_GONE = 499
"""the status that is counted if the client left before its answer"""


def make_app(
    endpoints: Endpoints,
    metrics: Metrics,
    allowed: Callable[[bytes], bool] | None,
    log: AccessLog | None = None,
) -> ASGIApp:
    """The application. `allowed` says whether a header Authorization has the token, if there is one."""
    routes = [
        Route(one.path, _checked(getattr(endpoints, name), one), methods=[one.method], name=one.path)
        for name, one in ENDPOINTS.items()
    ]
    handlers: Any = {HTTPException: _unrouted, RefusedError: _refused, DataError: _refused}
    inner = ExceptionMiddleware(Router(routes, redirect_slashes=False), handlers)
    return _counted(_guarded(inner, allowed) if allowed else inner, metrics, log)


def _checked(answer: Answering, endpoint: Endpoint) -> Answering:
    """What answers requests, once their query has been checked."""

    async def checked(request: Request) -> Response:
        check_query(request, endpoint)
        return await answer(request)

    return checked


def said(error: RefusedError) -> Response:
    """An error as an answer."""
    return Response(as_json(error.message), error.status, error.headers, JSON)


async def _refused(request: Request, error: Exception) -> Response:
    return said(refusal_of(error))


async def _unrouted(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = str(error.detail)
    if error.status_code == HTTPStatus.NOT_FOUND:
        words = f"there is no such path; there are {', '.join(PATHS)}"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        words = f"use the method {(error.headers or {}).get('Allow', '')}"
    return said(RefusedError(error.status_code, words, headers=error.headers))


def _guarded(inner: ASGIApp, allowed: Callable[[bytes], bool]) -> ASGIApp:
    """The application for those who have the token."""
    stranger = RefusedError(
        *(401, "the token is missing or wrong: send Authorization: Bearer TOKEN"),
        headers={"WWW-Authenticate": "Bearer"},
    )

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(_OPEN):
            given = [value for name, value in scope["headers"] if name == b"authorization"]
            if not allowed(given[0] if given else b""):
                await said(stranger)(scope, receive, send)
                return
        await inner(scope, receive, send)

    return guarded


def _counted(inner: ASGIApp, metrics: Metrics, log: AccessLog | None) -> ASGIApp:
    """The application, whose answers are counted, and which never raises."""

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        begun, status, size = monotonic(), 0, 0

        async def sending(message: Message) -> None:
            nonlocal status, size
            status, size = message.get("status", status), size + len(message.get("body", b""))
            await send(message)

        metrics.queue.inc()
        scope["app"] = inner  # then the router raises, and `_unrouted` says what is wrong
        try:
            await inner(scope, receive, sending)
        except ClientDisconnect:
            status = status or _GONE
        except Exception as error:  # noqa: BLE001  (a fault must not end the service)
            refused = refusal_of(error)
            if not status:
                await said(refused)(scope, receive, sending)
        finally:
            metrics.queue.dec()
            path = scope["path"] if scope["path"] in PATHS else "other"
            seconds = monotonic() - begun
            metrics.answered(path, status, [seconds])
            if log is not None:
                told = scope.get(ROWS_READ, 0), size, seconds
                log.note(scope.get("client"), scope["method"], scope["path"], status, *told)

    return counted
