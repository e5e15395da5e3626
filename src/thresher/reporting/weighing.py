"""What each column does to the margin; the heaviest weights by name and sign, for each class."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from thresher.learning.inspection.feature_names import known_names
from thresher.learning.model.prediction import LinearPredictor
from thresher.reporting.facts import Facts
from thresher.reporting.html import BAR_STEPS, Markup, el, section, short_name, table

_OF_ONE, _OF_EACH, _OUTPUTS, _GROUPS = 30, 10, 10, 30
"""maximum numbers of weights of the only output and of each of several, of outputs, and of columns"""
_NAME = 120
"""maximum number of characters in the name of a feature"""
_HEADS = ["Column", "", "Effect", "Features with a weight"]
_EFFECTS = (
    "The effect of a column is the standard deviation of what it adds to the margin, over a sample of rows:"
    " how much predictions differ because of it, whatever its unit."
)
_READING = (
    "A feature with a positive weight raises the prediction when it is present, one with a negative weight"
    " lowers it. For columns of numbers the weight is that of one unit, so weights of columns on different"
    " scales cannot be compared."
)
_READING_OF_CLASSES = (
    "A positive weight makes the class more likely, a negative one less likely. Both signs are shown, half of"
    " the rows each if there are as many."
)


def part(facts: Facts) -> Markup:
    """The section; empty without a model."""
    if facts.model is None:
        return Markup()
    predictor, info = facts.model.predictor, facts.model.info
    if not info["nonzero"]:
        return section("weights", "What matters", el("p", "All weights are zero."))
    signs = info["weights"]
    if predictor.head.count == 1:  # the heaviest positive and the heaviest negative weights, side by side
        found, tables = _heaviest(predictor, 0, _OF_ONE), list[Markup]()
        largest = max((abs(weight) for each in found for _, weight in each), default=1.0)
        for sign, each in zip(("positive", "negative"), found, strict=True):
            caption = f"{len(each)} of {signs[sign]:,}, the heaviest first"
            shown = _table(predictor, caption, each, largest) if each else el("p", "None.")
            tables.append(el("div", el("h3", f"Heaviest {sign}"), shown))
        inside = [el("p", _READING, class_="note"), el("div", *tables, class_="pair")]
    else:
        by_norm = sorted(enumerate(info["by_output"]), key=lambda one: (-one[1]["l1_norm"], one[0]))
        what, figures = "Class" if predictor.head.classifies else "Output", list[Markup]()
        for k, one in sorted(by_norm[:_OUTPUTS]):
            weights = [*chain.from_iterable(_heaviest(predictor, k, _OF_EACH))]
            shown = _table(predictor, "The heaviest weights of both signs", weights)
            figures.append(el("div", el("h3", short_name(f"{what} {one['output']}")), shown))
        reading = _READING_OF_CLASSES if predictor.head.classifies else _READING
        inside = [el("p", reading, class_="note"), el("div", *figures, class_="pair")]
        if len(by_norm) > _OUTPUTS:
            most = f"Of {len(by_norm):,} outputs, the {_OUTPUTS} with the largest weights are shown."
            inside.insert(0, el("p", most))
    both = f"{signs['positive']:,} positive and {signs['negative']:,} negative"
    sentence = f"{info['nonzero']:,} weights are not zero: {both}."
    if len(info["by_output"]) > 1:
        sentence += f" For each output, up to {_OF_EACH} are shown."
    groups = [{"group": one["column"], **one} for one in info["columns"]] + info["groups"]
    groups = sorted((one for one in groups if "effect" in one), key=lambda one: -one["effect"])
    rows = list[list[Any]]()
    for one in groups:
        name = "(without a name)" if one["group"] is None else short_name(one["group"]) or "(no namespace)"
        bar = _bar(one["effect"], groups[0]["effect"], "c1")
        rows.append([name, bar, one["effect"], one.get("features", "")])
    effects = list[Markup]()
    if len(rows) > 1:
        shown = table("Columns and namespaces by effect", _HEADS, rows, most=_GROUPS)
        effects = [el("h3", "What matters, by column"), el("p", _EFFECTS, class_="note"), shown]
    heaviest = el("h3", "The heaviest weights"), el("p", sentence)
    return section("weights", "What matters", *effects, *heaviest, *inside)


def _table(
    predictor: LinearPredictor, caption: str, found: list[tuple[int, float]], largest: float = 0.0
) -> Markup:
    """Names, which wrap, with weights, and bars of their magnitude."""
    names, rows = known_names(predictor), []
    largest = largest or max((abs(weight) for _, weight in found), default=1.0)
    for key, weight in found:
        bar = _bar(abs(weight), largest, "c2" if weight < 0 else "c1")
        rows.append([short_name(names.get(key, f"feature {key}"), _NAME), bar, weight])
    return table(caption, ["Feature", "", "Weight"], rows)


def _heaviest(predictor: LinearPredictor, output: int, most: int) -> list[list[tuple[int, float]]]:
    """Keys and positive weights of an output, then negative ones, by falling magnitude.

    They are `most` together: half of each sign, if there are as many.
    """
    column = predictor.weights.reshape(len(predictor.keys), predictor.head.count)[:, output]
    (live,) = np.nonzero(column)
    order = live[np.lexsort((predictor.keys[live], -np.abs(column[live])))]
    positive, negative = order[column[order] > 0], order[column[order] < 0]
    first, second = max((most + 1) // 2, most - len(negative)), max(most // 2, most - len(positive))
    kept = positive[:first], negative[:second]
    return [[(int(predictor.keys[k]), float(column[k])) for k in each] for each in kept]


def _bar(size: float, largest: float, colour: str) -> Markup:
    length = max(round(BAR_STEPS * size / largest), 1) if largest else 0
    return el("span", class_=f"thresher-chart weight {colour} l{length}", aria_hidden="true")
