"""Small requests that arrive together are parsed and predicted together, in the thread of the event loop.

Handing 64 requests to a kernel takes hardly longer than handing it one. What has arrived when the loop has
read all sockets that are ready is one batch: no request waits for others, and the busier the server, the
larger its batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from time import monotonic
from typing import Any, NamedTuple, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from thresher.serving.access_log import AccessLog
from thresher.serving.errors import as_json, refusal_of
from thresher.serving.openapi import JSON, LINES


class BatchKind(NamedTuple):
    """What the requests of a batch have in common."""

    path: str
    media: str
    """the media type of their bodies"""
    output: str


class Asker(Protocol):
    """A connection that waits for an answer."""

    client: tuple[str, int] | None

    def answer(self, head: bytes, body: bytes) -> None:
        """Take the answer: its head up to the length, and its body."""


class Answer(NamedTuple):
    """An answer to a body of rows."""

    status: int
    body: bytes
    media: str = LINES
    headers: Mapping[str, str] = {}
    """more headers"""
    rows: int = 0
    """of the body, good and bad"""


def refusal(error: Exception) -> Answer:
    """The answer to a request that is not done."""
    refused = refusal_of(error)
    return Answer(refused.status, as_json(refused.message), JSON, refused.headers)


class Later(NamedTuple):
    """Answers that can be given once some work is done."""

    work: Sequence[Future[Any]]
    answers: Callable[[], list[Answer]]


class WaitingBody(NamedTuple):
    """A body that waits."""

    asker: Asker
    body: bytes
    since: float
    key: str
    """that the client gave to know it again"""


class Batcher:
    """Collects requests until the loop has nothing else to do."""

    def __init__(
        self,
        work: Callable[[list[bytes], list[str], BatchKind], list[Answer] | Later],
        answered: Callable[[str, int, list[float]], None],
        log: AccessLog | None = None,
    ) -> None:
        """`work` is given bodies and keys; `answered` is told the path, the status and the seconds."""
        self._work, self._answered, self._log = work, answered, log
        self._waiting: dict[BatchKind, list[WaitingBody]] = {}
        self._heads: dict[tuple[int, str], bytes] = {}
        self._common: list[tuple[bytes, bytes]] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        """with which each answer begins; a new list replaces it when one of them changes"""

    def add(self, kind: BatchKind, request: WaitingBody) -> None:
        """Answer a request soon."""
        if not self._waiting:
            self.loop = self.loop or asyncio.get_running_loop()
            self.loop.call_soon(self.flush)
        self._waiting.setdefault(kind, []).append(request)

    def flush(self) -> None:
        """Answer all requests that wait, or begin the work that must be done before."""
        waiting, self._waiting = self._waiting, {}
        for kind, requests in waiting.items():
            try:
                found = self._work([one.body for one in requests], [one.key for one in requests], kind)
            except Exception as error:  # noqa: BLE001  (each client gets an answer)
                found = [refusal(error)] * len(requests)
            if isinstance(found, Later):
                self._answer_after(found, kind, requests)
            else:
                self._answer(found, kind, requests)

    def _answer_after(self, later: Later, kind: BatchKind, requests: list[WaitingBody]) -> None:
        assert self.loop is not None
        loop, left = self.loop, len(later.work)

        def finish() -> None:
            try:
                found = later.answers()
            except Exception as error:  # noqa: BLE001  (each client gets an answer)
                found = [refusal(error)] * len(requests)
            self._answer(found, kind, requests)

        def one_more_done(_: object = None) -> None:  # in the thread that does the work, or in this one
            nonlocal left
            left -= 1
            if left <= 0:
                loop.call_soon_threadsafe(finish)

        for one in later.work:
            one.add_done_callback(one_more_done)
        if not later.work:
            one_more_done()

    def _answer(self, answers: list[Answer], kind: BatchKind, requests: list[WaitingBody]) -> None:
        taken: dict[int, list[float]] = {}
        now = monotonic()
        for request, one in zip(requests, answers, strict=True):
            request.asker.answer(self._head(one), one.body)
            taken.setdefault(one.status, []).append(now - request.since)
            if self._log is not None:
                told = one.status, one.rows, len(one.body), now - request.since
                self._log.note(request.asker.client, "POST", kind.path, *told)
        for status, seconds in taken.items():
            self._answered(kind.path, status, seconds)

    def _head(self, one: Answer) -> bytes:
        """The head of an answer, up to the length of its body."""
        if self._common is not self.headers:
            self._common = self.headers
            self._heads.clear()
        if one.headers:
            return self._made(one)
        key = one.status, one.media
        if key not in self._heads:
            self._heads[key] = self._made(one)
        return self._heads[key]

    def _made(self, one: Answer) -> bytes:
        more = [(name.lower().encode(), value.encode()) for name, value in one.headers.items()]
        lines = [(b"content-type", one.media.encode()), *more, *self._common]
        head = b"".join(b"%b: %b\r\n" % pair for pair in lines)
        return STATUS_LINE[one.status] + head + b"content-length: "
