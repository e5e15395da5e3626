"""``--rule auto``: a few settings close to the default rule race until one is left."""

from __future__ import annotations

from collections.abc import Container
from copy import copy
from dataclasses import replace

from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.plans.race import Race, RaceRecord

ALPHA, L1 = (1.0, 10.0, 3.0, 1 / 3), (1.0, 2.0)
"""Divisors of the default step size and threshold; measured on the data sets of docs/default.md."""
FIRST, UNTIL = 256, 1 << 16
BETTER = 0.01
SURE = 2.0
"""To replace the default, a lane must have a loss lower by this share and this many standard errors."""
WEAK = 4.0
"""A lane this many standard errors worse than the best is dropped before the end."""


def judge(record: RaceRecord, lanes: ModelSet, last: bool) -> None:
    """Drop weak lanes; at the end all but one: lane 0 wins unless another is clearly better."""
    losses = record.losses()
    best = min(lanes.alive, key=lambda k: (losses[k], k))
    first = min(lanes.alive)
    if last:
        behind = record.excess(first, best)
        enough = lanes.examples >= FIRST and behind.share >= BETTER and behind.errors >= SURE
        kept = [best if enough else first]
    else:
        kept = [k for k in lanes.alive if k in (first, best) or record.excess(k, best).errors < WEAK]
        if len(kept) == 2 and record.excess(first, best).errors >= WEAK:
            kept = [best]
    for k in lanes.alive:
        if k not in kept:
            lanes.parts[0].drop(k, "weaker than the others")


def field(recipe: Recipe, given: Container[str] = ()) -> list[Recipe]:
    """The recipe, and variants of its step size and threshold, except for parameters that were `given`."""
    rule = recipe.make_rule()
    return [
        replace(recipe, rule=rule._replace(alpha=rule.alpha / alpha, l1=rule.l1 / l1))
        for l1 in (L1[:1] if "l1" in given else L1)
        for alpha in (ALPHA[:1] if "alpha" in given else ALPHA)
    ]


def race_of(lanes: int) -> Race:
    """A race of this many lanes; the first is the default."""
    return Race(judge, lanes, FIRST, UNTIL)


def successor(models: ModelSet, over: bool) -> ModelSet:
    """The winner on its own once there is one, or once the first pass is `over`; until then the lanes."""
    if not isinstance(models.race, Race):
        return models
    if over:
        models.race.end(models)
    if not models.race.ended and len(models.alive) > 1:
        return models
    found = ModelSet.of([copy(models.models[models.alive[0]])])
    models.say(f"after {found.examples:,} examples: continuing with {found.recipe.rule}")
    return found
