"""The common part of all estimators: reading X and y, weights, parameters, pickling.

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
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
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
from thresher.learning.model import agreement, divergence
from thresher.learning.model import recipe as recipes
from thresher.learning.model.model import Model
from thresher.learning.training import passes, progress, shares, wide
from thresher.options.checks import check_flag, check_whole
from thresher.parts import expect, homes, rule_of
from thresher.sklearn import inputs
from thresher.sklearn.inputs import Columns, Examples, RandomState, Reading

NESTED = ("rule", "loss", "rate")
"""Parameters that are parts; their own parameters are set with two underscores: ``rule__alpha``"""


F64 = NDArray[np.float64]
F32 = NDArray[np.float32]
_PASSES = 5
"""Passes over the examples if nobody says and the rule is not automatic."""
_MOST_SEED = 2**32 - 1
"""The limit of NumPy's RandomState"""
DENSE = 1 << 20
"""`coef_` with more entries is sparse by default"""
_DIRECT = 1 << 20
"""Largest number of columns for the direct store; beyond it, memory follows the number of weights"""


class EncodedLabels(NamedTuple):
    """Labels as the model needs them, and the factor of each importance."""

    labels: F32
    targets: F32 | None = None
    factors: F64 | None = None


parameters = dataclass(eq=False, repr=False, match_args=False)
"""Decorator of estimators: `__init__` takes the fields of the class and its bases, and does nothing else."""


@parameters
class SparseEstimator(BaseEstimator):
    """A thresher model as an estimator; its fields are the parameters that all have.

    Classifiers and regressors define ``_encoded``, which encodes y and, with `reset`, sets the classes or the
    number of outputs of the model (`whole` is True in `fit`; `named` are the classes passed to
    `partial_fit`), and ``_outputs``, the SPEC of the outputs.
    """

    rule: recipes.Spec = "ft-ftrl"
    loss: recipes.Spec = "logistic"
    _: KW_ONLY
    rate: recipes.Spec | None = None
    l2: float | None = None
    eta0: float | None = None
    passes: int | str = "auto"
    shuffle: bool = True
    batch: int = 1
    average: bool = False
    fit_intercept: bool = True
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

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        """Restore the attributes if a call fails, so that a fitted model does not change."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _check_options(self) -> None:

        passes.check_passes(self.passes)
        for name in ("patience", "batch"):
            check_whole(name, getattr(self, name), 1)
        flags = ("shuffle", "average", "fit_intercept", "early_stopping", "warm_start", "names", "calibrate")
        for name in flags:
            check_flag(name, getattr(self, name))
        if isinstance(self.random_state, int | float | str | np.number):
            check_whole("random_state", self.random_state, 0, _MOST_SEED)
        if self.n_jobs is not None and (
            isinstance(self.n_jobs, bool) or not isinstance(self.n_jobs, int | np.integer)
        ):
            raise ValueError(f"n_jobs must be a whole number or None, not {self.n_jobs!r}")
        held = self.validation_fraction
        share = isinstance(held, float | np.floating) and 0 < held < 1
        if self.early_stopping and not (share or shares.is_last(held)):
            raise ValueError(
                "validation_fraction must be a number between 0 and 1, or the last rows, such as 'last:0.1',"
                f" not {held!r}"
            )

    def _rule(self) -> Any:

        return rule_of(self.rule, self.rate, self.eta0, l1=getattr(self, "l1", None), l2=self.l2)

    def _recipe(self) -> recipes.Recipe:

        return recipes.Recipe(
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

    def centres(self) -> bool:
        """Whether columns are centred."""
        if self.centre is None and self._starts:
            return False  # given weights are for values as they are
        return recipes.is_centred(self._rule(), self.scale, self.centre)

    def _passes_over(self, recipe: recipes.Recipe, matrix: Chunk, whole: matrices.Draw) -> int:
        """The number of passes over the examples of a matrix, of which `whole` is a draw of all."""
        automatic = passes.is_automatic(recipe)
        if self.calibrate and not automatic:
            if self.passes not in (1, passes.AUTO):
                raise ValueError("calibrate=True learns from margins of examples that are new: use passes=1")
            return 1
        if self.passes != passes.AUTO:
            return int(self.passes)
        return passes.passes_over(matrix, whole.rows) if automatic else _PASSES

    def _may_solve(self, matrix: Chunk, whole: matrices.Draw) -> bool:
        """Whether a new model of the examples may be solved in memory, as far as their numbers tell."""
        lengths = matrix.indptr[whole.rows + 1] - matrix.indptr[whole.rows]
        return self.passes == passes.AUTO and wide.may_be_wide(len(lengths), int(lengths.sum()))

    def _ui(self) -> progress.Ui:
        """Who is told how training goes: nobody, unless the estimator is `verbose`."""
        if not self.verbose:
            return progress.Ui()
        ui = progress.ProgressLines(print)
        ui.report_every = 0
        return ui

    def _store(self) -> str:
        if self.store is not None:
            return str(self.store)
        return "direct" if self._kind == arrays.MATRIX and self.n_features_in_ <= _DIRECT else "growing"

    def _taken_in(
        self, X: object, y: object, sample_weight: Any, *, reset: bool, whole: bool, named: object = None
    ) -> tuple[Any, Chunk, F64, EncodedLabels]:
        """X, features, importances, labels; with `reset`, of a new model: see `inputs.read`, `_encoded`."""
        X, matrix = inputs.read(self, X, reset=reset)
        if self.names:
            feature_names.check_nameable(self._store())
        weights = inputs.importances(sample_weight, len(matrix))
        if y is None:
            raise ValueError("training requires y to be passed, but the target y is None")
        check_consistent_length(weights, y)
        encoded = self._encoded(y, weights, reset, whole, named)
        return X, replace(matrix, labels=encoded.labels, targets=encoded.targets), weights, encoded

    def _note_features(self, X: object, matrix: Chunk, model: Model, new: bool) -> None:
        """Note of a model that learned X which columns it knows, if it is `new`, and keep names."""
        if new and self._kind == arrays.MATRIX:
            low, last = int(matrix.keys.min(initial=self.n_features_in_)), self.n_features_in_ - 1
            model.numbering = agreement.Numbering(low, last, True)
            model.matches_names = hasattr(self, "feature_names_in_")
        if self.names:
            inputs.keep_names(self, X, model)

    def _rows(self, X: Examples) -> Chunk:

        check_is_fitted(self)
        return inputs.read(self, X, reset=False)[1]

    def _margins(self, X: Examples) -> F64:
        margins: F64 = self._model.predict(self._rows(X))
        return margins

    def explain(self, X: Examples, top: int | None = None) -> list[dict[str, Any]]:
        """Why each row is predicted so: see `thresher.Model.explain`. The labels are those of ``predict``."""
        if top is not None:
            check_whole("top", top, 1)
        rows, by_column = self._rows(X), self._kind == arrays.MATRIX
        names = dict(enumerate(getattr(self, "feature_names_in_", ()) if by_column else ()))
        explained = explain(self._model, rows, names)
        if self._model.head.outputs.kind == "classes":
            explained.responses.given = self._class_names()
        labels = self.predict(X).tolist()
        return [{**one, "label": label} for one, label in zip(explained.told(top), labels, strict=True)]

    @property
    def model_(self) -> Any:
        """The `Model` that predicts (a `Readout` if there are only weights); not a copy.

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
        readout = self.model_.readout()
        by_column = self._weighs_columns()
        width = self.n_features_in_ if by_column else len(readout.keys)
        sparse = self._sparse
        if sparse is None:
            sparse = width * len(self._shown(readout.bias)) > DENSE
        if sparse and not readout.unmet.any():
            weights = self._shown(readout.weights_of(readout.keys).T)
            rows, stored = np.nonzero(weights)
            columns = readout.keys[stored].astype(np.int64) if by_column else stored
            return csr_matrix((weights[rows, stored], (rows, columns)), (len(weights), width))
        keys = np.arange(width, dtype=np.uint64) if by_column else readout.keys
        whole = np.ascontiguousarray(self._shown(readout.weights_of(keys).T))
        return csr_matrix(whole) if sparse else whole

    def _weighs_columns(self, model: Model | None = None) -> bool:
        """Whether feature keys are columns of X, for `model` or the estimator's own model."""
        return self._kind == arrays.MATRIX and not (model or self._model).store.startswith(HashedIndex.NAME)

    @property
    def intercept_(self) -> F64:
        """Intercepts ``(outputs,)``."""
        return self._shown(self.model_.readout().bias.astype(np.float64))

    @property
    def feature_keys_(self) -> NDArray[np.uint64]:
        """Keys, ascending, of the features with a weight: columns of a matrix, else hashes of names.

        With a hashed store, numbers of rows.
        """
        keys: NDArray[np.uint64] = self.model_.readout().keys
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
            return feature_names.names_with_weight(self._model.readout())
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
                raise ValueError(
                    f"no parameter {name!r}: only {', '.join(NESTED)} have parameters of their own"
                )
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


@contextmanager
def restored_if_broken(estimator: SparseEstimator, matrix: Chunk, weights: F64) -> Iterator[None]:
    """Restore the model after an error, if numbers are so large that they can break weights."""
    large = divergence.is_extreme(matrix.values, matrix.labels, matrix.targets, weights)
    kept = copy.copy(estimator._model) if large and "_model" in vars(estimator) else None
    try:
        yield
    except divergence.DivergedError:
        if kept is not None:
            estimator._model.__dict__.update(vars(kept))  # in place: others may refer to it
        raise
