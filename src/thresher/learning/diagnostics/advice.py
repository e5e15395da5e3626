"""Text for messages about trouble: names of features, and options that help."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.chunk import Chunk
from thresher.data.columns import NUMERIC
from thresher.data.features.names import Names, numeric_keys
from thresher.data.layout import SettledLayout
from thresher.engine.protocol import writes
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.learning.model.recipe import Recipe

_STEP_SIZES = ("alpha", "eta", "rate")
"""Parameters that scale the step size: a smaller value makes smaller steps."""
_MOST = 3
_LARGE = 1e12
"""The squares of errors on labels from here on may overflow float32."""


def feature_names(keys: Iterable[int], layout: SettledLayout | None, names: Names | None = None) -> list[str]:
    """For each key, a column name, the name of the feature if it is known, or the key itself."""
    columns, found = numeric_keys(layout), list[str]()
    for key in keys:
        name = names.get(key) if names and key not in columns else None
        feature = f"feature {key}" + (f" ({name})" if name else "")
        found.append(f"column {columns[key]}" if key in columns else feature)
    return found


def magnitude(value: float) -> str:
    """A number formatted for people."""
    return f"{value:,.0f}" if 1000 <= value < 1e15 else f"{value:.6g}"


def largest_in(chunk: Chunk, layout: SettledLayout | None, names: Names | None = None) -> str:
    """The features in `chunk` with the largest values, as text; only values above 1 in magnitude."""
    order = np.argsort(-np.abs(chunk.values), kind="stable")
    _, firsts = np.unique(chunk.keys[order], return_index=True)
    largest = order[np.sort(firsts)[:_MOST]].tolist()
    places = [place for place in largest if abs(chunk.values[place]) > 1]
    found = feature_names(chunk.keys[places].tolist(), layout, names)
    values = chunk.values[places].tolist()
    return ", ".join(f"{name} is {value:.6g}" for name, value in zip(found, values, strict=True))


def measures_scales(recipe: Recipe) -> bool:
    """Whether the rule measures the scale of each feature: rules with the verb `meet` do."""
    return writes(type(recipe.rule_part), "meet")


def scale_remedy(recipe: Recipe, smaller: bool = False) -> str:
    """What helps if features have very different scales: `smaller`, only together with smaller steps."""
    layout, remedies = recipe.layout or SettledLayout(), list[str]()
    which = "columns" if layout.columns else "features"
    if not layout.columns or NUMERIC in layout.kinds:
        rule = recipe.rule_part
        chosen = any(getattr(rule, name) != rule._field_defaults.get(name) for name in _step_sizes(rule))
        steps = f" and use a smaller step size{step_size(recipe)}" if smaller or chosen else ""
        remedies.append(f"divide {which} by their largest values ({mention(scale='max-abs')}){steps}")
    if not measures_scales(recipe):
        remedies.append(_measuring(recipe))
    return ", or ".join(remedies or ["leave out the features with such values"])


def _measuring(recipe: Recipe) -> str:
    """Rules that measure scales, for a rule that does not."""
    rated = hasattr(recipe.rule_part, "rate")
    needless = f"neither scaling nor {mention('rate')}" if rated else "no scaling"
    return f"take {mention(rule='ft-ftrl')} or normalized, which need {needless}"


def _step_sizes(rule: Any) -> list[str]:
    """The parameters of a rule that are step sizes: any positive number will do."""
    limits = rule.LIMITS
    return [name for name in _STEP_SIZES if name in rule._fields and limits.get(name, "> 0") == "> 0"]


def divergence_remedy(recipe: Recipe, large: str | None, label: float = 0.0) -> str:
    """What helps against divergence.

    `large` lists features with large values, None if it is not known which rows are to blame; `label` is the
    largest label that is a number. A smaller step size alone does not help against large values, nor does a
    wider dtype.
    """
    named = f" (large values: {large})" if large else ""
    if label >= _LARGE:
        labels = f"divide the labels, which reach {label:.6g}, by the largest"
        if not measures_scales(recipe):
            return f"{labels}, and {_measuring(recipe)}{named}"
        wider = f", or use {mention(dtype='float64')}" if recipe.numbers == np.float32 else ""
        return f"{labels}{wider}{named}"
    smaller = f"use a smaller step size{step_size(recipe)}" if step_size(recipe) else ""
    if large and recipe.scale is None and (smaller or measures_scales(recipe)):
        return f"{scale_remedy(recipe, smaller=True)}{named}"
    rule = "" if measures_scales(recipe) else _measuring(recipe)
    either = ", or ".join(filter(None, (smaller, rule))) or "scale features and labels"
    if large is None:
        return f"divide labels and values above {_LARGE:g} by the largest; if there are none, {either}"
    return f"{either}{named}"


def step_size(recipe: Recipe) -> str:
    """The step size parameter and its value, in parentheses; empty if the rule has none."""
    rule = recipe.rule_part
    for name in _step_sizes(rule):
        value = getattr(rule, name)
        return f" ({name}, currently {f'{value:g}' if isinstance(value, float) else recipe.rate})"
    return ""
