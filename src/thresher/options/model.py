"""Options that define a model: the fields of a `Recipe`, and parameters of its rule and rate."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from thresher.data.feature_specs import ANY, as_list
from thresher.options import kinds
from thresher.options.option import DEFAULT_RULE, PYTHON, Option

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from thresher.learning.model.recipe import Recipe, Spec
else:
    DTypeLike = Recipe = Spec = Any

_SPEC = "NAME:FIELD=VALUE,..."
PART = kinds.Kind()
"""A part or its SPEC; `Recipe` checks it."""


def _signed(value: Any) -> str:
    """Names of columns, as text, or ``*`` for all. `WrongValueError`."""
    wanted = f"names of columns, or {ANY} alone, which is all of them"
    found = kinds.names(value, wanted)
    if not found or (ANY in found and len(found) > 1):
        raise kinds.WrongValueError(wanted)
    return as_list(found)


DTYPES = "float32", "float64"
SIGNED = Option(kinds.Text(_signed), "COL,...|*", unset="weights of any sign")
_SIGNED = (
    "Columns whose weights are never {}, in every step: names, numbers, ranges or patterns of numeric "
    "columns, or ids of features; * for all features."
)


class ModulesOption(TypedDict, total=False):
    """Files that define parts; they are executed before a run begins."""

    modules: Annotated[
        str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        Option(kinds.Repeated(kinds.FILE), "FILE", default=(), unset="none"),
        "A file of Python that defines rules, losses or rates, for this command to know; it is executed. "
        "Repeat for more. Those of installed packages are known without it.",
    ]


class RuleOption(TypedDict, total=False):
    """The rule."""

    rule: Annotated[
        Recipe | Spec,
        Option(PART, _SPEC, default=DEFAULT_RULE),
        "Learning algorithm: see thresher rules.",
    ]


class LossOption(TypedDict, total=False):
    """The loss, which functions take by position too."""

    loss: Annotated[Spec | None, Option(PART, _SPEC, unset="logistic"), "See thresher losses."]


class RateOption(TypedDict, total=False):
    """The rate."""

    rate: Annotated[
        Spec | None, Option(PART, _SPEC), "Step sizes, for rules that have them: see thresher rates."
    ]


class PenaltyOption(TypedDict, total=False):
    """The penalty of one model."""

    l1: Annotated[
        float | None,
        Option(kinds.Number(), "L", unset="of ft-ftrl: 1"),
        "Sparsity, in units of the rule (ft-ftrl: standard deviations of noise); higher keeps fewer weights.",
    ]


class ShapeOptions(TypedDict, total=False):
    """What else defines a model."""

    alpha: Annotated[
        float | None,
        Option(kinds.Number(), "A", unset="of ft-ftrl: 3"),
        "Overall step size, instead of the rule's own.",
    ]
    l2: Annotated[float | None, Option(kinds.Number(), face=PYTHON)]
    eta0: Annotated[float | None, Option(kinds.Number(), face=PYTHON)]
    outputs: Annotated[
        str | None,
        Option(
            kinds.FILLED,
            "OUTPUTS",
            unset="one; classes for a multiclass loss, or if the labels are three or more words",
        ),
        "What to predict: one number; classes, one of several that are met on the way, numbers or words "
        "(classes:max=N: at most N, default 1000), or classes:LO-HI; labels:LO-HI, any of several labels "
        "(lists: 3,17); values:K, K numbers (lists: 0.5,-2); quantiles:0.1,0.9, some of one number, with "
        "--loss quantile.",
    ]
    batch: Annotated[
        int,
        Option(kinds.Whole(1, 1 << 31), "S", default=1),
        "Mini-batch size: examples whose gradients are summed for one step.",
    ]
    average: Annotated[
        bool,
        Option(kinds.Flag(), default=False, unset="no-average"),
        "Predict, count and save with the average of the weights of all steps; learn with the last. For one "
        "output, learned row by row.",
    ]
    scale: Annotated[
        str | None,
        Option(kinds.Text(partial(kinds.one_of, ("max-abs", "standard"))), "max-abs|standard", unset="none"),
        "Divide the numeric columns of a table, or each feature of other data, by its largest magnitude or "
        "its standard deviation so far, measured in the first pass; zeros stay zero.",
    ]
    centre: Annotated[
        bool | None,
        Option(kinds.Flag(), unset="centre with the default rule and with --scale standard"),
        "Subtract from columns that are hardly ever zero the mean of their values so far, measured in the "
        "first pass.",
    ]
    admit: Annotated[
        str | int | None,
        Option(PART, "N|poisson:P", unset="learn from the first, without a filter; bits=24"),
        "Learn a feature only from its N-th example on; or admit it with probability P at each of its "
        "examples in the first pass. A filter of 2^B bytes counts them: N,bits=B.",
    ]
    store: Annotated[
        str,
        Option(kinds.FILLED, "STORE", default="growing"),
        "How weights are stored: growing; direct, the id is the row; hashed:BITS, a fixed 2^BITS rows; or "
        "hashed:BITS,signed, where features that share a row cancel on average.",
    ]
    dtype: Annotated[
        DTypeLike,
        Option(
            kinds.Text(lambda one: kinds.one_of(DTYPES, getattr(one, "name", getattr(one, "__name__", one)))),
            "|".join(DTYPES),
            default=DTYPES[0],
        ),
        "Number type of the model's state.",
    ]
    intercept: Annotated[bool, Option(kinds.Flag(), default=True, unset="intercept"), "Learn an intercept."]
    seed: Annotated[
        int,
        Option(kinds.Whole(0, 2**64 - 1), "N", default=0),
        "Seed of --order, of hold-outs and folds, of --admit, --sample and the hashed store.",
    ]
    sample: Annotated[
        str | Mapping[Any, float] | None,
        Option(PART, "LABEL=SHARE,...[,correct|,before]", unset="learn all rows"),
        "Learn this share of the rows with a label, such as 0=0.1, chosen at random, with importances "
        "1/SHARE times as large; correct: with their own, and corrected intercepts (logistic, softmax); "
        "before: the data are such a sample, so all are learned, and intercepts corrected. Probabilities "
        "are those of all rows.",
    ]
    calibrate: Annotated[
        bool,
        Option(kinds.Flag(), default=False, unset="no-calibrate"),
        "Learn what probabilities margins mean, from those of each example before it is learned: two "
        "numbers for two classes, one for several, for any loss. Labels follow the probability; margins "
        "stay as they are.",
    ]
    nonnegative: Annotated[str | Sequence[str | int] | None, SIGNED, _SIGNED.format("negative")]
    nonpositive: Annotated[str | Sequence[str | int] | None, SIGNED, _SIGNED.format("positive")]


class ModelOptions(RuleOption, RateOption, PenaltyOption, ShapeOptions):
    """What defines one model, but for its loss."""


class LaneOptions(RuleOption, RateOption, ShapeOptions):
    """What models with different penalties have in common, but for their loss."""


class RecipeOptions(RuleOption, LossOption, RateOption, PenaltyOption, ShapeOptions):
    """Everything that defines one model."""
