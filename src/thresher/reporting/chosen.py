"""The frontier: loss and size for each penalty, and the chosen point."""

from __future__ import annotations

from thresher.lanes.frontier import measure_of, picture
from thresher.reporting.facts import Facts
from thresher.reporting.html import Markup, details, el, figure, section, table
from thresher.reporting.training import SHAPE

_ROWS = 64
_READING = (
    "Each dot is a model with another penalty: further left has fewer weights, further down predicts better."
    " The line joins those that no other beats in both. Where it is flat, weights can be saved for next to"
    " nothing."
)
_CHOICES = {
    "best": "the one with the lowest loss",
    "1se": "the sparsest within one standard error of the least loss",
}


def part(facts: Facts) -> Markup:
    """The section; empty for a single model."""
    found = facts.frontier
    if found is None:
        return Markup()
    point = found.points[found.chosen]
    why = _CHOICES.get(found.choice, f"chosen by --choose {found.choice}")
    which = f"{found.penalty} {point.penalty:g}, {point.nonzero:,} non-zero weights"
    sentence = f"Of {len(found.points)} models, {why} was chosen: {which}."
    shown = picture(found.points, found.chosen, name="penalties", height=320, **SHAPE)
    heads = [
        found.penalty,
        "",
        "Non-zero weights",
        measure_of(found.points).capitalize(),
        "Error",
        "± paired",
    ]
    rows = [
        [
            f"{one.penalty:g}",
            "chosen" if k == found.chosen else "diverged" if one.dropped else "",
            one.nonzero,
            None if one.loss == float("inf") else one.loss,
            (one.holdout or {}).get("error"),
            one.paired_error,
        ]
        for k, one in enumerate(found.points)
    ]
    note = f"The first {_ROWS} of {len(rows):,}." if len(rows) > _ROWS else ""
    numbers = details(table("The models, from the weakest penalty", heads, rows[:_ROWS], note))
    return section(
        "frontier", "Loss against size", el("p", sentence), figure(shown, _READING, numbers, beside=True)
    )
