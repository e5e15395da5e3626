"""Folders that appear under their names only when they are whole.

Until then they are written aside, as single files are: beside their name, locked, so that what a killed
process has left can be told from what another is writing. Whoever makes such a folder says by `Ours` which
names of files it writes. Nothing else is ever removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from thresher.learning.wholefile import (
    SUFFIX,
    check_writable,
    is_abandoned,
    lock,
    name_aside,
    name_written,
    prefix_of,
    unfinished,
)

Ours = Callable[[str], bool]
"""Whether files of this name are among those that the folder is made of"""

_REPLACED = ".replaced"
"""Ending of the name under which the older folder waits where two cannot be exchanged at once"""
_HERE, _EXCHANGE = -100, 2
"""AT_FDCWD of Linux; RENAME_EXCHANGE of Linux, which is RENAME_SWAP of macOS"""
_ATTEMPTS = 100
"""of a swap while others swap, too"""


@contextmanager
def whole_folder(path: str | Path, ours: Ours) -> Iterator[Path]:
    """An empty folder aside to write files to, which takes the place of `path` when the block ends well.

    The folder that stood there is exchanged for it as a whole, and removed. When the block fails, or
    something stands there that `check_replaceable` refuses, nothing has changed and nothing is left behind. A
    symbolic link keeps pointing where it did; permissions stay. An OSError names `path`.
    """
    target = Path(os.path.realpath(path))
    try:
        with _created(target) as (aside, descriptor):
            try:
                with unfinished(aside):
                    yield aside
                    _sync(descriptor)
                check_replaceable(target, ours)
                _swap_in(aside, target, ours)
            finally:
                _remove(aside, ours)
    except OSError as error:
        if SUFFIX in str(error.filename or SUFFIX) or error.filename == str(target):
            error.filename = str(path)
            del error.filename2
        raise
    clear_abandoned(path, ours)


@contextmanager
def _created(target: Path) -> Iterator[tuple[Path, int | None]]:
    """A new folder aside and a descriptor that has it locked, whatever its name, until the block ends."""
    for attempts_left in (2, 1, 0):
        aside = name_aside(target)
        aside.mkdir()
        with contextlib.ExitStack() as opened:
            try:
                descriptor = opened.enter_context(_open(aside))
            except FileNotFoundError:
                if attempts_left:
                    continue
                raise
            # as for files: another process may have cleared it away before it could be locked
            ours = descriptor is None or lock(descriptor) is not False
            if (ours and aside.exists()) or not attempts_left:
                yield aside, descriptor
                return


@contextmanager
def _open(folder: Path) -> Iterator[int | None]:
    """A descriptor of a folder; None where there is no such thing."""
    if sys.platform == "win32":
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync(descriptor: int | None) -> None:
    """Have the names of files on disk, before the folder gets its own; some file systems cannot."""
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)


def _swap_in(aside: Path, target: Path, ours: Ours) -> None:
    """Give a folder that is whole its name. What stood there is under the name aside then, or removed."""
    if target.exists():
        aside.chmod(target.stat().st_mode & 0o7777)
    away = aside.with_suffix(_REPLACED)
    try:
        for _ in range(_ATTEMPTS):
            if _renamed(aside, target) or _exchanged(aside, target):
                return
            _settle(away, target, ours)  # another process has given the name to its own meanwhile
            with contextlib.suppress(FileNotFoundError):
                os.rename(target, away)
        raise OSError(errno.EBUSY, "other processes keep writing it", str(target))
    finally:
        _settle(away, target, ours)


def _renamed(aside: Path, target: Path) -> bool:
    """Whether nothing stands there, or an empty folder, so that a name is all it takes."""
    try:
        os.rename(aside, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names at once; False where the system or the file system has no such call."""
    first, second = os.fsencode(one), os.fsencode(other)
    calls: dict[str, tuple[str, tuple[int | bytes, ...]]] = {
        "linux": ("renameat2", (_HERE, first, _HERE, second, _EXCHANGE)),
        "darwin": ("renamex_np", (first, second, _EXCHANGE)),
    }
    if sys.platform not in calls:
        return False
    name, words = calls[sys.platform]
    call = getattr(ctypes.CDLL(None), name, None)
    return call is not None and call(*words) == 0


def _settle(away: Path, target: Path, ours: Ours) -> None:
    """Remove the older folder, or put it back where no other has taken its place."""
    if away.exists() and (target.exists() or not _renamed(away, target)):
        _remove(away, ours)


def _remove(folder: Path, ours: Ours) -> None:
    """Remove our files, and the folder if that was all."""
    with contextlib.suppress(OSError):  # gone meanwhile, or another user's
        for entry in list(folder.iterdir()):
            if _is_one_of(entry, ours):
                entry.unlink(missing_ok=True)
        folder.rmdir()


def _is_one_of(entry: Path, ours: Ours) -> bool:
    """Whether it is one of our files, or what is left of one that was not finished."""
    return ours(name_written(entry.name)) and entry.is_file() and not entry.is_symlink()


def clear_abandoned(path: str | Path, ours: Ours) -> None:
    """Remove what processes killed while writing `path` have left, and nothing that is being written.

    An older folder that one of them had taken away, and had not replaced yet, is put back.
    """
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f"{escape(prefix_of(target))}*"):
        if left.suffix not in (SUFFIX, _REPLACED) or not left.is_dir():
            continue
        with contextlib.suppress(OSError), _open(left) as descriptor:
            if descriptor is None or not is_abandoned(descriptor):
                continue
            if left.suffix == _REPLACED:
                _settle(left, target, ours)
            else:
                _remove(left, ours)


def check_replaceable(path: Path, ours: Ours) -> None:
    """Raise OSError for what is no folder of ours, or cannot be replaced: now rather than at the end."""
    target = Path(os.path.realpath(path))
    if not target.exists():
        check_writable(path)
        return
    if not target.is_dir():
        raise FileExistsError(17, "a file stands there: name a folder", str(path))
    for entry in sorted(target.iterdir()):
        if not _is_one_of(entry, ours):
            reason = f"a folder with other things in it ({entry.name}): name a new one"
            raise FileExistsError(17, reason, str(path))
    if target.is_mount() or target.samefile(os.curdir):
        raise OSError(errno.EBUSY, "it is mounted, or worked in: name a folder inside it", str(path))
    for folder in (target, target.parent):
        if not os.access(folder, os.W_OK):
            raise PermissionError(13, "not writable", str(folder))
