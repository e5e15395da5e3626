"""Options of the command line for what is written and printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

from thresher.options.kinds import File, Flag, Text
from thresher.options.model import LossOption, RuleOption
from thresher.options.option import SHELL, Option
from thresher.options.training import TrainOptions


def model_file(metavar: str, words: str, *, required: bool = False, unset: str = "") -> Any:
    """The option for where a model is written."""
    return Option(File(), words, metavar, unset=unset, short="-m", required=required, face=SHELL)


class JsonOption(TypedDict, total=False):
    """How results are printed."""

    json: Annotated[
        bool, Option(Flag(one_way=True), "Print one JSON object instead.", default=False, face=SHELL)
    ]


class _Talk(TypedDict, total=False):
    """How much is told, and how the run ends."""

    quiet: Annotated[
        bool,
        Option(
            Flag(one_way=True),
            "No table, progress bar or messages while compiling; warnings and errors are still printed.",
            default=False,
            short="-q",
            face=SHELL,
        ),
    ]
    strict: Annotated[
        bool,
        Option(
            Flag(one_way=True),
            "Exit with status 1 if there was a warning; the result is saved all the same.",
            default=False,
            face=SHELL,
        ),
    ]


class TalkOptions(_Talk, JsonOption, total=False):
    """What is printed, and how the run ends."""


class ModelFile(TypedDict, total=False):
    """Where the model is written."""

    model: Annotated[Path, model_file("MODEL", "Where to write the model.", required=True)]


def _bags(text: Any) -> str:
    from thresher.lanes.bags import Bags

    return Bags.of(text).spec


class _TrainOnly(TypedDict, total=False):
    """What only ``thresher train`` takes."""

    curve: Annotated[
        Path | None,
        Option(File(), "Also write the table to a file, tab-separated.", "FILE", face=SHELL),
    ]
    weights_only: Annotated[
        bool,
        Option(
            Flag(one_way=True),
            "Save only the weights, without the state that training would continue from.",
            default=False,
            face=SHELL,
        ),
    ]
    ensemble: Annotated[
        str | None,
        Option(
            Text(_bags),
            "Train N models that predict together, and write them to the folder MODEL. Each learns each row "
            "with an importance drawn from Poisson(1), which may be 0 (bagging); with disjoint:N, each row "
            "is learned by one of them.",
            "N|disjoint:N",
            face=SHELL,
        ),
    ]


class TrainCommand(ModelFile, RuleOption, LossOption, TrainOptions, _TrainOnly, TalkOptions, total=False):
    """The options of ``thresher train``."""
