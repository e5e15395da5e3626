"""SparseFrontierClassifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from thresher.sklearn.classifier import SparseClassifying
from thresher.sklearn.frontier import SparseFrontierEstimator

if TYPE_CHECKING:
    from thresher.learning.model.recipe import Spec
    from thresher.sklearn.argument_types import ClassWeight, Columns, RandomState, Reading


class SparseFrontierClassifier(SparseClassifying, SparseFrontierEstimator):
    """A sparse linear classifier that finds its penalty: one `fit` learns a model for each of many.

    The models learn side by side and are evaluated on held-out examples; one is chosen. It is identical, bit
    for bit, to the `SparseOnlineClassifier` with its penalty on all examples, or with `refit=False` on those
    not held out. There is no `partial_fit`.

    Args:
        l1s: number of penalties, in a range found from the first examples (0.01 to 10 if no penalty leaves a
            weight after these); or an array of penalties. A penalty in `rule` is ignored. If the rule has no
            l1, its own penalty is varied (`gravity` of ``truncated-gradient``).
        choose: ``best``, the lowest held-out loss; ``1se``, the sparsest with a loss at most one standard
            error of the (paired) difference above it; ``within:P%``, the sparsest with a loss at most P %
            above it; ``nnz:N``, the lowest loss with at most N weights: if N lies between two models, `fit`
            learns again with more penalties between theirs.
        cv: number of stratified folds, each held out once from models of its own; or a splitter or pairs of
            row numbers to learn and to hold out, as in scikit-learn. None: hold out `validation_fraction`
            of the examples once.
        refit: also learn models on all examples; all attributes except `loss_path_` and `score_path_` refer
            to these.
        early_stopping: stop each model after `patience` passes without a lower held-out loss, and keep its
            best pass; `refit` makes the mean of these numbers of passes over the folds.
        rule, loss, rate, l2, eta0, passes, shuffle, batch, average, fit_intercept, class_weight: as in
            `SparseOnlineClassifier`, like all others not listed here. With `shuffle`, a `sample_weight` of 2
            is two examples; one may be held out while the other is learned.

    Attributes:
        l1s_: penalties, ascending ``(n_l1s,)``.
        coef_path_: weights of all models, CSR ``(n_l1s, d)``; for more than two classes, and several labels,
            a list of n_l1s CSR ``(classes, d)``.
        intercept_path_: ``(n_l1s, classes)``, for two classes ``(n_l1s, 1)``.
        nnz_path_: number of nonzero weights ``(n_l1s,)``.
        loss_path_: weighted mean loss over all held-out examples ``(n_l1s,)``.
        se_path_: standard error of the difference between this and the lowest loss, on the same examples
            ``(n_l1s,)``.
        score_path_: accuracy over all held-out examples, each predicted by a model that has not learned it
            ``(n_l1s,)``; as `score` computes it.
        chosen_, l1_: index and penalty of the chosen model. All attributes and methods shared with
            `SparseOnlineClassifier` (`coef_`, `intercept_`, `classes_`, `predict` ...) refer to it.
        n_iter_: passes of the chosen model.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> model = SparseFrontierClassifier(random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> np.flatnonzero(model.choose_again("nnz:2").coef_).tolist()
    [0, 1]
    """

    def __init__(
        self,
        rule: Spec = "ft-ftrl",
        loss: Spec = "logistic",
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
        class_weight: ClassWeight = None,
        early_stopping: bool = False,
        validation_fraction: float | str = 0.1,
        patience: int = 5,
        scale: str | None = None,
        centre: bool | None = None,
        admit: str | int | None = None,
        nonnegative: Columns = None,
        nonpositive: Columns = None,
        sample: str | Mapping[Any, float] | None = None,
        store: str | None = None,
        dtype: str = "float32",
        layout: Reading = None,
        names: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.rule, self.loss, self.rate, self.l1s, self.choose = rule, loss, rate, l1s, choose
        self.cv, self.refit, self.l2, self.eta0, self.passes = cv, refit, l2, eta0, passes
        self.shuffle, self.batch, self.average, self.fit_intercept = shuffle, batch, average, fit_intercept
        self.class_weight, self.early_stopping, self.patience = class_weight, early_stopping, patience
        self.validation_fraction, self.scale, self.centre = validation_fraction, scale, centre
        self.admit, self.sample, self.store, self.dtype, self.layout = admit, sample, store, dtype, layout
        self.nonnegative, self.nonpositive = nonnegative, nonpositive
        self.names, self.n_jobs, self.verbose, self.random_state = names, n_jobs, verbose, random_state
