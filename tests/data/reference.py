"""Building blocks of simple reference parsers, and helpers to compare results with them."""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data import Chunk, concat, open_source

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_TOO_LARGE = Fraction(2**128 - 2**103)


class BadLineError(Exception):
    """The line is not a valid example."""


class Row(NamedTuple):
    label: np.float32
    weight: np.float32
    features: dict[int, np.float32]
    merged: bool


def _moderate(text: str) -> str:
    """The number with its exponent limited to where a float32 is zero or overflows."""
    mantissa, _, exponent = text.lower().partition("e")
    most = len(mantissa) + 100
    return f"{mantissa}e{max(-most, min(most, int(exponent or 0)))}"


@lru_cache(1 << 14)
def float32_of(text: str) -> np.float32:
    """The nearest float32, found with exact fractions among the neighbours of a first guess."""
    if not NUMBER.fullmatch(text):
        raise BadLineError(text)
    exact = Fraction(_moderate(text.lstrip("+-")))
    if exact >= _TOO_LARGE:
        raise BadLineError(text)
    guess = np.float32(min(float(exact), 3.4028234663852886e38))
    with np.errstate(all="ignore"):
        near = [guess, np.nextafter(guess, np.float32(np.inf)), np.nextafter(guess, np.float32(-np.inf))]
    near = [one for one in near if np.isfinite(one) and one >= 0]
    least = min(abs(Fraction(float(one)) - exact) for one in near)
    closest = [one for one in near if abs(Fraction(float(one)) - exact) == least]
    even: np.float32 = min(closest, key=lambda one: int(one.view(np.uint32)) & 1)
    return -even if text[0] == "-" else even


def label_of(text: str, domain: str) -> np.float32:
    label = float32_of(text)
    if domain == "binary" and label not in (-1, 0, 1):
        raise BadLineError(text)
    if domain == "nonnegative" and label < 0:
        raise BadLineError(text)
    return label


def parse_text(
    text: bytes, domain: str, parse: Callable[[bytes, str], Row | None]
) -> tuple[list[Row], list[bytes], int]:
    """``(examples, bad lines, blank lines)`` of a file."""
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    rows, bad, blank = list[Row](), list[bytes](), 0
    for line in lines:
        try:
            row = parse(line, domain)
        except BadLineError:
            bad.append(line)
            continue
        if row is None:
            blank += 1
        else:
            rows.append(row)
    return rows, bad, blank


def rows_of(chunk: Chunk) -> list[tuple[bytes, bytes, list[int], bytes]]:
    """Every row of a chunk, to the last bit."""
    spans = zip(chunk.indptr[:-1], chunk.indptr[1:], strict=True)
    return [
        (
            chunk.labels[i].tobytes(),
            chunk.weights[i].tobytes(),
            chunk.keys[a:b].tolist(),
            chunk.values[a:b].tobytes(),
        )
        for i, (a, b) in enumerate(spans)
    ]


def bits(rows: Iterable[Row]) -> list[tuple[bytes, bytes, list[int], bytes]]:
    """`rows_of` for the rows of this parser."""
    return [
        (
            row.label.tobytes(),
            row.weight.tobytes(),
            list(row.features),
            np.array(list(row.features.values()), np.float32).tobytes(),
        )
        for row in rows
    ]


def written(folder: Path, text: bytes, name: str = "data.svm") -> str:
    path = folder / name
    path.write_bytes(text)
    return str(path)


def read_all(data: object, **options: object) -> Chunk:
    source = open_source(data, **options)  # type: ignore[arg-type]
    return concat(list(source.chunks()))


def same(a: Chunk, b: Chunk) -> bool:
    pairs: zip[tuple[NDArray[Any], NDArray[Any]]] = zip(
        (a.indptr, a.keys, a.values, a.labels, a.weights),
        (b.indptr, b.keys, b.values, b.labels, b.weights),
        strict=True,
    )
    arrays = all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in pairs)
    several = (a.targets is None) == (b.targets is None) and np.array_equal(a.targets, b.targets)  # type: ignore[arg-type]
    return arrays and several and (a.place, a.after) == (b.place, b.after)
