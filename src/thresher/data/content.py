"""Which content a file has, known by its hash, without reading it again while it is unchanged."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

from thresher.data.sources import remote
from thresher.data.sources.files import named, opened
from thresher.engine.folders import cache_folder

_PIECE = 1 << 20
_SETTLED = 2_000_000_000
"""A file changed this few nanoseconds ago may change again within one tick of its clock."""
_REMEMBERED = 1000


class Content(NamedTuple):
    """Hash and length in bytes of one file as it is stored."""

    hash: int
    size: int


def hash_file(name: str) -> Content:
    """Read a whole file; `DataError` if that fails."""
    from thresher.data.hash64 import Hash64

    total, piece = Hash64(), memoryview(bytearray(_PIECE))
    with named(name), opened(name) as file:
        while count := file.readinto(piece):
            total.update(piece[:count])
    return Content(total.digest(), total.size)


def stamp(name: str) -> list[int] | None:
    """What changes when a file does; None while it is too fresh to tell."""
    try:
        status = os.stat(name)
    except OSError:
        return None
    if time.time_ns() - status.st_mtime_ns < _SETTLED:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def remote_content(name: str) -> Content | None:
    """What is taken for the content of a file behind a URL: its name, size and time, where these are told."""
    from thresher.data.hash64 import Hash64

    if not remote.is_remote(name):
        return None
    with named(name):
        size, modified = remote.look_at(name)
    if size is None or modified is None or time.time_ns() - modified < _SETTLED:
        return None
    total = Hash64()
    total.update(f"{name}\n{size}\n{modified}".encode())
    return Content(total.digest(), size)


class ContentTable:
    """Remembers the hashes of files by path, size, time and inode, in a small file of the cache folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = (folder or cache_folder() / "data") / "contents.json"

    def _load(self) -> dict[str, list[int]]:
        try:
            table = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return {}
        return table if isinstance(table, dict) else {}

    def look_up(self, name: str) -> Content | None:
        """The content of a file if its time tells it, or it was remembered and has not changed since."""
        if remote.is_remote(name):
            return remote_content(name)
        now, found = stamp(name), self._load().get(os.path.abspath(name))
        if now is None or not isinstance(found, list) or len(found) != 4 or found[:3] != now:
            return None
        return Content(found[3], found[0])

    def remember(self, contents: dict[str, tuple[list[int] | None, Content]]) -> None:
        """Note ``{path: (its stamp before it was read, content)}``; a failure to write is no matter."""
        table = self._load()
        for name, (before, content) in contents.items():
            if before is not None and before == stamp(name) and before[0] == content.size:
                table.pop(os.path.abspath(name), None)
                table[os.path.abspath(name)] = [*before, content.hash]
        kept = dict(list(table.items())[-_REMEMBERED:])
        aside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            aside.write_text(json.dumps(kept))
            os.replace(aside, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink()
