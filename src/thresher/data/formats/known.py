"""The formats there are, and which one files are in."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Any

from thresher.data.errors import DataError
from thresher.data.layout import OF_CELLS, Layout

LINES = {"svmlight": "svmlight.svmlight_parser", "vw": "vw.vw_parser"}
"""Formats of text that is parsed block by block: what makes the parser, in this folder."""
TABLES = {
    "csv": "delimited",
    "tsv": "delimited",
    "jsonl": "jsonl",
    "parquet": "arrow_files",
    "arrow": "arrow_files",
}
"""Formats with columns: the module, whose `opened` settles them."""
CELLS = ("csv", "tsv")
"""Those of them that are cells between delimiters."""
BINARY = ("parquet", "arrow")
"""Those of them that are read in batches, not in blocks of lines."""
FORMATS = (*LINES, *TABLES)
_SUFFIXES: dict[str, str] = {
    ".vw": "vw",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
"""Endings of names that tell a format; all others are svmlight."""
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")


def format_of(names: Sequence[str]) -> str:
    """The format that the endings of all `names` tell; `DataError` where they disagree."""
    found = {name: _told_by(name) for name in names}
    kinds = sorted(set(found.values()))
    if len(kinds) > 1:
        both = ", ".join(f"{next(n for n in names if found[n] == kind)} ({kind})" for kind in kinds)
        raise DataError(f"files of several formats: {both}; read them one after the other, or say the format")
    return kinds[0]


def _told_by(name: str) -> str:
    path = PurePath(name)
    if path.suffix.lower() in _COMPRESSED:
        path = path.with_suffix("")
    return _SUFFIXES.get(path.suffix.lower(), "svmlight")


def parser_of(name: str) -> Any:
    """What makes a parser of a format of lines: called with layout, domain, on_error and arenas."""
    module, _, parser = LINES[name].partition(".")
    return getattr(import_module(f"thresher.data.formats.lines.{module}"), parser)


def opener_of(name: str) -> Any:
    """The function that settles the columns of files in a format, and makes their parser."""
    return import_module(f"thresher.data.formats.tables.{TABLES[name]}").opened


def source_of(layout: Layout) -> Any:
    """The class of source for files of a layout."""
    if layout.format in BINARY:
        return import_module("thresher.data.formats.tables.arrow_files").TableSource
    if layout.quoted_newlines:
        return import_module("thresher.data.formats.tables.delimited").SpanningSource
    return import_module("thresher.data.sources.text").TextSource


def check_format(name: str) -> str:
    """`name`, if there is such a format; else `DataError`."""
    if name not in FORMATS:
        raise DataError(f"no format is called '{name}'; known: {', '.join(FORMATS)}")
    return name


def check_layout(layout: Layout) -> Layout:
    """`layout`, if its format can be read so; else `DataError`."""
    form = check_format(layout.format)
    if form == "svmlight" and (layout.bits or layout.hash != Layout.hash):
        raise DataError(
            f"{form}: ids stay as they are, bits and hash are for names; the store hashed:BITS has fixed size"
        )
    said = [f"--{name.replace('_', '-')}" for name in OF_CELLS if getattr(layout, name)]
    if said and form not in CELLS:
        raise DataError(f"{form}: {', '.join(said)} is for cells between delimiters (--format csv or tsv)")
    if layout.label_weights and form != "svmlight":
        raise DataError(f"{form}: --label-weights is for label:weight in svmlight")
    if form == "tsv" and layout.quoted_newlines:
        raise DataError(
            "tsv: quotes mean nothing, so no line break is quoted (--format csv --delimiter '\\t')"
        )
    if form in TABLES and layout.hash != Layout.hash:
        raise DataError(f"{form}: the hash vw is for VW text; --bits alone shortens the keys of columns")
    return layout
