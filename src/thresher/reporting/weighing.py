"""The heaviest weights by name and sign, for each class, and sums by column."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.drawing import Bar, bars
from thresher.learning.feature_names import known_names
from thresher.learning.readout import Readout
from thresher.reporting.facts import Facts
from thresher.reporting.html import Markup, details, el, figure, joined, named, section, table
from thresher.reporting.training import SHAPE

_OF_ONE, _OF_EACH, _OUTPUTS, _GROUPS = 30, 10, 10, 30
"""maximum numbers of weights of the only output and of each of several, of outputs, and of columns"""
_READING = (
    "A bar to the right raises the prediction when the feature is present, one to the left lowers it. For"
    " columns of numbers the weight is that of one unit, so weights of columns on different scales cannot be"
    " compared."
)
_READING_OF_CLASSES = (
    "A bar to the right makes the class more likely, one to the left less likely. At least half of the bars"
    " are to the right if there are as many."
)


def part(facts: Facts) -> Markup:
    """The section; empty without a model."""
    if facts.model is None:
        return Markup()
    readout, info = facts.model.readout, facts.model.info
    if not info["nonzero"]:
        return section("weights", "The heaviest weights", el("p", "All weights are zero."))
    alone = readout.head.count == 1
    inside = [_figure(readout, 0, _OF_ONE, "", _READING)] if alone else _by_output(readout, info)
    return section("weights", "The heaviest weights", _norms(info), *inside, _groups(info))


def _norms(info: dict[str, Any]) -> Markup:
    weights = info["weights"]
    return el(
        "p",
        f"{info['nonzero']:,} weights are not zero: {weights['positive']:,} positive and"
        f" {weights['negative']:,} negative.{_how_many(info)}",
    )


def _how_many(info: dict[str, Any]) -> str:
    if len(info["by_output"]) > 1:
        return f" For each output, up to {_OF_EACH} are shown."
    return f" The {_OF_ONE} heaviest are shown." if info["nonzero"] > _OF_ONE else ""


def _by_output(readout: Readout, info: dict[str, Any]) -> list[Markup]:
    rows = sorted(enumerate(info["by_output"]), key=lambda one: (-one[1]["l1_norm"], one[0]))
    shown = sorted(rows[:_OUTPUTS])
    what = "Class" if readout.head.classifies else "Output"
    figures = [_figure(readout, k, _OF_EACH, f"{what} {one['output']}", "") for k, one in shown]
    left = []
    if len(rows) > _OUTPUTS:
        left = [el("p", f"Of {len(rows):,} outputs, the {_OUTPUTS} with the largest weights are shown.")]
    reading = _READING_OF_CLASSES if readout.head.classifies else _READING
    return [*left, el("p", reading, class_="note"), el("div", *figures, class_="pair")]


def _figure(readout: Readout, output: int, most: int, title: str, reading: str) -> Markup:
    found = _heaviest(readout, output, most, balanced=readout.head.classifies and readout.head.count > 1)
    names = known_names(readout)
    called = [named(names.get(key, f"feature {key}")) for key, _ in found]
    rows = [Bar(name, weight) for name, (_, weight) in zip(called, found, strict=True)]
    what = f"Heaviest weights{' of ' + named(title) if title else ''}"
    picture = bars(
        what, f"The {len(rows)} weights of the largest magnitude.", rows, axis="weight",
        name=f"weights-{output}", **SHAPE,
    )  # fmt: skip
    pairs = [[name, weight] for name, (_, weight) in zip(called, found, strict=True)]
    numbers = details("The numbers", table(what, ["Feature", "Weight"], pairs))
    head = [el("h3", named(title))] if title else []
    return joined([el("div", *head, figure(picture, reading, numbers, beside=not title))])


def _heaviest(readout: Readout, output: int, most: int, balanced: bool) -> list[tuple[int, float]]:
    """Keys and weights of an output, by falling magnitude.

    If `balanced`, at least half are positive if there are as many: they say what makes a class likely, while
    against it many rare features may speak.
    """
    column = readout.weights.reshape(len(readout.keys), -1)[:, output]
    (live,) = np.nonzero(column)
    order = live[np.lexsort((readout.keys[live], -np.abs(column[live])))]
    if balanced:
        ahead = np.isin(order, order[column[order] > 0][: (most + 1) // 2])
        rest = np.flatnonzero(~ahead)[: max(0, most - int(ahead.sum()))]
        ahead[rest] = True
        order = order[ahead]
    return [(int(readout.keys[k]), float(column[k])) for k in order[:most]]


def _groups(info: dict[str, Any]) -> Markup:
    """Weights by column or namespace."""
    columns = [{"group": one["column"], **one} for one in info["columns"] if "l1_norm" in one]
    found = sorted([*columns, *info["groups"]], key=lambda one: -one["l1_norm"])
    if len(found) < 2:
        return Markup()
    rows = [
        [
            "(without a name)" if one["group"] is None else named(one["group"]) or "(no namespace)",
            one["features"],
            one["l1_norm"],
            one["largest"],
        ]
        for one in found[:_GROUPS]
    ]
    heads = ["Column", "Features with a weight", "Sum of magnitudes", "Largest"]
    note = f"The {_GROUPS} heaviest of {len(found):,}." if len(found) > _GROUPS else ""
    return joined(
        [
            el("h3", "Weights by column"),
            table("Columns and namespaces, the heaviest first", heads, rows, note),
        ]
    )
