"""Folders of models: a table in JSON that describes them, and a file for each.

A folder appears under its name only once it is complete. Like single files, folders are written next to the
target and locked, so that folders left by a killed process can be told from folders that another process is
writing. The caller says with `Ours` which file names the folder may contain. Nothing else is ever removed.

Two names are exchanged by a system call that Python has no function for, hence `ctypes`. Without it, the old
folder must be renamed before the new one can take its name, and between the two renamings there is no folder:
while 600 were written, a reader in another process missed it in 1,714 of 57,000 attempts, with the exchange
in none of 76,000, and a process killed at that moment leaves no folder until the next run puts the old one
back. Both ways take 10 ms. Where the system cannot exchange, the renamings are used.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from thresher.data.files.paths import begins_a_model
from thresher.learning.files.atomic import (
    SUFFIX,
    check_parent,
    is_abandoned,
    keep_permissions,
    left_beside,
    lock,
    name_written,
    status_of,
    temporary_path,
    unfinished,
)

Ours = Callable[[str], bool]
"""Whether a file of this name belongs to the folder"""

_REPLACED = ".replaced"
"""Suffix for the old folder while it is replaced, if two folders cannot be exchanged atomically"""
_HERE, _EXCHANGE = -100, 2
"""Linux: AT_FDCWD; RENAME_EXCHANGE, which macOS calls RENAME_SWAP"""
_ATTEMPTS = 100
"""to swap folders while other processes swap too"""


@contextmanager
def whole_folder(path: str | Path, ours: Ours) -> Iterator[Path]:
    """A new temporary folder to write files to; it replaces `path` if the block succeeds.

    An existing folder is exchanged for it atomically, and then removed. If the block fails, or
    `check_replaceable` refuses the existing folder, nothing changes and the temporary folder is removed. A
    symbolic link keeps its target; permissions are kept. An OSError names `path`.
    """
    target = Path(os.path.realpath(path))
    try:
        with _created(target, ours) as (temporary, descriptor):
            with unfinished(temporary):
                yield temporary
                _sync(descriptor)
            check_replaceable(target, ours)
            _swap_in(temporary, target, ours)
    except OSError as error:
        if SUFFIX in str(error.filename or SUFFIX) or error.filename == str(target):
            error.filename = str(path)
            del error.filename2
        raise
    clear_abandoned(path, ours)


@contextmanager
def _created(target: Path, ours: Ours) -> Iterator[tuple[Path, int | None]]:
    """A new temporary folder and a descriptor that keeps it locked, even if renamed, until the block ends.

    At the end, whatever then has the temporary name is removed.
    """
    for attempts_left in (2, 1, 0):
        temporary = temporary_path(target)
        with contextlib.ExitStack() as opened:
            opened.callback(_remove, temporary, ours)
            try:
                temporary.mkdir()
                descriptor = opened.enter_context(_open(temporary))
            except FileNotFoundError:
                if attempts_left:
                    continue
                raise
            # as for files: another process may have removed it before it was locked
            locked = descriptor is None or lock(descriptor) is not False
            if (locked and temporary.exists()) or not attempts_left:
                yield temporary, descriptor
                return


@contextmanager
def _open(folder: Path) -> Iterator[int | None]:
    """A descriptor of a folder; None on Windows."""
    if sys.platform == "win32":
        yield None
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync(descriptor: int | None) -> None:
    """Sync the names of the files before the folder is renamed; some file systems cannot."""
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)


def _swap_in(temporary: Path, target: Path, ours: Ours) -> None:
    """Rename a complete folder to `target`. The old folder then has the temporary name, or is removed."""
    keep_permissions(target, temporary)
    away = temporary.with_suffix(_REPLACED)
    try:
        for _ in range(_ATTEMPTS):
            if _renamed(temporary, target) or _exchanged(temporary, target):
                return
            _settle(away, target, ours)  # another process has replaced the folder meanwhile
            with contextlib.suppress(FileNotFoundError):
                os.rename(target, away)
        raise OSError(errno.EBUSY, "other processes keep writing to it", str(target))
    finally:
        _settle(away, target, ours)


def _renamed(temporary: Path, target: Path) -> bool:
    """Rename the folder if `target` does not exist or is an empty folder; return whether that worked."""
    try:
        os.rename(temporary, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names atomically; False if the system or the file system cannot."""
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
    """Remove the old folder, or put it back if no other folder has replaced it."""
    with contextlib.suppress(FileNotFoundError):  # another process has settled it
        if away.exists() and (target.exists() or not _renamed(away, target)):
            _remove(away, ours)


def _remove(folder: Path, ours: Ours) -> None:
    """Remove the files that belong to the folder, and the folder if it is then empty."""
    with contextlib.suppress(OSError):  # removed meanwhile, or owned by another user
        for entry in list(folder.iterdir()):
            if _is_one_of(entry, ours):
                entry.unlink(missing_ok=True)
        folder.rmdir()


def _is_one_of(entry: Path, ours: Ours) -> bool:
    """Whether `entry` is a file that belongs to the folder, or an unfinished one."""
    return ours(name_written(entry.name)) and entry.is_file() and not entry.is_symlink()


def clear_abandoned(path: str | Path, ours: Ours) -> None:
    """Remove folders left by processes killed while writing `path`, but none in use.

    If one of them had moved the old folder away without replacing it, the old folder is put back.
    """
    target = Path(os.path.realpath(path))
    for left in left_beside(target):
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
    """Raise OSError now rather than at the end, if `path` is not a folder of ours or cannot be replaced."""
    target = Path(os.path.realpath(path))
    status = status_of(target)
    if status is not None and not stat.S_ISDIR(status.st_mode):
        raise FileExistsError(17, "is a file; give a folder", str(path))
    if status is not None:
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            _check_existing(target, path, ours)
    check_parent(target)


def _check_existing(target: Path, path: Path, ours: Ours) -> None:
    """`check_replaceable` for an existing folder; FileNotFoundError if it is removed meanwhile."""
    for entry in sorted(target.iterdir()):
        if not _is_one_of(entry, ours) and os.path.lexists(entry):
            reason = f"a folder with other files in it ({entry.name}): name a new one"
            raise FileExistsError(17, reason, str(path))
    if target.is_mount() or target.samefile(os.curdir):
        raise OSError(errno.EBUSY, "it is a mount point or in use: name a folder inside it", str(path))
    if not os.access(target, os.W_OK):
        os.stat(target)
        raise PermissionError(13, "not writable", str(target))


_HEAD = 1 << 12
MOST = 999
"""Maximum number of models that names with three digits can tell apart, from 1 or from 0"""


class FolderKind(NamedTuple):
    """The names of the files in such a folder."""

    table: str
    stem: str
    """how the names of model files begin"""
    picture: str | None = None

    def model_file(self, number: int) -> str:
        """Name of the file of a model."""
        return f"{self.stem}-{number:03d}.model"

    def is_at(self, path: Path) -> bool:
        """Whether `path` is a folder of this kind."""
        return (path / self.table).is_file()

    def owns(self, name: str) -> bool:
        """Whether a file of this name belongs to the folder."""
        own = re.fullmatch(rf"{self.stem}-\d{{3}}\.model", name)
        return name in (self.table, self.picture) or own is not None

    def check(self, path: Path) -> None:
        """Raise OSError if `path` is something other than such a folder, or cannot be replaced.

        Folders left behind by killed runs are removed.
        """
        clear_abandoned(path, self.owns)
        check_replaceable(path, self.owns)
        with contextlib.suppress(FileNotFoundError):  # none, or removed meanwhile
            for file in sorted(path.iterdir()):
                if not self._is_content_ours(file):
                    reason = f"a folder with a file of another kind in it ({file.name})"
                    raise FileExistsError(17, reason, str(path))

    def _is_content_ours(self, file: Path) -> bool:
        """Whether a file whose name is ours begins as such a file does; it may be empty, cut off or gone."""
        try:
            with open(file, "rb") as opened:
                head = opened.read(_HEAD)
        except FileNotFoundError:
            return True
        if file.name == self.table:
            return head.lstrip().startswith(b"{") or not head
        return begins_a_model(head) if file.suffix == ".model" and head else b"<svg" in head or not head

    def written(self, path: Path) -> contextlib.AbstractContextManager[Path]:
        """A new temporary folder to write to; it replaces `path` if the block succeeds. Raises OSError."""
        return whole_folder(path, self.owns)


FRONTIER = FolderKind("frontier.json", "lane", "frontier.svg")
"""Written by ``thresher path``"""
ENSEMBLE = FolderKind("ensemble.json", "model")
"""Written by ``thresher train --ensemble``"""
