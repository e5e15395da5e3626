"""Options for many models that learn side by side: of path, cv, tune and select."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from thresher.options import training
from thresher.options.kinds import Kind, Number, Text, Whole, WrongValueError
from thresher.options.model import (
    LaneOptions,
    LossOption,
    PenaltyOption,
    RateOption,
    RuleOption,
    ShapeOptions,
)
from thresher.options.option import SHELL, Option, switch
from thresher.options.training import HOLDOUT, LoopOptions, SourceOptions, TalkOptions, model_file, picture

if TYPE_CHECKING:
    from thresher.data.inputs.any_data import Data
else:
    Data = Any

AUTO, BEST = "auto:16", "best"
VARIED = ("rule", "rate", "alpha", "l1", "l2", "eta0")
"""Options that tune refuses, since it varies them"""


def _range(value: Any) -> Any:
    from thresher.plans.penalties import PenaltyRange

    PenaltyRange(value)
    return value


def _choice(text: Any) -> str:
    from thresher.learning.files.choice import check_choice

    return check_choice(text)


def _folds(value: Any) -> int | str:
    from thresher.plans.folds import Split

    return Split.of(value).shown


def _rules(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise WrongValueError("names of rules")
    return ",".join(value)


class RangeOption(TypedDict, total=False):
    """The penalties of the models."""

    l1: Annotated[
        str | Sequence[float] | None,
        Option(
            Text(_range),
            "Penalties: N at even ratios from LO to HI, or in a range found in the first 4,096 rows. A rule "
            "without l1 uses its own penalty.",
            "LO:HI:N|auto:N",
            unset=AUTO,
        ),
    ]


class ChoiceOption(TypedDict, total=False):
    """Which model is chosen."""

    choose: Annotated[
        str,
        Option(
            Text(_choice),
            "best, the lowest loss; 1se, the sparsest within one standard error of it; within:P%, the "
            "sparsest whose loss is at most P % higher; nnz:N, the best with at most N weights.",
            "WHICH",
            default=BEST,
            unset=BEST,
        ),
    ]


class PathOptions(
    LaneOptions,
    RangeOption,
    ChoiceOption,
    training.ResumablePasses,
    LoopOptions,
    training.EarlyStopOptions,
    training.CheckpointOptions,
    SourceOptions,
    total=False,
):
    """The options of `thresher.path`."""

    holdout: Annotated[
        Data | float | None,
        Option(
            Kind(),
            "Data to choose by: a file, or a share of the rows (0.1: one of every 10, drawn with --seed; "
            "last:0.1: the last; 'day >= 20': those that meet a condition), which are then not learned; or "
            "none, to choose by the progressive loss.",
            f"{HOLDOUT}|none",
            unset="every-10th",
        ),
    ]
    continue_from: Annotated[Any, training.going_on("the models in this file", "MODELS")]


class PathRun(PathOptions, LossOption):
    """The options of a run that trains a frontier."""


class PathCommand(RuleOption, LossOption, PathOptions, training.TableOption, TalkOptions, total=False):
    """The options of ``thresher path``."""

    model: Annotated[
        Path,
        model_file(
            "MODELS",
            "Where to write the models of all penalties, in one file. Where one is needed, it is the one "
            "that was chosen; thresher choose takes out any of them.",
            required=True,
        ),
    ]
    state: Annotated[
        bool,
        switch(
            "Save with each model the state that --continue needs, often a thousand times its weights. Models"
            " that went on from others with --continue keep it anyway.",
            face=SHELL,
        ),
    ]
    plot: Annotated[Path | None, picture("loss over the number of weights", SHELL)]


class CvOptions(
    LaneOptions, RangeOption, ChoiceOption, training.PassesOption, LoopOptions, SourceOptions, total=False
):
    """The options of `thresher.cv`."""

    folds: Annotated[
        int | str,
        Option(
            Text(_folds),
            "Of every K rows, one is in each fold, drawn with --seed, and is evaluated by a model that did "
            "not learn it. forward:K, for rows in the order of time, cuts them into K + 1 blocks: each but "
            "the first is evaluated by a model of all rows before it.",
            "K|forward:K",
            default=10,
        ),
    ]


class CvRun(CvOptions, LossOption):
    """The options of a run that cross-validates."""


class CvCommand(RuleOption, LossOption, CvOptions, TalkOptions, total=False):
    """The options of ``thresher cv``."""

    model: Annotated[
        Path | None,
        model_file(
            "MODEL",
            "Where to write the model of all rows with the chosen penalty.",
            unset="nowhere; the command that trains it is printed",
        ),
    ]


class TuneOptions(
    LossOption,
    RateOption,
    PenaltyOption,
    ShapeOptions,
    training.PassesOption,
    LoopOptions,
    SourceOptions,
    total=False,
):
    """The options of `thresher.tune`. Those in `VARIED` are refused."""

    rules: Annotated[
        str | Sequence[str] | None,
        Option(
            Text(_rules),
            "Rules to try: see thresher rules.",
            "NAME,...",
            unset="ft-ftrl,adagrad-fobos",
        ),
    ]
    budget: Annotated[int, Option(Whole(1, 4096), "How many settings to try in all.", "N", default=64)]
    holdout: Annotated[
        Data | float | None,
        Option(
            Kind(),
            "Data to report on: a file, or a share of the rows (0.2: one of every 5; last:0.1: the last; "
            "'day >= 20': those that meet a condition), which are then not learned.",
            HOLDOUT,
            unset="the last tenth of the rows, each predicted before it is learned",
        ),
    ]


class TuneCommand(training.ModelFile, RuleOption, LossOption, TuneOptions, TalkOptions):
    """The options of ``thresher tune``."""


class SelectOptions(
    LaneOptions,
    training.ResumablePasses,
    LoopOptions,
    training.CheckpointOptions,
    SourceOptions,
    total=False,
):
    """The options of `thresher.select`."""

    bags: Annotated[
        int,
        Option(
            Whole(4, 998, even=True),
            "How many half-samples, in pairs that do not overlap. A model learns each.",
            "N",
            default=32,
        ),
    ]
    share: Annotated[
        float,
        Option(
            Number("a share above 0, up to 0.5", lambda share: 0 < share <= 0.5),
            "Share of the rows in each half.",
            "SHARE",
            default=0.5,
        ),
    ]
    false: Annotated[
        float,
        Option(
            Number("a number above 0", lambda number: 0 < number <= 1e9),
            "Keep as many features as the theorem allows for at most so many expected false ones.",
            "V",
            default=5.0,
        ),
    ]
    nonzero: Annotated[
        int | None,
        Option(
            Whole(1),
            "A half selects the features with its Q largest weights, or all with a weight if they are fewer.",
            "Q",
            unset="the square root of V times the number of features",
        ),
    ]
    l1: Annotated[
        float | None,
        Option(
            Number(),
            "Sparsity of the halves, in units of the rule; higher selects fewer features.",
            "L",
            unset="twice that of the rule (ft-ftrl: 2)",
        ),
    ]
    names: Annotated[bool, switch("Find the names of the features; this reads the data once more.")]


class SelectRun(SelectOptions, LossOption):
    """The options of a run that selects features."""


class SelectCommand(RuleOption, LossOption, SelectOptions, training.TableOption, TalkOptions, total=False):
    """The options of ``thresher select``."""

    model: Annotated[
        Path,
        model_file("MODEL", "Where to write what was found of all features, and the model.", required=True),
    ]
    keep: Annotated[
        bool,
        switch(
            "Also learn the kept features again, without all others, for a model in the same file; this "
            "reads the data once more.",
            face=SHELL,
        ),
    ]
    plot: Annotated[Path | None, picture("the share of the halves over the mean weight", SHELL)]
