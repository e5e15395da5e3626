"""Trouble with the columns of tables, as the first rows and reading show it.

`troubles_of_columns` finds it by the first rows, `troubles_of_reading` by what reading noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from thresher.data import columns as kinds
from thresher.data import report as noticed
from thresher.data.errors import DataError, first_few
from thresher.data.feature_specs import as_list, terms_of
from thresher.data.files.paths import display_name
from thresher.data.formats.tables.column_statistics import ColumnSeen, columns_seen, quote_cell
from thresher.data.layout import AnyLayout, chosen_in, has_columns
from thresher.data.report import TO_UTF8, Noticed, Report
from thresher.data.source import Source
from thresher.learning.diagnostics.findings import FEW, Finding
from thresher.options.messages import mention

_FRACTION = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
"""A number that is rarely the name of a column."""
_AMOUNT = re.compile(r"(?=.*[,%$£¥€])[^\w,]*\d[\d.,' ]*\W*")
"""A number with a decimal comma, separators of thousands or a sign of its unit"""
_WORDS = 3.0
"""Cells with this many words on average are text."""


def is_id(column: ColumnSeen) -> bool:
    """Whether a column only identifies rows."""
    if column.distinct < column.rows or column.strays or column.is_numbers or column.dated:
        return False
    if column.is_index:
        return False
    if column.kind == kinds.CATEGORICAL:
        return not is_text(column)
    return column.kind == kinds.NUMERIC and column.counts_rows


def is_text(column: ColumnSeen) -> bool:
    """Whether the cells of a column are text."""
    return column.kind == kinds.CATEGORICAL and column.words >= _WORDS and 2 * column.distinct > column.rows


def _several(names: Sequence[str], one: str = "", many: str = "") -> str:
    return f"columns {', '.join(names)}{many}" if len(names) > 1 else f"column {names[0]}{one}"


def troubles_of_columns(columns: Sequence[ColumnSeen], layout: Any) -> list[Finding]:
    """Trouble with the columns of a table, as its first rows show it, that was read with this layout.

    With their cells; with names that are more likely a row of data; and with patterns that match none.
    """
    names = [column.name for column in columns if column.kind != kinds.LABEL]
    fractions = [name for name in names if _FRACTION.fullmatch(name)]
    found = [*_of_cells(columns, layout)]
    if 2 * len(fractions) > len(names):
        reason = f"the first row is read as the names of columns ({', '.join(fractions[:3])})"
        reason = f"{reason}: if it is an example, use {mention(header=False)}"
        found.append(Finding("numbers-as-names", reason))
    if not has_columns(layout) or layout.format == "jsonl":
        return found  # fields that come late may match; names and places that are not there were refused
    if never := [
        one for one in layout.ignore if kinds.WILD.search(one) and not kinds.matching(one, layout.columns)
    ]:
        listed = first_few([mention(ignore=as_list([one])) for one in never])
        hint = kinds.column_meant(never[0], layout.columns)
        found.append(Finding("no-such-column", f"no column matches {listed}: {hint}"))
    return found


def troubles_at_first(source: Source, layout: AnyLayout | None = None) -> list[Finding]:
    """Trouble that the first rows of a table show, which is read as a layout says."""
    return troubles_of_columns(columns_seen(source, chosen_in(layout)), source.layout)


def _of_cells(columns: Sequence[ColumnSeen], layout: Any) -> Iterator[Finding]:
    """Columns whose cells mean something else than they are read as."""

    def option(names: Sequence[str]) -> str:
        return kinds.as_option_value(names, layout.columns)

    def display_name(names: Sequence[str]) -> list[str]:
        return [name or f"{layout.columns.index(name) + 1} (without a name)" for name in names]

    known = [column for column in columns if column.rows > FEW]
    if named := [column.name for column in known if column.is_index]:
        reason = f"column {', '.join(display_name(named))} holds row numbers, as pandas and R write them"
        yield Finding("index-column", f"{reason}: leave it out with {mention(ignore=option(named))}")
    if found := [column for column in known if is_id(column)]:
        named, rows = [column.name for column in found], max(column.rows for column in columns)
        reason = f"{_several(named, ' differs', ' differ')} in every one of the first {rows:,} rows"
        remedy = f"leave out columns that only identify rows with {mention(ignore=option(named))}"
        if amount := next((one.example for one in found if _AMOUNT.fullmatch(one.example)), ""):
            remedy = f"write cells like {quote_cell(amount)} as plain numbers, such as 0.5, or {remedy}"
        yield Finding("id-columns", f"{reason}: {remedy}")
    if found := [column for column in known if column.is_code and not is_id(column)]:
        named, several = [column.name for column in found], len(found) > 1
        example = quote_cell(found[0].example) + (f" in column {named[0]}" if several else "")
        first = layout.columns.index(named[0])
        together = len(named) > 2 and layout.columns[first : first + len(named)] == tuple(named)
        value = option([f"{named[0]}-{named[-1]}"] if together else named)
        which = f"{'columns' if several else 'column'} {first_few(named)} {'look' if several else 'looks'}"
        reason = f"{which} like codes ({example}), but the model reads them as amounts"
        remedy = f"use {mention(categorical=value)}, or {mention(numeric=value)} if they are amounts"
        yield Finding("codes-as-numbers", f"{reason}: {remedy}")
    if named := [column.name for column in known if column.is_numbers]:
        reason = f"{_several(named, ' is', ' are')} read as categories, because the numbers are given as text"
        yield Finding("numbers-as-categories", f"{reason}: store them as numbers")
    elif found := [column for column in known if column.strays]:
        named, stray = display_name([column.name for column in found]), found[0]
        cells = first_few([quote_cell(cell) for cell in stray.strays])
        if not stray.means_missing or any("," in cell for cell in stray.strays):
            remedy = f"use {mention(numeric=option([stray.name]), on_error='skip')} to leave out such rows"
        elif layout.delimited_by and all(map(str.isprintable, stray.strays)):
            remedy = f"use {mention(missing=','.join(stray.strays))} for missing values"
        else:
            remedy = "leave such cells empty, or null in a column of numbers"
        reason = f"{_several(named, ' is', ' are')} read as categories, though cells are numbers"
        yield Finding("numbers-as-categories", f"{reason} except {cells} in column {named[0]}: {remedy}")
    if found := [column for column in known if column.dated]:
        listed = first_few([f"{one.name} ({quote_cell(one.example)})" for one in found])
        remedy = "turn them into numbers, such as days since the first, or into categories that come again"
        reason = f"column{'s' * (len(found) > 1)} {listed} hold{'s' * (len(found) == 1)} dates"
        yield Finding("dates-as-categories", f"{reason}, which are read as categories: {remedy}")
    if found := [column for column in known if is_text(column)]:
        named, one = [column.name for column in found], found[0]
        reason = f"{one.words:.0f} words a cell, {one.distinct:,} different ones in {one.rows:,} rows"
        which = f"each cell of {_several(display_name(named))} is read as one category ({reason})"
        yield Finding("text-columns", f"{which}: use {mention(text=option(named))}")


def troubles_of_reading(report: Report, layout: Any = None, goes_on: bool = False) -> list[Finding]:
    """Trouble with columns that reading has shown; `layout`: the one settled for these data, if any.

    `goes_on`: whether the model had learned other data before, so that its columns are as they are.
    """
    found = [*_of_columns_met(report, layout, goes_on)]
    if layout:
        there = {one.column for one in _noticed(report, noticed.FOUND)}
        awaited = getattr(layout, "awaited", ()) if layout.format == "jsonl" else ()
        if names := [name for name in awaited if name not in there]:
            kind_of = dict(zip(layout.columns, layout.kinds, strict=True))
            hint = kinds.column_meant(names[0], [name for name in layout.columns if name not in awaited])
            option = mention(**{kind_of[names[0]]: kinds.as_option_value(names[:1], layout.columns)})
            reason = f"no row has a value in column {names[0]} ({option}): {hint}"
            found.append(Finding("no-such-column", reason))
        elif not goes_on and (never := _no_namespace(report, layout)):
            found.append(Finding("no-such-column", never))
    for one in report.never_met(filters=True)[:1]:
        hint = kinds.column_meant(one.column, layout.columns) if layout else "check the name"
        reason = f"no row has a value in column {one.column} ({mention('where')} {one.kind}): {hint}"
        found.append(Finding("no-such-column", reason))
    for one in _noticed(report, noticed.HEADER)[:1]:
        reason = f"the line {one.place} repeats the header, as in the middle of joined files"
        remedy = "such lines are skipped; remove them from the data"
        found.append(Finding("repeated-header", f"{reason}: {remedy}"))
    for one in _noticed(report, noticed.NOT_UTF8)[:1]:
        count, at = map(int, one.kind.split(" "))
        place = f"{one.place}:{at}" if at else f"{one.place}, column {one.column}"
        reason = f"text of {count:,} line{'s' * (count > 1)} is not UTF-8 (the first: {place})"
        remedy = TO_UTF8 if at else "store it as UTF-8"
        found.append(Finding("not-utf8", f"{reason}, so it differs from the same text in UTF-8: {remedy}"))
    return found


def _noticed(report: Report, what: str) -> list[Noticed]:
    return [one for one in report.noticed if one.what == what]


def _of_columns_met(report: Report, layout: Any, goes_on: bool) -> Iterator[Finding]:
    """Columns that a file has or lacks, unlike those before it."""
    renamed, lacking = dict[Noticed, Noticed](), _noticed(report, noticed.LACKING)
    strange = _noticed(report, noticed.LATE) + _noticed(report, noticed.NEW)
    for place in dict.fromkeys(one.place for one in lacking):  # of nearly the same name in one file
        free = {one.column: one for one in lacking if one.place == place}
        there = {one.column: one for one in strange if one.place.startswith(place)}
        renamed |= {there[name]: free[near] for name, near in kinds.find_misspelt(there, free).items()}
    if found := [one for one in _noticed(report, noticed.LATE) if one not in renamed]:
        yield Finding("late-columns", _late(found, layout))
    if renamed:
        place = next(iter(renamed.values())).place
        late = [one for one, missing in renamed.items() if missing.place == place]
        meant = first_few([renamed[one].column for one in late])
        reason = f"{place} has no column {meant}, so every row has a missing value there"
        now = "new" if late[0].what == noticed.NEW else "ignored"
        now = f"column {first_few([one.column for one in late])} is {now}"
        yield Finding("missing-columns", f"{reason}; {now}: did you mean {meant}?")
    if found := [one for one in lacking if one not in renamed.values()]:
        files = list(dict.fromkeys(one.place for one in found))
        names = [one.column for one in found if one.place == files[0]]
        reason = f"there is no column {first_few(names)} in {first_few(files, 1)}"
        remedy = "add it"
        if layout is not None and not goes_on:
            ignored = kinds.as_option_value(names, layout.columns)
            remedy += f", or leave it out of all files with {mention(ignore=ignored)}"
        yield Finding("missing-columns", f"{reason}, so every row has a missing value there: {remedy}")


def _late(found: Sequence[Noticed], layout: Any) -> str:
    """Columns that only later rows or files have, and what to do about them."""
    names = [one.column for one in found]
    listed = first_few([f"{one.column} ({one.place})" for one in found])
    several = len(names) > 1
    which = f"column{'s' * several} {listed} {'are' if several else 'is'} ignored"
    if layout is None:
        named = kinds.as_option_value([name for name in names if name], ())
        remedy = f"leave out what it does not know with {mention(ignore=named)}" if named else "remove it"
        return f"{which}, because the model was trained without: {remedy}"
    by_kind = [
        (kind, [one.column for one in found if one.kind == kind])
        for kind in (kinds.NUMERIC, kinds.CATEGORICAL)
    ]
    chosen = mention(**{kind: kinds.as_option_value(some, layout.columns) for kind, some in by_kind if some})
    remedy = f"use {chosen} to learn from {'them' if several else 'it'}, or " if chosen else "use "
    reason = f"{which}, because the first rows have no value there"
    return f"{reason}: {remedy}{mention(ignore=kinds.as_option_value(names, layout.columns))}"


def _no_namespace(report: Report, layout: Any) -> str | None:
    """A namespace that options name and no row has."""
    if not (never := [one.column for one in report.never_met()]):
        return None
    specs = [f"the interaction {one}" for one in layout.interact if never[0] in terms_of([one]).factors]
    of = specs[0] if specs else mention(text=as_list(never[:1]))
    return f"no row has the namespace '{never[0]}' of {of}: check the name; its first letter is not enough"


def check_namespaces(source: Source, report: Report) -> None:
    """`DataError` if no row has a namespace that options name, once all rows have been read."""
    if source.layout is not None and (reason := _no_namespace(report, source.layout)) is not None:
        raise DataError(f"{display_name(source.names[0])}: {reason}")
