"""HTTP of a connection: uvicorn's protocol, with time limits, and a short way for small bodies.

uvicorn answers 19,000 empty requests a second on one core, since each costs a task, a scope and several
messages. The parser and the socket alone manage 71,000. So a small ``POST /predict`` or ``POST /learn`` goes
from here to the `Batcher` at once. Everything else takes uvicorn's way, and so does a small body if anything
about its request is unusual, or if an earlier answer to this connection is still under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from thresher.serving.access_log import AccessLog
from thresher.serving.batching import Batcher, BatchKind, WaitingBody
from thresher.serving.intake import Limits

SMALL = 16_384
"""bytes of a body that may go the short way"""
_HEAD = 65_536
"""bytes of a head"""
_UNUSUAL = frozenset((b"content-encoding", b"expect", b"transfer-encoding", b"upgrade"))
"""headers with which a request goes uvicorn's way"""


class Ways(NamedTuple):
    """What the connections of a server share."""

    batcher: Batcher
    kind: Callable[[bytes, bytes, bytes], BatchKind | None]
    """what a target, a media type and an accepted one ask for; None if it is not for the short way"""
    allowed: Callable[[bytes], bool] | None
    """whether the header Authorization has the token; None if there is none"""
    limits: Limits
    log: AccessLog | None = None

    @property
    def most(self) -> int:
        """Bytes of a request with all that stands round its body, of which chunks may have a lot."""
        return 8 * self.limits.body + _HEAD


class HttpConnection(HttpToolsProtocol):
    """A connection. `ways` is set in a subclass, once per server."""

    ways: Ways

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.since = monotonic()
        """when the client became slow: it has not sent all of a request, or not read all of an answer"""
        self.receiving = False
        self._kind: BatchKind | None = None
        self._body: list[bytes] = []
        self._closing = self._waiting = self._headed = self._dropped = False
        self._key = ""
        self._under_way: Any = None
        self._taken = 0
        """bytes of the request in earlier reads"""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or turn it away if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.ways.limits.connections:
            self.refuse(429, b"too many connections: try again later", b"retry-after: 1\r\n")

    def refuse(self, status: int, words: bytes, more: bytes = b"") -> None:
        """Answer with an error and close the connection."""
        body = b'{"error":"%b"}\n' % words
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
        self.transport.write(b"".join((STATUS_LINE[status], head, more, b"\r\n", body)))
        self.transport.close()
        if self.ways.log is not None:  # of a request that may not even have a path
            self.ways.log.note(self.client, "", "", status, 0, len(body), monotonic() - self.since)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, unless the answer to a request before it is still to come."""
        self._refuse_next(400, b"this is not a valid HTTP request")

    def _refuse_next(self, status: int, words: bytes) -> None:
        """Refuse what arrives; if the answer to a request before it is still to come, close after that."""
        before = self._answering and not self._headed
        if before:
            self.cycle.keep_alive = False
        if self._waiting or before:
            self._dropped = self._closing = True
        else:
            self.refuse(status, words)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, or several requests; refuse what is endless."""
        begun = self.since
        super().data_received(data)
        self._taken = self._taken + len(data) if self.since == begun else 0
        if self.receiving and self._taken > (self.ways.most if self._headed else _HEAD):
            self._refuse_next(413 if self._headed else 431, b"the request is too large")

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._under_way = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let nothing more be written: uvicorn tells the last request, which may wait for others."""
        if self._under_way is not None:
            self._under_way.disconnected = True
        super().connection_lost(exc)

    # the parser calls these, in this order

    def on_message_begin(self) -> None:
        """Begin a request; its scope is made later, if it goes uvicorn's way."""
        self.url, self.headers = b"", []
        self.receiving, self._headed, self.since = True, False, monotonic()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; what comes after the body is dropped."""
        if not self._headed:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Choose the way."""
        self._headed = True
        self._kind = None if self._answering else self._short()
        if self._waiting:
            self.ways.batcher.flush()  # answers leave in the order of requests
        if self._waiting:  # for the disk: the client asks what follows again, as HTTP lets it be told to
            self._dropped = self._closing = True
        if self._dropped:
            return
        if self._kind is not None:
            self._body = []
            return
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.url = url
        for name, value in headers:
            super().on_header(name, value)
        super().on_headers_complete()

    def _short(self) -> BatchKind | None:
        """What a request asks for, if it is a small prediction without anything unusual."""
        if not self.url.startswith((b"/predict", b"/learn")) or self.parser.get_method() != b"POST":
            return None
        media = accepted = authorization = b""
        length, self._key = -1, ""
        for name, value in self.headers:
            if name == b"content-length":
                length = int(value) if value.isdigit() else -1
            elif name == b"content-type":
                media = value
            elif name == b"accept":
                accepted = value
            elif name == b"authorization":
                authorization = value
            elif name == b"idempotency-key":
                self._key = value.decode("latin-1")
            elif name in _UNUSUAL:
                return None
        if not 0 <= length <= SMALL or self.flow.write_paused or not self.parser.should_keep_alive():
            return None
        if self.ways.allowed is not None and not self.ways.allowed(authorization):
            return None
        return self.ways.kind(self.url, media, accepted)

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        if self._dropped:
            return
        if self._kind is None:
            super().on_body(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """The request is whole: let it be answered."""
        self.receiving = False
        if self._dropped:
            return
        if self._kind is None:
            super().on_message_complete()
            return
        self._waiting = True
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self.ways.batcher.add(self._kind, WaitingBody(self, body, self.since, self._key))

    # what the batcher calls

    def answer(self, head: bytes, body: bytes) -> None:
        """Write an answer, unless the client has gone; `head` ends after the name of the length."""
        self._waiting = False
        if self.transport.is_closing():
            return
        end = b"%d\r\nconnection: close\r\n\r\n" if self._closing else b"%d\r\n\r\n"
        self.transport.write(b"".join((head, end % len(body), body)))
        self.since = monotonic()
        if self._closing:
            self.transport.close()

    # limits

    def pause_writing(self) -> None:
        """The client reads more slowly than answers are written."""
        super().pause_writing()
        self.since = monotonic()

    def check(self, now: float) -> None:
        """Cut the connection off if its client is too slow, or has not asked anything for long."""
        if now - self.since <= self.ways.limits.timeout:
            return
        if self.flow.write_paused or self.transport.is_closing():  # it does not read
            self.transport.abort()
        elif self.receiving:
            if self._answering and self.cycle.response_started:
                self.transport.abort()
            else:
                self.refuse(408, b"the request took too long to arrive")
        elif not self._answering and not self._waiting:
            self.transport.close()

    @property
    def _answering(self) -> bool:
        """Whether an answer is under way that goes uvicorn's way."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def on_response_complete(self) -> None:
        """An answer of uvicorn's way is written: time counts for the next request."""
        self.since = monotonic()
        super().on_response_complete()

    def shutdown(self) -> None:
        """Close the connection, after the answer to a request that is under way."""
        if self._waiting or (self.receiving and self._kind is not None):
            self._closing = True
        else:
            super().shutdown()
