"""Connections against h11, which reads HTTP in its own way: whatever is sent, however it is cut."""

import asyncio
import json
import random
import re
from collections import deque
from concurrent.futures import Future
from typing import Any, NamedTuple

import h11
import pytest

from tests.serving.asking import Transport
from thresher.serving.endpoints import SMALL, Limits
from thresher.serving.errors import Answer
from thresher.serving.predicting import BatchKind, Later
from thresher.serving.protocol import HttpConnection, Site
from thresher.serving.reading import LONGEST_HEAD, Asked, HttpRequest, head_of

Read = tuple[str, str, bytes | None]
"""A request as it was read: method, target, body; no body if its answer does not wait for it"""
SEEDS = 120


class Answered(NamedTuple):
    read: list[Read]
    statuses: list[int]
    told: list[Any]
    """the bodies of the answers"""
    closed: bool
    most: int
    """requests of which the answer was owed at one time"""
    held: int
    """bytes that had arrived and were not read, at most"""


class Peer:
    """A server of one connection, and its client."""

    def __init__(self, limit: int) -> None:
        self.read, self.owed, self.most, self.held = list[Read](), 0, 0, 0
        self.transport = Transport()
        own: Any = self
        self.site = Site(own, own, Limits(limit, 10, 10, 1.0), own, remembered=0)
        self.connection = HttpConnection(self.site)
        self.connection.connection_made(self.transport)

    def count_answers(self, *_: Any) -> None:
        pass

    def took(self, asked: Asked, body: bytes | None) -> Answer:
        self.read.append((asked.method.decode(), asked.target.decode(), body))
        self.owed += 1
        self.most = max(self.most, self.owed)
        return Answer(200, json.dumps(len(self.read)).encode())

    def asked(self, text: bytes) -> Asked:
        asked = head_of(text)
        if asked.path != "/early":
            return asked
        told = self.took(asked, None)
        self.owed -= 1
        return asked._replace(refusal=told)

    def answer(self, request: HttpRequest) -> Later:
        told, done = self.took(request.asked, request.body), Future[Answer]()

        def answers() -> list[Answer]:
            self.owed -= 1
            return [told]

        if request.asked.path != "/never":
            asyncio.get_running_loop().call_soon(done.set_result, told)
        return Later([done], answers)

    def kind_of(self, asked: Asked) -> BatchKind | None:
        self.last = asked
        learns = (asked.method, asked.path) == (b"POST", "/learn")
        return BatchKind("/learn", "", "") if learns else None

    def work(self, some: list[bytes], keys: list[str], kind: BatchKind) -> list[Answer]:
        found = [self.took(self.last, one) for one in some]
        self.owed = 0
        return found

    @property
    def waits(self) -> bool:
        """Whether the server can do nothing but wait."""
        unread = len(self.connection._text) - self.connection._at
        self.held = max(self.held, unread)
        stuck = not self.connection._room.is_set() or ("GET", "/never", b"") in self.read
        return self.transport.closed or stuck or not (self.connection.owing or unread)

    async def send(self, parts: list[bytes]) -> None:
        """Send some parts, as long as the server reads."""
        coming = deque(parts)
        while not self.transport.closed:
            await asyncio.sleep(0)
            if coming and not self.transport.paused:
                self.connection.data_received(coming.popleft())
            elif self.waits or not coming:
                break

    async def end(self, half: bool) -> None:
        """Send nothing more, and say so if that is one `half`; leave once all is answered."""
        if (
            half
            and not (self.transport.closed or self.transport.paused)
            and not self.connection.eof_received()
        ):
            self.transport.close()
        for _ in range(10_000):
            if self.waits:
                break
            await asyncio.sleep(0)
        closed, self.transport.closed = self.transport.closed, True
        self.connection.connection_lost(None)
        self.transport.closed = closed


def sent(parts: list[bytes], limit: int = 1 << 20, *, ends: bool = True, stuck: bool = False) -> Answered:
    """What a connection reads and answers if it is sent these parts, and then nothing more if it `ends`.

    Bodies of ``/early`` are not waited for; an answer to ``/never`` does not come. If the connection is
    `stuck`, its client reads nothing.
    """

    async def talk() -> Peer:
        peer = Peer(limit)
        if stuck:
            peer.connection.pause_writing()
        await peer.send(parts)
        await peer.end(ends)
        return peer

    peer = asyncio.run(talk())
    told = answers(peer.transport.written)
    return Answered(peer.read, *told, peer.transport.closed, peer.most, peer.held)


def answers(text: bytes) -> tuple[list[int], list[Any]]:
    statuses, told = list[int](), list[Any]()
    while text:
        head, _, text = text.partition(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 100 "):
            continue
        length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
        statuses.append(int(head[9:12]))
        told.append(json.loads(text[:length]))
        text = text[length:]
    return statuses, told


def reference(text: bytes) -> list[Read]:
    """The requests that h11 reads, one at a time, since it takes no blank lines before one."""
    found, lasts = list[Read](), True
    while lasts:
        while text.startswith(b"\r\n"):
            text = text[2:]
        peer, body = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20), b""
        peer.receive_data(text)
        try:
            head = peer.next_event()
            if not isinstance(head, h11.Request):
                break
            while isinstance(event := peer.next_event(), h11.Data):
                body += event.data
        except h11.RemoteProtocolError:
            break
        if not isinstance(event, h11.EndOfMessage):
            break
        method, target = head.method.decode(), head.target.decode()
        found.append((method, target, None if target == "/early" else body))
        lasts, text = peer.their_state is not h11.MUST_CLOSE, peer.trailing_data[0]
    return found


HEADERS = [
    "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAAAAMA",
    *("connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x", "upgrade: TLS/1.0, h2c, x"),
    *("connection: keep-alive", "te: trailers", "accept: a/b\r\naccept: c/d"),
    *("X-!#$%&'*+.^_`|~: \t a:b, \xe9 \t", "expect: 100-continue", "content-type: application/json"),
    *("idempotency-key: k", "content-encoding: gzip"),
]
INNER = b"POST /learn HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc"
"""a body that looks like a request"""


def request(chance: random.Random) -> bytes:
    body = chance.choice(
        [b"", b"x", INNER, INNER * 3, b"\r\n.\r\n", chance.randbytes(SMALL + chance.randrange(-2, 3))]
    )
    target = chance.choice(["/learn", "/learn", "/predict?output=label", "/early", "/a%20b?c=%0d%0a"])
    lines = [f"{chance.choice(['POST', 'POST', 'GET', 'PUT', 'M-SEARCH'])} {target} HTTP/1.1", "Host: a:80"]
    lines += chance.sample(HEADERS, chance.choice([0, 0, 1, 3]))
    if len({one[:8] for one in lines}) < len(lines):  # Connection twice
        lines = lines[:2]
    chunked = chance.random() < 0.4
    if chunked:
        lines.append("Transfer-Encoding: " + chance.choice(["chunked", "Chunked"]))
        body = in_chunks(body, chance)
    elif body or chance.random() < 0.5:
        lines.append(f"Content-Length: {len(body)}")
    chance.shuffle(tail := lines[1:])
    return "\r\n".join([lines[0], *tail, "", ""]).encode("latin-1") + body


def in_chunks(body: bytes, chance: random.Random) -> bytes:
    text, at = b"", 0
    while at < len(body):
        part = body[at : at + chance.choice([1, 10, 100, 10_000])]
        size = chance.choice([b"%x", b"%X", b"00%x"]) % len(part)
        text += size + chance.choice([b"", b"", b";a=b", b';a="b c"']) + b"\r\n" + part + b"\r\n"
        at += len(part)
    return text + b"0\r\n" + chance.choice([b"", b"x: y\r\n"]) + b"\r\n"


def cut(text: bytes, chance: random.Random) -> list[bytes]:
    if chance.random() < 0.1 and len(text) < 1000:
        return [text[k : k + 1] for k in range(len(text))]
    places = sorted(chance.sample(range(len(text) + 1), min(len(text), chance.choice([0, 1, 5, 40]))))
    return [part for lo, hi in zip([0, *places], [*places, len(text)], strict=True) if (part := text[lo:hi])]


def test_requests_are_read_as_they_were_meant_however_they_arrive() -> None:
    for seed in range(SEEDS):
        chance = random.Random(seed)
        text = b"".join(request(chance) for _ in range(chance.choice([1, 2, 5])))
        expected, found = reference(text), sent(cut(text, chance))
        early = [k for k, (_, target, _) in enumerate(expected) if target == "/early"]
        if b"expect: 100" in text and early:  # whose body may not come: the connection ends there
            assert found.read == expected[: len(found.read)], seed
            continue
        assert found.read == expected, seed
        assert found.statuses == [200] * len(expected), seed
        assert found.told == [*range(1, len(expected) + 1)], seed
        assert found.most == 1


def test_damaged_requests_are_read_as_others_would_or_refused() -> None:
    strange = [b"\r", b"\n", b"\r\n", b" ", b":", b"\0", b",", b"chunked", b"\x0b", b"0", b"-", b"+", b"\xa0"]
    strange.append(b"\r\n ")
    refused = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        text = bytearray(b"".join(request(chance) for _ in range(2)).replace(b"/early", b"/other"))
        end = text.index(b"\r\n\r\n") + 20
        for _ in range(chance.choice([1, 1, 2])):
            at = chance.randrange(min(len(text), end))
            text[at : at + chance.choice([0, 0, 1, 2])] = chance.choice(strange)
        whole, found = sent([bytes(text)]), sent(cut(bytes(text), chance))
        expected = reference(bytes(text))
        assert found[:3] == whole[:3], seed
        assert found.read == expected[: len(found.read)], (seed, bytes(text[:300]))
        refused += found.statuses[-1:] != [200]
        assert all(status in (200, 400, 501) for status in found.statuses), seed
    assert SEEDS // 4 < refused < SEEDS


HEAD = b"POST /learn HTTP/1.1\r\nhost: a\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: a b\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: a/b\r\n", 400),
        (b"GET / HTTP/1.0\r\nhost: a\r\nhost: b\r\n", 400),
        (b"GET / HTTP/1.0\r\n", 200),
        (b"GET / HTTP/1.1\r\nhost:\r\n", 200),
        (b"GET / HTTP/1.1\r\nhost: [::1]:80\r\n", 200),
        (b"GET http://a:80/b?c HTTP/1.1\r\nhost: a:80\r\n", 200),
        (b"GET http://a HTTP/1.1\r\nhost: a\r\n", 200),
        (b"GET / HTTP/2.0\r\nhost: a\r\n", 400),
        (b"CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n", 400),
        (HEAD + b"content-length: 0\r\ncontent-length: 0\r\n", 400),
        (HEAD + b"content-length: 0, 0\r\n", 400),
        (HEAD + b"content-length: +0\r\n", 400),
        (HEAD + b"content-length: 0x0\r\n", 400),
        (HEAD + b"content-length: " + b"9" * 5000 + b"\r\n", 400),
        (HEAD + b"content-length:\r\n", 400),
        (HEAD + b"content-length : 0\r\n", 400),
        (HEAD + b"transfer-encoding: gzip, chunked\r\n", 501),
        (HEAD + b"transfer-encoding: identity\r\n", 501),
        (HEAD + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", 400),
        (HEAD + b"transfer-encoding: chunked\r\ncontent-length: 0\r\n", 400),
        (b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n", 400),
        (HEAD + b"idempotency-key: a\r\nidempotency-key: b\r\n", 400),
        (HEAD + b"idempotency-key:\r\n", 400),
        (HEAD + b"Idempotency-Key: \t \r\n", 400),
        (HEAD + b"authorization: a\r\nauthorization: b\r\n", 400),
        (HEAD + b"content-type: text/csv\r\ncontent-type: text/csv\r\n", 400),
        (HEAD + b"accept: a\r\naccept: b\r\n", 200),
        (HEAD + b" folded: a\r\n", 400),
        (HEAD + b"a: b\n", 400),
        (HEAD + b"a: b\rc: d\r\n", 400),
    ],
)
def test_heads_that_can_be_read_in_two_ways_are_refused(head: bytes, status: int) -> None:
    found = sent([head + b"\r\n", HEAD + b"\r\n"])
    assert found.statuses[0] == status
    if status != 200:
        assert found.read == []
        assert found.statuses == [status]
        assert "error" in found.told[0]


@pytest.mark.parametrize("size", [LONGEST_HEAD, LONGEST_HEAD + 1, 70_000])
@pytest.mark.parametrize("parts", [1, 7])
def test_the_size_of_a_head_has_a_limit(size: int, parts: int) -> None:
    text = HEAD + b"x: " + b"y" * (size - len(HEAD) - 7) + b"\r\n\r\n"
    step = len(text) // parts + 1
    found = sent([text[k : k + step] for k in range(0, len(text), step)])
    assert found.statuses == [200 if size <= LONGEST_HEAD else 431]


def test_what_cannot_become_a_request_is_refused_at_once() -> None:
    for text in (b"\x16\x03\x01", b"GET / HTTP/1.1\n", b" GET", b"{"):
        assert sent([text], ends=False).statuses == [400]
    for text in (b"GET / HT", b"\r\n\r\n\r\nG", HEAD, b"\r\n\r"):
        assert sent([text], ends=False).statuses == []


def test_nothing_more_is_read_while_an_answer_is_owed() -> None:
    never, many = b"GET /never HTTP/1.1\r\nhost: a\r\n\r\n", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 1000
    found = sent([never, many, many, many], ends=False)
    assert (len(found.read), found.held) == (1, len(many))
    for text in (many, INNER * 1000):
        found = sent([text, text, text], ends=False, stuck=True)
        assert (found.read, found.held) == ([], len(text))
        found = sent([text, text])
        assert (len(found.read), found.most) == (2000, 1)


def test_bodies_are_limited_with_all_that_stands_round_them() -> None:
    text = b"POST /predict HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    padded = b"1;" + b"x" * 4000 + b"\r\na\r\n"
    found = sent([text, *[padded] * 100], limit=1000)
    assert (found.read, found.statuses) == ([], [413])
    for bad in (
        *(b"x\r\n", b"-1\r\n", b"1\r\nab\r\n"),
        b"1" * 16 + b"\r\n",
        b"1;" + b"x" * 5000,
        b"0\r\nno field\r\n",
    ):
        found = sent([text + bad], ends=False)
        assert (found.read, found.statuses) == ([], [400])


def test_half_a_request_is_not_answered_when_the_client_ends() -> None:
    for text in (b"GET / HT", INNER[:-1], INNER.replace(b"/learn", b"/predict")[:-1]):
        found = sent([INNER + text])
        assert (len(found.read), found.statuses, found.closed) == (1, [200], True)
