"""What a client is told, or why its request is not done; and the operator, when there is a fault."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import msgspec

from thresher.data import bodies
from thresher.data.errors import DataError, printable
from thresher.options.messages import without_options
from thresher.serving.openapi import JSON

_encode = msgspec.json.Encoder(enc_hook=str).encode


class RefusedError(Exception):
    """A request cannot be carried out, with the status that HTTP has for it, and headers of the answer."""

    def __init__(
        self, status: int, message: str, retry_after: float | None = None, headers: Mapping[str, str] = {}
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, {**headers}
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, round(retry_after)))


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    body: bytes
    media: str = JSON
    headers: Mapping[str, str] = {}
    """more headers"""
    file: BinaryIO | None = None
    """what is sent in place of `body`, and then closed"""


def json_answer(found: Any) -> Answer:
    """An answer in JSON."""
    return Answer(200, _encode(found) + b"\n")


def refusal(error: Exception) -> Answer:
    """The answer to a request that is not done. The operator is told of errors that are faults of ours.

    Options, which a client cannot give, are left out.
    """
    if isinstance(error, DataError):
        error = RefusedError(413 if isinstance(error, bodies.TooLargeError) else 400, error.args[0])
    elif not isinstance(error, RefusedError):
        tell_fault(error)
        error = RefusedError(500, "a fault of the service, about which its standard error says more")
    answer = json_answer({"error": printable(without_options(error.message))})
    return answer._replace(status=error.status, headers=error.headers)


def tell_fault(error: BaseException) -> None:
    """Say on standard error what went wrong, and where."""
    if os.environ.get("THRESHER_DEBUG"):
        traceback.print_exception(error)
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({os.path.basename(place[0].filename)}:{place[0].lineno})" if place else ""
    words = printable(" ".join(f"{type(error).__name__}: {error}".split())[:300])
    print(f"thresher: fault: {words}{where}", file=sys.stderr, flush=True)
