"""SparseFrontierClassifier."""

from __future__ import annotations

from typing import Any

from thresher.sklearn.classifying import SparseClassifying
from thresher.sklearn.frontier import SparseFrontierEstimator


class SparseFrontierClassifier(SparseClassifying, SparseFrontierEstimator):
    """A sparse linear classifier that finds its penalty: a model for each of many from one `fit`.

    The models learn side by side and are judged by examples that they have not learned; one is chosen. It is
    the `SparseOnlineClassifier` of its penalty, bit for bit, on all examples, or with `refit=False` on those
    that were not held out. There is no `partial_fit`.

    Args:
        l1s: how many penalties, in a range found by the first examples (0.01 to 10 where no penalty leaves a
            weight after these); or an array of them. What `rule` says of its penalty is ignored. Of a rule
            without an l1 they are its own (`gravity` of ``truncated-gradient``).
        choose: ``best``, the least held-out loss; ``1se``, the sparsest whose loss is above that by no more
            than one standard error of the (paired) difference; ``within:P%``, the sparsest that loses no more
            than P % of it; ``nnz:N``, the least loss with at most N weights.
        cv: how many folds, each of which is held out once from models of its own and has of each class its
            share; or a splitter, or pairs of numbers of rows to learn and to hold out, as scikit-learn takes
            them. None: `validation_fraction` of the examples is held out, once.
        refit: learn models of all examples too, which are those of all attributes but `loss_path_` and
            `score_path_`.
        early_stopping: stop each model after `patience` passes without a better loss on what it is judged by,
            and keep its best pass; `refit` makes as many, in the mean over folds.
        rule, loss, rate, l2, eta0, passes, shuffle, batch, average, fit_intercept, class_weight: as of
            `SparseOnlineClassifier`, as are the others that are not named here. With `shuffle` a
            `sample_weight` of 2 is the example twice, one of which may be held out while the other is
            learned.

    Attributes:
        l1s_: penalties, ascending ``(n_l1s,)``.
        coef_path_: weights of all models, CSR ``(n_l1s, d)``; for more than two classes, and several labels,
            a list of n_l1s CSR ``(classes, d)``.
        intercept_path_: ``(n_l1s, classes)``, for two classes ``(n_l1s, 1)``.
        nnz_path_: weights that are not zero ``(n_l1s,)``.
        loss_path_: mean loss over all examples held out, weighted ``(n_l1s,)``.
        se_path_: standard error of the difference between this and the least of them, on the same examples
            ``(n_l1s,)``.
        score_path_: accuracy over all examples held out, each predicted by a model that has not learned it
            ``(n_l1s,)``; what `score` would give for them.
        chosen_, l1_: number and penalty of the model chosen, whose are all attributes and methods that
            `SparseOnlineClassifier` has too: `coef_`, `intercept_`, `classes_`, `predict` ...
        n_iter_: passes that it has made.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> model = SparseFrontierClassifier(random_state=0).fit(X, X[:, 0] > X[:, 1])
    >>> np.flatnonzero(model.choose_again("nnz:2").coef_).tolist()
    [0, 1]
    """

    def __init__(
        self,
        rule: Any = "ft-ftrl",
        loss: Any = "logistic",
        *,
        l1s: Any = 16,
        choose: str = "best",
        cv: int | None = None,
        refit: bool = True,
        rate: Any = None,
        l2: float | None = None,
        eta0: float | None = None,
        passes: int = 5,
        shuffle: bool = True,
        batch: int = 1,
        average: bool = False,
        fit_intercept: bool = True,
        class_weight: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 5,
        scale: str | None = None,
        admit: str | int | None = None,
        store: str | None = None,
        dtype: str = "float32",
        layout: Any = None,
        names: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.rule, self.loss, self.rate = rule, loss, rate
        self.l1s, self.choose, self.cv, self.refit = l1s, choose, cv, refit
        self.l2, self.eta0 = l2, eta0
        self.passes, self.shuffle, self.batch, self.average = passes, shuffle, batch, average
        self.fit_intercept, self.class_weight = fit_intercept, class_weight
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.patience, self.scale, self.admit = patience, scale, admit
        self.store, self.dtype, self.layout, self.names = store, dtype, layout, names
        self.n_jobs, self.verbose, self.random_state = n_jobs, verbose, random_state
