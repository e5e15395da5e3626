"""TextSource: text files in any line format, as a Source."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from thresher.data.chunk import Chunk, Place
from thresher.data.errors import BadLine, DataError, OddFileError
from thresher.data.files.blocks import BLOCK_BYTES, Block, BlockReader, block_ends
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
from thresher.data.files.paths import called, is_stream, size_of
from thresher.data.files.remote import is_remote
from thresher.data.files.streams import OpenStreams
from thresher.data.formats.format_hints import looks_like, looks_to_a_model, without_format
from thresher.data.formats.row_groups import HashedNames
from thresher.data.labels import NAME_WORDS, Domain, domain_of, trained_on
from thresher.data.layout import SettledLayout
from thresher.data.report import Noticed, Report
from thresher.data.sources.quarantine import Quarantine, check_ours
from thresher.data.sources.reader import (
    FAIL,
    QUARANTINE,
    SKIP,
    Arenas,
    Parsed,
    Parser,
    Pipeline,
    Reading,
    default_threads,
)
from thresher.options.messages import as_shown, mention

if TYPE_CHECKING:
    from thresher.data.files.content_checks import Watches
    from thresher.data.sources.pieces import Readers, RemoteBlocks, Span

_CUT_OFF = "; this last line has no line end: was it cut off?"
Format = Callable[[SettledLayout, Reading], Any]
"""A function that makes the parser of a format."""


class OnError:
    """The parsed option ``fail``, ``skip`` or ``quarantine=FILE``; raises `DataError` for anything else."""

    def __init__(self, spec: str, names: Sequence[str]) -> None:
        if not isinstance(spec, str):
            raise DataError(f"{mention('on_error')} must be fail, skip or quarantine=FILE, not {spec!r}")
        self.kind, _, path = spec.partition("=")
        self.path = Path(path) if self.kind == QUARANTINE and path else None
        if spec not in (FAIL, SKIP) and self.path is None:
            raise DataError(f"{mention('on_error')} must be fail, skip or quarantine=FILE, not '{spec}'")
        self.check_spares(names)

    def check_spares(self, names: Sequence[str]) -> None:
        """Raise `DataError` if the quarantine file is one of the files `names`."""
        if self.path is not None:
            if any(_same_file(name, self.path) for name in names):
                raise DataError(f"{self.path}: the quarantine file is one of the data files")
            check_ours(self.path, resumed=True)


def _same_file(one: str, other: Path) -> bool:
    """Whether both are the same file; False if one does not exist."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and bool(value >= 1)


class ReadRows(NamedTuple):
    """Examples and the rows skipped among them."""

    chunk: Chunk
    gaps: Sequence[int]
    """for each skipped row, the number of examples before it in `chunk`"""
    ids: Sequence[str] | None
    """the ids of all these rows in order, if the source was opened with `ids`"""


class TextSource:
    """Text files as a `Source`; made by `open_source`."""

    layout: SettledLayout
    """how the bytes become features"""
    domain: Domain
    """which labels are allowed"""
    where: str
    """which rows of a table are read; empty: all"""
    block_bytes: int
    """bytes of text in a block"""
    chosen: tuple[str, ...] = ()
    """columns whose kind the user gives; set by `open_source`"""
    may_be_words = False
    """whether the first labels look like words; set by `open_source`"""
    weighed_beside = False
    """whether importances were given beside a table in memory"""
    keep_hash = False
    """whether to hash the files while they are read, so that `fingerprint` need not read them again"""
    counts_rows = False
    """whether the offset in a `Place` counts rows; otherwise it counts bytes"""
    of_a_model = False
    """whether its layout was settled by other data, such as those of a model; set by `open_source`"""
    unlabelled = False
    """whether labels of a table are ignored; set by `open_source`"""
    ids = ""
    """what identifies rows; set by `open_source`"""
    live = False
    """whether rows are wanted as soon as they have arrived; set by `open_source`"""
    marked = ""
    """a condition that rows in a group meet; see `mark`"""
    beforehand: Sequence[Noticed] = ()
    """what the first rows have shown of columns; set by `open_source`"""
    readers: Readers | None = None
    """what reads and parses blocks in other processes; None: threads of this one"""
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
        *,
        domain: str | Domain,
        on_error: str,
        threads: int | None,
        block_bytes: int = BLOCK_BYTES,
        streams: OpenStreams | None = None,
        where: str = "",
    ) -> None:
        if not (_is_count(block_bytes) and (threads is None or _is_count(threads))):
            raise DataError("threads and block_bytes must be whole numbers, 1 or more")
        self.domain = domain_of(domain).of_words(layout.classes)
        self.outputs = self.domain.width or 0
        """targets per example; 0 if an example has one label"""
        self.names = names
        self.on_error = OnError(on_error, names)
        self.rereadable = self._can_be_reread()
        self.total_bytes = self._size() if self.rereadable else None
        self.position_bytes = 0
        self.report = Report()
        labels = f"domain={str(self.domain)!r}"
        self.identity = f"{layout.as_dict()} {labels} on_error={self.on_error.kind} {block_bytes=} {where=}"
        """everything that determines the chunks, except the content of the files"""
        self.where = where
        self.namer: Any = None
        """a `Namer` that receives the names of features; with one, a single thread reads"""
        self.layout = layout
        self._format: Any = form
        self._streams = streams
        self.block_bytes = block_bytes
        self._threads = threads or default_threads()
        self._arenas, self._names = Arenas(self._threads + 4), HashedNames()
        self._started = self.finished = False
        """whether a whole pass has been made"""
        self._contents: dict[int, Content] = {}

    def mark(self, condition: str) -> None:
        """Group the rows that meet a condition, for which the format was opened; empty: no rows."""
        if condition:
            self.marked = condition
            self.identity += f" marked={condition}"

    @property
    def has_groups(self) -> bool:
        """Whether rows have groups."""
        return bool(self.marked or self.layout.grouped_by)

    def parser(self) -> Parser:
        """A parser of its blocks, for one thread."""
        reading = Reading(self.domain, self.on_error.kind, self._arenas, self.namer, self.ids)
        parser: Parser = self._format(self.layout, reading)
        return parser

    @property
    def content(self) -> list[Content]:
        """Content of each file, if hashed, in the longest pass so far; of all files after a whole pass."""
        return self._read.contents()

    def expect(self, content: Sequence[Content], whole: bool, now: bool = False) -> None:
        """Expect the `content` that an earlier run read: all files (`whole`), or their beginning.

        Other data raise `DataError` when they are read, or with `now` at once, if they can be reread.
        """
        self.keep_hash, self._read, self._read_all = True, ReadSoFar.of(content), whole
        for name, expected in zip(self.names, content, strict=False):
            if now and not is_stream(name):
                check_beginning(name, expected)

    def confirm(self) -> None:
        """During a pass, raise `DataError` unless all expected content is there."""
        if self._watched is not None:
            self._watched.confirm()

    def chunks(self, start: Place | None = None) -> Iterator[Chunk]:
        """One pass over all files, or over the rest from `start` on (set `report` to its state there first).

        Raises `DataError` in place of the chunk with the first bad line (with ``fail``), if a file cannot be
        read, and at the end if there was no example; with `keep_hash`, also if a file changes while it is
        read or since an earlier pass.
        """
        for rows in self.rows(start):
            if len(rows.chunk):
                yield rows.chunk

    def rows(self, start: Place | None = None) -> Iterator[ReadRows]:
        """The same, with the rows that are skipped."""
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
        self._watched = watches = self._watches() if self.keep_hash else None
        pipeline = self._pipeline(start, watches)
        try:
            yield from self._placed(pipeline, start or Place(0, 0, 0), quarantine)
            if watches is not None:
                self._read, self._read_all = ReadSoFar.of(watches.contents()), True
                self._contents = watches.hashed()
            self.finished = self.finished or start is None
        except OddFileError as error:
            if self.of_a_model and not self.layout.columns:
                raise DataError(without_format(error.args[0], self.layout.format)) from error
            raise
        finally:
            pipeline.close(patient=self.rereadable)
            if quarantine is not None:
                quarantine.close()
        if self.report.examples == 0:
            raise DataError(self._nothing())

    def _pipeline(self, start: Place | None, watches: Watches | None) -> Pipeline | RemoteBlocks:
        """What reads and parses the blocks of a pass."""
        words = self.domain.words
        alone = self.namer is not None or (words is not None and words.adds)
        if self.readers is not None and not alone:
            return self.readers.read(self, start or Place(0, 0, 0), watches)
        threads = 1 if alone else self._threads
        return Pipeline(self.blocks(start, watches), self.parser, threads, self.block_bytes, self.live)

    def _can_be_reread(self) -> bool:
        return not any(is_stream(name) for name in self.names)

    def _watches(self) -> Watches | None:
        """The object that hashes and checks the files of a pass."""
        from thresher.data.files.content_checks import Watches

        return Watches(self.names, self.content, self._read_all, self._in_order())

    def _in_order(self) -> bool:
        """Whether files are read from front to back, so that they can be hashed while they are read."""
        return self.readers is None

    def _size(self) -> int | None:
        sizes = [size_of(name) for name in self.names]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def blocks(self, start: Place | None, watches: Watches | None = None) -> Any:
        """A reader of the blocks of a pass."""
        return BlockReader(self.names, self.block_bytes, start, watches, streams=self._streams)

    def cuts(self, file: int, start: int) -> Iterator[int]:
        """Offsets after `start` at which blocks of a file begin; reading may begin there."""
        return block_ends(self.names[file], self.block_bytes, start)

    def _placed(
        self, pipeline: Pipeline | RemoteBlocks, start: Place, quarantine: Quarantine | None
    ) -> Iterator[ReadRows]:
        file, line = start.file, start.line
        for block, parsed in pipeline:
            if block.file != file:
                file, line = block.file, 0
            try:
                self._count(block, parsed, line)
            except DataError:
                if self.live:  # however a stream is cut, the rows before a bad one come first
                    count = len(parsed.chunk)
                    yield ReadRows(parsed.chunk, (), parsed.ids and parsed.ids[:count])
                raise
            if quarantine is not None and parsed.rejected:
                quarantine.write(parsed.rejected)
                self.report.quarantined_bytes += len(parsed.rejected)
            place, line = Place(file, block.offset, line), line + parsed.tally.lines + parsed.uncounted
            if len(parsed.chunk) or parsed.gaps:
                chunk = parsed.chunk.at(place, Place(file, block.end, line))
                yield ReadRows(self._grouped(chunk, parsed), parsed.gaps, parsed.ids)

    def _grouped(self, chunk: Chunk, parsed: Parsed) -> Chunk:
        """The chunk with the groups of its rows, if the layout names what they are grouped by."""
        if not self.has_groups or parsed.ids is None:
            return chunk
        skipped = {before + k for k, before in enumerate(parsed.gaps)}
        names = [name for row, name in enumerate(parsed.ids) if row not in skipped][: len(chunk)]
        none = {""} if self.marked else {"", *self.layout.missing}
        return replace(chunk, groups=self._names.hashes("" if one in none else one for one in names))

    def _count(self, block: Block | Span, parsed: Parsed, line: int) -> None:
        name = self.names[block.file]
        bad = [self._named(one)._replace(file=name, line=one.line + line) for one in parsed.bad]
        if bad and self.on_error.kind == FAIL:
            started = self.report.examples + parsed.tally.examples
            hint = _CUT_OFF if self._ends_in(block, parsed.bad[0]) else ""
            raise DataError((str(bad[0]) if started else self._hinted(bad[0])) + hint)
        self.report.add(*parsed.tally, bad)
        self.report.notice(
            Noticed(what, column, f"{name}:{line + at}" if at else name, kind)
            for what, column, at, kind in parsed.noticed
        )
        self.position_bytes = block.raw_position
        if block.so_far is not None and block.so_far.size > self._read.size:
            self._read = block.so_far

    def _named(self, bad: BadLine) -> BadLine:
        """The bad line; for a model, with the labels that it knows in place of the option to name words."""
        if not self.of_a_model or not bad.found.endswith(NAME_WORDS):
            return bad
        return bad._replace(found=bad.found.removesuffix(NAME_WORDS) + trained_on(self.domain))

    def _ends_in(self, block: Any, bad: BadLine) -> bool:
        """Whether the data end in a bad line of a block of text, which has no line end."""
        last = isinstance(block, Block) and block.file == len(self.names) - 1 and block.is_unfinished
        return last and int(np.count_nonzero(block.text[: block.size] == ord("\n"))) == bad.line

    def _nothing(self) -> str:
        where = called(self.names[0]) if len(self.names) == 1 else f"{len(self.names)} files"
        only_blank = 0 < self.report.lines == self.report.blank
        if self.layout.delimited_by and self.layout.header and only_blank:
            return f"{where}: no examples, only a header"
        counts = f"blank or comment lines: {self.report.blank}, bad lines: {self.report.skipped}"
        counts += f", the rest excluded by {mention(where=self.where)}" if self.where else ""
        first = f"; first: {self._hinted(self.report.first_bad[0])}" if self.report.first_bad else ""
        return f"{where}: no examples ({counts}){first}"

    def _hinted(self, bad: BadLine) -> str:
        """The message about the first bad line, with a hint if it looks like another format.

        A file with several columns gets no hint: then the format is right.
        """
        look = looks_to_a_model if self.of_a_model else looks_like
        hint = "" if len(self.layout.columns) > 1 else look(bad.raw, self.layout.format)
        words = trained_on(self.domain) if self.of_a_model else NAME_WORDS
        return f"{str(bad).removesuffix(as_shown(words))}; {hint}" if hint else str(bad)

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
