"""JSON lines: one object per line, whose fields are columns.

An absent field and null are missing values. A field that is not a column of the layout is ignored; the first
values of such fields are noticed. Compiled code (`json_cells`) reads usual lines. It stops at one that is
unusual, such as a bad or blank one, whose values Python enters into the same cells, and goes on behind it. A
test checks that both read the same.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.data import columns
from thresher.data.chunk import concat
from thresher.data.columns import CATEGORICAL, EMPTY, LABEL, LIST, MOST_COLUMNS, NUMBERS, NUMERIC, TEXT
from thresher.data.errors import BadLine, DataError, OddFileError, shown
from thresher.data.files.blocks import LINES
from thresher.data.files.paths import is_stream
from thresher.data.files.streams import OpenStreams
from thresher.data.formats import line_status
from thresher.data.formats.choosing import looks_pretty
from thresher.data.formats.lines.parse_loop import too_long
from thresher.data.formats.tables.arrow_batches import BatchParser, fits, guess, spelling_of_type
from thresher.data.formats.tables.arrow_files import by_schema, has_words, kinds_by, types_in
from thresher.data.formats.tables.delimited import HEAD, beginning, lines_of
from thresher.data.formats.tables.json_cells import NESTED, STRINGS, TRUTHS, ObjectColumns
from thresher.data.formats.tables.json_cells import NUMBERS as WRITTEN_NUMBERS
from thresher.data.formats.tables.spellings import hint_of_numbers, spelling_of_texts, text_of, with_usual
from thresher.data.formats.tables.table_rows import ColumnEncodings, ParserMaker
from thresher.data.formats.tables.where import MARKED, Filter
from thresher.data.labels import LISTED
from thresher.data.layout import AnyLayout, Extension, SettledLayout, has_columns
from thresher.data.report import FOUND, LACKING, LATE, MOST_LATE, Noted
from thresher.data.sources.reader import FAIL, QUARANTINE, LineTally, Parsed, Reading
from thresher.data.text.numbers import means_missing
from thresher.data.text.spelling import respelled
from thresher.data.text.utf8 import REMEDIES, undecoded
from thresher.options.messages import mention

_NEWLINE = ord("\n")
_LONG = 400
"""Digits of a whole number, beyond which Python's reader fails"""
_LOOKS = {WRITTEN_NUMBERS: NUMERIC, STRINGS: CATEGORICAL, TRUTHS: CATEGORICAL, NESTED: ""}
"""What a field looks like that has a value of a kind"""


class _Beyond(float):
    """A number beyond those of float64, as infinity or 0. As text, it is as it was written."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, written: str) -> _Beyond:
        made = super().__new__(cls, written)
        made.written = written
        return made

    def __str__(self) -> str:
        return self.written


_TYPES = {
    _Beyond: pa.float64(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    dict: pa.struct([]),
}

_MOST_CELLS, _SPARSE = 10_000_000, 16
"""Cells that the first lines may have, and how many for a byte if that is more; each takes time and memory"""
LINE_END = "the end of the line after its object"
"""What is expected where another object follows"""
_USUAL = 16
"""How many times as many usual lines must follow those that are read one by one, or these become more"""

_NUMBER, _TEXT, _CLASSES, _NAMES = (
    "a number",
    "text, a finite number, true or false",
    "a list (a number each)",
    "a list (text or a whole number each)",
)
"""What the values of a field must be: texts, numbers and bools alike are read as text"""
_WRONG = object()
"""In place of a value that is not what it must be"""
_LARGE = pa.decimal128(38, 0)
"""The type of whole numbers beyond 64 bits"""


class _Object(NamedTuple):
    """The object of a line."""

    fields: dict[str, Any]
    """all, with their values"""
    values: dict[str, Any]
    """those that are read, as `_as` gives their values; None where there is none"""


class _JsonHead(NamedTuple):
    """What the first rows of a file show of its fields."""

    fields: Any
    """a schema of them"""
    values: Mapping[str, list[str | bool | float]]
    """their values other than lists"""
    lines: int
    size: int
    """bytes of these"""


def open_table(
    names: list[str],
    layout: AnyLayout,
    streams: OpenStreams,
    unlabelled: bool,
    ids: str = "",
    live: bool = False,
    marked: str = "",
) -> tuple[SettledLayout, ParserMaker]:
    """The settled layout of files, and the maker of their parsers. Raises `DataError`.

    If `live`, a stream is read up to its first line, which says little about the others: the type of a field
    that does not fit the layout there is left open.
    """
    whole, heads, found = True, list[_JsonHead](), layout
    for name in names:
        head = beginning(name, streams, live)
        whole = whole and len(head) < HEAD
        heads.append(_head_of(lines_of(head, name), name, live and is_stream(name), ids))
    if not has_columns(found):
        types = types_in(one.fields for one in heads)
        values = dict(pair for one in reversed(heads) for pair in one.values.items())
        first = pa.schema([field.with_type(types[field.name]) for field in heads[0].fields])
        guesses = [EMPTY if pa.types.is_null(kind) else guess(kind) for kind in first.types]
        spelling = {
            field: spelling_of_type(kind)
            or spelling_of_texts(one for one in values.get(field, ()) if isinstance(one, str))
            for field, kind in types.items()
        }
        later = [one.fields for one in heads[1:]]
        found = by_schema(layout, first, guesses, names[0], spelling, later, not whole)
        found = with_usual(found, layout, lambda field: map(text_of, values.get(field, ())))
    used = found.unlabelled() if unlabelled else found
    files, may_be_words = list[ColumnEncodings](), False
    new = layout.new(used.columns) if isinstance(layout, Extension) else []
    for name, rows in zip(names, heads, strict=True):
        one_by_one = live and is_stream(name)
        there = [one for one in rows.fields.names if one != ids]
        lacking = [] if one_by_one else columns.lacking_in_objects(used, there, name, new)
        kinds, has_text = _kinds(used, _fitting(used, rows, one_by_one), name, ids, lacking)
        if marked:
            kinds = kinds._replace(marks=Filter(marked, None, name, MARKED))
        files.append(kinds)
        may_be_words = may_be_words or has_text
        if len(kinds.types) * rows.lines > max(_MOST_CELLS, _SPARSE * rows.size):
            raise DataError(
                f"{name}: {len(kinds.types):,} columns in its first {rows.lines:,} lines, most without a"
                " value. JSON lines are a table, with a cell for each column and line: put such features in"
                " one field, as a list of names or a text, or write VW text"
            )
    return found, ParserMaker(JsonlParser, files, may_be_words)


def form_of(layout: SettledLayout, unlabelled: bool, ids: str, lists: bool, name: str) -> ParserMaker:
    """The maker of parsers for lines of which none has been seen, called `name` in messages.

    `lists` says whether labels are lists of classes.
    """
    used = layout.unlabelled() if unlabelled else layout
    label = pa.list_(pa.float64()) if lists else pa.string()  # of texts, which may be numbers, or numbers
    kinds = zip(used.columns, used.kinds, strict=True)
    known = [pa.field(column, label) for column, kind in kinds if kind == LABEL]
    known += [pa.field(ids, pa.null())] if ids and ids not in used.columns else []
    return ParserMaker(JsonlParser, [_kinds(used, known, name, ids)[0]])


def _kinds(
    layout: SettledLayout, fields: Iterable[Any], name: str, ids: str, lacking: Sequence[str] = ()
) -> tuple[ColumnEncodings, bool]:
    """How the `fields` of a file are read, with no value of those `lacking`; and whether labels are text.

    Columns have the order of the layout: so the same rows give the same sums, in whatever order their fields
    are. Raises `DataError` unless they fit the layout.
    """
    there = {field.name: field for field in fields}
    known = [there.pop(name, pa.field(name, pa.null())) for name in layout.columns]
    schema, types = pa.schema([*known, *there.values()]), dict[str, str]()
    kinds = kinds_by(layout, schema, name, ids)
    for field, what in zip(schema, kinds.what, strict=True):
        if what in NUMBERS or (what == LABEL and pa.types.is_boolean(field.type)):
            types[field.name] = _NUMBER
        elif what == LABEL and not (pa.types.is_string(field.type) or layout.classes):
            types[field.name] = _CLASSES if pa.types.is_list(field.type) else _NUMBER
        elif what not in columns.UNREAD:
            types[field.name] = _NAMES if what == LIST else _TEXT
    noticed = tuple((LACKING, one, 0, "") for one in lacking)
    return kinds._replace(noticed=noticed, types=types), has_words(kinds, schema)


def _fitting(layout: SettledLayout, head: _JsonHead, live: bool) -> Any:
    """The first fields of a file, each with the first of its types that fits its kind in the layout.

    If `live`, a type that does not fit is left open.
    """
    kinds, fields = dict(zip(layout.columns, layout.kinds, strict=True)), list[Any]()
    for field in head.fields:
        kind = kinds.get(field.name, "")
        values = (one for one in head.values.get(field.name, ()) if not _says_missing(one))
        types = dict.fromkeys([field.type, *(_TYPES[one] for one in dict.fromkeys(map(type, values)))])
        fit = [one for one in types if fits(one, kind)]
        if kind in (CATEGORICAL, TEXT):
            fit.sort(key=lambda one: not pa.types.is_string(one))
        elif kind in NUMBERS:
            fit.sort(key=pa.types.is_boolean)
        fields.append(field.with_type(fit[0] if fit else pa.null() if live else field.type))
    return pa.schema(fields)


def _head_of(lines: Sequence[bytes], name: str, live: bool, ids: str) -> _JsonHead:
    """The fields of the objects in `lines`.

    A field without a value has the type null; if `live` and there is no object yet, so has the field `ids`.
    """
    if pretty := looks_pretty(lines[0]):
        raise OddFileError(f"{name}: {pretty}")
    found, objects, values = dict[str, Any](), 0, defaultdict[str, list[str | bool | float]](list)
    for line in lines:
        if (count := line.count(b'":')) > MOST_COLUMNS:
            raise DataError(f"{name}: {columns.too_many(count)}")
        try:
            read = _DECODER.decode(str(line, "utf-8"))
            "".join(read).encode()  # a name cannot contain a lone surrogate
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(read, dict):
            objects += 1
            for field, value in read.items():
                kind = found.setdefault(field, pa.null())
                if isinstance(value, str | int | float):
                    values[field].append(value)
                if not _says_missing(value):
                    found[field] = _wider(kind, value)
    for field in [field for field, kind in found.items() if pa.types.is_null(kind)]:
        if some := {*map(type, values.get(field, ()))} & {str, float}:
            found[field] = pa.string() if str in some else pa.float64()
    if not objects and not live:
        wrong = undecoded(np.frombuffer(b"\n".join(lines), np.uint8))
        hint = f" in UTF-8; {REMEDIES[wrong.looks]}" if wrong else ""
        raise DataError(f"{name}: none of its first lines is a JSON object{hint}")
    if not objects and ids:
        found[ids] = pa.null()
    fields = pa.schema([pa.field(field, kind) for field, kind in found.items()])
    return _JsonHead(fields, values, len(lines), sum(map(len, lines)))


def _says_missing(value: Any) -> bool:
    """Whether it is NaN or a text for a missing value, which say nothing about the type of other values."""
    if isinstance(value, str):
        return means_missing(value.encode("utf-8", "surrogatepass"))
    return isinstance(value, float) and math.isnan(value)


def _wider(kind: Any, value: Any) -> Any:
    """The type of a field of type `kind` that now has `value`: numbers widen, other types stay."""
    if isinstance(value, list):
        if not (pa.types.is_null(kind) or pa.types.is_list(kind)):
            return kind
        inner = kind.value_type if pa.types.is_list(kind) else pa.null()
        for one in value:
            inner = _wider(inner, one)
        return pa.list_(pa.int64() if inner == _LARGE else inner)
    if value is None or not (pa.types.is_null(kind) or pa.types.is_integer(kind)):
        return kind
    if type(value) is int and not -(2**63) <= value < 2**63:
        return _LARGE
    return _TYPES[type(value)] if pa.types.is_null(kind) or isinstance(value, float) else kind


class JsonlParser(BatchParser):
    """Parses blocks of JSON lines into chunks."""

    def __init__(self, files: Sequence[ColumnEncodings], layout: SettledLayout, reading: Reading) -> None:
        super().__init__(files, layout, reading)
        self._cutters = dict[int, ObjectColumns]()
        self._ignored = columns.Patterns(layout.ignore)
        kinds = zip(layout.columns, layout.kinds, strict=True)
        self._known = {name: LATE if kind == EMPTY else "" for name, kind in kinds}
        self._known |= dict.fromkeys(layout.awaited, FOUND)
        self._known.setdefault(next((one.ids for one in files if one.ids), ""), "")

    def parse(self, block: Any) -> Parsed:
        """Parse the examples of a block of lines into arrays of an arena."""
        if block.kind != LINES:
            return too_long(block, self._reading)
        kinds, text = self._files[block.file], block.text[: block.size]
        if block.file not in self._cutters:
            words, lists = self._domain.words is not None, self._domain.kind == LISTED
            self._cutters[block.file] = ObjectColumns(kinds, words, lists, self._watched)
        objects = self._cutters[block.file]
        ends = np.append(block.begin, np.flatnonzero(text[block.begin :] == _NEWLINE) + block.begin + 1)
        most, found = objects.most_lines(block.size), list[Parsed]()
        for lo in range(0, max(1, len(ends) - 1), most):
            found.append(self._lines(objects, kinds, text, ends[lo : lo + most + 1]))
            if found[-1].bad and self._on_error == FAIL:
                break
        parsed, beside = self._joined(found), kinds.beside(self._reading.sliced)
        parsed = parsed._replace(noticed=kinds.noticed + tuple(parsed.noticed))
        return kinds.with_cells(parsed, _cells(text[block.begin :].tobytes(), beside)) if beside else parsed

    def _watched(self, name: str) -> str:
        """Why a field is watched: its values are `LATE`, and so ignored, or it is awaited, to be `FOUND`."""
        found = self._known.get(name)
        return ("" if name in self._ignored else LATE) if found is None else found

    def _lines(
        self, objects: ObjectColumns, kinds: ColumnEncodings, text: NDArray[np.uint8], ends: NDArray[np.int64]
    ) -> Parsed:
        """Parse the lines between `ends`: usual lines with compiled code, and those between them one by one.

        The more of these there are, the more lines are read one by one before compiled code goes on.
        """
        count, wrong = len(ends) - 1, undecoded(text[ends[0] : ends[-1]])
        odd = np.array([count])
        if wrong is not None:
            odd = np.append(np.unique(np.searchsorted(ends, wrong.places + ends[0], "right") - 1), count)
        lines, refused, blank = np.zeros(count, np.int64), list[BadLine](), 0  # lines are those of rows
        noticed = dict[tuple[str, str], tuple[str, str, int, str]]()
        objects.start(int(ends[-1] - ends[0]), count)
        at, few = 0, 1
        while at < count and not (refused and self._on_error == FAIL):
            begin, stop, row = at, int(odd[np.searchsorted(odd, at)]), objects.row
            if stop > at:
                at += objects.cut(text, int(ends[at]), int(ends[stop]), stop - at)
                lines[row : objects.row] = range(begin, at)
            last = min(at + few, count)
            few, values = 2 * few if at - begin < _USUAL * few else 1, list[dict[str, Any]]()
            for line in text[ends[at] : ends[last]].tobytes().split(b"\n")[:-1]:
                at += 1
                if not line.strip():
                    blank += 1
                    continue
                read = self._object(line, kinds.types)
                if isinstance(read, BadLine):
                    refused.append(read._replace(line=at))
                    if self._on_error == FAIL:
                        break
                    continue
                lines[objects.row + len(values)] = at - 1
                values.append(read.values)
                for name, value in read.fields.items():
                    if value is not None and (what := self._watched(name)):
                        noticed.setdefault((what, name), (what, name, at, _looks(value)))
            if values:
                objects.enter(values)
        cells, naming = objects.found(self._reading.naming is not None), self._reading.naming
        held, most = list[Any](), cells.most
        for k, c, texts in cells.others:
            own, features = self.point(cells.table[k], texts, kinds, c)
            held += own
            most += features
        chunk, merged, found = self.encoded_columns(objects.row, kinds, cells.table, most)
        if naming is not None:
            self.offer_names(kinds, cells.named)
        firsts = [
            (self._watched(name), name, int(lines[row]) + 1, _LOOKS[kind]) for row, kind, name in cells.firsts
        ]
        wrong_rows = [row for row, _ in found]
        places = np.sort(np.append(lines[wrong_rows], [one.line - 1 for one in refused]).astype(int))
        rejected = [text[ends[line] : ends[line + 1]].tobytes() for line in places]
        bad = refused + [
            self._bad_row(kinds, code, int(k) + 1, text[ends[k] : ends[k + 1] - 1].tobytes())
            for k, (_, code) in zip(lines[wrong_rows], found[: self._reading.described], strict=False)
        ]
        bad.sort(key=lambda one: one.line)
        return Parsed(
            chunk,
            LineTally(at, len(chunk), blank, len(places), merged),
            bad[: self._reading.described],
            b"".join(rejected) if self._on_error == QUARANTINE else b"",
            noticed=_sorted([*noticed.values(), *(one for one in firsts if one[0])]),
            gaps=np.searchsorted(np.delete(lines[: objects.row], wrong_rows), places).tolist(),
        )

    def _joined(self, pieces: Sequence[Parsed]) -> Parsed:
        if len(pieces) == 1:
            return pieces[0]
        lines, rows, found = 0, 0, list[tuple[str, str, int, str]]()
        bad, gaps = list[BadLine](), list[int]()
        for one in pieces:
            found += [(what, name, lines + line, looks) for what, name, line, looks in one.noticed]
            bad += [each._replace(line=lines + each.line) for each in one.bad]
            gaps += [rows + gap for gap in one.gaps]
            lines, rows = lines + one.tally.lines, rows + len(one.chunk)
        return Parsed(
            concat([one.chunk for one in pieces]),
            LineTally(*map(sum, zip(*(one.tally for one in pieces), strict=True))),
            bad[: self._reading.described],
            b"".join(one.rejected for one in pieces),
            noticed=_sorted(found),
            gaps=gaps,
        )

    def _bad_row(self, kinds: ColumnEncodings, code: int, line: int, raw: bytes) -> BadLine:
        """The bad line; if its object lacks the field in question, with the one that may be meant."""
        read, name = self._object(raw, kinds.types), kinds.names[code // line_status.OUTCOMES]
        assert isinstance(read, _Object)
        bad = self.bad_row(kinds, read.values.get(name), code, line, raw)
        if bad.found != "null" or name in read.fields:
            return bad
        near = columns.misspelt(columns.unexpected(self._layout, [*read.fields]), [name])
        return bad._replace(found="no such field" + "".join(f": did you mean '{one}'?" for one in near))

    def _object(self, line: bytes, types: Mapping[str, str]) -> _Object | BadLine:
        """The fields of a line, those in `types` of these types; or the bad line."""
        try:
            read = _DECODER.decode(str(line, "utf-8"))
        except json.JSONDecodeError as error:
            rest = error.doc[error.pos :].encode()
            expected = LINE_END if error.msg == "Extra data" and line[:1] == b"{" else "a JSON object"
            return BadLine("", 0, error.pos + 1, expected, shown(rest), line)
        except RecursionError:
            return BadLine("", 0, 1, "a JSON object", "one that is nested too deeply", line)
        except UnicodeDecodeError as error:
            wrong = undecoded(np.frombuffer(line, np.uint8))
            remedy = f"; {REMEDIES[wrong.looks]}" if wrong else ""
            return BadLine("", 0, error.start + 1, "UTF-8", shown(line[error.start :]) + remedy, line)
        except ValueError as error:
            return BadLine("", 0, 1, "a JSON object", str(error), line)
        if not isinstance(read, dict):
            return BadLine("", 0, 1, "a JSON object", shown(line), line)
        values = dict[str, Any].fromkeys(types)
        for name, value in read.items():
            kind = types.get(name)
            if kind is None and is_broken(name):
                written = shown(name.encode("utf-8", "backslashreplace"))
                return BadLine("", 0, 1, "names that are valid Unicode", written, line)
            if kind is None:
                continue
            values[name] = _as(value, kind)
            if values[name] is _WRONG:
                found = shown(json.dumps(value).encode())
                if _says_missing(value):
                    found += (
                        "; write null for a missing value, or leave out such rows with"
                        f" {mention(on_error='skip')}"
                    )
                elif isinstance(value, str):
                    found += hint_of_numbers(value)
                return BadLine("", 0, 1, f"{kind} in column '{name}'", found, line)
        return _Object(read, values)


def _looks(value: Any) -> str:
    """What a field looks like that has this value; empty for a list or an object."""
    if isinstance(value, list | dict):
        return ""
    return CATEGORICAL if isinstance(value, str | bool) else NUMERIC


def _sorted(found: Iterable[tuple[str, str, int, str]]) -> Noted:
    """What was noticed first of each field, in an order that does not depend on where blocks are cut.

    Of late fields enough are kept that the first `MOST_LATE` of all blocks are among them.
    """
    first = dict[tuple[str, str], tuple[str, str, int, str]]()
    for one in sorted(found, key=lambda one: (one[2], one)):
        first.setdefault(one[:2], one)
    late = [one for one in first.values() if one[0] == LATE][: 2 * MOST_LATE]
    return (*late, *(one for one in first.values() if one[0] != LATE))


def is_broken(text: str) -> bool:
    """Whether a text has half of a surrogate pair."""
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)


def _cells(text: bytes, fields: Sequence[str]) -> list[list[str]]:
    """Fields of each line that is not blank, numbers as written; empty where they are absent or null."""
    found = list[list[str]]([] for _ in fields)
    for line in text.split(b"\n"):
        if line.strip():
            read = _read(line)
            for field, cells in zip(fields, found, strict=True):
                value = read.get(field)
                cells.append(value if isinstance(value, str) else "" if value is None else json.dumps(value))
    return found


def objects_in(text: bytes, every: bool = False) -> list[dict[str, Any]]:
    """The objects in lines, numbers as texts: none if one is bad; with `every`, {} for a bad one."""
    found = [_read(line) for line in text.split(b"\n") if line.strip()]
    return found if every or all(found) else []


def _read(line: bytes) -> dict[str, Any]:
    """An object, with numbers as texts; empty for anything else."""
    try:
        read = json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _number(written: str) -> float:
    number = float(written)
    beyond = number in (0.0, math.inf, -math.inf) and any(
        c in "123456789" for c in written.lower().split("e")[0]
    )
    return _Beyond(written) if beyond else number


_DECODER = json.JSONDecoder(
    parse_int=lambda digits: int(digits) if len(digits) < _LONG else _number(digits), parse_float=_number
)


def _as(value: Any, kind: str) -> Any:
    """A JSON value for pyarrow, numbers as texts in one spelling each; `_WRONG` if it is not of this kind."""
    if value is None:
        return None
    if kind in (_CLASSES, _NAMES):
        if not isinstance(value, list):
            return _WRONG
        if kind == _CLASSES:
            found = [_WRONG if one is None else _as(one, _NUMBER) for one in value]
        else:
            texts = (str(one) if type(one) is int else one for one in value)
            found = [one if one is None or isinstance(one, str) else _WRONG for one in texts]
            found = [_WRONG if isinstance(one, str) and is_broken(one) else one for one in found]
        return _WRONG if _WRONG in found else found
    if isinstance(value, str):
        return value if kind == _TEXT and not is_broken(value) else _WRONG
    if not isinstance(value, int | float):
        return _WRONG
    if kind == _TEXT:
        finite = abs(value) < math.inf or isinstance(value, _Beyond)
        return _respelled(str(value).lower()) if finite else _WRONG
    try:
        return float(value)
    except OverflowError:
        return math.inf


_respelled = lru_cache(1 << 12)(respelled)
