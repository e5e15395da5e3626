"""A generated click log shaped like Criteo's: 13 integers and 26 categories per row.

Numbers are log-normal, categories Zipfian with 3 to 6 million values, and cells are missing as often as in
Criteo's log; a quarter of the rows are clicks. The true model is linear in the logarithms of the numbers and
in 30 % of the 4,000 most frequent values of each category. The 2,000,000 training rows take 488 MB.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

TRAIN, TEST, SEED = 2_000_000, 200_000, 7
_PIECE, _TELLING, _SHARE, _CLICKS = 50_000, 4000, 0.3, 0.25
_VALUES = (
    *(1460, 583, 6_000_000, 2_200_000, 305, 24, 12_500, 633, 3, 93_000, 5700, 6_000_000, 3200),
    *(27, 15_000, 5_000_000, 10, 5650, 2170, 4, 6_000_000, 18, 15, 286_000, 105, 142_000),
)
_EXPONENTS = (
    *(1.1, 1.05, 0.78, 0.85, 1.2, 1.2, 1.0, 1.2, 1.2, 0.9, 1.0, 0.80, 1.0),
    *(1.2, 1.0, 0.80, 1.1, 1.0, 1.1, 1.1, 0.80, 1.2, 1.1, 0.9, 1.2, 0.9),
)
_LACKING = (
    *(0, 0, 0.03, 0.03, 0, 0.12, 0, 0, 0, 0, 0, 0.03, 0),
    *(0, 0, 0.03, 0, 0, 0.44, 0.44, 0.03, 0.76, 0, 0.03, 0.44, 0.44),
)
_NUMBERS = (
    *((0.9, 1.2, 0.45), (2.5, 2.2, 0), (1.9, 1.8, 0.21), (1.7, 1.1, 0.22), (7.5, 2.2, 0.03)),
    *((3.4, 1.6, 0.22), (1.7, 1.6, 0.04), (2.1, 1.2, 0), (3.8, 1.5, 0.04), (0.1, 0.5, 0.45)),
    *((0.7, 0.8, 0.04), (0.1, 0.9, 0.76), (1.7, 1.1, 0.22)),
)
"""mean and standard deviation of the logarithm, and share of empty cells"""

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


class Clicks(NamedTuple):
    """The two files: tab-separated, without a header."""

    train: Path
    test: Path

    @property
    def megabytes(self) -> float:
        """Size of the training text."""
        return self.train.stat().st_size / 1e6


class _Truth(NamedTuple):
    """The true model of clicks."""

    slopes: F64
    steps: F64
    missing: F64
    values: list[F64]


class _Rows(NamedTuple):
    """Numbers and ranks of values (-1 for an empty cell), and scores."""

    numbers: I64
    ranks: I64
    scores: F64


def clicks(folder: Path, scale: float = 1.0) -> Clicks:
    """Return the files in `folder`; generate them if they do not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    count, tested = round(TRAIN * scale), max(round(TEST * scale), min(TEST, 20_000))
    files = Clicks(folder / f"clicks-{count}.train.tsv", folder / f"clicks-{count}.test.tsv")
    if not files.test.exists():
        print(f"generating {files.train} ...", flush=True)
        rng = np.random.default_rng(SEED)
        truth = _truth(rng)
        cut = _cut(truth)
        for path, rows in zip(files, (count, tested), strict=True):
            unfinished = path.with_suffix(".partial")
            with open(unfinished, "wb") as file:
                file.writelines(_text(rng, rows, truth, cut))
            unfinished.rename(path)
    return files


def _truth(rng: np.random.Generator) -> _Truth:
    slopes, steps, missing = (rng.normal(0, deviation, len(_NUMBERS)) for deviation in (0.18, 0.2, 0.2))
    values = list[F64]()
    for count in _VALUES:
        informative = min(count, _TELLING)
        values.append(rng.normal(0, 0.55, informative) * (rng.random(informative) < _SHARE))
    return _Truth(slopes, steps, missing, values)


def _cut(truth: _Truth) -> float:
    """Return the intercept with which a quarter of the rows are clicks."""
    scores = _drawn(np.random.default_rng(SEED + 1), 100_000, truth).scores
    low, high = -10.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(scores + middle).mean() < _CLICKS else (low, middle)
    return middle


def _sigmoid(scores: F64) -> F64:
    return 1 / (1 + np.exp(-scores))


def _drawn(rng: np.random.Generator, rows: int, truth: _Truth) -> _Rows:
    numbers, ranks = np.empty((rows, len(_NUMBERS)), np.int64), np.empty((rows, len(_VALUES)), np.int64)
    scores = np.zeros(rows)
    for j, (mean, deviation, lacking) in enumerate(_NUMBERS):
        found = np.floor(np.exp(rng.normal(mean, deviation, rows))).clip(0, 5_000_000).astype(np.int64)
        present = rng.random(rows) >= lacking
        numbers[:, j] = np.where(present, found, -1)
        scaled = (np.log1p(found) - mean) / deviation
        effect = truth.slopes[j] * scaled + truth.steps[j] * (scaled > 1)
        scores += np.where(present, effect, truth.missing[j])
    for j, (count, exponent, lacking) in enumerate(zip(_VALUES, _EXPONENTS, _LACKING, strict=True)):
        rank = _zipf(rng.random(rows), count, exponent)
        present = rng.random(rows) >= lacking
        ranks[:, j] = np.where(present, rank, -1)
        weights = truth.values[j]
        informative = present & (rank < len(weights))
        scores += np.where(informative, weights[np.minimum(rank, len(weights) - 1)], 0)
    return _Rows(numbers, ranks, scores)


def _zipf(uniform: F64, count: int, exponent: float) -> I64:
    """Draw ranks below `count` with probability about (r + 1) ** -exponent, by inverting its integral."""
    if exponent == 1.0:
        rank = np.exp(uniform * np.log(count + 1.0)) - 1
    else:
        power = 1 - exponent
        rank = (uniform * ((count + 1.0) ** power - 1) + 1) ** (1 / power) - 1
    ranks: I64 = np.minimum(rank.astype(np.int64), count - 1)
    return ranks


def _text(rng: np.random.Generator, rows: int, truth: _Truth, cut: float) -> Iterator[bytes]:
    for first in range(0, rows, _PIECE):
        drawn = _drawn(rng, min(_PIECE, rows - first), truth)
        clicked = rng.random(len(drawn.scores)) < _sigmoid(drawn.scores + cut)
        yield _lines(drawn.numbers, drawn.ranks, clicked).tobytes()


@numba.njit
def _lines(numbers, ranks, clicked):  # type: ignore[no-untyped-def]
    """Return the rows as text: a label, numbers, and eight hexadecimal digits per category."""
    out = np.empty(clicked.size * (2 + 8 * numbers.shape[1] + 9 * ranks.shape[1]), np.uint8)
    at = 0
    for i in range(clicked.size):
        out[at] = 49 if clicked[i] else 48
        at += 1
        for j in range(numbers.shape[1]):
            out[at] = 9
            at = _decimal(out, at + 1, numbers[i, j])
        for j in range(ranks.shape[1]):
            out[at] = 9
            at += 1
            if ranks[i, j] >= 0:
                name = _name(j, ranks[i, j])
                for k in range(8):
                    digit = (name >> np.uint64(60 - 4 * k)) & np.uint64(15)
                    out[at + k] = digit + np.uint64(48 if digit < np.uint64(10) else 87)
                at += 8
        out[at] = 10
        at += 1
    return out[:at]


@numba.njit
def _decimal(out, at, number):  # type: ignore[no-untyped-def]
    """Write the digits of a number; nothing if it is negative."""
    if number < 0:
        return at
    places, rest = 1, number // 10
    while rest:
        rest //= 10
        places += 1
    for k in range(at + places - 1, at - 1, -1):
        out[k] = 48 + number % 10
        number //= 10
    return at + places


@numba.njit
def _name(column, rank):  # type: ignore[no-untyped-def]
    """Return 64 well-mixed bits (the finaliser of splitmix64); the upper half names a value."""
    x = np.uint64(rank + 1) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(column) * np.uint64(
        0xD1342543DE82EF95
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def vw_twin(source: Path) -> Path:
    """Return the rows as VW text: a word ``column_value`` per cell, numbers binned by squared logarithm."""
    twin = source.with_suffix(".vw")
    if not twin.exists():
        unfinished = twin.with_suffix(".partial")
        with open(source, encoding="ascii") as read, open(unfinished, "w", encoding="ascii") as write:
            while rows := [line.rstrip("\n").split("\t") for line in read.readlines(1 << 24)]:
                write.writelines(_vw_lines(rows))
        unfinished.rename(twin)
    return twin


def _vw_lines(rows: list[list[str]]) -> Iterator[str]:
    numbers = range(1, 1 + len(_NUMBERS))
    for label, *cells in rows:
        bins = (_binned(cells[k - 1]) for k in numbers)
        words = [*bins, *cells[len(_NUMBERS) :]]
        named = " ".join(f"{k}_{word}" for k, word in enumerate(words, 1) if word)
        yield f"{'1' if label == '1' else '-1'} | {named}\n"


_BINS: dict[str, str] = {"": "", "0": "0", "1": "1", "2": "2"}


def _binned(cell: str) -> str:
    if cell not in _BINS:
        _BINS[cell] = str(int(np.log(int(cell)) ** 2) + 1)
    return _BINS[cell]


def table_twins(source: Path) -> dict[str, Path]:
    """Return the file and its copies as CSV, JSON lines, Parquet and Arrow, with numbers as integers."""
    twins = {kind: source.with_suffix(f".{kind}") for kind in ("csv", "jsonl", "parquet", "arrow", "arrows")}
    if not all(path.exists() for path in twins.values()):
        print(f"writing {source.with_suffix('')} in other formats ...", flush=True)
        table = _table(source)
        for kind, path in twins.items():
            unfinished = path.with_suffix(".partial")
            _WRITERS[kind](table, unfinished)
            unfinished.rename(path)
    return {"tsv": source, **twins}


def _table(source: Path) -> Any:
    """Return a file without a header as an Arrow table with columns named 1, 2 ..."""
    import pyarrow as pa
    import pyarrow.csv as pc

    names = [str(k) for k in range(1, 2 + len(_NUMBERS) + len(_VALUES))]
    kinds = {name: pa.string() if k > len(_NUMBERS) else pa.int64() for k, name in enumerate(names)}
    return pc.read_csv(
        source,
        pc.ReadOptions(column_names=names),
        pc.ParseOptions(delimiter="\t", quote_char=False),
        pc.ConvertOptions(column_types=kinds, strings_can_be_null=True, null_values=[""]),
    ).combine_chunks()


def _write_csv(table: Any, path: Path) -> None:
    import pyarrow.csv as pc

    pc.write_csv(table, path, pc.WriteOptions(include_header=False, quoting_style="none"))


def _write_json(table: Any, path: Path) -> None:
    with open(path, "w", encoding="ascii") as file:
        for batch in table.to_batches(1 << 16):
            for row in batch.to_pylist():
                file.write(json.dumps(row) + "\n")  # keep nulls: columns are identified by position


def _write_parquet(table: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, row_group_size=1 << 17)


def _write_ipc(make: str, table: Any, path: Path) -> None:
    import pyarrow as pa

    with getattr(pa.ipc, make)(path, table.schema) as file:
        file.write_table(table, max_chunksize=1 << 16)


_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    "csv": _write_csv,
    "jsonl": _write_json,
    "parquet": _write_parquet,
    "arrow": partial(_write_ipc, "new_file"),
    "arrows": partial(_write_ipc, "new_stream"),
}
