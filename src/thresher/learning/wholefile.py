"""Files that appear under their names only when they are whole."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import IO, Any

_SUFFIX = ".partial"
_NAMED = 50
"""Characters of the name that stand in the name of the file aside, which must not grow too long."""


@contextmanager
def whole_file(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write (``w`` or ``wb``): aside, synced, and renamed to `path` when the block ends well.

    When it does not, what stood under the name is untouched and nothing is left behind. The
    file keeps the permissions of the one it replaces; a symbolic link keeps pointing where it
    did; a device or pipe is written to as it is. An OSError names `path`.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with open(target, mode) as file:
                yield file
            return
        with _aside(target, mode) as file:
            yield file
    except OSError as error:
        if error.filename is None or error.filename.endswith(_SUFFIX):
            error.filename = str(path)
        raise


@contextmanager
def _aside(target: Path, mode: str) -> Iterator[IO[Any]]:
    aside = target.with_name(f".{target.name[:_NAMED]}.{secrets.token_hex(4)}{_SUFFIX}")
    try:
        with open(aside, mode.replace("w", "x")) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(aside, target.stat().st_mode & 0o7777)
        os.replace(aside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def discard(path: Path) -> None:
    """Remove a file, if it is there, and what processes killed while writing it have left."""
    path.unlink(missing_ok=True)
    for left in path.parent.glob(f".{escape(path.name[:_NAMED])}.*{_SUFFIX}"):
        left.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise OSError now rather than when the work is done."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(21, "a directory, not a file", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "no such directory", str(target.parent))
    special = target.exists() and not target.is_file()
    if not os.access(target if special else target.parent, os.W_OK):
        raise PermissionError(13, "not writable", str(path if special else target.parent))
