"""Warm starts: training that begins with the weights of another model.

A warm start sets weights, not state. `place` writes rows that read as the given weights, bit for bit in a new
model; sums of gradients, variances and penalties start afresh, because those of one rule mean nothing to
another. Rules without a state that can represent given weights refuse them, and the message lists the rules
that accept them: `rda` reads every sum as zero at its first example, `coin` and `pegasos` forget the weight
in their next step, and rules with constraints would have to project.
"""

from __future__ import annotations

from copy import copy
from dataclasses import fields
from os import PathLike, fspath
from typing import Any

import numpy as np

from thresher import parts
from thresher.data.columns import extending, for_new_data
from thresher.data.errors import DataError, OneLineError
from thresher.data.labels import list_words
from thresher.data.layout import AnyLayout, Layout, has_columns
from thresher.data.source import Source
from thresher.engine.protocol import writes
from thresher.learning.diagnostics.advice import feature_names
from thresher.learning.files import model_file
from thresher.learning.model.agreement import in_agreement
from thresher.learning.model.divergence import first_broken
from thresher.learning.model.model import Model, as_model
from thresher.learning.model.prediction import BasePredictor, LinearPredictor
from thresher.options.messages import mention

_SMALL = 1 << 48
"""One hash of a name in 65,536 is smaller; ids chosen by people always are."""


def start_from(model: Model, weights: LinearPredictor) -> None:
    """Give a new model the weights and intercepts of another model, with any rule.

    Names of features are kept. The other rule's state, such as sums of gradients, is not carried over.
    SpecError if the model's rule has no state for a given weight; ValueError if weights would have another
    meaning in the model, or are not finite in its dtype.
    """
    if not all(writes(type(rule), "place") for rule in (model.rule, model.rule.intercept())):
        others = parts.able(lambda cls: writes(cls, "place"))
        name = parts.part_name(type(model.rule))
        raise parts.SpecError(f"{name} cannot start from given weights; {others}")
    model.head.meet(weights.head.outputs.high + 1)
    recipe, known = model.recipe, ~np.isneginf(weights.bias)
    with np.errstate(over="ignore"):
        row = first_broken(weights.weights.astype(model.dtype))
        broken = feature_names(weights.keys[row : row + 1].tolist(), weights.layout, weights.names)
        endless = first_broken(weights.bias.astype(model.dtype)[known]) >= 0
    scaled = recipe.scale or recipe.admit or weights.divisors is not None
    other_store = "hashed" in weights.store + model.store and weights.store != model.store
    outputs = weights.head.outputs, model.head.outputs
    refused = (
        (scaled, "would apply to other values with scale or admit: leave these out"),
        (recipe.centre and weights.means is None, "are for values as they are: leave centre out"),
        (outputs[0] != outputs[1], f"are for outputs {outputs[0].spec}, not {outputs[1].spec}"),
        (other_store, f"are from the store {weights.store}, not {model.store}"),
        (weights.unmet.any(), "are not all: features that are not among them have a weight"),
        (weights.bias[known].any() and not recipe.intercept, "have an intercept, the model has none"),
        (broken or endless, f"are not finite in {model.dtype}: {', '.join(broken) or 'the intercept'}"),
    )
    if reason := next((reason for holds, reason in refused if holds), ""):
        raise ValueError(f"the initial weights {reason}")
    if model.recipe.centre:
        assert weights.means is not None
        model.feed.intake.start_from(weights.means)
    bias = weights.centred_bias if model.recipe.centre else weights.bias
    bias = bias if model.correction is None else (bias - model.correction).astype(bias.dtype)
    model.loop.place(weights.keys, model.feed.signs.clip_to_signs(weights.keys, weights.weights), bias)
    model.warm, model.names = True, weights.names
    model.numbering, model.named = weights.numbering, weights.named


def layout_from(weights: Any, given: AnyLayout | None, grouped: bool = False) -> AnyLayout | None:
    """How to read data for a model that starts from `weights`: as for these, changed by the options `given`.

    Columns that these weights do not know may be added; `grouped` as in `extending`. `DataError` if features
    would differ.
    """
    trained = weights.layout
    if trained is None:
        return given
    settled = given if given is not None and has_columns(given) else None
    if settled is not None and has_columns(trained) and settled.kind_of != trained.kind_of:
        raise DataError("the model was trained with other columns")
    plain, asked = Layout(), [(one.name, getattr(given, one.name, None)) for one in fields(Layout)]
    chosen = {name: one for name, one in asked if one not in (None, getattr(plain, name))}
    return for_new_data(trained, chosen) if settled is not None else extending(trained, chosen, grouped)


def to_go_on(given: object) -> Model:
    """A model to go on with: the one in a file, or a copy of a model or of that of an estimator.

    `ModelFileError`; ValueError for a model with weights only; TypeError for anything else.
    """
    if isinstance(given, str | PathLike):
        model, header = model_file.load(fspath(given))
        if "training" in header:
            raise model_file.ModelFileError(
                f"{given}: a checkpoint: finish the training with {mention('resume')} of the command that"
                " wrote it"
            )
        return model
    ready = as_model(given)
    if isinstance(ready, LinearPredictor):
        raise OneLineError(f"the model has only weights: {mention('init')} can start a new model from them")
    return copy(ready)


def check_data(
    weights: BasePredictor | None, source: Source, whose: str = "the initial weights were"
) -> Source:
    """The source; `DataError` if its data cannot have the features of these weights, if there are any."""
    if weights is None:
        return source
    words = source.layout.classes if source.layout is not None else ()
    if words and not weights.classes:  # nothing says which is which
        raise DataError(
            f"{whose} learned from labels that are numbers, and these are words ({list_words(words)}):"
            " write numbers in place of the words"
        )
    return in_agreement(weights, source, f"{whose} learned from")
