"""Where thresher keeps what it can make again (compiled code, parsed data), and who may write there."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class CacheWarning(UserWarning):
    """A cache could not be written or read, or is not safe to use; work goes on without it."""


class UnsafeFolderError(OSError):
    """Another user could put files into a cache folder, or has. One line, with the remedy."""


def cache_folder() -> Path:
    """``$THRESHER_CACHE_DIR``, or ``thresher`` in the user's cache folder of this system."""
    chosen = os.environ.get("THRESHER_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local") / "thresher"
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / "thresher"
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "thresher"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:  # a user without an entry in the system's list, and no HOME
        raise FileNotFoundError(2, "no home folder; THRESHER_CACHE_DIR can name a cache folder") from error


def private_folder(path: Path) -> Path:
    """The folder, made with mode 0700 (as are missing parents) if it is not there.

    Raises OSError where it cannot be made, and `UnsafeFolderError` where somebody other than this
    user and root owns it or can write to it, or can replace a folder on the way to it: what lies in a
    cache is run as code, or learned from.
    """
    for missing in reversed([folder for folder in (path, *path.parents) if not folder.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "geteuid"):
        whole = Path(os.path.realpath(path))
        _check(whole, os.stat(whole), sticky=False)
        for parent in whole.parents:
            _check(parent, os.stat(parent), sticky=True)
    return path


def check_private_file(descriptor: int, path: Path) -> None:
    """`UnsafeFolderError` for an open file that somebody other than this user and root can write to."""
    if hasattr(os, "geteuid"):
        _check(path, os.fstat(descriptor), sticky=False)


def _check(path: Path, status: os.stat_result, sticky: bool) -> None:
    """In a `sticky` folder, such as /tmp, users can neither rename nor remove what is not theirs."""
    if status.st_uid not in (os.geteuid(), 0):
        raise UnsafeFolderError(f"{path} belongs to another user; THRESHER_CACHE_DIR can name another folder")
    if status.st_mode & _WRITABLE_BY_OTHERS and not (sticky and status.st_mode & stat.S_ISVTX):
        raise UnsafeFolderError(f"other users can write to {path}; to make it safe: chmod go-w '{path}'")
