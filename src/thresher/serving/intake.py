"""Reading requests: queries that are known, bodies that are not too large, packed or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pyarrow as pa
from starlette.requests import Request

from thresher.data.files.paths import unread
from thresher.serving.bodies import check_charset
from thresher.serving.errors import RefusedError
from thresher.serving.openapi import Endpoint

_PACKINGS = {"gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd"}
_UNDER_WAY = 4
"""bodies of the largest size that may be in memory at one time"""


class Limits(NamedTuple):
    """How much clients may send, and how long they may take."""

    body: int
    """bytes, packed or not"""
    rows: int
    connections: int
    timeout: float
    """seconds for a request to arrive"""


class BodyIntake:
    """Takes bodies in, as long as there is room for them."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The body of a request, unpacked; `RefusedError`. Its memory is counted until the block ends."""
        check_charset(request.headers.get("content-type", ""))
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._most:
            raise self._too_large()
        parts, size = list[bytes](), 0
        try:
            async for part in request.stream():
                size += len(part)
                self._held += len(part)
                if size > self._most:
                    raise self._too_large()
                if self._held > _UNDER_WAY * self._most:
                    raise RefusedError(429, "too many large bodies at one time: try again later", 1)
                parts.append(part)
            packed = parts[0] if len(parts) == 1 else b"".join(parts)
            packing = request.headers.get("content-encoding", "")
            if packing:  # which takes a second for the largest
                yield await asyncio.to_thread(self._unpacked, packed, packing)
            else:
                yield packed
        finally:
            self._held -= size

    def _unpacked(self, body: bytes, packing: str) -> bytes:
        if packing.lower() in ("", "identity"):
            return body
        if packing.lower() not in _PACKINGS:
            accepted = {"Accept-Encoding": "gzip, zstd"}
            raise RefusedError(415, "bodies may be packed by gzip or zstd, nothing else", headers=accepted)
        try:
            with pa.CompressedInputStream(pa.BufferReader(body), _PACKINGS[packing.lower()]) as stream:
                plain: bytes = stream.read(self._most + 1)
        except (OSError, pa.ArrowException) as error:
            raise RefusedError(400, f"the body: {unread(error)}") from error
        if len(plain) > self._most:
            raise self._too_large()
        return plain

    def _too_large(self) -> RefusedError:
        return RefusedError(
            413, f"the body is larger than {self._most:,} bytes", headers={"Connection": "close"}
        )


def check_query(request: Request, endpoint: Endpoint) -> None:
    """`RefusedError` for a parameter of the query that is unknown, given twice, or wrong."""
    found = dict[str, str]()
    for name, value in request.query_params.multi_items():
        if name not in endpoint.queries:
            known = f"known: {', '.join(sorted(endpoint.queries))}" if endpoint.queries else "it takes none"
            raise RefusedError(400, f"{endpoint.path} has no parameter {name[:40]!r}; {known}")
        if name in found:
            raise RefusedError(400, f"the parameter {name} is given twice")
        found[name] = value
    for one in endpoint.parameters:
        if one.choices and found.get(one.name, one.choices[0]) not in one.choices:
            raise RefusedError(400, f"{one.name} must be one of {', '.join(one.choices)}")
