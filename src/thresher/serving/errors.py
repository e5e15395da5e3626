"""What a client is told when its request is not done, and the operator when there is a fault."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping

import msgspec

from thresher.data.errors import DataError, printable
from thresher.options.messages import without_options

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for a body"""


def why_not_json(error: Exception) -> str:
    """What is wrong with a body that is not JSON, or not the JSON that is wanted."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


class RefusedError(Exception):
    """A request cannot be carried out, with the status that HTTP has for it, and headers of the answer."""

    def __init__(
        self,
        status: int,
        message: str,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after
        self.headers = {**(headers or {})}
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, round(retry_after)))


def refusal_of(error: Exception) -> RefusedError:
    """What the client is told of any error; the operator is told of those that are faults of ours."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, DataError):
        return RefusedError(400, error.args[0])
    tell_fault(error)
    return RefusedError(500, "a fault of the service, about which its standard error says more")


def as_json(message: str) -> bytes:
    """An error as the body of an answer, without options, which a client cannot give."""
    return msgspec.json.encode({"error": printable(without_options(message))}) + b"\n"


def tell_fault(error: BaseException) -> None:
    """Say on standard error what went wrong, and where."""
    if os.environ.get("THRESHER_DEBUG"):
        traceback.print_exception(error)
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({os.path.basename(place[0].filename)}:{place[0].lineno})" if place else ""
    words = printable(" ".join(f"{type(error).__name__}: {error}".split())[:300])
    print(f"thresher: fault: {words}{where}", file=sys.stderr, flush=True)
