"""Files and standard input as streams of uncompressed bytes; compression is detected by content."""

from __future__ import annotations

import bz2
import fcntl
import io
import lzma
import os
import select
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from isal import isal_zlib

from thresher.data.files.paths import STDIN, is_stream, name_errors, open_file
from thresher.data.files.topics import is_topic

if TYPE_CHECKING:
    from thresher.data.files.topic_lines import TopicFile

_PIECE = 1 << 18
_PIPE = 1 << 20
"""Bytes that a pipe may hold, the most that Linux allows to every user"""
LONGEST_HEAD = 32 << 20
"""Maximum bytes of the first line of a table: the header, or the first object"""
_XZ_MEMORY = 512 << 20
"""Memory limit for unpacking xz, as the file decides how much it needs: eight times that of ``xz -9``."""

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{b"%c\x2a\x4d\x18" % first: "zstd" for first in range(0x50, 0x60)},
}
_LONGEST_MAGIC = max(map(len, _MAGIC))


def compression_of(head: bytes) -> str | None:
    """The compression of a file that begins with `head`, or None."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def _is_open(head: bytes) -> bool:
    """Whether the compression of a file that begins with `head` depends on the bytes after it."""
    return any(len(head) < len(magic) and magic.startswith(head) for magic in _MAGIC)


class RawFile(io.RawIOBase):
    """The bytes of a file or of standard input as stored: counted, and passed to `watch` if given."""

    def __init__(
        self,
        name: str,
        watch: Callable[[memoryview], None] | None = None,
        started: tuple[Any, bytes] | None = None,
    ) -> None:
        """`started`: for a file that can be read only once, the open file and the bytes already read."""
        super().__init__()
        self.position, self._watch, self._owned = 0, watch, name != STDIN
        self._file, head = started or (open_file(name), b"")
        if started is None and name == STDIN and hasattr(self._file, "raw"):
            head = self._file.read1(len(self._file.peek()))
            self._file = self._file.raw  # its reads return as soon as there is something
        self.topic: TopicFile | None = self._file if is_topic(name) else None
        self._size = self._stored()
        # no further: more may not come before what has come is answered
        while _is_open(head) and (more := self._file.read(_LONGEST_MAGIC - len(head))):
            head += more
        self.head = self._kept = head

    def _stored(self) -> int | None:
        """Current length of the file; None if it is not a regular local file."""
        try:
            status = os.fstat(self._file.fileno())
        except (OSError, AttributeError, ValueError):
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def release(self) -> Any:
        """The open file, which will not be closed with this object."""
        self._owned = False
        return self._file

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into `buffer` with one system call; returns 0 at the end."""
        view = memoryview(buffer).cast("B")
        count = min(len(self._kept), len(view))
        if count:
            view[:count] = self._kept[:count]
            self._kept = self._kept[count:]
        else:
            count = self._file.readinto(view) or 0
            if not count and self._size is not None and len(view) and (self._stored() or 0) < self._size:
                raise EOFError(f"it was cut off at byte {self.position:,} while it was read")
        if self._watch is not None:
            self._watch(view[:count])
        self.position += count
        return count

    def is_ready(self, patience: float) -> bool:
        """Whether bytes, or the end, come within `patience` seconds; True for anything but a stream."""
        if self._kept or self._size is not None:
            return True
        return self._poll is None or bool(self._poll.poll(1000 * patience))

    @cached_property
    def _poll(self) -> Any:
        """What asks the system whether the file is ready; None if it cannot.

        It pays to ask rarely, so a pipe is made longer.
        """
        try:
            poll = select.poll()
            poll.register(self._file.fileno(), select.POLLIN)
        except (OSError, AttributeError, ValueError):
            return None
        with suppress(OSError, AttributeError):  # only Linux can; a socket or terminal has no size
            if fcntl.fcntl(self._file.fileno(), fcntl.F_GETPIPE_SZ) < _PIPE:
                fcntl.fcntl(self._file.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)
        return poll

    def jump(self, offset: int) -> bool:
        """Continue at byte `offset` of the file, if it can skip bytes; whether it can."""
        if not (self._owned and self._file.seekable()):
            return False
        self._file.seek(offset)
        self._kept, self.position = b"", offset
        return True

    def close(self) -> None:
        """Close the file, unless it is standard input or was released."""
        if self._owned:
            self._file.close()
        super().close()


class Inflated:
    """A stream decompressed by a decoder with bounded output: gzip, bz2 or xz, with any number of members."""

    def __init__(self, raw: RawFile, kind: str) -> None:
        self._raw, self._kind, self._input = raw, kind, b""
        self._decoder: Any = _decoder(kind)

    def readinto(self, buffer: memoryview) -> int:
        """Read into the beginning of `buffer`; returns at least one byte, or 0 at the end."""
        while True:
            if self._decoder.eof:  # the next member, or padding with zeros
                rest = self._decoder.unused_data.lstrip(b"\0")
                while _is_open(rest) and (more := self._raw.read(_PIECE)):
                    rest = (rest + more).lstrip(b"\0")
                if not rest:
                    return 0
                if compression_of(rest) != self._kind:
                    raise ValueError("unexpected bytes after the compressed data")
                self._decoder, self._input = _decoder(self._kind), rest
            ended = False
            if not self._input and getattr(self._decoder, "needs_input", True):
                self._input = self._raw.read(_PIECE)
                ended = not self._input
            output = self._decoder.decompress(self._input, len(buffer))
            self._input = getattr(self._decoder, "unconsumed_tail", b"")
            if output:
                buffer[: len(output)] = output
                return len(output)
            if ended and not self._decoder.eof:
                raise EOFError("unexpected end of the file")

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


Stream = RawFile | Inflated
"""A stream of uncompressed bytes"""


def _decoder(kind: str) -> object:
    if kind == "gzip":
        return isal_zlib.decompressobj(wbits=31)
    return bz2.BZ2Decompressor() if kind == "bz2" else lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)


def open_stream(raw: RawFile) -> Stream:
    """The uncompressed bytes of `raw`; a topic is never compressed, whatever its first line begins with."""
    kind = None if raw.topic else compression_of(raw.head)
    if kind is None:
        return raw
    if kind != "zstd":
        return Inflated(raw, kind)
    import pyarrow as pa  # only here: importing it takes time

    stream: Stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    return stream


HEAD = 1 << 20
"""Bytes of text that are looked at before a file is read"""
_KEPT = 10
"""Beginnings of files that are kept, which is as many as are looked at again"""
OpenStreams = dict[str, tuple[Any, bytes]]
"""Files that can be read only once and have been opened: the open file and the bytes already read"""


@dataclass
class Previews:
    """The beginnings of files, as text or as a table: each is read once, by whoever looks at it first.

    What was read of a file that can be read only once is given to its reader.
    """

    opened: OpenStreams = field(default_factory=dict)
    seen: dict[tuple[str, str], Any] = field(default_factory=dict)
    """what was found, by what was looked for and file"""

    def once(self, what: str, name: str, look: Callable[[OpenStreams], Any]) -> Any:
        """What `look` has found in a file, or finds now."""
        if (found := self.seen.get((what, name))) is None:
            found = look(self.opened)
            if len(self.seen) < _KEPT or name in self.opened:
                self.seen[what, name] = found
        return found

    def text(self, name: str, first: Callable[[bytes], int] | None = None) -> bytes:
        """The beginning of a file of text, as `head_of` reads it."""
        text: bytes = self.once("text", name, lambda opened: head_of(name, HEAD, opened, first))
        return text


def head_of(name: str, size: int, streams: OpenStreams, first: Callable[[bytes], int] | None = None) -> bytes:
    """At least `size` bytes from the start of the uncompressed file, and its first line up to `LONGEST_HEAD`.

    With `first`, only the first row, and nothing after it is waited for: `first` returns the length of these
    bytes up to its end, 0 if it goes on. A file that can be read only once is stored in `streams`, to be read
    on. Raises `DataError` if the file cannot be read.
    """
    once, seen = is_stream(name), list[bytes]()
    with name_errors(name):
        raw = RawFile(name, (lambda view: seen.append(bytes(view))) if once else None)
        with closing(open_stream(raw)) as stream:
            head, end = bytearray(), 0
            while not end and (
                len(head) < size or (len(head) < LONGEST_HEAD and b"\n" not in head.lstrip(b"\r\n"))
            ):
                piece = bytearray(max(size, len(head)))
                got = stream.readinto(memoryview(piece))
                if got == 0:
                    break
                head += piece[:got]
                if first is not None and b"\n" in piece[:got]:
                    end = first(bytes(head))
            if once:
                streams[name] = (raw.release(), b"".join(seen))
    return bytes(head[: end or len(head)])
