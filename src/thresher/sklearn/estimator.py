"""The common part of both estimators: `fit` and `partial_fit`, reading X and y, weights, parameters, pickles.

A single example takes a shortcut: scikit-learn's validation of a row takes 400 µs, learning it 10.

Nested parameters are those of the rule, the loss and the rate. A failed `fit` or `partial_fit` changes
nothing: attributes are restored, so `classes_` and `n_features_in_` always belong to the model. The estimator
remembers the parameters it was trained with: the state of one rule means nothing to another.

A matrix of up to 2^20 columns uses a direct store, a wider one a growing store; by law 4 that makes no
difference.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, csr_matrix, issparse, vstack
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names_in, check_consistent_length, check_is_fitted

from thresher import parts
from thresher.data import layout as layouts
from thresher.data.chunk import Chunk
from thresher.data.inputs import arrays, matrices
from thresher.engine.index import HashedIndex
from thresher.learning import modelbytes
from thresher.learning.inspection import feature_names
from thresher.learning.inspection.explanation import explain
from thresher.learning.model import agreement, divergence, objective
from thresher.learning.model import recipe as recipes
from thresher.learning.model.model import Model
from thresher.learning.model.prediction import LinearPredictor
from thresher.learning.model.warm_start import start_from
from thresher.learning.training import passes, progress, shares, trainer, wide
from thresher.options.kinds import PASSES, Flag, Kind, Whole
from thresher.options.option import Option
from thresher.parts import expect, homes, rule_of
from thresher.sklearn import inputs
from thresher.sklearn.inputs import Columns, Examples, RandomState, Reading
from thresher.sklearn.row_order import MatrixSource, draw_order, rows_of

NESTED = ("rule", "loss", "rate")
"""Parameters that are parts; their own parameters are set with two underscores: ``rule__alpha``"""


F64 = NDArray[np.float64]
_PASSES = 5
"""Passes over the examples if nobody says and the rule is not automatic."""
DENSE = 1 << 20
"""`coef_` with more entries is sparse by default"""
_DIRECT = 1 << 20
"""Largest number of columns for the direct store; beyond it, memory follows the number of weights"""
_CSR = (csr_matrix, csr_array)
_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))  # in the machine's byte order
_LASTING = (
    *("rule", "loss", "rate", "l1", "l2", "eta0", "batch", "average", "fit_intercept"),
    *("scale", "centre", "admit", "store", "dtype", "layout", "sample", "calibrate"),
    *("nonnegative", "nonpositive"),
)
"""Parameters that cannot change while a model goes on learning"""
_lasting_of = attrgetter(*_LASTING)
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("shuffle", "fit_intercept", "early_stopping", "warm_start", "names"), Flag()),
    "passes": PASSES,
    "patience": Whole(1),
}
"""Those that no `Recipe` checks"""


parameters = dataclass(eq=False, repr=False, match_args=False)
"""Decorator of estimators: `__init__` takes the fields of the class and its bases, and does nothing else."""


@parameters
class SparseEstimator(BaseEstimator):
    """A thresher model as an estimator; its fields are the parameters that all have.

    Classifiers and regressors define ``_encode``, which encodes y and, with `reset`, sets the classes or the
    number of outputs of the model (`whole` is True in `fit`; `named` are the classes passed to
    `partial_fit`); ``_outputs``, the SPEC of the outputs; and ``_one_row``: a Chunk of a single example
    without names of columns, if that is quick to get, else None.
    """

    rule: recipes.Spec = "ft-ftrl"
    loss: recipes.Spec = "logistic"
    _: KW_ONLY
    rate: recipes.Spec | None = None
    l1: float | None = None
    l2: float | None = None
    eta0: float | None = None
    passes: int | str = "auto"
    shuffle: bool = True
    batch: int = 1
    average: bool = False
    fit_intercept: bool = True
    warm_start: bool = False
    early_stopping: bool = False
    validation_fraction: float | str = 0.1
    patience: int = 5
    scale: str | None = None
    centre: bool | None = None
    admit: str | int | None = None
    nonnegative: Columns = None
    nonpositive: Columns = None
    store: str | None = None
    dtype: str = "float32"
    layout: Reading = None
    names: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    random_state: RandomState = None

    _sparse: bool | None = field(init=False)
    _starts = False
    """whether `fit` was given initial weights"""

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
        with self._restore_on_error():
            going_on = self.warm_start and self.__sklearn_is_fitted__()
            self._starts = self._starts if going_on else not (coef_init is None and intercept_init is None)
            if going_on:
                self._check_goes_on()
            X, matrix, weights, factors = self._take_rows(X, y, sample_weight, reset=not going_on, whole=True)
            model = self._model if going_on else self._new_model()
            if coef_init is not None or intercept_init is not None:
                if not self._weighs_columns(model):
                    raise ValueError("coef_init is for columns of a matrix, and no hashed store")
                begin_with(model, self.n_features_in_, coef_init, intercept_init)
            model.head.domain.check(matrix.labels, matrix.targets)
            whole, learned, held, seed = draw_order(self, matrix, weights, groups)
            automatic = model.recipe.rule_part.AUTOMATIC
            if self.calibrate and not automatic and self.passes not in (1, passes.AUTO):
                raise ValueError("calibrate=True learns from margins of examples that are new: use passes=1")
            count = 1 if self.calibrate else _PASSES
            if self.passes != passes.AUTO:
                count = int(self.passes)
            elif automatic:
                count = passes.passes_over(matrix, whole.rows)
            source = MatrixSource(matrix, learned, factors, seed, self._class_names())
            judged = None if held is None else MatrixSource(matrix, held, factors)
            lengths = matrix.indptr[learned.rows + 1] - matrix.indptr[learned.rows]
            new = self.passes == passes.AUTO and not (going_on or self._starts)
            solve = new and wide.may_be_wide(len(lengths), int(lengths.sum()))
            patience = int(self.patience) if self.early_stopping else 0
            ui = progress.ProgressLines(print) if self.verbose else progress.Ui()
            every = 0 if self.verbose else None
            plan = trainer.TrainingPlan(count, every, patience=patience, solve=solve)
            run = trainer.Trainer(model, source, plan, order=source, holdout=judged, ui=ui)
            troubles = run.run().warnings
            self.n_iter_ = min(run.state.position.number, run.repetition.passes)
            self._take(X, matrix, model, not going_on)
        inputs.warn_of(self, X, troubles)
        return self

    def _take(self, X: Examples, matrix: Chunk, model: Any, new: bool) -> None:
        """Take a model that has learned X, if it is `new`, with the columns that it knows; keep names."""
        if new:
            self._model, self._sparse, self._learned_by = model, None, _lasting_of(self)
            if self._kind == arrays.MATRIX:
                low, last = int(matrix.keys.min(initial=self.n_features_in_)), self.n_features_in_ - 1
                model.numbering = agreement.Numbering(low, last, True)
                model.matches_names = hasattr(self, "feature_names_in_")
        if self.names:
            inputs.keep_names(self, X, model)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, named: Any = None) -> Self:

        if self.early_stopping:
            raise ValueError("early_stopping should be False with partial_fit, which has no hold-out")
        first = not self.__sklearn_is_fitted__()
        self._check_options() if first else self._check_goes_on()
        before = 0 if first else self._model.examples
        quick = not first and sample_weight is None and "feature_names_in_" not in vars(self)
        chunk = self._one_row(X, y) if quick and self._kind == arrays.MATRIX else None
        if chunk is not None and not (
            self._model.centres and np.abs(chunk.values).max(initial=0.0) >= arrays.FAR
        ):
            self._model.learn(chunk)
            self._tell(before)
            return self

        with self._restore_on_error():
            taken = self._take_rows(X, y, sample_weight, reset=first, whole=False, named=named)
            X, matrix, weights, factors = taken
            model = self._new_model() if first else self._model
            model.head.domain.check(matrix.labels, matrix.targets)
            rows = rows_of(matrix, matrices.in_order(weights), factors)
            # numbers so large that they can break weights: the model is restored after an error
            numbers, done = (matrix.values, matrix.labels, matrix.targets, weights), model.examples
            large = any(one is not None and (np.abs(one) >= divergence.EXTREME).any() for one in numbers)
            kept = copy.copy(model) if large and not first else None
            try:
                model.learn(rows)
                model.check_learned(rows, done + 1)
            except divergence.DivergedError:
                if kept is not None:
                    model.__dict__.update(vars(kept))  # in place: others may refer to it
                raise
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
        anew = "set it back, or fit a new model (warm_start=False)"
        raise ValueError(f"{name} is {new!r}, but was {old!r} when the model was trained: {anew}")

    def _new_model(self) -> Model:

        recipe = recipes.Recipe(
            self._rule(),
            self.loss,
            outputs=self._outputs(),
            batch=self.batch,
            average=self.average,
            scale=self.scale,
            centre=self.centres(),
            admit=self.admit,
            store=self._store(),
            intercept=self.fit_intercept,
            dtype=self.dtype,
            sample=None if self.sample is None else self._sampled(),
            calibrate=self.calibrate,
            nonnegative=inputs.columns_listed(self, "nonnegative", self.nonnegative),
            nonpositive=inputs.columns_listed(self, "nonpositive", self.nonpositive),
        )
        model = Model(recipe)
        model.layout = self._layout_of_model()
        return model

    @property
    def t_(self) -> int:
        """One more than the number of examples learned so far, counting repetitions."""
        check_is_fitted(self)
        return 1 + int(getattr(self._model, "examples", 0))

    @contextmanager
    def _restore_on_error(self) -> Iterator[None]:
        """Restore the attributes if a call fails, so that a fitted model does not change."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _check_options(self) -> None:

        for name, kind in _KINDS.items():
            Option(kind, name=name).take(getattr(self, name))
        if isinstance(self.n_jobs, bool) or not isinstance(self.n_jobs, int | np.integer | None):
            raise ValueError(f"n_jobs must be a whole number or None, not {self.n_jobs!r}")
        held = self.validation_fraction
        share = isinstance(held, float | np.floating) and 0 < held < 1
        last = str(held).startswith("last:") and shares.part_of(held)
        if self.early_stopping and not (share or last):
            raise ValueError(f"validation_fraction must be a share, such as 0.1 or 'last:0.1', not {held!r}")

    def _rule(self) -> Any:

        return rule_of(self.rule, self.rate, self.eta0, l1=self.l1, l2=self.l2)

    def centres(self) -> bool:
        """Whether columns are centred."""
        if self.centre is None and self._starts:
            return False  # given weights are for values as they are
        return recipes.is_centred(self._rule(), self.scale, self.centre)

    def _store(self) -> str:
        if self.store is not None:
            return str(self.store)
        return "direct" if self._kind == arrays.MATRIX and self.n_features_in_ <= _DIRECT else "growing"

    def _take_rows(
        self, X: object, y: object, sample_weight: Any, *, reset: bool, whole: bool, named: object = None
    ) -> tuple[Any, Chunk, F64, F64 | None]:
        """X, its examples, importances and their factors; `reset` as for `inputs.read`, `_encode`."""
        X, matrix = inputs.read(self, X, reset=reset)
        if self.names:
            feature_names.check_nameable(self._store())
        weights = inputs.importances(sample_weight, len(matrix))
        if y is None:
            raise ValueError("training requires y to be passed, but the target y is None")
        check_consistent_length(weights, y)
        encoded = self._encode(y, weights, reset, whole, named)
        return X, replace(matrix, labels=encoded.labels, targets=encoded.targets), weights, encoded.factors

    def _margins(self, X: Examples) -> F64:
        check_is_fitted(self)
        margins: F64 = self._model.predict(inputs.read(self, X, reset=False)[1])
        return margins

    def explain(self, X: Examples, top: int | None = None) -> list[dict[str, Any]]:
        """Why each row is predicted so: see `thresher.Model.explain`. The labels are those of ``predict``."""
        shown = None if top is None else Option(Whole(1), name="top").take(top)
        check_is_fitted(self)
        by_column = self._kind == arrays.MATRIX
        names = dict(enumerate(getattr(self, "feature_names_in_", ()) if by_column else ()))
        explained = explain(self._model, inputs.read(self, X, reset=False)[1], names)
        if self._model.head.outputs.kind == "classes":
            explained.responses.given = self._class_names()
        labels = self.predict(X).tolist()
        return [{**one, "label": label} for one, label in zip(explained.told(shown), labels, strict=True)]

    @property
    def model_(self) -> Any:
        """The `Model` that predicts (a `LinearPredictor` if there are only weights); not a copy.

        `thresher.save`, `thresher.evaluate` and ``init`` of `thresher.train` accept the estimator instead.
        """
        check_is_fitted(self)
        return self._model

    def _class_names(self) -> list[str]:
        return [*map(str, vars(self).get("classes_", ()))]

    def _layout_of_model(self) -> layouts.SettledLayout | None:
        """How columns become features, and the words of the classes, for the model file."""
        layout, classes = vars(self).get("_layout"), vars(self).get("classes_")
        if classes is None or classes.dtype.kind != "U" or not all(classes):
            return layout
        return replace(layout or layouts.SettledLayout(), classes=tuple(classes.tolist()))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model."""
        return "_model" in vars(self)

    def _shown(self, numbers: F64) -> F64:
        """Weights or intercepts ``(outputs, ...)`` in the form of scikit-learn."""
        return numbers

    @property
    def coef_(self) -> Any:
        """Weights ``(outputs, d)``, ``(1, d)`` for one output, float64, for the unscaled X; a copy.

        Sparse after `sparsify`, dense after `densify`, otherwise sparse above a million entries.
        For tables with non-numeric columns, dictionaries, texts, and with a hashed store, columns correspond
        to `feature_keys_`.
        """
        predictor = self.model_.predictor()
        by_column = self._weighs_columns()
        width = self.n_features_in_ if by_column else len(predictor.keys)
        sparse = self._sparse
        if sparse is None:
            sparse = width * len(self._shown(predictor.bias)) > DENSE
        if sparse and not predictor.unmet.any():
            weights = self._shown(predictor.weights_of(predictor.keys).T)
            rows, stored = np.nonzero(weights)
            columns = predictor.keys[stored].astype(np.int64) if by_column else stored
            return csr_matrix((weights[rows, stored], (rows, columns)), (len(weights), width))
        keys = np.arange(width, dtype=np.uint64) if by_column else predictor.keys
        whole = np.ascontiguousarray(self._shown(predictor.weights_of(keys).T))
        return csr_matrix(whole) if sparse else whole

    def _weighs_columns(self, model: Model | None = None) -> bool:
        """Whether feature keys are columns of X, for `model` or the estimator's own model."""
        return self._kind == arrays.MATRIX and not (model or self._model).store.startswith(HashedIndex.NAME)

    @property
    def intercept_(self) -> F64:
        """Intercepts ``(outputs,)``."""
        return self._shown(self.model_.predictor().bias.astype(np.float64))

    @property
    def feature_keys_(self) -> NDArray[np.uint64]:
        """Keys, ascending, of the features with a weight: columns of a matrix, else hashes of names.

        With a hashed store, numbers of rows.
        """
        keys: NDArray[np.uint64] = self.model_.predictor().keys
        return keys

    def sparsify(self) -> Self:
        """Make `coef_` sparse."""
        check_is_fitted(self)
        self._sparse = True
        return self

    def densify(self) -> Self:
        """Make `coef_` dense."""
        check_is_fitted(self)
        self._sparse = False
        return self

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the features with a weight for some output: those `SelectFromModel` would keep.

        For categories, words and dictionaries, set `names=True` or call `thresher.name_features` first;
        otherwise, and with a hashed store, it raises ValueError: see `feature_keys_`.
        """
        check_is_fitted(self)
        if not self._weighs_columns():
            predictor = self._model.predictor()
            feature_names.check_nameable(predictor.store)
            known = feature_names.known_names(predictor)
            keys = predictor.keys[
                predictor.weights.reshape(len(predictor.keys), predictor.head.count).any(axis=1)
            ].tolist()
            if predictor.names is None and not all(key in known for key in keys):
                how = "fit with names=True, or find them with thresher.name_features(model, X)"
                raise ValueError(f"the names of these features were not kept, as feature_keys_ are: {how}")
            return np.array([known.get(key, str(key)) for key in keys], object)
        coef = self.coef_
        weighs = np.unique((coef if issparse(coef) else np.atleast_2d(coef)).nonzero()[1])
        return np.asarray(_check_feature_names_in(self, input_features)[weighs])

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Parameters; with `deep` also those of rule, loss and rate, as ``rule__alpha``."""
        params: dict[str, object] = super().get_params(deep=False)
        for name in NESTED if deep else ():
            with suppress(ValueError):  # it is no part: fit says so
                made = parts.make(name, params[name])
                fields = parts.parameters(type(made))
                params |= {f"{name}__{field}": getattr(made, field) for field in fields}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of rule, loss and rate as ``rule__alpha=0.1``. ValueError if unknown."""
        own = {name: value for name, value in params.items() if name.partition("__")[0] == name}
        nested: dict[str, dict[str, object]] = {}
        for name in params.keys() - own.keys():
            part, _, field = name.partition("__")
            if part not in NESTED:
                raise ValueError(f"no parameter {name!r}: {', '.join(NESTED)} have parameters of their own")
            nested.setdefault(part, {})[field] = params[name]
        super().set_params(**own)
        for name, fields in nested.items():
            setattr(self, name, parts.changed(name, getattr(self, name), fields))
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Models as the bytes of model files, and where parts of your own are; else unchanged."""
        state = dict(super().__getstate__())
        if own := homes():
            state["_homes"] = own
        if "_model" in state:
            state["_model"] = modelbytes.as_bytes(state["_model"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; `ModelFileError` for damaged bytes."""
        state = dict(state)
        expect(state.pop("_homes", {}))
        if "_model" in state:
            state["_model"] = modelbytes.from_bytes(state["_model"], "the model in the estimator")
        super().__setstate__(state)


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


def as_predictor(head: objective.Objective, store: str, coef: Any, bias: F64) -> LinearPredictor:
    """A predictor of `coef` ``(outputs, d)``, CSR, and `bias` ``(outputs,)``; keys are columns.

    A loss with a margin for each of two classes also accepts a single margin.
    """
    if head.count == 2 * coef.shape[0]:
        coef, bias = vstack([csr_matrix(coef.shape), coef]), np.r_[0.0, bias]
    columns = coef.tocsc()
    columns.eliminate_zeros()
    used: NDArray[Any] = np.flatnonzero(np.diff(columns.indptr))
    table = columns[:, used].toarray().T.astype(np.float64)
    weights = np.ascontiguousarray(table[:, 0] if head.count == 1 else table)
    return LinearPredictor(head, store, used.astype(np.uint64), weights, bias)


def begin_with(model: Model, width: int, coef: ArrayLike | None, intercept: ArrayLike | None) -> None:
    """Set weights and intercepts of a new model with `width` columns; None means zeros. ValueError."""
    outputs = model.head.count
    shapes = (outputs, width), {1: (width,), 2: (1, width)}.get(outputs, (outputs, width))
    given: Any = csr_matrix((outputs, width)) if coef is None else coef
    if np.shape(given) not in shapes:
        raise ValueError(f"coef_init has shape {np.shape(given)}, expected {(outputs, width)}")
    table = csr_matrix(given if issparse(given) else np.atleast_2d(np.asarray(given)), dtype=np.float64)
    bias = np.zeros(table.shape[0]) if intercept is None else np.asarray(intercept, np.float64).reshape(-1)
    if bias.size != table.shape[0]:
        raise ValueError(f"intercept_init has {bias.size} numbers, expected {table.shape[0]}")
    start_from(model, as_predictor(model.head, model.store, table, bias))
