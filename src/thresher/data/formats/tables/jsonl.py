"""JSON lines: one object per line, whose fields are columns, as are those of objects within it: ``a.b``.

An absent field and null are missing values. A field that is not a column of the layout is ignored; the first
values of such fields are noticed. Compiled code (`json_cells`) reads usual lines. It stops at one that is
unusual, such as a bad or blank one, which Python reads and writes again in the usual way.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.data import columns
from thresher.data.columns import CATEGORICAL, EMPTY, LABEL, LIST, MOST_COLUMNS, NUMERIC
from thresher.data.errors import BadLine, DataError, quote_bytes
from thresher.data.files.blocks import PAD, Block
from thresher.data.files.paths import is_stream
from thresher.data.files.streams import HEAD, Previews
from thresher.data.formats import line_status
from thresher.data.formats.lines.line_rows import parse_lines
from thresher.data.formats.lines.parse_loop import line_at
from thresher.data.formats.tables import table_rows
from thresher.data.formats.tables.arrow_batches import LISTS_NEED, bad_row, fits
from thresher.data.formats.tables.arrow_files import by_schema, kinds_by
from thresher.data.formats.tables.delimited import RowParser, TextRow, beginning, lines_of
from thresher.data.formats.tables.json_cells import (
    CLASSES,
    KINDS,
    NAMES,
    NESTED,
    NUMBER,
    NUMBERS,
    STRINGS,
    TRUTHS,
    UNSEEN,
    WORDS,
    ObjectFields,
    flat,
)
from thresher.data.formats.tables.table_rows import ColumnEncodings, ParserMaker, of_cells
from thresher.data.formats.tables.text_rows import Cells
from thresher.data.formats.tables.where import with_filters
from thresher.data.labels import LISTED
from thresher.data.layout import AnyLayout, Extension, SettledLayout, has_columns, known_columns
from thresher.data.report import AWAITED, FOUND, LACKING, LATE, MOST_LATE, TO_UTF8, find_undecoded, wrong_byte
from thresher.data.sources.reader import Parsed, Reading, RowsAsked
from thresher.data.text.numbers import means_missing
from thresher.data.text.spelling import respell
from thresher.options.messages import mention

_NEWLINE = ord("\n")
_LOOKS = {NUMBERS: NUMERIC, STRINGS: CATEGORICAL, TRUTHS: CATEGORICAL, NESTED: ""}
"""What a field looks like that has a value of a kind"""


class _Number(float):
    """A number, and how it is written, as which it is a text only if it is beyond float64."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, written: str) -> Self:
        made = super().__new__(cls, written)
        made.written = written
        return made

    def __str__(self) -> str:
        beyond = self in (0.0, math.inf, -math.inf) and {*self.written.lower().split("e")[0]} & {*"123456789"}
        return self.written if beyond else float.__repr__(self)


class _Whole(_Number):
    """A number without a point or an exponent; all digits count."""

    __slots__ = ()

    def __str__(self) -> str:
        return "0" if self.written == "-0" else self.written


_DEEPEST = 200
"""How deep lists and objects may be nested, which Python reads and writes by recursion"""
_BRACKETS_AND_TEXTS = re.compile(rb'[][{}]|"(?:[^"\\]|\\.)*+"?')
_DECODER = json.JSONDecoder(parse_int=_Whole, parse_float=_Number, parse_constant=_Number)
_TYPES = {
    _Whole: pa.int64(),
    _Number: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
    dict: pa.struct([]),
}
_MOST_CELLS, _SPARSE = 10_000_000, 16
"""Cells that the first lines may have, and how many for a byte if that is more; each takes time and memory"""
LINE_END = "the end of the line after its object"
"""What is expected where another object follows"""
_MEANT = {
    NUMBER: "a number",
    WORDS: "text, a finite number, true or false",
    CLASSES: "a list (a number each)",
    NAMES: "a list (text or a whole number each)",
}
"""What the values of a field must be"""
_WRONG = object()
"""In place of a value that is not what it must be"""


class _Object(NamedTuple):
    """The object of a line."""

    fields: dict[str, Any]
    """all, with their values"""
    values: dict[str, Any]
    """those that are read, as `_as` gives them, without those that are null"""


class _JsonHead(NamedTuple):
    """What the first rows of a file show of its fields."""

    fields: pa.Schema
    """a schema of them"""
    values: Mapping[str, list[Any]]
    """their values other than null"""
    lines: int
    size: int
    """bytes of these"""


def open_table(
    names: list[str], layout: AnyLayout, previews: Previews, asked: RowsAsked
) -> tuple[SettledLayout, ParserMaker]:
    """The settled layout of files, and the maker of their parsers. Raises `DataError`.

    If `live`, a stream is read up to its first line, which says little about the others: the type of a field
    that does not fit the layout there is left open.
    """
    ids, live = asked.ids, asked.live and has_columns(layout)
    whole, heads, found = True, list[_JsonHead](), layout
    for name in names:
        text = beginning(name, previews, live)
        whole = whole and len(text) < HEAD
        kept = {*layout.ignore, *known_columns(layout)}
        heads.append(_head_of(lines_of(text, name), name, live and is_stream(name), ids, kept))
    if not has_columns(found):
        values = dict(pair for one in reversed(heads) for pair in one.values.items() if pair[1])
        schemas = [one.fields for one in heads]
        found = by_schema(
            layout,
            schemas,
            names[0],
            lambda field: [one for one in values.get(field, ()) if isinstance(one, str)],
            EMPTY,
            open_ended=not whole,
        )
    used, files = found.unlabelled() if asked.unlabelled else found, list[ColumnEncodings]()
    new = layout.new(used.columns) if isinstance(layout, Extension) else []
    for name, head in zip(names, heads, strict=True):
        one_by_one = live and is_stream(name)
        there = [one for one in head.fields.names if one != ids]
        lacking = [] if one_by_one else columns.lacking_in_objects(used, there, name, new)
        fields = list[pa.Field]()  # each with the first of its types that fits its kind in the layout
        for field in head.fields:
            kind = used.kind_of.get(field.name, "")
            some = (one for one in head.values[field.name] if not _says_missing(one))
            types = field.type, *map(_TYPES.get, dict.fromkeys(map(type, some)))
            fit = [one for one in types if one is not None and fits(one, kind)]
            # a stream says little at first: a type that does not fit is left open
            fields.append(field.with_type(fit[0] if fit else pa.null() if one_by_one else field.type))
        kinds = with_filters(_kinds(used, fields, name, ids, lacking), asked, None, name)
        awaited = [one for one in (kinds.where.columns if kinds.where else ()) if one not in used.columns]
        noticed = tuple((AWAITED, one, 0, asked.where) for one in awaited)
        files.append(kinds._replace(noticed=kinds.noticed + noticed))
        if len(kinds.roles) * head.lines > max(_MOST_CELLS, _SPARSE * head.size):
            raise DataError(
                f"{name}: {len(kinds.roles):,} columns in its first {head.lines:,} lines, most without a"
                " value. JSON lines are a table, with a cell for each column and line: put such features in"
                " one field, as a list of names or a text, or write VW text"
            )
    return found, ParserMaker(JsonlParser, files)


def kinds_unseen(layout: SettledLayout, ids: str, lists: bool, name: str) -> ColumnEncodings:
    """How lines are read of which none has been seen, called `name` in messages.

    `lists` says whether labels are lists of classes.
    """
    label = pa.list_(pa.float64()) if lists else pa.string()  # of texts, which may be numbers, or numbers
    known = [pa.field(column, label) for column, kind in layout.kind_of.items() if kind == LABEL]
    known += [pa.field(ids, pa.null())] if ids and ids not in layout.columns else []
    return _kinds(layout, known, name, ids)


def _kinds(
    layout: SettledLayout, fields: Iterable[pa.Field], name: str, ids: str, lacking: Sequence[str] = ()
) -> ColumnEncodings:
    """How the `fields` of a file are read, with no value of those `lacking`.

    Columns have the order of the layout: so the same rows give the same sums, in whatever order their fields
    are. Raises `DataError` unless they fit the layout.
    """
    there = {field.name: field for field in fields}
    known = [there.pop(name, pa.field(name, pa.null())) for name in layout.columns]
    schema, roles = pa.schema([*known, *there.values()]), dict[str, int]()
    kinds = kinds_by(layout, schema, name, ids)
    for field, what in zip(schema, kinds.what, strict=True):
        if what in columns.NUMBERS or (what == LABEL and pa.types.is_boolean(field.type)):
            roles[field.name] = NUMBER
        elif what == LABEL and not (pa.types.is_string(field.type) or layout.classes):
            roles[field.name] = CLASSES if pa.types.is_list(field.type) else NUMBER
        elif what not in columns.UNREAD:
            roles[field.name] = NAMES if what == LIST else WORDS
    noticed = tuple((LACKING, one, 0, "") for one in lacking)
    return kinds._replace(noticed=noticed, roles=roles)


def _head_of(lines: Sequence[bytes], name: str, live: bool, ids: str, kept: Collection[str]) -> _JsonHead:
    """The fields of the objects in `lines`, and of objects in these unless their names are `kept`.

    A field without a value has the type null; if `live` and there is no object yet, so has the field `ids`.
    """
    objects, values = first_objects(lines, name, kept)
    if not objects and not live:
        hint = f" in UTF-8; {TO_UTF8}" if any(wrong_byte(line) is not None for line in lines) else ""
        raise DataError(f"{name}: none of its first lines is a JSON object{hint}")
    if not objects and ids:
        values[ids] = []
    fields = list[pa.Field]()
    for field, some in values.items():
        sure = [one for one in some if not _says_missing(one)]
        fields.append(pa.field(field, _type_of(sure or sorted(some, key=lambda one: isinstance(one, float)))))
    return _JsonHead(pa.schema(fields), values, len(lines), sum(map(len, lines)))


def first_objects(
    lines: Iterable[bytes], name: str, kept: Collection[str]
) -> tuple[int, defaultdict[str, list[Any]]]:
    """The number of objects in `lines`, and of each field the values other than null: see `_head_of`."""
    objects, values = 0, defaultdict[str, list[Any]](list)
    for line in lines:
        if (count := line.count(b'":')) > MOST_COLUMNS:
            raise DataError(f"{name}: {columns.too_many(count)}")
        if (read := object_in(line)) is None or is_broken("".join(fields := flat(read, kept))):
            continue
        objects += 1
        for field, value in fields.items():
            values[field] += [] if value is None else [value]
    return objects, values


def _says_missing(value: object) -> bool:
    """Whether it is NaN or a text for a missing value, which say nothing about the type of other values."""
    if isinstance(value, str):
        return means_missing(value.encode("utf-8", "surrogatepass"))
    return isinstance(value, float) and math.isnan(value)


def _type_of(values: Iterable[object]) -> pa.DataType:
    """The type of the first of these values that is not null; of any number if some are not whole."""
    found = [value for value in values if value is not None]
    kinds = [*dict.fromkeys(map(type, found))]
    if kinds[:1] == [list]:
        return pa.list_(_type_of(one for some in found if isinstance(some, list) for one in some))
    if kinds[:1] == [_Whole] and _Number in kinds:
        return pa.float64()
    return _TYPES[kinds[0]] if kinds else pa.null()


class JsonlParser(RowParser):
    """Parses blocks of JSON lines into chunks."""

    def __init__(self, files: Sequence[ColumnEncodings], layout: SettledLayout, reading: Reading) -> None:
        words, lists = reading.domain.words is not None, reading.domain.kind == LISTED
        label = table_rows.WORD if words else table_rows.CLASSES if lists else table_rows.LABEL
        super().__init__([of_cells(one, label, table_rows.SPELLED) for one in files], layout, reading)
        known = {name: LATE if kind == EMPTY else "" for name, kind in layout.kind_of.items()}
        known |= dict.fromkeys(layout.awaited, FOUND)
        known.setdefault(next((one.ids for one in files if one.ids), ""), "")
        ignores = columns.tester(layout.ignore)
        # why a field is watched: its values are late, and so ignored, or it is awaited; without this parser
        self._watched: Callable[[str], str] = lambda name: known.get(name, "" if ignores(name) else LATE)
        self._fields = list[ObjectFields]()
        for one in files:
            labels = [name for name, what in zip(one.names, one.what, strict=True) if what == LABEL]
            for name in labels:
                if (one.roles[name] == CLASSES) != lists:
                    found, wanted = ("no lists", "lists") if lists else ("lists", LISTS_NEED)
                    raise DataError(f"column '{name}' has {found}, but these outputs need {wanted} as labels")
            roles = {**one.roles, **dict.fromkeys(labels if words else (), WORDS)}
            self._fields.append(ObjectFields(one.names, roles, {*layout.ignore, *roles}, self._watched))

    def _reader(self, kinds: ColumnEncodings, wanted: Sequence[str]) -> Callable[[bytes], TextRow | None]:
        nested = any("." in field for field in wanted)

        def read(line: bytes) -> TextRow | None:
            if not line.strip():
                return None
            row = object_in(line)
            found = flat(row or {}, ()) | (row or {}) if nested else row or {}
            cells = ("" if value is None else value for value in map(found.get, wanted))
            # numbers as written
            return [one if isinstance(one, str) else _to_json(one) for one in cells], row is not None

        return read

    def _parse_rows(
        self, block: Block, state: NDArray[np.int64], kinds: ColumnEncodings
    ) -> tuple[Parsed, Iterable[tuple[str, str, int, str]]]:
        text = block.text[: block.size]
        objects = self._fields[block.file].objects(block.size + PAD, self._spare(block, kinds))
        starts = np.append(block.begin, np.flatnonzero(text[block.begin :] == _NEWLINE) + block.begin + 1)
        wrong, noticed = find_undecoded(text[block.begin :]) + block.begin, list[tuple[str, str, int, str]]()
        odd = [*starts[np.searchsorted(starts, wrong, "right") - 1].tolist(), block.size]  # not UTF-8

        def parse(grammar: Cells, text: NDArray[np.uint8], size: int, *rest: object) -> int:
            # usual lines, and others as they would be written in the usual way
            result = line_status.DONE
            while (at := int(state[line_status.AT])) < size and result == line_status.DONE:
                end, result = odd[bisect_left(odd, at)], line_status.NEEDS_CARE
                if at < end:
                    result = self.usual(grammar, text, end, *rest)
                if result == line_status.NEEDS_CARE or (end < size and result == line_status.DONE):
                    objects.firsts[objects.firsts >= KINDS * state[line_status.AT]] = UNSEEN
                    before = objects.firsts.copy()
                    result = self._careful(block, state, noticed, grammar, rest)
                    objects.firsts[:] = before  # the line as it was written again has another place
            return result

        nothing = np.zeros(0, np.uint8)
        where = (0, nothing), objects, nothing, False
        parsed = self._rows(block, state, where, np.full(len(kinds.names) + 1, -1), len(starts), parse)
        for c in np.flatnonzero(objects.firsts >= 0).tolist():
            at, kind = divmod(int(objects.firsts[c]), KINDS)
            name, line = self._fields[block.file].names_of[c], int(np.searchsorted(starts, at)) + 1
            noticed += [(what, name, line, _LOOKS[kind])] if (what := self._watched(name)) else []
        # what was noticed first of each field, in an order that does not depend on where blocks are cut
        first = dict[tuple[str, str], tuple[str, str, int, str]]()
        for one in sorted(noticed, key=lambda one: (one[2], one)):
            first.setdefault(one[:2], one)
        # of late fields enough that the first `MOST_LATE` of all blocks are among them
        late = [one for one in first.values() if one[0] == LATE][: 2 * MOST_LATE]
        return parsed, (*late, *(one for one in first.values() if one[0] != LATE))

    usual = staticmethod(parse_lines)
    """Reads usual lines, up to one that is not"""

    def _careful(
        self,
        block: Block,
        state: NDArray[np.int64],
        noticed: list[tuple[str, str, int, str]],
        grammar: Cells,
        rest: Sequence[object],
    ) -> int:
        """Read the line at ``state[AT]`` in Python, and then as it is written in the usual way."""
        start, bad, result = int(state[line_status.AT]), int(state[line_status.BAD]), line_status.DONE
        line, number = line_at(block.text, start), int(state[line_status.LINES])
        read = self._object(line, block.file) if line.strip() else None
        if isinstance(read, _Object):
            for name, value in read.fields.items():
                if value is not None and (what := self._watched(name)):
                    look = CATEGORICAL if isinstance(value, str | bool) else NUMERIC
                    look = "" if isinstance(value, list | dict) else look
                    noticed.append((what, name, number + 1, look))
            usual = f"{_to_json(read.values)}\n".encode()
            padded = bytearray(usual + bytes(PAD))  # writable, as blocks are: or it would be compiled again
            state[line_status.AT] = 0
            text, grammar = np.frombuffer(padded, np.uint8), grammar._replace(size=len(usual))
            result = parse_lines(grammar, text, len(usual), *rest)
            self._bad[bad : state[line_status.BAD], :2] = start
        else:
            state[line_status.LINES] += 1
            state[line_status.BLANKS] += read is None
            if read is not None:
                entry = start, start, line_status.UNUSUAL, number, state[line_status.ROWS]
                self._bad[bad], state[line_status.BAD] = entry, bad + 1
                result = line_status.TABLE_FULL if bad + 1 == len(self._bad) else result
        state[line_status.AT] = start if result == line_status.NEEDS_ROOM else start + len(line) + 1
        return result

    def _bad_line(self, block: Block, start: int, at: int, code: int, line: int) -> BadLine:
        """The bad line; if its object lacks the field in question, with the one that may be meant."""
        raw, kinds = line_at(block.text, start), self._files[block.file]
        read, name = self._object(raw, block.file), kinds.names[code // line_status.OUTCOMES]
        if isinstance(read, BadLine):
            return read._replace(line=line + 1)
        bad = bad_row(self._domain, kinds, read.values.get(name), code, line + 1, raw)
        if bad.found != "null" or name in read.fields:
            return bad
        near = columns.find_misspelt(columns.unexpected(self._layout, [*read.fields]), [name])
        return bad._replace(found="no such field" + "".join(f": did you mean '{one}'?" for one in near))

    def _object(self, line: bytes, file: int) -> _Object | BadLine:
        """The fields of a line, the values of those that are read as these want them; or the bad line."""
        read, known, values = read_object(line), self._fields[file], dict[str, Any]()
        if isinstance(read, BadLine):
            return read
        fields = flat(read, known.kept)
        for name, value in fields.items():
            role = known.roles.get(name)
            if role is None and is_broken(name):
                written = quote_bytes(name.encode("utf-8", "backslashreplace"))
                return BadLine("", 0, 1, "names that are valid Unicode", written, line)
            if role is None or value is None:
                continue
            values[name] = _as(value, role)
            if values[name] is _WRONG:
                found = quote_bytes(_to_json(value).encode("utf-8", "backslashreplace"))
                if _says_missing(value):
                    found += (
                        "; write null for a missing value, or leave out such rows with"
                        f" {mention(on_error='skip')}"
                    )
                return BadLine("", 0, 1, f"{_MEANT[role]} in column '{name}'", found, line)
        known.enter(read)  # of a good line alone: compiled code takes known names for sound
        return _Object(fields, values)


def read_object(line: bytes) -> dict[str, object] | BadLine:
    """The object of a line; or the bad line."""
    if line.count(b"[") + line.count(b"{") > _DEEPEST:
        found = (one[0] for one in _BRACKETS_AND_TEXTS.finditer(line))
        if any(depth > _DEEPEST for depth in accumulate((one in b"[{") - (one in b"]}") for one in found)):
            return BadLine("", 0, 1, "a JSON object", "one that is nested too deeply", line)
    try:
        read = _DECODER.decode(str(line, "utf-8"))
    except json.JSONDecodeError as error:
        rest = error.doc[error.pos :].encode()
        expected = LINE_END if error.msg == "Extra data" and line[:1] == b"{" else "a JSON object"
        return BadLine("", 0, error.pos + 1, expected, quote_bytes(rest), line)
    except UnicodeDecodeError as error:
        return BadLine(
            "", 0, error.start + 1, "UTF-8", f"{quote_bytes(line[error.start :])}; {TO_UTF8}", line
        )
    return read if isinstance(read, dict) else BadLine("", 0, 1, "a JSON object", quote_bytes(line), line)


def is_broken(text: str) -> bool:
    """Whether a text has half of a surrogate pair."""
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)


def objects_in(text: bytes, every: bool = False) -> list[dict[str, object]]:
    """The objects in lines, finite numbers as texts: none if one is bad; with `every`, {} for a bad one."""
    found = [
        {
            name: one.written if isinstance(one, _Number) and one.written[-1].isdigit() else one
            for name, one in flat(object_in(line) or {}, ()).items()
        }
        for line in text.split(b"\n")
        if line.strip()
    ]
    return found if every or all(found) else []


def object_in(line: bytes) -> dict[str, Any] | None:
    """The object of a line, with numbers as `text_of` writes them; None for anything else."""
    found = read_object(line)
    return found if isinstance(found, dict) else None


def _to_json(value: object) -> str:
    """A value as JSON, letters as they are, and numbers as they were written."""
    if isinstance(value, str):
        return json.encoder.encode_basestring(value)
    if isinstance(value, _Number):
        return value.written
    if isinstance(value, list):
        return f"[{', '.join(map(_to_json, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_to_json(name)}: {_to_json(one)}' for name, one in value.items())}}}"
    return json.dumps(value)


def _as(value: object, role: int) -> object:
    """A JSON value as a role wants it, a number as text in one spelling; `_WRONG` if it cannot be."""
    if role in (CLASSES, NAMES):
        if not isinstance(value, list):
            return _WRONG
        if role == CLASSES:
            return value if all(isinstance(one, bool | _Number) for one in value) else _WRONG
        found = [str(one) if isinstance(one, _Whole) else one for one in value]
        usual = (one is None or (isinstance(one, str) and not is_broken(one)) for one in found)
        return found if all(usual) else _WRONG
    if isinstance(value, str):
        return value if role == WORDS and not is_broken(value) else _WRONG
    if not isinstance(value, bool | _Number):
        return _WRONG
    if role == NUMBER:
        return value
    finite = isinstance(value, bool) or value.written[-1].isdigit()
    return _respelled(str(value).lower()) if finite else _WRONG


_respelled = lru_cache(1 << 12)(respell)
