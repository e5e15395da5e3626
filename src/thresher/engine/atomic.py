"""Files that appear under their names only once they are complete; folders where nobody else can write.

Until then they are written under a unique temporary name next to the target, and locked. So what a killed
process left can be told from what another process is writing: what can be locked was abandoned.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

SUFFIX = ".partial"
_NAMED = 50
"""Number of characters of the target's name in the temporary name, which must not become too long."""
_ABANDONED = 24 * 3600.0
"""seconds without a write after which a file counts as abandoned, if locks cannot tell"""

POLLS, PAUSE = 100, 0.1
"""How often, and after how many seconds, to look for a reader of a pipe"""

_unfinished: set[Path] = set()


@contextmanager
def whole_file(path: str | Path, mode: str = "w", *, cached: bool = False) -> Iterator[IO[Any]]:
    """Open a temporary file to write (``w`` or ``wb``); sync and rename it to `path` if the block succeeds.

    If the block fails, an existing file is unchanged and the temporary file is removed. The new file gets the
    permissions of the one it replaces; a symbolic link keeps its target; a device or pipe is written
    directly. Temporary files left by processes killed while writing `path` are removed. An OSError names
    `path`. The file at `path` may vanish or be replaced at any time.

    A `cached` file can be made again: it is not synced, only this user can read it, and what a killed process
    left stays, because listing a cache of 600 files takes longer than writing one.
    """
    target = Path(os.path.realpath(path))
    try:
        special = _special_file(target, mode)
        if special is None:
            _check_parent(target)
        with _temporary_file(target, mode, cached) if special is None else special as file:
            yield file
    except OSError as error:
        if error.filename is None or error.filename.endswith(SUFFIX):
            error.filename = str(path)
        raise


def _special_file(target: Path, mode: str) -> IO[Any] | None:
    """A device or pipe, opened; None if `target` is a regular file or does not exist.

    OSError if no process reads a named pipe, for which opening it would wait without end.
    """
    status = _status_of(target)
    if status is None or stat.S_ISREG(status.st_mode):
        return None
    try:
        for left in reversed(range(POLLS if stat.S_ISFIFO(status.st_mode) else 0)):
            try:
                os.close(os.open(target, os.O_WRONLY | os.O_NONBLOCK))
                break
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
            if not left:
                raise OSError(errno.ENXIO, "no process reads this pipe", str(target))
            time.sleep(PAUSE)
        return open(target, mode, opener=lambda path, flags: os.open(path, flags & ~os.O_CREAT))
    except FileNotFoundError:
        return None


def _status_of(path: Path) -> os.stat_result | None:
    """The status of a file; None if it does not exist.

    Asked once where several answers must agree: other processes may remove or replace it at any time.
    """
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def _temporary_file(target: Path, mode: str, cached: bool) -> Iterator[IO[Any]]:
    """A new file, which then takes the place of `target`; locked until then."""
    for attempts_left in (2, 1, 0):
        temporary = temporary_path(target)
        try:
            _unfinished.add(temporary)  # before it exists, because a signal may arrive as soon as it does
            with open(temporary, mode.replace("w", "x")) as file, file:  # closed even if one is interrupted
                ours = lock(file.fileno()) is not False and temporary.exists()
                if attempts_left and not ours:
                    continue  # another process took it for abandoned before it was locked
                yield file
                file.flush()
                if not cached:
                    os.fsync(file.fileno())
                before = None if cached else _status_of(target)
                if cached or before is not None:
                    os.chmod(temporary, stat.S_IMODE(before.st_mode) if before else 0o600)
                os.replace(temporary, target)
                break
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            _unfinished.discard(temporary)
    if not cached:
        clear_abandoned(target)


def remove_unfinished() -> None:
    """Remove the files that this process is writing, because it is about to exit."""
    for temporary in tuple(_unfinished):
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _prefix_of(target: Path) -> str:
    """The prefix of all temporary names for `target`, with a hash, since long names may begin alike."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]
    return f".{target.name[:_NAMED]}.{digest}."


def temporary_path(target: Path) -> Path:
    """A new temporary name next to `target`."""
    return target.with_name(f"{_prefix_of(target)}{secrets.token_hex(4)}{SUFFIX}")


def stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes if a file is written or replaced; None without one."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def lock(descriptor: int) -> bool | None:
    """Lock a file or folder unless another process holds the lock; None if the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno == errno.EWOULDBLOCK else None
    return True


def discard(path: Path) -> None:
    """Remove a file, if it exists, and temporary files left by processes killed while writing it."""
    path.unlink(missing_ok=True)
    clear_abandoned(path)


def clear_abandoned(path: str | Path) -> None:
    """Remove what processes left that were killed while writing `path`, but nothing in use."""
    target = Path(os.path.realpath(path))
    prefix = _prefix_of(target)
    try:
        names = [name for name in os.listdir(target.parent) if name.startswith(prefix)]
    except OSError:
        return
    for left in (target.parent / name for name in names if name.endswith(SUFFIX)):
        with contextlib.suppress(OSError):  # another user's, or gone
            descriptor = os.open(left, os.O_RDWR | os.O_NOFOLLOW)  # as locks on NFS require
            try:
                nobody = lock(descriptor)  # else somebody writes it
                if nobody is None:
                    nobody = time.time() - os.fstat(descriptor).st_mtime > _ABANDONED
                if nobody:
                    left.unlink()  # while holding the lock
            finally:
                os.close(descriptor)


def check_writable(path: Path) -> None:
    """Raise OSError now rather than after the work is done."""
    target = Path(os.path.realpath(path))
    status = _status_of(target)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, "a directory, not a file", str(path))
    if status is None or stat.S_ISREG(status.st_mode):
        _check_parent(target)
    elif not os.access(target, os.W_OK):
        raise PermissionError(13, "not writable", str(path))


def _check_parent(target: Path) -> None:
    """Raise OSError unless files can be created beside `target`."""
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "no such directory", str(target.parent))
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(13, "not writable", str(target.parent))


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
    mac = sys.platform == "darwin"
    kept = None if mac else os.environ.get("XDG_CACHE_HOME")
    if kept:
        return Path(kept) / "thresher"
    try:
        return Path.home() / ("Library/Caches" if mac else ".cache") / "thresher"
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
    check_private(whole, os.stat(whole))
    for parent in whole.parents:
        check_private(parent, os.stat(parent), sticky=True)
    return path


def check_private(path: Path, status: os.stat_result, sticky: bool = False) -> None:
    """`UnsafeFolderError` if anyone but this user and root can write to what has this status.

    In a `sticky` folder, such as /tmp, users cannot rename or remove other users' files.
    """
    if status.st_uid not in (os.geteuid(), 0):
        raise UnsafeFolderError(f"{path} belongs to another user; THRESHER_CACHE_DIR can name another folder")
    if status.st_mode & _WRITABLE_BY_OTHERS and not (sticky and status.st_mode & stat.S_ISVTX):
        raise UnsafeFolderError(f"other users can write to {path}; to make it safe: chmod go-w '{path}'")
