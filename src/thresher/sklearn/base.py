"""What classifier and regressor have in common: fitting, weights, what is kept in a pickle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in, check_consistent_length, check_is_fitted

from thresher.sklearn import inputs
from thresher.sklearn.inputs import MATRIX, Numbers
from thresher.sklearn.parameters import NESTED, nested_of

F64 = NDArray[np.float64]
F32 = NDArray[np.float32]
DENSE = 1 << 20
"""`coef_` of more entries is sparse unless asked otherwise"""
_LASTING = (
    *("rule", "loss", "rate", "l1", "l2", "eta0", "batch", "average", "fit_intercept"),
    *("scale", "admit", "store", "dtype", "layout"),
)
"""Parameters that a model has for life: it cannot go on learning with others"""
_lasting_of = attrgetter(*_LASTING)
_DIRECT = 1 << 20
"""Columns up to which a weight lies where its column is; beyond, memory follows the weights that there are"""


class EncodedLabels(NamedTuple):
    """What y says: labels as the model wants them, and by what the importance of each is multiplied."""

    labels: F32
    targets: F32 | None = None
    factors: F64 | None = None


class SparseOnlineEstimator(BaseEstimator):
    """A thresher model as an estimator."""

    _model: Any
    _kind: str
    _sparse: bool | None

    def _encoded(self, y: Any, weights: F64, reset: bool, whole: bool, named: Any = None) -> EncodedLabels:
        """What y says; with `reset` its classes, or number of outputs, are those of the model.

        It is `whole` in `fit`. `named` are the classes given to `partial_fit`.
        """
        raise NotImplementedError

    def _outputs(self) -> str:
        """SPEC of the outputs."""
        raise NotImplementedError

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, coef_init: Any = None, intercept_init: Any = None
    ) -> Self:
        """Learn from `passes` passes over the examples (fewer with `early_stopping`); forget what was before.

        X is ``(n, d)``: a sparse matrix or array, anything dense, a table, or n dictionaries or texts;
        y is ``(n,)``, or ``(n, outputs)``; `sample_weight` ``(n,)`` is not negative. Where X is a matrix and
        the rule can place weights, a new model begins with `coef_init` ``(outputs, d)`` and `intercept_init`
        ``(outputs,)`` if they are given, as those of linear models. Raises ValueError, `DataError`, and
        `DivergedError` (a ValueError) when a loss or a weight is no longer finite.
        """
        self._check_options()
        with self._unchanged_by_errors():
            self._fit(X, y, sample_weight, coef_init, intercept_init)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, coef: Any, intercept: Any) -> None:
        from thresher.data.matrices import MatrixSource, as_copies, by_content, in_order
        from thresher.learning.training import Plan, Trainer
        from thresher.sklearn.verbose import PassPrinter

        going_on = self.warm_start and self.__sklearn_is_fitted__()
        if going_on:
            self._check_goes_on()
        numbers = inputs.read(self, X, reset=not going_on)
        weights = inputs.importances(sample_weight, numbers.size)
        encoded = self._encoded(_checked(y, numbers), weights, not going_on, True)
        model = self._model if going_on else self._new_model()
        if coef is not None or intercept is not None:
            self._begin_with(model, coef, intercept)
        matrix = self._matrix(numbers, encoded, model)
        draw = as_copies(weights) if self.shuffle else in_order(weights)
        seed, held = int(check_random_state(self.random_state).randint(1 << 31)), None
        if self.shuffle or self.early_stopping:
            mixed = by_content(matrix, draw, seed)
            if self.early_stopping:
                apart = self._held_out(matrix.labels[draw.rows[mixed]])
                held = MatrixSource(matrix, _weighted(draw.take(mixed[apart]), encoded))
                mixed = mixed[~apart]
            draw = draw.take(mixed if self.shuffle else np.sort(mixed))
        source = MatrixSource(matrix, _weighted(draw, encoded), seed if self.shuffle else None, self.passes)
        if going_on:
            source.prepare()
        plan = Plan(self.passes, None, patience=self.patience if self.early_stopping else 0)
        trainer = Trainer(
            model, source, plan, order=source, holdout=held, watcher=PassPrinter(model, self.verbose)
        )
        trainer.run()
        self.n_iter_ = min(trainer.position.number, self.passes)
        if not going_on:
            self._take(model)

    def _begin_with(self, model: Any, coef: Any, intercept: Any) -> None:
        from thresher.sklearn.given import begin_with

        if not self._weighs_columns(model):
            raise ValueError("coef_init is for the columns of a matrix, and a store that is not hashed")
        begin_with(model, self.n_features_in_, coef, intercept)

    def _take(self, model: Any) -> None:
        self._model, self._sparse, self._learned_by = model, None, _lasting_of(self)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, named: Any = None) -> Self:
        if self.early_stopping:
            raise ValueError("early_stopping should be False with partial_fit, which holds nothing out")
        first = not self.__sklearn_is_fitted__()
        self._check_options() if first else self._check_goes_on()
        if not first and sample_weight is None and (chunk := self._one_row(X, y)) is not None:
            self._model.learn(chunk)
            return self
        with self._unchanged_by_errors():
            self._learn(X, y, sample_weight, first, named)
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, first: bool, named: Any) -> None:
        from thresher.data.matrices import MatrixSource, in_order
        from thresher.sklearn.restoring import restored_if_broken

        numbers = inputs.read(self, X, reset=first)
        weights = inputs.importances(sample_weight, numbers.size)
        encoded = self._encoded(_checked(y, numbers), weights, first, False, named)
        model = self._new_model() if first else self._model
        matrix = self._matrix(numbers, encoded, model)
        source = MatrixSource(matrix, _weighted(in_order(weights), encoded))
        source.prepare()
        with restored_if_broken(self, matrix, weights):
            for chunk in source.chunks():
                before = model.examples
                model.learn(chunk)
                model.check_learned(chunk, before + 1)
        if first:
            self._take(model)
            self.n_iter_ = 1

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        """Undo what a call that fails has noted about X and y: a fitted model stays as it was."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _check_goes_on(self) -> None:
        if not hasattr(self._model, "learn"):
            raise ValueError("the model was made of weights alone: it has no state to go on learning from")
        if self._learned_by == (now := _lasting_of(self)):
            return
        name, old, new = next(
            found for found in zip(_LASTING, self._learned_by, now, strict=True) if found[1] != found[2]
        )
        raise ValueError(
            f"{name} is {new!r} now, but it was {old!r} when the model was learned: set it back, or fit a new"
            " model (warm_start=False)"
        )

    def _one_row(self, X: Any, y: Any) -> Any:
        """A Chunk of the only example, where it can be had quickly."""
        raise NotImplementedError

    def _check_options(self) -> None:
        from thresher.learning.checks import check_flag, check_whole

        for name in ("passes", "patience", "batch"):
            check_whole(name, getattr(self, name), 1)
        for name in ("shuffle", "average", "fit_intercept", "warm_start", "early_stopping"):
            check_flag(name, getattr(self, name))
        held = self.validation_fraction
        if self.early_stopping and not (isinstance(held, float | np.floating) and 0 < held < 1):
            raise ValueError(f"validation_fraction must be a number between 0 and 1, not {held!r}")

    def _recipe(self) -> Any:
        """What the parameters say of the model."""
        from thresher.learning.recipe import Recipe
        from thresher.parts import rule_of

        return Recipe(
            rule_of(self.rule, self.rate, self.eta0, l1=self.l1, l2=self.l2),
            self.loss,
            outputs=self._outputs(),
            batch=self.batch,
            average=self.average,
            scale=self.scale,
            admit=self.admit,
            store=self._store(),
            intercept=self.fit_intercept,
            dtype=self.dtype,
        )

    def _new_model(self) -> Any:
        from thresher.learning.model import Model

        model = Model(self._recipe())
        model.layout = vars(self).get("_layout")
        return model

    def _store(self) -> str:
        if self.store is not None:
            return str(self.store)
        return "direct" if self._kind == MATRIX and self.n_features_in_ <= _DIRECT else "growing"

    def _matrix(self, numbers: Numbers, encoded: EncodedLabels, model: Any) -> Any:
        from thresher.data.labels import check_labels
        from thresher.data.matrices import Matrix

        check_labels(encoded.labels, model.head.domain, encoded.targets)
        last = [np.uint64(self.n_features_in_ - 1)] if self._kind == MATRIX else []
        return Matrix(*numbers, encoded.labels, encoded.targets, *last)

    def _held_out(self, labels: F32) -> NDArray[np.bool_]:
        """Which to hold out: at even distances once they are sorted by label, so of each its share."""
        count = len(labels)
        wanted = max(1, round(count * self.validation_fraction))
        if wanted == count:
            raise ValueError(f"validation_fraction leaves none of {count} examples to learn from")
        places = ((np.arange(wanted) + 0.5) * count / wanted).astype(np.int64)
        apart = np.zeros(count, bool)
        apart[np.argsort(labels, kind="stable")[places]] = True
        return apart

    def _margins(self, X: Any) -> F64:
        """Margins ``(n,)``, or ``(n, outputs)``."""
        from thresher.data.matrices import Matrix, MatrixSource, in_order

        check_is_fitted(self)
        numbers = inputs.read(self, X, reset=False)
        none = np.zeros(numbers.size, np.float32)
        source = MatrixSource(Matrix(*numbers, none), in_order(np.ones(numbers.size)))
        return np.concatenate([self._model.predict(chunk) for chunk in source.chunks()])

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model."""
        return "_model" in vars(self)

    def _read_weights(self) -> tuple[NDArray[np.uint64], F64, F64, F64]:
        """Keys, and for each output the weights of these, of all other features, and of the intercept."""
        check_is_fitted(self)
        from thresher.learning.readout import Readout

        readout = self._model if isinstance(self._model, Readout) else self._model.readout()
        weights = readout.weights.reshape(len(readout.keys), readout.head.count).T.astype(np.float64)
        unmet = np.asarray(readout.unmet, np.float64).reshape(-1)
        return readout.keys, *self._shown(weights, unmet, np.asarray(readout.bias, np.float64).reshape(-1))

    def _shown(self, weights: F64, unmet: F64, bias: F64) -> tuple[F64, F64, F64]:
        return weights, unmet, bias

    @property
    def coef_(self) -> Any:
        """Weights ``(outputs, d)``, ``(1, d)`` for one output, float64; a copy.

        Sparse after `sparsify`, dense after `densify`, else sparse where it has more than a million entries.
        For tables with columns that are no numbers, dictionaries, texts, and in a hashed store the columns
        are those of `feature_keys_`.
        """
        keys, weights, unmet, _ = self._read_weights()
        of_columns = self._weighs_columns()
        width = self.n_features_in_ if of_columns else len(keys)
        sparse = self._sparse if self._sparse is not None else width * len(weights) > DENSE
        columns = keys.astype(np.int64) if of_columns else np.arange(width)
        if sparse and not unmet.any():
            rows, places = np.nonzero(weights)
            return csr_matrix((weights[rows, places], (rows, columns[places])), shape=(len(weights), width))
        whole = np.repeat(unmet[:, np.newaxis], width, axis=1)
        whole[:, columns] = weights
        return csr_matrix(whole) if sparse else whole

    def _unnamed_columns(self) -> bool:
        """Whether X was a matrix whose columns had no names."""
        return self._kind == MATRIX and "feature_names_in_" not in vars(self)

    def _weighs_columns(self, model: Any = None) -> bool:
        """Whether the key of a feature is a column of X, to a model that is not yet this estimator's too."""
        from thresher.engine.index import HashedIndex

        return self._kind == MATRIX and not (model or self._model).store.startswith(HashedIndex.NAME)

    @property
    def intercept_(self) -> F64:
        """Intercepts ``(outputs,)``."""
        return self._read_weights()[3]

    @property
    def feature_keys_(self) -> NDArray[np.uint64]:
        """Keys, ascending, of the features with a weight: columns of a matrix, else hashes of names.

        In a hashed store the numbers of its rows.
        """
        return self._read_weights()[0]

    @property
    def t_(self) -> int:
        """1 and the number of examples learned from, each as often as it was."""
        check_is_fitted(self)
        return 1 + int(getattr(self._model, "examples", 0))

    def sparsify(self) -> Self:
        """Let `coef_` be sparse."""
        check_is_fitted(self)
        self._sparse = True
        return self

    def densify(self) -> Self:
        """Let `coef_` be dense."""
        check_is_fitted(self)
        self._sparse = False
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that have a weight for some output: what `SelectFromModel` would keep.

        ValueError where features are not columns: see `feature_keys_`.
        """
        check_is_fitted(self)
        if not self._weighs_columns():
            raise ValueError("features that are no columns of a matrix have no names here: see feature_keys_")
        coef = self.coef_
        weighs = np.unique((coef if issparse(coef) else np.atleast_2d(coef)).nonzero()[1])
        return np.asarray(_check_feature_names_in(self, input_features)[weighs])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep` those of rule, loss and rate too, as ``rule__alpha``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name in NESTED:
                inner = nested_of(name, params[name])
                params |= {f"{name}__{field}": value for field, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of rule, loss and rate as ``rule__alpha=0.1``. ValueError for others."""
        from thresher import parts

        own = {name: value for name, value in params.items() if name.partition("__")[0] == name}
        nested: dict[str, dict[str, Any]] = {}
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
        """The model as the bytes of a model file, all else as it is."""
        from thresher.learning.modelbytes import as_bytes

        state = dict(super().__getstate__())
        if "_model" in state:
            state["_model"] = as_bytes(state["_model"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """`ModelFileError` for damaged bytes."""
        from thresher.learning.modelbytes import from_bytes

        if "_model" in state:
            state = {**state, "_model": from_bytes(state["_model"], "the model in the estimator")}
        super().__setstate__(state)


def _checked(y: Any, numbers: Numbers) -> Any:
    if y is None:
        raise ValueError("learning requires y to be passed, but the target y is None")
    check_consistent_length(np.empty(numbers.size), y)
    return y


def _weighted(draw: Any, encoded: EncodedLabels) -> Any:
    if encoded.factors is None:
        return draw
    return draw._replace(weights=(draw.weights * encoded.factors[draw.rows]).astype(np.float32))
