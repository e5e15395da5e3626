"""Splitting streams into blocks of whole lines, always at the same places.

A block of 4 MiB is the text that one thread reads and parses at a time; 2^19 non-zeros are the rows of one
call of `learn`. With smaller ones (2 MiB, 2^17), the additional calls cost more than better caching saved:
reading 905 MB took 0.50 s instead of 0.46, a pass from the cache 0.33 s instead of 0.28. A slow stream is
learned one block at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import StreamPosition
from thresher.data.errors import DataError, OddFileError
from thresher.data.files.paths import begins_a_model, binary_kind, display_name, is_local, name_errors
from thresher.data.files.streams import OpenStreams, RawFile, Stream, compression_of, open_stream
from thresher.data.files.topics import is_topic

if TYPE_CHECKING:
    from thresher.data.files.content import ReadSoFar, Watches
    from thresher.data.files.topic_lines import Places

PAD = 64
"""Spare bytes after the text of a block, for parsers that read whole words."""
BLOCK_BYTES = 4 << 20
CROSSED_BYTES = 1 << 18
"""Block size with interactions, which make rows longer."""
LONGEST_LINE = 64 << 20
MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8. It may begin a file, but is not part of its text."""
_SEARCH, _PIECE = 1 << 14, 1 << 20
"""Bytes that are searched for a line end, at first and then at a time"""
_MOMENT = 0.001
"""Seconds between two looks at whether a pausing stream is waited for"""
_PROBE = 1 << 16
_START = 512
_CONTROLS = 8
_PLAIN = bytes(range(32, 127)) + b"\t\n\v\f\r"
_NO_CONTROLS = _PLAIN + bytes(range(128, 256))
_BEGINS_TEXT = _PLAIN + bytes(range(0xC2, 0xF5))

LINES, LONG_HEAD, LONG_TAIL = 0, 1, 2
"""What a block holds: whole lines, the beginning of a line that is too long, or more of that line."""


class TextBuffer:
    """Reusable memory for the text of one block; grows if a line needs it."""

    def __init__(self, size: int) -> None:
        self.array: NDArray[np.uint8] = np.empty(size + PAD, np.uint8)
        self.view = self.array.data

    def grow(self, size: int, keep: int) -> None:
        """Make room for `size` bytes and the padding; the first `keep` bytes are kept."""
        if len(self.array) < size + PAD:
            wider = TextBuffer(size)
            wider.array[:keep] = self.array[:keep]
            self.array, self.view = wider.array, wider.view


class Block(NamedTuple):
    """A piece of a file: ``text[:size]`` (uint8, padded by `PAD`), whole lines or part of a long one."""

    text: NDArray[np.uint8]
    size: int
    kind: int
    file: int
    offset: int
    """offset of its first byte in the uncompressed file"""
    end: int
    """offset of the byte after it"""
    raw_position: int
    """bytes of all files (as stored) read so far"""
    so_far: ReadSoFar | None = None
    """content read up to the end of this block, if the content of the pass is hashed"""
    places: Places | None = None
    """where the lines of a topic come from"""

    @property
    def begin(self) -> int:
        """Where its first line begins: after the byte order mark, if there is one."""
        marked = self.offset == 0 and self.text[: len(MARK)].tobytes() == MARK
        return len(MARK) if marked else 0


def check_is_text(head: bytes, name: str) -> None:
    """Raise `DataError` if a file that begins with `head` is a model, another binary file, or of no lines.

    A file is binary if its first 64 KB contain a NUL, and either its first byte cannot begin text (a control
    character, or not the first byte of a UTF-8 character) or its first 512 bytes contain eight control
    characters other than tabs and line ends. Other files with a NUL, and topics, are text with bad lines.
    """
    if is_topic(name):
        return
    head = head[:_PROBE]
    if begins_a_model(head):
        raise DataError(f"{display_name(name)}: a model of thresher, not data")
    if b"\0" not in head:
        if b"\r" in head[:-1] and b"\n" not in head:
            raise OddFileError(f"{display_name(name)}: lines end with \\r alone: write \\n (tr '\\r' '\\n')")
        return
    controls = len(head[:_START].translate(None, _NO_CONTROLS))
    if head[0] not in _BEGINS_TEXT or controls >= _CONTROLS:
        kind = binary_kind(head) or "supported compression: gzip, bz2, xz, zstd"
        raise OddFileError(f"{display_name(name)}: a binary file, not text ({kind})")


class BlockReader:
    """Splits files into blocks, one after the other.

    The buffer is filled to `block_bytes` or to the end of the file, and cut after the last newline; the rest
    begins the next block. If it has no newline, it is filled to twice the size, and so on up to
    `LONGEST_LINE`. So the cuts depend only on the content, unless `fill` is asked for rows as they come. A
    missing newline at the end of a file is added. Not safe for use by two threads at once.
    """

    def __init__(
        self,
        names: Sequence[str],
        block_bytes: int = BLOCK_BYTES,
        start: StreamPosition | None = None,
        watches: Watches | None = None,
        streams: OpenStreams | None = None,
        longest: int = LONGEST_LINE,
    ) -> None:
        self._names, self._block_bytes, self._longest = names, block_bytes, max(longest, block_bytes)
        self._watches, self._streams = watches, streams or {}
        self._file, self._start = (start.file, start.offset) if start else (0, 0)
        self._offset = self._done_bytes = 0
        self._raw: RawFile | None = None
        self._stream: Stream | None = None
        self._carry = b""
        self._in_long = False

    def fill(self, buffer: TextBuffer, busy: Callable[[], bool] | None = None) -> Block | None:
        """The next block, read into `buffer`; None after the last. Raises `DataError` for a bad file.

        With `busy`, it also ends, after whole lines, where a stream pauses, unless `busy` says that what uses
        the blocks has enough to do.
        """
        while self._file < len(self._names):
            with name_errors(self._names[self._file]):
                if self._stream is None:
                    name = self._names[self._file]
                    watch = self._watches.open(self._file) if self._watches else None
                    self._raw = RawFile(name, watch, self._streams.get(name))
                    self._stream = open_stream(self._raw)
                    self._offset, start, self._start = 0, self._start, 0
                    if self._stream is self._raw and watch is None and self._raw.jump(start):
                        self._offset = start
                    # up to the start in the same blocks as before, so that those after it are the same too
                    while self._offset < start:
                        if self._fill(buffer) is None:
                            raise EOFError("the file is shorter than before")
                    if self._offset > start:
                        changed = f"changed since it was first read (no line begins at byte {start:,})"
                        raise DataError(f"{name}: {changed}")
                block = self._fill(buffer, busy)
            if block is not None:
                return block
            self._done_bytes += self._raw.position if self._raw else 0
            self.close()
            self._carry, self._in_long = b"", False
            self._file += 1
        return None

    def stop(self) -> None:
        """Let a `fill` that waits for a topic end; called in another thread."""
        if self._raw is not None and self._raw.topic is not None:
            self._raw.topic.stop()

    def close(self) -> None:
        """Close the open file; `fill` must not be running."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _read(self, view: memoryview, busy: Callable[[], bool] | None) -> tuple[int, bool]:
        """Fill `view`, or with `busy` up to a pause; the bytes read, and whether the file has ended."""
        assert self._stream is not None
        assert self._raw is not None
        size = 0
        while size < len(view):
            got = self._stream.readinto(view[size:])
            if got == 0:
                return size, True
            size += got
            while busy is not None and not self._raw.is_ready(_MOMENT if busy() else 0):
                if not busy():  # there is nothing to read and nothing to do
                    return size, False
        return size, False

    def _fill(self, buffer: TextBuffer, busy: Callable[[], bool] | None = None) -> Block | None:
        size = len(self._carry)
        goal = max(self._block_bytes, size)
        buffer.grow(goal, 0)
        buffer.view[:size] = self._carry
        searched = 0
        while True:
            got, ended = self._read(buffer.view[size:goal], busy)
            size += got
            if self._in_long:
                found = bytes(buffer.view[searched:size]).find(b"\n") + 1
                cut = searched + found if found else 0
            else:
                cut = last_line_end(searched, size, lambda begin, end: bytes(buffer.view[begin:end]))
            full = size == goal
            if self._offset == 0 and (cut or full or ended):
                head = bytes(buffer.view[: min(size, _PROBE)])
                name = self._names[self._file]
                if not head:
                    raise DataError(f"{display_name(name)}: empty, no examples")
                check_is_text(head, name)
            if ended or cut or (full and (goal >= self._longest or self._in_long)):
                break
            searched = size
            if full:
                goal = min(2 * goal, self._longest)
                buffer.grow(goal, size)
        if ended and not self._in_long:
            if not size:
                return None
            cut = size
        kind = LONG_TAIL if self._in_long else LINES if cut else LONG_HEAD
        self._in_long = not (cut or ended)
        used = whole = cut or size
        self._carry = bytes(buffer.view[used:size])
        if ended and used == size and (size == 0 or buffer.array[size - 1] != ord("\n")):
            buffer.array[size] = ord("\n")
            whole += 1
        offset, self._offset = self._offset, self._offset + used
        assert self._raw is not None
        position = self._done_bytes + self._raw.position
        so_far = self._watches.so_far() if self._watches else None
        places = self._raw.topic.places if self._raw.topic else None
        return Block(buffer.array, whole, kind, self._file, offset, self._offset, position, so_far, places)


def last_line_end(begin: int, end: int, read: Callable[[int, int], bytes]) -> int:
    """The byte after the last newline from `begin` to `end`, which `read` gives; 0 without any."""
    size = _SEARCH
    while begin < end:
        first = max(end - size, begin)
        if found := read(first, end).rfind(b"\n") + 1:
            return first + found
        end, size = first, _PIECE
    return 0


def block_ends(name: str, block_bytes: int, start: int) -> Iterator[int]:
    """Where the blocks of a file end, from the block at `start` on, except the last.

    Only the ends of the blocks are read. Yields nothing for a file that can only be read from its beginning
    (compressed, remote, or a pipe), and stops before a line that is longer than a block.
    """
    with name_errors(name):
        if not is_local(name):
            return
        with closing(RawFile(name)) as raw:
            size = 0 if compression_of(raw.head) else os.path.getsize(name)
            while start + block_bytes <= size:
                limit = start + block_bytes
                end = last_line_end(start, limit, lambda at, to: raw.read(to - at) if raw.jump(at) else b"")
                if not start < end < size:
                    return
                yield end
                start = end
