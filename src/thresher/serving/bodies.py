"""Bodies of requests as rows: what the readers of files make of the same bytes, without a file.

A parser is made for the layout of the model and used for body after body; a CSV body has a header of its own,
so there is one for each header seen. A parser is used by one thread at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.columns import BINS, FEATURES, LABEL, NUMERIC, identity
from thresher.data.errors import DataError, OddFileError, printable
from thresher.data.features.names import Namer, Names
from thresher.data.files.blocks import LINES, MARK, PAD, Block, check_is_text
from thresher.data.files.paths import binary_kind
from thresher.data.formats.choosing import parser_of
from thresher.data.formats.listing import DEFAULT, EXAMPLES, FORMATS, TABLES
from thresher.data.formats.listing import LINES as LINE_FORMATS
from thresher.data.formats.tables import delimited, jsonl
from thresher.data.formats.tables.arrow_batches import BatchParser, TableBlock, sound
from thresher.data.formats.tables.arrow_files import END_OF_STREAM, kinds_by
from thresher.data.formats.tables.json_cells import names_in
from thresher.data.labels import LISTED, ONE
from thresher.data.layout import AnyLayout, SettledLayout, has_columns, settle_without_columns
from thresher.data.opening import check_ids
from thresher.data.report import LATE
from thresher.data.sources.reader import SKIP, Arenas, Parsed, Reading
from thresher.learning.diagnostics.advice import feature_names
from thresher.learning.model.agreement import are_names, names_refused
from thresher.learning.model.divergence import EXTREME, LIGHT, Offsets, extremes, has_extremes, too_heavy
from thresher.learning.model.prediction import layout_for
from thresher.options.data import ReadOptions
from thresher.options.messages import without_options
from thresher.options.option import UsageError, settle
from thresher.serving.appending import AN_ID, is_id
from thresher.serving.errors import NOT_JSON, RefusedError, why_not_json
from thresher.serving.openapi import WrongRow

MEDIA = {
    "application/json": "jsonl",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "text/x-vw": "vw",
    "text/x-svmlight": "svmlight",
    "text/x-libsvm": "svmlight",
    "text/x-libffm": "libffm",
    "application/vnd.apache.arrow.stream": "arrow",
}
"""The formats of bodies, by media type"""
_ANY = ("", "text/plain", "application/octet-stream", "application/x-www-form-urlencoded")
"""Media types that say nothing, the last of them curl's: the format is that of the training data"""
_CHARSET = re.compile(r'charset\s*=\s*"?([^\s";]*)', re.IGNORECASE)
_UTF8 = ("utf-8", "utf8", "us-ascii")
_NAME = "the body"
_EMPTY = "the body is empty: there are no rows"
F32 = NDArray[np.float32]
_Limit = tuple[NDArray[np.bool_], Iterable[str]]
"""Which rows are beyond a limit, and for each of these what was expected"""
_SHOWN = 3
"""Columns that a message names"""
MOST_UNKNOWN = 10_000
"""Columns that the model does not know, each of which costs some time and memory"""
_MOST_CELLS = 10_000_000
_CURL = "; curl -d removes line ends: use --data-binary"
_MOST_KINDS = 64
"""Kinds of parsers that are kept"""


def check_charset(media: str) -> None:
    """`RefusedError` for the media type of a text that is not in UTF-8."""
    found = _CHARSET.search(media) if ";" in media else None
    if found and found[1].lower() not in _UTF8:
        raise RefusedError(415, f"bodies are read as UTF-8, and this one is in {found[1]}: convert it")


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
    """all bad rows in order

    Lines and columns count from 1. In a JSON array, and in objects over several lines, the line is the number
    of the element; in an Arrow stream, it is that of the row.
    """
    lines: int
    unknown: tuple[str, ...]
    """columns that the model does not know, as many as are noticed"""

    @property
    def good(self) -> int:
        """The number of good rows."""
        return self.last - self.first

    @property
    def all(self) -> int:
        """The number of rows, good and bad."""
        return self.last - self.first + len(self.bad)

    @property
    def chunk(self) -> Chunk:
        """The good rows."""
        return self.whole if self.good == len(self.whole) else self.whole.rows(self.first, self.last)

    @property
    def bad_places(self) -> NDArray[np.int64]:
        """The places of the bad rows among all."""
        return np.array(self.gaps, np.int64) + np.arange(len(self.gaps))

    @property
    def good_ids(self) -> list[str]:
        """The ids of the good rows."""
        bad = {*self.bad_places.tolist()}
        return [one for k, one in enumerate(self.ids or ()) if k not in bad]


class _Text(NamedTuple):
    """A body as text."""

    form: str
    text: bytes
    """whole lines"""
    header: bytes = b""
    """its beginning that names the columns; empty if there is none"""
    key: Any = ""
    """what the parser is made for, besides the format; None if it can be used only once"""


class Bodies:
    """Reads bodies for a model. Threads may use it at once."""

    def __init__(self, model: Any, most_rows: int) -> None:
        """`model` is a LinearPredictor, `most_rows` the largest number of rows in a body."""
        self._most, self._arenas, self._sliced = most_rows, Arenas(8), model.sliced
        self._domains = {True: model.head.domain.of_model(goes_on=True), False: model.head.open_domain}
        self._offsets = Offsets.of(model.head.loss) if model.shifted else None
        self._pool = dict[Any, list[Any]]()
        """parsers that are not in use"""
        self._layouts, self._refused = dict[str, SettledLayout](), dict[str, str]()
        self._names_refused, self._loaded = dict[str, DataError](), set[str]()
        for form in {*MEDIA.values()}:
            try:
                layout = layout_for(model, settle(ReadOptions, {"format": form}))
                if not has_columns(layout):
                    if form in TABLES:
                        title = FORMATS[form].title
                        raise DataError(
                            f"the model was not trained on a table, so its rows cannot be {title}"
                        )
                    layout = settle_without_columns(layout)
            except (DataError, UsageError) as error:
                self._refused[form] = error.args[0]
                continue
            self._layouts[form] = layout
            if (refused := names_refused(model, layout)) is not None:
                self._names_refused[form] = refused
        names_in(b"", 0)  # loaded before a client waits for it
        trained: AnyLayout | None = model.layout
        self._usual = trained.format if trained is not None else ""
        if self._usual not in self._layouts:
            self._usual = next((form for form in ("jsonl", DEFAULT) if form in self._layouts), "")

    @property
    def media(self) -> list[str]:
        """The media types that can be read."""
        return [media for media, form in MEDIA.items() if form in self._layouts]

    def examples(self) -> list[tuple[bytes, str]]:
        """Bodies with their media types that compile what most bodies need."""
        layout = self._layouts.get(self._usual)
        if layout is None or not layout.columns:
            return [(EXAMPLES[self._usual].encode(), "")] if self._usual in EXAMPLES else []
        kinds = zip(layout.columns, layout.kinds, strict=True)
        row = {name: 1.0 if kind in (NUMERIC, BINS) else "a" for name, kind in kinds if kind in FEATURES}
        found = [(json.dumps(row).encode(), "application/json")]
        if self._usual in ("csv", "tsv"):
            between = layout.delimited_by
            lines = [between.join(row), between.join(map(str, row.values()))]
            if not layout.header:
                label = layout.classes[0] if layout.classes else "1"
                kinds = zip(layout.columns, layout.kinds, strict=True)
                cells = [label if kind == LABEL else str(row.get(name, "")) for name, kind in kinds]
                lines = [between.join(cells)]
            found.append(("\n".join(lines).encode(), ""))
        return found

    def read(self, body: bytes, media: str, *, labelled: bool, ids: str = "") -> Rows:
        """The rows of a body. Labels are checked if they are `labelled`, and ignored otherwise.

        `ids` is the column (in VW text ``tag``) that identifies rows. `RefusedError`: 400, 413 or 415.
        """
        form, header = self._form(media, body), b""
        try:
            if form == "arrow":
                parsed = self._of_stream(body, labelled, ids)
            else:
                text = self._text(form, body)
                parsed, header = self._parsed(text, labelled, ids), text.header
            if form == "jsonl" and ids and not any(parsed.ids or ()) and (objects := self._objects(body)):
                identity(ids, [*dict.fromkeys(name for one in objects for name in one)], _NAME)
        except DataError as error:
            raise RefusedError(400, error.args[0]) from error
        self._loaded.add(form)
        rows, limits = _rows(parsed), self._beyond(form, parsed.chunk, labelled, labelled or bool(ids))
        if rows.ids is not None and not all(is_id(one, False) for one in rows.ids):
            # a list is read as the text that it is written as
            texts: Iterable[bool] = repeat(True)
            if form == "jsonl":
                texts = jsonl.are_texts(self._text(form, body).text, ids)
            elif form == "arrow":
                kind = self._table(body).schema.field(ids).type
                texts = repeat(not (pa.types.is_nested(kind) or pa.types.is_floating(kind)))
            wrong = np.array([not is_id(*one) for one in zip(rows.ids, texts, strict=False)], bool)
            if wrong.any():
                shown = [one.encode("utf-8", "backslashreplace").decode() for one in rows.ids]
                limits.append((np.delete(wrong, rows.bad_places), repeat(AN_ID)))
                rows = rows._replace(ids=shown)
        if limits:
            rows = _without(rows, limits, header.count(b"\n"))
        if form == "jsonl" and rows.good and not parsed.chunk.values.any():  # as others wrap them in another
            layout, there = self._layouts[form], {name: None for one in self._objects(body) for name in one}
            kinds = zip(layout.columns, layout.kinds, strict=True)
            columns = [name for name, kind in kinds if kind in FEATURES]
            if there and not there.keys() & columns:
                given, known = (", ".join([*one][:_SHOWN]) for one in (there, columns))
                raise RefusedError(
                    400, f"no column of {_NAME} ({given}) is one of the model's ({known}, ...)"
                )
        return rows

    def _beyond(self, form: str, chunk: Chunk, labelled: bool, learned: bool) -> list[_Limit]:
        """The rows that are beyond a limit; `learned`: now, or when their labels come."""
        found = list[_Limit]()
        if learned and has_extremes(chunk):
            rows, places = extremes(chunk)
            named = feature_names(chunk.keys[places].tolist(), self._layouts[form])
            texts = (
                f"a value below 2^61 ({EXTREME:.2g}) in magnitude, found {chunk.values[at]:.6g} in {name}"
                for at, name in zip(places, named, strict=True)
            )
            found.append((np.isin(np.arange(len(chunk)), rows), texts))
        if labelled:
            targets = chunk.labels if chunk.targets is None else chunk.targets
            found.append((too_heavy(targets, chunk.weights), repeat(LIGHT)))
        if self._offsets is not None and chunk.offsets is not None:
            found.append((self._offsets.beyond(chunk.offsets), repeat(self._offsets.expected)))
        return [one for one in found if one[0].any()]

    def _objects(self, body: bytes) -> list[dict[str, Any]]:
        """The objects of a body; none if a line is not JSON."""
        try:
            return [one for one in _decode(self._text("jsonl", body).text) if isinstance(one, dict)]
        except NOT_JSON:  # a bad line among good ones
            return []

    def is_loaded(self, media: str) -> bool:
        """Whether bodies of this kind have been read before; the first may take seconds, to compile."""
        try:
            return self._form(media) in self._loaded
        except RefusedError:
            return True

    def read_together(
        self, bodies: Sequence[bytes], media: str, *, labelled: bool = False
    ) -> list[Rows] | None:
        """The rows of each body, all parsed at once. None if they must be read one by one.

        That is so if one of them cannot be read at all, has blank lines, or another header than the first.
        `whole` of each result is the chunk of all.
        """
        try:
            form = self._form(media, bodies[0])
            if form == "arrow":
                return None
            texts = [self._text(form, body) for body in bodies]
            first = texts[0]
            if first.key is None or any(one.key != first.key or b"\0" in one.text for one in texts):
                return None
            rows = [one.text[len(one.header) :] for one in texts]
            lines = [one.count(b"\n") for one in rows]
            parsed = self._parsed(first._replace(text=first.header + b"".join(rows)), labelled, "")
        except (RefusedError, DataError):
            return None
        if len(parsed.chunk) + len(parsed.gaps) != sum(lines):
            return None
        if self._beyond(form, parsed.chunk, labelled, labelled):
            return None
        found = _split(_rows(parsed), lines, first.header.count(b"\n"))
        filled = np.append(0, np.cumsum(parsed.chunk.values != 0))[parsed.chunk.indptr].tolist()
        strange = form == "jsonl" and any(one.good and filled[one.first] == filled[one.last] for one in found)
        return None if strange else found

    def names(self, body: bytes, media: str, keys: NDArray[np.uint64]) -> Names:
        """The names that features have in a body whose rows were read; `keys` may have any order.

        The first body in a format takes seconds, to compile the reader that notes names.
        """
        form = self._form(media, body)
        wanted, layout = np.unique(keys), self._layouts[form]
        namer = Namer(wanted, layout.mask, ids=form in LINE_FORMATS and not LINE_FORMATS[form].named)
        for _ in range(2):  # the factors of a product may come before it
            if form == "arrow":
                self._of_stream(body, False, "", namer)
            else:
                text = self._text(form, body)
                self._parser(text, False, "", namer).parse(_block_of(text.text))
            if not namer.left:
                break
        return namer.names(wanted).distinct(wanted)

    def _form(self, media: str, body: bytes = b"") -> str:
        """The format of a media type; if that says nothing, of a body that begins like JSON."""
        check_charset(media)
        kind = media.partition(";")[0].strip().lower()
        form = self._usual if kind in _ANY else MEDIA.get(kind, "")
        if kind in _ANY and form in TABLES and body[:1] in (b"{", b"["):
            form = "jsonl"
        if form in self._layouts:
            return form
        why = self._refused.get(form, f"rows cannot be read from {kind or 'this model'}")
        raise RefusedError(415, f"{why}; send {', '.join(self.media) or 'rows to another model'}")

    def _text(self, form: str, body: bytes) -> _Text:
        if form == "jsonl" and body[:1] == b"{" and b"\n" not in body[:-1] and b"\0" not in body:
            return _Text(form, body if body.endswith(b"\n") else body + b"\n")
        try:
            check_is_text(body, _NAME)
        except OddFileError:
            what = binary_kind(body).partition(":")[0] or "binary"
            raise RefusedError(
                415, f"{_NAME} is not UTF-8 text ({what}); send {', '.join(self.media)}"
            ) from None
        if not body.strip():
            raise DataError(_EMPTY)
        text, layout = body.removeprefix(MARK), self._layouts[form]
        if form == "jsonl":  # as lines, if it is a list of objects or if its objects have several lines each
            given = text.strip()
            if given[:1] == b"[":
                text = _elements(given, 1)
            elif given[:1] == b"{" and not given.partition(b"\n")[0].rstrip().endswith(b"}"):
                with suppress(DataError):  # or they are lines, of which the first is bad
                    text = _elements(given, 0)
        text = text if text.endswith(b"\n") else text + b"\n"
        found = _Text(form, text)
        if layout.quoted_newlines:
            found = found._replace(key=None)
        elif layout.delimited_by:
            begin = len(text) - len(text.lstrip(b"\r\n"))
            end = text.index(b"\n", begin) + 1
            if layout.header:
                found = found._replace(header=text[:end], key=text[begin:end])
            else:  # the number of cells decides how it is read
                first, dialect = text[begin:end].rstrip(b"\r\n"), delimited.dialect_of(layout)
                found = found._replace(key=len(delimited.cells_of(first, dialect)))
        if text.count(b"\n") - found.header.count(b"\n") > self._most:
            raise self._too_many()
        return found

    def _parsed(self, given: _Text, labelled: bool, ids: str) -> Parsed:
        key, layout = (given.form, labelled, ids, given.key), self._layouts[given.form]
        if given.form == "jsonl" and len(given.text) > MOST_UNKNOWN:  # or there cannot be as many names
            names = names_in(given.text, len(layout.columns) + MOST_UNKNOWN)
            _check_wide(names, given.text.count(b"\n"), layout, len(given.text))
        elif given.header:
            _check_wide(given.header.count(layout.delimited_by.encode()), 1, layout)
        try:
            parser = self._pool[key].pop()
        except (KeyError, IndexError):
            parser = self._parser(given, labelled, ids)
        parsed: Parsed = parser.parse(_block_of(given.text))
        if given.key is not None:
            if len(self._pool) > _MOST_KINDS:  # headers and names of ids are what clients say they are
                self._pool.clear()
            self._pool.setdefault(key, []).append(parser)
        if given.form in self._names_refused and are_names(parsed.chunk):
            raise self._names_refused[given.form]
        return parsed._replace(chunk=parsed.with_cells(parsed.chunk))

    def _parser(self, given: _Text, labelled: bool, ids: str, namer: Namer | None = None) -> Any:
        layout = self._layouts[given.form]
        reading = self._reading(layout, labelled, ids, namer)
        if given.form not in TABLES:
            check_ids(given.form, ids)
            return parser_of(given.form)(layout, reading)
        if given.form == "jsonl":
            lists = reading.domain.kind == LISTED
            return jsonl.form_of(layout, not labelled, ids, lists, _NAME)(layout, reading)
        return delimited.form_of(given.text, layout, not labelled, ids, _NAME)(layout, reading)

    def _reading(self, layout: SettledLayout, labelled: bool, ids: str, namer: Namer | None) -> Reading:
        if labelled and has_columns(layout) and LABEL not in layout.kinds:
            raise DataError("the labels of the training data were not in a column, so rows cannot have them")
        domain = self._domains[labelled].of_words(layout.classes)
        more = {"ids": ids, "sliced": self._sliced, "described": self._most, "namer": namer}
        return Reading(domain, SKIP, self._arenas, **more)

    def _of_stream(self, body: bytes, labelled: bool, ids: str, namer: Namer | None = None) -> Parsed:
        layout = self._layouts["arrow"]
        reading = self._reading(layout, labelled, ids, namer)
        try:
            table = self._table(body)
            _check_wide(len(table.schema), 1, layout)
            used = layout if labelled else layout.unlabelled()
            kinds = kinds_by(used, table.schema, _NAME, ids)
            whole = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
            batch = sound(whole[0], [*table.schema.names])
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{_NAME}: {error}") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{_NAME}: the name of a column is not UTF-8: {error.object!r}") from error
        parser = BatchParser([kinds], layout, reading)
        parsed = parser.parse(TableBlock(batch, 0, 0, batch.num_rows, len(body)))
        return parsed._replace(chunk=parsed.with_cells(parsed.chunk))

    def _table(self, body: bytes) -> Any:
        source, batches, rows = pa.BufferReader(body), list[Any](), 0
        with pa.ipc.open_stream(source) as stream:
            for batch in stream:
                rows += batch.num_rows
                if rows > self._most:
                    raise self._too_many()
                batches.append(batch)
        if source.tell() != len(body) or not body.endswith(END_OF_STREAM):
            raise DataError(f"{_NAME} is not one whole Arrow stream")
        return pa.Table.from_batches(batches, stream.schema)

    def _too_many(self) -> RefusedError:
        return RefusedError(413, f"{_NAME} has more than {self._most:,} rows: send fewer at a time")


_decode = msgspec.json.Decoder().decode_lines
"""Three times as fast as json, and stricter"""


def _check_wide(names: int, rows: int, layout: SettledLayout, size: int = 0) -> None:
    """`RefusedError` for many columns, or a table that would have far more cells than the text has values."""
    if names > len(layout.columns) + MOST_UNKNOWN:
        why = f"has more than {MOST_UNKNOWN:,} columns that the model does not know: leave them out"
        raise RefusedError(413, f"{_NAME} {why}")
    if names * rows > max(_MOST_CELLS, size):
        raise RefusedError(413, f"{_NAME} has {rows:,} rows of {names:,} columns: send fewer rows at a time")


def _block_of(text: bytes) -> Block:
    size = len(text)
    array = np.empty(size + PAD, np.uint8)
    array[:size] = np.frombuffer(text, np.uint8)
    return Block(array, size, LINES, 0, 0, size, size)


def _elements(text: bytes, at: int) -> bytes:
    """A line for each value in a list, which `at` is inside of, or for each of several values."""
    listed, found = at > 0, list[str]()

    def skip(at: int) -> int:
        blanks = _BLANKS.match(written, at)
        return blanks.end() if blanks else at

    try:
        written = str(text, "utf-8")
        at = skip(at)
        while written[at : at + 1] != "]" if listed else at < len(written):
            _, end = _DECODER.raw_decode(written, at)
            found.append(written[at:end].translate(_ON_ONE_LINE))
            at = skip(end)
            if listed and written[at : at + 1] != "]":
                if written[at : at + 1] != ",":
                    raise json.JSONDecodeError("expected ',' or ']'", written, at)
                at = skip(at + 1)
                if written[at : at + 1] == "]":
                    raise json.JSONDecodeError("expected a value after ','", written, at)
        if listed and at + 1 < len(written):
            raise json.JSONDecodeError("expected nothing after the list", written, at + 1)
    except json.JSONDecodeError as error:
        raise DataError(f"{_NAME}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{_NAME} is not JSON: {why_not_json(error)}") from error
    if not found:
        raise DataError(_EMPTY)
    return "\n".join(found).encode()


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""Finds where a value ends"""
_ON_ONE_LINE = str.maketrans("\r\n", "  ")
_BLANKS = re.compile(r"[ \t\r\n]*+")


def _rows(parsed: Parsed) -> Rows:
    if not parsed.tally.examples and not parsed.gaps:
        raise RefusedError(400, _EMPTY)
    bad = list[WrongRow]()
    for one in parsed.bad:
        error = without_options(f"expected {one.expected}, found {one.found}")
        error += _CURL if one.expected == jsonl.LINE_END else ""
        bad.append(WrongRow(one.line, one.column, printable(error)))
    unknown, count = tuple(column for what, column, _, _ in parsed.noticed if what == LATE), len(parsed.chunk)
    return Rows(parsed.chunk, 0, count, parsed.gaps, parsed.ids, bad, parsed.tally.lines, unknown)


def _without(rows: Rows, limits: Sequence[_Limit], header: int) -> Rows:
    """The rows of a body, of which those beyond `limits` are bad too; their lines do not count blank ones."""
    beyond_any = np.any([beyond for beyond, _ in limits], axis=0)
    bad = {int(at): one for at, one in zip(rows.bad_places, rows.bad, strict=True)}
    places = np.delete(np.arange(len(beyond_any) + len(bad)), rows.bad_places)
    for beyond, texts in limits:
        for at, expected in zip(places[beyond].tolist(), texts, strict=False):
            bad[at] = WrongRow(header + at + 1, 1, f"expected {expected}")
    found = sorted(bad)
    return rows._replace(
        whole=rows.whole.take(np.flatnonzero(~beyond_any)),
        last=rows.last - int(beyond_any.sum()),
        gaps=[at - k for k, at in enumerate(found)],
        bad=[bad[at] for at in found],
    )


def _split(rows: Rows, lines: Sequence[int], header: int) -> list[Rows]:
    """The rows of each body, given its number of lines without the `header`."""
    found, row, line, first = list[Rows](), 0, header, 0
    for count in lines:
        last = first
        while last < len(rows.bad) and rows.bad[last].line <= line + count:
            last += 1
        good = count - (last - first)
        gaps = [gap - row for gap in rows.gaps[first:last]]
        bad = [WrongRow(one.line - line + header, one.column, one.error) for one in rows.bad[first:last]]
        found.append(Rows(rows.whole, row, row + good, gaps, None, bad, count + header, rows.unknown))
        row, line, first = row + good, line + count, last
    return found


# the body of /label

_LONGEST = 40
_PLACE = re.compile(r" - at `\$\[([0-9]+)\]\.?(.*)`")
"""Where msgspec found what is wrong in a list or in lines"""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    id: msgspec.Raw
    """text, or what is written there, such as 1e3: rows are known by what stands in their bodies"""
    label: str | float | bool
    weight: float = 1.0


_ONE, _SEVERAL = msgspec.json.Decoder(_Line), msgspec.json.Decoder(list[_Line])


def read_labels(body: bytes, model: Any, most: int) -> tuple[list[str], F32, F32]:
    """The ids, labels and weights of late labels in JSON: an object, an array or lines; `RefusedError`."""
    text, ids = body.strip(), list[str]()
    try:
        lines = _SEVERAL.decode(text) if text.startswith(b"[") else _ONE.decode_lines(text)
        for number, line in enumerate(lines, 1):
            written = bytes(line.id).decode()
            is_text = written[0] == '"'
            ids.append(msgspec.json.decode(line.id, type=str) if is_text else written)
            if not is_id(ids[-1], is_text):
                raise RefusedError(400, f"line {number}: expected {AN_ID}, found {written[:_LONGEST]}")
    except NOT_JSON as error:
        why = _PLACE.sub(
            lambda at: f" (line {int(at[1]) + 1}{', ' * bool(at[2])}{at[2]})", why_not_json(error)
        )
        raise RefusedError(400, f'expected lines such as {{"id": "a", "label": 1}}: {why}') from error
    if not lines:
        raise RefusedError(400, "the body is empty: send a line of id and label for each row")
    if len(lines) > most:
        raise RefusedError(413, f"the body has more than {most:,} labels")

    def check(wrong: NDArray[np.bool_], expected: str, found: Callable[[_Line], str]) -> None:
        if wrong.any():
            at = int(np.argmax(wrong))
            raise RefusedError(400, f"line {at + 1}: expected {expected}, found {found(lines[at])}")

    weights = np.array([one.weight for one in lines])
    check(weights < 0, "a weight of at least 0", lambda one: f"{one.weight:g}")
    domain = model.head.domain.of_model(True).of_words(model.classes)
    if domain.kind != ONE:
        raise RefusedError(409, "labels can come late only if a row has one, and here it has several")
    try:
        words = domain.words
        given = [
            float(one.label) if words is None else words.number_of(str(one.label).encode()) for one in lines
        ]
    except ValueError:
        raise RefusedError(400, f"expected {domain.meaning}") from None
    numbers = np.array(given)
    labels = numbers.astype(np.float32)
    fits = domain.allows(labels) & (domain.allows(numbers) if domain.whole else True)
    check(~fits, domain.meaning, lambda one: repr(str(one.label)[:_LONGEST]))
    check(too_heavy(labels, weights), LIGHT, lambda one: "more")
    return ids, labels, weights.astype(np.float32)
