"""Small requests that arrive together are parsed and predicted together, in the thread of the event loop.

Handing 64 requests to a kernel takes hardly longer than handing it one. What has arrived when the loop has
read all sockets that are ready is one batch: no request waits for others, and the busier the server, the
larger its batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from thresher.serving.errors import Answer, refusal


class BatchKind(NamedTuple):
    """What the requests of a batch have in common."""

    path: str
    media: str
    """the media type of their bodies"""
    output: str


class Later(NamedTuple):
    """Answers that can be given once some work is done."""

    work: Sequence[Future[Any]]
    answers: Callable[[], list[Answer]]


class Batcher:
    """Collects requests until the loop has nothing else to do."""

    def __init__(
        self,
        work: Callable[[list[bytes], list[str], BatchKind], list[Answer] | Later],
        answer: Callable[[Sequence[Any], Sequence[Answer]], None],
    ) -> None:
        """`work` is given bodies and keys; `answer` the requests of one kind and their answers."""
        self._work, self._answer = work, answer
        self._waiting: dict[BatchKind, list[Any]] = {}

    def add(self, kind: BatchKind, request: Any) -> None:
        """Answer a request, an `HttpRequest`, soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.setdefault(kind, []).append(request)

    def _flush(self) -> None:
        """Answer all requests that wait, or begin the work that must be done before."""
        waiting, self._waiting = self._waiting, {}
        for kind, requests in waiting.items():
            try:
                found = self._work([one.body for one in requests], [one.asked.key for one in requests], kind)
            except Exception as error:  # noqa: BLE001  (each client gets an answer)
                found = [refusal(error)] * len(requests)
            if isinstance(found, Later):
                self._answer_after(found, requests)
            else:
                self._answer(requests, found)

    def _answer_after(self, later: Later, requests: list[Any]) -> None:
        loop, left = asyncio.get_running_loop(), len(later.work)

        def finish() -> None:
            try:
                found = later.answers()
            except Exception as error:  # noqa: BLE001  (each client gets an answer)
                found = [refusal(error)] * len(requests)
            self._answer(requests, found)

        def one_more_done(_: object = None) -> None:  # in the thread that does the work, or in this one
            nonlocal left
            left -= 1
            if left <= 0:
                loop.call_soon_threadsafe(finish)

        for one in later.work:
            one.add_done_callback(one_more_done)
        if not later.work:
            one_more_done()
