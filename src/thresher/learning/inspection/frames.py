"""Results as tables: a pandas DataFrame in long form, with the same columns for all; a model in notebooks.

The table in a notebook is HTML without scripts or styles of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thresher import parts
from thresher.drawing.svg import tag, text_of
from thresher.learning.inspection.feature_names import known_names
from thresher.learning.inspection.formatting import of_first_pass, shown
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.recipe import Recipe, penalty_field

if TYPE_CHECKING:
    import pandas as pd


COLUMNS = {
    "rule": "object",
    "spec": "object",
    "penalty": "float64",
    "seed": "Int64",
    "fold": "Int64",
    "examples": "Int64",
    "nonzero": "Int64",
    "progressive_loss": "float64",
    "holdout_loss": "float64",
    "chosen": "boolean",
    "dropped": "object",
}
"""Columns that every table has, in this order, with their types; further figures follow."""


def identity(recipe: Recipe) -> dict[str, object]:
    """Name and SPEC of the rule, the value of its penalty, and the seed."""
    return _identity(str(recipe.rule), recipe.rule_part, recipe.seed)


def _identity(spec: str, rule: object, seed: int) -> dict[str, object]:
    name = penalty_field(rule)
    penalty = None if name is None else float(getattr(rule, name))
    return {"rule": spec.partition(":")[0], "spec": spec, "penalty": penalty, "seed": seed}


def identity_of(model: object) -> dict[str, object]:
    """The `identity` of a model, a Readout or an ensemble; empty if it is unknown."""
    model = getattr(model, "models", [model])[0]
    if (recipe := getattr(model, "recipe", None)) is not None:
        return identity(recipe)
    spec, seed = getattr(model, "made", None) or (None, 0)
    if spec is None:
        return {}
    try:
        return _identity(spec, parts.make("rule", spec), seed)
    except ValueError:  # a rule of the user's own that is not registered here
        return {"rule": spec.partition(":")[0], "spec": spec, "seed": seed}


def held(figures: Mapping[str, Any] | None) -> dict[str, Any]:
    """Figures on rows that were not learned, as columns; lists and tables are left out."""
    numbers = {k: v for k, v in (figures or {}).items() if k != "examples" and _is_figure(v)}
    return {f"holdout_{name}": value for name, value in numbers.items()}


def _is_figure(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def frame_of(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """The rows as a DataFrame with `COLUMNS`, then all other names. Raises ImportError without pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("frame needs pandas: pip install pandas") from error
    given = list(rows)
    names = list(dict.fromkeys([*COLUMNS, *(name for row in given for name in row)]))
    frame = pd.DataFrame([{name: row.get(name) for name in names} for row in given], columns=names)
    others = [name for name in names if name not in COLUMNS and frame[name].dtype == object]
    figures = {name: "float64" for name in others if all(_is_figure(one) for one in frame[name])}
    return frame.astype({**COLUMNS, **figures})


class Evaluated(dict[str, Any]):
    """The figures of `thresher.evaluate`, a dictionary."""

    def __init__(self, figures: Mapping[str, Any], model: Any = None) -> None:
        """The figures of a `model`, of which `frame` tells too."""
        super().__init__(figures)
        self.model = {**identity_of(model), "nonzero": getattr(model, "nonzero", None)}

    def frame(self) -> pd.DataFrame:
        """The figures in one row, under the names that all results share. See docs/python.md."""
        return frame_of([{**self.model, "examples": self.get("examples"), **held(self)}])


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
        "examples": shown(model.examples),
        "progressive loss": of_first_pass(model.tally.known, again),
        "non-zero weights": f"{model.nonzero:,} of {model.features_seen:,} features seen",
    }
    try:
        readout = model.readout()
    except DivergedError:
        rows["weights"] = "not finite: learning diverged"
    else:
        names, many = known_names(readout), model.head.outputs.kind != "one"
        labels = model.head.names(model.classes) if many else []
        for title, sign in (("heaviest positive", 1), ("heaviest negative", -1)):
            each = [one for one in readout.heaviest() if one[2] * sign > 0][:_TOP]
            words = (
                f"{names.get(key, str(key))}{f' ({labels[k]})' if many else ''} {shown(float(w))}"
                for key, k, w in each
            )
            rows[title] = ", ".join(words) or "none"
    body = [
        tag("tr", tag("th", text_of(name), scope="row"), tag("td", text_of(text)))
        for name, text in rows.items()
    ]
    return tag("table", tag("caption", text_of("thresher Model")), tag("tbody", *body))
