"""Options of commands that use a model: predict, evaluate, report and the like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, TypedDict

from thresher.options import data, kinds, training
from thresher.options.model import ModulesOption
from thresher.options.option import SHELL_SWITCH, Option

OUTPUTS = ("margin", "probability", "label", "decision", "spread", "interval", "explain")


class SliceOption(TypedDict, total=False):
    """Columns for whose values there are figures."""

    slices: Annotated[
        str | Sequence[str],
        Option(kinds.Repeated(kinds.COLUMN), "COL", default=(), unset="none"),
        "Also show figures for each value of a column of a table, given by name, number or pattern; repeat "
        "for more.",
    ]


class WhichModel(TypedDict, total=False):
    """Which of many models is used."""

    choose: Annotated[
        str | None,
        Option(
            kinds.TEXT,
            "WHICH",
            unset="that of --choose when the file was written; of an ensemble, all; by column, each its rows",
        ),
        "Of a file with many models, the one to use: best, 1se, within:P% or nnz:N, as in thresher path; or "
        "its number, from 0. Of models by column: a value, or all.",
    ]


class ThresholdOption(TypedDict, total=False):
    """What counts as a prediction of the positive class."""

    threshold: Annotated[
        float | None,
        Option(
            kinds.Number("a finite number", math.isfinite), "T", unset="0.5 of a probability, 0 of a margin"
        ),
        "Predict the positive class above this probability, or margin where the loss has no probabilities.",
    ]


def _costs(value: object) -> tuple[float, float]:
    """Of ``fn=10,fp=1``, or the same as a dictionary: the costs. `WrongValueError`."""
    pairs = (
        value
        if isinstance(value, dict)
        else dict(one.partition("=")[::2] for one in kinds.text(value).split(","))
    )
    with suppress(ValueError):
        missed, false_alarm = (kinds.Number().read(str(pairs.get(name))) for name in ("fn", "fp"))
        if len(pairs) == 2 and min(missed, false_alarm) >= 0 and 0 < missed + false_alarm < math.inf:
            return missed, false_alarm
    raise kinds.WrongValueError("fn=COST,fp=COST, with costs of at least 0 that are not both 0")


class _OfPrediction(TypedDict, total=False):
    output_class: Annotated[
        str | None,
        Option(kinds.TEXT, "CLASS", unset="all"),
        "With --output explain: of several classes, or outputs, only the numbers of this one; or of the one "
        "that is predicted, predicted.",
    ]


class _Cost(TypedDict, total=False):
    cost: Annotated[
        str | dict[str, float] | None,
        Option(
            kinds.Text(_costs, write=lambda costs: "fn={:.12g},fp={:.12g}".format(*costs)),
            "fn=COST,fp=COST",
            unset="none",
        ),
        "What a positive example costs that is not found (fn), and a negative one that is taken for positive "
        "(fp). evaluate also prints the threshold with the lowest mean cost; predict --output decision takes "
        "fp / (fn + fp), which is best for calibrated probabilities.",
    ]


class PredictCommand(
    _OfPrediction,
    WhichModel,
    ThresholdOption,
    _Cost,
    data.WritingOptions,
    data.ReadingOptions,
    ModulesOption,
    total=False,
):
    """The options of ``thresher predict``."""

    output_file: Annotated[
        Path | None, Option(kinds.FILE, "FILE", short="-o", unset="standard output"), "Where to write."
    ]
    output: Annotated[
        str,
        Option(kinds.Text(partial(kinds.one_of, OUTPUTS)), "|".join(OUTPUTS), default="margin"),
        "The weighted sum; the probability of the positive class; the class (or mean; for labels, those "
        "predicted, separated by commas); the class by --cost or --threshold; for an ensemble, the standard "
        "deviation of the probabilities of its models, or of their margins if there are no probabilities, or "
        "the probability (or mean) and the ends of its interval; or why: a JSON object with the terms of the "
        "margin.",
    ]
    id: Annotated[
        str,
        Option(kinds.COLUMN, "COL", default=""),
        "Print this column of a table, by name or number, and a tab before each prediction; tag prints the "
        "tags of VW text. It is a feature only if the model was trained on it. Tabs and line breaks in it "
        "are written as \\t, \\n and \\r.",
    ]
    interval: Annotated[
        float | None,
        Option(kinds.LEVEL, "LEVEL", unset="0.9"),
        "With --output interval: the share of intervals that should hold the true probability or mean.",
    ]
    top: Annotated[
        int | None,
        Option(kinds.Whole(1), "N", unset="all"),
        "With --output explain: only the N largest terms, and the sum of the others.",
    ]


def _top(value: object) -> str:
    """``100``, or ``1%``. `WrongValueError`."""
    share, percent, _ = str(value).partition("%")
    try:
        number = kinds.Number().read(share) if percent else kinds.Whole(1).read(share)
    except ValueError:
        number = 0
    if not 0 < number <= (100 if percent else math.inf) or str(value) != share + percent:
        raise kinds.WrongValueError("a number of examples, or a share of all such as 1%")
    return str(value)


class _TopAndCost(_Cost, total=False):
    top: Annotated[
        Sequence[int | str] | int | str,
        Option(kinds.Repeated(kinds.Text(_top)), "N|P%", default=()),
        "Also precision, recall and lift of the N examples with the largest margins, or of a share of all; "
        "repeat for more.",
    ]


class _Calibration(TypedDict, total=False):
    plot: Annotated[
        training.AnyPath | None,
        training.PICTURE,
        "An SVG file to draw: the calibration of probabilities, or of the only number that is predicted.",
    ]


class EvaluateCommand(
    WhichModel,
    ThresholdOption,
    _TopAndCost,
    SliceOption,
    _Calibration,
    data.JudgingOptions,
    data.ReadingOptions,
    ModulesOption,
    training.JsonOption,
    total=False,
):
    """The options of ``thresher evaluate``."""

    detail: Annotated[bool, SHELL_SWITCH, "Also print the confusion matrix, each class and the calibration."]


class MeasuringRun(ThresholdOption, SliceOption, data.ReadOptions):
    """The options of a run that measures a model from Python."""


class EvaluateRun(MeasuringRun, _TopAndCost, _Calibration):
    """The same, with a picture."""


class _Page(TypedDict, total=False):
    output_file: Annotated[
        Path | None,
        Option(kinds.FILE, "FILE.html", short="-o", unset="MODEL.html"),
        "The page to write. An existing file is replaced only if it is a report.",
    ]


class ReportCommand(
    _Page,
    SliceOption,
    ThresholdOption,
    data.JudgingOptions,
    data.ReadingOptions,
    ModulesOption,
    training.JsonOption,
):
    """The options of ``thresher report``."""


class WeightsCommand(ModulesOption, total=False):
    """The options of ``thresher weights``."""

    output_class: Annotated[
        str | None,
        Option(kinds.TEXT, "CLASS", unset="all"),
        "Of several classes, or outputs, only this one.",
    ]

    top: Annotated[int | None, Option(kinds.Whole(1), "N", unset="all"), "Only the N heaviest."]
    interval: Annotated[
        float | None,
        Option(kinds.LEVEL, "LEVEL", unset="none"),
        "Of an ensemble: the mean weight, the ends of the interval that should hold the true weight in this "
        "share of all cases, and the share of the models in which the weight is not zero.",
    ]


TARGETS = ("c", "js", "mjs", "onnx", "json")


class ExportCommand(ModulesOption, total=False):
    """The options of ``thresher export``."""

    to: Annotated[
        str,
        Option(kinds.Text(partial(kinds.one_of, TARGETS)), "|".join(TARGETS), required=True),
        "C99 source; JavaScript, for CommonJS and pages (js) or as a module (mjs); an ONNX model; or "
        "JSON that describes the prediction.",
    ]
    output_file: Annotated[
        Path | None, Option(kinds.FILE, "FILE", short="-o", unset="standard output"), "Where to write."
    ]


class ChooseCommand(training.ModelFile, training.JsonOption):
    """The options of ``thresher choose``."""


class _Drawn(TypedDict, total=False):
    plot: Annotated[
        Path | None,
        training.SHELL_PICTURE,
        "An SVG file to draw: the frontier of a path, or the shares of a selection.",
    ]


class InfoCommand(_Drawn, training.TableOption, ModulesOption, training.JsonOption):
    """The options of ``thresher info``."""


class NameCommand(data.WritingOptions, ModulesOption, training.JsonOption, total=False):
    """The options of ``thresher name``."""

    output_file: Annotated[
        Path | None, Option(kinds.FILE, "FILE", short="-o", unset="MODEL itself"), "Where to write."
    ]
    on_error: Annotated[str, Option(data.ON_ERROR, "WHAT", default="skip"), data.OF_BAD_LINES]


class LogCommand(training.JsonOption, total=False):
    """The options of ``thresher log``."""

    last: Annotated[int, Option(kinds.Whole(0), "N", default=0), "Show the last N records, with their rows."]
