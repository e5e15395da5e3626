"""How training went: progressive loss and sparsity over the stream."""

from __future__ import annotations

import math
from typing import Any

from thresher.learning.inspection import plots
from thresher.learning.inspection.plots import Stage
from thresher.reporting.facts import Facts, ReportedModel
from thresher.reporting.html import Markup, details, el, figure, section, table
from thresher.reporting.sliced import slice_tables

SHAPE: dict[str, Any] = {"style": False, "headed": False, "width": 400}
"""Shape of every picture: two fit side by side on a desk, one on a phone. The page contains the styles."""
_READING = (
    "Above: the average loss, measured on each example before the model learns from it. A line that still"
    " falls at the right end says that more data, or another pass, would help; one that rises says that the"
    " data have changed, or that the step size is too large. Below: the features that have occurred, and"
    " those to which the model gives a weight. The gap between them is what sparsity saves."
)

_LATER = " The losses end with the first pass, since later ones predict examples that were learned before."


def part(facts: Facts) -> Markup:
    """The section; empty if nothing is known."""
    model = facts.model
    if model is None or model.info["progressive_loss"] is None:
        return Markup()
    stages = _stages(model)
    if len(stages) < 2:
        sentence = (
            f"The progressive loss is {model.info['progressive_loss']:.4g}. This file has no curve of it."
        )
        return section("training", "How training went", el("p", sentence), *_slices(model))
    loss = model.header["recipe"]["loss"].partition(":")[0]
    picture = plots.learning(stages, loss, name="learning", height=260, **SHAPE)
    heads = ["Examples", "Progressive loss", "Loss since", "Non-zero weights", "Features seen"]
    rows = [
        [
            one.examples,
            _known(math.nan if one.again else one.average),
            _known(one.since),
            one.nonzero,
            one.features_seen,
        ]
        for one in stages[-40:]
    ]
    numbers = details(table("Progressive loss and sparsity by examples learned", heads, rows))
    reading = _READING + (_LATER if stages[-1].again else "")
    shown = figure(picture, reading, numbers, beside=True)
    return section("training", "How training went", shown, *_slices(model))


def _slices(model: ReportedModel) -> list[Markup]:
    """Figures by value of the columns that training counted, from predictions made before learning."""
    return slice_tables((model.info["record"] or {}).get("slices", {}), ", while learning")


def _stages(model: ReportedModel) -> list[Stage]:
    """The points of the curve; the last is the final model."""
    info = model.info
    found = plots.stages_of_curve(model.curve, info["nonzero"])
    end = Stage(info["examples"], math.nan, info["progressive_loss"], info["nonzero"], info["features_seen"])
    end = end._replace(again="loss_of_later_passes" in info)
    if found and found[-1].examples >= end.examples:
        return [*found[:-1], end._replace(since=found[-1].since)]
    return [*found, end]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
