"""Options of stability selection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from thresher.options.kinds import Number, Whole, WrongValueError
from thresher.options.model import LaneOptions, LossOption, RuleOption
from thresher.options.option import SHELL, Option, switch
from thresher.options.output import TableOption, TalkOptions, model_file
from thresher.options.training import CheckpointOptions, LoopOptions, ResumablePasses, SourceOptions, picture


@dataclass(frozen=True)
class _Even(Whole):
    """An even whole number."""

    @property
    def wanted(self) -> str:
        """What is expected, in words."""
        return f"an even number from {self.low:,} to {self.high:,}"

    def _checked(self, number: int) -> int:
        return super()._checked(self.low - 1 if number % 2 else number)


@dataclass(frozen=True)
class _Above(Number):
    """A number above 0, up to `high`."""

    high: float
    wanted: str

    def read(self, text: str) -> float:
        """The number."""
        return self.take(super().read(text))

    def take(self, value: Any) -> float:
        """The number."""
        number = float(super().take(value))
        if not 0 < number <= self.high:
            raise WrongValueError(self.wanted)
        return number


class _Own(TypedDict, total=False):
    bags: Annotated[
        int,
        Option(
            _Even(4, 998),
            "How many half-samples, in pairs that do not overlap. A model learns each.",
            "N",
            default=32,
        ),
    ]
    share: Annotated[
        float,
        Option(
            _Above(0.5, "a share above 0, up to 0.5"), "Share of the rows in each half.", "SHARE", default=0.5
        ),
    ]
    false: Annotated[
        float,
        Option(
            _Above(1e9, "a number above 0"),
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


class SelectOptions(
    LaneOptions, _Own, ResumablePasses, LoopOptions, CheckpointOptions, SourceOptions, total=False
):
    """The options of `thresher.select`."""


class SelectRun(SelectOptions, LossOption, total=False):
    """The options of a run that selects features."""


class _Written(TypedDict, total=False):
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


class SelectCommand(_Written, RuleOption, LossOption, SelectOptions, TableOption, TalkOptions, total=False):
    """The options of ``thresher select``."""
