"""Options for how a stream is learned, and what is written and printed of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from thresher.options.data import ElsewhereOptions, OnErrorOption, ReadingOptions, TableOptions, threads
from thresher.options.kinds import Column, File, Flag, Kind, Number, Repeated, Text, Whole
from thresher.options.model import LossOption, ModelOptions, ModulesOption, RuleOption
from thresher.options.option import BOTH, PYTHON, SHELL, Option, switch

if TYPE_CHECKING:
    from thresher.data.inputs.any_data import Data
    from thresher.learning.model.prediction import ModelOrFile
    from thresher.learning.model.recipe import Spec
else:
    Data = ModelOrFile = Spec = Any

AnyPath = str | os.PathLike[str]
BOOSTED = "exponential"
"""The loss that AdaBoost minimises"""
HOLDOUT = "FILE|SHARE|every-Nth|last:SHARE|FILTER"


@dataclass(frozen=True)
class _Passes(Whole):
    """A number of passes, or auto."""

    @property
    def wanted(self) -> str:
        """What is expected, in words."""
        return f"auto or {super().wanted}"

    def read(self, text: str) -> Any:
        """The number, or auto."""
        return text if text == "auto" else super().read(text)

    def take(self, value: Any) -> Any:
        """The number, or auto."""
        return value if isinstance(value, str) and value == "auto" else super().take(value)


@dataclass(frozen=True)
class _Lines(Whole):
    """A number of examples; Python may say 0 for rows at 1, 2, 4, 8 and so on."""

    def read(self, text: str) -> int:
        """The number, 1 or more."""
        return Whole(1).read(text)


def _replay(size: Any) -> str:
    from thresher.learning.training.passes import bytes_of

    return f"{bytes_of(size)}B"


def _order(text: Any) -> str:
    from thresher.data.order import make_order

    return make_order(str(text)).spec


def _initial(model: Any) -> Any:
    """A model, or the path of one."""
    if isinstance(model, str) and not model:
        raise ValueError("name the file of a model")
    return Path(model) if isinstance(model, str) else model


def _svg(path: Path) -> None:
    from thresher.learning.inspection.plots import check_ending

    check_ending(str(path))


def _bags(text: Any) -> str:
    from thresher.learning.model.bags import Bags

    return Bags.of(text).spec


def picture(what: str, face: str = BOTH) -> Any:
    """The option for a picture of `what`."""
    return Option(File(_svg), f"An SVG file to draw: {what}.", "FILE.svg", face=face)


def model_file(metavar: str, words: str, *, required: bool = False, unset: str = "") -> Any:
    """The option for where a model is written."""
    return Option(File(), words, metavar, unset=unset, short="-m", required=required, face=SHELL)


def output_file(words: str, metavar: str = "FILE", *, unset: str) -> Any:
    """The option for where a result is written."""
    return Option(File(), words, metavar, unset=unset, short="-o")


def going_on(what: str, metavar: str) -> Any:
    """The option for what to go on from."""
    return Option(
        Text(_initial),
        f"Go on from {what} with other data, as if they followed those learned before. What defines a model "
        "is kept; --passes, --order, --holdout and the like are those of this run.",
        metavar,
    )


def _passes(unset: str) -> Any:
    return Option(
        _Passes(1, 10**9),
        "Passes over the data. auto: with the default rule 3 to 40 over data that fit in --replay, the most "
        "if there are many rows for each feature; with other rules, and over longer data, one.",
        "N|auto",
        unset=unset,
    )


class PassesOption(TypedDict, total=False):
    """How often the data are passed over."""

    passes: Annotated[int | str, _passes("auto")]


class ResumablePasses(TypedDict, total=False):
    """How often the data are passed over, if a run may be resumed."""

    passes: Annotated[
        int | str,
        _passes("auto; with --resume, as before; with --continue, 1 if the model was made in one pass"),
    ]


class LoopOptions(TypedDict, total=False):
    """What is kept for later passes, and the order of the rows."""

    replay: Annotated[
        int | str,
        Option(
            Text(_replay),
            "Memory for the rows that --passes auto keeps for further passes; 0: always one pass. 64MB holds"
            " 129,000 rows of 40 features (12 bytes per non-zero, 16 per row). Data that do not fit are "
            "passed over once.",
            "SIZE",
            unset="64MB",
        ),
    ]
    order: Annotated[
        str,
        Option(
            Text(_order),
            "Order of the rows: as-is; once, one random permutation for all passes; every, a new one each "
            "pass (both hold all rows in memory: 12 bytes per non-zero, 24 per row); or buffer:N, a "
            "shuffling buffer of N rows for streams of any length.",
            "ORDER",
            unset="as-is",
        ),
    ]


class EarlyStopOptions(TypedDict, total=False):
    """When to stop before all passes are made."""

    early_stop: Annotated[
        int | None,
        Option(Whole(1), "Stop after N passes without a better hold-out loss, and keep the best pass.", "N"),
    ]
    patience: Annotated[int, Option(Whole(0), default=0, face=PYTHON)]
    holdout_every: Annotated[int | None, Option(Whole(0), face=PYTHON)]


class CheckpointOptions(TypedDict, total=False):
    """How a run that was stopped goes on."""

    checkpoint: Annotated[AnyPath | None, Option(File(), face=PYTHON)]
    checkpoint_every: Annotated[
        int | None,
        Option(
            Whole(1),
            "Examples between checkpoints, written to MODEL.checkpoint.",
            "N",
            unset="only when stopped",
        ),
    ]
    resume: Annotated[
        bool,
        switch("Continue from MODEL.checkpoint, with the same data."),
    ]


class JsonOption(TypedDict, total=False):
    """How results are printed."""

    json: Annotated[bool, switch("Print one JSON object instead.", face=SHELL)]


class TalkOptions(JsonOption, total=False):
    """What is printed, and how the run ends."""

    quiet: Annotated[
        bool,
        switch(
            "No table, progress bar or messages while compiling; warnings and errors are still printed.",
            short="-q",
            face=SHELL,
        ),
    ]
    strict: Annotated[
        bool,
        switch("Exit with status 1 if there was a warning; the result is saved all the same.", face=SHELL),
    ]


class TableOption(TypedDict, total=False):
    """Where a table is written."""

    table: Annotated[
        Path | None,
        Option(File(), "Also write the table to a file, tab-separated.", "FILE.tsv", face=SHELL),
    ]


class ModelFile(TypedDict, total=False):
    """Where the model is written."""

    model: Annotated[Path, model_file("MODEL", "Where to write the model.", required=True)]


class SliceOption(TypedDict, total=False):
    """Columns for whose values there are figures."""

    slices: Annotated[
        str | Sequence[str],
        Option(
            Repeated(Column()),
            "Also show figures for each value of a column of a table, given by name, number or pattern; "
            "repeat for more.",
            "COL",
            default=(),
            unset="none",
        ),
    ]


class SourceOptions(TableOptions, ReadingOptions, ModulesOption, total=False):
    """How data are read, the first time and later; and which files define parts."""

    cache: Annotated[
        bool,
        Option(
            Flag(),
            "Write a binary cache in the first pass, which later passes read.",
            default=True,
            unset="cache",
        ),
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
        Option(
            Kind(),
            "Evaluate after each pass on a file, or on rows that are then not learned: a share (0.2 or "
            "every-5th: one of every 5, drawn with --seed), the last (last:0.1 or last:1000, for rows in the "
            "order of time), or those that meet a condition ('day >= 20', as in --where). They are the same "
            "in every order and every pass.",
            HOLDOUT,
        ),
    ]
    report_every: Annotated[
        int | None,
        Option(_Lines(0), "Examples between lines of the table.", "N", unset="1, 2, 4, 8 and so on"),
    ]
    continue_from: Annotated[ModelOrFile | None, going_on("this model", "MODEL")]
    init: Annotated[
        ModelOrFile | None,
        Option(Text(_initial), "Start from the weights of this model; its rule may differ.", "MODEL"),
    ]


class TrainOptions(EnsembleOptions, SliceOption, total=False):
    """The options of `thresher.train`."""

    plot: Annotated[AnyPath | None, picture("progressive loss and sparsity over the examples")]
    names: Annotated[
        bool,
        switch("Keep the names of features with non-zero weights; this reads the data once more."),
    ]


class EnsembleRun(EnsembleOptions, LossOption):
    """The options of a run that trains an ensemble."""


class TrainRun(TrainOptions, LossOption):
    """The options of a run that trains a model."""


class TrainCommand(ModelFile, RuleOption, LossOption, TrainOptions, TalkOptions, total=False):
    """The options of ``thresher train``."""

    curve: Annotated[
        Path | None,
        Option(File(), "Also write the table to a file, tab-separated.", "FILE", face=SHELL),
    ]
    weights_only: Annotated[
        bool,
        switch("Save only the weights, without the state that training would continue from.", face=SHELL),
    ]
    ensemble: Annotated[
        str | None,
        Option(
            Text(_bags),
            "Train N models that predict together, and write them to one file. Each learns each row "
            "with an importance drawn from Poisson(1), which may be 0 (bagging); with disjoint:N, each row "
            "is learned by one of them.",
            "N|disjoint:N",
            face=SHELL,
        ),
    ]
    by: Annotated[
        str | None,
        Option(
            Column(),
            "Train a model for each value of a column, such as a country or a shop, beside one of all rows, "
            "and write them to one file. Each row is predicted by the model of its value; values never seen, "
            "by that of all rows.",
            "COL",
            face=SHELL,
        ),
    ]


class SolverOptions(TypedDict, total=False):
    """The objective, and how its minimum is found."""

    l1: Annotated[float, Option(Number(), "Penalty on |w|_1.", "L", default=1.0)]
    l2: Annotated[float, Option(Number(), "Penalty on |w|^2 / 2.", "L", default=0.0, unset="0.0")]
    loss: Annotated[Spec, Option(Kind(), "exponential (AdaBoost's) or logistic.", "SPEC", default=BOOSTED)]
    order: Annotated[
        str,
        Option(
            Kind(),
            "Update one feature at a time, in a new order each round or as they come, or all at once with "
            "smaller steps; --workers then also hold the rows.",
            "random|cyclic|parallel",
            default="random",
        ),
    ]
    tolerance: Annotated[
        float,
        Option(
            Number(),
            "Stop when the largest violation of the optimality conditions is this share of the l1 that "
            "would leave no feature.",
            "T",
            default=1e-4,
        ),
    ]
    rounds: Annotated[int, Option(Whole(1), "Stop after N rounds over all features.", "N", default=1000)]
    intercept: Annotated[
        bool,
        Option(Flag(), "Learn an intercept; it is not penalised.", default=True, unset="intercept"),
    ]
    seed: Annotated[int, Option(Whole(0), "Seed of the random order.", "N", default=0)]


class BoostOptions(SolverOptions, TableOptions, OnErrorOption, ElsewhereOptions, total=False):
    """The options of `thresher.boost`."""

    threads: Annotated[int | None, threads("Threads; they change no result.")]


class BoostCommand(ModelFile, BoostOptions, TalkOptions):
    """The options of ``thresher boost``."""
