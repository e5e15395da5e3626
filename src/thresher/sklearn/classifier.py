"""SparseOnlineClassifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from thresher.sklearn.base import F64, EncodedLabels, SparseOnlineEstimator
from thresher.sklearn.onerow import chunk_of_row


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
        return False  # which fit tells of


def _check_labels(y: NDArray[Any]) -> None:
    """ValueError for what are no classes."""
    try:
        check_classification_targets(y)
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in y}))
        raise ValueError(f"y mixes labels that cannot be sorted, of the types {kinds}") from error


class SparseOnlineClassifier(ClassifierMixin, SparseOnlineEstimator):
    """A sparse linear classifier that learns online: two classes, several, or several labels at once.

    Several classes have a weight vector each: one against the rest for a loss of two classes
    (``logistic``, ``hinge``, ``squared-hinge`` ...), or jointly by ``softmax`` and ``crammer-singer``.
    y ``(n, labels)`` of zeros and ones makes a model of each label.

    Args:
        rule: SPEC such as ``"ftrl:alpha=0.1"``, or a part (`thresher rules` lists them). Its own parameters
            can be set as ``rule__alpha``; likewise ``loss__`` and ``rate__``.
        loss: SPEC or part.
        rate: SPEC or part, for rules that have a rate; the rule's own default if None.
        l1, l2: penalties, for rules that have them: instead of those in `rule`.
        eta0: first step size, for rules with a rate: instead of the one in `rate`.
        passes: over the examples in `fit`.
        shuffle: `fit` learns in a random order, a new one in each pass, which `random_state` and the
            examples decide, not how these lie; a `sample_weight` of 2.5 then stands for two examples and
            half a one (one over 16 for 16 heavier ones). Without, rows are learned as they come, and a
            weight is an importance, as it always is in `partial_fit`.
        batch: examples a step. What is left over of the last waits for the next `partial_fit`; `fit` ends it.
        average: predict with the mean of the weights that each step began with. SGDClassifier averages those
            that each step ended with, so its mean is one step ahead.
        fit_intercept: whether to learn one, which is never penalised.
        class_weight: ``{class: factor}`` or ``"balanced"``; multiplies importances.
        warm_start: `fit` goes on from where the model is.
        early_stopping: hold out `validation_fraction` of the examples, of each class its share; stop after
            `patience` passes without a better loss on them, and keep the model of the best.
        scale: ``max-abs`` or ``standard``, for numeric columns of tables with other columns too.
        admit: learn from a feature from its N-th sighting on.
        store: ``growing``, ``direct``, ``hashed:BITS``; if None, whichever is fast for so many columns.
        dtype: of the state, ``float32`` or ``float64``. Data are float32.
        layout: `thresher.data.layout.Layout`, how tables and texts become features.
        n_jobs: threads that read tables.
        verbose: 1 prints a line after each pass.
        random_state: seed of the order and of what is held out.

    Attributes:
        classes_: ``(classes,)``.
        coef_, intercept_: weights ``(classes, d)`` and ``(classes,)``; for two classes ``(1, d)``, ``(1,)``.
        feature_keys_: keys of the features that have a weight.
        n_iter_: passes made by the last `fit`.
        t_: examples learned from, and 1.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn, where X has columns.

    >>> import numpy as np
    >>> model = SparseOnlineClassifier(l1=0.1, random_state=0).fit(np.eye(4), ["a", "a", "b", "b"])
    >>> model.predict(np.eye(4)).tolist()
    ['a', 'a', 'b', 'b']
    """

    def __init__(
        self,
        rule: Any = "ft-ftrl",
        loss: Any = "logistic",
        *,
        rate: Any = None,
        l1: float | None = None,
        l2: float | None = None,
        eta0: float | None = None,
        passes: int = 5,
        shuffle: bool = True,
        batch: int = 1,
        average: bool = False,
        fit_intercept: bool = True,
        class_weight: Any = None,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 5,
        scale: str | None = None,
        admit: str | int | None = None,
        store: str | None = None,
        dtype: str = "float32",
        layout: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.rule, self.loss, self.rate = rule, loss, rate
        self.l1, self.l2, self.eta0 = l1, l2, eta0
        self.passes, self.shuffle, self.batch, self.average = passes, shuffle, batch, average
        self.fit_intercept, self.class_weight, self.warm_start = fit_intercept, class_weight, warm_start
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.patience, self.scale, self.admit = patience, scale, admit
        self.store, self.dtype, self.layout = store, dtype, layout
        self.n_jobs, self.verbose, self.random_state = n_jobs, verbose, random_state

    def __sklearn_tags__(self) -> Any:
        """Sparse X; several labels unless the loss tells classes apart."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = _tells_labels(self.loss)
        return tags

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the examples once, in their order, and go on from what was learned before.

        However the examples are cut into calls the model is the same, bit for bit. `classes` names all
        classes, in the first call; later ones may leave it out. Arguments and errors as for `fit`.
        """
        if classes is not None:
            named = unique_labels(classes)
            if self.__sklearn_is_fitted__() and not np.array_equal(self.classes_, named):
                raise ValueError(f"classes={classes!r} are not those of the first call: {self.classes_!r}")
            classes = named
        return self._partial_fit(X, y, sample_weight, classes)

    def _one_row(self, X: Any, y: Any) -> Any:
        if self.class_weight is not None or self._multilabel or not self._unnamed_columns():
            return None
        if len(self._labels) != len(self.classes_):
            return None
        return chunk_of_row(X, y, self.n_features_in_, self._labels)

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
                "y of several columns must hold zeros and ones: several labels, not several classes"
            )
        if self.class_weight is not None:
            raise ValueError("class_weight is for classes, not for several labels at once")
        targets = np.ascontiguousarray(y.toarray() if issparse(y) else y, np.float32)
        if reset:
            self.classes_, self._multilabel = np.arange(targets.shape[1]), True
        if not self._multilabel or targets.shape[1] != len(self.classes_):
            raise ValueError(
                f"y has {targets.shape[1]} columns: the model tells {len(self.classes_)} classes"
            )
        return EncodedLabels(targets[:, 0].copy(), targets)

    def _note_classes(self, y: NDArray[Any], named: Any, whole: bool) -> None:
        if y.dtype.kind not in "biuSU":
            _check_labels(y)
        if named is None and not whole:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        classes = np.unique(y) if named is None else named
        if len(classes) < 2:
            raise ValueError(f"1 class of a weight above zero, {classes[0]}: at least 2 are needed")
        self.classes_, self._multilabel = classes, False
        last = len(classes) - 1
        labels = (-1.0, 1.0) if self._outputs() == "one" else range(last + 1)
        self._labels = dict(zip(classes.tolist(), map(float, labels), strict=True))

    def _encoded_classes(self, y: NDArray[Any], weights: F64, whole: bool) -> EncodedLabels:
        if self._multilabel:
            raise ValueError(f"y has one column: the model tells {len(self.classes_)} labels")
        codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        strange = (self.classes_[codes] != y) & (weights > 0)
        if strange.any():
            raise ValueError(f"y holds the class {y[strange][0]}, not one of {self.classes_.tolist()}")
        factors = None if self.class_weight is None else self._class_factors(codes, weights, whole)[codes]
        labels = 2 * codes - 1 if self._outputs() == "one" else codes
        return EncodedLabels(labels.astype(np.float32), None, factors)

    def _class_factors(self, codes: NDArray[Any], weights: F64, whole: bool) -> F64:
        """By what each class is multiplied ``(classes,)``."""
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight is a dictionary, 'balanced' or None, not {self.class_weight!r}"
                )
            if not whole:
                raise ValueError(
                    "class_weight 'balanced' cannot be told from a part of the data: give numbers"
                )
            totals = np.bincount(codes, weights, len(self.classes_))
            factors: F64 = weights.sum() / (len(totals) * np.maximum(totals, np.finfo(float).tiny))
            return factors
        if not isinstance(self.class_weight, Mapping):
            raise ValueError(f"class_weight is a dictionary, 'balanced' or None, not {self.class_weight!r}")
        given = dict(self.class_weight)
        unknown = given.keys() - set(self.classes_.tolist())
        if unknown:
            raise ValueError(f"class_weight names {sorted(map(repr, unknown))}, which are no classes")
        numbers = np.array([given.get(name, 1.0) for name in self.classes_.tolist()])
        if numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all() or (numbers < 0).any():
            raise ValueError(f"class_weight must hold finite numbers that are not negative, not {given}")
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

    def decision_function(self, X: Any) -> F64:
        """Margins ``(n,)`` of the second of two classes, or ``(n, classes)``."""
        margins = self._margins(X)
        if len(self.classes_) > 2 or self._multilabel or margins.ndim == 1:
            return margins
        return margins[:, 1] - margins[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes ``(n,)``, or ``(n, labels)`` zeros and ones."""
        margins = self.decision_function(X)
        if self._multilabel:
            return (margins > 0).astype(np.int64)
        return np.asarray(
            self.classes_[(margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)]
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> F64:
        """Probabilities ``(n, classes)``, for losses that have them.

        Those of one class against the rest are divided by their sum. ``(n, labels)`` are of each label alone.
        """
        check_is_fitted(self)
        margins = self._margins(X)
        found: F64 = self._model.head.respond(margins, "probability", 0.0)
        if found.ndim == 1:
            return np.column_stack([1.0 - found, found])
        if self._multilabel:
            return found
        total = found.sum(axis=1, keepdims=True)
        shared: F64 = np.divide(found, total, out=np.full_like(found, 1 / found.shape[1]), where=total > 0)
        return shared

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> F64:
        """Logarithms of `predict_proba`."""
        logarithms: F64 = np.log(self.predict_proba(X))
        return logarithms
