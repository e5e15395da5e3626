"""A sample of every format: examples, blank rows, and rows that are bad in every way the format reports."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tests.data.lines import TESTED, Tested, Variant
from tests.data.tables import WRITERS
from tests.data.test_tables import LAYOUT, some_rows
from thresher.data.layout import Layout


class Sample(NamedTuple):
    """One format. A record is a line without its end, or a row of a table."""

    format: str
    ending: str
    good: Callable[[int, int], list[Any]]
    """makes a given number of examples from a seed"""
    bad: Mapping[str, Any]
    """bad records, by what is wrong with them"""
    empty: Sequence[Any]
    """records that are neither examples nor bad"""
    head: Sequence[Any]
    """header records before the first example"""
    write: Callable[[Sequence[Any], Path], None]
    rejected: Callable[[Sequence[Any]], list[bytes]]
    """returns the lines of the quarantine file for bad records"""
    layout: Layout
    packed: bool
    """whether whole files may be compressed"""

    def mixed(self, good: int, bad: int, seed: int) -> tuple[list[Any], list[int]]:
        """`good` examples among `bad` and empty records, an example first; and indices of the bad ones."""
        random = np.random.default_rng(seed)
        first, *rest = ((record, False) for record in self.good(good, seed))
        kinds = [*self.bad.values()] * (1 + bad // len(self.bad))
        rest += [(record, True) for record in kinds[: max(bad, len(self.bad))]]
        rest += [(record, False) for record in [*self.empty] * 3]
        found = [first, *(rest[k] for k in random.permutation(len(rest)))]
        return [record for record, _ in found], [k for k, (_, wrong) in enumerate(found) if wrong]


def two_members(pack: Callable[[bytes], bytes], text: bytes, between: bytes = b"") -> bytes:
    return pack(text[: len(text) // 3]) + between + pack(text[len(text) // 3 :])


def zstd(text: bytes) -> bytes:
    return bytes(pa.compress(text, codec="zstd", asbytes=True))


_bz2, _xz = partial(bz2.compress, compresslevel=1), partial(lzma.compress, preset=0)
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "gzip, two members and zeros": lambda text: two_members(gzip.compress, text) + b"\0" * 512,
    "bz2": _bz2,
    "bz2, two": partial(two_members, _bz2),
    "xz": _xz,
    "xz, two": partial(two_members, _xz),
    "zstd": zstd,
    "zstd, two frames": partial(two_members, zstd),
}


def write_lines(records: Sequence[bytes], path: Path) -> None:
    path.write_bytes(b"".join(record + b"\n" for record in records))


def as_lines(records: Sequence[bytes]) -> list[bytes]:
    return [record + b"\n" for record in records]


_ROW: dict[str, Any] = {"label": 1, "w": 1.0, "x": 0.5, "y": 2, "city": "Ulm", "id": 3}
BAD_ROWS: dict[str, dict[str, Any]] = {
    "no label": {**_ROW, "label": None},
    "a label that is not allowed": {**_ROW, "label": 7},
    "no weight": {**_ROW, "w": None},
    "a negative weight": {**_ROW, "w": -1.0},
    "an infinite weight": {**_ROW, "w": float("inf")},
    "a number too large": {**_ROW, "x": 1e39},
    "NaN": {**_ROW, "x": float("nan")},
    "infinity": {**_ROW, "x": float("-inf")},
}
"""Bad rows of tables with typed columns."""


def _cells(delimiter: str, row: Mapping[str, Any]) -> bytes:
    cells = ["" if cell is None else str(cell) for cell in row.values()]
    quoted = [f'"{cell}"' if delimiter == "," and delimiter in cell else cell for cell in cells]
    return delimiter.join(quoted).encode()


def _delimited(form: str, delimiter: str) -> Sample:
    to_cells = partial(_cells, delimiter)
    odd = {
        "not a number": {**_ROW, "x": "1.5e"},
        "not a label": {**_ROW, "label": "yes"},
        "not a weight": {**_ROW, "w": "x"},
        "a cell too many": {**_ROW, "more": "1"},
        "a NUL in a number": {**_ROW, "x": "1\0"},
        "a NUL in a text": {**_ROW, "city": "U\0lm"},
        "a cell too few": {"label": 1, "w": 1.0},
    }
    if form == "csv":
        odd["a quote that stays open"] = {**_ROW, "city": '"Ulm'}
        odd["something behind a quote"] = {**_ROW, "city": '"Ulm"x'}
    return Sample(
        form,
        f".{form}",
        lambda count, seed: [to_cells(row) for row in some_rows(count, seed)],
        {name: to_cells(row) for name, row in {**BAD_ROWS, **odd}.items()},
        (b"", b"\r"),
        (to_cells(dict(zip(_ROW, _ROW, strict=True))),),
        write_lines,
        as_lines,
        LAYOUT,
        True,
    )


def _json(row: Mapping[str, Any]) -> bytes:
    return json.dumps(dict(row)).encode()


def _table(form: str, ending: str) -> Sample:
    write = WRITERS[f"data{ending}"]
    return Sample(
        *(form, ending, some_rows, BAD_ROWS, (), (), write),
        rejected=lambda rows: [_json(row) + b"\n" for row in rows],
        layout=LAYOUT,
        packed=False,
    )


_BAD_JSON: Sequence[bytes] = (
    *(b"{", b"[1]", b"5", b'{"label": 1} {"label": 1}', b'{"label": 1,}', b"{'label': 1}", b"{}"),
    *(b'{"label": "1", "w": 1}', b'{"label": 1, "w": 1, "x": "true"}', b'{"label": 1, "w": 1, "city": [5]}'),
    *(b'{"label": 1, "w": 1, "city": "\xff"}', b'{"label": 1, "w": 1, "id": {}}', b'{"label": 01, "w": 1}'),
    *(b'{"label": 1, "w": 1, "x": 1e400}', b'{"label": 1, "w": 1, "city": "\\ud800"}', b'{"label": 1'),
    *(b'{"label": 1, "w": 1, "city": "a\0"}', b'{"label": 1, "w": 1}\0', b'\0{"label": 1, "w": 1}'),
)
"""Bad lines, each for a different reason."""


def _told(lines: Sequence[bytes]) -> dict[str, Any]:
    return {line.decode("latin-1"): line for line in lines}


def _of_lines(form: str, tested: Tested) -> Sample:
    return Sample(
        *(form, f".{form}", tested.good, _told(tested.bad), tested.empty, (), write_lines, as_lines),
        *(Layout(form), True),
    )


def _variant(form: str, variant: Variant) -> Sample:
    sample = SAMPLES[form]
    bad = {told: line for told, line in sample.bad.items() if line not in variant.but}
    return sample._replace(layout=variant.layout, good=variant.good or sample.good, bad=bad)


SAMPLES: dict[str, Sample] = {
    **{form: _of_lines(form, tested) for form, tested in TESTED.items()},
    "csv": _delimited("csv", ","),
    "tsv": _delimited("tsv", "\t"),
    "jsonl": Sample(
        *("jsonl", ".jsonl", lambda count, seed: [_json(row) for row in some_rows(count, seed)]),
        _told(_BAD_JSON) | {name: _json(row) for name, row in BAD_ROWS.items()},
        empty=(b"", b"  ", b"\r"),
        head=(),
        write=write_lines,
        rejected=as_lines,
        layout=LAYOUT,
        packed=True,
    ),
    "parquet": _table("parquet", ".parquet"),
    "arrow file": _table("arrow", ".arrow"),
    "arrow stream": _table("arrow", ".arrows"),
}
_PRODUCTS = replace(
    LAYOUT, numeric=("x",), bins=("y",), text=("city",), interact=("city,id", "city,city", "x,city,y")
)
VARIANTS: dict[str, Sample] = {
    **{
        f"{form}, {name}": _variant(form, variant)
        for form, tested in TESTED.items()
        for name, variant in tested.variants.items()
    },
    **{
        f"{name}, products and bins": SAMPLES[name]._replace(layout=_PRODUCTS)
        for name in ("csv", "jsonl", "parquet")
    },
}
"""Formats with nondefault layouts."""
