"""HTTP of connections: one request after the other, limits on clients, answers.

An ASGI server takes three times as long for an empty request, since each costs a task, a scope and several
messages. Here small ``POST /predict``, ``/learn`` and ``/label`` wait until the loop has nothing else to do,
and are answered together: handing 64 requests to a kernel takes hardly longer than handing it one. What has
arrived when the loop has read all sockets that are ready is one batch: no request waits for others, and the
busier the server, the larger its batches. Other requests are answered one by one.

A request is read once the one before it is answered; until then, nothing more is read from the socket.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from time import monotonic

from thresher.serving.endpoints import SMALL, Endpoints, Limits, too_large
from thresher.serving.errors import Answer, RefusedError, refusal
from thresher.serving.metrics import Metrics
from thresher.serving.predicting import BatchKind, Later, Predictions
from thresher.serving.reading import LONGEST_HEAD, NOTHING, Asked, Body, HttpRequest, check_beginning

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_SHORT = 1024
"""bytes of a head that is remembered"""
_UNDER_WAY = 4
"""bodies of the largest size that may be in memory at one time"""
_BLOCK = 1 << 20
_NOT_MODIFIED = 304
GONE = 499
"""the status that is counted if the client left before its request was whole"""


class Site:
    """What the connections of a server share: what is asked, by which limits, and how it is answered.

    `endpoints` says what a head asks, and answers single requests; `predicting` those that wait together.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        predicting: Predictions,
        limits: Limits,
        metrics: Metrics,
        remembered: int = 1024,
    ) -> None:
        """`remembered`: how many heads, since most clients send the same head again and again."""
        self.limits, self._endpoints, self._predicting = limits, endpoints, predicting
        self._metrics = metrics
        self._waiting = dict[BatchKind, list[HttpRequest]]()
        self._remembered: Callable[[bytes], Asked] = lru_cache(remembered)(endpoints.asked)
        self._heads = dict[tuple[int, str], bytes]()
        self.connections, self.tasks = set[HttpConnection](), set[asyncio.Task[None]]()
        self.small, self.held = min(SMALL, limits.body), 0
        """bytes of a body that is small, and of those together that are not"""
        metrics.connections = self.connections
        self.tick()

    def tick(self) -> None:
        """Ten times a second: renew the date in heads, and look for clients that are too slow."""
        self._date = formatdate(usegmt=True)
        self._heads.clear()
        now = monotonic()
        for one in [*self.connections]:
            one.check(now)

    def asked(self, head: bytes) -> Asked:
        """What a head asks for. `RefusedError`."""
        return self._remembered(head) if len(head) <= _SHORT else self._endpoints.asked(head)

    def take(self, request: HttpRequest) -> None:
        """Answer a request: together with others if it is small and usual."""
        kind = self._predicting.kind_of(request.asked) if len(request.body) <= SMALL else None
        loop = asyncio.get_running_loop()
        if kind is None:
            loop.call_soon(self._answer_all, [request], partial(self._endpoints.answer, request), loop)
            return
        if not self._waiting:
            loop.call_soon(self._flush, loop)
        self._waiting.setdefault(kind, []).append(request)

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer all requests that wait, or begin the work that must be done before."""
        waiting, self._waiting = self._waiting, {}
        for kind, requests in waiting.items():
            bodies, keys = [one.body for one in requests], [one.asked.key for one in requests]
            self._answer_all(requests, partial(self._predicting.work, bodies, keys, kind), loop)

    def _answer_all(
        self,
        requests: Sequence[HttpRequest],
        work: Callable[[], Sequence[Answer] | Later],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        try:
            found = work()
        except Exception as error:  # noqa: BLE001  (each client gets an answer)
            found = [refusal(error)] * len(requests)
        if isinstance(found, Later):
            answers, left = found.answers, len(found.work)

            def one_more_done(_: object) -> None:  # in the thread that does the work, or in this one
                nonlocal left
                left -= 1
                if left == 0:
                    loop.call_soon_threadsafe(self._answer_all, requests, answers, loop)

            for one in found.work:
                one.add_done_callback(one_more_done)
        elif found[0].file is None:
            self.answer(requests, found)
        else:
            task = loop.create_task(requests[0].asker.send(requests[0], found[0]))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def answer(self, requests: Sequence[HttpRequest], answers: Sequence[Answer]) -> None:
        """Give and count the answers to requests of one path."""
        taken, now = dict[int, list[float]](), monotonic()
        for request, one in zip(requests, answers, strict=True):
            request.asker.answer(one)
            taken.setdefault(one.status, []).append(now - request.since)
        asked = requests[0].asked
        for status, seconds in taken.items():
            self._metrics.count_answers(asked.path if asked.name else "other", status, seconds)

    def head(self, one: Answer, length: int, closes: bool) -> bytes:
        """The head of an answer with a body of this length."""
        begin = self._heads.get((one.status, one.media)) if not one.headers else None
        if begin is None:
            more = {"content-type": one.media} if one.media else {}
            more |= {name.lower(): value for name, value in one.headers.items()} | {"date": self._date}
            lines = [f"HTTP/1.1 {one.status} {HTTPStatus(one.status).phrase}"]
            begin = "\r\n".join(lines + [f"{name}: {value}" for name, value in more.items()]).encode()
            if not one.headers:
                self._heads[one.status, one.media] = begin
        size = b"" if one.status == _NOT_MODIFIED else b"\r\ncontent-length: %d" % length
        return b"".join((begin, size, b"\r\nconnection: close\r\n\r\n" if closes else b"\r\n\r\n"))


class HttpConnection(asyncio.Protocol):
    """A connection to a site."""

    transport: asyncio.Transport

    def __init__(self, site: Site) -> None:
        self._site = site
        self.since = monotonic()
        """when the client became slow: it has not sent all of a request, or not read all of an answer"""
        self._text, self._at = b"", 0
        """what has arrived, and how much of it has been read"""
        self._reading = self._receiving = self._closing = self._ended = False
        self._asked = NOTHING
        """what the last head asks for; `NOTHING` if that is answered already"""
        self._body: Body | None = None
        """of a request that is not whole"""
        self._parts: list[bytes] = []
        self._taken = self._size = self._held = 0
        """bytes of it with all that stands round it, without, and of those that the site counts"""
        self._bare = False
        """whether the answer has no body"""
        self.owing = False
        """whether an answer is owed, or on its way"""
        self._room = asyncio.Event()
        """set while the client reads as quickly as is written"""
        self._room.set()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or turn it away if there are too many."""
        self.transport = transport
        self._site.connections.add(self)
        if len(self._site.connections) > self._site.limits.connections:
            self._fail(RefusedError(429, "too many connections: try again later", 1))

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone: nothing more can be written."""
        self._site.connections.discard(self)
        self._room.set()
        if self._body is not None and self._asked is not NOTHING:
            self._refuse(Answer(GONE, b""))

    # reading

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, or several requests."""
        self._text = self._text[self._at :] + data
        self._at = 0
        self._read()

    def eof_received(self) -> bool:
        """The client sends nothing more, but may wait for an answer to a whole request."""
        self._ended = True
        return self._body is None and self.owing

    def _read(self) -> None:
        """Read what has arrived, up to the end of a request that is to be answered."""
        if self._reading:
            return
        self._reading = True
        try:
            while self._read_body() if self._body is not None else self._read_head():
                pass
        except RefusedError as error:
            self._fail(error)
        self._reading = False
        if self._body is None and (self.owing or not self._room.is_set()):
            if self._at < len(self._text) and not self.transport.is_closing():
                self.transport.pause_reading()
        elif self._ended:
            self.transport.close()
        if self._at == len(self._text):
            self._text, self._at = b"", 0

    def _read_head(self) -> bool:
        """Begin a request; False if there is none, or it has to wait."""
        if self.owing or not self._room.is_set() or self.transport.is_closing():
            return False
        while self._text.startswith(b"\r\n", self._at):
            self._at += 2
        if self._at == len(self._text):
            return False
        if not self._receiving:
            self._receiving, self.since = True, monotonic()
        end = self._text.find(b"\r\n\r\n", self._at, self._at + LONGEST_HEAD)
        if end < 0:
            check_beginning(self._text[self._at :])
            return False
        self._asked = asked = self._site.asked(self._text[self._at : end])
        self._bare = asked.method == b"HEAD"
        self._at = begin = end + 4
        self._closing |= not asked.lasts
        stop, whole = begin + asked.length, min(len(self._text), begin + self._site.small)
        if begin <= stop <= whole and asked.refusal is None and not asked.expects:
            self._at = stop
            self._ask(self._text[begin:stop])
            return True
        self._taken, self._size, self._parts, self._body = 0, 0, [], Body(asked.length)
        if asked.refusal is not None:
            self._refuse(asked.refusal)
        elif asked.length > self._site.limits.body:
            raise too_large(self._site.limits)
        elif asked.expects:
            self.transport.write(_CONTINUE)
        return True

    def _read_body(self) -> bool:
        """Read a part of a body, which is dropped if its request is refused; False if it is not whole."""
        assert self._body is not None
        site, before = self._site, self._at
        part, self._at = self._body.read(self._text, before)
        self._taken += self._at - before
        self._size += len(part)
        if self._taken > 8 * site.limits.body + LONGEST_HEAD:  # chunks may have a lot round them
            raise RefusedError(413, "the request is too large")
        if self._asked is not NOTHING:
            if self._size > site.limits.body:
                raise too_large(site.limits)
            self._parts.append(part)
            if self._size > SMALL:
                site.held += self._size - self._held
                self._held = self._size
                if site.held > _UNDER_WAY * site.limits.body:
                    busy = RefusedError(429, "too many large bodies at one time: try again later", 1)
                    self._refuse(refusal(busy))
        if not self._body.whole:
            return False
        if self._asked is NOTHING:
            self._body, self._receiving = None, False
        else:
            self._ask(b"".join(self._parts))
        return True

    def _ask(self, body: bytes) -> None:
        """Hand on a request that has arrived."""
        self._body, self._receiving, self._parts, self.owing = None, False, [], True
        self._site.take(HttpRequest(self, self._asked, body, self.since))

    # answers

    def answer(self, one: Answer) -> None:
        """Write an answer, unless its file is written already, and read on."""
        self.owing = False
        self._site.held -= self._held
        self._held = 0
        if self.transport.is_closing():
            return
        if one.file is None:
            body = b"" if self._bare else one.body
            self.transport.write(self._site.head(one, len(one.body), self._closing) + body)
        self.since = monotonic()
        if self._closing:
            self.transport.close()
        elif self._text or self._ended:
            self._go_on()

    async def send(self, request: HttpRequest, one: Answer) -> None:
        """Answer with the content of a file as it is now, if another takes its place too."""
        assert one.file is not None
        with one.file as file:
            length = os.fstat(file.fileno()).st_size
            self.transport.write(self._site.head(one, length, self._closing))
            while not (self._bare or self.transport.is_closing()) and (block := file.read(_BLOCK)):
                self.transport.write(block)
                await self._room.wait()
        self._site.answer([request], [one])

    def _refuse(self, told: Answer) -> None:
        """Answer before the body has arrived, the rest of which is dropped."""
        asked, self._asked, self._parts = self._asked, NOTHING, []
        self._closing |= asked.expects  # nobody knows whether the body still comes
        self._site.answer([HttpRequest(self, asked, b"", self.since)], [told])

    def _fail(self, error: RefusedError) -> None:
        """Close the connection; refuse what arrives, unless it is the rest of what was refused before."""
        self._closing = True
        if self._body is not None and self._asked is NOTHING:
            self.transport.close()
            return
        if self._body is None:  # of a head that cannot be read
            self._asked, self._bare = NOTHING, False
        self._body = None
        self._refuse(refusal(error))

    def _go_on(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()
            self._read()

    # limits

    def pause_writing(self) -> None:
        """The client reads more slowly than answers are written."""
        self._room.clear()
        self.since = monotonic()

    def resume_writing(self) -> None:
        """The client has read."""
        self._room.set()
        self._go_on()

    def check(self, now: float) -> None:
        """Cut the connection off if its client is too slow, or has not asked anything for long."""
        if now - self.since <= self._site.limits.timeout:
            return
        if not self._room.is_set() or self.transport.is_closing():  # it does not read
            self.transport.abort()
        elif self._receiving:
            self._fail(RefusedError(408, "the request took too long to arrive"))
        elif not self.owing:
            self.transport.close()

    def shutdown(self) -> None:
        """Close the connection, after the answer to a request that is under way."""
        self._closing = True
        if not self.owing and (self._body is None or self._asked is NOTHING):
            self.transport.close()
