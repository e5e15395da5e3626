"""The same clicks in every format: 13 integers and 26 categories per row, as in Criteo's log."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thresher.data.features.murmur import hash_bytes, seed_of
from thresher.data.formats.choosing import format_of
from thresher.data.formats.listing import LINES
from thresher.data.layout import Layout

NUMBERS, CATEGORIES = (
    tuple(f"I{k}" for k in range(1, 14)),
    tuple(f"C{k}" for k in range(1, 27)),
)
COLUMNS = ("label", *NUMBERS, *CATEGORIES)
LAYOUT = Layout("", numeric=("I*",), categorical=("C*",))
Cells = dict[str, int | str | None]


def rows_of(path: Path, count: int | None = None) -> list[Cells]:
    """Read tab-separated text without a header; empty cells are None. A name ending in .gz means gzip."""
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="\n") as file:
        return [_row(line.rstrip("\n").split("\t")) for line in islice(file, count)]


def _row(cells: list[str]) -> Cells:
    found: Cells = {}
    for name, cell in zip(COLUMNS, cells, strict=True):
        found[name] = None if not cell else cell if name in CATEGORIES else int(cell)
    return found


def table_of(rows: list[Cells]) -> Any:
    """Return the rows as an Arrow table."""
    kinds = [(name, pa.string() if name in CATEGORIES else pa.int64()) for name in COLUMNS]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def _ipc(make: Any, rows: list[Cells], path: Path) -> None:
    table = table_of(rows)
    with make(path, table.schema) as file:
        file.write_table(table, max_chunksize=3000)


def _lines(lines: Callable[[list[Cells]], Iterator[str]], rows: list[Cells], path: Path) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines(rows))


def _delimited(delimiter: str, rows: list[Cells]) -> Iterator[str]:
    yield delimiter.join(COLUMNS)
    for row in rows:
        yield delimiter.join("" if cell is None else str(cell) for cell in row.values())


def _json(rows: list[Cells]) -> Iterator[str]:
    return (json.dumps({name: cell for name, cell in row.items() if cell is not None}) for row in rows)


def _vw(rows: list[Cells]) -> Iterator[str]:
    """Write numbers in the unnamed namespace, and each category in a namespace of its own."""
    for row in rows:
        numbers = " ".join(f"{name}:{row[name]}" for name in NUMBERS if row[name])
        categories = " ".join(f"|{name} {row[name]}" for name in CATEGORIES if row[name])
        yield f"{row['label']} | {numbers} {categories}"


def _ids(rows: list[Cells]) -> Iterator[str]:
    """Write the keys of the columns, also repeated ones, as svmlight text."""
    for row in rows:
        numbers = [(hash_bytes(name.encode()), row[name]) for name in NUMBERS if row[name]]
        values = [(name, str(row[name]).encode()) for name in CATEGORIES if row[name]]
        categories = [(hash_bytes(value, seed_of(name)), 1) for name, value in values]
        yield " ".join([str(row["label"]), *(f"{key}:{value}" for key, value in numbers + categories)])


WRITERS: dict[str, Callable[[list[Cells], Path], None]] = {
    "data.svm": partial(_lines, _ids),
    "data.vw": partial(_lines, _vw),
    "data.csv": partial(_lines, partial(_delimited, ",")),
    "data.tsv": partial(_lines, partial(_delimited, "\t")),
    "data.jsonl": partial(_lines, _json),
    "data.parquet": lambda rows, path: pq.write_table(table_of(rows), path, row_group_size=4000),
    "data.arrow": partial(_ipc, pa.ipc.new_file),
    "data.arrows": partial(_ipc, pa.ipc.new_stream),
}
"""Write rows in the format given by the file name."""


def layout_of(name: str) -> Layout:
    """Return the options for reading a file of that name."""
    return Layout() if format_of([name]) in LINES else LAYOUT
