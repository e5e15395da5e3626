"""Guessing the format of a file that was read as another, to hint at the right option."""

from __future__ import annotations

import re

_NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_SVMLIGHT = re.compile(rb"[^\s|]+(?: +qid:\d+)?(?: +\d+:" + _NUMBER + rb")+ *(?:#.*)?")
_LIBFFM = re.compile(rb"[^\s|]+(?: +\d+:\d+:" + _NUMBER + rb")+ *")
_VW = re.compile(rb"[^|{}<]*\|[^|\s]*[ ].*")
_NUMERIC = re.compile(_NUMBER)
_BLANKS = re.compile(rb"\s*" + _NUMBER + rb"(?:[ \t]+" + _NUMBER + rb")+\s*")
_ARFF = "ARFF: remove the header (sed '1,/^@data/Id; /^%/d') and use --format csv --no-header --label N"
_HTML = "XML or HTML, which is not supported; perhaps an error page in place of the data"
_ARRAY = "a JSON array: write one object per line (jq -c '.[]') and use --format jsonl --label COL"
_LINES = (
    ("arff", re.compile(rb"(?:%|@(?i:relation|attribute|data)).*"), _ARFF),
    ("html", re.compile(rb"<[!?a-zA-Z].*"), _HTML),
    ("jsonl", re.compile(rb"\{.*"), "JSON lines: try --format jsonl --label COL"),
    ("json", re.compile(rb"\[.*"), _ARRAY),
    ("libffm", _LIBFFM, "LibFFM: try --format libffm"),
    ("svmlight", _SVMLIGHT, "svmlight: try --format svmlight"),
    ("vw", _VW, "VW text: try --format vw"),
)
"""Formats by the shape of a line, most specific first."""
_CELLS = ((b"\t", "tsv", ""), (b",", "csv", ""), (b";", "csv", " --delimiter ';'"))
_MODEL = b'{"__metadata__":{"thresher":'
"""What follows the length of the header in a model file"""
_MAGIC = (
    (b"PAR1", "Parquet: try --format parquet"),
    (b"ARROW1", "Arrow: try --format arrow"),
    (b"PK\x03\x04", "zip, npz or Excel: unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file: save the sheet as CSV"),
    (b"\x93NUMPY", "a NumPy array: load it with numpy.load and pass it to thresher.train in Python"),
    (b"\x80", "perhaps a pickle: load it in Python and pass the data to thresher.train"),
    (b"\x89HDF", "HDF5: read it in Python and pass the arrays to thresher.train"),
    (b"SQLite format 3", "a SQLite database: see docs/formats/databases.md"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
)  # fmt: skip


def begins_a_model(head: bytes) -> bool:
    """Whether a file with this beginning is a model or checkpoint of thresher."""
    return head[8:].startswith(_MODEL)


def binary_kind(head: bytes) -> str:
    """What a binary file that begins with `head` is, and how to read it; empty if unknown."""
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")


def looks_like(line: bytes, form: str) -> str:
    """What the first line of a file looks like, if not `form`, and how to read it; otherwise empty.

    >>> looks_like(b"1 |n a b", "svmlight")
    'this looks like VW text: try --format vw'
    >>> looks_like(b"1 3:x", "svmlight")
    ''
    """
    line = line.strip(b"\r\n")
    for name, shape, remedy in _LINES:
        if shape.fullmatch(line):
            return "" if name == form else f"this looks like {remedy}"
    found = _as_cells(line, form)
    if not found and _BLANKS.fullmatch(line) and form not in ("csv", "tsv"):
        found = "numbers separated by blanks: replace them with commas (tr -s ' ' ',') and " + _no_header(
            "csv", "", len(line.split())
        )
    return f"this looks like {found}" if found else ""


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
