"""How often intervals of ensembles cover the truth, and how wide they are beside a bootstrap of LIBLINEAR.

    python -m experiments.uncertainty                        # coverage, on data made here
    python -m experiments.uncertainty --widths FOLDER        # widths, on three sets of the folder
    python -m experiments.uncertainty --simulations 20       # fewer, to try it

Coverage: rows of a logistic model with known weights are made anew in every simulation, an ensemble learns
them, and its intervals for 20 new rows and for the weights are compared with the truth. Three kinds of
intervals are made of the same models: `normal`, the mean and Student's quantile times the deviation, which is
what thresher prints; `percentile`, quantiles of the models; `basic`, those mirrored at the mean. `halves` are
models whose rows count twice or not at all, instead of Poisson(1) times.

Widths: intervals of the margins of test rows, by an ensemble and by refits of scikit-learn's
LogisticRegression(solver="liblinear") on rows drawn with replacement, with the same penalty.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import thresher
from thresher.learning.model.ensemble import reach

F64 = NDArray[np.float64]
LEARNED = 1 - np.exp(-1)
"""Share of the rows that a model of an ensemble learns; the others do not penalise it either"""
LEVEL, SIZES = 0.9, (8, 16, 32, 64)


class World(NamedTuple):
    """Data of a logistic model."""

    name: str
    rows: int
    truth: F64
    """the weights"""
    offset: float
    present: float
    """share of values that are not zero, which are 1; 1: all, drawn from a normal distribution"""

    def draw(self, chance: np.random.Generator, rows: int) -> tuple[F64, F64]:
        """Rows, and their true margins."""
        shape = (rows, len(self.truth))
        found: F64 = (chance.random(shape) < self.present).astype(np.float64)
        if self.present == 1:
            found = chance.normal(size=shape)
        return found, found @ self.truth + self.offset


def worlds() -> list[World]:
    """Five numbers, all of which matter; a hundred words, of which ten do."""
    chance = np.random.default_rng(1)
    few = np.zeros(100)
    few[:10] = chance.normal(0, 1, 10)
    return [
        World("numbers", 500, chance.normal(0, 0.7, 5), -0.5, 1.0),
        World("words", 1000, few, 0.3, 0.1),
    ]


class Setting(NamedTuple):
    """How models are trained."""

    name: str
    options: dict[str, Any]
    halves: bool = False


SETTINGS = (
    Setting("one pass", {"passes": 1}),
    Setting("default", {}),
    Setting("no penalty", {"rule": "adagrad-fobos:l1=0", "passes": 10, "average": True}),
    Setting("no penalty, halves", {"rule": "adagrad-fobos:l1=0", "passes": 10, "average": True}, halves=True),
)


def models_of(setting: Setting, X: Any, y: Any, seed: int, count: int) -> list[Any]:
    """Models trained on bootstrap samples."""
    if not setting.halves:
        return list(thresher.ensemble(X, y, models=count, seed=seed, **setting.options).models)
    chance = np.random.default_rng((3, seed))
    draws = (2.0 * (chance.random(len(y)) < 0.5) for _ in range(count))
    return [thresher.train(X, y, sample_weight=one, seed=seed, **setting.options) for one in draws]


def intervals(each: F64) -> dict[str, tuple[F64, F64]]:
    """Lower and upper ends of each kind, of numbers ``(models, n)``."""
    mean, half = each.mean(axis=0), reach(LEVEL, len(each)) * each.std(axis=0, ddof=1)
    low, high = np.quantile(each, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return {
        "normal": (mean - half, mean + half),
        "percentile": (low, high),
        "basic": (2 * mean - high, 2 * mean - low),
    }


def weights_of(model: Any, columns: int) -> F64:
    """All weights, zeros included."""
    found = np.zeros(columns)
    keys, weights = model.weights()
    found[keys.astype(np.int64)] = weights
    return found


def covered(setting: Setting, world: World, simulations: int, count: int) -> dict[Any, Any]:
    """Which intervals hold the truth ``(simulations, n)``, by kind and number of models."""
    found: dict[Any, Any] = {}
    columns = len(world.truth)
    simulations = max(1, simulations // 5) if setting.halves else simulations
    for seed in range(simulations):
        chance = np.random.default_rng((7, seed))
        X, margins = world.draw(chance, world.rows)
        y = (chance.random(len(X)) < 1 / (1 + np.exp(-margins))).astype(int)
        test, true = world.draw(chance, 20)
        models = models_of(setting, X, y, seed, count)
        each = np.array([model.predict(test) for model in models])
        weights = np.array([weights_of(model, columns) for model in models])
        for size in (one for one in SIZES if one <= count):
            for of, numbers, truth in (("rows", each, true), ("weights", weights, world.truth)):
                for kind, (low, high) in intervals(numbers[:size]).items():
                    inside = (low <= truth) & (truth <= high)
                    found.setdefault((of, kind, size), []).append(inside)
        found.setdefault("alive", []).append((weights != 0).mean(axis=0))
    return {name: np.array(several) for name, several in found.items()}


def show_coverage(simulations: int, count: int, only: str) -> None:
    """Print a line for each setting and number of models."""
    for world in worlds():
        for setting in SETTINGS:
            if only and only not in f"{world.name}, {setting.name}":
                continue
            start = time.process_time()
            found = covered(setting, world, simulations, count)
            seconds = time.process_time() - start
            real = world.truth != 0
            print(
                f"{world.name}, {setting.name}: {len(found['alive'])} simulations, {seconds:.0f} s",
                flush=True,
            )
            for size in (one for one in SIZES if one <= count):
                kinds = ("normal", "percentile", "basic")
                rows = " ".join(f"{found['rows', kind, size].mean():.1%}" for kind in kinds)
                one = [found["weights", kind, size][:, real].mean() for kind in kinds]
                none = found["weights", "normal", size][:, ~real]
                told = " ".join(f"{share:.1%}" for share in one)
                zero = f"{none.mean():.1%}" if none.size else "-"
                print(f"  {size:3} models: rows {rows}; weights {told}; of truly zero weights, normal {zero}")
            alive = found["alive"][:, ~real]
            if alive.size:
                print(f"  truly zero weights live in {alive.mean():.0%} of the models", flush=True)


SETS = {
    "krvskp": ("uci/krvskp/krvskp.svm.gz", False),
    "spambase": ("uci/spambase/spambase.svm.gz", True),
    "rcv1": ("rcv1/train2000.dat.gz", False),
}
"""The file, and whether its columns are divided by their standard deviations first: one penalty is for all"""


def rows_of(path: Path, scaled: bool) -> tuple[Any, F64]:
    """The rows and labels of a set."""
    from sklearn.datasets import load_svmlight_file
    from sklearn.preprocessing import StandardScaler

    X, y = load_svmlight_file(str(path))
    X = StandardScaler(with_mean=False).fit_transform(X) if scaled else X
    return X, np.where(y > 0, 1.0, -1.0)


def widths(folder: Path, count: int, strength: float, passes: int) -> Iterator[tuple[str, F64, F64]]:
    """Name of the set, widths for its test rows by the ensemble, and by LIBLINEAR."""
    from sklearn.linear_model import LogisticRegression

    for name, (file, scaled) in SETS.items():
        X, y = rows_of(folder / file, scaled)
        test = np.arange(X.shape[0]) % 5 == 0
        learned, target, asked = X[~test], y[~test], X[test]
        size = learned.shape[0]
        rule = f"adagrad-fobos:eta=0.5,l1=0,l2={strength / size / LEARNED}"
        found = thresher.ensemble(
            learned, target, models=count, rule=rule, passes=passes, average=True, centre=False
        )
        mine = np.array([model.predict(asked) for model in found.models])
        chance, theirs = np.random.default_rng(0), list[F64]()
        for _ in range(count):
            rows = chance.integers(0, size, size)
            # the penalty of LIBLINEAR's intercept is made weak
            solver = LogisticRegression(
                C=1 / strength, solver="liblinear", intercept_scaling=10.0, tol=1e-6, max_iter=10_000
            )
            theirs.append(solver.fit(learned[rows], target[rows]).decision_function(asked))
        other = np.array(theirs)
        each = [2 * reach(LEVEL, count) * one.std(axis=0, ddof=1) for one in (mine, other)]
        gap = np.abs(mine.mean(axis=0) - other.mean(axis=0)) / (each[1] / 2)
        print(f"{name}: {size:,} rows, distance of the means {np.median(gap):.2f} half widths", flush=True)
        yield name, each[0], each[1]


def show_widths(folder: Path, count: int, strength: float, passes: int) -> None:
    """Print a line for each set."""
    for name, mine, other in widths(folder, count, strength, passes):
        ratio = mine / other
        low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9])
        print(
            f"{name}: mean width {mine.mean():.3f}, LIBLINEAR {other.mean():.3f}, ratio"
            f" {mine.mean() / other.mean():.3f}; of rows {low:.3f} {middle:.3f} {high:.3f}",
            flush=True,
        )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--models", type=int, default=32)
    parser.add_argument("--only", default="", help="the setting, such as 'numbers, default'")
    parser.add_argument("--widths", type=Path)
    parser.add_argument("--strength", type=float, default=1.0, help="of L2, on the sum of losses")
    parser.add_argument("--passes", type=int, default=40)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.widths:
        show_widths(asked.widths, asked.models, asked.strength, asked.passes)
    else:
        show_coverage(asked.simulations, asked.models, asked.only)


if __name__ == "__main__":
    main()
