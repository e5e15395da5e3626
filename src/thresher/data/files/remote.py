"""Remote files, by the file systems of pyarrow or fsspec: listing, sizes, and reading with retries.

A failed operation is retried with growing delays, and reading resumes at the byte it had reached. A file that
ends before the size its file system reported counts as cut off.

All formats read a file object, so no format knows about networks. Delays double, without jitter: one process
reads one file at a time, and tests can predict them. A remote file is identified by URL, size and time;
hashing its content would mean downloading it. HTTP goes through fsspec, an optional dependency, because
pyarrow does not support it.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeVar

from thresher.data.errors import DataError
from thresher.data.files.topics import is_topic
from thresher.options.messages import mention

TRIES = 6
DELAY = 0.25
"""Seconds before the second try; doubled before each further one."""
PIECE = 4 << 20
"""Bytes to request from a stream at a time."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_UNLISTED = re.compile(r"https?://", re.IGNORECASE)
_STREAMS = "docs/streams.md#another-source"
_WILD = re.compile(r"[*\[]")

T = TypeVar("T")


def is_remote(name: str) -> bool:
    """Whether `name` is the URL of a file."""
    return _URL.match(name) is not None and not is_topic(name)


class FileInfo(NamedTuple):
    """Size and time of a file; None if its file system does not tell."""

    size: int | None
    modified: int | None
    """nanoseconds since 1970"""


SYSTEMS: dict[str, tuple[Any, str]] = {}


def system_of(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it; raises `DataError` if none supports it."""
    if url in SYSTEMS:
        return SYSTEMS[url]
    import pyarrow as pa
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    stream = f"; for a stream, name the file that reads it: {mention(modules='FILE')} ({_STREAMS})"
    try:
        return SYSTEMS.setdefault(url, FileSystem.from_uri(url))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ImportError) as error:
        reason = str(error)
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(url)
    except ImportError as error:
        why = f"needs fsspec and, for http, aiohttp: pip install fsspec aiohttp ({error})"
        raise DataError(f"{url}: {why}" + ("" if _UNLISTED.match(url) else stream)) from error
    except ValueError as error:
        raise DataError(f"{url}: {reason.splitlines()[0]}{stream}") from error
    return SYSTEMS.setdefault(url, (PyFileSystem(FSSpecHandler(system)), path))


def with_retries(action: Callable[[], T], again: Callable[[], None] = lambda: None) -> T:
    """Return `action()`, trying up to `TRIES` times; `again` is called before each retry.

    Raises OSError after the last try. Files that are missing, not readable or have changed raise at once.
    """
    for k in range(TRIES):
        try:
            return action()
        except (FileNotFoundError, PermissionError, MemoryError, DataError):
            raise
        except Exception as error:  # noqa: BLE001 third-party file systems may raise anything
            last = error
        if k < TRIES - 1:
            time.sleep(DELAY * 2**k)
            again()
    raise OSError(f"failed {TRIES} times, last with: {last}")


def file_info(url: str) -> FileInfo:
    """Size and time of a file; raises `DataError` if it is missing or a directory."""
    from pyarrow.fs import FileType

    system, path = with_retries(lambda: system_of(url))
    info = with_retries(lambda: system.get_file_info(path))
    if info.type is FileType.NotFound:
        raise DataError(f"{url}: no such file{', or no answer' if _UNLISTED.match(url) else ''}")
    if info.type is FileType.Directory:
        raise DataError(f"{url}: a directory; give its files, for example {url.rstrip('/')}/*")
    modified = info.mtime_ns
    return FileInfo(info.size, None if modified is None or modified <= 0 else modified)


def matching(url: str) -> list[str]:
    """The URLs that match a pattern with ``*``, ``**`` or ``[``, sorted; a URL without these matches itself.

    Options after a ``?`` apply to all matches. HTTP URLs cannot be listed, so they are not patterns.
    """
    bare, mark, options = url.partition("?")
    if _UNLISTED.match(url) or not _WILD.search(bare):
        return [url]
    parts = bare.split("/")
    first = next(k for k, part in enumerate(parts) if _WILD.search(part))
    base, wanted = "/".join(parts[:first]), parts[first:]
    if first <= 2:
        raise DataError(f"{url}: the first name after :// cannot be a pattern")
    from pyarrow.fs import FileSelector, FileType

    system, path = with_retries(lambda: system_of(base + mark + options))
    below = FileSelector(path, allow_not_found=True, recursive=len(wanted) > 1)
    infos = with_retries(lambda: system.get_file_info(below))
    folder = path.rstrip("/") + "/" if path else ""
    names = [info.path[len(folder) :] for info in infos if info.type is FileType.File]
    found = {f"{base}/{n}{mark}{options}": (system, folder + n) for n in names if _fits(n.split("/"), wanted)}
    SYSTEMS.update(found)
    return sorted(found)


def _fits(names: list[str], wanted: list[str]) -> bool:
    """Whether the parts of a path match the `wanted` patterns; ``**`` matches any number of parts."""
    if not wanted or not names:
        return names == wanted or wanted == ["**"]
    if wanted[0] == "**":
        return _fits(names, wanted[1:]) or _fits(names[1:], wanted)
    hidden = names[0].startswith(".") and not wanted[0].startswith(".")
    return not hidden and fnmatchcase(names[0], wanted[0]) and _fits(names[1:], wanted[1:])


class RemoteFile(io.RawIOBase):
    """The bytes of a remote file."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url, self._found = url, file_info(url)
        self._at = 0
        self._file: Any = None
        self._dropped = False

    def readable(self) -> bool:
        """True."""
        return True

    seekable = readable

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Continue at another byte."""
        if whence == io.SEEK_END and self._found.size is None:
            raise OSError("the size is unknown")
        self._at = offset + (0, self._at, self._found.size or 0)[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read into the beginning of `buffer`; returns 0 at the end."""
        view, size = memoryview(buffer).cast("B"), self._found.size
        view = view if size is None else view[: max(0, size - self._at)]
        count = with_retries(lambda: self._read(view), self._drop) if len(view) else 0
        self._at += count
        return count

    def _read(self, view: memoryview) -> int:
        if self._file is None:
            if self._dropped and file_info(self._url) != self._found:
                raise DataError(f"{self._url}: changed while it was read")
            system, path = system_of(self._url)
            self._file = system.open_input_file(path)
        self._file.seek(self._at)
        count = int(self._file.readinto(view))
        if count == 0 and self._found.size is not None:
            raise EOFError(f"it ends at byte {self._at} of {self._found.size}")
        return count

    def _drop(self) -> None:
        """Close the connection; the next one must find the same file."""
        file, self._file, self._dropped = self._file, None, True
        if file is not None:
            with suppress(OSError):  # everything needed has been read
                file.close()

    def close(self) -> None:
        """Close the file."""
        self._drop()
        super().close()
