"""Small predictions that arrive together are parsed and predicted together, in the thread of the event loop.

Handing 64 requests to a kernel takes hardly longer than handing it one. What has arrived when the loop has
read all sockets that are ready is one batch: no request waits for others, and the busier the server, the
larger its batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from time import monotonic
from typing import NamedTuple, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from thresher.serving.openapi import JSON, LINES


class BatchKind(NamedTuple):
    """What the requests of a batch have in common."""

    media: str
    """the media type of their bodies"""
    output: str


class Asker(Protocol):
    """A connection that waits for an answer."""

    def answer(self, head: bytes, body: bytes) -> None:
        """Take the answer: its head up to the length, and its body."""


class Answer(NamedTuple):
    """An answer to a body of rows."""

    status: int
    body: bytes


class Batcher:
    """Collects requests until the loop has nothing else to do."""

    def __init__(
        self,
        predict: Callable[[list[bytes], BatchKind], list[Answer]],
        answered: Callable[[int, list[float]], None],
    ) -> None:
        """`predict` predicts the rows of several bodies; `answered` is told the status and the seconds."""
        self._predict, self._answered = predict, answered
        self._waiting: dict[BatchKind, list[tuple[Asker, bytes, float]]] = {}
        self._heads: dict[int, bytes] = {}
        self._common: list[tuple[bytes, bytes]] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        """with which each answer begins; a new list replaces it when one of them changes"""

    def add(self, asker: Asker, kind: BatchKind, body: bytes, since: float) -> None:
        """Answer a request soon."""
        if not self._waiting:
            self.loop = self.loop or asyncio.get_running_loop()
            self.loop.call_soon(self.flush)
        self._waiting.setdefault(kind, []).append((asker, body, since))

    def flush(self) -> None:
        """Answer all requests that wait."""
        waiting, self._waiting = self._waiting, {}
        for kind, requests in waiting.items():
            answers = self._predict([body for _, body, _ in requests], kind)
            taken: dict[int, list[float]] = {}
            now = monotonic()
            for (asker, _, since), one in zip(requests, answers, strict=True):
                asker.answer(self._head(one.status), one.body)
                taken.setdefault(one.status, []).append(now - since)
            for status, seconds in taken.items():
                self._answered(status, seconds)

    def _head(self, status: int) -> bytes:
        """The head of an answer, up to the length of its body."""
        if self._common is not self.headers:
            self._common = self.headers
            self._heads.clear()
        if status not in self._heads:
            media = LINES if status == HTTPStatus.OK else JSON
            lines = [(b"content-type", media.encode()), *self._common]
            head = b"".join(b"%b: %b\r\n" % pair for pair in lines)
            self._heads[status] = STATUS_LINE[status] + head + b"content-length: "
        return self._heads[status]
