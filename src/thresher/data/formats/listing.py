"""The list of formats, from which help and the tests of all formats are generated.

It imports nothing of the formats, so the help can use it.
"""

from __future__ import annotations

from typing import NamedTuple

_TABLE = "label{0}size{0}colour\n1{0}0.5{0}red\n-1{0}1{0}blue\n"


class LineFormat(NamedTuple):
    """A format with one example per line. Its `parser` is in the module of its name in `lines`."""

    title: str
    """its name in help"""
    endings: tuple[str, ...]
    """its file name endings; the format without any is the default"""
    example: str
    """two examples"""
    named: bool = False
    """whether features have names, hashed to keys with `hash` and `bits`; otherwise they have ids"""
    shape: str = ""
    """a regular expression for its lines, NUMBER for a number, to recognise it in a file read as another"""


class TableFormat(NamedTuple):
    """A format with columns, which the function `opened` of a module in `tables` settles."""

    title: str
    endings: tuple[str, ...]
    module: str
    example: str = ""
    """two examples; empty for a binary format"""
    cells: bool = False
    """whether it has cells between delimiters"""
    batches: bool = False
    """whether it is read in batches instead of blocks of lines"""


LINES = {
    "svmlight": LineFormat(
        *("svmlight", (), "1 1:0.5 3:1 4:0.25 7:1\n-1 2:1 1:1 5:0.75 6:0.5\n"),  # the second is out of order
        shape=r"[^\s|]+(?: +qid:\d+)?(?: +\d+:NUMBER)+ *(?:#.*)?",
    ),
    "vw": LineFormat(
        *("VW text", (".vw",), "1 |a size:0.5 red\n-1 |a blue shade:dark\n"),
        named=True,
        shape=r"[^|{}<]*\|[^|\s]*[ ].*",
    ),
}
TABLES = {
    "csv": TableFormat("CSV", (".csv",), "delimited", _TABLE.format(","), cells=True),
    "tsv": TableFormat("TSV", (".tsv", ".tab"), "delimited", _TABLE.format("\t"), cells=True),
    "jsonl": TableFormat(
        *("JSON lines", (".jsonl", ".ndjson"), "jsonl"),
        '{"label": 1, "size": 0.5, "colour": "red"}\n{"label": -1, "size": 1, "colour": "blue"}\n',
    ),
    "parquet": TableFormat("Parquet", (".parquet", ".pq"), "arrow_files", batches=True),
    "arrow": TableFormat(*("Arrow", (".arrow", ".arrows", ".ipc", ".feather"), "arrow_files"), batches=True),
}
FORMATS: dict[str, LineFormat | TableFormat] = {**LINES, **TABLES}


def kind_of_features(form: str) -> str:
    """The kind of features in a format: ``columns``, ``names`` or ``ids``."""
    found = FORMATS.get(form)
    if not isinstance(found, LineFormat):
        return "columns"
    return "names" if found.named else "ids"


EXAMPLES = {name: form.example for name, form in FORMATS.items() if form.example}
"""Examples of the text formats, longer than the 32 bytes that are hashed at once."""
DEFAULT = next(name for name, form in FORMATS.items() if not form.endings)
"""The format of files whose names do not imply another."""
ENDINGS = {ending: name for name, form in FORMATS.items() for ending in form.endings}
"""Formats by file name ending."""


def listed(titles: list[str], last: str) -> str:
    """Titles joined by commas, with the word `last` before the last one."""
    return f"{', '.join(titles[:-1])} {last} {titles[-1]}"
