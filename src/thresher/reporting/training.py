"""How training went; the frontier, and the chosen point; the features that live in most halves."""

from __future__ import annotations

import math
from typing import Any

from thresher.learning.files import model_file
from thresher.learning.inspection import plots
from thresher.learning.inspection.plots import Stage
from thresher.plans.frontier import measure_of, picture
from thresher.reporting.facts import Facts
from thresher.reporting.html import Markup, el, figure, section, short_name, table

SHAPE: dict[str, Any] = {"style": False, "headed": False, "width": 400}
"""Shape of every picture: two fit side by side on a desk, one on a phone. The page contains the styles."""
_READING = (
    "Above: the average loss, measured on each example before the model learns from it. A line that still"
    " falls at the right end says that more data, or another pass, would help; one that rises says that the"
    " data have changed, or that the step size is too large. Below: the features that have occurred, and"
    " those to which the model gives a weight. The gap between them is what sparsity saves."
)

_OF_FRONTIER = (
    "Each dot is a model with another penalty: further left has fewer weights, further down predicts better."
    " The line joins those that no other beats in both. Where it is flat, weights can be saved for next to"
    " nothing."
)
_CHOICES = {
    "best": "the one with the lowest loss",
    "1se": "the sparsest within one standard error of the least loss",
}
_OF_FEATURES = (
    "Each dot is a feature: further up it lives in more halves of the rows, further right its mean weight is"
    " larger. Those on or above the line are kept."
)
_POINTS, _KEPT = 64, 100
"""rows of the tables of a frontier and of features"""
_LATER = " The losses end with the first pass, since later ones predict examples that were learned before."


def training(facts: Facts) -> Markup:
    """The section; empty if nothing is known."""
    model = facts.model
    if model is None or model.info["progressive_loss"] is None:
        return Markup()
    info = model.info
    # the points of the curve; the last is the final model
    stages = plots.stages_of_curve(model_file.curve_in(model.header), info["nonzero"])
    end = Stage(info["examples"], math.nan, info["progressive_loss"], info["nonzero"], info["features_seen"])
    end = end._replace(in_pass=1 + ("loss_of_later_passes" in info))
    if stages and stages[-1].examples >= end.examples:
        stages[-1] = end._replace(loss_since=stages[-1].loss_since)
    else:
        stages.append(end)
    if len(stages) < 2:
        sentence = f"The progressive loss is {info['progressive_loss']:.4g}. This file has no curve of it."
        return section("training", "How training went", el("p", sentence))
    loss = model.header["recipe"]["loss"].partition(":")[0]
    picture = plots.learning(stages, loss, name="learning", height=260, **SHAPE)
    heads = ["Examples", "Progressive loss", "Loss since", "Non-zero weights", "Features seen"]
    rows = list[list[Any]]()
    for one in stages[-40:]:
        average, since = (None if math.isnan(each) else each for each in (one.average, one.loss_since))
        rows.append(
            [one.examples, None if one.in_pass > 1 else average, since, one.nonzero, one.features_seen]
        )
    numbers = table("Progressive loss and sparsity by examples learned", heads, rows)
    reading = _READING + (_LATER if stages[-1].in_pass > 1 else "")
    shown = figure(picture, reading, numbers, beside=True)
    return section("training", "How training went", shown)


def frontier(facts: Facts) -> Markup:
    """The section: loss and size for each penalty; empty for a single model."""
    found = facts.frontier
    if found is None:
        return Markup()
    point = found.points[found.chosen]
    why = _CHOICES.get(found.choice, f"chosen by --choose {found.choice}")
    which = f"{found.penalty} {point.penalty:g}, {point.nonzero:,} non-zero weights"
    sentence = f"Of {len(found.points)} models, {why} was chosen: {which}."
    shown = picture(found.points, found.chosen, name="penalties", height=320, **SHAPE)
    measure = measure_of(found.points).capitalize()
    heads = [found.penalty, "", "Non-zero weights", measure, "Error", "± paired"]
    rows = list[list[Any]]()
    for k, one in enumerate(found.points):
        fate = "chosen" if k == found.chosen else "diverged" if one.dropped else ""
        loss, error = None if one.figure == math.inf else one.figure, (one.holdout or {}).get("error")
        rows.append([f"{one.penalty:g}", fate, one.nonzero, loss, error, one.paired_error])
    numbers = table("The models, from the weakest penalty", heads, rows, most=_POINTS)
    inside = figure(shown, _OF_FRONTIER, numbers, beside=True)
    return section("frontier", "Loss against size", el("p", sentence), inside)


def selection(facts: Facts) -> Markup:
    """The section; empty unless features were selected."""
    found = facts.selection
    if found is None:
        return Markup()
    kept = int(found.kept.sum())
    sentence = f"{kept:,} of {found.features:,} features are kept."
    if found.threshold is None:
        sentence += " No threshold keeps the expected number of false ones low enough."
    else:
        sentence += (
            f" They live in a share of {found.threshold:.3g} or more of {found.halves} halves. A half"
            f" selects {found.selected:,.4g}; at most {found.expected:.3g} are expected to be false."
        )
    rows = list[list[Any]]()
    for one in found.rows():
        lives, changes = "kept" if one["kept"] else "", "yes" if one["sign_changes"] else "no"
        figures = (one[name] for name in ("share", "mean", "low", "high"))
        rows.append([short_name(found.name(one["feature"])), lives, *figures, changes])
    heads = ["Feature", "", "Share", "Mean weight", "Low", "High", "Sign changes"]
    numbers = table("Features, the most stable first", heads, rows, most=_KEPT)
    shown = found.plot(name="stability", height=320, **SHAPE)
    inside = figure(shown, _OF_FEATURES, numbers, beside=True)
    return section("selection", "Stable features", el("p", sentence), inside)
