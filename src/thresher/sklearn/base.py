"""Estimators of a single model: `fit` and `partial_fit`; weights in the form of linear models, to start from.

A single example takes a shortcut: scikit-learn's validation of a row takes 400 µs, learning it 10.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, csr_matrix, issparse, vstack
from sklearn.utils.validation import check_is_fitted

from thresher.data.chunk import Chunk
from thresher.data.inputs import arrays, matrices
from thresher.learning.model import divergence, objective
from thresher.learning.model.model import Model
from thresher.learning.model.prediction import Readout
from thresher.learning.model.warm_start import start_from
from thresher.learning.training import trainer
from thresher.sklearn import inputs
from thresher.sklearn.estimator import SparseEstimator, parameters, restored_if_broken
from thresher.sklearn.inputs import Examples
from thresher.sklearn.row_order import DrawnRows, drawn, rows_of, weighted

_CSR = (csr_matrix, csr_array)
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))  # in the machine's byte order


def chunk_of_row(X: Any, y: Any, width: int, labels: dict[Any, float] | None) -> Chunk | None:
    """A Chunk of the only example of a CSR or dense X ``(1, width)`` and y ``(1,)``; None for anything else.

    `labels` maps classes to labels; None if y is the label itself. Inputs that are not obviously valid take
    the normal route, which reports what is wrong.
    """
    kind = type(X)
    if (kind not in _CSR and kind is not np.ndarray) or X.shape != (1, width) or X.dtype not in _DTYPES:
        return None
    if type(y) not in (np.ndarray, list) or len(y) != 1:
        return None
    label = y[0]
    if labels is not None:
        label = labels.get(label) if isinstance(label, str | int | float | np.generic) else None
        if label is None:
            return None
    elif not isinstance(label, float | int) or not abs(label) < divergence.EXTREME:
        return None
    if kind is np.ndarray:
        columns = X[0].nonzero()[0]
        return matrices.one_row(columns, X[0][columns], np.uint64(width - 1), label)
    return (
        matrices.one_row(X.indices, X.data, np.uint64(width - 1), label) if X.indices.dtype.isnative else None
    )


F64 = NDArray[np.float64]


_LASTING = (
    *("rule", "loss", "rate", "l1", "l2", "eta0", "batch", "average", "fit_intercept"),
    *("scale", "centre", "admit", "store", "dtype", "layout", "sample", "calibrate"),
    *("nonnegative", "nonpositive"),
)
"""Parameters that cannot change while a model goes on learning"""
_lasting_of = attrgetter(*_LASTING)


@parameters
class SparseOnlineEstimator(SparseEstimator):
    """A single model, which can go on learning.

    Classifiers and regressors define ``_one_row``: a Chunk of a single example without names of columns, if
    that is quick to get, else None.
    """

    _: KW_ONLY
    l1: float | None = None
    warm_start: bool = False

    def fit(
        self,
        X: Examples,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Self:
        """Learn the examples in `passes` passes (fewer with `early_stopping`), forgetting any earlier fit.

        Args:
            X: ``(n, d)``: a sparse or dense matrix, a table, or a list of n dictionaries or texts.
            y: ``(n,)``, or ``(n, outputs)``.
            sample_weight: ``(n,)``, not negative.
            groups: ``(n,)``, what each example belongs to, such as its user: `early_stopping` holds out whole
                groups.
            coef_init, intercept_init: initial weights ``(outputs, d)`` and intercepts ``(outputs,)``, as in
                linear models; for a matrix X and a rule that supports warm starts.

        Warns with `TroubleWarning` of trouble with the data or the run, as `thresher.train` does.
        Raises ValueError, `DataError`, and `DivergedError` (a ValueError) if a loss or weight is not finite.
        """
        self._check_options()
        with self._unchanged_by_errors():
            going_on = self.warm_start and self.__sklearn_is_fitted__()
            self._starts = self._starts if going_on else not (coef_init is None and intercept_init is None)
            if going_on:
                self._check_goes_on()
            taken = self._taken_in(X, y, sample_weight, reset=not going_on, whole=True)
            X, matrix, weights, encoded = taken
            model = self._model if going_on else self._new_model()
            if coef_init is not None or intercept_init is not None:
                if not self._weighs_columns(model):
                    raise ValueError(
                        "coef_init works only with columns of a matrix and a store that is not hashed"
                    )
                begin_with(model, self.n_features_in_, coef_init, intercept_init)
            model.head.domain.check(matrix.labels, matrix.targets)
            whole, learned, held, seed = drawn(self, matrix, weights, groups)
            passes = self._passes_over(model.recipe, matrix, whole)
            drawn_rows = weighted(learned, encoded)
            source = DrawnRows(matrix, drawn_rows, seed if self.shuffle else None, self._class_names())
            judged = None if held is None else DrawnRows(matrix, weighted(held, encoded))
            solve = not (going_on or self._starts) and self._may_solve(matrix, learned)
            patience = self.patience if self.early_stopping else 0
            ui = self._ui()
            plan = trainer.TrainingPlan(passes, ui.report_every, patience=patience, solve=solve)
            run = trainer.Trainer(model, source, plan, order=source, holdout=judged, ui=ui)
            troubles = run.run().warnings
            self.n_iter_ = min(run.position.number, run.repetition.passes)
            self._take(X, matrix, model, not going_on)
        inputs.warn_of(self, X, troubles)
        return self

    def _take(self, X: Examples, matrix: Chunk, model: Any, new: bool) -> None:
        """Take a model that has learned X, if it is not that of the estimator."""
        if new:
            self._model, self._sparse, self._learned_by = model, None, _lasting_of(self)
        self._note_features(X, matrix, model, new)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, named: Any = None) -> Self:

        if self.early_stopping:
            raise ValueError("early_stopping should be False with partial_fit, which has no hold-out")
        first = not self.__sklearn_is_fitted__()
        self._check_options() if first else self._check_goes_on()
        before = 0 if first else self._model.examples
        quick = not first and sample_weight is None and "feature_names_in_" not in vars(self)
        chunk = self._one_row(X, y) if quick and self._kind == arrays.MATRIX else None
        if chunk is not None and not (self._model.centres and np.abs(chunk.values).max(initial=0.0) >= FAR):
            self._model.learn(chunk)
            self._tell(before)
            return self

        with self._unchanged_by_errors():
            taken = self._taken_in(X, y, sample_weight, reset=first, whole=False, named=named)
            X, matrix, weights, encoded = taken
            model = self._new_model() if first else self._model
            model.head.domain.check(matrix.labels, matrix.targets)
            rows = rows_of(matrix, weighted(matrices.in_order(weights), encoded))
            with restored_if_broken(self, matrix, weights):
                done = model.examples
                model.learn(rows)
                model.check_learned(rows, done + 1)
            self._take(X, matrix, model, first)
        self._tell(before)
        if first:
            self.n_iter_ = 1
            inputs.warn_of(self, X, [])
        return self

    def _tell(self, before: int) -> None:
        """If wanted, print the loss when the number of examples, `before` so many, passes a power of two."""
        model = self._model
        if self.verbose and model.examples.bit_length() > before.bit_length():
            loss, weights = f"progressive loss {model.tally.average:.6f}", f"{model.nonzero:,} weights"
            print(f"{model.examples:,} examples: {loss}, {weights}")

    def _check_goes_on(self) -> None:
        if not hasattr(self._model, "learn"):
            raise ValueError("the model was made from weights alone, so it cannot continue learning")
        if self._learned_by == (now := _lasting_of(self)):
            return
        name, old, new = next(
            found for found in zip(_LASTING, self._learned_by, now, strict=True) if found[1] != found[2]
        )
        raise ValueError(
            f"{name} is {new!r}, but was {old!r} when the model was trained: set it back, or fit a new"
            " model (warm_start=False)"
        )

    def _new_model(self) -> Model:

        model = Model(self._recipe())
        model.layout = self._layout_of_model()
        return model

    @property
    def t_(self) -> int:
        """One more than the number of examples learned so far, counting repetitions."""
        check_is_fitted(self)
        return 1 + int(getattr(self._model, "examples", 0))


def as_readout(head: objective.Objective, store: str, coef: Any, bias: F64) -> Readout:
    """A readout of `coef` ``(outputs, d)``, CSR, and `bias` ``(outputs,)``; keys are columns.

    A loss with a margin for each of two classes also accepts a single margin.
    """
    if head.count == 2 * coef.shape[0]:
        coef, bias = vstack([csr_matrix(coef.shape), coef]), np.r_[0.0, bias]
    columns = coef.tocsc()
    columns.eliminate_zeros()
    used: NDArray[Any] = np.flatnonzero(np.diff(columns.indptr))
    table = columns[:, used].toarray().T.astype(np.float64)
    weights = np.ascontiguousarray(table[:, 0] if head.count == 1 else table)
    return Readout(head, store, used.astype(np.uint64), weights, bias)


def begin_with(model: Model, width: int, coef: ArrayLike | None, intercept: ArrayLike | None) -> None:
    """Set weights and intercepts of a new model with `width` columns; None means zeros. ValueError."""
    outputs = model.head.count
    shapes = {
        (outputs, width),
        *([(width,)] if outputs == 1 else []),
        *([(1, width)] if outputs == 2 else []),
    }
    given: Any = csr_matrix((outputs, width)) if coef is None else coef
    if np.shape(given) not in shapes:
        raise ValueError(f"coef_init has shape {np.shape(given)}, expected {(outputs, width)}")
    table = csr_matrix(given if issparse(given) else np.atleast_2d(np.asarray(given)), dtype=np.float64)
    bias = np.zeros(table.shape[0]) if intercept is None else np.asarray(intercept, np.float64).reshape(-1)
    if bias.size != table.shape[0]:
        raise ValueError(f"intercept_init has {bias.size} numbers, expected {table.shape[0]}")
    if not (np.isfinite(table.data).all() and np.isfinite(bias).all()):
        raise ValueError("coef_init and intercept_init must be finite")
    start_from(model, as_readout(model.head, model.store, table, bias))
