"""A model as a small table for notebooks: HTML without scripts or styles of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from thresher.drawing.svg import tag, text_of
from thresher.learning.feature_names import known_names
from thresher.learning.figures import of_first_pass, shown
from thresher.learning.finite import DivergedError

_TOP = 5
"""number of positive and of negative weights"""


def summary(model: Any) -> str:
    """How the model was made, and its heaviest positive and negative weights."""
    recipe = replace(model.recipe, layout=None)
    rows = [
        ("rule", str(recipe.rule)),
        ("loss", str(recipe.loss)),
        ("outputs", str(recipe.outputs)),
        ("examples", shown(model.examples)),
        ("progressive loss", of_first_pass(model.tally.known, model.repeated.weight > 0)),
        ("non-zero weights", f"{model.nonzero:,} of {model.features_seen:,} features seen"),
    ]
    body = [_row(name, text) for name, text in rows]
    body += [_row(name, text) for name, text in _weights(model)]
    return tag("table", tag("caption", text_of("thresher Model")), tag("tbody", *body))


def _row(name: str, text: str) -> str:
    return tag("tr", tag("th", text_of(name), scope="row"), tag("td", text_of(text)))


def _weights(model: Any) -> list[tuple[str, str]]:
    """The heaviest weights of both signs with names; none while they are not finite."""
    try:
        readout = model.readout()
    except DivergedError:
        return [("weights", "not finite: learning diverged")]
    names, many = known_names(readout), model.head.outputs.kind != "one"
    labels = model.head.names(model.classes) if many else []
    found = []
    for title, sign in (("heaviest positive", 1), ("heaviest negative", -1)):
        each = [one for one in readout.heaviest() if one[2] * sign > 0][:_TOP]
        words = (
            f"{names.get(key, str(key))}{f' ({labels[k]})' if many else ''} {shown(float(w))}"
            for key, k, w in each
        )
        found.append((title, ", ".join(words) or "none"))
    return found
