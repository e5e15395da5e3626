"""Warm starts: a model that begins with the weights of another."""

from __future__ import annotations

from thresher import parts
from thresher.engine.protocol import writes
from thresher.learning.model import Model
from thresher.learning.readout import Readout


def start_from(model: Model, weights: Readout) -> None:
    """Give a model that has learned nothing the weights and intercepts of another, of whatever rule.

    What that rule has gathered besides, such as sums of gradients, begins anew. SpecError where the model's
    rule has no state for a given weight, ValueError where weights would mean something else to it.
    """
    _check_rule(model)
    if model.examples:
        raise ValueError(f"weights can be given before the first example; {model.examples} were learned from")
    if model.recipe.scale or model.recipe.admit or weights.divisors is not None:
        raise ValueError("with scale or admit, weights would count other things; leave them out")
    if (have := weights.head.outputs) != model.head.outputs:
        raise ValueError(f"these are weights of outputs {have}, not {model.head.outputs}")
    if "hashed" in weights.store + model.store and weights.store != model.store:
        raise ValueError(f"these are weights of the store {weights.store}, not {model.store}")
    if weights.unmet.any():
        raise ValueError("features that these weights leave out do not weigh zero")
    if weights.bias.any() and not model.recipe.intercept:
        raise ValueError("these weights come with an intercept, and the model has none")
    model.loop.place(weights.keys, weights.weights, weights.bias)


def _check_rule(model: Model) -> None:
    if not all(writes(type(rule), "place") for rule in (model.rule, model.rule.intercept())):
        able = sorted(name for name, cls in parts.REGISTRY["rule"].items() if writes(cls, "place"))
        name = parts.part_name(type(model.rule))
        raise parts.SpecError(
            f"{name} cannot start from given weights: no state has them; these rules can: {', '.join(able)}"
        )
