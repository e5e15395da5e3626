"""SparseStabilitySelector: stability selection as a step of a pipeline."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher.data.inputs import any_data, arrays
from thresher.learning.diagnostics import findings
from thresher.learning.model import recipe as recipes
from thresher.learning.training import progress
from thresher.options.lanes import SelectCommand
from thresher.options.option import settle
from thresher.plans import select
from thresher.plans.stability import troubles_of
from thresher.sklearn.estimator import parameters
from thresher.sklearn.inputs import Examples, RandomState

_MULTILABEL, _NUMBERS = "multilabel-indicator", ("continuous", "continuous-multioutput")


@parameters
class SparseStabilitySelector(SelectorMixin, BaseEstimator):
    """Keep the features that live in most half-samples of the rows.

    See `thresher.select` for how they are chosen, and `Selection` for what the bound assumes. Features may be
    selected for classes, several labels, one number or several numbers.

    Args:
        rule: SPEC or part.
        loss: SPEC or part; ``auto``: logistic, softmax for more than two classes, squared for numbers.
        l1: penalty of the halves; None: twice that of the rule.
        bags: number of half-samples, an even number.
        share: share of the rows in each, up to a half.
        false: at most so many false features are expected among those that are kept; None: 5, or a twentieth
            of the features if that is less.
        nonzero: a half selects so many features, those with the largest effects, whatever the units of
            columns; None: the square root of `false` times the number of features.
        passes: over the rows of each half, or ``auto``.
        shuffle: learn the rows in random order, the same in all passes.
        random_state: seed of the order and of the halves.

    Attributes:
        share_: share of the halves in which each feature lives ``(d,)``.
        mean_weight_: mean weight over all halves ``(d,)``; of several outputs, that where it is largest.
        threshold_: the share from which features are kept; infinite if none keeps the bound.
        selection_: the `thresher.plans.stability.Selection` of all features that live in a half.

    >>> X = np.random.default_rng(0).normal(size=(300, 20))
    >>> found = SparseStabilitySelector(false=0.2, random_state=0).fit(X, X[:, 3] > X[:, 7])
    >>> found.get_support(indices=True).tolist()
    [3, 7]
    """

    rule: recipes.Spec = "ft-ftrl"
    loss: recipes.Spec = "auto"
    _: KW_ONLY
    l1: float | None = None
    bags: int = 32
    share: float = 0.5
    false: float | None = None
    nonzero: int | None = None
    passes: int | str = "auto"
    shuffle: bool = True
    random_state: RandomState = None

    def __sklearn_tags__(self) -> object:
        """Sparse X; y is required, and may have several columns."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.array_api_support = True, False
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Examples, y: ArrayLike) -> Self:
        """Learn a model of each half, and choose the features that live in enough of them.

        X ``(n, d)``, dense or sparse; y ``(n,)`` or ``(n, outputs)``. ValueError for other arguments;
        `DivergedError`.
        """
        if (kind := any_data.kind_of(X)) != arrays.MATRIX:
            without = "some of whose columns hold no numbers" if kind == arrays.TABLE else "not numbers"
            wanted = f"{type(self).__name__} takes columns of numbers, and X is {kind}, {without}"
            raise ValueError(f"{wanted}: use thresher.select")
        given: Any = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True)
        matrix, (loss, outputs, labels) = csr_matrix(given[0]), _told(given[1])
        names = ("rule", "l1", "bags", "share", "false", "nonzero", "passes")
        options: dict[str, Any] = {name: getattr(self, name) for name in names} | {"outputs": outputs}
        options["loss"] = loss if isinstance(self.loss, str) and self.loss == "auto" else self.loss
        order = check_random_state(self.random_state)
        options["seed"] = int(order.randint(1 << 31))
        rows = order.permutation(len(labels)) if self.shuffle else np.arange(len(labels))
        data = matrix[rows], labels[rows]
        run = select.prepare(data, settle(SelectCommand, options), progress.Ui())
        found = run.select(run.run())
        findings.warn(troubles_of(found) if len(found.keys) else [])
        self.selection_ = found
        self.share_, self.mean_weight_ = np.zeros((2, matrix.shape[1]))
        self.share_[found.keys.astype(np.int64)] = found.share
        self.mean_weight_[found.keys.astype(np.int64)] = found.mean
        self.threshold_ = np.inf if found.threshold is None else found.threshold
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "share_")
        kept: NDArray[np.bool_] = self.share_ >= self.threshold_
        return kept


def _told(y: NDArray[np.generic]) -> tuple[str, str, NDArray[Any]]:
    """Loss and outputs for y, and labels as a model takes them."""
    kind = type_of_target(y, input_name="y")
    if kind in _NUMBERS:
        return "squared", f"values:{y.shape[1]}" if y.ndim > 1 else "one", y
    if kind == _MULTILABEL:
        return "logistic", f"labels:0-{y.shape[1] - 1}", 2 * np.asarray(y) - 1
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"only 1 class, {classes[0]}: at least 2 are needed")
    if len(classes) == 2:
        return "logistic", "one", 2 * labels - 1
    return "softmax", f"classes:0-{len(classes) - 1}", labels
