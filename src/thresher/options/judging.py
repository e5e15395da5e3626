"""Options of commands that use a model: predict, evaluate, report and the like."""

from __future__ import annotations

from datetime import UTC, datetime, time
from pathlib import Path
from typing import Annotated, TypedDict

from thresher.options.data import JudgingOptions, ReadingOptions, ReadOptions, WritingOptions, on_error
from thresher.options.kinds import Choice, Column, Number, Repeated, Text, Whole, WrongValueError, text
from thresher.options.model import ModulesOption
from thresher.options.option import SHELL, Option, switch
from thresher.options.training import (
    AnyPath,
    JsonOption,
    ModelFile,
    SliceOption,
    TableOption,
    output_file,
    picture,
)

OUTPUTS = ("margin", "probability", "label", "spread", "interval", "explain")


_LEVEL = Number("a number between 0 and 1", lambda level: 0 < level < 1)
"""A share of all intervals"""


def _row_or_time(text: str) -> int | datetime | time:
    """The number of a row, a time of the day, or a day with or without one; UTC unless it says otherwise."""
    for made in (Whole(0).read, time.fromisoformat, datetime.fromisoformat):
        try:
            found: int | datetime | time = made(text.strip())
        except ValueError:
            continue
        return found.replace(tzinfo=found.tzinfo or UTC) if isinstance(found, datetime) else found
    raise WrongValueError("the number of a row, or a time such as 12:00 or 2026-03-01T12:00")


class WhichModel(TypedDict, total=False):
    """Which of many models is used."""

    choose: Annotated[
        str | None,
        Option(
            Text(text),
            "Of a file with many models, the one to use: best, 1se, within:P% or nnz:N, as in thresher path; "
            "or its number, from 0. Of models by column: a value, or all.",
            "WHICH",
            unset="that of --choose when the file was written; of an ensemble, all; by column, each its rows",
        ),
    ]


class PredictCommand(WhichModel, WritingOptions, ReadingOptions, ModulesOption, total=False):
    """The options of ``thresher predict``."""

    output_file: Annotated[Path | None, output_file("Where to write.", unset="standard output")]
    output: Annotated[
        str,
        Option(
            Choice(OUTPUTS, "output"),
            "The weighted sum; the probability of the positive class; the class (or mean; for labels, those "
            "predicted, separated by commas); for an ensemble, the standard deviation of the probabilities "
            "of its models, or of their margins if there are no probabilities, or the probability (or mean) "
            "and the ends of its interval; or why: a JSON object with the terms of the margin.",
            "|".join(OUTPUTS),
            default="margin",
        ),
    ]
    id: Annotated[
        str,
        Option(
            Column(),
            "Print this column of a table, by name or number, and a tab before each prediction; tag prints "
            "the tags of VW text. It is a feature only if the model was trained on it. Tabs and line breaks "
            "in it are written as \\t, \\n and \\r.",
            "COL",
            default="",
        ),
    ]
    interval: Annotated[
        float | None,
        Option(
            _LEVEL,
            "With --output interval: the share of intervals that should hold the true probability or mean.",
            "LEVEL",
            unset="0.9",
        ),
    ]
    top: Annotated[
        int | None,
        Option(
            Whole(1),
            "With --output explain: only the N largest terms, and the sum of the others.",
            "N",
            unset="all",
        ),
    ]


class ThresholdOption(TypedDict, total=False):
    """What counts as a prediction of the positive class."""

    threshold: Annotated[
        float | None,
        Option(
            Number(),
            "Predict the positive class above this probability, or margin where the loss has no "
            "probabilities.",
            "T",
            unset="0.5 of a probability, 0 of a margin",
        ),
    ]


class _Calibration(TypedDict, total=False):
    plot: Annotated[
        AnyPath | None,
        picture("the calibration; or, if there are no probabilities, the error by class or by output"),
    ]


class EvaluateCommand(
    WhichModel,
    ThresholdOption,
    SliceOption,
    _Calibration,
    JudgingOptions,
    ReadingOptions,
    ModulesOption,
    JsonOption,
    total=False,
):
    """The options of ``thresher evaluate``."""

    detail: Annotated[
        bool,
        switch("Also print the confusion matrix, each class and the calibration.", face=SHELL),
    ]


class MeasuringRun(ThresholdOption, SliceOption, ReadOptions):
    """The options of a run that measures a model from Python."""


class EvaluateRun(MeasuringRun, _Calibration):
    """The same, with a picture."""


class _Page(TypedDict, total=False):
    data: Annotated[
        list[str],
        Option(
            Repeated(Text()),
            "Labelled data that the model has not seen, to measure it on; repeat for more files.",
            "TEST",
            default=(),
        ),
    ]
    output_file: Annotated[
        Path | None,
        output_file(
            "The page to write. An existing file is replaced only if it is a report.",
            "FILE.html",
            unset="MODEL.html",
        ),
    ]


class ReportCommand(
    _Page, SliceOption, ThresholdOption, JudgingOptions, ReadingOptions, ModulesOption, JsonOption
):
    """The options of ``thresher report``."""


class WeightsCommand(ModulesOption, total=False):
    """The options of ``thresher weights``."""

    top: Annotated[int | None, Option(Whole(1), "Only the N heaviest.", "N", unset="all")]
    interval: Annotated[
        float | None,
        Option(
            _LEVEL,
            "Of an ensemble: the mean weight, the ends of the interval that should hold the true weight in "
            "this share of all cases, and the share of the models in which the weight is not zero.",
            "LEVEL",
            unset="none",
        ),
    ]
    effects: Annotated[
        str | None,
        Option(
            Text(),
            "Also print weight times the standard deviation of the feature in these data: how the margin "
            "changes if the feature changes by one standard deviation.",
            "DATA",
            unset="none",
        ),
    ]


class DiffCommand(ModulesOption, JsonOption, total=False):
    """The options of ``thresher diff``."""

    top: Annotated[int, Option(Whole(0), "Show the N weights that moved most.", "N", default=20)]


TARGETS = ("c", "js", "mjs", "sql", "onnx", "json")


class ExportCommand(ModulesOption, total=False):
    """The options of ``thresher export``."""

    to: Annotated[
        str,
        Option(
            Choice(TARGETS, "target"),
            "C99 source; JavaScript, for CommonJS and pages (js) or as a module (mjs); an SQL query; an ONNX "
            "model; or JSON that describes the prediction.",
            "|".join(TARGETS),
            required=True,
        ),
    ]
    output_file: Annotated[Path | None, output_file("Where to write.", unset="standard output")]


class ChooseCommand(ModelFile, JsonOption):
    """The options of ``thresher choose``."""


class _Drawn(TypedDict, total=False):
    plot: Annotated[Path | None, picture("the frontier of a path, or the shares of a selection", SHELL)]


class InfoCommand(_Drawn, TableOption, ModulesOption, JsonOption):
    """The options of ``thresher info``."""


class NameCommand(WritingOptions, ModulesOption, JsonOption, total=False):
    """The options of ``thresher name``."""

    output_file: Annotated[Path | None, output_file("Where to write.", unset="MODEL itself")]
    on_error: Annotated[str, on_error("skip")]


class WarmCommand(ModulesOption, total=False):
    """The options of ``thresher warm``."""

    rules: Annotated[str, Option(Text(), "Rules, separated by commas, or 'all'.", "NAMES", default="ft-ftrl")]
    losses: Annotated[
        str,
        Option(
            Text(),
            "Losses, each combined with each rule; 'all' for all that support the outputs.",
            "NAMES",
            default="logistic",
        ),
    ]
    formats: Annotated[str, Option(Text(), "Formats of data, or 'all'.", "NAMES", default="svmlight")]
    outputs: Annotated[str, Option(Text(), "What to predict, as for train.", "TEXT", default="one")]


class CacheCommand(TypedDict, total=False):
    """The options of ``thresher cache``."""

    clear: Annotated[
        bool,
        switch("Remove it all; it is made again when needed."),
    ]


class LogCommand(JsonOption, total=False):
    """The options of ``thresher log``."""

    last: Annotated[int, Option(Whole(0), "Show the last N records, with their rows.", "N", default=0)]
    cut: Annotated[
        int | datetime | time | None,
        Option(
            Text(_row_or_time),
            "Cut the log after this row, for example the last before damage, or before this time (UTC). What"
            " is cut off is kept in the folder cut-ROW within it, as a log of its own, with models that have"
            " learned it.",
            "ROW|TIME",
            unset="nothing is cut",
        ),
    ]
