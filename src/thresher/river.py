"""Estimators for river: a classifier of two classes, one of any number, a regressor.

They learn and predict dictionaries one by one, in river's pipelines, metrics and evaluations, and frames of
pandas and polars at once: the same models either way. Parameters are those of `thresher.Model`. A number that
is missing or None counts as 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import NoPackageError
from thresher.data.inputs.any_data import dictionaries_of
from thresher.learning.model.model import Model
from thresher.options.option import check_names

try:
    from river import base
except ImportError as error:
    raise NoPackageError("thresher.river", "river") from error

__all__ = ["Classifier", "MulticlassClassifier", "Regressor"]
Features = Mapping[Any, object]
_base: Any = base  # some versions have no type hints


class _Checked:
    """What says which options it has."""

    def __new__(cls, *args: object, **options: object) -> Self:
        check_names(cls, options, _OF_MODEL)
        return super().__new__(cls)


class _OneModel(_Checked):
    """Parameters of a model, and a model with these."""

    _LOSS, _CLASSIFIES, _OUTPUTS = "logistic", True, "one"

    def __init__(
        self,
        rule: str = "ft-ftrl",
        loss: str | None = None,
        *,
        rate: str | None = None,
        average: bool = False,
        batch: int = 1,
        scale: str | None = None,
        centre: bool | None = None,
        admit: str | int | None = None,
        sample: str | None = None,
        store: str = "growing",
        intercept: bool = True,
        dtype: str = "float32",
        seed: int = 0,
        calibrate: bool = False,
        nonnegative: str | None = None,
        nonpositive: str | None = None,
        alpha: float | None = None,
        l1: float | None = None,
        l2: float | None = None,
        eta0: float | None = None,
    ) -> None:
        given = {name: one for name, one in locals().items() if name != "self"}
        vars(self).update(given)
        self._labels = dict[str, object]()
        self.model = Model(**given | {"loss": loss or self._LOSS, "outputs": self._OUTPUTS})
        """that has learned: `save` it, look at its `weights_frame`, go on with `thresher`"""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, object]]:
        yield {}

    def _check_probabilities(self) -> None:
        if not self.model.head.has_probabilities:
            raise NotImplementedError(f"the loss {self.model.recipe.loss} has no probabilities: calibrate")

    def _label(self, y: Any) -> Any:
        """A label as the model takes it."""
        return y

    @classmethod
    def of(cls, model: Model) -> Self:
        """An estimator that goes on with a model, such as ``Model.load(path)``."""
        recipe = model.recipe
        given = {name: getattr(recipe, name) for name in _OF_MODEL if hasattr(recipe, name)}
        met, fits = bool(model.head.outputs.most), model.head.classifies is cls._CLASSIFIES
        fits &= met if cls._OUTPUTS == "classes" else model.head.count == 1 and not model.classes
        if not fits:
            raise ValueError(f"{cls.__name__} cannot go on with {model!r}")
        found = cls(**given)
        found.model = model
        return found

    @property
    def _raw_memory_usage(self) -> int:
        return self.model.nbytes

    def learn_one(self, x: Features, y: Any, w: float = 1.0) -> None:
        """Learn the features `x` and the label `y`, with importance `w`."""
        self.model.learn_one(_row(x), self._label(y), w)

    def learn_many(self, X: object, y: Iterable[Any], w: Iterable[float] | None = None) -> None:
        """Learn the rows of a frame of pandas or polars, in order."""
        if rows := dictionaries_of(X):
            self.model.learn(rows, [*map(self._label, y)], None if w is None else [*w])

    def _predictions(self, X: object, output: Any) -> NDArray[Any]:
        rows = dictionaries_of(X)
        return self.model.predict(rows, output) if rows else np.zeros(0)


_OF_MODEL = [name for name in signature(_OneModel.__init__).parameters if name != "self"]


def _like(X: Any, values: Any, names: list[object] | None = None) -> Any:
    """A Series of the library of frame X with these values; with names, a frame with these columns."""
    if hasattr(X, "to_dicts"):
        import polars as pl

        return pl.Series(values) if names is None else pl.DataFrame(values, [*map(str, names)])
    import pandas as pd

    return pd.Series(values, X.index) if names is None else pd.DataFrame(values, X.index, names)


def _row(x: object) -> Features:
    """`x`, if it is a dictionary: the first row fixes what a model learns from."""
    if type(x) is not dict and not isinstance(x, Mapping):
        raise TypeError(f"expected a dictionary of features, not {type(x).__name__}: {x!r:.40}")
    return x


class Classifier(_OneModel, _base.MiniBatchClassifier):
    """A sparse linear classifier of two classes, `True` and `False`.

    Parameters are those of `thresher.Model`; the default rule needs no scaler.

    >>> from river import datasets, evaluate, metrics
    >>> from thresher.river import Classifier
    >>> evaluate.progressive_val_score(datasets.Phishing(), Classifier(), metrics.ROCAUC())
    ROCAUC: 94.13%

    """

    def _label(self, y: Any) -> int:
        if not isinstance(y, Hashable) or y not in (True, False, -1):
            raise ValueError(f"expected True or False as label, found {y!r:.40}; use a MulticlassClassifier")
        return int(y)

    def predict_one(self, x: Features, **kwargs: object) -> bool:
        """Whether `True` is more likely."""
        if self.model.recipe.calibrate:
            return bool(self.model.predict_one(_row(x), "label") > 0)
        return bool(self.model.predict_one(_row(x)) > 0)

    def predict_proba_one(self, x: Features, **kwargs: object) -> dict[bool, float]:
        """The probabilities of both classes; NotImplementedError if the loss has none."""
        self._check_probabilities()
        found: float = self.model.predict_one(_row(x), "probability")
        return {False: 1.0 - found, True: found}

    def predict_many(self, X: object) -> Any:
        """Whether `True` is more likely, for each row: a Series."""
        return _like(X, self._predictions(X, "label") > 0)

    def predict_proba_many(self, X: object) -> Any:
        """The probabilities of both classes: a frame with the columns `False` and `True`."""
        self._check_probabilities()
        found = self._predictions(X, "probability")
        return _like(X, np.column_stack([1.0 - found, found]), [False, True])


class Regressor(_OneModel, _base.MiniBatchRegressor):
    """A sparse linear regressor: it predicts the mean, or with the loss `quantile` a quantile.

    Parameters are those of `thresher.Model`, with squared loss; the default rule needs no scaler.

    >>> from river import datasets, evaluate, metrics
    >>> from thresher.river import Regressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), Regressor(), metrics.MAE())
    MAE: 0.322961

    """

    _LOSS, _CLASSIFIES = "squared", False

    def predict_one(self, x: Features, **kwargs: object) -> float:
        """The prediction for the features `x`."""
        found: float = self.model.predict_one(_row(x), "label")
        return found

    def predict_many(self, X: object) -> Any:
        """The prediction for each row: a Series."""
        return _like(X, self._predictions(X, "label"))


class MulticlassClassifier(_OneModel, _base.MiniBatchClassifier):
    """A sparse linear classifier of classes that are met on the way, each against the others.

    A class has weights from its first row on; with the loss `softmax`, all are learned together. Parameters
    are those of `thresher.Model`; the default rule needs no scaler.

    >>> from river import datasets, evaluate, metrics
    >>> from thresher.river import MulticlassClassifier
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), MulticlassClassifier(), metrics.Accuracy())
    Accuracy: 87.96%

    """

    _multiclass, _OUTPUTS = True, "classes"

    def _label(self, y: Any) -> str:
        word = str(int(y)) if isinstance(y, float) and y.is_integer() else str(y).strip()
        self._labels.setdefault(word, y)
        return word

    def _known(self) -> list[object]:
        """The labels met, in the order of the model's classes."""
        words = self.model.classes
        each = self.model.head.to_words(np.arange(len(words)), words).tolist() if words else []
        return [self._labels.get(str(one), one) for one in each]

    def predict_one(self, x: Features, **kwargs: object) -> object:
        """The class with the largest margin; None before the first."""
        known = self._known()
        return known[int(np.argmax(self.model.predict_one(_row(x))))] if known else None

    def predict_proba_one(self, x: Features, **kwargs: object) -> dict[object, float]:
        """The probability of each class; NotImplementedError if the loss has none."""
        self._check_probabilities()
        if not (known := self._known()):
            return {}
        shares = self.model.head.probabilities(np.atleast_2d(self.model.predict_one(_row(x))))
        return dict(zip(known, shares[0].tolist(), strict=False))

    def predict_many(self, X: object) -> Any:
        """The class with the largest margin, for each row: a Series."""
        rows, known = dictionaries_of(X), self._known()
        found = self.model.predict(rows).argmax(axis=1).tolist() if rows and known else []
        classes: list[object] = [known[k] for k in found] if known else [None] * len(rows)
        return _like(X, classes)

    def predict_proba_many(self, X: object) -> Any:
        """The probabilities of the classes: a frame with a column for each."""
        self._check_probabilities()
        rows, known = dictionaries_of(X), self._known()
        if not (rows and known):
            return _like(X, np.zeros((len(rows), len(known))), known)
        shares = self.model.head.probabilities(self.model.predict(rows))
        return _like(X, shares[:, : len(known)], known)
