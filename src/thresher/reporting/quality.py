"""Test data: figures, calibration, ROC and precision-recall curves, classes, slices."""

from __future__ import annotations

import math
from typing import Any

from thresher.drawing import Axis, Series, chart
from thresher.learning.evaluation.curves import wilson
from thresher.learning.inspection import plots
from thresher.reporting import html
from thresher.reporting.facts import Facts, ReportedModel, Test
from thresher.reporting.summary import unbalanced
from thresher.reporting.training import SHAPE

_CLASSES, _CONFUSED = 20, 10
_TABLE = 20
"""number of points of a curve in its table"""
_SHARE: dict[str, Any] = {"low": 0, "high": 1, "percent": True}
_TALL: dict[str, Any] = {**SHAPE, "height": 360}
_NAMES = {
    "examples": "Examples",
    "loss": "Loss",
    "error": "Error: share of wrong predictions",
    "auc": "AUC: chance that a positive example scores higher than a negative one",
    "average_precision": "Average precision: mean over the positives, from the highest score down",
    "base_rate": "Base rate: share of positive examples",
    "base_error": "Error of always predicting the most frequent class",
    "precision": "Precision: share of predicted positives that are positive",
    "recall": "Recall: share of positives that are predicted",
    "f1": "F1: harmonic mean of precision and recall",
    "threshold": "Threshold above which the positive class is predicted",
    "log_loss": "Log loss",
    "base_log_loss": "Log loss of always predicting the base rate",
    "normalised_entropy": "Normalised entropy: log loss over that of the base rate",
    "brier": "Brier score: mean squared error of probabilities",
    "calibration_error": "Calibration error: mean distance of prediction and outcome",
    "rmse": "RMSE: root of the mean squared error",
    "base_rmse": "RMSE of always predicting the mean",
    "mae": "Mean absolute error",
    "r2": "R²: share of the variance explained",
    "deviance": "Deviance: twice the loss",
    "base_deviance": "Deviance of always predicting the mean",
    "d2": "D²: share of the deviance explained",
    "level": "Level of the quantile",
    "coverage": "Coverage: share of observed numbers at or below the prediction",
}
_RARE = ("normalised_entropy", "average_precision", "auc", "calibration_error", "base_rate")
"""Figures that lead if one class is rare."""
_CALIBRATION = (
    "Predictions are sorted into bins of equal weight. A dot above the diagonal: it happened more often than"
    " predicted; below it: less often. The band is a 95% interval (Wilson); if it includes the"
    " diagonal, the difference may be chance. The strip shows where predictions lie."
)
_OBSERVED = (
    "Predictions are sorted into bins of equal weight. Off the diagonal, the mean outcome differs from the"
    " prediction. The strip shows where predictions lie."
)
_ROC = (
    "As the threshold falls, more positives are found (up) and more negatives are taken for positives"
    " (right). The further the curve is above the diagonal, the better the ranking."
)
_PR = (
    "Recall: share of the positives found. Precision: share of what is found that is positive. The grey line"
    " is the precision of random guessing."
)


def part(facts: Facts) -> html.Markup:
    """The section; a hint if there are no test data."""
    if facts.model is None:
        return html.Markup()
    if facts.test is None:
        hint = f"thresher report {facts.name} TEST"
        sentence = f"No test data were given. To measure the model on data that it has not seen: {hint}."
        return html.section("test", "On test data", html.el("p", sentence))
    test = facts.test
    if not test.figures["examples"]:
        return html.section("test", "On test data", html.el("p", "The test data contain no examples."))
    found = {name: value for name, value in test.figures.items() if not isinstance(value, list)}
    if "log_loss" in found and math.isclose(found["log_loss"], found["loss"]):
        del found["loss"]  # the same, under another name
    if unbalanced(test.figures):  # where always answering no errs rarely, the error says little
        found = {name: found[name] for name in ("examples", *_RARE) if name in found} | found
    counted = "once" if test.assessment.plain.alike else "by its importance"
    rows = [
        [_NAMES.get(name, name.replace("_", " ").capitalize().replace(" f1", " F1")), value]
        for name, value in found.items()
    ]
    numbers = html.table(f"Each example counts {counted}", ["Figure", "Value"], rows)
    figures = html.el("div", html.el("h3", "Figures"), numbers)
    return html.section(
        "test",
        "On test data",
        html.el("div", figures, _calibration(facts.model, test), *_curves(test), class_="pair"),
        _classes(test),
        *html.slice_tables(test.slices),
    )


def _calibration(model: ReportedModel, test: Test) -> html.Markup:
    head, binned = model.predictor.head, test.assessment.binned
    if binned is None:
        return html.Markup()
    picture = plots.agreement(head, binned, test.figures, name="agreement", **_TALL)
    rows = list[list[Any]]()
    for one in binned.bins():
        ends = wilson(one["observed"], binned.effective(one["weight"])) if head.classifies else ()
        rows.append([f"{one['predicted']:.4g}", one["observed"], *ends, one["weight"]])
    heads = ["Predicted", "Observed", *(["95% from", "to"] if head.classifies else []), test.counted]
    numbers = html.table("Predicted and observed, by bins of equal weight", heads, rows)
    if head.classifies:
        return _section("Calibration", picture, _CALIBRATION, numbers)
    return _section("Predicted and observed", picture, _OBSERVED, numbers)


def _curves(test: Test) -> list[html.Markup]:
    """ROC and precision-recall curves of two classes."""
    if not test.assessment.head.is_of_two or (auc := test.figures["auc"]) is None:
        return []
    ranking, figures = test.assessment.plain.ranking(), test.figures
    average, rate = figures["average_precision"], figures["base_rate"]
    axes = Axis("false positive rate", **_SHARE), Axis("true positive rate", **_SHARE)
    x, y = zip(*ranking.roc(), strict=True)
    series = [Series(f"model (AUC {auc:.3f})", x, y)]
    roc = chart("ROC curve", f"area {auc:.4g}", *axes, series, diagonal="chance", name="roc", **_TALL)
    x, y = zip(*ranking.precision_recall(), strict=True)
    series = [Series(f"model (average {average:.3f})", x, y)]
    series.append(Series("base rate", [0.0, 1.0], [rate, rate], quiet=True))
    axes, title = (Axis("recall", **_SHARE), Axis("precision", **_SHARE)), "Precision and recall"
    precision = chart(title, f"average {average:.4g}", *axes, series, name="precision", **_TALL)
    of_roc = _points("ROC curve", ["False positive rate", "True positive rate"], ranking.roc())
    numbers = _points(title, ["Recall", "Precision"], ranking.precision_recall())
    return [_section("ROC curve", roc, _ROC, of_roc), _section(title, precision, _PR, numbers)]


def _section(title: str, picture: str, reading: str, numbers: html.Markup) -> html.Markup:
    return html.el("div", html.el("h3", title), html.figure(picture, reading, numbers))


def _points(caption: str, heads: list[str], points: list[tuple[float, float]]) -> html.Markup:
    """Some points of a curve as a table."""
    step = max(1, -(-len(points) // _TABLE))
    rows = [[f"{x:.4g}", y] for x, y in [*points[:-1:step], points[-1]]]
    return html.table(f"{caption}: some points", heads, rows)


def _classes(test: Test) -> html.Markup:
    classes, counted = test.figures.get("by_class"), test.figures.get("confusion")
    if not classes:
        return html.Markup()
    found: list[str] = []
    if counted and len(classes) <= _CONFUSED:
        names = [html.short_name(one["class"]) for one in classes]
        rows = [[name, *row] for name, row in zip(names, counted, strict=True)]
        caption = "Confusion: a row for each true class, a column for each predicted one"
        found = [html.el("h3", "Confusion matrix"), html.table(caption, ["", *names], rows)]
    most = sorted(classes, key=lambda one: -one["weight"])[:_CLASSES]
    rows = [
        [html.short_name(one["class"]), one["precision"], one["recall"], one["f1"], one["weight"]]
        for one in most
    ]
    note = f"The {_CLASSES} most frequent of {len(classes):,}." if len(classes) > _CLASSES else ""
    heads = ["Class", "Precision", "Recall", "F1", test.counted]
    return html.join(
        [*found, html.el("h3", "Class by class"), html.table("Figures of each class", heads, rows, note)]
    )
