"""Choosing the format of files and its parser, checking its options, and hinting at a better choice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar

from thresher.data.errors import DataError
from thresher.data.files.paths import binary_kind
from thresher.data.files.topics import is_topic
from thresher.data.formats import listing
from thresher.data.layout import CELL_FIELDS, AnyLayout
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


def parser_of(name: str) -> Any:
    """The function that makes a parser of a line format, given a layout and a `Reading`."""
    return import_module(f"thresher.data.formats.lines.{name}").parser


def opener_of(name: str) -> Any:
    """The function that settles the columns of files in a table format, and makes their parser."""
    return import_module(f"thresher.data.formats.tables.{listing.TABLES[name].module}").open_table


def is_in_batches(name: str) -> bool:
    """Whether a format is read in batches instead of blocks of lines."""
    return name in listing.TABLES and listing.TABLES[name].batches


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
    if (
        isinstance(form, listing.LineFormat)
        and not form.named
        and (layout.bits or layout.hash != AnyLayout.hash)
    ):
        raise DataError(
            f"{name}: bits and hash apply to names, not ids; for a fixed size, use the store hashed:BITS"
        )
    changed = {
        name: value for name in CELL_FIELDS if (value := getattr(layout, name)) != getattr(AnyLayout, name)
    }
    given = [mention(**{name: value}) if value is False else mention(name) for name, value in changed.items()]
    if given and not (isinstance(form, listing.TableFormat) and form.cells):
        raise DataError(f"{name}: {', '.join(given)} is only for csv and tsv")
    if layout.label_weights and name != "svmlight":
        raise DataError(f"{name}: {mention('label_weights')} is only for svmlight")
    if isinstance(form, listing.TableFormat) and layout.hash != AnyLayout.hash:
        raise DataError(
            f"{name}: the hash vw is only for VW text; to shorten keys, use {mention('bits')} alone"
        )
    return layout


_NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_NUMERIC = re.compile(_NUMBER)
_BLANKS = re.compile(rb"\s*" + _NUMBER + rb"(?:[ \t]+" + _NUMBER + rb")+\s*")


class _Look(NamedTuple):
    """What the first line of a file looks like, and how to read the file."""

    text: str
    """``{}`` stands for the options"""
    form: str = ""
    """the format to read it as, if there is one"""
    label: dict[str, Any] = {}  # noqa: RUF012  (nobody changes it)
    """options for training"""
    delimiter: str = ""
    where: str = ""
    """what the values are"""

    @property
    def what(self) -> str:
        return self.text.partition(": ")[0]

    def said(self, training: bool) -> str:
        delimited = {"delimiter": self.delimiter} if self.delimiter else {}
        options = mention(format=self.form, **delimited, **(self.label if training else {}))
        return self.text.replace("{}", options + self.where * training)


_NAMED: dict[str, Any] = {"label": "COL"}
_NUMBERED: dict[str, Any] = {"header": False, "label": "N"}
_PRETTY = (
    "JSON in several lines: write one object per line (jq -c 'if type == \"array\" then .[] else . end')"
)
_ARFF = "ARFF: remove the header (sed '1,/^@data/Id; /^%/d') and use {}"
_ARRAY = "a JSON array: write one object per line (jq -c '.[]') and use {}"
_HTML = "XML or HTML, which is not supported; perhaps an error page in place of the data"
_LINES = (
    ("arff", re.compile(rb"(?:%|@(?i:relation|attribute|data)).*"), _Look(_ARFF, "csv", _NUMBERED)),
    ("html", re.compile(rb"<[!?a-zA-Z].*"), _Look(_HTML)),
    ("jsonl", re.compile(rb"\{.*"), _Look("JSON lines: try {}", "jsonl", _NAMED)),
    ("json", re.compile(rb"\[.*"), _Look(_ARRAY, "jsonl", _NAMED)),
    *(
        (
            name,
            re.compile(form.shape.encode().replace(b"NUMBER", _NUMBER)),
            _Look(f"{form.title}: try {{}}", name),
        )
        for name, form in listing.LINES.items()
        if form.shape
    ),
)
"""What a file is by the shape of its first line."""
_OPEN = re.compile(rb"\s*\{(?!.*\}\s*$).*")
"""The beginning of an object that goes on in the next line"""
_QUOTED_NAMES = re.compile(rb'"[^"]*"(?: "[^"]*")+')
_ROW, _WHICH = "a row, not column names", ", the number of the label column, 1 to {}"
_BLANK = "numbers separated by blanks: replace them with commas (awk '{$1=$1}1' OFS=,) and try {}"
_CELLS = ((b"\t", "tsv", ""), (b",", "csv", ""), (b";", "csv", ";"))


def looks_like(line: bytes, form: str, trained: bool = False) -> str:
    """What the first line of a file looks like, if not `form`, and how to read it; otherwise empty.

    A model `trained` on `form` knows columns and label, so no option for them is suggested; nor is a format
    in which the data have other features.

    >>> from thresher.options.messages import as_shown
    >>> as_shown(looks_like(b"1 |n a b", "svmlight"))
    'this looks like VW text: try format="vw"'
    >>> looks_like(b"1 3:x", "svmlight")
    ''
    >>> as_shown(looks_like(b"label,size", "tsv", trained=True))
    'this looks like CSV: try format="csv"'
    >>> looks_like(b"label,size", "svmlight", trained=True)
    'this looks like CSV, but the model was trained on svmlight'
    """
    found = _look(line.strip(b"\r\n"), form)
    if found is None:
        return ""
    said = found.said(not trained)
    if trained and found.what == _ROW:
        said = f"{_ROW}: write the names of the columns above it"
    elif trained and found.form and listing.kind_of_features(found.form) != listing.kind_of_features(form):
        said = f"{found.what}, but the model was trained on {listing.FORMATS[form].title}"
    return f"this looks like {said}"


def seems(form: str, head: bytes, other: str) -> bool:
    """Whether a file that begins with `head` looks like this format, and not like the `other`.

    >>> seems("jsonl", b'{"size": 1}', "csv"), seems("jsonl", b"label,size", "csv")
    (True, False)
    """
    if kind := binary_kind(head):
        return mention(format=form) in kind
    found = _look(head.partition(b"\n")[0].strip(b"\r"), other)
    return found is not None and found.form == form and found.what == listing.FORMATS[form].title


def without_format(message: str, form: str) -> str:
    """What a binary file is, without the format of tables, which a model of `form` cannot read.

    >>> without_format(f"a: a binary file (Arrow: try {mention(format='arrow')})", "svmlight")
    'a: a binary file (Arrow, but the model was trained on svmlight)'
    """
    for name in ("parquet", "arrow"):
        trained = f", but the model was trained on {listing.FORMATS[form].title}"
        message = message.replace(f": try {mention(format=name)}", trained)
    return message


def looks_pretty(line: bytes) -> str:
    """What a first line looks like where an object or an array goes on in the next lines; otherwise empty."""
    return f"this looks like {_PRETTY}" if line.strip() in (b"{", b"[") else ""


def _look(line: bytes, form: str) -> _Look | None:
    """What the first line of a file looks like; None if it is nothing else than `form`."""
    if b"\r" in line:
        return _Look("text whose lines end with \\r alone: convert them with tr '\\r' '\\n'")
    if _OPEN.fullmatch(line):
        return _Look(_PRETTY) if form == "jsonl" else _Look(f"{_PRETTY} and use {{}}", "jsonl", _NAMED)
    for name, shape, look in _LINES:
        if shape.fullmatch(line):
            return None if name == form else look
    for delimiter, name, more in _CELLS:
        cells = line.split(delimiter)
        if len(cells) < 2 or b":" in cells[0] or (b" " in line and b":" in line):
            continue
        numbered = any(_NUMERIC.fullmatch(cell.strip(b' "')) for cell in cells)
        label, where = (_NUMBERED, _WHICH.format(len(cells))) if numbered else (_NAMED, "")
        if name == form and not more:
            return _Look(f"{_ROW}: try {{}}", name, label, where=where) if numbered else None
        title = f"{name.upper()}{' with the delimiter ;' if more else ''}"
        return _Look(f"{title}: try {{}}", name, label, more, where)
    if form not in ("csv", "tsv") and _BLANKS.fullmatch(line):
        return _Look(_BLANK, "csv", _NUMBERED, where=_WHICH.format(len(line.split())))
    if form not in ("csv", "tsv") and _QUOTED_NAMES.fullmatch(line):
        return _Look("a table with blanks between its columns: try {}", "csv", _NAMED, " ")
    return None
