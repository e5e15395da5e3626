"""Options of the command line for what is written and printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

from thresher.options.kinds import File, Text
from thresher.options.model import LossOption, RuleOption
from thresher.options.option import SHELL, Option, switch
from thresher.options.training import TrainOptions


def model_file(metavar: str, words: str, *, required: bool = False, unset: str = "") -> Any:
    """The option for where a model is written."""
    return Option(File(), words, metavar, unset=unset, short="-m", required=required, face=SHELL)


def output_file(words: str, metavar: str = "FILE", *, unset: str) -> Any:
    """The option for where a result is written."""
    return Option(File(), words, metavar, unset=unset, short="-o")


class JsonOption(TypedDict, total=False):
    """How results are printed."""

    json: Annotated[bool, switch("Print one JSON object instead.", face=SHELL)]


class _Talk(TypedDict, total=False):
    """How much is told, and how the run ends."""

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


class TalkOptions(_Talk, JsonOption, total=False):
    """What is printed, and how the run ends."""


class TableOption(TypedDict, total=False):
    """Where a table is written."""

    table: Annotated[
        Path | None,
        Option(File(), "Also write the table to a file, tab-separated.", "FILE.tsv", face=SHELL),
    ]


class ModelFile(TypedDict, total=False):
    """Where the model is written."""

    model: Annotated[Path, model_file("MODEL", "Where to write the model.", required=True)]


def _bags(text: Any) -> str:
    from thresher.learning.model.bags import Bags

    return Bags.of(text).spec


class _TrainOnly(TypedDict, total=False):
    """What only ``thresher train`` takes."""

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


class TrainCommand(ModelFile, RuleOption, LossOption, TrainOptions, _TrainOnly, TalkOptions, total=False):
    """The options of ``thresher train``."""
