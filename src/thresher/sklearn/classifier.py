"""SparseOnlineClassifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import unique_labels

from thresher.sklearn.base import SparseOnlineEstimator
from thresher.sklearn.classifying import SparseClassifying
from thresher.sklearn.onerow import chunk_of_row

if TYPE_CHECKING:
    from thresher.learning.recipe import Spec
    from thresher.sklearn.arguments import ClassWeight, Examples, RandomState, Reading


class SparseOnlineClassifier(SparseClassifying, SparseOnlineEstimator):
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
        average: predict with the mean of the weights before each step. SGDClassifier averages the weights
            after each step, so its mean is one step ahead.
        fit_intercept: whether to learn an intercept, which is never penalised.
        class_weight: ``{class: factor}`` or ``"balanced"``; multiplies importances.
        warm_start: `fit` continues with the current model.
        early_stopping: hold out `validation_fraction` of the examples, stratified by class, or the last of
            them, as time demands (``"last:0.1"``); stop after
            `patience` passes without a lower hold-out loss, and keep the model of the best pass.
        scale: ``max-abs`` or ``standard``: divide the columns of a matrix, or the numeric columns of a table,
            by the largest magnitude or the standard deviation so far. `coef_` refers to the unscaled X.
        centre: subtract from columns that are hardly ever zero the mean of their values so far; `coef_` and
            `intercept_` refer to X as it is. None: with the default rule, and with the scale ``standard``.
        admit: learn a feature from its N-th occurrence on.
        store: ``growing``, ``direct``, ``hashed:BITS``; None: the fastest for the number of columns.
        dtype: of the state, ``float32`` or ``float64``. Data are float32.
        layout: how tables and texts become features: a dictionary such as ``{"text": "title"}`` of the
            options of `thresher.train` about columns, or a `thresher.data.layout.Layout`.
        names: keep the names of features with a weight (categories, words, dictionary keys); X is read once
            more to find them. See `get_feature_names_out`.
        n_jobs: threads that read tables.
        verbose: 1 prints a line after each pass.
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

    def __init__(
        self,
        rule: Spec = "ft-ftrl",
        loss: Spec = "logistic",
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
        class_weight: ClassWeight = None,
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
        self.fit_intercept, self.class_weight, self.warm_start = fit_intercept, class_weight, warm_start
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.patience, self.scale, self.centre, self.admit = patience, scale, centre, admit
        self.store, self.dtype, self.layout, self.names = store, dtype, layout, names
        self.n_jobs, self.verbose, self.random_state = n_jobs, verbose, random_state

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
                raise ValueError(
                    f"classes={classes!r} differ from those of the first call: {self.classes_!r}"
                )
            classes = named
        return self._partial_fit(X, y, sample_weight, classes)

    def _one_row(self, X: Any, y: Any) -> Any:
        if self.class_weight is not None or self._multilabel or not self._unnamed_columns():
            return None
        if len(self._labels) != len(self.classes_):
            return None
        return chunk_of_row(X, y, self.n_features_in_, self._labels)
