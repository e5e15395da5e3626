"""SparseOnlineRegressor, a number or several."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from thresher.data.chunk import Chunk
from thresher.learning.model import recipe as recipes
from thresher.sklearn.estimator import F64, SparseEstimator, chunk_of_row, parameters
from thresher.sklearn.inputs import Examples
from thresher.sklearn.row_order import EncodedLabels


@parameters
class SparseOnlineRegressor(RegressorMixin, SparseEstimator):
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

    loss: recipes.Spec = "squared"
    sample: ClassVar[None] = None
    calibrate: ClassVar[bool] = False

    def __sklearn_tags__(self) -> object:
        """Sparse X; multi-output."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    @property
    def coef_(self) -> Any:
        """Weights ``(d,)``, or ``(outputs, d)`` for a 2-d y, float64; a copy.

        A sparse `coef_` is always 2-d, ``(1, d)`` for a 1-d y. See `SparseOnlineClassifier.coef_` for when it
        is sparse and for its columns.
        """
        coef = super().coef_
        return coef if self._targets or issparse(coef) else coef[0]

    def _encode(self, y: Any, weights: F64, reset: bool, whole: bool, named: Any = None) -> EncodedLabels:
        y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y", ensure_min_samples=0)
        shape = y.shape[1:]
        if reset:
            self._targets = shape
        if shape != self._targets:
            raise ValueError(f"y has shape {y.shape}, but the targets of the model have {self._targets}")
        with np.errstate(over="ignore"):
            numbers = np.ascontiguousarray(y.reshape(len(y), -1), np.float32)
        if not np.isfinite(numbers).all():
            raise ValueError("y contains a number that is not finite in float32")
        return EncodedLabels(numbers[:, 0].copy(), numbers if numbers.shape[1] > 1 else None)

    def _outputs(self) -> str:
        width = int(np.prod(self._targets))
        return "one" if width == 1 else f"values:{width}"

    def predict(self, X: Examples) -> F64:
        """Predictions, ``(n,)`` or ``(n, outputs)`` like y."""
        check_is_fitted(self)
        margins = self._margins(X)
        found: F64 = self._model.head.respond(margins, "label", 0.0)
        return found.reshape(len(found), *self._targets)

    def partial_fit(self, X: Examples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the examples once, in order, continuing with the current model.

        The model does not depend on how the examples are split into calls, bit for bit. Arguments and errors
        as for `fit`; only the first call warns, of the columns of a table.
        """
        return self._partial_fit(X, y, sample_weight)

    def _one_row(self, X: Any, y: Any) -> Chunk | None:
        if self._targets or self._model.head.domain.name != "real":
            return None
        return chunk_of_row(X, y, self.n_features_in_, None)
