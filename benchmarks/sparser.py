"""Weights needed for the loss of soft thresholds on texts, by other settings of the rule. Needs --data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks import report
from benchmarks.corpora import Corpus, Parts, corpora
from benchmarks.defaults import Result, mean_ratio, scored
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher import path

SETS = ("RCV1-CCAT", "books", "dvd", "electronics", "kitchen", "IMDB words", "Reuters acq", "short texts")
SOFT = "ft-ftrl"
RULES = ("ft-ftrl:relax=0.2", "ft-ftrl:relax=0.4")
"""compared unless others are named"""
ANCHORS = (2.0, 3.0)
GRID = [float(l1) for l1 in np.geomspace(1, 5, 24)]
NEEDED, WORST = 0.80, 1.01
Curve = list[Result]


def run(setting: Setting) -> list[Goal]:
    """Train on each set with each rule, print and check the goals."""
    if setting.data is None or not setting.rules:
        return []
    sets = [corpus for corpus in corpora() if corpus.name in SETS and corpus.found(setting.data)]
    return compared({corpus: corpus.load(setting.data) for corpus in sets}, setting.rules)


def compared(sets: dict[Corpus, Parts], rules: Sequence[str]) -> list[Goal]:
    """Compare each rule with soft thresholds at each anchor."""
    lines, ratios = [], {rule: list[float]() for rule in rules}
    for corpus, parts in sets.items():
        soft = curve(corpus, parts, SOFT, ANCHORS)
        of_rules = {rule: curve(corpus, parts, rule, GRID) for rule in rules}
        for l1, one in zip(ANCHORS, soft, strict=True):
            cells = []
            for rule, points in of_rules.items():
                weights = needed(points, one.loss)
                ratios[rule].append(weights / max(one.nonzero, 1))
                cells.append(f"{weights:,.0f} ({ratios[rule][-1]:.2f})")
            name = f"{corpus.name}{'*' * corpus.chosen}, l1={l1:g}"
            lines.append((name, f"{one.loss:.4g} @ {one.nonzero:,}", *cells))
    if not lines:
        return []
    title = "weights needed for the test loss of soft thresholds (*: used for choosing constants)"
    report.table(title, ("", SOFT, *rules), lines)
    return [_judged(rule, found) for rule, found in ratios.items()]


def curve(corpus: Corpus, parts: Parts, rule: str, l1: Iterable[float]) -> Curve:
    """Return test loss and weights for each threshold, all learned from all training rows."""
    found = path(parts[0], rule=rule, l1=list(l1), loss="logistic", holdout="none")
    return [scored(corpus, model, parts[1]) for model in found.models]


def needed(points: Iterable[Result], loss: float) -> float:
    """Return the fewest weights for `loss`, between points by their logarithm; infinity if none is as low.

    >>> needed([Result(0.3, 1000), Result(0.5, 10)], 0.4)
    100.0
    """
    few: Result | None = None
    for many in sorted(points, key=lambda point: point.nonzero):
        if many.loss <= loss and few is None:
            return float(many.nonzero)
        if many.loss <= loss and few is not None:
            share = (few.loss - loss) / (few.loss - many.loss)
            low, high = math.log(max(few.nonzero, 1)), math.log(max(many.nonzero, 1))
            return round(math.exp(low + share * (high - low)), 6)
        few = many
    return math.inf


def _judged(rule: str, ratios: list[float]) -> Goal:
    mean, worst = mean_ratio(ratios), max(ratios)
    what = f"weights needed for the loss of {SOFT} with l1 = 2 and 3: {rule}"
    met = mean <= NEEDED and worst <= WORST
    return Goal(what, f"<= {NEEDED:.2f}, worst <= {WORST}", f"{mean:.3f}, worst {worst:.2f}", met)
