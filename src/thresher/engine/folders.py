"""The folders for cached data and code, and checks that nobody else can write there."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class CacheWarning(UserWarning):
    """A cache could not be read or written, or is unsafe; thresher works without it."""


class UnsafeFolderError(OSError):
    """Another user owns a cache folder or file, or can write to it. One line, with the remedy."""


def cache_folder() -> Path:
    """``$THRESHER_CACHE_DIR``, or ``thresher`` in the user's cache folder."""
    chosen = os.environ.get("THRESHER_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / "thresher"
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "thresher"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:  # no HOME, and the user is not in the password database
        raise FileNotFoundError(2, "no home folder; THRESHER_CACHE_DIR can name a cache folder") from error


def private_folder(path: Path) -> Path:
    """The folder, created with mode 0700 (like missing parents) if it does not exist.

    Raises OSError if it cannot be created, and `UnsafeFolderError` if anyone but this user and root owns or
    can write to it, or can replace one of its parents: files in a cache are run as code or used for training.
    """
    for missing in reversed([folder for folder in (path, *path.parents) if not folder.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    whole = Path(os.path.realpath(path))
    _check(whole, os.stat(whole), sticky=False)
    for parent in whole.parents:
        _check(parent, os.stat(parent), sticky=True)
    return path


def check_private_file(descriptor: int, path: Path) -> None:
    """`UnsafeFolderError` if anyone but this user and root can write to an open file."""
    _check(path, os.fstat(descriptor), sticky=False)


def _check(path: Path, status: os.stat_result, sticky: bool) -> None:
    """In a `sticky` folder, such as /tmp, users cannot rename or remove other users' files."""
    if status.st_uid not in (os.geteuid(), 0):
        raise UnsafeFolderError(f"{path} belongs to another user; THRESHER_CACHE_DIR can name another folder")
    if status.st_mode & _WRITABLE_BY_OTHERS and not (sticky and status.st_mode & stat.S_ISVTX):
        raise UnsafeFolderError(f"other users can write to {path}; to make it safe: chmod go-w '{path}'")
