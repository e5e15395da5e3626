"""Stability selection: the features that live in most halves, and how many of them are false."""

from __future__ import annotations

from thresher.reporting.facts import Facts
from thresher.reporting.html import Markup, details, el, figure, named, section, table
from thresher.reporting.training import SHAPE

_ROWS = 100
_READING = (
    "Each dot is a feature: further up it lives in more halves of the rows, further right its mean weight is"
    " larger. Those on or above the line are kept."
)


def part(facts: Facts) -> Markup:
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
    rows = [
        [
            named(found.name(one["feature"])),
            "kept" if one["kept"] else "",
            *(one[name] for name in ("share", "mean", "low", "high")),
            "yes" if one["sign_changes"] else "no",
        ]
        for one in found.rows()[:_ROWS]
    ]
    note = f"The first {_ROWS} of {len(found.keys):,}." if len(found.keys) > _ROWS else ""
    heads = ["Feature", "", "Share", "Mean weight", "Low", "High", "Sign changes"]
    numbers = details(table("Features, the most stable first", heads, rows, note))
    shown = found.picture(name="stability", height=320, **SHAPE)
    return section(
        "selection", "Stable features", el("p", sentence), figure(shown, _READING, numbers, beside=True)
    )
