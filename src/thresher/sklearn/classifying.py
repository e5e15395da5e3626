"""The common part of classifiers: encoding classes, decisions, probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from thresher.sklearn.estimator import F32, F64, EncodedLabels, SparseEstimator

if TYPE_CHECKING:
    from thresher.sklearn.arguments import Examples


def _has_probabilities(estimator: Any) -> bool:
    from thresher import parts

    loss = estimator._model.loss if estimator.__sklearn_is_fitted__() else parts.make("loss", estimator.loss)
    if loss.PROBABILITY:
        return True
    name = parts.part_name(type(loss))
    raise AttributeError(f"the loss {name} gives no probabilities; logistic and softmax do")


def _tells_labels(loss: Any) -> bool:
    from thresher import parts
    from thresher.learning.head import leaves_classes_open

    try:
        return not leaves_classes_open(loss, None)
    except parts.SpecError:
        return False  # fit raises the error


def _check_labels(y: NDArray[Any]) -> None:
    """ValueError for values that cannot be classes."""
    try:
        check_classification_targets(y)
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in y}))
        raise ValueError(f"y mixes labels of types that cannot be compared: {kinds}") from error


class SparseClassifying(ClassifierMixin, SparseEstimator):
    """A model that predicts one of several classes, or several labels at once."""

    def __sklearn_tags__(self) -> Any:
        """Sparse X; multi-label unless the loss is for exclusive classes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = _tells_labels(self.loss)
        return tags

    def _encoded(self, y: Any, weights: F64, reset: bool, whole: bool, named: Any = None) -> EncodedLabels:
        y = check_array(
            y, accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0
        )
        if not issparse(y) and (y.ndim == 1 or y.shape[1] == 1):
            y = column_or_1d(y, warn=True)
            if reset:
                self._note_classes(y[weights > 0], named, whole)
            return self._encoded_classes(y, weights, whole)
        if type_of_target(y, input_name="y") != "multilabel-indicator":
            raise ValueError(
                "y with several columns must contain only zeros and ones (several labels per example)"
            )
        if self.class_weight is not None:
            raise ValueError("class_weight does not work with several labels per example")
        targets = np.ascontiguousarray(y.toarray() if issparse(y) else y, np.float32)
        if reset:
            self.classes_, self._multilabel = np.arange(targets.shape[1]), True
        if not self._multilabel or targets.shape[1] != len(self.classes_):
            raise ValueError(
                f"y has {targets.shape[1]} columns, but the model has {len(self.classes_)} classes"
            )
        return EncodedLabels(targets[:, 0].copy(), targets)

    def _note_classes(self, y: NDArray[Any], named: Any, whole: bool) -> None:
        if y.dtype.kind not in "biuSU":
            _check_labels(y)
        if named is None and not whole:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        classes = np.unique(y) if named is None else named
        if len(classes) < 2:
            raise ValueError(f"only 1 class has a weight above zero, {classes[0]}: at least 2 are needed")
        self.classes_, self._multilabel = classes, False
        last = len(classes) - 1
        labels = (-1.0, 1.0) if self._outputs() == "one" else range(last + 1)
        self._labels = dict(zip(classes.tolist(), map(float, labels), strict=True))

    def _encoded_classes(self, y: NDArray[Any], weights: F64, whole: bool) -> EncodedLabels:
        if self._multilabel:
            raise ValueError(f"y has one column, but the model has {len(self.classes_)} labels")
        codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        strange = (self.classes_[codes] != y) & (weights > 0)
        if strange.any():
            raise ValueError(f"y contains the class {y[strange][0]}, not one of {self.classes_.tolist()}")
        factors = None if self.class_weight is None else self._class_factors(codes, weights, whole)[codes]
        labels = 2 * codes - 1 if self._outputs() == "one" else codes
        return EncodedLabels(labels.astype(np.float32), None, factors)

    def _class_factors(self, codes: NDArray[Any], weights: F64, whole: bool) -> F64:
        """The factor of each class ``(classes,)``."""
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight must be a dictionary, 'balanced' or None, not {self.class_weight!r}"
                )
            if not whole:
                raise ValueError(
                    "class_weight='balanced' needs all the data at once: give a dictionary of weights"
                )
            totals = np.bincount(codes, weights, len(self.classes_))
            factors: F64 = weights.sum() / (len(totals) * np.maximum(totals, np.finfo(float).tiny))
            return factors
        if not isinstance(self.class_weight, Mapping):
            raise ValueError(
                f"class_weight must be a dictionary, 'balanced' or None, not {self.class_weight!r}"
            )
        given = dict(self.class_weight)
        unknown = given.keys() - set(self.classes_.tolist())
        if unknown:
            named = ", ".join(sorted(map(repr, unknown)))
            raise ValueError(f"class_weight has keys that are not classes: {named}")
        numbers = np.array([given.get(name, 1.0) for name in self.classes_.tolist()])
        if numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all() or (numbers < 0).any():
            raise ValueError(f"class_weight must contain finite numbers >= 0, not {given}")
        return numbers.astype(np.float64)

    def _outputs(self) -> str:
        from thresher.learning.head import leaves_classes_open

        last = len(self.classes_) - 1
        if self._multilabel:
            return f"labels:0-{last}"
        return "one" if last == 1 and not leaves_classes_open(self.loss, None) else f"classes:0-{last}"

    def _shown(self, weights: F64, unmet: F64, bias: F64) -> tuple[F64, F64, F64]:
        if len(self.classes_) > 2 or self._multilabel or len(bias) == 1:
            return weights, unmet, bias
        return weights[1:] - weights[:1], unmet[1:] - unmet[:1], bias[1:] - bias[:1]

    def decision_function(self, X: Examples) -> F64:
        """Margins ``(n,)`` for the second of two classes, or ``(n, classes)``."""
        return self._decisions(self._margins(X))

    def _decisions(self, margins: F64) -> F64:
        if len(self.classes_) > 2 or self._multilabel or margins.ndim == 1:
            return margins
        return margins[:, 1] - margins[:, 0]

    def predict(self, X: Examples) -> NDArray[Any]:
        """Classes ``(n,)``, or zeros and ones ``(n, labels)``."""
        codes = self._codes(self._margins(X))
        return codes if self._multilabel else np.asarray(self.classes_[codes])

    def _codes(self, margins: F64) -> NDArray[np.int64]:
        """Indices of the predicted classes, or zeros and ones ``(n, labels)``."""
        margins = self._decisions(margins)
        if margins.ndim > 1 and not self._multilabel:
            return np.asarray(margins.argmax(axis=1), np.int64)
        return (margins > 0).astype(np.int64)

    def _faults(self, head: Any, margins: F64, labels: F32, targets: F32 | None) -> F64:
        codes = self._codes(margins)
        if targets is not None:
            wrong: NDArray[np.bool_] = (codes != (targets > 0)).any(axis=1)
        else:
            wrong = codes != np.maximum(labels, 0.0)  # the first of two classes may be -1
        return wrong.astype(np.float64)

    def _score_of(self, faults: F64, truths: F64, weights: F64) -> float:
        return 1.0 - float(faults[0])

    @available_if(_has_probabilities)
    def predict_proba(self, X: Examples) -> F64:
        """Probabilities ``(n, classes)``, for losses that have them.

        One-against-rest probabilities are divided by their sum. ``(n, labels)`` are for each label by itself.
        """
        check_is_fitted(self)
        found: F64 = self._model.head.probabilities(self._margins(X))
        return found

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Examples) -> F64:
        """Logarithms of `predict_proba`."""
        logarithms: F64 = np.log(self.predict_proba(X))
        return logarithms
