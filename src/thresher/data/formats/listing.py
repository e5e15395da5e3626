"""The list of formats, from which help and the tests of all formats are generated.

It imports nothing of the formats, so the help can use it.
"""

from __future__ import annotations

from typing import NamedTuple

_TABLE = "label{0}size{0}colour\n1{0}0.5{0}red\n-1{0}1{0}blue\n"


class Format(NamedTuple):
    """A format with one example per line, or with columns.

    The `parser` of a format of lines is in the module of its name in `lines`; the columns of others are
    settled by the function `open_table` of a module in `tables`.
    """

    title: str
    """its name in help"""
    endings: tuple[str, ...]
    """its file name endings; the format without any is the default"""
    module: str = ""
    """in `tables`; empty: it has one example per line"""
    example: str = ""
    """two examples; empty for a binary format"""
    named: bool = False
    """of lines: whether features have names, hashed to keys with `hash` and `bits`; if not, they have ids"""
    shape: str = ""
    """of lines: a regular expression, NUMBER for a number, to recognise them in a file read as another"""
    cells: bool = False
    """whether it has cells between delimiters"""
    batches: bool = False
    """whether it is read in batches instead of blocks of lines"""


LINES = {
    "svmlight": Format(
        *("svmlight", ()),
        example="1 1:0.5 3:1 4:0.25 7:1\n-1 2:1 1:1 5:0.75 6:0.5\n",  # the second is out of order
        shape=r"[^\s|]+(?: +qid:\d+)?(?: +\d+:NUMBER)+ *(?:#.*)?",
    ),
    "vw": Format(
        *("VW text", (".vw",)),
        example="1 |a size:0.5 red\n-1 |a blue shade:dark\n",
        named=True,
        shape=r"[^|{}<]*\|[^|\s]*[ ].*",
    ),
}
TABLES = {
    "csv": Format("CSV", (".csv",), "delimited", _TABLE.format(","), cells=True),
    "tsv": Format("TSV", (".tsv", ".tab"), "delimited", _TABLE.format("\t"), cells=True),
    "jsonl": Format(
        *("JSON lines", (".jsonl", ".ndjson"), "jsonl"),
        '{"label": 1, "size": 0.5, "colour": "red"}\n{"label": -1, "size": 1, "colour": "blue"}\n',
    ),
    "parquet": Format("Parquet", (".parquet", ".pq"), "arrow_files", batches=True),
    "arrow": Format(*("Arrow", (".arrow", ".arrows", ".ipc", ".feather"), "arrow_files"), batches=True),
}
FORMATS = {**LINES, **TABLES}


def kind_of_features(form: str) -> str:
    """The kind of features in a format: ``columns``, ``names`` or ``ids``."""
    if form not in LINES:
        return "columns"
    return "names" if LINES[form].named else "ids"


EXAMPLES = {name: form.example for name, form in FORMATS.items() if form.example}
"""Examples of the text formats, longer than the 32 bytes that are hashed at once."""
DEFAULT = next(name for name, form in FORMATS.items() if not form.endings)
"""The format of files whose names do not imply another."""
ENDINGS = {ending: name for name, form in FORMATS.items() for ending in form.endings}
"""Formats by file name ending."""


def list_titles(titles: list[str], last: str) -> str:
    """Titles joined by commas, with the word `last` before the last one."""
    return f"{', '.join(titles[:-1])} {last} {titles[-1]}"
