"""The top of the page: one sentence, four key numbers, and warnings with remedies."""

from __future__ import annotations

import math
from typing import Any

from thresher.learning.inspection.formatting import size_shown
from thresher.learning.model.objective import Objective
from thresher.learning.training.record import passes_made
from thresher.options.messages import as_stored
from thresher.plans.stability import troubles_of
from thresher.reporting.facts import Facts, ReportedModel
from thresher.reporting.html import Markup, el, join, section, short_name

_RARE = 1 / 3
"""Share of all but the most frequent class below which the error is not a key number."""
Key = tuple[str, str, str]
"""A key number: its name, its value, and what to compare it with"""


def top(facts: Facts) -> Markup:
    """What the model does, in one sentence, and the four key numbers."""
    model, test = facts.model, facts.test
    if model is None:
        sentence = "The features that models of half of the rows agree on."
        return el("p", sentence, class_="lead")
    info = model.info
    record = info["record"] or {}
    passes, number = record.get("passes", 1), info["examples"] or record.get("examples", 0)
    beside = f"in {passes:,} passes" if passes > 1 else ""
    number = number // passes if passes > 1 and number % passes == 0 else number
    trained = f"It was trained on {_count(number, 'example')}{', ' + beside if beside else ''}."
    if test is not None:
        more = f" and {len(test.names) - 3} more files" if len(test.names) > 3 else ""
        files = f" of {', '.join(test.names[:3])}{more}" if test.names else ""
        trained += f" It was measured on {_count(test.figures['examples'], 'example')}{files}."
    seen = info["features_seen"]
    least = "at least " if info.get("features_freed") else ""
    live = f"of {least}{_count(seen or 0, 'feature')} seen"
    share = f"{live}: {_figure(info['features_live'] / seen, True)} have a weight" if seen else ""
    loss, size = info["progressive_loss"], size_shown(info["bytes"]["to_predict"])
    known, file = "unknown" if loss is None else f"{loss:.4g}", size_shown(info["bytes"]["file"])
    of_training: list[Key] = [
        ("Progressive loss", known, "each example is predicted before it is first learned from"),
        ("Memory to predict", size, f"the file has {file}"),
    ]
    found = [
        *(of_training if test is None else _of_test(test.figures, model)),
        ("Non-zero weights", f"{info['nonzero']:,}", share),
        ("Training examples", f"{number:,}" if number else "unknown", beside or "in one pass"),
    ][:4]
    keys = list[Markup]()
    for name, value, note in found:
        notes = [el("dd", note, class_="note")] if note else []
        keys.append(el("div", el("dt", name), el("dd", value, class_="big"), *notes))
    lead = el("p", f"This model predicts {_purpose(model)}. {trained}", class_="lead")
    return join([lead, el("dl", *keys, class_="keys")])


def _purpose(model: ReportedModel) -> str:
    head, words = model.predictor.head, model.predictor.classes
    layout = model.predictor.layout
    kinds = layout.kind_of.items() if layout else ()
    label = next((f" “{short_name(name)}”" for name, kind in kinds if kind == "label"), "")
    kind = head.outputs.kind
    if not head.classifies and kind != "one":
        return f"{head.count:,} numbers"
    if not head.classifies:
        return f"the number{label}" if label else "a number"
    if kind == "classes":
        return f"which of {head.count:,} classes{' of' + label if label else ''} an example has"
    if kind == "labels":
        return f"which of {head.count:,} labels hold"
    likely = "how likely it is that" if head.has_probabilities else "whether"
    what = f"“{short_name(words[1])}” rather than “{short_name(words[0])}”" if words else "positive"
    return f"{likely}{label or ' the label'} is {what}"


def _count(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"


def _of_test(figures: dict[str, Any], model: ReportedModel) -> list[Key]:
    head = model.predictor.head
    if not head.classifies:
        rmse, base = _figure(figures["rmse"]), _figure(figures.get("base_rmse"))
        explained = _figure(figures.get("r2")), "1 is perfect, 0 no better than the mean"
        return [
            ("Error on test data (RMSE)", rmse, f"{base} by always predicting the mean"),
            ("Variance explained (R²)", *explained),
        ]
    error = "Error on test data", _figure(figures["error"], True)
    least = figures.get("base_error")
    beside = (
        f"{_figure(least, True)} by always predicting the most frequent class" if least is not None else ""
    )
    if not unbalanced(figures):
        return [(*error, beside), _second(figures, head)]
    found = [_second(figures, head)]  # instead of an error that always answering no has too
    if "normalised_entropy" in figures and figures.get("auc") is not None:
        found.append(("AUC", _figure(figures["auc"]), "1 is perfect, 0.5 is chance"))
    if figures.get("calibration_error") is not None:
        bins, rate = figures.get("calibration") or [], figures.get("base_rate")
        total, means = sum(one["weight"] for one in bins), "mean distance of prediction and outcome"
        if total and rate is not None:
            mean = sum(one["predicted"] * one["weight"] for one in bins) / total
            means = f"{_figure(mean, True)} predicted on average, {_figure(rate, True)} came true"
        found.append(("Calibration error", _figure(figures["calibration_error"], True), means))
    return found if len(found) == 3 else [*found, (*error, beside)]


def unbalanced(figures: dict[str, Any]) -> bool:
    """Whether always predicting the most frequent class errs so rarely that the error says little."""
    base = figures.get("base_error")
    return base is not None and not math.isnan(base) and base < _RARE


def _second(figures: dict[str, Any], head: Objective) -> Key:
    if "normalised_entropy" in figures:
        found = _figure(figures["normalised_entropy"])
        return "Normalised entropy", found, "0 is perfect, 1 no better than the base rate"
    if "auc" in figures:
        return "AUC", _figure(figures["auc"]), "1 is perfect, 0.5 is chance"
    name = "micro_f1" if head.outputs.kind == "labels" else "macro_f1"
    return name.replace("_", " ").replace("f1", "F1"), _figure(figures.get(name)), "1 is perfect"


def _figure(value: float | None, percent: bool = False) -> str:
    """A number with four digits, or a share as a percentage with three.

    >>> _figure(0.0731), _figure(0.0731, True), _figure(None)
    ('0.0731', '7.31%', 'unknown')
    """
    if value is None or math.isnan(value):
        return "unknown"
    return f"{100 * value:.3g}%" if percent else f"{value:.4g}"


def warnings(facts: Facts) -> Markup:
    """Problems, and what helps."""
    found, test = list[str](), facts.test
    if facts.selection is not None:
        found += [_sentence(one.message) for one in troubles_of(facts.selection)]
    elif facts.model is not None:
        info = facts.model.info
        found += [_sentence(one) for one in info["warnings"]]
        if info.get("stopped"):
            found.append("This is a checkpoint: training has not finished. Continue with --resume.")
        record = info["record"] or {}
        if record.get("planned"):
            found.append(f"Training was {passes_made(record)}: train again for the other passes.")
        if not info["nonzero"] and not info["warnings"]:  # which say why, if there are any
            found.append(
                "All weights are zero, so every prediction is the same. Train with a smaller penalty (--l1),"
                " or on more data."
            )
        skipped = info["lines"].get("skipped") if info["lines"] else 0
        if skipped:
            found.append(
                f"{skipped:,} of {info['lines']['lines']:,} lines of the training data were bad and skipped."
                " --on-error quarantine=FILE keeps them."
            )
        if info["nonzero"] and info["nameable"] and info["weights"]["named"] is None:
            found.append("The weights have no names. thresher name MODEL DATA adds them.")
    if test is not None and not test.figures["examples"]:
        found.append("The test data contain no examples, so nothing could be measured.")
    elif test is not None:
        lines = test.lines
        found += [_sentence(one.message) for one in test.troubles]
        if lines.skipped:
            found.append(f"{lines.skipped:,} of {lines.lines:,} lines of the test data were bad and skipped.")
    listed = el("ul", *(el("li", one) for one in found[:20]), class_="warnings")
    listed = listed if found else el("p", "No warnings.")
    unknown = test is None and facts.model is not None and facts.model.info["columns"]
    note = "The model file does not keep warnings about columns: those of DATA are shown with them."
    return section("warnings", "Warnings", listed, el("p", note) if unknown else Markup())


def _sentence(message: str) -> str:
    found = as_stored(message)
    return found[:1].upper() + found[1:]
