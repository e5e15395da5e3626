"""Rows that parsers make of blocks, whether these are read from files or taken from a table in memory.

Rejected lines go to the quarantine file, byte for byte. It is appended to in place, not written as a whole:
the lines so far can be read after a run that failed.
"""

from __future__ import annotations

import errno
import os
import stat
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from thresher.data.chunk import StreamPosition
from thresher.data.errors import BadLine, DataError, system_errors
from thresher.data.files import content as contents
from thresher.data.files.blocks import BLOCK_BYTES, LINES, Block, BlockReader, block_ends
from thresher.data.files.paths import display_name, is_stream, size_of
from thresher.data.files.remote import is_remote
from thresher.data.files.streams import Previews
from thresher.data.formats import choosing
from thresher.data.formats.listing import FORMATS
from thresher.data.labels import NAME_WORDS, Domain, domain_of, trained_on
from thresher.data.layout import AnyLayout, Extension, SettledLayout, chosen_in
from thresher.data.report import MOST_LATE, NEW, Noticed, Report
from thresher.data.source import GroupHashes, Source
from thresher.data.sources import reader as reading
from thresher.options.messages import as_shown, mention

if TYPE_CHECKING:
    from thresher.data.sources.reader import Span


_MARK, _OURS = "user.thresher", b"rejected lines"
"""An extended attribute of quarantine files, so that no other file is ever overwritten."""


class Quarantine:
    """The file of rejected lines, written as their chunks are yielded."""

    def __init__(self, path: Path, keep: int | None) -> None:
        """Start an empty file, or continue after the first `keep` bytes that an interrupted pass wrote."""
        self._writing = f"{path}: cannot write the quarantine file"
        with system_errors(self._writing):
            check_ours(path, resumed=keep is not None)
            self._file: BinaryIO = open(path, "wb" if keep is None else "ab")  # noqa: SIM115
            with suppress(OSError, AttributeError):  # AttributeError: not on Linux
                os.setxattr(self._file.fileno(), _MARK, _OURS)
            if keep is not None:
                self._file.truncate(min(keep, os.fstat(self._file.fileno()).st_size))

    def write(self, rejected: bytes) -> None:
        """Append lines. Raises `DataError` if that fails."""
        with system_errors(self._writing):
            self._file.write(rejected)
            self._file.flush()

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
    try:
        ours = os.getxattr(path, _MARK) == _OURS
    except FileNotFoundError:  # removed meanwhile
        return
    except AttributeError:
        ours = resumed
    except OSError as error:
        ours = resumed and error.errno in (errno.ENOTSUP, errno.EPERM)
    if not ours:
        raise DataError(f"{path} exists and is not a quarantine file: name another file, or remove it")


_CUT_OFF = "; this last line has no line end: was it cut off?"
Format = Callable[[SettledLayout, reading.Reading], Any]
"""A function that makes the parser of a format."""


class OnError:
    """The parsed option ``fail``, ``skip`` or ``quarantine=FILE``; raises `DataError` for anything else."""

    def __init__(self, spec: object, names: Sequence[str]) -> None:
        self.kind, _, path = spec.partition("=") if isinstance(spec, str) else ("", "", "")
        self.path = Path(path) if self.kind == reading.QUARANTINE and path else None
        if self.path is None:
            if spec not in (reading.FAIL, reading.SKIP):
                raise DataError(f"{mention('on_error')} must be fail, skip or quarantine=FILE, not {spec!r}")
            return
        for name in names:
            with suppress(OSError):
                if os.path.samefile(name, self.path):
                    raise DataError(f"{self.path}: the quarantine file is one of the data files")
        check_ours(self.path, resumed=True)


class ParsedSource(Source):
    """Blocks that are read and parsed, as a `Source`; `blocks` says where they come from."""

    layout: SettledLayout
    nameable = True
    first_rows: Any = None
    """the first rows as a record batch; None if they do not come in batches, or were not looked at"""
    is_small = False
    """whether so few rows are read that threads would take longer to start"""
    _read = contents.NOTHING_READ
    """the content of the longest pass so far"""
    _watched: contents.Watches | None = None
    """the contents of the current pass"""

    def __init__(
        self,
        names: list[str],
        layout: SettledLayout,
        form: Format,
        given: AnyLayout | None,
        asked: reading.RowsAsked,
        *,
        domain: str | Domain = "binary",
        on_error: str = reading.FAIL,
        threads: int | None = None,
        block_bytes: int = BLOCK_BYTES,
        previews: Previews | None = None,
    ) -> None:
        """`layout` was settled from the one `given`, by these or by other data; `form` makes parsers.

        Other options are those of `open_source`.
        """
        counts: tuple[Any, ...] = block_bytes, 1 if threads is None else threads
        for count in counts:
            if not (isinstance(count, int | np.integer) and count >= 1):
                raise DataError("threads and block_bytes must be whole numbers, 1 or more")
        super().__init__(names)
        self.layout, self.where, self.marked = layout, asked.where, asked.marked
        self.domain = domain_of(domain).of_words(layout.classes)
        """which labels are allowed"""
        self.words = self.domain.words if self.domain.most else None
        self.on_error = OnError(on_error, names)
        self.may_be_words = any(one.words for one in getattr(form, "files", ()))
        """whether the first labels of a table look like words"""
        self.chosen = chosen_in(given)
        """columns whose kind the user gives"""
        self.of_a_model = isinstance(given, SettledLayout)
        """whether its layout was settled by other data, such as those of a model"""
        new = given.new(layout.columns) if isinstance(given, Extension) else []
        self.beforehand = [Noticed(NEW, name, names[0]) for name in new[:MOST_LATE]]
        """what the layout and the first rows have shown of columns"""
        self.ids, self.live, self.unlabelled = asked.ids, asked.live, asked.unlabelled
        self.block_bytes = block_bytes
        self.previews = previews or Previews()
        """the beginnings of its files"""
        self.has_cells = bool(layout.columns)
        self._form: Any = form
        self._threads = threads or reading.default_threads()
        self._arenas, self._known, self._started = reading.Arenas(self._threads + 4), GroupHashes(), False

    @abstractmethod
    def blocks(self, start: StreamPosition | None, watches: contents.Watches | None = None) -> Any:
        """A reader of the blocks of a pass, whose content goes to `watches`."""

    def parser(self) -> reading.Parser:
        """A parser of its blocks, for one thread."""
        how = reading.Reading(
            self.domain, self.on_error.kind, self._arenas, self.namer, self.ids, self.sliced
        )
        parser: reading.Parser = self._form(self.layout, how)
        return parser

    def rows(self, start: StreamPosition | None = None) -> Iterator[reading.Parsed]:
        """One pass over all files, or over the rest from `start` on (set `report` to its state there first).

        Raises `DataError` in place of the chunk with the first bad line (with ``fail``), if a file cannot be
        read, and at the end if there was no example; with `keep_hash`, also if a file changes while it is
        read or since an earlier pass.
        """
        if self._started and not self.rereadable:
            raise DataError("standard input or a pipe can be read only once")
        self._started = True
        if start is None:
            self.report = Report()
            self.report.notice(self.beforehand)
        quarantine = None
        if self.on_error.path is not None:
            kept = None if start is None else self.report.quarantined_bytes
            quarantine = Quarantine(self.on_error.path, kept)
        pipeline = self._pipeline(start)
        try:
            yield from self._read_blocks_from(pipeline, start or StreamPosition(0, 0, 0), quarantine)
        finally:
            pipeline.close(patient=self.rereadable)
            if quarantine is not None:
                quarantine.close()
        if self.report.examples == 0:
            raise DataError(self._nothing())

    def _pipeline(self, start: StreamPosition | None) -> Any:
        blocks = self.blocks(start, self._watched)
        threads = 0 if self.is_small else 1 if self._alone else self._threads
        return reading.Pipeline(blocks, self.parser, threads, self.block_bytes, self.live, self.finder)

    @property
    def _alone(self) -> bool:
        """Whether a single thread must parse: names and new words come in order."""
        words = self.domain.words
        return self.namer is not None or (words is not None and words.adds)

    def _read_blocks_from(
        self, pipeline: Any, start: StreamPosition, quarantine: Quarantine | None
    ) -> Iterator[reading.Parsed]:
        file, line = start.file, start.line
        for block, parsed in pipeline:
            if block.file != file:
                file, line = block.file, 0
            try:
                self._count(block, parsed, line)
            except DataError:
                if self.live:  # however a stream is cut, the rows before a bad one come first
                    count = len(parsed.chunk)
                    ids = parsed.ids and parsed.ids[:count]
                    yield parsed._replace(chunk=parsed.with_cells(parsed.chunk), gaps=(), ids=ids)
                raise
            if quarantine is not None and parsed.rejected:
                quarantine.write(parsed.rejected)
                self.report.quarantined_bytes += len(parsed.rejected)
            place = StreamPosition(file, block.offset, line)
            line += parsed.tally.lines + parsed.excluded
            if len(parsed.chunk) or parsed.gaps:
                chunk = parsed.chunk.at(place, StreamPosition(file, block.end, line))
                if parsed.ids is not None and (self.marked or self.layout.grouped_by):
                    none = {""} if self.marked else {"", *self.layout.missing}
                    names = ["" if one in none else one for one in parsed.of_examples(parsed.ids)]
                    chunk = replace(chunk, groups=np.array([self._known[one] for one in names], np.uint64))
                yield parsed._replace(chunk=parsed.with_cells(chunk))

    def _count(self, block: Block | Span, parsed: reading.Parsed, line: int) -> None:
        name = self.names[block.file]
        bad = [one._replace(file=name, line=one.line + line) for one in parsed.bad]
        if isinstance(block, Block) and block.places is not None:
            bad = [one.at(*block.places.of(one.line)) for one in bad]
        if self.of_a_model:  # say which labels it knows, in place of the option to name words
            known = trained_on(self.domain)
            bad = [one._replace(found=one.found.replace(NAME_WORDS, known)) for one in bad]
        if bad and self.on_error.kind == reading.FAIL:
            started = self.report.examples + parsed.tally.examples
            hint = ""
            if isinstance(block, Block) and block.kind == LINES and block.file == len(self.names) - 1:
                lines = int(np.count_nonzero(block.text[: block.size] == ord("\n")))
                ended = block.size == block.end - block.offset  # else a line end was added to the last line
                hint = "" if ended or lines != parsed.bad[0].line else _CUT_OFF
            raise DataError((str(bad[0]) if started else self._add_hint(bad[0])) + hint)
        self.report.add(*parsed.tally, bad=bad)
        self.report.notice(
            Noticed(what, column, f"{name}:{line + at}" if at else name, kind)
            for what, column, at, kind in parsed.noticed
        )
        self.position_bytes = block.raw_position
        if block.so_far is not None and block.so_far.size > self._read.size:
            self._read = block.so_far

    def _nothing(self) -> str:
        where = display_name(self.names[0]) if len(self.names) == 1 else f"{len(self.names)} files"
        only_blank = 0 < self.report.lines == self.report.blank
        if self.layout.delimited_by and self.layout.header and only_blank and not self.where:
            return f"{where}: no examples, only a header"
        counts = f"blank or comment lines: {self.report.blank}, bad lines: {self.report.skipped}"
        counts += f", the rest excluded by {mention('where')} {self.where}" if self.where else ""
        first = f"; first: {self._add_hint(self.report.first_bad[0])}" if self.report.first_bad else ""
        never = "".join(f"; no row has a value in column {one.column}" for one in self.report.never_met(True))
        return f"{where}: no examples ({counts}){never}{first}"

    def _add_hint(self, bad: BadLine) -> str:
        """The message about the first bad line, with a hint if it looks like another format.

        A file in which columns were found gets none: its format is right.
        """
        form = self.layout.format
        sure = not form or FORMATS[form].batches or (len(self.layout.columns) > 1 and not self.of_a_model)
        hint = "" if sure else choosing.hint(bad.raw, form, self.of_a_model)
        words = trained_on(self.domain) if self.of_a_model else NAME_WORDS
        return f"{str(bad).removesuffix(as_shown(words))}; {hint}" if hint else str(bad)


class TextSource(ParsedSource):
    """Text files as a `Source`; made by `open_source`."""

    counts_rows = False
    """whether the offset in a `StreamPosition` counts rows; otherwise it counts bytes"""
    finished = False
    """whether a whole pass has been made"""
    _read_all = False
    """whether `_read` covers all files"""

    def __init__(self, names: list[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(names, *args, **kwargs)
        self.readers = reading.current_readers.get()
        """what reads and parses blocks in other processes; None: threads of this one"""
        self.rereadable = not any(is_stream(name) for name in names)
        sizes = [size_of(name) for name in names] if self.rereadable else [None]
        self.total_bytes = None if None in sizes else sum(size or 0 for size in sizes)
        self._contents: dict[int, contents.Content] = {}

    @property
    def origin(self) -> TextSource:
        """These files."""
        return self

    @property
    def identity(self) -> str:
        """Everything that determines the chunks, except the content of the files."""
        given = f"domain={self.domain.name!r} on_error={self.on_error.kind} block_bytes={self.block_bytes}"
        found = f"{self.layout.as_dict()} {given} where={self.where!r}"
        return f"{found} marked={self.marked}" if self.marked else found

    @property
    def content(self) -> list[contents.Content]:
        """Content of each file, if hashed, in the longest pass so far; of all files after a whole pass."""
        return self._read.contents()

    def expect(self, content: Sequence[contents.Content], whole: bool, now: bool = False) -> None:
        """Expect the `content` that an earlier run read: all files (`whole`), or their beginning."""
        self.keep_hash, self._read, self._read_all = True, contents.ReadSoFar.of(content), whole
        for name, expected in zip(self.names, content, strict=False):
            if now and not is_stream(name):
                contents.check_beginning(name, expected)

    def confirm(self) -> None:
        """During a pass, raise `DataError` unless all expected content is there."""
        if self._watched is not None:
            self._watched.confirm()

    def rows(self, start: StreamPosition | None = None) -> Iterator[reading.Parsed]:
        """Examples and skipped rows; content is recorded or compared with `keep_hash`."""
        watches = None
        if self.keep_hash:
            watches = contents.Watches(self.names, self.content, self._read_all, self._in_order())
        self._watched = watches
        yield from super().rows(start)
        if watches is not None:
            self._read, self._read_all = contents.ReadSoFar.of(watches.contents()), True
            self._contents = watches.hashed()
        self.finished = self.finished or start is None

    def _pipeline(self, start: StreamPosition | None) -> Any:
        if self.readers is not None and not self._alone:
            return self.readers.read(self, start or StreamPosition(0, 0, 0), self._watched)
        return super()._pipeline(start)

    def _in_order(self) -> bool:
        """Whether files are read from front to back, so that they can be hashed while they are read."""
        return self.readers is None

    def blocks(self, start: StreamPosition | None, watches: contents.Watches | None = None) -> Any:
        """A reader of the blocks of a pass."""
        return BlockReader(self.names, self.block_bytes, start, watches, self.previews.opened)

    def cuts(self, file: int, start: int) -> Iterator[int]:
        """Offsets after `start` at which blocks of a file begin; reading may begin there."""
        return block_ends(self.names[file], self.block_bytes, start)

    def fingerprint(self) -> str:
        """A string that identifies the content of all files, in order; hashes files not hashed yet.

        For standard input or a pipe, raises `DataError` until it has been read to its end with `keep_hash`.
        """
        for k, name in enumerate(self.names):
            if k not in self._contents:
                if is_stream(name):
                    raise DataError("standard input or a pipe has no fingerprint before it has been read")
                self._contents[k] = contents.remote_content(name) or contents.hash_file(name)
        known = (self._contents[k] for k in range(len(self.names)))
        return "-".join(f"{content.hash:016x}.{content.size:x}" for content in known)

    def known(self) -> list[contents.Content]:
        """The contents of all files; remote files as in `remote_content`."""
        self.fingerprint()
        return [
            contents.content_of(name) if is_remote(name) else self._contents[k]
            for k, name in enumerate(self.names)
        ]
