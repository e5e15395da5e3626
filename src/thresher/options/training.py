"""Options for how a stream is learned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from thresher.options.data import ReadingOptions, TableOptions
from thresher.options.kinds import Column, File, Flag, Kind, Repeated, Text, Whole, WrongValueError
from thresher.options.model import LossOption, ModelOptions, ModulesOption
from thresher.options.option import BOTH, PYTHON, Option, switch

if TYPE_CHECKING:
    from thresher.data.inputs.any_data import Data
    from thresher.learning.model.prediction import ModelOrFile
else:
    Data = ModelOrFile = Any

AnyPath = str | os.PathLike[str]
HOLDOUT = "FILE|SHARE|every-Nth|last:SHARE|FILTER"


class _Passes(Kind):
    """A number of passes, or auto."""

    _whole = Whole(1, 10**9)

    def read(self, text: str) -> int | str:
        """The number, in ASCII digits."""
        if text == "auto":
            return text
        if not (text.isdecimal() and text.isascii()):
            raise WrongValueError(f"auto or {self._whole.wanted}")
        return self.take(int(text))

    def take(self, value: Any) -> int | str:
        """The number."""
        try:
            return value if isinstance(value, str) and value == "auto" else self._whole.take(value)
        except WrongValueError as error:
            raise WrongValueError(f"auto or {error.wanted}") from None


def _replay(size: Any) -> str:
    from thresher.learning.training.passes import bytes_of

    return f"{bytes_of(size)}B"


def _order(text: Any) -> str:
    from thresher.data.order import make_order

    return make_order(str(text)).spec


@dataclass(frozen=True)
class _Lines(Whole):
    """A number of examples; Python may say 0 for rows at 1, 2, 4, 8 and so on."""

    def read(self, text: str) -> int:
        """The number, 1 or more."""
        return Whole(1).read(text)


class _Initial(Kind):
    """A model, or the file of one."""

    def read(self, text: str) -> Path:
        """The file."""
        if text == "":
            raise ValueError("name the file of a model")
        return Path(text)


def picture(what: str, face: str = BOTH) -> Any:
    """The option for a picture of `what`."""
    return Option(File(_svg), f"An SVG file to draw: {what}.", "FILE.svg", face=face)


def _svg(path: Path) -> None:
    from thresher.learning.inspection.plots import check_ending

    check_ending(str(path))


def _passes(unset: str) -> Any:
    return Option(
        _Passes(),
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


class CacheOption(TypedDict, total=False):
    """Whether later passes read a cache."""

    cache: Annotated[
        bool,
        Option(
            Flag(),
            "Write a binary cache in the first pass, which later passes read.",
            default=True,
            unset="cache",
        ),
    ]


def going_on(what: str, metavar: str) -> Any:
    """The option for what to go on from."""
    return Option(
        _Initial(),
        f"Go on from {what} with other data, as if they followed those learned before. What defines a model "
        "is kept; --passes, --order, --holdout and the like are those of this run.",
        metavar,
    )


class StartOptions(TypedDict, total=False):
    """What training begins with."""

    continue_from: Annotated[ModelOrFile | None, going_on("this model", "MODEL")]

    init: Annotated[
        ModelOrFile | None,
        Option(_Initial(), "Start from the weights of this model; its rule may differ.", "MODEL"),
    ]


class ReportOptions(TypedDict, total=False):
    """How often the table of progress has a line."""

    report_every: Annotated[
        int | None,
        Option(_Lines(0), "Examples between lines of the table.", "N", unset="1, 2, 4, 8 and so on"),
    ]


class TrainHoldout(TypedDict, total=False):
    """What `train` is judged by."""

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


class SourceOptions(TableOptions, ReadingOptions, CacheOption, ModulesOption, total=False):
    """How data are read, the first time and later; and which files define parts."""


class EnsembleOptions(
    ModelOptions,
    ResumablePasses,
    LoopOptions,
    TrainHoldout,
    EarlyStopOptions,
    ReportOptions,
    CheckpointOptions,
    StartOptions,
    SourceOptions,
    total=False,
):
    """The options of `thresher.ensemble`."""


class TrainOptions(EnsembleOptions, SliceOption, total=False):
    """The options of `thresher.train`."""

    plot: Annotated[AnyPath | None, picture("progressive loss and sparsity over the examples")]
    names: Annotated[
        bool,
        switch("Keep the names of features with non-zero weights; this reads the data once more."),
    ]


class EnsembleRun(EnsembleOptions, LossOption, total=False):
    """The options of a run that trains an ensemble."""


class TrainRun(TrainOptions, LossOption, total=False):
    """The options of a run that trains a model."""
