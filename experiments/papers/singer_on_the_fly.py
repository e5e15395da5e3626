"""Sparsity while learning: shares of features with a weight along the stream (Singer, slide 33)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from thresher import Model
from thresher.data import Chunk
from thresher.drawing import Axis, Series, chart

RULE = "adagrad-fobos:eta=0.3,l1=3e-5"
POINTS = 40


class Point(NamedTuple):
    """The model after some rows."""

    rows: int
    of_seen: float
    """features with a weight, as a share of those seen so far"""
    of_all: float
    """the same, as a share of all features of the data"""


def followed(rows: Chunk) -> list[Point]:
    """One pass over `rows`, stopped at `POINTS` places in geometric progression."""
    model, total = Model(RULE, "logistic"), len(np.unique(rows.keys))
    ends = np.unique(np.geomspace(10, len(rows), POINTS).astype(int)).tolist()
    found = []
    for lo, hi in zip([0, *ends], ends, strict=False):
        model.learn(rows, lo, hi)
        found.append(Point(hi, model.nonzero / model.features_seen, model.nonzero / total))
    return found


def page(sets: Sets) -> Page:
    """Follow the shares on RCV1."""
    points = followed(sets.rcv1().train)
    first, last = points[0], points[-1]
    x = [point.rows for point in points]
    series = [
        Series("of features seen so far", x, [point.of_seen for point in points]),
        Series("of all features", x, [point.of_all for point in points]),
    ]
    svg = chart(
        "Features with a weight, along the stream",
        "Shares of the features with a weight, along the stream of RCV1-CCAT.",
        Axis("rows learned", log=True, whole=True),
        Axis("share of features with a weight", percent=True, low=0),
        series,
    )
    shown = [points[round(k)] for k in np.linspace(0, len(points) - 1, 7)]
    return Page(
        title="Sparsity on the fly",
        source="Singer, *Efficient Algorithms for Learning Sparse Models from High Dimensional Data* "
        "(MLSS 2012), slide 33",
        claim="A model that is sparse while it learns needs memory for a few per cent of the features only.",
        method=f"RCV1-CCAT, one pass, `{RULE}`.",
        verdicts=[
            Verdict(
                "the share of seen features that have a weight falls along the stream",
                "falls to a few per cent",
                f"{first.of_seen:.1%} after {first.rows} rows, {last.of_seen:.1%} at the end",
                last.of_seen < first.of_seen,
            )
        ],
        pictures=[Picture(svg, "Shares of features with a weight against rows learned")],
        tables=[
            table(
                ("rows learned", "of features seen", "of all features"),
                [(f"{p.rows:,}", f"{p.of_seen:.1%}", f"{p.of_all:.1%}") for p in shown],
            )
        ],
    )
