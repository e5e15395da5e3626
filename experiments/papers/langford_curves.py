"""AUC against the number of features, by five methods (Langford, Li and Zhang, Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import csr
from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Parts, Sets
from experiments.papers.sweeps import cross_validated
from experiments.papers.truncation import HOUSING, NAMES, RANDOM, RCV1, ZOO, parts_of
from thresher.drawing import Axis, Panel, Series, panels
from thresher.learning.evaluation.curves import Ranking
from thresher.learning.model.recipe import Recipe

EVERY = 10
RULES = {
    "theta = infinity": f"truncated-gradient:gravity={{}},every={EVERY}",
    "theta = gravity": f"truncated-gradient:gravity={{}},theta=gravity,every={EVERY}",
    "rounding": f"rounding:theta={{}},every={EVERY}",
    "subgradient": "subgradient:l1={}",
}
FAR, LIKE, ROUNDED, NEVER = RULES
LASSO = "Lasso"
PENALTIES = {FAR: (1e-3, 1), LIKE: (1e-3, 1), ROUNDED: (1e-3, 1), NEVER: (1e-3, 1)}
OF_RCV1 = {FAR: (1e-5, 1e-2), LIKE: (1e-3, 3), ROUNDED: (1e-3, 3), NEVER: (1e-6, 1e-3)}
"""lowest and highest penalty"""
ETAS, ETAS_OF_RCV1 = (0.01, 0.1, 1), (2, 8)
FOLDS, COUNT, PASSES, ROWS = 5, 16, (1, 5), 5000
STEPS_OF_LASSO = 20_000
BUDGETS = [round(value) for value in np.geomspace(1, 50_000, 40)]
CLOSE, FALL, FEW = 0.02, 0.01, 50
SETS = (*(name for name in NAMES if name not in (HOUSING, ZOO)), RCV1)


class Point(NamedTuple):
    """The best model with at most `budget` features."""

    budget: int
    nonzero: int
    auc: float
    """on the test rows"""


Methods = dict[str, dict[str, list[Point]]]
"""set -> method -> curve"""


def recipes(name: str, rule: str, rows: int, quick: bool) -> list[Recipe]:
    """The grid of a method; a few recipes of subgradients, which never make a weight zero."""
    low, high = (OF_RCV1 if name == RCV1 else PENALTIES)[rule]
    few, etas = quick or rule == NEVER, ETAS_OF_RCV1 if name == RCV1 else ETAS
    penalties = np.geomspace(low, high, COUNT)[:: 5 if few else 1]
    rates = [f"power:{eta},{rows},0.5" for eta in (etas[-2:-1] if few else etas)]
    return [
        Recipe(RULES[rule].format(penalty), "logistic", rate=rate)
        for penalty in (0, *penalties)
        for rate in rates
    ]


def curve(name: str, rule: str, parts: Parts, quick: bool) -> list[Point]:
    """For each budget, the model whose recipe has the highest AUC in cross-validation."""
    grid, passes = recipes(name, rule, len(parts.train), quick), (1,) if quick or name == RCV1 else PASSES
    tried = cross_validated(grid, parts, passes, 2 if quick else FOLDS)
    found: list[Point] = []
    for budget in BUDGETS:
        fitting = [one for one in tried if 0 < one.test.nonzero <= budget and not np.isnan(one.test.auc)]
        if fitting:
            best = max(fitting, key=lambda one: one.auc).test
            found.append(Point(budget, best.nonzero, best.auc))
    return found


def lasso(parts: Parts, quick: bool) -> list[Point]:
    """The largest of the models of a path that fits each budget."""
    from sklearn.linear_model import Lasso

    columns = int(max(part.keys.max() for part in parts)) + 1
    train, test = (csr(part, np.float64, columns) for part in parts)
    labels = parts.train.labels.astype(np.float64)
    most = float(np.abs(train.T @ (labels - labels.mean())).max() / len(labels))
    model, models = Lasso(warm_start=True, max_iter=STEPS_OF_LASSO), []
    for alpha in np.geomspace(most, most / 1000, 8 if quick else 24)[1:]:
        model.set_params(alpha=alpha).fit(train, labels)  # warns if it does not converge
        models.append((int(np.count_nonzero(model.coef_)), _area(test @ model.coef_, parts)))
    fitting = {budget: [one for one in models if 0 < one[0] <= budget] for budget in BUDGETS}
    return [Point(budget, *max(found)) for budget, found in fitting.items() if found]


def _area(margins: NDArray[np.float64], parts: Parts) -> float:
    area = Ranking(margins, parts.test.labels > 0, np.ones(len(margins))).auc
    return float("nan") if area is None else area


def curves(sets: Sets, name: str, random: bool = True) -> dict[str, list[Point]]:
    """The curves of all methods; without random features, of the online methods."""
    parts = parts_of(sets, name, random and name != RCV1)
    rows = min(len(parts.train), ROWS) if name == RCV1 else len(parts.train)
    whole = rows // (EVERY * FOLDS) * EVERY * FOLDS  # every fold ends with a truncation
    parts = parts._replace(train=parts.train.rows(0, whole))
    found = {rule: curve(name, rule, parts, sets.quick) for rule in RULES}
    return found | {LASSO: lasso(parts, sets.quick)} if random else found


def page(sets: Sets) -> Page:
    """A panel for each set."""
    names = ("generated",) if sets.quick else SETS
    found = {name: curves(sets, name) for name in names}
    shown = [_panel(name, one) for name, one in found.items()]
    half = (len(shown) + 1) // 2
    verdicts = [_like(found), _falls(found)]
    return Page(
        title="AUC against the number of features",
        source="Langford, Li and Zhang (NIPS 2008), Figure 2",
        claim="Truncated gradient with theta = infinity competes with the other methods at every number of "
        "features. With theta = gravity it is much like rounding. Subgradients make no weight zero. The "
        "Lasso does well with few features, but falls off on the right, where it may use many.",
        method=METHOD,
        verdicts=verdicts if sets.quick else [_competitive(found, sets), *verdicts],
        pictures=[
            Picture(_drawn(part), "AUC on test rows against the number of features, for five methods")
            for part in (shown[:half], shown[half:])
            if part
        ],
        tables=[_table(found)],
        notes="" if sets.quick else NOTES,
    )


METHOD = (
    f"The two-class UCI sets with {RANDOM:,} random features, prepared as for [the features "
    f"left](langford-features.md), and the first {ROWS:,} training rows of RCV1-CCAT. K = {EVERY} for "
    f"truncated gradient and rounding; training rows beyond a multiple of {EVERY * FOLDS} are left out, so "
    "that every fold ends with a truncation. A truncation with theta = gravity takes K eta gravity from each "
    "weight below theta: it is rounding if K eta >= 1, as on RCV1, where all steps are that large, and on "
    f"the UCI sets with the largest rate. Each online method runs with {COUNT} penalties (subgradients, with "
    f"4) and, on the UCI sets, three rates and one or five passes, in {FOLDS}-fold cross-validation. A point "
    "shows the recipe with the highest AUC in cross-validation among those whose models have at most so many "
    "features; its AUC is that on the test rows. The Lasso is scikit-learn's, with squared loss and 23 "
    "penalties, each a "
    f"point, and up to {STEPS_OF_LASSO:,} iterations.\n\n"
    f"Two curves are compared at {len(BUDGETS)} numbers of features, evenly spaced from {BUDGETS[0]} to "
    f"{BUDGETS[-1]:,} on a log scale: at those where both have a model, up to half as many again as the "
    "largest model of the two. *On average* means over these."
)
NOTES = (
    "Gravity shrinks all weights, the useful ones too. If it is strong enough to leave few features, the "
    "weights that remain are small and depend on the last rows. Rounding, and truncation with theta = "
    "gravity, leave large weights alone: on most sets they rank better with fewer than a hundred "
    "features. On RCV1, where all rare words have small weights, it is theta = infinity that is ahead of "
    "rounding. On the right, with mild gravity, the online methods are level, and ahead of the Lasso, "
    "which has fitted the random features, or the rare words, by then."
)


def _common(one: Sequence[Point], other: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Points of two curves with the same budget, up to that where neither grows any more."""
    of_other = {point.budget: point for point in other}
    last = max(point.nonzero for point in (*one, *other))
    pairs = [(point, of_other[point.budget]) for point in one if point.budget in of_other]
    return [pair for pair in pairs if pair[0].budget <= 1.5 * last]


def _behind(methods: dict[str, list[Point]]) -> float:
    """How far theta = infinity is behind the better of theta = gravity and rounding: the mean difference."""
    best: dict[int, Point] = {}
    for point in (*methods[LIKE], *methods[ROUNDED]):
        if point.budget not in best or point.auc > best[point.budget].auc:
            best[point.budget] = point
    pairs = _common(methods[FAR], list(best.values()))
    return float(np.mean([other.auc - point.auc for point, other in pairs]))


def _last(methods: dict[str, list[Point]]) -> int:
    """The largest budget at which theta = infinity is behind the best online method by more than `CLOSE`."""
    online = [point for rule, points in methods.items() if rule != LASSO for point in points]
    best = {point.budget: max(q.auc for q in online if q.budget == point.budget) for point in methods[FAR]}
    return max((p.budget for p in methods[FAR] if best[p.budget] - p.auc > CLOSE), default=0)


def _competitive(found: Methods, sets: Sets) -> Verdict:
    gaps = {name: _behind(one) for name, one in found.items()}
    far = [f"{name} {gap:.3f}" for name, gap in gaps.items() if gap > CLOSE]
    ahead = [name for name, gap in gaps.items() if gap < -CLOSE]
    few = ", ".join(f"{last:,} ({name})" for name, one in found.items() if (last := _last(one)))
    names = [name for name in SETS if name != RCV1]
    without = [name for name in names if _behind(curves(sets, name, random=False)) <= CLOSE]
    why = (
        f"mean shortfall: {', '.join(far)}. Still more than {CLOSE} behind at up to so many features: {few}; "
        f"at none on {sum(not _last(one) for one in found.values())} of {len(found)}. Without random "
        f"features, at most {CLOSE} behind on {len(without)} of {len(names)} on average. See the notes"
    )
    return Verdict(
        f"theta = infinity is at most {CLOSE} behind the better of theta = gravity and rounding, on average",
        "consistently competitive, in places far better",
        f"on {len(found) - len(far)} of {len(found)}" + (f"; ahead on {', '.join(ahead)}" if ahead else ""),
        not far,
        why if far else "",
    )


def rounds(name: str) -> bool:
    """Whether theta = gravity is rounding by construction: truncations take at least theta from a weight.

    In the one pass over RCV1, step sizes fall to the square root of one half of the first.
    """
    return name == RCV1 and bool(EVERY * min(ETAS_OF_RCV1) / np.sqrt(2) >= 1)


def _like(found: Methods) -> Verdict:
    """Whether theta = gravity and rounding agree, where they are not the same by construction."""
    apart = {}
    for name, one in found.items():
        if not rounds(name):
            pairs = _common(one[LIKE], one[ROUNDED])
            many = [pair for pair in pairs if pair[0].budget > FEW]
            apart[name] = _gap(pairs), _gap(many)
    far = [
        f"{name} {gap:.3f} ({many:.3f} with more than {FEW} features)"
        for name, (gap, many) in apart.items()
        if gap > CLOSE
    ]
    same = ", ".join(name for name in found if rounds(name))
    return Verdict(
        f"theta = gravity is like rounding: the curves are at most {CLOSE} apart, on average",
        "similar curves",
        f"on {len(apart) - len(far)} of {len(apart)}"
        + (f"; not counted, the same by construction: {same}" if same else ""),
        not far,
        f"apart: {', '.join(far)}, with penalty, rate and passes chosen for each" if far else "",
    )


def _gap(pairs: Sequence[tuple[Point, Point]]) -> float:
    return float(np.mean([abs(a.auc - b.auc) for a, b in pairs])) if pairs else float("nan")


def _falls(found: Methods) -> Verdict:
    falling = [
        name for name, one in found.items() if max(p.auc for p in one[LASSO]) - one[LASSO][-1].auc > FALL
    ]
    others = ", ".join(name for name in found if name not in falling)
    return Verdict(
        f"the Lasso with the most features is worse than with fewer, by more than {FALL}",
        "falls off on the right",
        f"on {len(falling)} of {len(found)}" + (f"; not on {others}" if others else ""),
        len(falling) > len(found) / 2,
    )


def _panel(name: str, methods: dict[str, list[Point]]) -> Panel:
    series = []
    for method, points in methods.items():
        unique = {point.nonzero: point.auc for point in points}
        series.append(Series(method, list(unique), list(unique.values()), "both"))
    x, y = Axis("features with a weight", log=True, whole=True, low=1), Axis("AUC", low=0.5, high=1)
    return Panel(x, y, series, title=name if name == RCV1 else f"{name} + random features")


def _drawn(shown: Sequence[Panel]) -> str:
    return panels(
        "AUC against the number of features",
        "For each set, AUC on the test rows against the number of features of truncated gradient, rounding, "
        "subgradients and the Lasso.",
        shown,
        height=270,
    )


def _table(found: Methods) -> str:
    rows = []
    for name, methods in found.items():
        for budget in (10, 100, 1000):
            nearest = max(one for one in BUDGETS if one <= budget)
            cells = [[p.auc for p in points if p.budget == nearest] for points in methods.values()]
            rows.append((f"{name}, {nearest}", *(f"{cell[0]:.3f}" if cell else "" for cell in cells)))
    return table(("set, features at most", *(next(iter(found.values())))), rows)
