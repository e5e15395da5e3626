"""Options that define a model: the fields of a `Recipe`, and parameters of its rule and rate."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from thresher.options.kinds import File, Flag, Kind, Number, Repeated, Text, Whole, text_with_content
from thresher.options.option import DEFAULT_RULE, PYTHON, Option

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from thresher.learning.model.recipe import Recipe, Spec
else:
    DTypeLike = Recipe = Spec = Any

_SPEC = "NAME:FIELD=VALUE,..."
PART = Kind()
"""A part or its SPEC; `Recipe` checks it."""
_WORD = Text(text_with_content)
"""A text that `Recipe` checks."""
_SIGNED = (
    "Columns whose weights are never {}, in every step: names, numbers, ranges or patterns of numeric "
    "columns, or ids of features; * for all features."
)


class ModulesOption(TypedDict, total=False):
    """Files that define parts; they are executed before a run begins."""

    modules: Annotated[
        str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        Option(
            Repeated(File()),
            "A file of Python that defines rules, losses or rates, for this command to know; it is executed. "
            "Repeat for more. Those of installed packages are known without it.",
            "FILE",
            default=(),
            unset="none",
        ),
    ]


class RuleOption(TypedDict, total=False):
    """The rule."""

    rule: Annotated[
        Recipe | Spec,
        Option(
            PART,
            "Learning algorithm: see thresher rules; in train, auto picks one.",
            _SPEC,
            default=DEFAULT_RULE,
        ),
    ]


class LossOption(TypedDict, total=False):
    """The loss, which functions take by position too."""

    loss: Annotated[Spec | None, Option(PART, "See thresher losses.", _SPEC, unset="logistic")]


class RateOption(TypedDict, total=False):
    """The rate."""

    rate: Annotated[
        Spec | None, Option(PART, "Step sizes, for rules that have them: see thresher rates.", _SPEC)
    ]


class PenaltyOption(TypedDict, total=False):
    """The penalty of one model."""

    l1: Annotated[
        float | None,
        Option(
            Number(),
            "Sparsity, in units of the rule (ft-ftrl: standard deviations of noise); higher keeps fewer "
            "weights.",
            "L",
            unset="of ft-ftrl: 1",
        ),
    ]


class ShapeOptions(TypedDict, total=False):
    """What else defines a model."""

    alpha: Annotated[
        float | None,
        Option(Number(), "Overall step size, instead of the rule's own.", "A", unset="of ft-ftrl: 3"),
    ]
    l2: Annotated[float | None, Option(Number(), face=PYTHON)]
    eta0: Annotated[float | None, Option(Number(), face=PYTHON)]
    outputs: Annotated[
        str | None,
        Option(
            _WORD,
            "What to predict: one number; classes:LO-HI, one of several classes, or classes, to find them "
            "by reading the labels first (numbers or words); labels:LO-HI, any of several labels (lists: "
            "3,17); values:K, K numbers (lists: 0.5,-2).",
            "OUTPUTS",
            unset="one; classes for a multiclass loss, or if the labels are three or more words",
        ),
    ]
    batch: Annotated[
        int,
        Option(
            Whole(1),
            "Mini-batch size: examples whose gradients are summed for one step.",
            "S",
            default=1,
        ),
    ]
    average: Annotated[
        bool,
        Option(
            Flag(),
            "Predict, count and save with the average of the weights of all steps; learn with the last.",
            default=False,
            unset="no-average",
        ),
    ]
    scale: Annotated[
        str | None,
        Option(
            _WORD,
            "Divide the numeric columns of a table, or each feature of other data, by its largest "
            "magnitude or its standard deviation so far, measured in the first pass; zeros stay zero.",
            "max-abs|standard",
            unset="none",
        ),
    ]
    centre: Annotated[
        bool | None,
        Option(
            Flag(),
            "Subtract from columns that are hardly ever zero the mean of their values so far, measured in "
            "the first pass.",
            unset="centre with the default rule and with --scale standard",
        ),
    ]
    admit: Annotated[
        str | int | None,
        Option(
            PART,
            "Learn a feature only from its N-th example on; or admit it with probability P at each of its "
            "examples in the first pass. A filter of 2^B bytes counts them: N,bits=B.",
            "N|poisson:P",
            unset="learn from the first, without a filter; bits=24",
        ),
    ]
    store: Annotated[
        str,
        Option(
            _WORD,
            "How weights are stored: growing; direct, the id is the row; hashed:BITS, a fixed 2^BITS rows; "
            "or hashed:BITS,signed, where features that share a row cancel on average.",
            "STORE",
            default="growing",
        ),
    ]
    dtype: Annotated[
        DTypeLike,
        Option(PART, "Number type of the model's state.", "float32|float64", default="float32"),
    ]
    intercept: Annotated[bool, Option(Flag(), "Learn an intercept.", default=True, unset="intercept")]
    seed: Annotated[
        int,
        Option(
            Whole(0, 2**64 - 1),
            "Seed of --order, of hold-outs and folds, of --admit, --sample and the hashed store.",
            "N",
            default=0,
        ),
    ]
    sample: Annotated[
        str | Mapping[Any, float] | None,
        Option(
            PART,
            "Learn this share of the rows with a label, such as 0=0.1, chosen at random, with importances "
            "1/SHARE times as large; correct: with their own, and corrected intercepts (logistic, softmax). "
            "Probabilities stay those of all rows.",
            "LABEL=SHARE,...[,correct]",
            unset="learn all rows",
        ),
    ]
    calibrate: Annotated[
        bool,
        Option(
            Flag(),
            "Learn what probabilities margins mean, from those of each example before it is learned: two "
            "numbers for two classes, one for several, for any loss. Labels follow the probability; margins "
            "stay as they are.",
            default=False,
            unset="no-calibrate",
        ),
    ]
    nonnegative: Annotated[
        str | Sequence[str | int] | None,
        Option(PART, _SIGNED.format("negative"), "COL,...|*", unset="weights of any sign"),
    ]
    nonpositive: Annotated[
        str | Sequence[str | int] | None,
        Option(PART, _SIGNED.format("positive"), "COL,...|*", unset="weights of any sign"),
    ]


class ModelOptions(RuleOption, RateOption, PenaltyOption, ShapeOptions):
    """What defines one model, but for its loss."""


class LaneOptions(RuleOption, RateOption, ShapeOptions):
    """What models with different penalties have in common, but for their loss."""


class RecipeOptions(RuleOption, LossOption, RateOption, PenaltyOption, ShapeOptions):
    """Everything that defines one model."""
