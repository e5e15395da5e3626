"""Which loop a recipe learns with."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher import parts
from thresher.engine.index import HashedIndex, Index
from thresher.learning.model.class_state import ClassState
from thresher.learning.model.objective import Objective
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.rule_state import ManyState, OneState


def make_loop(recipe: Recipe, head: Objective, rule: Any, index: Index) -> OneState | ManyState:
    """The loop for the recipe's outputs and batch size. A group of one output is not treated as a group.

    ValueError for a rule that cannot be averaged, and for one whose weights do not start at zero with a
    signed store or admission.
    """
    name = parts.part_name(type(rule))
    if recipe.average and getattr(rule, "half_life", np.inf) < np.inf:
        raise ValueError(
            f"{name} cannot be averaged with a half_life: there is no formula for the sum of weights that"
            " fade; leave out one of them"
        )
    if recipe.average and rule.DRIFTS is None:
        known = parts.REGISTRY["rule"].items()
        able = sorted(n for n, cls in known if getattr(cls, "DRIFTS", None) is not None)
        raise ValueError(
            f"{name} cannot be averaged: there is no formula for the sum of its weights between two visits;"
            f" these rules can: {', '.join(able)}"
        )
    alone = getattr(type(rule), "_field_defaults", {}).get("group")
    if head.count == 1 and getattr(rule, "group", alone) != alone:
        rule = parts.make("rule", rule, group=alone)
    if signs := recipe.signs():
        rule = parts.clamped(rule, signs.of_class)
    made, kinds = (head, rule, recipe.numbers, index), (recipe.average, recipe.calibrate)
    loop: OneState | ManyState
    if head.outputs.kind == "one" and recipe.batch == 1:
        loop = OneState(*made, *kinds)
    else:
        of_classes = head.outputs.kind == "classes"
        loop = (ClassState if of_classes else ManyState)(*made, recipe.batch, *kinds)
    if not recipe.intercept:
        loop.B = loop.B[:0]
    what = "" if recipe.admit is None else "features wait to be admitted"
    if isinstance(index, HashedIndex) and index.signed:
        what = "a signed store flips half of the signs"
    if what and loop.unmet().any():
        name = parts.part_name(type(loop.rule))
        raise ValueError(f"{name}: its weights do not start at zero, which does not work if {what}")
    return loop
