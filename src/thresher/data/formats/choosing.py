"""Choosing the format of files and its parser, and checking the options for it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Any, TypeVar

from thresher.data.errors import DataError
from thresher.data.formats.listing import (
    DEFAULT,
    ENDINGS,
    FORMATS,
    KNOWN_AS,
    LINES,
    TABLES,
    LineFormat,
    TableFormat,
    kind_of_features,
)
from thresher.data.layout import CELL_FIELDS, AnyLayout
from thresher.options.messages import mention

SomeLayout = TypeVar("SomeLayout", bound=AnyLayout)
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")


def format_of(names: Sequence[str]) -> str:
    """The format that the file names imply; raises `DataError` if they disagree."""
    found = {name: _implied_by(name) for name in names}
    kinds = sorted(set(found.values()))
    if len(kinds) > 1:
        both = ", ".join(f"{next(n for n in names if found[n] == kind)} ({kind})" for kind in kinds)
        raise DataError(
            f"files of several formats: {both}; convert them to one, or give the one they all have"
        )
    return kinds[0]


CSV_OF_TABS = mention(format="csv", delimiter=r"\t")
"""How a file with tabs between its cells, some of them in quotes, is read"""


def _implied_by(name: str) -> str:
    path = PurePath(name)
    if path.suffix.lower() in _COMPRESSED:
        path = path.with_suffix("")
    return ENDINGS.get(path.suffix.lower(), DEFAULT)


def parser_of(name: str) -> Any:
    """The function that makes a parser of a line format, given a layout and a `Reading`."""
    return import_module(f"thresher.data.formats.lines.{name}").parser


def opener_of(name: str) -> Any:
    """The function that settles the columns of files in a table format, and makes their parser."""
    return import_module(f"thresher.data.formats.tables.{TABLES[name].module}").opened


def is_in_batches(name: str) -> bool:
    """Whether a format is read in batches instead of blocks of lines."""
    return name in TABLES and TABLES[name].batches


def source_of(layout: AnyLayout) -> Any:
    """The class of source for files with this layout."""
    if is_in_batches(layout.format):
        return import_module("thresher.data.formats.tables.arrow_files").TableSource
    if layout.quoted_newlines:
        return import_module("thresher.data.formats.tables.delimited").SpanningSource
    return import_module("thresher.data.sources.text").TextSource


def check_format(name: str) -> str:
    """`name`; raises `DataError` if there is no such format."""
    if name not in FORMATS:
        near = KNOWN_AS.get(name.lower().replace("_", "-"))
        hint = f"did you mean {near}?" if near else f"known: {', '.join(FORMATS)}"
        raise DataError(f"no format is called '{name}'; {hint}")
    return name


def features_of(layout: AnyLayout) -> str:
    """The kind of its features: ``columns``, ``names`` or ``ids``."""
    return kind_of_features(layout.format)


def check_layout(layout: SomeLayout) -> SomeLayout:
    """`layout`; raises `DataError` if an option is not valid for its format."""
    name = check_format(layout.format)
    form = FORMATS[name]
    if isinstance(form, LineFormat) and not form.named and (layout.bits or layout.hash != AnyLayout.hash):
        raise DataError(
            f"{name}: bits and hash apply to names, not ids; for a fixed size, use the store hashed:BITS"
        )
    changed = {
        name: value for name in CELL_FIELDS if (value := getattr(layout, name)) != getattr(AnyLayout, name)
    }
    given = [mention(**{name: value}) if value is False else mention(name) for name, value in changed.items()]
    if given and not (isinstance(form, TableFormat) and form.cells):
        raise DataError(f"{name}: {', '.join(given)} is only for csv and tsv")
    if layout.label_weights and not (isinstance(form, LineFormat) and form.label_weights):
        there = " and ".join(other for other, one in LINES.items() if one.label_weights)
        raise DataError(f"{name}: {mention('label_weights')} is only for {there}")
    if name == "tsv" and layout.quoted_newlines:
        raise DataError(f"tsv: quotes have no meaning, so line breaks cannot be quoted ({CSV_OF_TABS})")
    if layout.quoted_newlines and not layout.quoting:
        both = f"{mention('quoted_newlines')} and {mention(quoting=False)}"
        raise DataError(f"{both} exclude each other: leave one of them out")
    if isinstance(form, TableFormat) and layout.hash != AnyLayout.hash:
        raise DataError(
            f"{name}: the hash vw is only for VW text; to shorten keys, use {mention('bits')} alone"
        )
    return layout
