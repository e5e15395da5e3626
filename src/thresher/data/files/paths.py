"""Finding and opening files: local paths, URLs, globs and standard input; what a binary file is."""

from __future__ import annotations

import errno
import glob
import io
import lzma
import os
import re
import stat
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from isal import isal_zlib

from thresher.data.errors import DataError
from thresher.data.files import remote
from thresher.data.files.topics import is_topic, settle_topic
from thresher.options.messages import mention

_MARKS = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_WIDE = ("UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE")
_DAMAGED_GZIP: Any = isal_zlib.error  # a class, of which the stubs of isal know only an instance
_SOME = 256
"""Bytes that are looked at"""
_MODEL = b'{"__metadata__":{"thresher":'
"""What follows the length of the header in a model file"""
_MAGIC = (
    (b"PAR1", f"Parquet: try {mention(format='parquet')}"),
    (b"ARROW1", f"Arrow: try {mention(format='arrow')}"),
    (b"PK\x03\x04", "zip, npz or Excel: unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file: save the sheet as CSV"),
    (b"\x93NUMPY", "a NumPy array: load it with numpy.load and pass it to thresher.train in Python"),
    (b"\x80", "perhaps a pickle: load it in Python and pass the data to thresher.train"),
    (b"\x89HDF", "HDF5: read it in Python and pass the arrays to thresher.train"),
    (b"SQLite format 3", "a SQLite database: see docs/formats/databases.md"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
)  # fmt: skip


def begins_a_model(head: bytes) -> bool:
    """Whether a file with this beginning is a model or checkpoint of thresher."""
    return head[8:].startswith(_MODEL)


def binary_kind(head: bytes) -> str:
    """What a binary file that begins with `head` is, and how to read it; empty if unknown."""
    if known := next((kind for magic, kind in _MAGIC if head.startswith(magic)), ""):
        return known
    wide = next((name for mark, name in _MARKS if head.startswith(mark)), "")
    for name in _WIDE if not wide and len(head) >= 8 else ():
        try:
            text = getincrementaldecoder(name)().decode(head[:_SOME])
        except UnicodeDecodeError:
            continue
        # characters of ASCII, such as digits and delimiters, are part of any data, and in another order of
        # bytes they are other letters
        if any(map(str.isascii, text)) and all(c.isprintable() or c in "\t\r\n" for c in text):
            wide = name
            break
    return f"{wide[:6]} text: convert it with iconv -f {wide} -t UTF-8" if wide else ""


STDIN = "-"
SEGMENT = re.compile(r"\d{20}\.log")
"""The names of the files of a log"""
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"
"""Hyphens and dashes that word processors put in place of the hyphens of an option"""


def expand(data: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files that `data` names: paths, URLs, globs of either (sorted), topics and ``-``, in order.

    Raises `DataError`, before anything is read, if there is no file, a glob has no match, ``-`` is given
    twice, or a file is missing, unreadable, empty or a directory.
    """
    given = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    names, found = list[str](), list[str]()
    for item in given:
        name = os.fspath(item)
        if name.startswith("file:///"):
            name = unquote(name.removeprefix("file://"))
        with name_errors(name):
            if is_topic(name):
                found = [settle_topic(name)]
            elif remote.is_remote(name):
                found = remote.matching(name)
            elif name == STDIN or os.path.exists(name) or not glob.has_magic(name):
                found = [name]
            else:
                found = sorted(glob.glob(name, recursive=True))
        if not found:
            raise DataError(f"{name}: no file matches")
        names += found
    if not names:
        raise DataError("no data given")
    if names.count(STDIN) > 1:
        raise DataError("standard input (-) can be read only once")
    if STDIN in names and (sys.stdin is None or sys.stdin.closed):
        raise DataError("standard input (-) is closed")
    for name in names:
        if name != STDIN:
            _check_file(name, alone=len(names) == 1)
    return names


def is_stream(name: str) -> bool:
    """Whether a file can be read only once: standard input or a pipe."""
    if name == STDIN or remote.is_remote(name) or is_topic(name):
        return name == STDIN
    mode = os.stat(name).st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_log(name: str | os.PathLike[str]) -> bool:
    """Whether this is a folder with segments of a log."""
    try:
        with os.scandir(name) as found:
            return any(SEGMENT.fullmatch(one.name) and one.is_file() for one in found)
    except OSError:
        return False


def is_local(name: str) -> bool:
    """Whether a file is on this machine, and any part of it can be read again."""
    return not (is_topic(name) or remote.is_remote(name) or is_stream(name))


def size_of(name: str) -> int | None:
    """Size in bytes of a file as stored; None if unknown, as for a pipe."""
    if remote.is_remote(name):
        with name_errors(name):
            return remote.file_info(name).size
    return os.path.getsize(name) if is_local(name) else None


def _check_file(name: str, alone: bool) -> None:
    if is_topic(name):
        return
    if remote.is_remote(name):
        if size_of(name) == 0:
            raise DataError(f"{name}: the file is empty")
        return
    try:
        status = os.stat(name)
        if stat.S_ISDIR(status.st_mode):
            if not is_log(name):
                raise DataError(f"{name}: a directory; give its files, for example {os.path.join(name, '*')}")
            if not alone:
                raise DataError(
                    f"{name}: a log of rows, which can only be read alone: leave the other data out"
                )
            return
        if not stat.S_ISREG(status.st_mode):
            return  # a pipe: opening and closing it would end it for its writer
        if not os.access(name, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        empty = status.st_size == 0
        if empty:  # files in /proc have size 0, but content
            with open(name, "rb") as file:
                empty = not file.read(1)
    except OSError as error:
        option = name.lstrip(_DASHES)
        hint = "" if option == name else f"; did you mean --{option}, with hyphens?"
        raise DataError(f"{name}: {error.strerror or error}{hint}") from error
    if empty:
        raise DataError(f"{name}: the file is empty")


def open_file(name: str, piece: int = remote.PIECE) -> Any:
    """Open a file for reading bytes; a remote file is read in pieces of at least `piece` bytes."""
    if remote.is_remote(name):
        return io.BufferedReader(remote.RemoteFile(name), piece)
    if is_topic(name):
        from thresher.data.files.topic_lines import TopicFile

        return TopicFile(name)
    return sys.stdin.buffer if name == STDIN else open(name, "rb", buffering=0)


def display_name(name: str) -> str:
    """The name of a file in messages."""
    return "standard input" if name == STDIN else name


@contextmanager
def name_errors(name: str) -> Iterator[None]:
    """Turn errors while reading a file into a `DataError` that names it."""
    try:
        yield
    except (_DAMAGED_GZIP, lzma.LZMAError, EOFError, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{display_name(name)}: {unread(error)}") from error


def unread(error: Exception) -> str:
    """Why bytes cannot be read or unpacked."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if "requires too much memory" in reason:
        return "packed by zstd with a window of more than 128 MB: pack it again, with --long=27 at most"
    return f"cannot be read (damaged or cut off): {' '.join(reason.split())}"
