"""Requests as RFC 9112 has them: heads, and the bodies that they announce.

Strict: what another reader, such as a proxy, might take for something else is refused, so that the body of a
request is never read as the next one. Wishes for another protocol (``Upgrade``) are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from thresher.serving.errors import Answer, RefusedError

LONGEST_HEAD = 65_536
"""bytes of a head"""
_LONGEST_LINE = 4096
"""bytes of a line between chunks"""
CHUNKED = -1
"""the length of a body that comes in chunks"""
_END = b"\r\n"
_FIELD = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++:[^\x00-\x08\x0a-\x1f\x7f]*+"
_TARGET = rb"/[!-~]*+|\*|[Hh][Tt][Tt][Pp][Ss]?://[!-~]++"
_START = rb"([A-Za-z][!#-'*+\-.^_`|~0-9A-Za-z]*+) (%b) HTTP/1\.([01])" % _TARGET
_HEAD = re.compile(rb"%b(?:\r\n%b)*+" % (_START, _FIELD))
_TRAILER, _CHUNK_END = re.compile(rb"(?:%b)?" % _FIELD), re.compile(b"")
_CLOSE = re.compile(rb"(?i:(?:^|,)[ \t]*close[ \t]*(?:,|$))")
_ORIGIN = re.compile(rb"\w+://[^/?]*")
_HOST = re.compile(rb"[A-Za-z0-9\-._~%!$&'()*+,;=:\[\]]*")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_CONTENT = {b"content-encoding", b"content-length", b"content-type", b"transfer-encoding"}
_ONCE = _CONTENT | {b"authorization", b"expect", b"host", b"idempotency-key"}
"""headers that have one value; of others, several are one list"""
_BAD = 400, "this is not a valid HTTP request"


class Asked(NamedTuple):
    """What the head of a request asks for."""

    method: bytes
    target: bytes
    """path and query"""
    headers: dict[bytes, bytes]
    """by their names in lower case"""
    length: int
    """of the body, in bytes, or `CHUNKED`"""
    lasts: bool
    """whether the connection stays open"""
    expects: bool
    """whether the body comes once it has been asked for"""
    path: str = ""
    name: str = ""
    """of the endpoint; empty: there is none"""
    query: Mapping[str, str] = {}
    refusal: Answer | None = None
    """why it is not done, if the head tells that already"""

    media: str = ""
    """the media type of the body"""
    key: str = ""
    """what the client calls the request, to know it again"""
    kind: Any = None
    """what is done with rows in the body, if it has any: a `BatchKind`"""

    def header(self, name: bytes) -> str:
        """The value of a header; empty if there is none."""
        return self.headers.get(name, b"").decode("latin-1")


NOTHING = Asked(b"", b"", {}, 0, False, False)
"""Stands for what a head asks that is not valid HTTP"""


class HttpRequest(NamedTuple):
    """A request that has arrived."""

    asker: Any
    """the connection that waits for the answer"""
    asked: Asked
    body: bytes
    since: float
    """when it began to arrive"""


def head_of(text: bytes) -> Asked:
    """What the head in `text` asks, up to the blank line. `RefusedError` unless it can be read in one way."""
    found = _HEAD.fullmatch(text)
    if found is None:
        raise RefusedError(*_BAD)
    method, target, minor = found.groups()
    fields = [line.partition(b":") for line in text.split(_END)[1:]]
    headers = {name.lower(): value.strip(b" \t") for name, _, value in fields}
    if len(headers) < len(fields):
        several = dict[bytes, list[bytes]]()
        for name, _, value in fields:
            several.setdefault(name.lower(), []).append(value.strip(b" \t"))
        if twice := next((name for name in several if len(several[name]) > 1 and name in _ONCE), None):
            raise RefusedError(400, f"the header {twice.decode()} is given twice")
        headers = {name: b", ".join(values) for name, values in several.items()}
    if not _HOST.fullmatch(headers.get(b"host", b" " if minor == b"1" else b"")):
        raise RefusedError(400, "the header Host is missing or wrong")
    if not headers.get(b"idempotency-key", b"-"):
        raise RefusedError(400, "the header Idempotency-Key is empty: give a key, or leave it out")
    if not target.startswith(b"/") and target != b"*":  # as a proxy is asked
        rest = target[_ORIGIN.match(target).end() :]  # type: ignore[union-attr]
        target = rest if rest.startswith(b"/") else b"/" + rest
    size, coding = headers.get(b"content-length", b"0"), headers.get(b"transfer-encoding")
    if coding is None and size.isdigit() and len(size) < 19:
        length = int(size)
    elif coding is None or minor == b"0" or b"content-length" in headers:
        raise RefusedError(*_BAD)
    elif coding.lower() != b"chunked":
        raise RefusedError(501, "the only Transfer-Encoding that is read is chunked")
    else:
        length = CHUNKED
    lasts = minor == b"1" and not _CLOSE.search(headers.get(b"connection", b""))
    expects = minor == b"1" and headers.get(b"expect", b"").lower() == b"100-continue"
    path = unquote(target.partition(b"?")[0].decode())
    media, key = (headers.get(name, b"").decode("latin-1") for name in (b"content-type", b"idempotency-key"))
    return Asked(method, target, headers, length, lasts, expects, path, media=media, key=key)


def check_beginning(text: bytes) -> None:
    """`RefusedError` for the beginning of a head that cannot become one."""
    if len(text) >= LONGEST_HEAD:
        raise RefusedError(431, f"the head of the request is larger than {LONGEST_HEAD} bytes")
    if not (text[:1].isalpha() or text == b"\r") or text.count(b"\n") != text.count(_END):
        raise RefusedError(*_BAD)


class Body:
    """What is still to come of a body."""

    def __init__(self, length: int) -> None:
        self._chunked, self._left = length == CHUNKED, max(length, 0)
        """bytes of the body, or of a chunk"""
        self._next, self.whole = _CHUNK, False
        """`_next`: what the next line must be"""

    def read(self, text: bytes, at: int) -> tuple[bytes, int]:
        """What `text` has of it from `at` on, and where that ends; it may now be `whole`. `RefusedError`."""
        if not self._chunked:
            part = text[at : at + self._left]
            self._left -= len(part)
            self.whole = not self._left
            return part, at + len(part)
        parts = list[bytes]()
        while not self.whole and at < len(text):
            if self._left:
                parts.append(text[at : at + self._left])
                at += len(parts[-1])
                self._left -= len(parts[-1])
                continue
            end = text.find(_END, at, at + _LONGEST_LINE)
            if end < 0:
                if len(text) - at >= _LONGEST_LINE:
                    raise RefusedError(*_BAD)
                break
            line, at = text[at:end], end + len(_END)
            if not (found := self._next.fullmatch(line)):
                raise RefusedError(*_BAD)
            if self._next is _CHUNK:
                self._left = int(found[1], 16)
                self._next = _CHUNK_END if self._left else _TRAILER
            elif self._next is _CHUNK_END:
                self._next = _CHUNK
            else:
                self.whole = not line
        return b"".join(parts), at
