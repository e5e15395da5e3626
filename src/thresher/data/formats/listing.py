"""The formats there are: one entry each, from which help, `warm` and the tests of all formats follow."""

from __future__ import annotations

from typing import NamedTuple

_TABLE = "label{0}size{0}colour\n1{0}0.5{0}red\n-1{0}1{0}blue\n"


class Lines(NamedTuple):
    """A format of one example a line: the module of its name in `lines` has its `parser`."""

    title: str
    """as help lists it"""
    endings: tuple[str, ...]
    """of the names of files; the format without any has all others"""
    example: str
    """two examples that `warm` reads"""
    named: bool = False
    """whether features have names, which become keys by `hash` and `bits`; otherwise they have ids"""
    label_weights: bool = False
    """whether the label may have an importance weight behind it"""


class Table(NamedTuple):
    """A format with columns: `opened` of a module in `tables` settles them."""

    title: str
    endings: tuple[str, ...]
    module: str
    example: str = ""
    """two examples that `warm` reads; empty for what is no text"""
    cells: bool = False
    """whether it is cells between delimiters"""
    batches: bool = False
    """whether it is read in batches, not in blocks of lines"""


LINES = {
    "svmlight": Lines(
        *("svmlight", (), "1 1:0.5 3:1 4:0.25 7:1\n-1 2:1 1:1 5:0.75 6:0.5\n"),  # one that is not in order
        label_weights=True,
    ),
    "vw": Lines("VW text", (".vw",), "1 |a size:0.5 red\n-1 |a blue shade:dark\n", named=True),
    "libffm": Lines("LibFFM", (".libffm", ".ffm"), "1 1:3:0.5 2:7:1 2:9:0.25\n-1 1:4:1 2:9:0.75 1:3:1\n"),
}
TABLES = {
    "csv": Table("CSV", (".csv",), "delimited", _TABLE.format(","), cells=True),
    "tsv": Table("TSV", (".tsv", ".tab"), "delimited", _TABLE.format("\t"), cells=True),
    "jsonl": Table(
        *("JSON lines", (".jsonl", ".ndjson"), "jsonl"),
        '{"label": 1, "size": 0.5, "colour": "red"}\n{"label": -1, "size": 1, "colour": "blue"}\n',
    ),
    "parquet": Table("Parquet", (".parquet", ".pq"), "arrow_files", batches=True),
    "arrow": Table("Arrow", (".arrow", ".arrows", ".ipc", ".feather"), "arrow_files", batches=True),
}
FORMATS: dict[str, Lines | Table] = {**LINES, **TABLES}
EXAMPLES = {name: form.example for name, form in FORMATS.items() if form.example}
"""Of formats of text: more than the 32 bytes that are hashed at once."""
DEFAULT = next(name for name, form in FORMATS.items() if not form.endings)
"""The format of files whose names tell no other."""
ENDINGS = {ending: name for name, form in FORMATS.items() for ending in form.endings}
"""Endings of names that tell a format."""


KNOWN_AS = {
    **dict.fromkeys(("libsvm", "svm", "svm-light", "liblinear", "svmrank"), "svmlight"),
    **dict.fromkeys(("vowpal-wabbit", "vowpalwabbit", "vw-text"), "vw"),
    **dict.fromkeys(("ffm", "fieldaware"), "libffm"),
    **dict.fromkeys(("json", "ndjson", "jsonlines", "json-lines"), "jsonl"),
    **dict.fromkeys(("tab", "tabs"), "tsv"),
    **dict.fromkeys(("comma", "data"), "csv"),
    **dict.fromkeys(("feather", "ipc"), "arrow"),
    "pq": "parquet",
}
"""Names of formats elsewhere."""


def listed(titles: list[str], last: str) -> str:
    """Titles in a row, with a word before the last."""
    return f"{', '.join(titles[:-1])} {last} {titles[-1]}"
