"""Options of commands that use a model: predict, evaluate, report and the like."""

from __future__ import annotations

from datetime import datetime, time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from thresher.options.data import ON_ERROR, JudgingOptions, ReadingOptions, ReadOptions, WritingOptions
from thresher.options.kinds import Choice, Column, Number, Repeated, RowOrTime, Text, Whole, WrongValueError
from thresher.options.model import ModulesOption
from thresher.options.option import SHELL, Option, switch
from thresher.options.output import JsonOption, ModelFile, TableOption, output_file
from thresher.options.training import AnyPath, SliceOption, picture

OUTPUTS = ("margin", "probability", "label", "spread", "interval", "explain")


class _Predictions(TypedDict, total=False):
    """What is printed for a row, and where."""

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


def _which(text: Any) -> str:
    from thresher.learning.files.choice import check_choice

    return text if isinstance(text, str) and text.isdecimal() else check_choice(text)


def _level(given: Any) -> float:
    """A share of all intervals."""
    level = Number().read(given) if isinstance(given, str) else Number().take(given)
    if not 0 < level < 1:
        raise WrongValueError("a number between 0 and 1")
    return float(level)


class _Terms(TypedDict, total=False):
    interval: Annotated[
        float | None,
        Option(
            Text(_level),
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


class WhichModel(TypedDict, total=False):
    """Which of many models is used."""

    choose: Annotated[
        str | None,
        Option(
            Text(_which),
            "Of a file with many models, the one to use: best, 1se, within:P% or nnz:N, as in thresher path; "
            "or its number, from 0.",
            "WHICH",
            unset="that of --choose when the file was written; of an ensemble, all",
        ),
    ]


class PredictCommand(
    WhichModel, _Predictions, _Terms, WritingOptions, ReadingOptions, ModulesOption, total=False
):
    """The options of ``thresher predict``."""


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


class DetailOption(TypedDict, total=False):
    """How much is printed."""

    detail: Annotated[
        bool,
        switch("Also print the confusion matrix, each class and the calibration.", face=SHELL),
    ]


class _Calibration(TypedDict, total=False):
    plot: Annotated[
        AnyPath | None,
        picture("the calibration; or, if there are no probabilities, the error by class or by output"),
    ]


class EvaluateCommand(
    WhichModel,
    ThresholdOption,
    DetailOption,
    SliceOption,
    _Calibration,
    JudgingOptions,
    ReadingOptions,
    ModulesOption,
    JsonOption,
    total=False,
):
    """The options of ``thresher evaluate``."""


class MeasuringRun(ThresholdOption, SliceOption, ReadOptions, total=False):
    """The options of a run that measures a model from Python."""


class EvaluateRun(MeasuringRun, _Calibration, total=False):
    """The same, with a picture."""


class _Page(TypedDict, total=False):
    data: Annotated[
        list[str],
        Option(
            Repeated(Text(str)),
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
    _Page,
    SliceOption,
    ThresholdOption,
    JudgingOptions,
    ReadingOptions,
    ModulesOption,
    JsonOption,
    total=False,
):
    """The options of ``thresher report``."""


class _Top(TypedDict, total=False):
    top: Annotated[int | None, Option(Whole(1), "Only the N heaviest.", "N", unset="all")]


class _WeightIntervals(TypedDict, total=False):
    interval: Annotated[
        float | None,
        Option(
            Text(_level),
            "Of an ensemble: the mean weight, the ends of the interval that should hold the true weight in "
            "this share of all cases, and the share of the models in which the weight is not zero.",
            "LEVEL",
            unset="none",
        ),
    ]


class _Effects(TypedDict, total=False):
    effects: Annotated[
        str | None,
        Option(
            Text(str),
            "Also print weight times the standard deviation of the feature in these data: how the margin "
            "changes if the feature changes by one standard deviation.",
            "DATA",
            unset="none",
        ),
    ]


class WeightsCommand(_Top, _WeightIntervals, _Effects, ModulesOption, total=False):
    """The options of ``thresher weights``."""


class _Moved(TypedDict, total=False):
    top: Annotated[int, Option(Whole(0), "Show the N weights that moved most.", "N", default=20)]


class DiffCommand(_Moved, ModulesOption, JsonOption, total=False):
    """The options of ``thresher diff``."""


TARGETS = ("c", "js", "mjs", "sql", "onnx", "json")


class _Target(TypedDict, total=False):
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


class ExportCommand(_Target, ModulesOption, total=False):
    """The options of ``thresher export``."""


class ChooseCommand(ModelFile, JsonOption, total=False):
    """The options of ``thresher choose``."""


class _Drawn(TypedDict, total=False):
    plot: Annotated[Path | None, picture("the frontier of a path, or the shares of a selection", SHELL)]


class InfoCommand(_Drawn, TableOption, ModulesOption, JsonOption, total=False):
    """The options of ``thresher info``."""


class _Named(TypedDict, total=False):
    output_file: Annotated[Path | None, output_file("Where to write.", unset="MODEL itself")]


class _NamedReading(TypedDict, total=False):
    on_error: Annotated[
        str,
        Option(
            ON_ERROR, "What to do about a bad line: fail, skip, or quarantine=FILE.", "WHAT", default="skip"
        ),
    ]


class NameCommand(_Named, WritingOptions, _NamedReading, ModulesOption, JsonOption, total=False):
    """The options of ``thresher name``."""


class WarmCommand(ModulesOption, total=False):
    """The options of ``thresher warm``."""

    rules: Annotated[
        str, Option(Text(str), "Rules, separated by commas, or 'all'.", "NAMES", default="ft-ftrl")
    ]
    losses: Annotated[
        str,
        Option(
            Text(str),
            "Losses, each combined with each rule; 'all' for all that support the outputs.",
            "NAMES",
            default="logistic",
        ),
    ]
    formats: Annotated[str, Option(Text(str), "Formats of data, or 'all'.", "NAMES", default="svmlight")]
    outputs: Annotated[str, Option(Text(str), "What to predict, as for train.", "TEXT", default="one")]


class CacheCommand(TypedDict, total=False):
    """The options of ``thresher cache``."""

    clear: Annotated[
        bool,
        switch("Remove it all; it is made again when needed."),
    ]


class _Logged(TypedDict, total=False):
    last: Annotated[int, Option(Whole(0), "Show the last N records, with their rows.", "N", default=0)]
    cut: Annotated[
        int | datetime | time | None,
        Option(
            RowOrTime(),
            "Cut the log after this row, for example the last before damage, or before this time (UTC). What"
            " is cut off is kept in the folder cut-ROW within it, as a log of its own, with models that have"
            " learned it.",
            "ROW|TIME",
            unset="nothing is cut",
        ),
    ]


class LogCommand(_Logged, JsonOption, total=False):
    """The options of ``thresher log``."""
