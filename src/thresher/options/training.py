"""Options for how a stream is learned, and what is written and printed of it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from thresher.options import kinds
from thresher.options.data import THREADS, ElsewhereOptions, OnErrorOption, ReadOptions, TableOptions
from thresher.options.model import LossOption, ModelOptions, ModulesOption, RuleOption
from thresher.options.option import PYTHON, SHELL, SHELL_SWITCH, SWITCH, Option

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from thresher.data.inputs.any_data import Data
    from thresher.learning.model.prediction import ModelOrFile
    from thresher.learning.model.recipe import Spec
else:
    ArrayLike = Data = ModelOrFile = Spec = Any

AnyPath = str | os.PathLike[str]
BEST = "best"
METHODS = "newton", "parallel"
BOOSTED = "exponential"
"""The loss that AdaBoost minimises"""
HOLDOUT = "FILE|SHARE|every-Nth|last:SHARE|FILTER"


def _replay(size: Any) -> str:
    from thresher.learning.training.passes import bytes_of

    return f"{bytes_of(size)}B"


def _order(text: object) -> str:
    from thresher.data.order import make_order

    return make_order(str(text)).spec


def _initial(model: object) -> object:
    """A model, or the path of one."""
    if isinstance(model, str) and not model:
        raise ValueError("name the file of a model")
    return Path(model) if isinstance(model, str) else model


def _judge(text: object) -> str:
    from thresher.learning.files.choice import check_judge

    return check_judge(text)


def _svg(value: object) -> Path:
    path = kinds.path(value)
    if path.suffix.lower() != ".svg":
        raise kinds.WrongValueError("the name of a file that ends in .svg")
    return path


def _bags(text: Any) -> str:
    from thresher.learning.model.bags import Bags

    return Bags.of(text).spec


PICTURE = Option(kinds.Text(_svg), "FILE.svg")
SHELL_PICTURE = replace(PICTURE, face=SHELL)
GOING_ON = kinds.Text(_initial)
GOING_ON_FROM = (
    "Go on from {} with other data, as if they followed those learned before. What defines a model is kept; "
    "--passes, --order, --holdout and the like are those of this run."
)
_OF_PASSES = (
    "Passes over the data. auto: with the default rule 3 to 40 over data that fit in --replay, the most if "
    "there are many rows for each feature; with other rules, and over longer data, one."
)

_UNLESS_GOING_ON = "auto; with --resume, as before; with --continue, 1 if the model was made in one pass"


class PassesOption(TypedDict, total=False):
    """How often the data are passed over."""

    passes: Annotated[int | str, Option(kinds.PASSES, "N|auto", unset="auto"), _OF_PASSES]


class ResumablePasses(TypedDict, total=False):
    """How often the data are passed over, if a run may be resumed."""

    passes: Annotated[int | str, Option(kinds.PASSES, "N|auto", unset=_UNLESS_GOING_ON), _OF_PASSES]


class LoopOptions(TypedDict, total=False):
    """What is kept for later passes, and the order of the rows."""

    replay: Annotated[
        int | str,
        Option(kinds.Text(_replay), "SIZE", unset="64MB"),
        "Memory for the rows that --passes auto keeps for further passes; 0: always one pass. 64MB holds "
        "129,000 rows of 40 features (12 bytes per non-zero, 16 per row). Data that do not fit are passed "
        "over once.",
    ]
    order: Annotated[
        str,
        Option(kinds.Text(_order), "ORDER", unset="as-is"),
        "Order of the rows: as-is; once, one random permutation for all passes; every, a new one each pass "
        "(both hold all rows in memory: 12 bytes per non-zero, 24 per row); or buffer:N, a shuffling buffer "
        "of N rows for streams of any length.",
    ]


class JudgeOption(TypedDict, total=False):
    """What tells which model is better."""

    judge: Annotated[
        str | None,
        Option(kinds.Text(_judge), "FIGURE", unset="loss"),
        "The figure of rows that are not learned by which passes and models are chosen: any of thresher "
        "evaluate, such as auc, average-precision or d2, or of the rows with the largest margins, such as "
        "lift@1% or precision@100.",
    ]


class EarlyStopOptions(JudgeOption, total=False):
    """When to stop before all passes are made."""

    early_stop: Annotated[
        int | None,
        Option(kinds.Whole(1), "N"),
        "Stop after N passes that are no better on the hold-out, and keep the best pass.",
    ]


class CheckpointOptions(TypedDict, total=False):
    """How a run that was stopped goes on."""

    checkpoint: Annotated[AnyPath | None, Option(kinds.FILE, face=PYTHON)]
    checkpoint_every: Annotated[
        int | None,
        Option(kinds.Whole(1), "N", unset="only when stopped"),
        "Examples between checkpoints, written to MODEL.checkpoint.",
    ]
    resume: Annotated[bool, SWITCH, "Continue from MODEL.checkpoint, with the same data."]


class JsonOption(TypedDict, total=False):
    """How results are printed."""

    json: Annotated[bool, SHELL_SWITCH, "Print one JSON object instead."]


class TalkOptions(JsonOption, total=False):
    """What is printed, and how the run ends."""

    quiet: Annotated[
        bool,
        Option(kinds.Flag(one_way=True), default=False, short="-q", face=SHELL),
        "No table, progress bar or messages while compiling; warnings and errors are still printed.",
    ]
    strict: Annotated[
        bool, SHELL_SWITCH, "Exit with status 1 if there was a warning; the result is saved all the same."
    ]


class TableOption(TypedDict, total=False):
    """Where a table is written."""

    table: Annotated[
        Path | None,
        Option(kinds.FILE, "FILE.tsv", face=SHELL),
        "Also write the table to a file, tab-separated.",
    ]


class ModelFile(TypedDict, total=False):
    """Where the model is written."""

    model: Annotated[
        Path,
        Option(kinds.FILE, "MODEL", short="-m", required=True, face=SHELL),
        "Where to write the model.",
    ]


class SourceOptions(ReadOptions, ModulesOption, total=False):
    """How data are read, the first time and later; and which files define parts."""

    groups: Annotated[ArrayLike | None, Option(kinds.Kind(), face=PYTHON)]
    cache: Annotated[
        bool,
        Option(kinds.Flag(), default=True, unset="cache"),
        "Write a binary cache in the first pass, which later passes read.",
    ]


class EnsembleOptions(
    ModelOptions,
    ResumablePasses,
    LoopOptions,
    EarlyStopOptions,
    CheckpointOptions,
    SourceOptions,
    total=False,
):
    """The options of `thresher.ensemble`."""

    holdout: Annotated[
        Data | float | None,
        Option(kinds.Kind(), HOLDOUT),
        "Evaluate after each pass on a file, or on rows that are then not learned: a share (0.2 or "
        "every-5th: one of every 5, drawn with --seed), the last (last:0.1 or last:1000, for rows in the "
        "order of time), or those that meet a condition ('day >= 20', as in --where). They are the same in "
        "every order and every pass.",
    ]
    report_every: Annotated[
        int | None,
        # Python may say 0 for lines at 1, 2, 4, 8 and so on
        Option(kinds.Text(kinds.Whole(0).take, kinds.Whole(1).read), "N", unset="1, 2, 4, 8 and so on"),
        "Examples between lines of the table.",
    ]
    continue_from: Annotated[
        ModelOrFile | None, Option(GOING_ON, "MODEL"), GOING_ON_FROM.format("this model")
    ]
    init: Annotated[
        ModelOrFile | None,
        Option(GOING_ON, "MODEL"),
        "Start from the weights of this model; its rule may differ.",
    ]


class TrainOptions(EnsembleOptions, total=False):
    """The options of `thresher.train`."""

    plot: Annotated[
        AnyPath | None, PICTURE, "An SVG file to draw: progressive loss and sparsity over the examples."
    ]
    names: Annotated[
        bool, SWITCH, "Keep the names of features with non-zero weights; this reads the data once more."
    ]


class EnsembleRun(EnsembleOptions, LossOption):
    """The options of a run that trains an ensemble."""


class TrainCommand(ModelFile, RuleOption, LossOption, TrainOptions, TalkOptions, total=False):
    """The options of ``thresher train``."""

    curve: Annotated[
        Path | None,
        Option(kinds.FILE, "FILE", face=SHELL),
        "Also write the table to a file, tab-separated.",
    ]
    weights_only: Annotated[
        bool, SHELL_SWITCH, "Save only the weights, without the state that training would continue from."
    ]
    ensemble: Annotated[
        str | None,
        Option(kinds.Text(_bags), "N|disjoint:N", face=SHELL),
        "Train N models that predict together, and write them to one file. Each learns each row with an "
        "importance drawn from Poisson(1), which may be 0 (bagging); with disjoint:N, each row is learned "
        "by one of them.",
    ]
    by: Annotated[
        str | None,
        Option(kinds.COLUMN_NAME, "COL", face=SHELL),
        "Train a model for each value of a column, such as a country or a shop, beside one of all rows, and "
        "write them to one file. Each row is predicted by the model of its value; values never seen, by "
        "that of all rows.",
    ]


def _choice(text: object) -> str:
    from thresher.learning.files.choice import check_choice

    return check_choice(text)


class ChoiceOption(TypedDict, total=False):
    """Which model is chosen."""

    choose: Annotated[
        str,
        Option(kinds.Text(_choice), "WHICH", default=BEST, unset=BEST),
        "best, the lowest loss (or the best by --judge); 1se, the sparsest within one standard error of it; "
        "within:P%, the sparsest at most P % worse; nnz:N, the best with at most N weights.",
    ]


def penalties(value: object) -> object:
    """The same range of penalties, or list of them. ValueError."""
    from thresher.plans.penalties import PenaltyRange

    PenaltyRange(value)
    return value


def is_range(value: object) -> bool:
    """Whether a strength means several numbers."""
    if isinstance(value, str):
        return ":" in value or value == "auto"
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0


@dataclass(frozen=True)
class _Strengths(kinds.Number):
    """A number, a text such as ``2sd``, so many standard deviations of noise, or a range of numbers."""

    def read(self, text: str) -> Any:
        """The number, or the text."""
        return self.take(text) if is_range(text) or text.endswith(kinds.DEVIATIONS) else super().read(text)

    def take(self, value: object) -> Any:
        """The same, the numbers in it checked."""
        if isinstance(value, str) and value.endswith(kinds.DEVIATIONS):
            return f"{super().read(value.removesuffix(kinds.DEVIATIONS)):g}{kinds.DEVIATIONS}"
        return penalties(value) if is_range(value) else super().take(value)


_AMOUNT = kinds.Number("a finite number of at least 0", lambda number: 0 <= number < math.inf)


class SolverOptions(TypedDict, total=False):
    """The objective, and how its minimum is found."""

    l1: Annotated[
        float | str | Sequence[float],
        Option(_Strengths(_AMOUNT.wanted, _AMOUNT.fits), "L|Ksd|LO:HI:N|auto:N", default=1.0),
        "Penalty on |w|_1; 2sd: of each weight, two standard deviations of its gradient's noise; LO:HI:N: a "
        "model for each of N penalties at even ratios, or, with auto:N, down from one that leaves none.",
    ]
    l2: Annotated[float, Option(_AMOUNT, "L", default=0.0, unset="0.0"), "Penalty on |w|^2 / 2."]
    loss: Annotated[
        Spec,
        Option(kinds.Kind(), "SPEC", default=BOOSTED),
        "exponential (AdaBoost's), logistic, squared, huber, poisson, gamma, tweedie; softmax or one-vs-rest"
        " for several classes.",
    ]
    outputs: Annotated[
        str | None,
        Option(kinds.FILLED, "classes|classes:LO-HI", unset="one; classes for softmax"),
        "Tell several classes apart, with a loss of two classes each from the rest; classes are found by "
        "reading the labels first.",
    ]
    method: Annotated[
        str,
        Option(kinds.Text(partial(kinds.one_of, METHODS)), "|".join(METHODS), default=METHODS[0]),
        "Newton steps with working sets of features, or parallel steps of all features.",
    ]
    tolerance: Annotated[
        float,
        Option(_AMOUNT, "T", default=1e-4),
        "Stop when the largest violation of the optimality conditions is this share of the l1 that would "
        "leave no feature.",
    ]
    rounds: Annotated[
        int, Option(kinds.Whole(1), "N", default=1000), "Stop after N rounds over all features."
    ]
    intercept: Annotated[
        bool,
        Option(kinds.Flag(), default=True, unset="intercept"),
        "Learn an intercept; it is not penalised.",
    ]


class BoostOptions(SolverOptions, ChoiceOption, TableOptions, OnErrorOption, ElsewhereOptions, total=False):
    """The options of `thresher.boost`."""

    folds: Annotated[
        int,
        Option(kinds.Whole(2, 1000), "K", default=10),
        "With several penalties: of every K rows, one is in each fold, and is evaluated by models that did "
        "not learn it. The folds share the rows in memory.",
    ]
    threads: Annotated[int | None, THREADS, "Threads; they change no result."]


class BoostCommand(ModelFile, BoostOptions, TalkOptions):
    """The options of ``thresher boost``."""
