"""Ensembles: models of one recipe, trained on different rows, that predict together.

The models of `poisson` bags are fits to bootstrap samples, so their deviation estimates the standard error of
one fit (Qin, Petricek, Karampatziakis, Li and Langford, Efficient Online Bootstrapping for Large Scale
Learning (2013); for steps of stochastic gradients, Fang, Xu and Yang, Online Bootstrap Confidence Intervals
for the Stochastic Gradient Descent Estimator (JMLR 2018)). `experiments/uncertainty.py` measured how often
the truth is inside, and compared quantiles of the models: docs/uncertainty.md has the figures.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.cluster.remote_readers import reads_elsewhere
from thresher.data.chunk import MOST_CELLS, Chunk
from thresher.data.columns import ColumnValues, apart
from thresher.data.errors import DataError, OneLineError, shorten
from thresher.data.inputs.any_data import Data
from thresher.learning.files import model_file
from thresher.learning.files.choice import BY, column_of
from thresher.learning.files.model_file import ENSEMBLE, Contents, ModelFileError
from thresher.learning.model.model import Model, as_model
from thresher.learning.model.objective import F64, Output
from thresher.learning.model.prediction import BasePredictor, LinearPredictor, ModelOrFile, Summands
from thresher.learning.model.recipe import Recipe
from thresher.learning.training import progress
from thresher.learning.training.record import Record
from thresher.options.data import ReadOptions
from thresher.options.kinds import LEVEL
from thresher.options.messages import shell_or_python
from thresher.options.option import Option, UsageError

if TYPE_CHECKING:
    from thresher.learning.diagnostics.findings import Finding

_BAGS = shell_or_python("thresher train --ensemble 64", "thresher.ensemble(..., models=64)")
"""How to train models that have intervals"""
_ONE = shell_or_python("one of them, with --choose VALUE", "one of them, such as model.of(value)")


FEWEST = 8
"""Fewer models say too little about their deviation."""
_HALVINGS = 60
"""Halvings of an interval of angles after which its ends are equal in float64"""


class WeightIntervals(NamedTuple):
    """Weights of an ensemble, for values as they are, whatever columns the models scale.

    For many outputs the arrays but `keys` are ``(features, outputs)``.
    """

    keys: NDArray[np.uint64]
    """features with a nonzero weight in any of the models ``(features,)``, which ascend"""
    weights: F64
    """means over all models, zeros included ``(features,)``"""
    lower: F64
    upper: F64
    alive: F64
    """share of the models in which the weight is not zero"""
    intercepts: F64
    """mean, lower and upper ``(3,)`` or ``(3, outputs)``"""

    def heaviest(self, top: int | None = None) -> list[tuple[int, int, tuple[float, ...]]]:
        """Key, output, and weight, lower, upper and share alive; the largest mean first."""
        table = np.stack([self.weights, self.lower, self.upper, self.alive], axis=-1)
        table = table.reshape(len(self.keys), -1, 4)
        rows, columns = np.nonzero(table[..., 3])
        order = np.lexsort((columns, self.keys[rows], -np.abs(table[rows, columns, 0])))[:top]
        rows, columns = rows[order], columns[order]
        each = zip(self.keys[rows].tolist(), columns.tolist(), table[rows, columns].tolist(), strict=True)
        return [(key, output, tuple(numbers)) for key, output, numbers in each]

    def biases(self) -> list[tuple[float, ...]]:
        """For each output intercept, lower, upper and 1: every model has an intercept."""
        return [(*one, 1.0) for one in self.intercepts.reshape(3, -1).T.tolist()]


def reach(level: float, models: int) -> float:
    """Half the width of an interval that covers `level`, in standard deviations of so many models.

    The mean of N models is one error of the fit and 1/sqrt(N) of another away from the truth, and the
    deviation is estimated: t sqrt(1 + 1/N), with t a quantile of Student's distribution of N - 1 degrees of
    freedom.

    >>> round(reach(0.9, 8), 2), round(reach(0.9, 100), 2)
    (2.01, 1.67)
    """
    return student(float(level), models - 1) * math.sqrt(1 + 1 / models)


@functools.cache
def student(level: float, nu: int) -> float:
    """The t with -t <= T <= t in a share `level` of draws of Student's T with `nu` degrees of freedom.

    With T = sqrt(nu) / tan(u), the density of u is proportional to sin(u)^(nu - 1), and |T| > t where u is
    below some angle, which is found by bisection. The integrals are sums over the nodes of Gauss and
    Legendre, with relative errors of 1e-12.

    >>> round(student(0.95, 7), 9)  # tables have 2.365
    2.364624252
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)

    def below(angle: float) -> float:
        return float(weights @ np.sin(angle * (1 + nodes) / 2) ** (nu - 1)) * angle

    low, high = 0.0, math.pi / 2
    wanted = (1 - level) * below(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if below(middle) > wanted else (middle, high)
    return math.sqrt(nu) / math.tan(high)


def around(each: Sequence[F64], level: float) -> tuple[F64, F64, F64]:
    """The means of numbers of the models, and the ends of their intervals."""
    middle, half = mean(each), reach(level, len(each)) * deviation(each)
    return middle, middle - half, middle + half


def total(given: Sequence[F64]) -> F64:
    """The sum, added in this order whatever the number of rows."""
    found = given[0].copy()
    for one in given[1:]:
        found += one
    return found


def mean(given: Sequence[F64]) -> F64:
    """The mean, by `total`; of a class the mean of the models that know it."""
    found = total(given) / len(given)
    if np.isneginf(found).any():
        none = [np.isneginf(one) for one in given]
        count = len(given) - total([one.astype(np.float64) for one in none])
        held = total([np.where(one, 0.0, numbers) for one, numbers in zip(none, given, strict=True)])
        found = np.where(count > 0, held / np.maximum(count, 1.0), -np.inf)
    return found


def deviation(given: Sequence[F64]) -> F64:
    """Standard deviations; the divisor is the number of models less one."""
    middle = mean(given)
    return np.sqrt(total([(one - middle) ** 2 for one in given]) / (len(given) - 1))


_LEAST = 1e-15
"""The least probability that has log-odds"""
_BLOCK = 1 << 16
"""Features whose weights are processed at a time"""
POISSON, DISJOINT, HALVES = "poisson", "disjoint", "halves"
KINDS = (POISSON, DISJOINT, HALVES, BY)

M = TypeVar("M", Model, LinearPredictor)


def _of_models(name: str, combined: Callable[[list[Any]], Any], meaning: str) -> Any:
    """A figure of an ensemble: those of its models, combined."""
    return property(lambda self: combined([getattr(one, name) for one in self.models]), doc=meaning)


def _rounded(figures: list[int]) -> int:
    """The mean of whole numbers, rounded."""
    return round(sum(figures) / len(figures))


class Ensemble(BasePredictor, Generic[M]):
    """Models that predict together: the margin of the ensemble is the mean of theirs.

    Everything else follows from that margin as for a single model: the probability is its link, the label its
    class. `spread` tells how much the models disagree. Other figures are sums or means over the models.
    """

    curve = ()
    """several models keep no curve"""
    features_waiting = None
    """not counted: a feature waits in some models and not in others"""
    last = 0
    """number of a model that has learned the last row"""

    def __init__(
        self, models: Sequence[M], rows: str, record: Record | None = None, examples: int = 0
    ) -> None:
        self.models = [*models]
        first = models[0]
        self.head, self.names, self.numbering = first.head, None, first.numbering
        self.shifted, self.layout, self.named = first.shifted, first.layout, first.named
        self.centres, self.index = first.centres, first.index
        self.rows = rows
        """how rows were given to models: ``poisson``, ``disjoint``, ``halves``, perhaps with a share, or
        ``by:COLUMN``"""
        self.record = record
        """how it was trained, if it came from a file or from `thresher.ensemble`"""
        self.examples = examples
        """number of examples in all passes, each of which some of the models have learned"""
        self.warnings: list[Finding] = []
        """trouble found in training"""

    def __repr__(self) -> str:
        """The number of models, their rows, and the first of them."""
        return f"<Ensemble of {len(self.models)} models, {self.rows} rows: {self.models[0]!r}, ...>"

    lowest_label = _of_models("lowest_label", min, "The lowest label that any has seen, at most 0.")

    @property
    def recipe(self: Ensemble[Model]) -> Recipe:
        """The recipe of all models."""
        return self.models[0].recipe

    @property
    def last_prediction(self: Ensemble[Model]) -> float:
        """Last prediction of a model that has learned the last row, or the last one that any has learned."""
        return self.models[self.last].last_prediction

    tally = _of_models("tally", progress.total, "Sums over the models, of rows before each learned them.")
    repeated = _of_models("repeated", progress.total, "Sums over the models, of rows that each had learned.")
    features_seen = _of_models("features_seen", _rounded, "Mean number of features that a model has seen.")
    features_freed = _of_models("features_freed", any, "Whether rows of features were freed in a model.")
    left_out = _of_models("left_out", _rounded, "Mean number of examples that a model left out.")
    nonzero = _of_models("nonzero", _rounded, "Mean number of nonzero weights of a model.")

    def margins(self, chunk: Chunk) -> F64:
        """Means of the models' margins: ``(n,)`` float64, or ``(n, outputs)`` for many outputs."""
        return mean([model.margins(chunk) for model in self.models])

    def terms(self, chunk: Chunk) -> Summands:
        """What the margins of `chunk` are sums of: see `BasePredictor.terms`."""
        rows, *each = zip(*(model.terms(chunk) for model in self.models), strict=True)
        if not all(np.array_equal(one.values, rows[0].values) for one in rows):
            raise DataError(
                "the models of this ensemble scale columns differently: explain one of them,"
                f" {shell_or_python('that thresher choose takes from the file', 'such as models[0]')}"
            )
        return Summands(rows[0], *map(mean, each))

    def knows(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these features have a weight in any of the models."""
        found: NDArray[np.bool_] = np.any([model.knows(keys) for model in self.models], axis=0)
        return found

    def predictor(self) -> LinearPredictor:
        """An ensemble has none: TypeError."""
        raise TypeError("an ensemble has no weights of its own: look at those of its models")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Ensemble[LinearPredictor]:
        """Load an ensemble from its file, to predict with; `ModelFileError`."""
        found: Ensemble[LinearPredictor] = cls.read(Contents.of(fspath(path)), model_file.predictor_of)
        return found

    @staticmethod
    def read(found: Contents, made: Callable[[str, Any, Any], Any]) -> Ensemble[Any]:
        """The ensemble in a file; `made` makes each model, of the file's name, header and tensors."""
        name = found.name
        if (table := found.ensemble()) is None:
            raise ModelFileError(f"{name}: not an ensemble")
        rows, values = table["rows"], table["values"]
        if rows.partition(":")[0] not in KINDS:
            raise ModelFileError(f"{name}: rows must be {', '.join(KINDS)}, not {shorten(repr(rows), 40)}")
        models = [made(name, *found.model(k)) for k in found.there]
        meanings = [(parts.spec_of(model.head.loss), model.head.outputs) for model in models]
        if others := [k for k, meaning in enumerate(meanings) if meaning != meanings[0]]:
            raise ModelFileError(f"{name}: model {others[0]} has another loss than the others")
        if values:
            return ModelsByValue(models, rows, table["record"], values, table["examples"])
        return Ensemble(models, rows, table["record"], table["examples"])

    @reads_elsewhere
    def spread(self, data: Data, **reading: Unpack[ReadOptions]) -> F64:
        """Standard deviation of the models' predictions ``(n,)``, or ``(n, outputs)`` for many outputs.

        It is that of their probabilities; of their margins, if the loss has no probabilities. The divisor is
        the number of models less one. Arguments and errors are those of `predict`.
        """
        return self._of_all(data, self.spread, reading, self.spreads)

    def spreads(self, chunk: Chunk) -> F64:
        """The standard deviations that `spread` gives, for the rows of a chunk."""
        output: Output = "probability" if self.head.has_probabilities else "margin"
        each = [self.respond(model.margins(chunk), output) for model in self.models]
        return deviation(each)

    @reads_elsewhere
    def interval(self, data: Data, level: float = 0.9, **reading: Unpack[ReadOptions]) -> F64:
        """Predictions and the ends of their intervals ``(n, 3)``, or ``(n, outputs, 3)`` for many outputs.

        Prediction, lower and upper are probabilities; without them, means or margins. The interval is for
        what the model estimates, the probability or mean, not for the label of a single row. It is the margin
        plus or minus Student's quantile times the standard deviation of the models' margins, through the
        link; for softmax, the same of log-odds. See docs/uncertainty.md.

        Args:
            data, reading: as for `predict`.
            level: the share of intervals that should hold the truth, between 0 and 1.

        Raises the errors of `predict`; ValueError for a wrong level, fewer than 8 models, and models that
        learned disjoint rows.

        >>> import thresher
        >>> rows = [{"size": 3.0}, {"size": -2.0}, {"size": -1.0}, {"size": 1.0}] * 40
        >>> found = thresher.ensemble(rows, [1, -1, 1, -1] * 40, models=8)
        >>> prediction, lower, upper = found.interval([{"size": 3.0}])[0]
        >>> bool(0 < lower < prediction < upper < 1)
        True
        """
        self.check_interval(level)
        answer = functools.partial(self.intervals, level=level)
        return self._of_all(data, self.interval, reading, answer)

    def intervals(self, chunk: Chunk, level: float) -> F64:
        """What `interval` gives for the rows of a chunk."""
        each = [model.margins(chunk) for model in self.models]
        if hasattr(self.head.loss, "values_slopes") and self.head.joint.PROBABILITY:
            middle, *_ = around(each, level)
            predicted, *ends = around([self._log_odds(one) for one in each], level)
            centre = self._log_odds(middle)
            found = [1 / (1 + np.exp(-(centre + one - predicted))) for one in (predicted, *ends)]
        else:
            output: Output = "probability" if self.head.joint.PROBABILITY else "margin"
            output = "label" if not self.head.classifies else output
            found = [self.respond(one, output) for one in around(each, level)]
        return np.stack(found, axis=-1)

    def _log_odds(self, margins: F64) -> F64:
        """Of each class, from margins that one link turns into the probabilities of all."""
        shares = np.clip(self.respond(margins, "probability"), _LEAST, 1 - _LEAST)
        odds: F64 = np.log(shares / (1 - shares))
        return odds

    def weights(self, interval: float = 0.9) -> WeightIntervals:
        """Means of the models' weights, with the ends of their intervals, and how many have each.

        Args:
            interval: the share of intervals that should hold the weight that endless data would give. With
                an L1 penalty they do not: weights are shrunk, and zero in some models. See
                docs/uncertainty.md.

        ValueError for a wrong interval, fewer than 8 models, and models that learned disjoint rows.
        """
        self.check_interval(interval)
        each = [model.predictor() for model in self.models]
        keys = np.unique(np.concatenate([one.keys for one in each]))
        blocks = list[tuple[F64, ...]]()
        for lo in range(0, max(len(keys), 1), _BLOCK):
            here: list[F64] = [one.weights_of(keys[lo : lo + _BLOCK]) for one in each]
            share = mean([(one != 0).astype(np.float64) for one in here])
            blocks.append((*around(here, interval), share))
        found = [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
        lives = found[-1].any(axis=1)
        inner = () if self.head.count == 1 else (self.head.count,)
        weights, lower, upper, alive = (one[lives].reshape(-1, *inner) for one in found)
        biases = around([one.bias.astype(np.float64) for one in each], interval)
        intercepts = np.stack(biases).reshape(3, *inner)
        return WeightIntervals(keys[lives], weights, lower, upper, alive, intercepts)

    def check_interval(self, level: float) -> None:
        """ValueError if these models give no intervals that cover `level`."""
        Option(LEVEL, name="interval").take(level)
        if self.rows != POISSON or len(self.models) < FEWEST:  # whose deviation is that of a bootstrap
            have = f"the ensemble has {len(self.models)}, and their rows are {self.rows}"
            raise UsageError(f"an interval needs at least {FEWEST} bagged models, but {have}: use {_BAGS}")

    def save(self, path: str | PathLike[str], *, state: bool = True) -> None:
        """Write the file that ``thresher train --ensemble`` writes, replacing an older one.

        Args:
            path: the file.
            state: write what the models need to keep learning, too.

        Raises OSError if writing fails; `DivergedError` if a weight is not finite. An older file is then
        unchanged.
        """
        record = None if self.record is None else self.record.as_dict()
        table = {"rows": self.rows, "record": record, "examples": self.examples, "values": [*self.values]}
        model_file.save_all(self.models, fspath(path), {ENSEMBLE: table}, state=state)


class ModelsByValue(Ensemble[M]):
    """A model of all rows, and one of the rows with each value of a column, by which these are predicted.

    A row with a value that was never seen, or without one, is predicted by the model of all rows. See
    docs/by.md.
    """

    def __init__(
        self,
        models: Sequence[Any],
        rows: str,
        record: Record | None,
        values: Sequence[str],
        examples: int = 0,
    ) -> None:
        super().__init__(models, rows, record, examples)
        self.column = column_of(rows) or ""
        """the column"""
        self.values, self.sliced = [*values], (self.column,)

    @property
    def features_seen(self: Ensemble[Model]) -> int:
        """Number of distinct features in all rows."""
        return self.models[0].features_seen

    def of(self, value: object) -> M:
        """The model of a value, as `values` spells it; that of all rows for one that was never seen.

        That of all rows has no value of its own: ``models[0]`` is it, whatever values there are.
        """
        named = str(value)
        return self.models[self.values.index(named) + 1 if named in self.values else 0]

    def column_values(self) -> ColumnValues:
        """The values, to be told apart in the cells of a chunk."""
        assert self.layout is not None
        return ColumnValues(self.column, self.layout, MOST_CELLS - 1, known=self.values)

    @functools.cached_property
    def _told_apart(self) -> ColumnValues:
        return self.column_values()

    def margins(self, chunk: Chunk) -> F64:
        """Margins of the rows of `chunk`, each by the model of its value."""
        if not len(chunk):
            return self.models[0].margins(chunk)
        if chunk.cells is None:
            raise OneLineError(
                f"the column {self.column} tells which model predicts a row: give a table with it"
            )
        numbers = self._told_apart.numbers(chunk.cells[:, 0], new=False)
        plain = replace(chunk, cells=None)
        there: list[int] = np.unique(numbers).tolist()
        if len(there) < 2:
            return self.models[there[0]].margins(plain)
        order, rows = apart(plain, numbers, len(self.models))
        each = np.concatenate([self.models[number].margins(rows(number)) for number in there])
        margins: F64 = np.empty_like(each)
        margins[order] = each
        return margins

    def terms(self, chunk: Chunk) -> Summands:
        """The margins of rows of several models have none: `UsageError`."""
        raise UsageError(f"each value of {self.column} has a model of its own: explain {_ONE}")

    def weights(self, interval: float = 0.9) -> WeightIntervals:
        """Each model has its own: `UsageError`."""
        raise UsageError(f"each value of {self.column} has weights of its own: look at those of {_ONE}")

    def spreads(self, chunk: Chunk) -> F64:
        """One model predicts a row: `UsageError`."""
        raise UsageError(f"one model predicts each row, so there is no spread: use {_BAGS}")

    def check_interval(self, level: float) -> None:
        """One model predicts a row: `UsageError`."""
        raise UsageError(f"one model predicts each row, so there is no interval: use {_BAGS}")

    def knows(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these features have a weight in the model of all rows."""
        return self.models[0].knows(keys)


def load(path: str | PathLike[str], which: str | None = None) -> LinearPredictor | Ensemble[LinearPredictor]:
    """The model in a file, to predict with: the only one, that of `which`, or the ensemble of all.

    `ModelFileError`; ValueError if `which` selects none.
    """
    return model_in(Contents.of(fspath(path)), which)


def model_in(found: Contents, which: str | None = None) -> LinearPredictor | Ensemble[LinearPredictor]:
    """What `load` finds in a file that is open."""
    if which is None and ENSEMBLE in found.run and model_file.LANES not in found.run:
        return Ensemble.read(found, model_file.predictor_of)
    return model_file.predictor_of(found.name, *found.model(found.chosen(which)))


def predictor_of(model: ModelOrFile) -> Model | LinearPredictor | Ensemble[Any]:
    """The model or ensemble itself, or what `load` finds in a file, or an estimator. TypeError."""
    found = load(model) if isinstance(model, str | PathLike) else model
    return found if isinstance(found, Ensemble) else as_model(found)
