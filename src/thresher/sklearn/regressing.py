"""The common part of regressors: encoding targets, predictions, score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from thresher.sklearn.estimator import F32, F64, EncodedLabels, SparseEstimator

if TYPE_CHECKING:
    from thresher.sklearn.arguments import Examples


class SparseRegressing(RegressorMixin, SparseEstimator):
    """A model that predicts one number, or several at once."""

    def __sklearn_tags__(self) -> Any:
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

    def _encoded(self, y: Any, weights: F64, reset: bool, whole: bool, named: Any = None) -> EncodedLabels:
        y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y", ensure_min_samples=0)
        if y.ndim > 2:
            raise ValueError(f"y must have one or two dimensions, not {y.ndim}")
        shape = y.shape[1:]
        if reset:
            self._targets = shape
        if shape != self._targets:
            raise ValueError(
                f"y has shape {y.shape}, but the model was trained on targets of shape {self._targets}"
            )
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

    def _faults(self, head: Any, margins: F64, labels: F32, targets: F32 | None) -> F64:
        found: F64 = head.respond(margins, "label", 0.0)
        squares: F64 = (found - (labels if targets is None else targets)) ** 2
        return squares

    def _score_of(self, faults: F64, truths: F64, weights: F64) -> float:
        if len(truths) < 2:
            return float("nan")
        spread = np.average((truths - np.average(truths, 0, weights)) ** 2, 0, weights)
        shares = np.divide(faults, spread, out=(faults > 0).astype(np.float64), where=spread > 0)
        return 1.0 - float(shares.mean())
