"""The quarantine file: rejected lines, byte for byte.

It is appended to in place, not written as a whole: the lines so far can be read after a run that failed.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from thresher.data.errors import DataError

_MARK, _OURS = "user.thresher", b"rejected lines"
"""An extended attribute of quarantine files, so that no other file is ever overwritten."""


class Quarantine:
    """The file of rejected lines, written as their chunks are yielded."""

    def __init__(self, path: Path, keep: int | None) -> None:
        """Start an empty file, or continue after the first `keep` bytes that an interrupted pass wrote."""
        self._path = path
        try:
            check_ours(path, resumed=keep is not None)
            self._file: BinaryIO = open(path, "wb" if keep is None else "ab")  # noqa: SIM115
            _mark(self._file.fileno())
            if keep is not None:
                self._file.truncate(min(keep, os.fstat(self._file.fileno()).st_size))
        except OSError as error:
            raise DataError(f"{path}: cannot write the quarantine file: {error.strerror}") from error

    def write(self, rejected: bytes) -> None:
        """Append lines. Raises `DataError` if that fails."""
        try:
            self._file.write(rejected)
            self._file.flush()
        except OSError as error:
            raise DataError(f"{self._path}: cannot write the quarantine file: {error.strerror}") from error

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # everything is flushed, or a write has already raised
            self._file.close()


def check_ours(path: Path, resumed: bool = False) -> None:
    """Raise `DataError` if `path` is a regular file with content that is not a quarantine file.

    Where files have no extended attributes, any such file is refused unless an interrupted pass is `resumed`.
    Raises OSError if the path cannot be examined.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode) or found.st_size == 0:
        return
    marked = _is_marked(path)
    if not marked and not (resumed and marked is None):
        raise DataError(f"{path} exists and is not a quarantine file: name another file, or remove it")


def _mark(descriptor: int) -> None:
    with suppress(OSError, AttributeError):  # AttributeError: not on Linux
        os.setxattr(descriptor, _MARK, _OURS)


def _is_marked(path: Path) -> bool | None:
    """Whether a file is marked; None if files cannot be marked there."""
    try:
        return bool(os.getxattr(path, _MARK) == _OURS)
    except AttributeError:
        return None
    except FileNotFoundError:  # removed meanwhile
        return True
    except OSError as error:
        return None if error.errno in (errno.ENOTSUP, errno.EPERM) else False
