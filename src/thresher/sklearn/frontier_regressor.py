"""SparseFrontierRegressor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from thresher.sklearn.frontier import SparseFrontierEstimator
from thresher.sklearn.regressor import SparseRegressing

if TYPE_CHECKING:
    from thresher.learning.model.recipe import Spec
    from thresher.sklearn.argument_types import Columns, RandomState, Reading


class SparseFrontierRegressor(SparseRegressing, SparseFrontierEstimator):
    """A sparse linear regressor that finds its penalty: one `fit` learns a model for each of many.

    Parameters and attributes are those of `SparseFrontierClassifier`, except for the shapes of weights, which
    are those of `SparseOnlineRegressor`. `score_path_` is R² over all held-out examples, NaN for fewer than
    two. `coef_path_` is CSR ``(n_l1s, d)`` for one output, else a list of n_l1s CSR ``(outputs, d)``.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> model = SparseFrontierRegressor(choose="within:5%", random_state=0).fit(X, X[:, 0] - 2 * X[:, 1])
    >>> np.flatnonzero(abs(model.coef_) > 0.01).tolist(), bool(model.score_path_.max() > 0.99)
    ([0, 1], True)
    """

    def __init__(
        self,
        rule: Spec = "ft-ftrl",
        loss: Spec = "squared",
        *,
        l1s: int | ArrayLike = 16,
        choose: str = "best",
        cv: int | None = None,
        refit: bool = True,
        rate: Spec | None = None,
        l2: float | None = None,
        eta0: float | None = None,
        passes: int | str = "auto",
        shuffle: bool = True,
        batch: int = 1,
        average: bool = False,
        fit_intercept: bool = True,
        early_stopping: bool = False,
        validation_fraction: float | str = 0.1,
        patience: int = 5,
        scale: str | None = None,
        centre: bool | None = None,
        admit: str | int | None = None,
        nonnegative: Columns = None,
        nonpositive: Columns = None,
        store: str | None = None,
        dtype: str = "float32",
        layout: Reading = None,
        names: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.rule, self.loss, self.rate = rule, loss, rate
        self.l1s, self.choose, self.cv, self.refit = l1s, choose, cv, refit
        self.l2, self.eta0 = l2, eta0
        self.passes, self.shuffle, self.batch, self.average = passes, shuffle, batch, average
        self.fit_intercept = fit_intercept
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.patience, self.scale, self.centre, self.admit = patience, scale, centre, admit
        self.store, self.dtype, self.layout, self.names = store, dtype, layout, names
        self.nonnegative, self.nonpositive = nonnegative, nonpositive
        self.n_jobs, self.verbose, self.random_state = n_jobs, verbose, random_state
