"""SparseOnlineClassifier, and the common part of classifiers: encoding classes, decisions, probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from thresher import parts
from thresher.data.chunk import Chunk
from thresher.data.inputs import any_data
from thresher.data.labels import check_repeated
from thresher.learning.model import objective, sampling
from thresher.sklearn.estimator import F64, SparseEstimator, chunk_of_row, parameters
from thresher.sklearn.inputs import ClassWeight, Examples
from thresher.sklearn.row_order import EncodedLabels


def _has_probabilities(estimator: SparseEstimator) -> bool:

    loss = estimator._model.loss if estimator.__sklearn_is_fitted__() else parts.make("loss", estimator.loss)
    if loss.PROBABILITY or estimator.calibrate:
        return True
    raise AttributeError(parts.no_probabilities(loss))


@parameters
class SparseOnlineClassifier(ClassifierMixin, SparseEstimator):
    """A sparse linear classifier that learns online: two classes, several, or several labels at once.

    Several classes have a weight vector each: one against the rest for a binary loss (``logistic``,
    ``hinge``, ``squared-hinge`` ...), or jointly with ``softmax`` and ``crammer-singer``.
    If y is ``(n, labels)`` of zeros and ones, each label has a model.

    Args:
        rule: SPEC such as ``"ftrl:alpha=0.1"``, or a part (`thresher rules` lists them). You can set its
            parameters as ``rule__alpha``; likewise ``loss__`` and ``rate__``.
        loss: SPEC or part.
        rate: SPEC or part, for rules with a rate; None: the rule's default.
        l1, l2: penalties, for rules that have them; they override those in `rule`.
        eta0: first step size, for rules with a rate; overrides the one in `rate`.
        passes: over the examples in `fit`. ``"auto"``: with a rule that is made for it, as many as
            `thresher.train` makes of X, whatever its size: 3 to 40, most over small tables; else 5.
        shuffle: learn in random order, a new one in each pass. The order depends on `random_state` and the
            examples, but not on their storage. A `sample_weight` of 2.5 then means two examples and half a
            one (one over 16 means 16 heavier ones). If False, rows are learned in order, and a weight is an
            importance, as it always is in `partial_fit`.
        batch: examples per step. `fit` also uses an incomplete last batch; after `partial_fit` it waits for
            the next call.
        average: predict with the mean of the weights before each step; for two classes, without batches.
            SGDClassifier averages the weights after each step, so its mean is one step ahead.
        fit_intercept: whether to learn an intercept, which is never penalised.
        class_weight: ``{class: factor}`` or ``"balanced"``; multiplies importances. With ``shuffle=True`` an
            example with a `sample_weight` of 3 is learned as three, in different places of the order; with a
            class weight of 3 it is one example, with one larger step. With ``shuffle=False`` both are equal.
        sample: ``{class: share}``, or ``"CLASS=SHARE,..."``: learn a share of the examples of a class, with
            importances 1 / share times as large; with ``,correct`` at the end of the text, as they are, and
            correct `intercept_` (losses ``logistic`` for two classes, and ``softmax``).
        calibrate: learn what probability a margin means, from the margin of each example before it is
            learned, for `predict_proba` and `predict`, which then follows it, and not the sign of
            `decision_function`; of two or several classes, for any loss, and one pass unless the rule is the
            default one.
        warm_start: `fit` continues with the current model.
        early_stopping: hold out `validation_fraction` of the examples, stratified by class, or the last of
            them, as time demands (``"last:0.1"``); stop after
            `patience` passes without a lower hold-out loss, and keep the model of the best pass.
        scale: ``max-abs`` or ``standard``: divide the columns of a matrix, or the numeric columns of a table,
            by the largest magnitude or the standard deviation so far. `coef_` refers to the unscaled X.
        centre: subtract from columns that are hardly ever zero the mean of their values so far; `coef_` and
            `intercept_` refer to X as it is. None: with the default rule, and with the scale ``standard``.
        admit: learn a feature from its N-th occurrence on.
        nonnegative, nonpositive: columns of X whose weights keep this sign: a name, a number (from 0) in a
            matrix without names, a list of these, or ``"*"`` for all; for rules that can do so
            (docs/signs.md). For two classes, weights are those of the second.
        store: ``growing``, ``direct``, ``hashed:BITS``; None: the fastest for the number of columns.
        dtype: of the state, ``float32`` or ``float64``. Data are float32.
        layout: how tables and texts become features: a dictionary such as ``{"text": "title"}`` of the
            options of `thresher.train` about columns, or a `thresher.data.layout.Layout`.
        names: keep the names of features with a weight (categories, words, dictionary keys); X is read once
            more to find them. See `get_feature_names_out`.
        n_jobs: threads that read tables.
        verbose: 1 prints the table of progress, and the figures of held-out examples after each pass;
            `partial_fit` the progressive loss, when the number of examples passes a power of two.
        random_state: seed of the order and of the hold-out.

    Attributes:
        classes_: ``(classes,)``.
        coef_, intercept_: weights ``(classes, d)`` and ``(classes,)``; for two classes ``(1, d)``, ``(1,)``.
        feature_keys_: keys of the features that have a weight.
        n_iter_: passes made by the last `fit`.
        t_: one more than the number of examples learned.
        n_features_in_, feature_names_in_: as in scikit-learn, if X has columns.

    >>> import numpy as np
    >>> model = SparseOnlineClassifier(l1=0.1, random_state=0).fit(np.eye(4), ["a", "a", "b", "b"])
    >>> model.predict(np.eye(4)).tolist()
    ['a', 'a', 'b', 'b']
    """

    _: KW_ONLY
    class_weight: ClassWeight = None
    sample: str | Mapping[Any, float] | None = None
    calibrate: bool = False

    def __sklearn_tags__(self) -> object:
        """Sparse X; multi-label unless the loss is for exclusive classes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        with suppress(parts.SpecError):  # fit raises the error
            tags.classifier_tags.multi_label = objective.default_outputs(self.loss, None) == "one"
        return tags

    def _encode(self, y: Any, weights: F64, reset: bool, whole: bool, named: Any = None) -> EncodedLabels:

        any_data.check_unmasked("labels y", y)
        y = check_array(
            y, accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0
        )
        if issparse(y) or (y.ndim > 1 and y.shape[1] != 1):
            if type_of_target(y, input_name="y") != "multilabel-indicator":
                raise ValueError(
                    "y with several columns must contain only zeros and ones, several labels a row"
                )
            if self.class_weight is not None:
                raise ValueError("class_weight does not work with several labels per example")
            targets = np.ascontiguousarray(y.toarray() if issparse(y) else y, np.float32)
            if reset:
                self.classes_, self._multilabel = np.arange(targets.shape[1]), True
            if not self._multilabel or targets.shape[1] != len(self.classes_):
                have, known = targets.shape[1], len(self.classes_)
                raise ValueError(f"y has {have} columns, but the model has {known} classes")
            return EncodedLabels(targets[:, 0].copy(), targets)
        y = column_or_1d(y, warn=True)
        if reset:
            self._note_classes(y[weights > 0], named, whole)
        if self._multilabel:
            raise ValueError(f"y has one column, but the model has {len(self.classes_)} labels")
        codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        strange = (self.classes_[codes] != y) & (weights > 0)
        if strange.any():
            raise ValueError(f"y contains the class {y[strange][0]}, not one of {self.classes_.tolist()}")
        factors = None if self.class_weight is None else self._class_factors(codes, weights, whole)[codes]
        labels = 2 * codes - 1 if self._outputs() == "one" else codes
        return EncodedLabels(labels.astype(np.float32), None, factors)

    def _note_classes(self, y: NDArray[Any], named: Any, whole: bool) -> None:
        if y.dtype.kind not in "biuSU":
            try:
                check_classification_targets(y)
            except TypeError as error:
                kinds = ", ".join(sorted({type(label).__name__ for label in y}))
                raise ValueError(f"y mixes labels of types that cannot be compared: {kinds}") from error
        if named is None and not whole:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        classes = np.unique(y) if named is None else named
        if len(classes) < 2:
            raise ValueError(f"only 1 class has a weight above zero, {classes[0]}: at least 2 are needed")
        if named is None:
            check_repeated(len(classes), len(y), "y")
        self.classes_, self._multilabel = classes, False
        last = len(classes) - 1
        labels = (-1.0, 1.0) if self._outputs() == "one" else range(last + 1)
        self._labels = dict(zip(classes.tolist(), map(float, labels), strict=True))

    def _class_factors(self, codes: NDArray[np.generic], weights: F64, whole: bool) -> F64:
        """The factor of each class ``(classes,)``."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            if not whole:
                raise ValueError("class_weight='balanced' needs all the data: give a dictionary of weights")
            totals = np.bincount(codes, weights, len(self.classes_))
            factors: F64 = weights.sum() / (len(totals) * np.maximum(totals, np.finfo(float).tiny))
            return factors
        given: Any = self.class_weight
        known = self.classes_.tolist()
        fits = isinstance(given, Mapping) and given.keys() <= {*known}
        numbers = np.array([given.get(name, 1.0) for name in known] if fits else "none")
        if numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all() or (numbers < 0).any():
            wanted = f"a dictionary with finite numbers >= 0 for classes of {known}, or 'balanced'"
            raise ValueError(f"class_weight must be {wanted}, not {given!r}")
        return numbers.astype(np.float64)

    def _sampled(self) -> str:

        found, layout = sampling.Sample.of(self.sample), self._layout_of_model()
        known = {sampling.text_of(name): k for k, name in enumerate(self.classes_.tolist())}
        if unknown := found.shares.keys() - known.keys():
            raise ValueError(f"sample has labels that are not classes: {', '.join(sorted(unknown))}")
        if layout is not None and layout.classes:
            return found.spec
        codes = {str(known[label]): share for label, share in found.shares.items()}
        return found._replace(shares=codes).spec

    def _outputs(self) -> str:

        last = len(self.classes_) - 1
        if self._multilabel:
            return f"labels:0-{last}"
        own = objective.default_outputs(self.loss, None)
        return own if last == 1 and own == "one" else f"classes:0-{last}"

    def _shown(self, numbers: F64) -> F64:
        several = len(self.classes_) > 2 or self._multilabel or len(numbers) == 1
        return numbers if several else numbers[1:] - numbers[:1]

    def decision_function(self, X: Examples) -> F64:
        """Margins ``(n,)`` for the second of two classes, or ``(n, classes)``."""
        margins = self._margins(X)
        if len(self.classes_) > 2 or self._multilabel or margins.ndim == 1:
            return margins
        return margins[:, 1] - margins[:, 0]

    def predict(self, X: Examples) -> NDArray[Any]:
        """Classes ``(n,)``, or zeros and ones ``(n, labels)``."""
        margins = self.decision_function(X)
        if margins.ndim > 1 and not self._multilabel:
            return np.asarray(self.classes_[margins.argmax(axis=1)])
        codes = np.asarray(self._model.head.positive(margins), np.int64)
        return codes if self._multilabel else np.asarray(self.classes_[codes])

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

    def partial_fit(
        self,
        X: Examples,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the examples once, in order, continuing with the current model.

        The model does not depend on how the examples are split into calls, bit for bit. The first call needs
        all `classes`; later ones may omit them. Arguments and errors as for `fit`; only the first
        call warns, of the columns of a table.
        """
        if classes is not None:
            named = unique_labels(classes)
            if self.__sklearn_is_fitted__() and not np.array_equal(self.classes_, named):
                raise ValueError(f"classes={classes!r} are not those of the first call: {self.classes_!r}")
            classes = named
        return self._partial_fit(X, y, sample_weight, classes)

    def _one_row(self, X: object, y: object) -> Chunk | None:
        if self.class_weight is not None or self._multilabel or len(self._labels) != len(self.classes_):
            return None
        return chunk_of_row(X, y, self.n_features_in_, self._labels)
