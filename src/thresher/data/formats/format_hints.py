"""Guessing the format of a file that was read as another, to hint at the right option."""

from __future__ import annotations

import re

from thresher.data.formats.listing import FORMATS, LINES, kind_of_features

_NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_NUMERIC = re.compile(_NUMBER)
_BLANKS = re.compile(rb"\s*" + _NUMBER + rb"(?:[ \t]+" + _NUMBER + rb")+\s*")
_ARFF = "ARFF: remove the header (sed '1,/^@data/Id; /^%/d') and use --format csv --no-header --label N"
_HTML = "XML or HTML, which is not supported; perhaps an error page in place of the data"
_PRETTY = (
    "JSON in several lines: write one object per line (jq -c 'if type == \"array\" then .[] else . end')"
)
_ARRAY = "a JSON array: write one object per line (jq -c '.[]') and use --format jsonl --label COL"
_LINES = (
    ("arff", re.compile(rb"(?:%|@(?i:relation|attribute|data)).*"), _ARFF),
    ("html", re.compile(rb"<[!?a-zA-Z].*"), _HTML),
    ("jsonl", re.compile(rb"\{.*"), "JSON lines: try --format jsonl --label COL"),
    ("json", re.compile(rb"\[.*"), _ARRAY),
    *(
        (
            name,
            re.compile(form.shape.encode().replace(b"NUMBER", _NUMBER)),
            f"{form.title}: try --format {name}",
        )
        for name, form in LINES.items()
        if form.shape
    ),
)
"""What a file is by the shape of its first line."""
_OPEN = re.compile(rb"\s*\{(?!.*\}\s*$).*")
"""The beginning of an object that goes on in the next line"""
_QUOTED_NAMES = re.compile(rb'"[^"]*"(?: "[^"]*")+')
_FOR_JSON = " and use --format jsonl --label COL"
_FOR_TRAINING = re.compile(" --label COL| --no-header --label N.*")
_SUGGESTED = re.compile(r": [a-z].*--format (\w+).*")
_BINARY = re.compile(r": \w+ --format (?:parquet|arrow)\b")
_CELLS = ((b"\t", "tsv", ""), (b",", "csv", ""), (b";", "csv", " --delimiter ';'"))


def looks_like(line: bytes, form: str) -> str:
    """What the first line of a file looks like, if not `form`, and how to read it; otherwise empty.

    >>> looks_like(b"1 |n a b", "svmlight")
    'this looks like VW text: try --format vw'
    >>> looks_like(b"1 3:x", "svmlight")
    ''
    """
    line = line.strip(b"\r\n")
    if b"\r" in line:
        return "this looks like text whose lines end with \\r alone: convert them with tr '\\r' '\\n'"
    if _OPEN.fullmatch(line):
        return f"this looks like {_PRETTY}{_FOR_JSON if form != 'jsonl' else ''}"
    for name, shape, remedy in _LINES:
        if shape.fullmatch(line):
            return "" if name == form else f"this looks like {remedy}"
    found = _as_cells(line, form)
    if not found and _BLANKS.fullmatch(line) and form not in ("csv", "tsv"):
        found = (
            "numbers separated by blanks: replace them with commas (awk '{$1=$1}1' OFS=,) and "
            + _no_header("csv", "", len(line.split()))
        )
    if _QUOTED_NAMES.fullmatch(line) and form not in ("csv", "tsv"):
        found = "a table with blanks between its columns: try --format csv --delimiter ' ' --label COL"
    return f"this looks like {found}" if found else ""


def looks_to_a_model(line: bytes, form: str) -> str:
    """What the first line of data looks like, for a model that was trained on `form`.

    Columns and label are known from the model, so no option for them is suggested.

    A format in which the data have other features than those of the model is named, but not suggested.

    >>> looks_to_a_model(b"label,size", "tsv")
    'this looks like CSV: try --format csv'
    >>> looks_to_a_model(b"label,size", "svmlight")
    'this looks like CSV, but the model was trained on svmlight'
    """
    found = _FOR_TRAINING.sub("", looks_like(line, form))
    if found.startswith("this looks like a row,"):
        return f"{found.partition(':')[0]}: write the names of the columns above it"
    option = _SUGGESTED.search(found)
    if option and kind_of_features(option[1]) != kind_of_features(form):
        return f"{found[: option.start()]}, but the model was trained on {FORMATS[form].title}"
    return found


def without_format(message: str, form: str) -> str:
    """What a binary file is, without the format of tables, which a model of `form` cannot read.

    >>> without_format("a: a binary file (Arrow: try --format arrow)", "svmlight")
    'a: a binary file (Arrow, but the model was trained on svmlight)'
    """
    return _BINARY.sub(f", but the model was trained on {FORMATS[form].title}", message)


def looks_pretty(line: bytes) -> str:
    """What a first line looks like where an object or an array goes on in the next lines; otherwise empty."""
    return f"this looks like {_PRETTY}" if line.strip() in (b"{", b"[") else ""


def _as_cells(line: bytes, form: str) -> str:
    for delimiter, name, more in _CELLS:
        cells = line.split(delimiter)
        if len(cells) < 2 or b":" in cells[0] or (b" " in line and b":" in line):
            continue
        numbers = [bool(_NUMERIC.fullmatch(cell.strip(b' "'))) for cell in cells]
        if name == form and not more:
            row = "a row, not column names"
            return f"{row}: {_no_header(name, '', len(cells))}" if any(numbers) else ""
        title = f"{name.upper()}{' with the delimiter ;' if more else ''}: "
        if any(numbers):
            return title + _no_header(name, more, len(cells))
        return f"{title}try --format {name}{more} --label COL"
    return ""


def _no_header(name: str, more: str, columns: int) -> str:
    where = f"the number of the label column, 1 to {columns}"
    return f"try --format {name}{more} --no-header --label N, {where}"
