"""A line for each request: when, who, what, the status, rows, bytes of the answer, milliseconds."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

_LONGEST = 200
"""letters of a path that are written"""


class AccessLog:
    """Writes to the end of a file, or to standard error (``-``). OSError if the file cannot be opened."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._file = 2 if str(path) == "-" else os.open(path, flags, 0o640)

    def note(
        self, client: Any, method: str, path: str, status: int, rows: int, size: int, seconds: float
    ) -> None:
        """Write a line; what is not known is a dash. A full disk stops no requests."""
        when = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        words = (when, client[0] if client else "-", method or "-", quote(path)[:_LONGEST] or "-", status)
        line = " ".join(map(str, (*words, rows or "-", size, f"{1000 * seconds:.1f}")))
        with suppress(OSError):
            os.write(self._file, f"{line}\n".encode())
