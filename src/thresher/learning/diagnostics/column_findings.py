"""Trouble with the columns of tables, as the first rows and reading show it.

A finder returns a message or nothing: `of_table` by the first rows, `of_reading` by what reading noticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from thresher.data import report as noticed
from thresher.data.columns import (
    AS_BOOLEAN,
    AS_DATE,
    AS_NUMBER,
    AS_TEXT,
    CATEGORICAL,
    LABEL,
    NUMERIC,
    WILD,
    as_option_value,
    column_meant,
    matching,
    misspelt,
)
from thresher.data.errors import DataError, first_few, shown
from thresher.data.feature_specs import as_list, terms_of
from thresher.data.features.crossing import namespaces_in
from thresher.data.files.paths import called, is_stream
from thresher.data.files.remote import is_remote
from thresher.data.files.streams import head_of
from thresher.data.formats.choosing import CSV_OF_TABS
from thresher.data.formats.tables.column_statistics import ColumnSeen, shown_cell
from thresher.data.layout import has_columns
from thresher.data.report import Noticed, Report
from thresher.data.source import Source
from thresher.data.text.utf8 import REMEDIES
from thresher.learning.diagnostics.findings import FEW, Finders, Finding
from thresher.options.messages import mention

_FRACTION = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
"""A number that is rarely the name of a column."""
_SHOWN, _HEAD = 12, 1 << 16
"""How many namespaces are listed, and from how many bytes of a file"""
_WORDS = 3.0
"""Cells with this many words on average are text."""


class SeenTable(NamedTuple):
    """The columns of a table in its first rows, and its layout."""

    columns: Sequence[ColumnSeen]
    layout: Any

    def option(self, names: Sequence[str]) -> str:
        """Columns as the value of an option."""
        return as_option_value(names, self.layout.columns)

    def called(self, name: str) -> str:
        """A column in a message; by its number if it has no name."""
        return name or f"{self.layout.columns.index(name) + 1} (without a name)"

    def those(self, test: Any) -> list[ColumnSeen]:
        """The columns that have enough rows, and something."""
        return [column for column in self.columns if column.rows > FEW and test(column)]


of_table = Finders[SeenTable]()


def is_id(column: ColumnSeen) -> bool:
    """Whether a column only identifies rows."""
    if column.distinct < column.rows or column.strays or column.is_numbers or column.written:
        return False
    if column.is_index:
        return False
    if column.kind == CATEGORICAL:
        return not is_text(column)
    return column.kind == NUMERIC and column.counts_rows


def is_text(column: ColumnSeen) -> bool:
    """Whether the cells of a column are text."""
    return column.kind == CATEGORICAL and column.words >= _WORDS and 2 * column.distinct > column.rows


def _several(names: Sequence[str], one: str = "", many: str = "") -> str:
    return f"columns {', '.join(names)}{many}" if len(names) > 1 else f"column {names[0]}{one}"


@of_table("quoted-cells")
def _quotes(table: SeenTable) -> str | None:
    found = [column for column in table.columns if column.quoted]
    if not found:
        return None
    names = ", ".join(column.name for column in found[:3]) + (" and others" if len(found) > 3 else "")
    reason = f"cells of column{'s' * (len(found) > 1)} {names} are in quotes ({shown_cell(found[0].quoted)})"
    return f"{reason}, which are part of the value in TSV: read the file with {CSV_OF_TABS} to remove them"


@of_table("index-column")
def _index(table: SeenTable) -> str | None:
    names = [column.name for column in table.those(lambda column: column.is_index)]
    if not names:
        return None
    reason = f"column {', '.join(map(table.called, names))} holds row numbers, as pandas and R write them"
    return f"{reason}: leave it out with {mention(ignore=table.option(names))}"


@of_table("id-columns")
def _ids(table: SeenTable) -> str | None:
    names = [column.name for column in table.those(is_id)]
    if not names:
        return None
    reason = f"{_several(names, ' differs', ' differ')} in every one of the first"
    rows = max(column.rows for column in table.columns)
    remedy = f"leave out columns that only identify rows with {mention(ignore=table.option(names))}"
    return f"{reason} {rows:,} rows: {remedy}"


@of_table("codes-as-numbers")
def _codes(table: SeenTable) -> str | None:
    found = table.those(lambda column: column.is_code and not is_id(column))
    if not found:
        return None
    names, several = [column.name for column in found], len(found) > 1
    example = shown_cell(found[0].example) + (f" in column {names[0]}" if several else "")
    first = table.layout.columns.index(names[0])
    together = len(names) > 2 and table.layout.columns[first : first + len(names)] == tuple(names)
    value = table.option([f"{names[0]}-{names[-1]}"] if together else names)
    which = f"{'columns' if several else 'column'} {first_few(names)} {'look' if several else 'looks'}"
    reason = f"{which} like codes ({example}), but the model reads them as amounts"
    return f"{reason}: use {mention(categorical=value)}, or {mention(numeric=value)} if they are amounts"


@of_table("numbers-as-categories")
def _numbers(table: SeenTable) -> str | None:
    """Columns of numbers that are read as categories: numbers as text, or a few other cells among them."""
    if texts := [column.name for column in table.those(lambda column: column.is_numbers)]:
        reason = f"{_several(texts, ' is', ' are')} read as categories, because the numbers are given as text"
        return f"{reason}: store them as numbers"
    found = table.those(lambda column: column.strays)
    if not found:
        return None
    names, first = [table.called(column.name) for column in found], found[0]
    cells = ", ".join(map(shown_cell, first.strays[:3])) + ", ..." * (len(first.strays) > 3)
    but = f"its cells are numbers except {cells}"
    if len(found) > 1:
        but = f"nearly all their cells are numbers (not {cells} in column {names[0]})"
    if not first.means_missing or any("," in cell for cell in first.strays):
        remedy = f"use {mention(numeric=table.option([first.name]), on_error='skip')} to leave out such rows"
    elif not all(map(str.isprintable, first.strays)):
        remedy = "leave such cells empty"
    elif not table.layout.delimited_by:
        remedy = "replace them by null, and let the column hold numbers"
    else:
        remedy = f"use {mention(missing=','.join(first.strays))} for missing values"
    return f"{_several(names, ' is', ' are')} read as categories, though {but}: {remedy}"


def _as_written(found: Sequence[ColumnSeen], remedy: str) -> str | None:
    """Columns of numbers or dates in a form that is not read as such."""
    if not found:
        return None
    shapes = [f"column {one.name} holds {one.written} ({shown_cell(one.example)})" for one in found[:3]]
    listed = "; ".join(shapes) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")
    return f"{listed}, which are read as categories: {remedy}"


@of_table("formatted-numbers")
def _formatted(table: SeenTable) -> str | None:
    found = table.those(lambda column: column.written and not column.is_dates)
    return _as_written(found, "write plain numbers, such as 1234.5")


@of_table("dates-as-categories")
def _dates(table: SeenTable) -> str | None:
    remedy = (
        "turn them into numbers, such as days since the first, or into categories that come again, such as"
        " the weekday"
    )
    return _as_written(table.those(lambda column: column.is_dates), remedy)


@of_table("text-columns")
def _texts(table: SeenTable) -> str | None:
    found = table.those(is_text)
    if not found:
        return None
    names, one = [column.name for column in found], found[0]
    reason = f"{one.words:.0f} words a cell, {one.distinct:,} different ones in {one.rows:,} rows"
    which = _several([*map(table.called, names)])
    remedy = f"use {mention(text=table.option(names))}"
    return f"each cell of {which} is read as one category ({reason}): {remedy}"


@of_table("numbers-as-names")
def _names(table: SeenTable) -> str | None:
    """Column names such as 0.25: the header is more likely a row of data."""
    columns = [column for column in table.columns if column.kind != LABEL]
    found = [column.name for column in columns if _FRACTION.fullmatch(column.name)]
    if 2 * len(found) <= len(columns):
        return None
    reason = f"the first row is read as the names of columns ({', '.join(found[:3])})"
    return f"{reason}: if it is an example, use {mention(header=False)}"


@of_table("no-such-column")
def _unmatched(table: SeenTable) -> str | None:
    """Patterns of columns to leave out that match none; in JSON lines, fields that come late may match.

    A name or a place that is not there has been refused before.
    """
    layout = table.layout
    if layout is None or layout.format == "jsonl" or not has_columns(layout):
        return None
    never = [one for one in layout.ignore if WILD.search(one) and not matching(one, layout.columns)]
    if not never:
        return None
    listed = first_few([mention(ignore=as_list([one])) for one in never])
    return f"no column matches {listed}: {column_meant(never[0], layout.columns)}"


def troubles_of_columns(columns: Sequence[ColumnSeen], layout: Any) -> list[Finding]:
    """Trouble with the columns of a table that was read with this layout."""
    return of_table.found(SeenTable(columns, layout))


class SeenReading:
    """What reading has noticed; `layout`: the one settled for these data, if any.

    `goes_on`: whether the model had learned other data before, so that its columns are as they are.
    """

    def __init__(self, report: Report, layout: Any = None, goes_on: bool = False) -> None:
        self.report, self.layout, self.goes_on = report, layout, goes_on

    def noticed(self, *kinds: str) -> list[Noticed]:
        """What was noticed of these kinds."""
        return [one for one in self.report.noticed if one.what in kinds]

    @cached_property
    def renamed(self) -> dict[Noticed, Noticed]:
        """Columns not known before, each with one of nearly the same name that the same file lacks."""
        found, lacking = dict[Noticed, Noticed](), self.noticed(noticed.LACKING)
        strange = self.noticed(noticed.LATE) + self.noticed(noticed.NEW)
        for place in dict.fromkeys(one.place for one in lacking):
            free = {one.column: one for one in lacking if one.place == place}
            there = {one.column: one for one in strange if one.place.startswith(place)}
            found |= {there[name]: free[near] for name, near in misspelt(there, free).items()}
        return found


of_reading = Finders[SeenReading]()


def troubles_of_reading(report: Report, layout: Any = None, goes_on: bool = False) -> list[Finding]:
    """Trouble with columns that reading has shown: see `SeenReading`."""
    return of_reading.found(SeenReading(report, layout, goes_on))


def _likewise(more: int) -> str:
    return f" (and {more} more column{'s' * (more > 1)} likewise)" if more else ""


@of_reading("late-columns")
def _late(read: SeenReading) -> str | None:
    found, layout = [one for one in read.noticed(noticed.LATE) if one not in read.renamed], read.layout
    if not found:
        return None
    names, more = [one.column for one in found], f" and {len(found) - 3} more" if len(found) > 3 else ""
    more = " and others" if len(found) >= noticed.MOST_LATE else more
    listed = [f"{one.column} ({one.place})" for one in found[:3]]
    several = len(names) > 1
    which = f"column{'s' * several} {', '.join(listed)}{more} {'are' if several else 'is'} ignored"
    if layout is None:
        named = as_option_value([name for name in names if name], ())
        remedy = f"leave out what it does not know with {mention(ignore=named)}" if named else "remove it"
        return f"{which}, because the model was trained without: {remedy}"
    kinds = [(kind, [one.column for one in found if one.kind == kind]) for kind in (NUMERIC, CATEGORICAL)]
    chosen = mention(**{kind: as_option_value(some, layout.columns) for kind, some in kinds if some})
    remedy = f"use {chosen} to learn from {'them' if several else 'it'}, or " if chosen else "use "
    rows = "rows have no value there" if layout.format == "jsonl" or {*names} & {*layout.columns} else ""
    reason = f"{which}, because the first {rows or 'file has no such column'}"
    return f"{reason}: {remedy}{mention(ignore=as_option_value(names, layout.columns))}"


@of_reading("missing-columns")
def _misspelt(read: SeenReading) -> str | None:
    if not read.renamed:
        return None
    late, lacking = next(iter(read.renamed.items()))
    reason = f"{lacking.place} has no column {lacking.column}, so every row has a missing value there"
    now = f"column {late.column} is {'new' if late.what == noticed.NEW else 'ignored'}"
    return f"{reason}; {now}: did you mean {lacking.column}?{_likewise(len(read.renamed) - 1)}"


@of_reading("missing-columns")
def _lacking(read: SeenReading) -> str | None:
    known = read.renamed.values()
    found = [one for one in read.noticed(noticed.LACKING) if one not in known]
    if not found:
        return None
    file, others = found[0].place, len({one.place for one in found}) - 1
    names = [one.column for one in found if one.place == file]
    files = f"{file} has" if not others else f"{file} and {others} more file{'s' * (others > 1)} have"
    reason = f"{files} no column{'s' * (len(names) > 1)} {first_few(names)}, so every row has a missing value"
    if read.layout is None or read.goes_on:
        return f"{reason} there: add it"
    named = as_option_value(names, read.layout.columns)
    return f"{reason} there: add it, or leave it out of all files with {mention(ignore=named)}"


@of_reading("no-such-column")
def _never(read: SeenReading) -> str | None:
    """Columns that an option names, and that never had a value; or a namespace that no row has."""
    layout = read.layout
    if not layout:
        return None
    found = {one.column for one in read.noticed(noticed.FOUND)}
    awaited = getattr(layout, "awaited", ()) if layout.format == "jsonl" else ()
    if not (names := [name for name in awaited if name not in found]):
        return None if read.goes_on else _no_namespace(read)
    kinds = dict(zip(layout.columns, layout.kinds, strict=True))
    hint = column_meant(names[0], [name for name in layout.columns if name not in awaited])
    option = mention(**{kinds[names[0]]: as_option_value(names[:1], layout.columns)})
    return f"no row has a value in column {names[0]} ({option}): {hint}"


def _no_namespace(read: SeenReading, some: Sequence[str] = ()) -> str | None:
    """A namespace that an interaction names and no row has; `some` are those of the first rows."""
    found = {one.column for one in read.noticed(noticed.FOUND)}
    never = [one.column for one in read.noticed(noticed.AWAITED) if one.column not in found]
    if not never:
        return None
    spec = next(one for one in read.layout.interact if never[0] in terms_of([one]).factors)
    what = "field" if read.layout.format == "libffm" else "namespace"
    known = f": the {what}s are {first_few(some, _SHOWN)}" if some else ""
    first = any(one[:1] == never[0] for one in some)
    whole = "; give whole names, not first letters as for -q" if first else ""
    return f"no row has the {what} '{never[0]}' of the interaction {spec}{known}{whole}"


def check_namespaces(source: Source, report: Report) -> None:
    """`DataError` if no row has a namespace that an interaction names, once all rows have been read."""
    read = SeenReading(report, source.layout)
    if source.layout is None or _no_namespace(read) is None:
        return
    name, some = source.names[0], list[str]()
    if not is_stream(name) and not is_remote(name):
        some = namespaces_in(head_of(name, _HEAD, {}), source.layout.format)
    raise DataError(f"{called(name)}: {_no_namespace(read, some)}")


@of_reading("repeated-header")
def _header(read: SeenReading) -> str | None:
    for one in read.noticed(noticed.HEADER):
        reason = f"the line {one.place} repeats the header, as in the middle of joined files"
        return f"{reason}: such lines are skipped; remove them from the data"
    return None


@of_reading("not-utf8")
def _not_utf8(read: SeenReading) -> str | None:
    for one in read.noticed(noticed.NOT_UTF8):
        count, at, looks = one.kind.split(" ")
        of_lines = at != "0"
        place = f"{one.place}:{at}" if of_lines else f"{one.place}, column {one.column}"
        what = "line" if of_lines else "row"
        lines = f"1 {what} has" if count == "1" else f"{int(count):,} {what}s have"
        reason = f"{lines} text that is not UTF-8 ({place}), so it differs from the same text in UTF-8"
        return f"{reason}: {REMEDIES[looks] if of_lines else 'store it as UTF-8'}"
    return None


_VALUES = {AS_NUMBER: "numbers", AS_BOOLEAN: "true and false", AS_DATE: "dates"}


@of_reading("respelled-column")
def _respelled(read: SeenReading) -> str | None:
    found = read.noticed(noticed.RESPELLED)
    if not found:
        return None
    what, _, cell = found[0].kind.partition(" ")
    now, before = shown_cell(cell), _VALUES.get(what, "")
    if what == AS_TEXT:
        now, before = (shown(one.encode("utf-8", "surrogatepass")) for one in json.loads(cell))
    more = _likewise(len({one.column for one in found}) - 1)
    reason = f"column {found[0].column} of {found[0].place} has {now} where the first file has {before}{more}"
    return f"{reason}: write them alike in all files"


@of_reading("other-labels")
def _other_labels(read: SeenReading) -> str | None:
    for one in read.noticed(noticed.OTHER_LABELS):
        there, name, here = one.column, one.place, one.kind
        unlike = f"do not occur in the files before it, whose labels are {there}"
        return f"the labels of {name} ({here}) {unlike}: if they mean the same, write them alike in all files"
    return None
