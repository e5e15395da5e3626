"""Scan rules for the best (test error, non-zeros) after one pass: ``frontier.py TRAIN TEST [GRID...]``.

Prints the Pareto-optimal commands, lowest error first. The data are read once and kept in memory; a pass
over them gives the same model as a pass over the text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from thresher.data import Chunk, MemorySource, concat, open_source
from thresher.learning.evaluation.evaluate import score
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model

RATES = (
    "inverse-sqrt:{eta0}",
    "power:{eta0},t0=100000,p=0.5",
    "power:{eta0},t0=10000,p=0.5",
    "constant:{eta0}",
)
# name -> (rule, rates, values of their fields)
GRIDS: dict[str, tuple[str, tuple[str, ...], dict[str, tuple[float, ...]]]] = {
    "ftrl": (
        "ftrl:alpha={alpha},beta={beta},l1={l1}",
        ("",),
        {"alpha": (1, 1.5, 2, 3, 4), "beta": (0.1, 1.0, 4.0), "l1": (1, 2, 3, 4, 6, 8)},
    ),
    "truncated-gradient": (
        "truncated-gradient:gravity={gravity},every={every}",
        RATES,
        {"eta0": (0.5, 2, 8, 32), "gravity": (3e-6, 1e-5, 3e-5), "every": (1, 1000, 10000)},
    ),
    "fobos": (
        "fobos:l1={l1},l2={l2}",
        RATES,
        {"eta0": (0.5, 2, 8, 32), "l1": (3e-6, 1e-5, 3e-5), "l2": (0, 1e-6)},
    ),
    "rda": (
        "rda:gamma={gamma},l1={l1},rho={rho}",
        ("",),
        {
            "gamma": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1),
            "l1": (3e-6, 1e-5, 3e-5, 1e-4),
            "rho": (0, 0.005, 0.02),
        },
    ),
}


class Point(NamedTuple):
    """The result of one command."""

    error: float
    nonzero: int
    command: str


def commands(name: str) -> Iterator[tuple[str, str]]:
    """Yield every (rule, rate) of a grid."""
    rule, rates, fields = GRIDS[name]
    for values in product(*fields.values()):
        named = dict(zip(fields, values, strict=True))
        yield from ((rule.format(**named), rate.format(**named)) for rate in rates)


def read(path: str) -> list[Chunk]:
    """Read all chunks of a file, copied into memory of their own."""
    return [concat([chunk]) for chunk in open_source(path).chunks()]


def measure(rule: str, rate: str, train: list[Chunk], test: MemorySource) -> Point | None:
    """Train one pass and test; None if learning diverges."""
    model = Model(rule, "logistic", rate=rate or None, store="direct")
    try:
        for chunk in train:
            model.learn(chunk)
    except DivergedError:
        return None
    error = score(model.predictor(), test.chunks()).figures()["error"]
    assert error is not None
    return Point(float(error), model.nonzero, f"--rule {rule}" + (f" --rate {rate}" if rate else ""))


def frontier(points: list[Point]) -> list[Point]:
    """Return the Pareto-optimal points in error and non-zeros."""
    best: list[Point] = []
    for point in sorted(points):
        if not best or point.nonzero < best[-1].nonzero:
            best.append(point)
    return best


def main() -> None:
    """Scan all grids, or those named on the command line."""
    train, test = read(sys.argv[1]), MemorySource(read(sys.argv[2]), "binary")
    points: list[Point] = []
    for name in sys.argv[3:] or list(GRIDS):
        for rule, rate in commands(name):
            point = measure(rule, rate, train, test)
            if point is not None:
                points.append(point)
                print(f"{point.error:8.3%} {point.nonzero:7,}  {point.command}", file=sys.stderr, flush=True)
    for point in frontier(points):
        print(f"{point.error:8.3%} {point.nonzero:7,}  {point.command}")


if __name__ == "__main__":
    main()
