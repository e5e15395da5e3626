"""Frequent garbage, rare and informative features: which rules keep the rare ones (Singer, slide 60)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.papers.generated import FREQUENT, directions, rare_words
from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from experiments.papers.sweeps import errors_of_folds
from thresher.drawing import Axis, Panel, Series, panels
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe

ROWS, TESTS, RARE, FOLDS = 4_000, 4_000, 2_000, 3
RATES, ETAS = (0.1, 0.2, 0.5, 1, 2, 4, 8, 16), (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2)
L1 = np.geomspace(1e-5, 1.0, 21).tolist()
GIVEN_UP = 0.01
UP_TO = (1, 3, 7, 15, 31, 63, 10**9)
"""upper ends of the bins of occurrences"""
SELDOM, ABOUT, MORE = 3, 0.1, 0.05
"""Seen at most so many times; numbers of weights that differ by at most this share are about the same;
a share is larger if it is so by more than this."""
PLAIN, ADAPTIVE, AWARE, AWARE_1 = "FOBOS", "AdaGrad-FOBOS", "FT-FOBOS, p = 2", "FT-FOBOS, p = 1"


class Plan(NamedTuple):
    """Sizes and what is tried."""

    rows: int
    tests: int
    rare: int
    rates: Sequence[float]
    etas: Sequence[float]
    l1: Sequence[float]

    def recipes(self) -> dict[str, list[Recipe]]:
        """All settings of each rule."""
        plain = {PLAIN: "fobos:", AWARE: "ft-fobos:p=2,", AWARE_1: "ft-fobos:p=1,"}
        found = {
            name: [
                Recipe(f"{rule}l1={l1!r}", rate=f"inverse-sqrt:{rate!r}")
                for l1 in self.l1
                for rate in self.rates
            ]
            for name, rule in plain.items()
        }
        adaptive = [Recipe(f"adagrad-fobos:eta={eta!r},l1={l1!r}") for l1 in self.l1 for eta in self.etas]
        return {PLAIN: found[PLAIN], ADAPTIVE: adaptive, AWARE: found[AWARE], AWARE_1: found[AWARE_1]}


FULL = Plan(ROWS, TESTS, RARE, RATES, ETAS, L1)
QUICK = Plan(400, 300, 200, (4.0,), (1.0,), (1e-4, 1e-3))


class Equal(NamedTuple):
    """The setting with the fewest errors in cross-validation of those with about as many weights as FOBOS."""

    weights: int
    error: float
    """on the test rows"""
    seldom: float


class Kept(NamedTuple):
    """What a rule makes of the features."""

    lowest: float
    """test error of the setting with the fewest errors in cross-validation"""
    error: float
    """that of the sparsest setting with at most `GIVEN_UP` more"""
    recipe: Recipe
    """this setting; the rest is about its model"""
    weights: int
    garbage: int
    """features of garbage with a weight"""
    share: list[float]
    """by bin of occurrences: the share of informative features with a weight"""
    size: list[float]
    """and their mean weight towards the right class, over the mean size of a weight of garbage"""
    seldom: float
    """share of those seen at most `SELDOM` times that have a weight"""
    equal: Equal


def measured(plan: Plan) -> dict[str, Kept]:
    """Choose the settings of each rule, and look at the weights."""
    parts = rare_words(plan.rows, plan.tests, rare=plan.rare, uneven=True)
    keys, counts = np.unique(parts.train.keys, return_counts=True)
    times = np.zeros(FREQUENT + plan.rare, int)
    times[keys.astype(int)] = counts
    positive = parts.test.labels > 0
    found: dict[str, Kept] = {}
    for name, recipes in plan.recipes().items():
        judged = errors_of_folds(recipes, parts.train, FOLDS)
        lanes = ModelSet(recipes)
        lanes.learn(parts.train)
        left = [model.nonzero for model in lanes.models]
        best, sparsest = int(np.argmin(judged)), sparsest_of(judged, left)
        target = found[PLAIN].weights if found else left[sparsest]
        seen, tests = [], []
        for k in (best, sparsest, as_sparse(judged, left, target)):
            model = lanes.models[k]
            keys, values = model.weights()
            w = np.zeros(len(times))
            w[keys.astype(int)] = values
            seen.append(_looked_at(w, times, plan.rare))
            tests.append(float(np.mean((model.predict(parts.test) > 0) != positive)))
        equal = Equal(seen[2][0], tests[2], seen[2][-1])
        found[name] = Kept(tests[0], tests[1], recipes[sparsest], *(*seen[1], equal))
    return found


def sparsest_of(errors: Sequence[float], weights: Sequence[int]) -> int:
    """The sparsest setting with at most `GIVEN_UP` more errors than the best."""
    fitting = [k for k, error in enumerate(errors) if error <= min(errors) + GIVEN_UP]
    return min(fitting, key=lambda k: weights[k])


def as_sparse(errors: Sequence[float], weights: Sequence[int], target: int) -> int:
    """The best setting with about `target` weights; if there is none, the one with the nearest number."""
    off = [abs(count - target) for count in weights]
    near = max(ABOUT * target, min(off))
    return min((k for k in range(len(off)) if off[k] <= near), key=lambda k: (errors[k], off[k]))


def _looked_at(w: NDArray[Any], times: NDArray[Any], rare: int) -> tuple[Any, ...]:
    """The other fields of `Kept`."""
    garbage, words, counts = w[:FREQUENT], w[FREQUENT:] * directions(rare), times[FREQUENT:]
    size = max(float(np.abs(garbage).mean()), 1e-9)
    bins = [(counts > low) & (counts <= high) for low, high in zip((0, *UP_TO), UP_TO, strict=False)]
    shares = [float((words[one] != 0).mean()) if one.any() else float("nan") for one in bins]
    sizes = [float(words[one].mean()) / size if one.any() else float("nan") for one in bins]
    seldom = float((words[(counts > 0) & (counts <= SELDOM)] != 0).mean())
    return np.count_nonzero(w), np.count_nonzero(garbage), shares, sizes, seldom


def page(sets: Sets) -> Page:
    """One generated set, four rules."""
    found = measured(QUICK if sets.quick else FULL)
    return Page(
        title="Rare and informative features",
        source="Singer (MLSS 2012), slide 60; Duchi, Hazan and Singer (JMLR 2011); Oiwa, Matsushima and "
        "Nakagawa (2011)",
        claim="Where frequent features are garbage and rare ones informative, plain steps and penalties keep "
        "the wrong ones. AdaGrad gives rare features long steps, and FT-FOBOS gives them a weak penalty.",
        method=f"{ROWS:,} generated rows to train, {TESTS:,} to test (`experiments/papers/generated.py`). "
        f"Each of {FREQUENT} features of garbage, 1 or -1 at random, occurs in half of the rows. "
        f"A row also has four of {RARE:,} informative words; each speaks for one class, is wrong in one of "
        "ten rows, and is the rarer the higher its rank, like words of a text. Logistic loss, one pass. "
        f"Tried: {len(L1)} penalties from {L1[0]:g} to {L1[-1]:g}, rates `inverse-sqrt` from "
        f"{', '.join(f'{rate:g}' for rate in RATES)}, and AdaGrad's eta from "
        f"{', '.join(f'{eta:g}' for eta in ETAS)}. For each rule, the picture and the claims about weights "
        f"take the sparsest model with at most one point more errors in {FOLDS}-fold cross-validation than "
        "the best; the lowest error is that of the best. To compare what is kept at about the same number of "
        f"weights, each rule also has its best model with up to {ABOUT:.0%} more or fewer weights than "
        "FOBOS, or with the nearest number. A share counts as larger "
        f"if it is so by more than {100 * MORE:g} points.",
        verdicts=_verdicts(found, sets.quick),
        pictures=[_drawn(found)],
        tables=[_table(found)],
        notes="The weight that a single gradient g gives a new feature is gone after about |g|/l1 rows, "
        "both with FOBOS (at a constant rate) and with AdaGrad-FOBOS, which divides step and penalty by the "
        "same root of squares. What AdaGrad changes is the size of the rare weights, and so how strong a "
        "penalty costs a point of accuracy. Most of the garbage keeps a weight, however small: it has a "
        "gradient in every second row.",
    )


def _verdicts(found: dict[str, Kept], quick: bool) -> list[Verdict]:
    plain = found[PLAIN]

    def verdict(claim: str, published: str, ours: str, holds: bool, why: str = "see the table") -> Verdict:
        return Verdict(claim, published, ours, holds, "" if holds else why)

    verdicts = []
    for rule in (ADAPTIVE, AWARE):
        one = found[rule]
        more = verdict(
            f"{rule} keeps more of the rare informative features than FOBOS, for a point of accuracy",
            "keeps the rare ones",
            f"of those seen at most {SELDOM} times, {_kept(one.seldom, one.weights, one.error)}; FOBOS: "
            f"{_kept(plain.seldom, plain.weights, plain.error)}",
            one.seldom > plain.seldom + MORE,
        )
        equal = verdict(
            f"{rule} keeps more of them with about as many weights",
            "keeps the rare ones",
            f"{_kept(one.equal.seldom, one.equal.weights, one.equal.error)}; FOBOS: "
            f"{_kept(plain.equal.seldom, plain.equal.weights, plain.equal.error)}",
            one.equal.seldom > plain.equal.seldom + MORE,
            f"the share is not {100 * MORE:g} points larger; see the notes",
        )
        fewer = verdict(
            f"{rule} makes fewer errors than FOBOS",
            "fewer",
            f"{one.lowest:.1%}; FOBOS: {plain.lowest:.1%}",
            one.lowest < plain.lowest,
        )
        if not quick:
            verdicts += [more, equal, fewer]
        else:
            verdicts += [more, fewer] if rule == ADAPTIVE else [more]
    return verdicts


def _kept(seldom: float, weights: int, error: float) -> str:
    return f"{seldom:.0%} are kept ({weights:,} weights, {error:.1%} errors)"


def _drawn(found: dict[str, Kept]) -> Picture:
    x = [(low + 1 + min(high, 2 * low + 1)) / 2 for low, high in zip((0, *UP_TO), UP_TO, strict=False)]
    across = Axis("occurrences in the training rows", log=True)

    def series(values: Callable[[Kept], list[float]]) -> list[Series]:
        return [Series(rule, x, values(one), "both") for rule, one in found.items()]

    svg = panels(
        "Informative features, by how often they occur",
        "Share of informative features with a weight, and their mean weight over that of garbage.",
        [
            Panel(across, Axis("with a weight", percent=True, low=0), series(lambda one: one.share), "kept"),
            Panel(
                across,
                Axis("mean weight towards the right class / mean size of garbage", log=True),
                series(lambda one: one.size),
                "size",
            ),
        ],
    )
    return Picture(svg, "Share and size of the weights of informative features against their occurrences")


def _table(found: dict[str, Kept]) -> str:
    heads = (
        *("", "lowest error", "l1 of the sparsest", "its error", "weights", "garbage kept"),
        *(f"seen {name}" for name in ("once", "2 to 3 times", "4 to 7 times", "8 to 15 times")),
        *("weights, like FOBOS", "its error", f"seen at most {SELDOM} times"),
    )
    rows = [
        (
            rule,
            f"{one.lowest:.1%}",
            f"{one.recipe.rule_part.l1:.1e}",
            f"{one.error:.1%}",
            f"{one.weights:,}",
            f"{one.garbage} of {FREQUENT}",
            *(f"{share:.0%}" for share in one.share[:4]),
            *(f"{one.equal.weights:,}", f"{one.equal.error:.1%}", f"{one.equal.seldom:.0%}"),
        )
        for rule, one in found.items()
    ]
    text = (
        "The columns *seen ...* are shares of the informative features with a weight. The last three are "
        "about the model with about as many weights as FOBOS."
    )
    return f"{table(heads, rows)}\n\n{text}"
