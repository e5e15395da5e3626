"""Hashing the files of a pass, and comparing them with what was read before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from thresher.data.errors import DataError
from thresher.data.files.content import (
    Content,
    ContentHash,
    ContentTable,
    ReadSoFar,
    changed,
    check_beginning,
    content_of,
    hash_file,
    remote_content,
    stamp,
)
from thresher.data.files.paths import is_stream
from thresher.data.files.remote import is_remote


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
        self._stamps: list[list[int] | None] = []
        self._done: list[Content] = []
        self._size = 0
        self._running: ContentHash | None = None
        self._remote: dict[int, Content | None] = {}
        self._hashes: dict[int, ContentHash] = {}
        self._confirmed = set[int]()

    def open(self, file: int) -> Callable[[memoryview], None] | None:
        """Begin a file; returns the function to pass its bytes to. Files skipped were read earlier."""
        self._end()
        while len(self._done) < file:
            self._known(len(self._done))
        name = self._names[file]
        remote = is_remote(name)
        if self._in_order or is_stream(name):
            if not remote:
                self._stamps.append(None if is_stream(name) else stamp(name))
                self._running = ContentHash()
                return self._see
            if remote_content(name) is None:
                self._hashes[file] = ContentHash()
        self._known(file)
        return self._hashes[file].update if file in self._hashes else None

    def _known(self, file: int) -> None:
        """Set the content of a file that is not hashed while it is read."""
        name = self._names[file]
        self._stamps.append(None if is_remote(name) else stamp(name))
        if is_remote(name):
            self._remote[file] = remote_content(name)
        content, expected = content_of(name), self._expected[file : file + 1]
        if expected and not self._whole and file == len(self._expected) - 1 and content != expected[0]:
            check_beginning(name, expected[0])  # only the beginning was read before
            self._expected = self._expected[:file]
        self._finish(content, True)

    def _see(self, view: memoryview) -> None:
        """Hash bytes of the current file; raises `DataError` as soon as they differ from what is expected."""
        assert self._running is not None
        file, total = len(self._done), self._running
        if file < len(self._expected) and file not in self._confirmed:
            expected = self._expected[file]
            missing = expected.size - total.size
            if missing <= len(view):
                total.update(view[:missing])
                if total.content() != expected:
                    raise changed(self._names[file], expected.size, expected.size)
                self._confirmed.add(file)
                view = view[missing:]
        total.update(view)

    def _end(self) -> None:
        """End the current file."""
        if self._running is not None:
            ended, self._running = self._running, None
            self._finish(
                ended.content(),
                self._whole or len(self._done) < len(self._expected) - 1,
            )

    def _finish(self, content: Content, whole: bool) -> None:
        """Set the content of a file; raises `DataError` if it differs, or (not `whole`) is too short."""
        file = len(self._done)
        self._done.append(content)
        self._size += content.size
        if file < len(self._expected):
            expected = self._expected[file]
            if content != expected if whole else content.size < expected.size:
                raise changed(self._names[file], content.size, expected.size)
            self._confirmed.add(file)

    def so_far(self) -> ReadSoFar:
        """The content read so far."""
        total = self._running
        partly = () if total is None else (total.content(),)
        return ReadSoFar(self._done, len(self._done), partly, self._size + (total.size if total else 0))

    def confirm(self) -> None:
        """Check the expected files not read so far; raises `DataError` if one has changed or is gone."""
        for file, expected in enumerate(self._expected):
            name = self._names[file]
            if file not in self._confirmed:
                if is_stream(name):
                    raise changed(name, expected.size, expected.size)
                check_beginning(name, expected)
                self._confirmed.add(file)

    def contents(self) -> list[Content]:
        """End the pass; returns all contents, which are remembered for other processes.

        Raises `DataError` if a file changed while it was read.
        """
        self._end()
        for file, (name, content) in enumerate(zip(self._names, self._done, strict=True)):
            self._check_steady(file, name, content)
        both = zip(self._names, self._stamps, self._done, strict=True)
        ContentTable().remember({name: (when, content) for name, when, content in both})
        return self._done

    def _check_steady(self, file: int, name: str, content: Content) -> None:
        if is_remote(name):
            if self._remote.get(file) not in (None, remote_content(name)):
                raise DataError(f"{name}: changed while it was read")
            return
        before = self._stamps[file]
        if is_stream(name) or (before is not None and before == stamp(name)):
            return
        # a file may have grown since it was read: compare only the part that was read
        in_order = self._in_order
        if hash_file(name, content.size if in_order else None) != content:
            raise DataError(f"{name}: changed while it was read")

    def hashed(self) -> dict[int, Content]:
        """The contents by which a cache may be named, by file; remote files only if they are identified."""
        remote = {file: content for file, content in self._remote.items() if content is not None}
        read = {file: total.content() for file, total in self._hashes.items()}
        own = {file: content for file, content in enumerate(self._done) if file not in self._remote}
        return own | remote | read
