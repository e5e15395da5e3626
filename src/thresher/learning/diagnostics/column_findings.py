"""Trouble with the columns of tables, as the first rows and reading show it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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
from thresher.data.report import (
    AWAITED,
    FOUND,
    HEADER,
    LACKING,
    LATE,
    MOST_LATE,
    NEW,
    NOT_UTF8,
    OTHER_LABELS,
    RESPELLED,
    Noticed,
    Report,
)
from thresher.data.source import Source
from thresher.data.text.utf8 import REMEDIES
from thresher.learning.diagnostics.advice import missing_remedy
from thresher.learning.diagnostics.findings import FEW, Trouble
from thresher.options.messages import mention

_FRACTION = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
"""A number that is rarely the name of a column."""
_SHOWN, _HEAD = 12, 1 << 16
"""How many namespaces are listed, and from how many bytes of a file"""
_WORDS = 3.0
"""Cells with this many words on average are text."""


class SeenTable(NamedTuple):
    """What the finders of trouble with columns look at."""

    columns: Sequence[ColumnSeen]
    layout: Any

    def option(self, names: Sequence[str]) -> str:
        """Columns as the value of an option."""
        return as_option_value(names, self.layout.columns)

    def called(self, name: str) -> str:
        """A column in a message; by its number if it has no name."""
        return name or f"{self.layout.columns.index(name) + 1} (without a name)"


def _ids(table: SeenTable) -> Trouble | None:
    """Columns with a different value in every row, from which nothing can be learned."""
    names = [column.name for column in table.columns if column.rows > FEW and is_id(column)]
    if not names:
        return None
    which = f"columns {', '.join(names)} differ" if len(names) > 1 else f"column {names[0]} differs"
    rows = max(column.rows for column in table.columns)
    remedy = f"leave out columns that only identify rows with {mention(ignore=table.option(names))}"
    return Trouble("id-columns", f"{which} in every one of the first {rows:,} rows: {remedy}")


def _index(table: SeenTable) -> Trouble | None:
    """Row numbers written by pandas or R."""
    names = [column.name for column in table.columns if column.rows > FEW and column.is_index]
    if not names:
        return None
    which = ", ".join(map(table.called, names))
    reason = f"column {which} holds row numbers, as pandas and R write them"
    return Trouble("index-column", f"{reason}: leave it out with {mention(ignore=table.option(names))}")


def _codes(table: SeenTable) -> Trouble | None:
    """Whole numbers that are codes, in columns that are read as numbers."""
    found = [column for column in table.columns if column.rows > FEW and column.is_code and not is_id(column)]
    if not found:
        return None
    names = [column.name for column in found]
    which, look = ("columns", "look") if len(names) > 1 else ("column", "looks")
    example = (
        f"{shown_cell(found[0].example)} in column {names[0]}"
        if len(names) > 1
        else shown_cell(found[0].example)
    )
    first = table.layout.columns.index(names[0])
    together = len(names) > 2 and table.layout.columns[first : first + len(names)] == tuple(names)
    value = table.option([f"{names[0]}-{names[-1]}"] if together else names)
    reason = f"{which} {first_few(names)} {look} like codes ({example}), but the model reads them as amounts"
    return Trouble(
        "codes-as-numbers",
        f"{reason}: use {mention(categorical=value)}, or {mention(numeric=value)} if they are amounts",
    )


def _quotes(table: SeenTable) -> Trouble | None:
    """Cells in quotes, in a format that does not know quotes."""
    found = [column for column in table.columns if column.quoted]
    if not found:
        return None
    names = ", ".join(column.name for column in found[:3]) + (" and others" if len(found) > 3 else "")
    which = f"column{'s' if len(found) > 1 else ''} {names}"
    reason = f"cells of {which} are in quotes ({shown_cell(found[0].quoted)})"
    remedy = f"read the file with {CSV_OF_TABS} to remove them"
    return Trouble("quoted-cells", f"{reason}, which are part of the value in TSV: {remedy}")


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


def _numbers(table: SeenTable) -> Trouble | None:
    """Columns of numbers that are read as categories: numbers as text, or a few other cells among them."""
    if texts := [column.name for column in table.columns if column.rows > FEW and column.is_numbers]:
        which = f"columns {', '.join(texts)} are" if len(texts) > 1 else f"column {texts[0]} is"
        reason = f"{which} read as categories, because the numbers are given as text"
        return Trouble("numbers-as-categories", f"{reason}: store them as numbers")
    found = [column for column in table.columns if column.rows > FEW and column.strays]
    if not found:
        return None
    names = ", ".join(table.called(column.name) for column in found)
    which = f"columns {names} are" if len(found) > 1 else f"column {names} is"
    first = found[0]
    cells = ", ".join(shown_cell(cell) for cell in first.strays[:3])
    cells += "" if len(first.strays) <= 3 else ", ..."
    if len(found) > 1:
        but = f"nearly all their cells are numbers (not {cells} in column {table.called(first.name)})"
    else:
        but = f"its cells are numbers except {cells}"
    reason = f"{which} read as categories, though {but}"
    return Trouble("numbers-as-categories", f"{reason}: {missing_remedy(first, table.layout)}")


def _as_written(name: str, columns: Sequence[ColumnSeen], remedy: str) -> Trouble | None:
    """Columns of numbers or dates in a form that is not read as such."""
    found = [column for column in columns if column.rows > FEW]
    if not found:
        return None
    shapes = [f"column {one.name} holds {one.written} ({shown_cell(one.example)})" for one in found[:3]]
    listed = "; ".join(shapes) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")
    return Trouble(name, f"{listed}, which are read as categories: {remedy}")


def _formatted(table: SeenTable) -> Trouble | None:
    """Columns of numbers with signs and separators that are not read as numbers."""
    found = [one for one in table.columns if one.written and not one.is_dates]
    return _as_written("formatted-numbers", found, "write plain numbers, such as 1234.5")


def _dates(table: SeenTable) -> Trouble | None:
    """Columns of dates."""
    remedy = (
        "turn them into numbers, such as days since the first, or into categories that come again, such as"
        " the weekday"
    )
    return _as_written("dates-as-categories", [one for one in table.columns if one.is_dates], remedy)


def _texts(table: SeenTable) -> Trouble | None:
    """Columns of text in which each whole cell becomes one category."""
    found = [column for column in table.columns if column.rows > FEW and is_text(column)]
    if not found:
        return None
    names = [column.name for column in found]
    reason = (
        f"{found[0].words:.0f} words a cell, {found[0].distinct:,} different ones in {found[0].rows:,} rows"
    )
    which = f"column{'s' if len(found) > 1 else ''} {', '.join(map(table.called, names))}"
    remedy = f"use {mention(text=table.option(names))}"
    return Trouble("text-columns", f"each cell of {which} is read as one category ({reason}): {remedy}")


def _names(table: SeenTable) -> Trouble | None:
    """Column names such as 0.25: the header is more likely a row of data."""
    columns = [column for column in table.columns if column.kind != LABEL]
    found = [column.name for column in columns if _FRACTION.fullmatch(column.name)]
    if 2 * len(found) <= len(columns):
        return None
    reason = f"the first row is read as the names of columns ({', '.join(found[:3])})"
    return Trouble("numbers-as-names", f"{reason}: if it is an example, use {mention(header=False)}")


def _unmatched(table: SeenTable) -> Trouble | None:
    """Patterns of columns to leave out that match none; in JSON lines, fields that come late may match.

    A name or a place that is not there has been refused before.
    """
    layout = table.layout
    if layout is None or layout.format == "jsonl" or not has_columns(layout):
        return None
    never = [one for one in layout.ignore if WILD.search(one) and not matching(one, layout.columns)]
    if not never:
        return None
    return Trouble(
        "no-such-column",
        f"no column matches {first_few([mention(ignore=as_list([one])) for one in never])}:"
        f" {column_meant(never[0], layout.columns)}",
    )


_OF_COLUMNS = (_quotes, _index, _ids, _codes, _numbers, _formatted, _dates, _texts, _names, _unmatched)


def troubles_of_columns(columns: Sequence[ColumnSeen], layout: Any) -> list[Trouble]:
    """Trouble with the columns of a table that was read with this layout."""
    return [trouble for find in _OF_COLUMNS if (trouble := find(SeenTable(columns, layout))) is not None]


def troubles_of_reading(report: Report, layout: Any = None, goes_on: bool = False) -> list[Trouble]:
    """Trouble with columns that reading has shown; `layout`: the one settled for these data, if any.

    `goes_on`: whether the model had learned other data before, so that its columns are as they are.
    """
    kinds = (LATE, NEW, LACKING, HEADER, NOT_UTF8, RESPELLED, OTHER_LABELS)
    found = {what: [one for one in report.noticed if one.what == what] for what in kinds}
    never = _never({one.column for one in report.noticed if one.what == FOUND}, layout) if layout else None
    never = never or (_no_namespace(report, layout) if layout and not goes_on else None)
    renamed = _renamed(found[LATE] + found[NEW], found[LACKING])
    late = _late([one for one in found[LATE] if one not in renamed], layout)
    rest = [one for one in found[LACKING] if one not in renamed.values()]
    lacking = _lacking(rest, None if goes_on else layout)
    troubles = (
        late,
        _misspelt(renamed),
        lacking,
        never,
        _header(found[HEADER]),
        _not_utf8(found[NOT_UTF8]),
        _respelled(found[RESPELLED]),
        _other_labels(found[OTHER_LABELS]),
    )
    return [trouble for trouble in troubles if trouble is not None]


def _renamed(strange: Sequence[Noticed], lacking: Sequence[Noticed]) -> dict[Noticed, Noticed]:
    """Columns not known before, each with one of nearly the same name that the same file lacks."""
    found = dict[Noticed, Noticed]()
    for place in dict.fromkeys(one.place for one in lacking):
        free = {one.column: one for one in lacking if one.place == place}
        there = {one.column: one for one in strange if one.place.startswith(place)}
        found |= {there[name]: free[near] for name, near in misspelt(there, free).items()}
    return found


def _misspelt(renamed: Mapping[Noticed, Noticed]) -> Trouble | None:
    """Columns whose names seem to be misspelt."""
    if not renamed:
        return None
    late, lacking = next(iter(renamed.items()))
    is_now, more = "new" if late.what == NEW else "ignored", len(renamed) - 1
    likewise = f" (and {more} more column{'s' * (more > 1)} likewise)" if more else ""
    return Trouble(
        "missing-columns",
        f"{lacking.place} has no column {lacking.column}, so every row has a missing value there;"
        f" column {late.column} is {is_now}: did you mean {lacking.column}?{likewise}",
    )


def _late(found: Sequence[Noticed], layout: Any) -> Trouble | None:
    """Columns that are ignored, because they had no value where the columns were settled."""
    if not found:
        return None
    names, more = [one.column for one in found], f" and {len(found) - 3} more" if len(found) > 3 else ""
    more = " and others" if len(found) >= MOST_LATE else more
    listed = ", ".join(f"{one.column} ({one.place})" for one in found[:3])
    which = (
        f"column{'s' if len(names) > 1 else ''} {listed}{more} {'are' if len(names) > 1 else 'is'} ignored"
    )
    if layout is None:
        named = as_option_value([name for name in names if name], ())
        ignore = f"leave out what it does not know with {mention(ignore=named)}"
        remedy = ignore if named else "remove it"
        return Trouble("late-columns", f"{which}, because the model was trained without: {remedy}")
    kinds = [(kind, [one.column for one in found if one.kind == kind]) for kind in (NUMERIC, CATEGORICAL)]
    chosen = mention(**{kind: as_option_value(some, layout.columns) for kind, some in kinds if some})
    remedy = f"use {chosen} to learn from {'them' if len(names) > 1 else 'it'}, or " if chosen else "use "
    rows = "rows have no value there" if layout.format == "jsonl" or {*names} & {*layout.columns} else ""
    reason = f"{which}, because the first {rows or 'file has no such column'}"
    return Trouble(
        "late-columns", f"{reason}: {remedy}{mention(ignore=as_option_value(names, layout.columns))}"
    )


def _lacking(found: Sequence[Noticed], layout: Any) -> Trouble | None:
    """Columns that a file does not have."""
    if not found:
        return None
    file, others = found[0].place, len({one.place for one in found}) - 1
    names = [one.column for one in found if one.place == file]
    files = f"{file} has" if not others else f"{file} and {others} more file{'s' if others > 1 else ''} have"
    which = f"column{'s' if len(names) > 1 else ''} {first_few(names)}"
    reason = f"{files} no {which}, so every row has a missing value there"
    remedy = "add it"
    if layout is not None:
        named = as_option_value(names, layout.columns)
        remedy += f", or leave it out of all files with {mention(ignore=named)}"
    return Trouble("missing-columns", f"{reason}: {remedy}")


def _never(found: set[str], layout: Any) -> Trouble | None:
    """Columns that an option names, and that never had a value."""
    awaited = getattr(layout, "awaited", ())
    names = [name for name in awaited if name not in found] if awaited and layout.format == "jsonl" else []
    if not names:
        return None
    kinds = dict(zip(layout.columns, layout.kinds, strict=True))
    others = [name for name in layout.columns if name not in awaited]
    hint = column_meant(names[0], others)
    option = mention(**{kinds[names[0]]: as_option_value(names[:1], layout.columns)})
    return Trouble("no-such-column", f"no row has a value in column {names[0]} ({option}): {hint}")


def _no_namespace(report: Report, layout: Any, some: Sequence[str] = ()) -> Trouble | None:
    """A namespace that an interaction names and no row has; `some` are those of the first rows."""
    found = {one.column for one in report.noticed if one.what == FOUND}
    never = [one for one in report.noticed if one.what == AWAITED and one.column not in found]
    if not never:
        return None
    name = never[0].column
    spec = next(one for one in layout.interact if name in terms_of([one]).factors)
    what = "field" if layout.format == "libffm" else "namespace"
    known = f": the {what}s are {first_few(some, _SHOWN)}" if some else ""
    whole = "; give whole names, not first letters as for -q" if any(one[:1] == name for one in some) else ""
    return Trouble(
        "no-such-column", f"no row has the {what} '{name}' of the interaction {spec}{known}{whole}"
    )


def check_namespaces(source: Source, report: Report) -> None:
    """`DataError` if no row has a namespace that an interaction names, once all rows have been read."""
    layout = source.layout
    if layout is None or _no_namespace(report, layout) is None:
        return
    name, some = source.names[0], list[str]()
    if not is_stream(name) and not is_remote(name):
        some = namespaces_in(head_of(name, _HEAD, {}), layout.format)
    found = _no_namespace(report, layout, some)
    raise DataError(f"{called(name)}: {found.message if found else ''}")


def _header(found: Sequence[Noticed]) -> Trouble | None:
    """Lines that repeat the header."""
    if not found:
        return None
    reason = f"the line {found[0].place} repeats the header, as in the middle of joined files"
    return Trouble("repeated-header", f"{reason}: such lines are skipped; remove them from the data")


_VALUES = {AS_NUMBER: "numbers", AS_BOOLEAN: "true and false", AS_DATE: "dates"}


def _respelled(found: Sequence[Noticed]) -> Trouble | None:
    """Columns whose values are written otherwise than in the training data."""
    if not found:
        return None
    what, _, cell = found[0].kind.partition(" ")
    now, before = shown_cell(cell), _VALUES.get(what, "")
    if what == AS_TEXT:
        now, before = (shown(one.encode("utf-8", "surrogatepass")) for one in json.loads(cell))
    others = len({one.column for one in found}) - 1
    more = f" (and {others} more column{'s' * (others > 1)} likewise)" if others else ""
    unlike = f"where the first file has {before}{more}"
    reason = f"column {found[0].column} of {found[0].place} has {now} {unlike}"
    remedy = "write them alike in all files"
    return Trouble("respelled-column", f"{reason}: {remedy}")


def _other_labels(found: Sequence[Noticed]) -> Trouble | None:
    """A file with as many labels as those before it, and all of them others."""
    if not found:
        return None
    there, name, here = found[0].column, found[0].place, found[0].kind
    reason = f"the labels of {name} ({here}) do not occur in the files before it, whose labels are {there}"
    return Trouble("other-labels", f"{reason}: if they mean the same, write them alike in all files")


def _not_utf8(found: Sequence[Noticed]) -> Trouble | None:
    """Texts in another encoding, or damaged."""
    if not found:
        return None
    count, at, looks = found[0].kind.split(" ")
    place = f"{found[0].place}:{at}" if at != "0" else f"{found[0].place}, column {found[0].column}"
    what = "line" if at != "0" else "row"
    lines = f"1 {what} has" if count == "1" else f"{int(count):,} {what}s have"
    reason = f"{lines} text that is not UTF-8 ({place}), so it differs from the same text in UTF-8"
    remedy = REMEDIES[looks] if at != "0" else "store it as UTF-8"
    return Trouble("not-utf8", f"{reason}: {remedy}")
