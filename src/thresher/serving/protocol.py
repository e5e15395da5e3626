"""HTTP of a connection: one request after the other, time limits, and a short way for small bodies.

uvicorn answers 19,000 empty requests a second on one core, since each costs a task, a scope and several
messages. The parser and the socket alone manage 71,000. So a small ``POST /predict`` or ``POST /learn`` goes
from here to the `Batcher` at once. Everything else takes uvicorn's way, and so does a small body if anything
about its request is unusual.

A request is read once the one before it is answered; until then, nothing more is read from the socket.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import unquote

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle
from uvicorn.protocols.utils import get_remote_addr

from thresher.serving.access_log import AccessLog
from thresher.serving.batching import Batcher, BatchKind, WaitingBody
from thresher.serving.intake import Limits
from thresher.serving.reading import LONGEST_HEAD, Body, RequestError, RequestHead, check_beginning, head_of

SMALL = 16_384
"""bytes of a body that may go the short way"""
_UNUSUAL = frozenset((b"content-encoding", b"expect"))
"""headers with which a request goes uvicorn's way"""
_LOG = logging.getLogger("uvicorn.error")


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
        """Bytes of a body with all that stands round it, of which chunks may have a lot."""
        return 8 * self.limits.body + LONGEST_HEAD


class HttpConnection(asyncio.Protocol):
    """A connection. `ways` is set in a subclass, once per server."""

    ways: Ways
    transport: asyncio.Transport
    flow: FlowControl

    def __init__(self, config: Any, server_state: Any, app_state: Any, _loop: Any = None) -> None:
        self._app, self._server = config.loaded_app, server_state
        self.client: tuple[str, int] | None = None
        self.since = monotonic()
        """when the client became slow: it has not sent all of a request, or not read all of an answer"""
        self._text, self._at = b"", 0
        """what has arrived, and how much of it has been read"""
        self._receiving = self._waiting = self._closing = self._ended = False
        self._head: RequestHead | None = None
        """of the last request"""
        self._body: Body | None = None
        """of a request that is not whole"""
        self._taken = 0
        """bytes of it"""
        self._kind: BatchKind | None = None
        self._parts: list[bytes] = []
        self._cycle: Any = None
        """the last answer that goes uvicorn's way"""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or turn it away if there are too many."""
        self.transport, self.flow = transport, FlowControl(transport)
        self.client = get_remote_addr(transport)
        self._server.connections.add(self)
        if len(self._server.connections) > self.ways.limits.connections:
            self._refuse(429, b"too many connections: try again later", b"retry-after: 1\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone: nothing more can be written."""
        self._server.connections.discard(self)
        self._leave()
        self.flow.resume_writing()

    # reading

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, or several requests."""
        self._text = self._text[self._at :] + data
        self._at = 0
        self._read()

    def eof_received(self) -> bool:
        """The client sends nothing more, but may wait for an answer to a whole request."""
        self._ended = True
        return self._body is None and self._answering

    def _read(self) -> None:
        """Read what has arrived, up to the end of a request that is to be answered."""
        try:
            while self._read_body() if self._body is not None else self._read_head():
                pass
        except RequestError as error:
            self._fail(error.status, error.words)
        if self._body is None and (self._answering or self.flow.write_paused):
            if self._at < len(self._text):
                self.flow.pause_reading()
        elif self._ended:
            self.transport.close()
        if self._at == len(self._text):
            self._text, self._at = b"", 0

    def _read_head(self) -> bool:
        """Begin a request; False if there is none, or it has to wait."""
        if self._answering or self.flow.write_paused or self.transport.is_closing():
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
        head = head_of(self._text[self._at : end])
        self._at, self._taken, self._parts = end + 4, 0, []
        self._head, self._body, self._kind = head, Body(head.length), self._short(head)
        self._closing |= not head.lasts
        if self._kind is None:
            self._begin(head)
        return True

    def _read_body(self) -> bool:
        """Read a part of a body; False if it is not whole."""
        assert self._body is not None
        before = self._at
        part, self._at = self._body.read(self._text, before)
        self._taken += self._at - before
        if self._taken > self.ways.most:
            raise RequestError(413, b"the request is too large")
        cycle = self._cycle
        if self._kind is not None:
            self._parts.append(part)
        elif not cycle.response_complete:
            cycle.body += part
            cycle.more_body = not self._body.whole
            cycle.message_event.set()
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
        if not self._body.whole:
            return False
        self._body, self._receiving = None, False
        if self._kind is not None:
            self._waiting = True
            key = self._head.headers.get(b"idempotency-key", b"").decode("latin-1")  # type: ignore[union-attr]
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self.ways.batcher.add(self._kind, WaitingBody(self, body, self.since, key))
        return True

    # answers

    def _short(self, head: RequestHead) -> BatchKind | None:
        """What a request asks for, if it is a small one without anything unusual."""
        headers = head.headers
        if head.method != b"POST" or not head.target.startswith((b"/predict", b"/learn")):
            return None
        if not 0 <= head.length <= SMALL or not _UNUSUAL.isdisjoint(headers):
            return None
        if self.ways.allowed is not None and not self.ways.allowed(headers.get(b"authorization", b"")):
            return None
        return self.ways.kind(head.target, headers.get(b"content-type", b""), headers.get(b"accept", b""))

    def _begin(self, head: RequestHead) -> None:
        """Let a request be answered uvicorn's way."""
        path, _, query = head.target.partition(b"?")
        scope: Any = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": head.method.decode(),
            "scheme": "http",
            "root_path": "",
            "path": unquote(path.decode()),
            "raw_path": path,
            "query_string": query,
            "headers": [*head.headers.items()],
            "client": self.client,
        }
        self._cycle = RequestResponseCycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=_LOG,
            access_logger=_LOG,
            access_log=False,
            default_headers=self._server.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=head.expects,
            keep_alive=not self._closing,
            on_response=self._answered,
        )
        task = asyncio.get_running_loop().create_task(self._cycle.run_asgi(self._app))
        task.add_done_callback(self._server.tasks.discard)
        self._server.tasks.add(task)

    @property
    def _answering(self) -> bool:
        """Whether an answer is owed or under way."""
        return self._waiting or (self._cycle is not None and not self._cycle.response_complete)

    def answer(self, head: bytes, body: bytes) -> None:
        """Write an answer of the short way; `head` ends after the name of the length."""
        self._waiting = False
        if self.transport.is_closing():
            return
        end = b"%d\r\nconnection: close\r\n\r\n" if self._closing else b"%d\r\n\r\n"
        self.transport.write(b"".join((head, end % len(body), body)))
        self.since = monotonic()
        if self._closing:
            self.transport.close()
        elif self._text or self._ended:
            self._go_on()

    def _answered(self) -> None:
        """An answer is written: read on, and count the time of the next request."""
        self.since = monotonic()
        if self._body is not None and self._head is not None and self._head.expects:
            self.transport.close()  # nobody knows whether the body still comes
        self._go_on()

    def _go_on(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self._read()

    def _fail(self, status: int, words: bytes) -> None:
        """Close the connection; refuse what arrives, unless it is the rest of a request that is answered."""
        answered = self._body is not None and self._kind is None and self._cycle.response_started
        self._leave()
        if answered:
            self.transport.close()
        else:
            self._refuse(status, words)

    def _refuse(self, status: int, words: bytes, more: bytes = b"") -> None:
        """Answer with an error and close the connection."""
        body = b'{"error":"%b"}\n' % words
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
        self.transport.write(b"".join((STATUS_LINE[status], head, more, b"\r\n", body)))
        self.transport.close()
        if self.ways.log is not None:  # of a request that may not even have a path
            self.ways.log.note(self.client, "", "", status, 0, len(body), monotonic() - self.since)

    def _leave(self) -> None:
        """Let an answer that is under way write nothing more."""
        if self._cycle is not None:
            self._cycle.disconnected = True
            self._cycle.message_event.set()

    # limits

    def pause_writing(self) -> None:
        """The client reads more slowly than answers are written."""
        self.flow.pause_writing()
        self.since = monotonic()

    def resume_writing(self) -> None:
        """The client has read."""
        self.flow.resume_writing()
        self._go_on()

    def check(self, now: float) -> None:
        """Cut the connection off if its client is too slow, or has not asked anything for long."""
        if now - self.since <= self.ways.limits.timeout:
            return
        if self.flow.write_paused or self.transport.is_closing():  # it does not read
            self.transport.abort()
        elif self._receiving:
            self._fail(408, b"the request took too long to arrive")
        elif not self._answering:
            self.transport.close()

    def shutdown(self) -> None:
        """Close the connection, after the answer to a request that is under way."""
        self._closing = True
        if self._cycle is not None:
            self._cycle.keep_alive = False
        if not self._answering and (self._body is None or self._kind is None):
            self.transport.close()
