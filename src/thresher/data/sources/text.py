"""TextSource: text files in any line format, as a Source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from thresher.data.chunk import Place
from thresher.data.errors import DataError
from thresher.data.files.blocks import Block, BlockReader, block_ends
from thresher.data.files.content import (
    NOTHING_READ,
    Content,
    ContentTable,
    ReadSoFar,
    check_beginning,
    content_of,
    hash_file,
    stamp,
)
from thresher.data.files.paths import is_stream, size_of
from thresher.data.files.remote import is_remote
from thresher.data.files.streams import OpenStreams
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.data.source import ReadRows
from thresher.data.sources.parsed import Format, ParsedSource
from thresher.data.sources.reader import Parsed, Pipeline

if TYPE_CHECKING:
    from thresher.data.files.content_checks import Watches
    from thresher.data.sources.pieces import Readers, RemoteBlocks, Span


class TextSource(ParsedSource):
    """Text files as a `Source`; made by `open_source`."""

    counts_rows = False
    """whether the offset in a `Place` counts rows; otherwise it counts bytes"""
    finished = False
    """whether a whole pass has been made"""
    _read = NOTHING_READ
    _read_all = False
    """whether `_read` covers all files"""
    _watched: Watches | None = None
    """the contents of the current pass"""

    def __init__(
        self,
        names: list[str],
        layout: SettledLayout,
        form: Format,
        given: AnyLayout | None,
        *,
        streams: OpenStreams,
        readers: Readers | None,
        **options: Any,
    ) -> None:
        super().__init__(names, layout, form, given, **options)
        self.readers = readers
        """what reads and parses blocks in other processes; None: threads of this one"""
        self.rereadable = not any(is_stream(name) for name in names)
        sizes = [size_of(name) for name in names] if self.rereadable else [None]
        self.total_bytes = None if None in sizes else sum(size or 0 for size in sizes)
        self._streams = streams
        self._contents: dict[int, Content] = {}

    @property
    def origin(self) -> TextSource:
        """These files."""
        return self

    @property
    def identity(self) -> str:
        """Everything that determines the chunks, except the content of the files."""
        given = f"domain={str(self.domain)!r} on_error={self.on_error.kind} block_bytes={self.block_bytes}"
        found = f"{self.layout.as_dict()} {given} where={self.where!r}"
        return f"{found} marked={self.marked}" if self.marked else found

    @property
    def content(self) -> list[Content]:
        """Content of each file, if hashed, in the longest pass so far; of all files after a whole pass."""
        return self._read.contents()

    def expect(self, content: Sequence[Content], whole: bool, now: bool = False) -> None:
        """Expect the `content` that an earlier run read: all files (`whole`), or their beginning."""
        self.keep_hash, self._read, self._read_all = True, ReadSoFar.of(content), whole
        for name, expected in zip(self.names, content, strict=False):
            if now and not is_stream(name):
                check_beginning(name, expected)

    def confirm(self) -> None:
        """During a pass, raise `DataError` unless all expected content is there."""
        if self._watched is not None:
            self._watched.confirm()

    def rows(self, start: Place | None = None) -> Iterator[ReadRows]:
        """Examples and skipped rows; content is recorded or compared with `keep_hash`."""
        self._watched = watches = self._watches() if self.keep_hash else None
        yield from super().rows(start)
        if watches is not None:
            self._read, self._read_all = ReadSoFar.of(watches.contents()), True
            self._contents = watches.hashed()
        self.finished = self.finished or start is None

    def _pipeline(self, start: Place | None) -> Pipeline | RemoteBlocks:
        if self.readers is not None and not self._alone:
            return self.readers.read(self, start or Place(0, 0, 0), self._watched)
        return self._here(self.blocks(start, self._watched))

    def _watches(self) -> Watches:
        """The object that hashes and checks the files of a pass."""
        from thresher.data.files.content_checks import Watches

        return Watches(self.names, self.content, self._read_all, self._in_order())

    def _in_order(self) -> bool:
        """Whether files are read from front to back, so that they can be hashed while they are read."""
        return self.readers is None

    def _count(self, block: Block | Span, parsed: Parsed, line: int) -> None:
        super()._count(block, parsed, line)
        if block.so_far is not None and block.so_far.size > self._read.size:
            self._read = block.so_far

    def blocks(self, start: Place | None, watches: Watches | None = None) -> Any:
        """A reader of the blocks of a pass."""
        return BlockReader(self.names, self.block_bytes, start, watches, streams=self._streams)

    def cuts(self, file: int, start: int) -> Iterator[int]:
        """Offsets after `start` at which blocks of a file begin; reading may begin there."""
        return block_ends(self.names[file], self.block_bytes, start)

    def fingerprint(self) -> str:
        """A string that identifies the content of all files, in order; hashes files not hashed yet.

        For standard input or a pipe, raises `DataError` until it has been read to its end with `keep_hash`.
        """
        table = ContentTable()
        contents, fresh = [], {}
        for k, name in enumerate(self.names):
            found = self._contents.get(k)
            if found is None and is_stream(name):
                raise DataError("standard input or a pipe has no fingerprint before it has been read")
            found = found or table.look_up(name)
            if found is None:
                before = stamp(name)
                found = hash_file(name)
                fresh[name] = (before, found)
            self._contents[k] = found
            contents.append(found)
        if fresh:
            table.remember(fresh)
        return "-".join(f"{content.hash:016x}.{content.size:x}" for content in contents)

    def known(self) -> list[Content]:
        """The contents of all files; remote files as in `remote_content`."""
        self.fingerprint()
        return [
            content_of(name) if is_remote(name) else self._contents[k] for k, name in enumerate(self.names)
        ]
