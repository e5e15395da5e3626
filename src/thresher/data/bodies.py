"""Rows that are in memory as bytes, such as bodies of requests: read as files with the same bytes are.

A parser is made for a layout and used for body after body; a CSV body has a header of its own, so there is
one for each header seen. A parser is used by one thread at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.columns import LABEL, check_once, identity
from thresher.data.errors import DataError, OddFileError, printable
from thresher.data.features.names import Namer, Names
from thresher.data.files.blocks import LINES, MARK, PAD, Block, check_is_text
from thresher.data.files.paths import binary_kind
from thresher.data.formats import listing
from thresher.data.formats.choosing import module_of
from thresher.data.formats.tables import delimited, jsonl
from thresher.data.formats.tables.arrow_batches import BatchParser, TableBlock, sound
from thresher.data.formats.tables.arrow_files import END_OF_STREAM, kinds_by
from thresher.data.labels import ADDING, LISTED, Domain, list_words
from thresher.data.layout import SettledLayout, has_columns
from thresher.data.opening import check_ids
from thresher.data.report import LATE
from thresher.data.sources.reader import SKIP, Arenas, Parsed, Parser, Reading
from thresher.options.messages import without_options

_NAME = "the body"
_EMPTY = f"{_NAME} is empty: there are no rows"
_NOT_LINES = (
    f"{_NAME} must have an object on each line: jq -c '.[]' makes lines of a list, jq -c . of longer objects"
)
_MOST_UNKNOWN = 10_000
"""Columns that the layout does not have, each of which costs some time and memory"""
_MOST_KINDS = 16
"""Kinds of parsers that are kept of a format"""
_CURL = "; curl -d removes line ends: use --data-binary"
MOST_LETTERS = 1000
"""Of an id, many of which are in memory"""
_AN_ID = f"an id: a text of 1 to {MOST_LETTERS:,} letters in valid Unicode, a number, true or false"
_NO_ID = re.compile(r"[\[{]|null|-?(?:nan|inf)", re.IGNORECASE)
"""How values begin that can be no ids, unless they are texts"""
Limit = tuple[NDArray[np.bool_], Iterable[str]]
"""Which rows are beyond a limit, and for each of these what was expected"""


class BinaryError(DataError):
    """Bytes that are no text."""


class TooLargeError(DataError):
    """More rows, columns or cells than are read at once."""


@dataclass(frozen=True)
class WrongRow:
    """A row that was not taken.

    Lines and columns count from 1; in an Arrow stream, the line is the number of the row.
    """

    line: int
    column: int
    error: str


class Rows(NamedTuple):
    """The rows of a body."""

    whole: Chunk
    """the good rows, and those of the other bodies that were read with this one"""
    first: int
    """where the rows of this body begin in `whole`"""
    last: int
    """where they end"""
    gaps: Sequence[int]
    """for each bad row, the number of good ones before it"""
    ids: Sequence[str] | None
    """the ids of all rows in order, good and bad, if they were asked for"""
    bad: list[WrongRow]
    """all bad rows in order"""
    unknown: tuple[str, ...]
    """columns that the model does not know, as many as are noticed"""

    @property
    def good(self) -> int:
        """The number of good rows."""
        return self.last - self.first

    @property
    def chunk(self) -> Chunk:
        """The good rows."""
        return self.whole if self.good == len(self.whole) else self.whole.rows(self.first, self.last)

    @property
    def good_ids(self) -> list[str]:
        """The ids of the good rows."""
        bad = {gap + k for k, gap in enumerate(self.gaps)}
        return [one for k, one in enumerate(self.ids or ()) if k not in bad]


class _Body(NamedTuple):
    """Some bytes, as parsers take them."""

    text: bytes
    """whole lines; or a stream, of which `batch` has the rows"""
    header: bytes = b""
    """its beginning that names the columns; empty if there is none"""
    key: Any = ""
    """what its parser is made for; None if that can be used only once"""
    batch: Any = None

    @property
    def block(self) -> Any:
        """All of it as a block."""
        size = len(self.text)
        if self.batch is not None:
            return TableBlock(self.batch, 0, 0, self.batch.num_rows, size)
        array = np.empty(size + PAD, np.uint8)
        array[:size] = np.frombuffer(self.text, np.uint8)
        return Block(array, size, LINES, 0, 0, size, size)


class BodyReader:
    """Reads bodies in one format, with a settled layout. Threads may use it at once."""

    def __init__(
        self,
        layout: SettledLayout,
        domains: Mapping[bool, Domain],
        most_rows: int,
        prepare: Callable[[Chunk], Chunk],
        beyond: Callable[[Chunk, bool, bool], list[Limit]],
        sliced: Sequence[str] = (),
    ) -> None:
        """`domains`: which labels are allowed, of rows that are labelled and of others.

        `prepare` checks the features of rows, and `beyond` says which are beyond the limits of a model, of
        labelled rows, and of rows that are learned, now or when their labels come.
        """
        self.layout, self._domains, self._most, self._sliced = layout, domains, most_rows, sliced
        self._prepare, self._beyond, self._arenas = prepare, beyond, Arenas(8)
        self._pool = dict[Any, list[Parser]]()
        """parsers that are not in use"""

    def example(self) -> bytes:
        """A body that compiles what most bodies need; empty if there is none."""
        layout = self.layout
        row = {name: 1.0 if is_number else "a" for name, is_number in layout.features.items()}
        if not layout.columns:
            return listing.EXAMPLES.get(layout.format, "").encode()
        if layout.format == "jsonl":
            return json.dumps(row).encode()
        lines = [[*row], [*map(str, row.values())]]
        if not layout.header:
            label = layout.classes[0] if layout.classes else "1"
            lines = [[label if kind == LABEL else str(row.get(n, "")) for n, kind in layout.kind_of.items()]]
        return "\n".join(map(layout.delimited_by.join, lines)).encode()

    def read(self, body: bytes, labelled: bool, ids: str = "") -> Rows:
        """The rows of a body. Labels are checked if they are `labelled`, and ignored otherwise.

        `ids` is the column (in VW text ``tag``) that identifies rows. `DataError` if nothing can be read.
        """
        given = self._open(body)
        parsed = self._parse(given, labelled, ids)
        limits = self._beyond(parsed.chunk, labelled, labelled or bool(ids))
        if parsed.ids is not None and not all(_is_id(one, False) for one in parsed.ids):
            # texts, as lists are read, and finite numbers
            if self.layout.format == "jsonl":
                texts = [isinstance(one.get(ids), str) for one in jsonl.objects_in(given.text, every=True)]
            else:
                kind = pa.string() if given.batch is None else given.batch.schema.field(ids).type
                plain = not (pa.types.is_nested(kind) or pa.types.is_floating(kind))
                texts = [plain] * len(parsed.ids)
            fit = parsed.of_examples([*map(_is_id, parsed.ids, texts)])
            limits.append((~np.array(fit, bool), repeat(_AN_ID)))
        return _rows(parsed, given.header, limits)

    def read_together(self, bodies: Sequence[bytes], labelled: bool, ids: str = "") -> list[Rows] | None:
        """The rows of each body, all parsed at once. None if they must be read one by one.

        That is so if one has blank lines, rows beyond limits, ids that may be none, or another header than
        the first. `whole` of each result is the chunk of all. `DataError` if one cannot be read at all.
        """
        given = [self._open(body) for body in bodies]
        first = given[0]
        if first.key is None or any(one.key != first.key or b"\0" in one.text for one in given):
            return None
        texts = [one.text[len(one.header) :] for one in given]
        lines = [one.count(b"\n") for one in texts]
        parsed = self._parse(first._replace(text=first.header + b"".join(texts)), labelled, ids)
        beyond = [one for one, _ in self._beyond(parsed.chunk, labelled, labelled or bool(ids)) if one.any()]
        strange = parsed.ids is not None and not all(_is_id(one, False) for one in parsed.ids)
        if beyond or strange or len(parsed.chunk) + len(parsed.gaps) != sum(lines):
            return None
        found = _split(_rows(parsed, first.header), lines, first.header.count(b"\n"))
        filled = np.append(0, np.cumsum(parsed.chunk.values != 0))[parsed.chunk.indptr]
        late = labelled and ids  # labels of rows that have been read
        empty = self.layout.format == "jsonl" and not late and (filled[1:] == filled[:-1]).any()
        strange = empty and any(one.good and filled[one.first] == filled[one.last] for one in found)
        return None if strange else found

    def names(self, body: bytes, keys: NDArray[np.uint64]) -> Names:
        """The names that features have in a body whose rows were read; `keys` may have any order.

        The first body in a format takes seconds, to compile the reader that notes names.
        """
        wanted, opened = np.unique(keys), self._open(body)
        namer = Namer(wanted, self.layout)
        for _ in range(2):  # the factors of a product may come before it
            self._parser(opened, False, "", namer).parse(opened.block)
            if not namer.left:
                break
        return namer.names(wanted).distinct(wanted)

    def _open(self, body: bytes) -> _Body:
        """A body as text, or as a record batch."""
        form, layout = self.layout.format, self.layout
        if form == "arrow":
            return self._open_stream(body)
        if form == "jsonl" and body[:1] == b"{" and b"\n" not in body[:-1] and b"\0" not in body:
            return _Body(body if body.endswith(b"\n") else body + b"\n")
        try:
            check_is_text(body, _NAME)
        except OddFileError:
            what = binary_kind(body).partition(":")[0] or "binary"
            raise BinaryError(f"{_NAME} is not UTF-8 text ({what})") from None
        if not body.strip():
            raise DataError(_EMPTY)
        text, header = body.removeprefix(MARK), b""
        if form == "jsonl" and (
            text.lstrip()[:1] == b"[" or text.lstrip().partition(b"\n")[0].strip() == b"{"
        ):
            raise DataError(_NOT_LINES)
        text = text if text.endswith(b"\n") else text + b"\n"
        key: Any = ""
        if layout.delimited_by:
            begin = len(text) - len(text.lstrip(b"\r\n"))
            end = text.index(b"\n", begin) + 1
            key = text[begin:end]
            if layout.header:
                header = text[:end]
            else:  # the number of cells decides how it is read
                key = len(delimited.cells_of(key.rstrip(b"\r\n"), delimited.dialect_of(layout)))
        self._check_rows(text.count(b"\n") - header.count(b"\n"))
        return _Body(text, header, key)

    def _open_stream(self, body: bytes) -> _Body:
        source, batches, rows = pa.BufferReader(body), list[Any](), 0
        try:
            with pa.ipc.open_stream(source) as stream:
                for batch in stream:
                    rows += batch.num_rows
                    self._check_rows(rows)
                    batches.append(batch)
            if source.tell() != len(body) or not body.endswith(END_OF_STREAM):
                raise DataError(f"{_NAME} is not one whole Arrow stream")
            schema = stream.schema
            check_once(schema.names, _NAME)
            whole = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
            batch = whole[0] if whole else pa.RecordBatch.from_pylist([], schema)
            return _Body(body, key=None, batch=sound(batch, [*schema.names]))
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{_NAME}: {error}") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{_NAME}: the name of a column is not UTF-8: {error.object!r}") from error

    def _check_rows(self, rows: int) -> None:
        if rows > self._most:
            raise TooLargeError(f"{_NAME} has more than {self._most:,} rows: send fewer at a time")

    def _parse(self, body: _Body, labelled: bool, ids: str = "") -> Parsed:
        """What a body holds. `DataError` for objects without the column of ids, or any of the layout."""
        names = body.header.count(self.layout.delimited_by.encode()) if body.header else 0
        names = names if body.batch is None else body.batch.num_columns
        if names > len(self.layout.columns) + _MOST_UNKNOWN:  # of lines of JSON, others are not read
            why = f"has more than {_MOST_UNKNOWN:,} columns that the model does not know: leave them out"
            raise TooLargeError(f"{_NAME} {why}")
        key = labelled, ids, body.key
        try:
            parser = self._pool[key].pop()
        except (KeyError, IndexError):
            parser = self._parser(body, labelled, ids)
        with ADDING if self._domains[labelled].most else nullcontext():
            parsed = parser.parse(body.block)
        if body.key is not None:
            if len(self._pool) > _MOST_KINDS:  # headers and names of ids are what clients say they are
                self._pool.clear()
            self._pool.setdefault(key, []).append(parser)
        if self.layout.format == "jsonl":
            late = labelled and ids  # labels of rows that have been read
            strange = len(parsed.chunk) and not (
                late or parsed.chunk.values.any()
            )  # wrapped in other objects
            lacking = ids and not any(parsed.ids or ())
            objects = jsonl.objects_in(body.text) if strange or lacking else []
            there = dict.fromkeys(name for one in objects for name in one)
            if lacking and there:
                identity(ids, [*there], _NAME)
            if strange and there and not there.keys() & self.layout.features.keys():
                given, known = map(list_words, ([*there], [*self.layout.features]))
                raise DataError(f"no column of {_NAME} ({given}) is one of the model's ({known})")
        return parsed._replace(chunk=self._prepare(parsed.with_cells(parsed.chunk)))

    def _parser(self, body: _Body, labelled: bool, ids: str, namer: Namer | None = None) -> Any:
        form, layout = self.layout.format, self.layout
        if labelled and has_columns(layout) and LABEL not in layout.kinds:
            raise DataError("the labels of the training data were not in a column, so rows cannot have them")
        domain = self._domains[labelled].of_words(layout.classes)
        more: dict[str, Any] = {"ids": ids, "sliced": self._sliced, "described": self._most, "namer": namer}
        reading = Reading(domain, SKIP, self._arenas, **more)
        if form not in listing.TABLES:
            check_ids(form, ids)
            return module_of(form).parser(layout, reading)
        used = layout if labelled else layout.unlabelled()
        if body.batch is not None:
            return BatchParser([kinds_by(used, body.batch.schema, _NAME, ids)], layout, reading)
        if form == "jsonl":
            lists = domain.kind == LISTED
            return jsonl.JsonlParser([jsonl.kinds_unseen(used, ids, lists, _NAME)], layout, reading)
        return delimited.DelimitedParser([delimited.kinds_in(body.text, used, ids, _NAME)], layout, reading)


def _is_id(written: str, is_text: bool) -> bool:
    """Whether what is written so, without the quotes of a text, can be the id of a row."""
    fits = 0 < len(written) <= MOST_LETTERS and not jsonl.is_broken(written)
    return fits and (is_text or _NO_ID.match(written) is None)


def _rows(parsed: Parsed, header: bytes, limits: Sequence[Limit] = ()) -> Rows:
    """The rows of a body, of which those beyond `limits` are bad too; their lines do not count blank ones."""
    if not parsed.tally.examples and not parsed.gaps:
        raise DataError(_EMPTY)
    bad, chunk, gaps = list[WrongRow](), parsed.chunk, parsed.gaps
    for one in parsed.bad:
        error = without_options(f"expected {one.expected}, found {one.found}")
        error += _CURL if one.expected == jsonl.LINE_END else ""
        bad.append(WrongRow(one.line, one.column, printable(error)))
    if limits:
        there = [gap + k for k, gap in enumerate(gaps)]
        places, first = np.delete(np.arange(len(chunk) + len(gaps)), there), header.count(b"\n") + 1
        among = dict(zip(there, bad, strict=True))
        for beyond, texts in limits:
            for at, expected in zip(places[beyond].tolist(), texts, strict=False):
                among[at] = WrongRow(first + at, 1, f"expected {expected}")
        found = sorted(among)
        chunk = chunk.take(np.flatnonzero(~np.any([beyond for beyond, _ in limits], axis=0)))
        gaps, bad = [at - k for k, at in enumerate(found)], [among[at] for at in found]
    ids = parsed.ids and [one.encode("utf-8", "backslashreplace").decode() for one in parsed.ids]
    unknown = tuple(column for what, column, _, _ in parsed.noticed if what == LATE)
    return Rows(chunk, 0, len(chunk), gaps, ids, bad, unknown)


def _split(rows: Rows, lines: Sequence[int], header: int) -> list[Rows]:
    """The rows of each body, given its number of lines without the `header`."""
    found, row, line, first = list[Rows](), 0, header, 0
    for count in lines:
        last, gaps, bad = first, list[int](), list[WrongRow]()
        while last < len(rows.bad) and rows.bad[last].line <= line + count:
            gaps.append(rows.gaps[last] - row)
            bad.append(replace(rows.bad[last], line=rows.bad[last].line - line + header))
            last += 1
        good, ids = count - len(bad), rows.ids and rows.ids[row + first : row + first + count]
        found.append(Rows(rows.whole, row, row + good, gaps, ids, bad, rows.unknown))
        row, line, first = row + good, line + count, last
    return found
