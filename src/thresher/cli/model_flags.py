"""The model options on the command line: one for each field of a `Recipe`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import UsageError
from thresher.cli.plain_values import Bounds

if TYPE_CHECKING:
    from thresher.learning.model import Model
    from thresher.learning.recipe import Recipe

_SPEC = "NAME:FIELD=VALUE,..."
OF_RULES = ("rule", "l1", "alpha")
"""Options that together define the rule."""


def _option(metavar: str | None, words: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=words, **more)


@dataclass(frozen=True)
class ModelFlags:
    """The fields of a Recipe, and options that change its rule. None means not given."""

    rule: Annotated[
        str | None,
        _option(
            _SPEC, "Learning algorithm: see thresher rules; in train, auto picks one.  [default: ft-ftrl]"
        ),
    ] = None
    loss: Annotated[str | None, _option(_SPEC, "See thresher losses.  [default: logistic]")] = None
    rate: Annotated[
        str | None, _option(_SPEC, "Step sizes, for rules that have them: see thresher rates.")
    ] = None
    l1: Annotated[
        float | None,
        _option(
            "L",
            "Sparsity, in units of the rule (ft-ftrl: standard deviations of noise); higher keeps fewer "
            "weights.  [default of ft-ftrl: 1]",
            "--l1",
        ),
    ] = None
    alpha: Annotated[
        float | None, _option("A", "Overall step size, instead of the rule's own.  [default of ft-ftrl: 3]")
    ] = None
    outputs: Annotated[
        str | None,
        _option(
            "OUTPUTS",
            "What to predict: one number; classes:LO-HI, one of several classes, or classes, to find them "
            "by reading the labels first (numbers or words); labels:LO-HI, any of several labels (lists: "
            "3,17); values:K, K numbers (lists: 0.5,-2).  [default: one; classes for a multiclass loss, or "
            "if the labels are three or more words]",
        ),
    ] = None
    batch: Annotated[
        int | None,
        _option("S", "Mini-batch size: examples whose gradients are summed for one step.  [default: 1]"),
        Bounds(1),
    ] = None
    average: Annotated[
        bool | None,
        _option(
            None,
            "Predict, count and save with the average of the weights of all steps; learn with the last."
            "  [default: no-average]",
            "--average/--no-average",
        ),
    ] = None
    scale: Annotated[
        str | None,
        _option(
            "max-abs|standard",
            "Divide the numeric columns of a table, or each feature of other data, by its largest "
            "magnitude or its standard deviation so far, measured in the first pass; zeros stay zero.  "
            "[default: none]",
        ),
    ] = None
    centre: Annotated[
        bool | None,
        _option(
            None,
            "Subtract from columns that are hardly ever zero the mean of their values so far, measured in "
            "the first pass.  [default: centre with the default rule and with --scale standard]",
            "--centre/--no-centre",
        ),
    ] = None
    admit: Annotated[
        str | None,
        _option(
            "N|poisson:P",
            "Learn a feature only from its N-th example on; or admit it with probability P at each of its "
            "examples in the first pass. A filter of 2^B bytes counts them: N,bits=B."
            "  [default: learn from the first, without a filter; bits=24]",
        ),
    ] = None
    store: Annotated[
        str | None,
        _option(
            "STORE",
            "How weights are stored: growing; direct, the id is the row; hashed:BITS, a fixed 2^BITS rows; "
            "or hashed:BITS,signed, where features that share a row cancel on average."
            "  [default: growing]",
        ),
    ] = None
    dtype: Annotated[
        str | None, _option("float32|float64", "Number type of the model's state.  [default: float32]")
    ] = None
    intercept: Annotated[
        bool | None, _option(None, "Learn an intercept.  [default: intercept]", "--intercept/--no-intercept")
    ] = None
    seed: Annotated[
        int | None,
        _option(
            "N", "Seed of --order, of hold-outs and folds, of --admit and the hashed store.  [default: 0]"
        ),
    ] = None


def options_of(flags: ModelFlags) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in vars(flags).items() if value is not None}


def new_recipe(options: dict[str, Any]) -> Recipe:
    """A recipe with these options; UsageError if they are invalid."""
    from thresher.learning.recipe import Recipe

    try:
        return Recipe(**options)
    except ValueError as error:
        raise UsageError(str(error)) from error


def new_model(options: dict[str, Any]) -> Model:
    """A model of that recipe; UsageError if they are invalid."""
    from thresher.learning.model import Model

    recipe = new_recipe(options)
    try:
        return Model(recipe)
    except ValueError as error:
        raise UsageError(str(error)) from error


def check_same(flags: ModelFlags, recipe: Recipe) -> None:
    """UsageError if an option contradicts the recipe of a checkpoint."""
    options = options_of(flags)
    of_rule = {name: options.pop(name) for name in OF_RULES if name in options}
    if of_rule and _other(recipe, "rule", {"rate": None, **of_rule}):
        raise _made_otherwise(recipe, "rule", *of_rule)
    for name, value in options.items():
        if _other(recipe, name, {name: value}):
            raise _made_otherwise(recipe, name, name)


def _other(recipe: Recipe, field: str, options: dict[str, Any]) -> bool:
    """Whether these options would change the field, or are invalid for the recipe."""
    try:
        changed = replace(recipe, **options)
    except ValueError:
        return True
    return bool(getattr(changed, field) != getattr(recipe, field))


def _made_otherwise(recipe: Recipe, field: str, *options: str) -> UsageError:
    from thresher.data.layout import as_option

    flags = " and ".join(f"--{name}" for name in options)
    return UsageError(
        f"the checkpoint was made {as_option(field, getattr(recipe, field))}; leave {flags} out"
    )
