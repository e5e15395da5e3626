"""Error against the share of features with a weight: AdaGrad with L1, and AROW (Singer, slide 67)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.learners import Figures
from experiments.papers.duchi_table import SHARES, SOURCE, TOPICS
from experiments.papers.generated import few_words
from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Parts, Sets
from experiments.papers.sweeps import errors_of_folds, side_by_side
from thresher import Model
from thresher.data import Chunk
from thresher.drawing import Axis, Panel, Series, panels
from thresher.learning.model.recipe import Recipe

RDA, FOBOS = "AdaGrad-RDA", "AdaGrad-FOBOS"
RULES = {RDA: "adagrad-rda", FOBOS: "adagrad-fobos"}
TWICE = 2
ENOUGH, NEAR = 0.1, 1.1
"""a tenth of the weights; an error at most a tenth above the lowest is near it"""


class Plan(NamedTuple):
    """What is tried."""

    etas: Sequence[float]
    l1: Sequence[float]
    arow: Sequence[float]
    """its r"""
    folds: int
    passes: Sequence[int]


FULL = Plan(
    (0.1, 0.3, 1.0, 3.0), np.geomspace(1e-6, 2e-3, 23).tolist(), (0.1, 0.3, 1.0, 3.0, 10.0), 3, (1, 5)
)
QUICK = Plan((0.3, 1.0), (1e-4, 1e-2, 3e-2), (1.0,), 2, (1,))
LATE = 500
"""the last rows of the stream"""


class Point(NamedTuple):
    """A model: the share of the features of the training rows that have a weight, and the test error."""

    share: float
    error: float
    eta: float
    l1: float


class Topic(NamedTuple):
    """The models of one topic after some passes."""

    name: str
    passes: int
    rows: tuple[int, int]
    """to train and to test"""
    features: int
    """in the training rows"""
    curves: dict[str, list[Point]]
    """by rule, one for each penalty"""
    arow: Point

    def lowest(self, rule: str, share: float = 1.0) -> float:
        """The lowest error of a rule with at most this share of the weights."""
        return min((point.error for point in self.curves[rule] if point.share <= share), default=1.0)

    def near(self, rule: str) -> bool:
        """Whether a tenth of the weights comes near the lowest error of the rule."""
        return self.lowest(rule, ENOUGH) <= NEAR * self.lowest(rule)

    def needed(self, rule: str) -> float:
        """The smallest share of weights with an error near the lowest."""
        enough = NEAR * self.lowest(rule)
        return min(point.share for point in self.curves[rule] if point.error <= enough)


def measured(name: str, parts: Parts, plan: Plan, passes: int) -> Topic:
    """For each penalty the step size, and for AROW r, with the fewest errors in cross-validation."""
    features = len(np.unique(parts.train.keys))

    def best(tried: Sequence[tuple[float, float]], recipes: list[Recipe]) -> Point:
        errors = [judged[recipe] for recipe in recipes]
        k = errors.index(min(errors))
        one = tested[recipes[k]]
        return Point(one.nonzero / features, one.error, *tried[k])

    made = {
        (rule, eta, l1): Recipe(f"{rule}:eta={eta!r},l1={l1!r}", "hinge")
        for rule, eta, l1 in product(RULES.values(), plan.etas, plan.l1)
    }
    arow = [Recipe(f"arow:r={r!r}", "hinge") for r in plan.arow]
    every = [*made.values(), *arow]
    judged = dict(zip(every, errors_of_folds(every, parts.train, plan.folds, passes), strict=True))
    tested: dict[Recipe, Figures] = dict(zip(every, side_by_side(every, parts, passes), strict=True))
    curves = {
        title: [
            best([(eta, l1) for eta in plan.etas], [made[rule, eta, l1] for eta in plan.etas])
            for l1 in plan.l1
        ]
        for title, rule in RULES.items()
    }
    rows = len(parts.train), len(parts.test)
    return Topic(name, passes, rows, features, curves, best([(0.0, 0.0)] * len(arow), arow))


def page(sets: Sets) -> Page:
    """Four topics, two forms of AdaGrad."""
    if sets.quick:
        found = [measured("generated", few_words(220, 150), QUICK, 1)]
    else:
        found = [
            measured(name, sets.rcv1(name), FULL, passes) for name, passes in product(TOPICS, FULL.passes)
        ]
    first = [topic for topic in found if topic.passes == 1]
    later = [topic for topic in found if topic.passes > 1]
    return Page(
        title="A tenth of the weights",
        source="Singer (MLSS 2012), slide 67; experiments of Duchi, Hazan and Singer (JMLR 2011)",
        claim="With AdaGrad, L1 can remove most weights before the error rises: AdaGrad-RDA with a tenth of "
        "the weights is almost as good as the best model. AdaGrad-FOBOS makes as few errors, but keeps more "
        "weights.",
        method=f"RCV1, each of the four top topics against the rest, {first[0].rows[0]:,} rows to train and "
        f"{first[0].rows[1]:,} to test, "
        f"hinge loss. {len(FULL.l1)} penalties from {FULL.l1[0]:g} to {FULL.l1[-1]:g}; for each, the step "
        f"size is the one of {', '.join(f'{eta:g}' for eta in FULL.etas)} with the fewest errors in "
        f"{FULL.folds}-fold cross-validation on the training rows. So is AROW's r, of "
        f"{', '.join(f'{r:g}' for r in FULL.arow)}. All models of a topic learn side by side. The share of "
        f"weights is that of the {first[0].features:,} features in the training rows. "
        "*Near the lowest error* is at most a tenth above it. " + SOURCE,
        verdicts=[_tenth(first, later), *([] if sets.quick else [_more(first, later)])],
        pictures=[Picture(_drawn(first), "Test error against the share of weights on four topics of RCV1")],
        tables=[_table(found)],
        notes="" if sets.quick else _late(sets.rcv1("CCAT").train, first[TOPICS.index("CCAT")]),
    )


def _span(shares: Sequence[float]) -> str:
    return f"{min(shares):.1%} to {max(shares):.1%}"


def _tenth(topics: Sequence[Topic], later: Sequence[Topic]) -> Verdict:
    names = [topic.name for topic in topics if topic.near(RDA)]
    holds, again = len(names) == len(topics), sum(topic.near(RDA) for topic in later)
    return Verdict(
        f"{RDA}: a tenth of the weights comes near the lowest error",
        f"{_span(SHARES[RDA])} of the weights",
        f"on {len(names)} of {len(topics)}: {_span([topic.needed(RDA) for topic in topics])} of the weights "
        "needed",
        holds,
        "" if holds else f"with more passes it holds on {again} of {len(later)}",
    )


def _more(topics: Sequence[Topic], later: Sequence[Topic]) -> Verdict:
    """AdaGrad-FOBOS needs more weights than AdaGrad-RDA."""

    def times(found: Sequence[Topic]) -> list[float]:
        return [topic.needed(FOBOS) / topic.needed(RDA) for topic in found]

    published = [of_fobos / of_rda for of_rda, of_fobos in zip(SHARES[RDA], SHARES[FOBOS], strict=True)]
    needed = _span([topic.needed(FOBOS) for topic in topics])
    ours, again = times(topics), sum(one >= TWICE for one in times(later))
    holds = min(ours) >= TWICE
    return Verdict(
        f"{FOBOS} needs at least twice the weights of {RDA}",
        f"{min(published):.1f} to {max(published):.1f} times as many: {_span(SHARES[FOBOS])}",
        f"{min(ours):.1f} to {max(ours):.1f} times as many: {needed}",
        holds,
        "" if holds else f"with more passes it holds on {again} of {len(later)}; see the notes",
    )


def _late(rows: Chunk, topic: Topic) -> str:
    """Which weights each rule keeps of features that the last rows showed for the first time."""
    keys, counts = np.unique(rows.keys, return_counts=True)
    late = np.intersect1d(keys[counts == 1], rows.rows(len(rows) - LATE, len(rows)).keys)
    early = np.setdiff1d(keys[counts == 1], late)
    told = []
    for title, rule in RULES.items():
        point = min(topic.curves[title], key=lambda point: abs(point.share - ENOUGH))
        model = Model(Recipe(f"{rule}:eta={point.eta!r},l1={point.l1!r}", "hinge"))
        model.learn(rows)
        kept = [np.isin(some, model.weights()[0]).mean() for some in (late, early)]
        told.append(f"{title} keeps a weight for {kept[0]:.1%} and {kept[1]:.1%} of them")
    return (
        "FOBOS takes its penalty step by step, so a feature that is new in the last rows has hardly been "
        "penalised; RDA compares the sum of gradients with the penalty of the whole stream. Take the "
        f"features that occur once in {topic.name}, in the last {LATE:,} rows ({len(late):,} features) or "
        f"before ({len(early):,}): with about a tenth of the weights, {'; '.join(told)}."
    )


def _drawn(topics: Sequence[Topic]) -> str:
    shown = []
    for topic in topics:
        low = min(point.share for points in topic.curves.values() for point in points)
        series = [
            Series(rule, [point.share for point in points], [point.error for point in points], "both")
            for rule, points in topic.curves.items()
        ]
        level = [topic.arow.error] * 2
        series.append(Series(f"AROW, {topic.arow.share:.0%} of the weights", [low, 1.0], level))
        x = Axis("share of features with a weight", log=True, percent=True, high=1.0)
        shown.append(Panel(x, Axis("test error", log=True, percent=True), series, topic.name))
    return panels(
        "Test error against the share of weights, one pass",
        "Curves of AdaGrad-RDA and AdaGrad-FOBOS with falling penalty, and the error of AROW as a line.",
        shown,
        height=330,
    )


def _table(topics: Sequence[Topic]) -> str:
    heads = ["lowest error in %"]
    for rule in RULES:
        heads += [rule, "with a tenth of the weights", "weights needed"]
    rows = []
    for topic in topics:
        row = [f"{topic.name}, {topic.passes} pass{'es' if topic.passes > 1 else ''}"]
        for rule in RULES:
            row += [f"{100 * topic.lowest(rule, share):.2f}" for share in (1.0, ENOUGH)]
            row.append(f"{topic.needed(rule):.1%}")
        rows.append([*row, f"{100 * topic.arow.error:.2f}", f"{topic.arow.share:.0%}"])
    return table([*heads, "AROW", "its weights"], rows)
