"""How often intervals of `thresher.select(..., estimate=True)` hold the truth, and what statsmodels finds.

    python -m experiments.estimation [--sets 500]   # how often 90 % intervals hold the truth
    python -m experiments.estimation --peer         # largest differences to statsmodels, if it is installed

A set has 1,000 rows of 40 normal columns, of which neighbours correlate by one half, and five have a weight.
The noise of the linear model grows with one of these. Beside the intervals from the half that chose nothing
are those that the half that chose gives, with the same features. Sets in which a true column is not kept do
not count, because the others then stand for it, and nobody knows their true weights: that depends on the rows
that choose alone.
"""

from __future__ import annotations

import argparse
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

import thresher
from thresher.data.chunk import Chunk
from thresher.learning.model.objective import Objective
from thresher.learning.training.shares import held_out
from thresher.plans.estimation import Estimates, estimate

ROWS, COLUMNS, TRUE, INTERCEPT = 1_000, 40, 5, 0.2
F64 = NDArray[np.float64]
LOSSES = ("squared", "logistic", "poisson")


def made(seed: int, loss: str) -> tuple[F64, F64, F64]:
    """X, labels and true weights."""
    chance = np.random.default_rng(seed)
    common = chance.normal(size=(ROWS, COLUMNS + 1))
    X = ((common[:, :-1] + common[:, 1:]) / np.sqrt(2)).astype(np.float32).astype(np.float64)
    weights = np.zeros(COLUMNS)
    places = chance.choice(COLUMNS, TRUE, replace=False)
    weights[places] = chance.choice([-1, 1], TRUE) * {"squared": 0.6, "logistic": 1.0, "poisson": 0.3}[loss]
    margins = X @ weights + INTERCEPT
    if loss == "squared":
        y = margins + chance.normal(size=ROWS) * (0.5 + np.abs(X[:, places[0]]))
    elif loss == "logistic":
        y = np.where(chance.random(ROWS) < 1 / (1 + np.exp(-margins)), 1.0, -1.0)
    else:
        y = chance.poisson(np.exp(margins)).astype(np.float64)
    return X, y.astype(np.float32).astype(np.float64), weights


def selected(X: F64, y: F64, loss: str) -> Any:
    """What is chosen and estimated."""
    return thresher.select(X, y, loss=loss, bags=16, passes=5, l1=1.0, nonzero=14, false=9, estimate=True)


def held(found: Estimates, weights: F64) -> NDArray[np.bool_]:
    """Which intervals hold the truth, without the intercept."""
    truth = weights[found.keys.astype(np.int64)]
    return np.asarray((found.low[:-1] <= truth) & (truth <= found.high[:-1]))


def coverage(sets: int) -> None:
    """Print the table."""
    print("| loss | sets | kept | covered | true columns | others | by the half that chose | others |")
    print("|---" * 8 + "|")
    apart = held_out(0, ROWS, 2, 0)
    for loss in LOSSES:
        hits: dict[tuple[bool, bool], list[bool]] = {(a, b): [] for a in (True, False) for b in (True, False)}
        used, kept, seed = 0, 0, 0
        while used < sets:
            X, y, weights = made(seed, loss)
            seed += 1
            found = selected(X, y, loss)
            own = found.estimates
            if own is None or not {*np.flatnonzero(weights).tolist()} <= {*own.keys.tolist()}:
                continue
            keys = np.sort(own.keys).astype(np.int64)
            rows = Chunk.from_csr(
                np.arange(0, (ROWS - apart.sum()) * len(keys) + 1, len(keys)),
                np.tile(keys, ROWS - apart.sum()),
                X[~apart][:, keys].ravel(),
                y[~apart],
            )
            again = estimate(rows, own.keys, Objective(loss), gaps=False, intercept=True)
            used, kept = used + 1, kept + len(own.keys)
            real = weights[own.keys.astype(np.int64)] != 0
            for which, one in ((True, own), (False, again)):
                for kind in (True, False):
                    hits[which, kind] += held(one, weights)[real == kind].tolist()
        mean = {name: float(np.mean(each)) for name, each in hits.items()}
        both = [float(np.mean([*hits[which, True], *hits[which, False]])) for which in (True, False)]
        cells = [mean[True, True], mean[True, False], both[1], mean[False, False]]
        shown = " | ".join(f"{one:.3f}" for one in cells)
        print(f"| {loss} | {used} of {seed} | {kept / used:.1f} | {both[0]:.3f} | {shown} |", flush=True)


def peer() -> None:
    """Print the largest relative differences of estimates and errors, and those of p."""
    import statsmodels.api as sm  # not among the packages of the tests

    print("statsmodels", version("statsmodels"))
    apart = held_out(0, ROWS, 2, 0)
    for loss, family in zip(LOSSES, (None, sm.families.Binomial(), sm.families.Poisson()), strict=True):
        X, y, _ = made(0, loss)
        own = selected(X, y, loss).estimates
        columns = sm.add_constant(X[apart][:, own.keys.astype(np.int64)], prepend=False)
        labels = (y[apart] > 0) * 1.0 if loss == "logistic" else y[apart]
        if family is None:
            fit = sm.OLS(labels, columns).fit(cov_type="HC1")
            errors = fit.bse
        else:  # whose HC1 has no factor
            fit = sm.GLM(labels, columns, family).fit(cov_type="HC1", tol=1e-13, maxiter=100)
            errors = fit.bse * np.sqrt(len(columns) / (len(columns) - columns.shape[1]))
        p = 2 * _upper(np.abs(fit.params / errors))
        differences = (
            _apart(own.estimate, fit.params),
            _apart(own.error, errors),
            float(np.abs(own.p - p).max()),
        )
        shown = ", ".join(f"{one:.1e}" for one in differences)
        print(f"{loss}: {len(own.keys)} features, {own.rows} rows; estimates, errors, p differ by {shown}")


def _apart(one: F64, other: F64) -> float:
    return float(np.abs(one / other - 1).max())


def _upper(z: F64) -> F64:
    from scipy.stats import norm

    return np.asarray(norm.sf(z))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--peer", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    peer() if given.peer else coverage(given.sets)


if __name__ == "__main__":
    main()
