"""One table written in every format, and the examples it should give."""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.data.reference import Row
from thresher.data.features.murmur import hash_bytes, seed_of

Cells = Mapping[str, Any]


class Bad(NamedTuple):
    """A row that is not a valid example, and the column at fault."""

    column: str


def meaning(row: Cells, kinds: Mapping[str, str], seed: int = 0) -> Row | Bad:
    """The example in a row of a table; None is a missing value."""
    label, weight, found = np.float32(0), np.float32(1), list[tuple[int, np.float32]]()
    for name, kind in kinds.items():
        value = row[name]
        if kind in ("label", "weight", "numeric"):
            with np.errstate(over="ignore"):
                number = np.float32(math.nan if value is None else value)
            if kind == "numeric":
                if value is None:
                    continue
                found.append((hash_bytes(name.encode(), seed), number))
            if not np.isfinite(number) or (kind == "label" and number not in (-1, 0, 1)):
                return Bad(name)
            if kind == "weight" and number < 0:
                return Bad(name)
            label = number if kind == "label" else label
            weight = number if kind == "weight" else weight
        elif kind in ("categorical", "list"):
            for one in value or [] if kind == "list" else [value]:
                text = b"" if one is None else written_as(one)
                if text if kind == "list" else text.strip(b" "):
                    found.append((hash_bytes(written_as(one), seed_of(name, seed)), np.float32(1)))
    return _row(label, weight, [(key, value) for key, value in found if value != 0])


def written_as(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return (str(value).lower() if isinstance(value, bool) else str(value)).encode()


def _row(label: np.float32, weight: np.float32, found: list[tuple[int, np.float32]]) -> Row:
    features: dict[int, np.float32] = {}
    for key, value in found:
        features[key] = features[key] + value if key in features else value
    return Row(label, weight, dict(sorted(features.items())), len(features) < len(found))


def as_table(rows: Sequence[Cells]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows])


def write_csv(rows: Sequence[Cells], path: Path, **options: Any) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", **options)
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(["" if cell is None else cell for cell in row.values()])
    path.write_text(text.getvalue(), newline="")


def write_tsv(rows: Sequence[Cells], path: Path) -> None:
    lines = [list(rows[0]), *(["" if c is None else str(c) for c in row.values()] for row in rows)]
    path.write_text("".join("\t".join(line) + "\n" for line in lines), newline="")


def write_jsonl(rows: Sequence[Cells], path: Path) -> None:
    path.write_text("".join(json.dumps(dict(row)) + "\n" for row in rows))


def write_parquet(rows: Sequence[Cells], path: Path) -> None:
    pq.write_table(as_table(rows), path, row_group_size=max(len(rows) // 3, 1))


def write_arrow(rows: Sequence[Cells], path: Path) -> None:
    table = as_table(rows)
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=max(len(rows) // 4, 1))


def write_stream(rows: Sequence[Cells], path: Path) -> None:
    table = as_table(rows)
    with pa.ipc.new_stream(path, table.schema) as file:
        file.write_table(table, max_chunksize=max(len(rows) // 4, 1))


WRITERS: dict[str, Callable[[Sequence[Cells], Path], None]] = {
    "data.csv": write_csv,
    "data.tsv": write_tsv,
    "data.jsonl": write_jsonl,
    "data.parquet": write_parquet,
    "data.arrow": write_arrow,
    "data.arrows": write_stream,
}
"""Writers by file name."""


def write_svmlight(rows: Sequence[Cells], path: Path, kinds: Mapping[str, str]) -> None:
    lines = []
    for row in rows:
        found = meaning(row, kinds)
        assert isinstance(found, Row)
        features = " ".join(f"{key}:{value!s}" for key, value in found.features.items())
        lines.append(f"{found.label!s}:{found.weight!s} {features}\n")
    path.write_text("".join(lines))


class Streamed:
    """A table with ``__arrow_c_stream__`` and nothing else, as other libraries export it."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return self._table.__arrow_c_stream__(schema)
