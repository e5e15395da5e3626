"""What eq. 12.8 leaves of the weights when each step is on one example (Daumé, chapter 12)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Parts, Sets
from experiments.papers.sweeps import chosen, scored
from thresher import TroubleWarning, boost, path
from thresher.data import Chunk
from thresher.drawing import Axis, Series, chart

RULE, MINIMUM, FTRL = "eq. 12.8", "minimum of the same objective", "FTRL"
SGD = "--rule sgd --rate inverse-sqrt:2|8|32|128"
ALPHA = "--rule ftrl:alpha=0.5|2|8,beta=1,l1=1"
PENALTIES, PASSES = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3), (1, 10)
MANY, NEAR = 2.0, 1.1
"""how many times the weights are many more; how many times the errors of SGD are still about as few"""


class Point(NamedTuple):
    """Test error and non-zero weights of a model."""

    error: float
    nonzero: int


class Found(NamedTuple):
    """What was measured."""

    features: int
    sgd: dict[str, Point]
    """by passes"""
    lines: dict[str, list[Point]]
    """for each penalty"""
    settings: list[str]


def _points(models: Iterable[Any], test: Chunk) -> list[Point]:
    wrong = ((model, (model.predict(test, "margin") > 0) != (test.labels > 0)) for model in models)
    return [Point(float(np.mean(each)), model.nonzero) for model, each in wrong]


def measured(parts: Parts, penalties: Sequence[float], numbers: Sequence[int]) -> Found:
    """SGD, eq. 12.8 with the same steps, FTRL, and the minimum of the objective of both."""
    rows = len(parts.train)
    found = Found(len(np.unique(parts.train.keys)), {}, {}, [])

    def swept(rule: str, l1: Sequence[float], passes: int, **rate: Any) -> list[Point]:
        order = "every" if passes > 1 else "as-is"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TroubleWarning)  # the steps that suit SGD may be bad ones here
            found = path(parts.train, rule=rule, l1=l1, passes=passes, order=order, holdout="none", **rate)
        return _points(found.models, parts.test)

    for passes in numbers:
        after = f"{passes} pass{'es' * (passes > 1)}"
        command, ftrl = chosen(SGD, parts, passes), chosen(ALPHA, parts, passes)
        rate, rule = command.split()[-1], ftrl.split()[-1].rpartition(",")[0]
        found.settings.append(f"after {after} `{rate}` and `{rule}`")
        found.sgd[after] = Point(*scored(command, parts, passes)[:2])
        found.lines[f"{RULE}, {after}"] = swept("clipped-subgradient", penalties, passes, rate=rate)
        found.lines[f"{FTRL}, {after}"] = swept(rule, [passes * rows * l1 for l1 in penalties], passes)
    exact = [boost(parts.train, loss="logistic", l1=rows * l1, tolerance=1e-3) for l1 in penalties]
    found.lines[MINIMUM] = _points(exact, parts.test)
    return found


def page(sets: Sets) -> Page:
    """Non-zeros and errors for each penalty."""
    penalties, passes = ((1e-3, 3e-3), (1,)) if sets.quick else (PENALTIES, PASSES)
    parts = sets.rcv1()
    found = measured(parts, penalties, passes)
    return Page(
        title="How sparse is a clipped subgradient step?",
        source="Daumé, *A Course in Machine Learning* (2012), chapter 12, equation 12.8",
        claim="Equation 12.8 adds an L1 penalty to a gradient step and stops a weight at zero instead of "
        "letting it cross. The book says that this works well with gradients of all rows, and less well with "
        "steps on single examples: the model is somewhat sparse, but not as sparse as it could be.",
        method=f"RCV1-CCAT, {len(parts.train):,} rows to train and {len(parts.test):,} to test, logistic "
        "loss. Equation 12.8 is `clipped-subgradient`. Its step size is that with which SGD makes the fewest "
        f"errors on held-out training rows; likewise α of `ftrl`: {'; '.join(found.settings)}. The penalty λ "
        "is that of a mean over the rows. The minimum of mean loss + λ‖w‖₁ is found by `thresher boost`, "
        "which certifies it; `boost` and `ftrl` take λ times the number of examples. No penalty is chosen: "
        "all are shown.",
        verdicts=_verdicts(found),
        pictures=[_weights(found, penalties), _errors(found)],
        tables=[_table(found, penalties)],
        notes="The book gives the reason: a step on one example moves the weights of that example, and "
        "training stops before the penalty has taken them back. The penalty of the "
        "same step is far smaller, so the weight is only back at zero if the feature does not occur again "
        "for a long time. More passes help little, because step and penalty shrink together. Rules that "
        "keep a sum of gradients and penalties, such as [`ftrl`](../rules/ftrl.md) and "
        "[`cumulative`](../rules/cumulative.md), are"
        " sparser.",
    )


def _verdicts(found: Found) -> list[Verdict]:
    last = list(found.sgd)[-1]
    ours, best = found.lines[f"{RULE}, {last}"], found.lines[MINIMUM]
    ratios = [one.nonzero / max(other.nonzero, 1) for one, other in zip(ours, best, strict=True)]
    reached = [
        min((one.nonzero for one in line if one.error <= NEAR * found.sgd[last].error), default=0)
        for line in (ours, found.lines[f"{FTRL}, {last}"])
    ]
    rest = Verdict(
        f"equation 12.8 leaves many more weights than the minimum of its objective has, after {last}",
        "not as sparse as it could be",
        f"{min(ratios):.1f} to {max(ratios):.0f} times as many",
        min(ratios) >= MANY,
    )
    if not all(reached):
        return [rest]
    return [
        rest,
        Verdict(
            "for about the errors of SGD it keeps many more weights than a rule made to be sparse",
            "not as sparse as it could be",
            f"{reached[0]:,} of {found.features:,} features; FTRL {reached[1]:,}",
            reached[0] >= MANY * reached[1],
        ),
    ]


def _weights(found: Found, penalties: Sequence[float]) -> Picture:
    series = [
        Series(name, penalties, [point.nonzero for point in line], "both")
        for name, line in found.lines.items()
    ]
    svg = chart(
        "RCV1-CCAT: weights left by each penalty",
        "Non-zero weights against the penalty, for equation 12.8, FTRL and the minimum.",
        Axis("penalty λ", log=True),
        Axis("non-zero weights", log=True, whole=True),
        series,
    )
    return Picture(svg, "Non-zero weights against the penalty, for equation 12.8, FTRL and the minimum")


def _errors(found: Found) -> Picture:
    lines = {**found.lines, f"SGD, {', '.join(found.sgd)}": list(found.sgd.values())}
    series = [
        Series(
            name,
            [p.nonzero for p in line],
            [p.error for p in line],
            "dots" if name.startswith("SGD") else "both",
        )
        for name, line in lines.items()
    ]
    svg = chart(
        "RCV1-CCAT: error against the number of weights",
        "Test error against non-zero weights, for equation 12.8, FTRL, the minimum and SGD.",
        Axis("non-zero weights", log=True, whole=True),
        Axis("test error", log=True, percent=True),
        series,
    )
    return Picture(svg, "Test error against non-zero weights, for equation 12.8, FTRL, the minimum and SGD")


def _table(found: Found, penalties: Sequence[float]) -> str:
    rows = [
        (f"{l1:g}", *(f"{line[k].nonzero:,}: {100 * line[k].error:.2f}" for line in found.lines.values()))
        for k, l1 in enumerate(penalties)
    ]
    kept = list(dict.fromkeys(point.nonzero for point in found.sgd.values()))
    all_of = "all " if kept == [found.features] else ""
    sgd = f"SGD keeps {all_of}{' and '.join(f'{each:,}' for each in kept)}; its error is "
    sgd += ", ".join(f"{100 * one.error:.2f} % after {after}" for after, one in found.sgd.items())
    return table(("λ", *found.lines), rows, f"Non-zero weights: test error in %. {sgd}.")
