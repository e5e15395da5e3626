"""Choosing the format of files and its parser, checking its options, and hinting at a better choice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Any, TypeVar

from thresher.data.errors import DataError
from thresher.data.files.paths import binary_kind
from thresher.data.files.topics import is_topic
from thresher.data.formats import listing
from thresher.data.layout import CELL_FIELDS, DELIMITERS, AnyLayout
from thresher.options.messages import mention
from thresher.options.synonyms import did_you_mean

SomeLayout = TypeVar("SomeLayout", bound=AnyLayout)
_OF_TOPICS = "jsonl"
"""The format of a topic whose name implies none"""
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")


def format_of(names: Sequence[str]) -> str:
    """The format that the file names imply; raises `DataError` if they disagree."""
    found = dict[str, str]()
    for name in names:
        path = PurePath(name)
        if path.suffix.lower() in _COMPRESSED:
            path = path.with_suffix("")
        usual = _OF_TOPICS if is_topic(name) else listing.DEFAULT
        found[name] = listing.ENDINGS.get(path.suffix.lower(), usual)
    kinds = sorted(set(found.values()))
    if len(kinds) > 1:
        both = ", ".join(f"{next(n for n in names if found[n] == kind)} ({kind})" for kind in kinds)
        raise DataError(
            f"files of several formats: {both}; convert them to one, or give the one they all have"
        )
    return kinds[0]


CSV_OF_TABS = mention(format="csv", delimiter=r"\t")
"""How a file with tabs between its cells, some of them in quotes, is read"""


def module_of(name: str) -> Any:
    """The module of a format.

    Of a format of lines, its function `parser` makes a parser, given a layout and a `Reading`; of tables,
    `open_table` settles the columns of files, and makes what makes their parsers.
    """
    module = listing.FORMATS[name].module
    return import_module(f"thresher.data.formats.{f'tables.{module}' if module else f'lines.{name}'}")


def check_format(name: str) -> str:
    """`name`; raises `DataError` if there is no such format."""
    if name not in listing.FORMATS:
        hint = did_you_mean(name, listing.FORMATS) or f"; known: {', '.join(listing.FORMATS)}"
        raise DataError(f"no format is called '{name}'{hint}")
    return name


def check_layout(layout: SomeLayout) -> SomeLayout:
    """`layout`; raises `DataError` if an option is not valid for its format."""
    name = check_format(layout.format)
    form = listing.FORMATS[name]
    other_hash = layout.hash != AnyLayout.hash
    if listing.kind_of_features(name) == "ids" and (layout.bits or other_hash):
        raise DataError(
            f"{name}: bits and hash apply to names, not ids; for a fixed size, use the store hashed:BITS"
        )
    changed = {
        name: value for name in CELL_FIELDS if (value := getattr(layout, name)) != getattr(AnyLayout, name)
    }
    given = [mention(**{name: value}) if value is False else mention(name) for name, value in changed.items()]
    if given and not form.cells:
        raise DataError(f"{name}: {', '.join(given)} is only for csv and tsv")
    if layout.label_weights and name != "svmlight":
        raise DataError(f"{name}: {mention('label_weights')} is only for svmlight")
    if form.module and other_hash:
        raise DataError(
            f"{name}: the hash vw is only for VW text; to shorten keys, use {mention('bits')} alone"
        )
    return layout


_NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_SHAPES = {
    "jsonl": re.compile(rb"\{.*\}"),
    **{
        name: re.compile(form.shape.encode().replace(b"NUMBER", _NUMBER))
        for name, form in listing.LINES.items()
    },
    "tsv": re.compile(rb"[^:\t]*\t.*"),
    "csv": re.compile(rb"[^:,;]*[,;].*"),
}
"""What a line of each text format is like, from the most special to the most general"""
_SEVERAL_LINES = re.compile(rb"\[(?![A-Za-z]).*|\{(?!.*\}$).*")
"""The first line of JSON that is not JSON lines"""
_NUMERIC = re.compile(rb'(?:.*[,\t])?[" ]*' + _NUMBER + rb'[" ]*(?:[,\t].*)?')
"""A row with a number among its cells"""
_BLANKS = rb"[^\t,;:|]*  [^\t,;:|]*"
_FOREIGN = {
    rb"%(?:\s.*)?|@(?i:relation)\s.*": "ARFF: remove its header (sed '/^[@%]/d') and use "
    f"{mention(format='csv', header=False, label='N')}",
    rb"sep=.": "a table for Excel: remove its first line (sed 1d) and use "
    f"{mention(format='csv', delimiter='D')}",
    rb"\S+(?: \d+:\d+:" + _NUMBER + rb")+": "LibFFM: write svmlight (sed -E 's/ [0-9]+:/ /g')",
    rb"(?=(?:.* )?" + _NUMBER + rb"(?: |$))" + _BLANKS: "columns with several blanks between: write CSV"
    f" (awk -v OFS=, '{{$1=$1}}1') and use {mention(format='csv', header=False, label='N')}",
    _BLANKS: "columns with several blanks between: write CSV"
    f" (awk -v OFS=, '{{$1=$1}}1') and use {mention(format='csv')}",
    rb"[A-Za-z][\w'-]*(?: [\w'-]+){2}(?:[^,;:|\t]|[,;:](?=[ /]|$))*": "prose; for columns with a blank"
    f" between, use {mention(format='csv', delimiter=' ')}",
}
"""What the first line of text that no format reads is like, and how to make readable text of it"""


def _first_line(head: bytes) -> bytes:
    return head.partition(b"\n")[0].strip(b"\r ")


def format_seen(head: bytes) -> str:
    """The format that the beginning of a file shows; empty if it shows none.

    >>> format_seen(b'{"size": 1}'), format_seen(b"label,size"), format_seen(b"1 3:0.5"), format_seen(b"1")
    ('jsonl', 'csv', 'svmlight', '')
    """
    if kind := binary_kind(head):
        return next((name for name in listing.TABLES if mention(format=name) in kind), "")
    line = _first_line(head)
    return next((name for name, shape in _SHAPES.items() if shape.fullmatch(line)), "")


def foreign(head: bytes) -> str:
    """How to make readable text of a text that begins with `head`, if no format reads it; else empty.

    >>> foreign(b"1 2:3:0.5")
    "this looks like LibFFM: write svmlight (sed -E 's/ [0-9]+:/ /g')"
    """
    line = _first_line(head)
    return next(
        (f"this looks like {what}" for shape, what in _FOREIGN.items() if re.fullmatch(shape, line)), ""
    )


def hint(head: bytes, form: str, trained: bool = False) -> str:
    """How to read a text that begins with `head`, if it looks like another format than `form`; else empty.

    A model `trained` on `form` cannot read a format whose features are of another kind.

    >>> from thresher.options.messages import as_shown
    >>> as_shown(hint(b"1 |n a b", "svmlight")), hint(b"1 3:x", "svmlight")
    ('this looks like VW text: try format="vw"', '')
    >>> hint(b"label,size", "svmlight", trained=True)
    'this looks like CSV, but the model was trained on svmlight'
    """
    line, other = _first_line(head), format_seen(head)
    if binary_kind(head):
        return ""
    if told := foreign(head):
        return told
    if _SEVERAL_LINES.fullmatch(line):
        jq = "jq -c 'if type == \"array\" then .[] else . end'"
        use = f" and use {mention(format='jsonl')}" if form != "jsonl" else ""
        return f"this looks like JSON in several lines: write one object per line ({jq}){use}"
    if form in _SHAPES and _SHAPES[form].fullmatch(line):
        if trained or form not in DELIMITERS or not _NUMERIC.fullmatch(line):
            return ""
        return f"the first line looks like a row, not column names: try {mention(header=False, label='N')}"
    if not other:
        return ""
    what = f"this looks like {listing.FORMATS[other].title}"
    if trained and listing.kind_of_features(other) != listing.kind_of_features(form):
        return f"{what}, but the model was trained on {listing.FORMATS[form].title}"
    return f"{what}: try {mention(format=other)}"
