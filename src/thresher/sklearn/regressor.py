"""SparseOnlineRegressor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from thresher.sklearn.base import SparseOnlineEstimator
from thresher.sklearn.onerow import chunk_of_row
from thresher.sklearn.regressing import SparseRegressing

if TYPE_CHECKING:
    from thresher.learning.recipe import Spec
    from thresher.sklearn.arguments import Examples, RandomState, Reading


class SparseOnlineRegressor(SparseRegressing, SparseOnlineEstimator):
    """A sparse linear regressor that learns online: one number, or several at once.

    `loss` is ``squared``, ``absolute``, ``quantile:tau``, ``huber:delta`` or ``poisson`` (which predicts a
    count, the exponential of the margin). All other parameters and attributes are those of
    `SparseOnlineClassifier`, with other shapes: `coef_` is ``(d,)`` for a 1-d y and ``(outputs, d)`` for a
    2-d y; `intercept_` is ``(1,)`` or ``(outputs,)``, like SGDRegressor's.

    >>> import numpy as np
    >>> model = SparseOnlineRegressor("normalized", passes=50, random_state=0).fit(np.eye(3), [1.0, 2.0, 3.0])
    >>> model.predict(np.eye(3)).round(2).tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(
        self,
        rule: Spec = "ft-ftrl",
        loss: Spec = "squared",
        *,
        rate: Spec | None = None,
        l1: float | None = None,
        l2: float | None = None,
        eta0: float | None = None,
        passes: int | str = "auto",
        shuffle: bool = True,
        batch: int = 1,
        average: bool = False,
        fit_intercept: bool = True,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float | str = 0.1,
        patience: int = 5,
        scale: str | None = None,
        centre: bool | None = None,
        admit: str | int | None = None,
        store: str | None = None,
        dtype: str = "float32",
        layout: Reading = None,
        names: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.rule, self.loss, self.rate = rule, loss, rate
        self.l1, self.l2, self.eta0 = l1, l2, eta0
        self.passes, self.shuffle, self.batch, self.average = passes, shuffle, batch, average
        self.fit_intercept, self.warm_start = fit_intercept, warm_start
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.patience, self.scale, self.centre, self.admit = patience, scale, centre, admit
        self.store, self.dtype, self.layout, self.names = store, dtype, layout, names
        self.n_jobs, self.verbose, self.random_state = n_jobs, verbose, random_state

    def partial_fit(self, X: Examples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the examples once, in order, continuing with the current model.

        The model does not depend on how the examples are split into calls, bit for bit. Arguments and errors
        as for `fit`; only the first call warns, of the columns of a table.
        """
        return self._partial_fit(X, y, sample_weight)

    def _one_row(self, X: Any, y: Any) -> Any:
        if self._targets or self._model.head.domain.name != "real" or not self._unnamed_columns():
            return None
        return chunk_of_row(X, y, self.n_features_in_, None)
