"""A model in notebooks: a table in HTML without scripts or styles of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from thresher.drawing.svg import tag, text_of
from thresher.learning.inspection.feature_names import known_names
from thresher.learning.inspection.formatting import format_figure, of_first_pass
from thresher.learning.model.divergence import DivergedError

_TOP = 5
"""number of positive and of negative weights"""


def summary(model: Any) -> str:
    """How the model was made, and its heaviest positive and negative weights."""
    recipe, record = replace(model.recipe, layout=None), model.record
    again = model.repeated.weight > 0 or (record is not None and record.solved is not None)
    rows = {
        "rule": str(recipe.rule),
        "loss": str(recipe.loss),
        "outputs": str(recipe.outputs),
        "examples": format_figure(model.examples),
        "progressive loss": of_first_pass(model.tally.known, again),
        "non-zero weights": f"{model.nonzero:,} of {model.features_seen:,} features seen",
    }
    try:
        predictor = model.predictor()
    except DivergedError:
        rows["weights"] = "not finite: learning diverged"
    else:
        names, many = known_names(predictor), model.head.outputs.kind != "one"
        labels = model.head.names(model.classes) if many else []
        for title, sign in (("heaviest positive", 1), ("heaviest negative", -1)):
            each = [one for one in predictor.heaviest() if one[2] * sign > 0][:_TOP]
            words = (
                f"{names.get(key, str(key))}{f' ({labels[k]})' if many else ''} {format_figure(float(w))}"
                for key, k, w in each
            )
            rows[title] = ", ".join(words) or "none"
    body = [
        tag("tr", tag("th", text_of(name), scope="row"), tag("td", text_of(text)))
        for name, text in rows.items()
    ]
    return tag("table", tag("caption", text_of("thresher Model")), tag("tbody", *body))
