"""Options for many models that are trained side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from thresher.options.kinds import Kind, Text, Whole, WrongValueError
from thresher.options.model import (
    LaneOptions,
    LossOption,
    PenaltyOption,
    RateOption,
    RuleOption,
    ShapeOptions,
)
from thresher.options.option import SHELL, Option, switch
from thresher.options.output import TableOption, TalkOptions, model_file
from thresher.options.training import (
    HOLDOUT,
    CheckpointOptions,
    EarlyStopOptions,
    LoopOptions,
    PassesOption,
    ResumablePasses,
    SourceOptions,
    going_on,
    picture,
)

if TYPE_CHECKING:
    from thresher.data.inputs.any_data import Data
else:
    Data = Any

AUTO, BEST = "auto:16", "best"


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


def choice(unset: str, default: str | None = BEST) -> Any:
    """The option for which model to choose."""
    return Option(
        Text(_choice),
        "best, the lowest loss; 1se, the sparsest within one standard error of it; within:P%, the sparsest "
        "whose loss is at most P % higher; nnz:N, the best with at most N weights.",
        "WHICH",
        default=default,
        unset=unset,
    )


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


class PathHoldout(TypedDict, total=False):
    """What `path` chooses by."""

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


class PathChoice(TypedDict, total=False):
    """Which model `path` chooses."""

    choose: Annotated[str, choice("best")]


class PathStart(TypedDict, total=False):
    """What `path` begins with."""

    continue_from: Annotated[Any, going_on("the models in this file", "MODELS")]


class PathOptions(
    LaneOptions,
    RangeOption,
    PathChoice,
    ResumablePasses,
    LoopOptions,
    PathHoldout,
    EarlyStopOptions,
    CheckpointOptions,
    PathStart,
    SourceOptions,
    total=False,
):
    """The options of `thresher.path`."""


class PathRun(PathOptions, LossOption, total=False):
    """The options of a run that trains a frontier."""


class _PathFile(TypedDict, total=False):
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


class _PathPicture(TypedDict, total=False):
    plot: Annotated[Path | None, picture("loss over the number of weights", SHELL)]


class PathCommand(
    _PathFile, RuleOption, LossOption, PathOptions, _PathPicture, TableOption, TalkOptions, total=False
):
    """The options of ``thresher path``."""


class _Folds(TypedDict, total=False):
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


class _CvModel(TypedDict, total=False):
    model: Annotated[
        Path | None,
        model_file(
            "MODEL",
            "Where to write the model of all rows with the chosen penalty.",
            unset="nowhere; the command that trains it is printed",
        ),
    ]


class _CvChoice(TypedDict, total=False):
    choose: Annotated[str, choice("best")]


class CvOptions(
    _Folds, LaneOptions, RangeOption, _CvChoice, PassesOption, LoopOptions, SourceOptions, total=False
):
    """The options of `thresher.cv`."""


class CvRun(CvOptions, LossOption, total=False):
    """The options of a run that cross-validates."""


class CvCommand(_Folds, _CvModel, RuleOption, LossOption, CvOptions, TalkOptions, total=False):
    """The options of ``thresher cv``."""


class _TuneOptions(TypedDict, total=False):
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


class _TuneHoldout(TypedDict, total=False):
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


class TuneOptions(
    LossOption,
    RateOption,
    PenaltyOption,
    ShapeOptions,
    _TuneOptions,
    PassesOption,
    LoopOptions,
    _TuneHoldout,
    SourceOptions,
    total=False,
):
    """The options of `thresher.tune`. Those in `VARIED` are refused."""


VARIED = ("rule", "rate", "alpha", "l1", "l2", "eta0")


class _TuneModel(TypedDict, total=False):
    model: Annotated[Path, model_file("MODEL", "Where to write the model.", required=True)]


class TuneCommand(_TuneModel, RuleOption, LossOption, TuneOptions, TalkOptions, total=False):
    """The options of ``thresher tune``."""
