"""The content of a file, identified by its hash.

Content is hashed as stored, not as parsed rows: crosses and n-grams can cost as much as learning, so resuming
would be as slow as the run. Text is hashed block by block while it is read, so a checkpoint knows what was
read so far. Parquet and Arrow files, whose bytes are not read in order, are hashed completely when they are
opened. Rows of queries, which may come in another order, are compared as a multiset (`ByRows`).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import xxhash

from thresher.data.errors import DataError
from thresher.data.files import remote
from thresher.data.files.paths import display_name, is_local, is_stream, name_errors, open_file
from thresher.data.files.remote import is_remote

_PIECE = 1 << 20
SETTLED = 2_000_000_000
"""Nanoseconds within which a file may change again without a new time stamp."""


class Content(NamedTuple):
    """Hash and length in bytes of one file as stored, or of its beginning."""

    hash: int
    size: int


class ReadSoFar(NamedTuple):
    """What has been read of several files so far; cheap to create for every block."""

    done: Sequence[Content]
    """the files read completely; may grow later"""
    files: int
    """how many of `done` had been read"""
    partly: tuple[Content, ...]
    """the file being read, if any"""
    size: int
    """bytes in total"""

    @classmethod
    def of(cls, contents: Sequence[Content]) -> ReadSoFar:
        """`contents` and nothing else."""
        return cls(contents, len(contents), (), sum(content.size for content in contents))

    def contents(self) -> list[Content]:
        """The content of each file."""
        return [*self.done[: self.files], *self.partly]


NOTHING_READ = ReadSoFar.of(())


@dataclass
class ContentHash:
    """The content of the bytes passed to `update`, in pieces of any size."""

    hash: Any = field(default_factory=xxhash.xxh64)
    size: int = 0
    """bytes hashed so far"""

    def update(self, view: memoryview) -> None:
        """Add bytes."""
        self.hash.update(view)
        self.size += view.nbytes

    def content(self) -> Content:
        """The content of the bytes so far."""
        return Content(self.hash.intdigest(), self.size)


def hash_file(name: str, size: int | None = None, opened: Any = None) -> Content:
    """The content of a file, perhaps `opened`, or of its first `size` bytes. `DataError`."""
    total, piece = ContentHash(), memoryview(bytearray(_PIECE))
    with name_errors(name), open_file(name) if opened is None else contextlib.nullcontext(opened) as file:
        while size is None or total.size < size:
            room = piece if size is None else piece[: size - total.size]
            if not (count := file.readinto(room)):
                break
            total.update(room[:count])
    return total.content()


def check_beginning(name: str, expected: Content) -> None:
    """Raise `DataError` unless a file still begins with the content that was read before."""
    if (found := content_of(name, expected.size)) != expected:
        raise change_error(name, found.size, expected.size)


def change_error(name: str, now: int, before: int, unit: str = "bytes") -> DataError:
    """The error for data that have changed since they were read."""
    how = f"within its first {now:,} {unit}" if now == before else f"from {before:,} {unit} to {now:,}"
    return DataError(
        f"{display_name(name)}: changed since it was first read ({how}); every pass needs the same data"
    )


def stamp(name: str) -> list[int] | None:
    """Properties of a local file that change whenever it does; None if it changed too recently to be sure.

    An edit can preserve size, modification time and inode, but nobody can set the time of the last inode
    change (ctime).
    """
    try:
        status = os.stat(name)
    except OSError:
        return None
    if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < SETTLED:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def content_of(name: str, size: int | None = None, opened: Any = None) -> Content:
    """The content of a whole file, or of its first `size` bytes; of a remote file always all."""
    return remote_content(name, sure=False) or hash_file(name, size, opened)


def remote_content(name: str, *, sure: bool = True) -> Content | None:
    """The content of a remote file, identified by URL, size and time; None of a local file.

    To be `sure` that it changes whenever the file does, None if these are unknown or too new.
    """
    if not is_remote(name):
        return None
    with name_errors(name):
        size, modified = remote.file_info(name)
    if sure and (size is None or modified is None or time.time_ns() - modified < SETTLED):
        return None
    return Content(xxhash.xxh64_intdigest(f"{name}\n{size}\n{modified}".encode()), size or 0)


class Watches:
    """The contents of the files of one pass.

    A file read from front to back is hashed while it is read. A file with random access is hashed when it is
    opened, and a remote file is identified by URL, size and time. The reader calls `open` and `so_far`.
    Before resuming a run, call `confirm`, so that nothing is learned from changed data. `contents` ends the
    pass.
    """

    def __init__(
        self, names: Sequence[str], expected: Sequence[Content], whole: bool, in_order: bool
    ) -> None:
        """`expected`: content read before, of `whole` files or up to some byte in the last of its files."""
        self._names, self._expected, self._whole, self._in_order = names, expected, whole, in_order
        self._stamps, self._done, self._size = list[list[int] | None](), list[Content](), 0
        self._running: ContentHash | None = None
        self._remote, self._hashes = dict[int, Content | None](), dict[int, ContentHash]()

    def open(self, file: int, opened: Any = None) -> Callable[[memoryview], None] | None:
        """Begin a file, perhaps `opened`; returns the function to pass its bytes to.

        Files skipped were read earlier.
        """
        self._end()
        while len(self._done) < file:
            self._known(len(self._done))
        name = self._names[file]
        in_order = self._in_order or is_stream(name)
        if in_order and not is_remote(name):
            self._stamps.append(stamp(name))
            self._running = ContentHash()
            return partial(self._see, self._running)
        self._known(file, opened)
        if not in_order or self._remote[file] is not None:
            return None
        self._hashes[file] = ContentHash()
        return self._hashes[file].update

    def _known(self, file: int, opened: Any = None) -> None:
        """Set the content of a file that is not hashed while it is read."""
        name = self._names[file]
        self._stamps.append(stamp(name))
        if is_remote(name):
            self._remote[file] = remote_content(name)
        content, expected = content_of(name, opened=opened), self._expected[file : file + 1]
        if expected and not self._whole and file == len(self._expected) - 1 and content != expected[0]:
            check_beginning(name, expected[0])  # only the beginning was read before
            self._expected = self._expected[:file]
        self._finish(content, True)

    def _see(self, total: ContentHash, view: memoryview) -> None:
        """Hash bytes of the current file; raises `DataError` as soon as they differ from what is expected."""
        file = len(self._done)
        if file < len(self._expected):
            expected = self._expected[file]
            missing = expected.size - total.size
            if 0 <= missing <= len(view):
                total.update(view[:missing])
                if total.content() != expected:
                    raise change_error(self._names[file], expected.size, expected.size)
                view = view[missing:]
        total.update(view)

    def _end(self) -> None:
        if self._running is not None:
            ended, self._running = self._running, None
            self._finish(ended.content(), self._whole or len(self._done) < len(self._expected) - 1)

    def _finish(self, content: Content, whole: bool) -> None:
        """Set the content of a file; raises `DataError` if it differs, or (not `whole`) is too short."""
        file = len(self._done)
        self._done.append(content)
        self._size += content.size
        if file < len(self._expected):
            expected = self._expected[file]
            if content != expected if whole else content.size < expected.size:
                raise change_error(self._names[file], content.size, expected.size)

    def so_far(self) -> ReadSoFar:
        """The content read so far."""
        partly = () if self._running is None else (self._running.content(),)
        size = self._size + sum(one.size for one in partly)
        return ReadSoFar(self._done, len(self._done), partly, size)

    def confirm(self) -> None:
        """Check the expected files not read so far; raises `DataError` if one has changed or is gone."""
        known = [*self._done, *(() if self._running is None else (self._running,))]
        for file, expected in enumerate(self._expected):
            if file < len(known) and known[file].size >= expected.size:  # compared when it was read
                continue
            if is_stream(self._names[file]):
                raise change_error(self._names[file], expected.size, expected.size)
            check_beginning(self._names[file], expected)

    def contents(self) -> list[Content]:
        """End the pass; returns all contents. `DataError` if a file changed while it was read."""
        self._end()
        for file, (name, content) in enumerate(zip(self._names, self._done, strict=True)):
            changed = False
            if is_remote(name):
                changed = self._remote.get(file) not in (None, remote_content(name))
            elif is_local(name) and (self._stamps[file] is None or self._stamps[file] != stamp(name)):
                # it may have grown since it was read: compare only the part that was read
                changed = hash_file(name, content.size if self._in_order else None) != content
            if changed:
                raise DataError(f"{name}: changed while it was read")
        return self._done

    def hashed(self) -> dict[int, Content]:
        """The contents by which a cache may be named, by file; remote files only if they are identified."""
        found = {file: self._remote.get(file, content) for file, content in enumerate(self._done)}
        found |= {file: total.content() for file, total in self._hashes.items()}
        return {file: content for file, content in found.items() if content is not None}
