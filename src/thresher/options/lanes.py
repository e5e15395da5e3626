"""Options for many models that learn side by side: of path, cv, tune and select."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from thresher.options import training
from thresher.options.kinds import FILE, Flag, Kind, Number, Text, Whole, WrongValueError
from thresher.options.model import (
    LaneOptions,
    LossOption,
    PenaltyOption,
    RateOption,
    RuleOption,
    ShapeOptions,
)
from thresher.options.option import PYTHON, SHELL, SHELL_SWITCH, SWITCH, Option
from thresher.options.training import HOLDOUT, SHELL_PICTURE, LoopOptions, SourceOptions, TalkOptions

if TYPE_CHECKING:
    from thresher.data.inputs.any_data import Data
else:
    Data = Any

AUTO = "auto:16"
VARIED = ("rule", "rate", "alpha", "l1", "l2", "eta0")
"""Options that tune refuses, since it varies them"""


def _rules(value: object) -> object:
    if isinstance(value, str):
        return value
    if not isinstance(value, Sequence) or not all(isinstance(one, str) for one in value):
        raise WrongValueError("names of rules")
    return ",".join(value)


class RangeOption(TypedDict, total=False):
    """The penalties of the models."""

    l1: Annotated[
        str | Sequence[float] | None,
        Option(Text(training.penalties), "LO:HI:N|auto:N", unset=AUTO),
        "Penalties: N at even ratios from LO to HI, or in a range found in the first 4,096 rows. A rule "
        "without l1 uses its own penalty.",
    ]


class PathOptions(
    LaneOptions,
    RangeOption,
    training.ChoiceOption,
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
        Option(Kind(), f"{HOLDOUT}|none", unset="every-10th"),
        "Data to choose by: a file, or a share of the rows (0.1: one of every 10, drawn with --seed; "
        "last:0.1: the last; 'day >= 20': those that meet a condition), which are then not learned; or "
        "none, to choose by the progressive loss.",
    ]
    continue_from: Annotated[
        Any,
        Option(training.GOING_ON, "MODELS"),
        training.GOING_ON_FROM.format("the models in this file")
        + " What --choose was stays unless it is given.",
    ]


class PathCommand(RuleOption, LossOption, PathOptions, training.TableOption, TalkOptions, total=False):
    """The options of ``thresher path``."""

    model: Annotated[
        Path,
        Option(FILE, "MODELS", short="-m", required=True, face=SHELL),
        "Where to write the models of all penalties, in one file. Where one is needed, it is the one that "
        "was chosen; thresher choose takes out any of them.",
    ]
    state: Annotated[
        bool,
        SHELL_SWITCH,
        "Save with each model the state that --continue needs, often a thousand times its weights. Models "
        "that went on from others with --continue keep it anyway.",
    ]
    plot: Annotated[Path | None, SHELL_PICTURE, "An SVG file to draw: loss over the number of weights."]


class CvOptions(
    LaneOptions,
    RangeOption,
    training.ChoiceOption,
    training.JudgeOption,
    training.PassesOption,
    LoopOptions,
    SourceOptions,
    total=False,
):
    """The options of `thresher.cv`."""

    folds: Annotated[
        int,
        Option(Whole(2, 1000), "K", default=10),
        "Of every K rows, one is in each fold, drawn with --seed, and is evaluated by a model that did not "
        "learn it.",
    ]
    refit: Annotated[bool, Option(Flag(), default=False, face=PYTHON)]


class CvCommand(RuleOption, LossOption, CvOptions, TalkOptions, total=False):
    """The options of ``thresher cv``."""

    model: Annotated[
        Path | None,
        Option(FILE, "MODEL", short="-m", unset="nowhere; the command that trains it is printed", face=SHELL),
        "Where to write the model of all rows with the chosen penalty.",
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
        Option(Text(_rules), "NAME,...", unset="ft-ftrl,adagrad-fobos"),
        "Rules to try: see thresher rules.",
    ]
    budget: Annotated[int, Option(Whole(1, 4096), "N", default=64), "How many settings to try in all."]
    holdout: Annotated[
        Data | float | None,
        Option(Kind(), HOLDOUT, unset="the last tenth of the rows, each predicted before it is learned"),
        "Data to report on: a file, or a share of the rows (0.2: one of every 5; last:0.1: the last; 'day "
        ">= 20': those that meet a condition), which are then not learned.",
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
        Option(Whole(4, 998, even=True), "N", default=32),
        "How many half-samples, in pairs that do not overlap. A model learns each.",
    ]
    share: Annotated[
        float,
        Option(Number("a share above 0, up to 0.5", lambda share: 0 < share <= 0.5), "SHARE", default=0.5),
        "Share of the rows in each half.",
    ]
    false: Annotated[
        float | None,
        Option(
            Number("a number above 0", lambda number: 0 < number <= 1e9),
            "V",
            unset="5, or a twentieth of the features if that is less",
        ),
        "Keep as many features as the theorem allows for at most so many expected false ones.",
    ]
    nonzero: Annotated[
        int | None,
        Option(Whole(1), "Q", unset="the square root of V times the number of features"),
        "A half selects the Q features with the largest effects, or all with a weight if they are fewer.",
    ]
    l1: Annotated[
        float | None,
        Option(Number(), "L", unset="twice that of the rule (ft-ftrl: 2)"),
        "Sparsity of the halves, in units of the rule; higher selects fewer features.",
    ]
    names: Annotated[bool, SWITCH, "Find the names of the features; this reads the data once more."]


class SelectCommand(RuleOption, LossOption, SelectOptions, training.TableOption, TalkOptions, total=False):
    """The options of ``thresher select``."""

    model: Annotated[
        Path,
        Option(FILE, "MODEL", short="-m", required=True, face=SHELL),
        "Where to write what was found of all features.",
    ]
    plot: Annotated[
        Path | None,
        SHELL_PICTURE,
        "An SVG file to draw: the share of the halves over the mean weight.",
    ]
