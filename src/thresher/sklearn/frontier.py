"""The common part of frontier estimators: one `fit` learns a model for each penalty and chooses one.

The models learn twice. They are judged without the held-out rows, then trained again with them: users expect
a fitted estimator to have seen all rows, and the chosen model then equals the plain estimator with its
penalty, bit for bit. Sixteen penalties and five passes over 17,189 rows of RCV1 take 0.7 s without the second
training and 1.3 s with it. Retraining only the chosen model would cost 0.1 s, but if you later chose another,
it would have seen fewer rows.

Folds are sets of lanes, run one after another and not from one reading as in `cv`: reading rows in memory
again costs 2 ns per non-zero, learning sixteen models 50. So only one set is in memory at a time, any
splitter of scikit-learn works even though the order is redrawn in every pass, and each model of each fold can
stop separately.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import vstack
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from thresher.data.chunk import Chunk
from thresher.data.inputs import matrices
from thresher.data.source import Source
from thresher.learning.diagnostics import findings
from thresher.learning.files import choice
from thresher.learning.model import divergence
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.training import scores as scoring
from thresher.learning.training import trainer
from thresher.options.checks import check_flag, check_whole
from thresher.options.messages import warn_user
from thresher.plans.budget import between
from thresher.plans.penalties import NoWeightError, PenaltyRange, penalty_name, with_penalty
from thresher.sklearn import inputs
from thresher.sklearn.classifier import SparseClassifying
from thresher.sklearn.estimator import F64, EncodedLabels, SparseEstimator, parameters
from thresher.sklearn.inputs import Examples
from thresher.sklearn.regressor import SparseRegressing
from thresher.sklearn.row_order import (
    Drawn,
    Splitter,
    drawn,
    folds,
    given_splits,
    groups_of_examples,
    held_out,
    weighted,
)

FALLBACK = "0.01:10"
"""Range of penalties if none leaves a weight after the first rows"""


class SideBySide:
    """Learns a model for each penalty from an estimator's data, and scores it on rows held out from it.

    Losses are weighted by importance and class weight, scores only by importance, like `score`.
    """

    models: dict[int, Model]
    """The models of the last run, by index of the penalty."""
    kept: list[int]
    """Indices of the penalties with which every run finished."""
    losses: scoring.PairedLosses
    """of the models, on all rows that were held out from them"""

    def __init__(
        self,
        estimator: SparseFrontierEstimator,
        matrix: Chunk,
        encoded: EncodedLabels,
        draws: Drawn,
        most: int,
    ) -> None:
        """`most`: passes over the rows, unless a model stops early."""
        self._estimator, self._matrix, self._encoded, self._most = estimator, matrix, encoded, most
        self._draws, self._seed = draws, draws.seed if estimator.shuffle else None
        self.troubles: list[findings.Finding] = []
        """trouble with the data or the first run"""

    def source(self, draw: matrices.Draw) -> matrices.MatrixSource:
        """The examples of a draw, in the order of each pass."""
        draw = weighted(draw, self._encoded)
        return matrices.MatrixSource(
            self._matrix, draw, self._seed, self._most, self._estimator._class_names()
        )

    def learn(self, recipe: Recipe, penalties: Sequence[float]) -> None:
        """Learn each split and score its models; then, to refit, all rows for the best number of passes."""
        recipes, estimator = [with_penalty(recipe, value) for value in penalties], self._estimator
        patience = estimator.patience if estimator.early_stopping else 0
        self.kept, self.losses = list(range(len(recipes))), scoring.PairedLosses(len(recipes))
        self._faults: list[F64] = [np.zeros(1)] * len(recipes)
        self._truths, self._weights, passes = list[Any](), list[Any](), []
        for learned, held in self._draws.splits:
            policy = scoring.Patience(patience)
            lanes = self._run(recipes, learned, self.source(held) if patience else None, policy, self._most)
            passes.append(
                [
                    policy.scored[k].best(choice.LOSS)[0] if k in policy.scored else self._most
                    for k in range(len(recipes))
                ]
            )
            self._keep(lanes.models, range(len(recipes)), lanes.dropped)
            stand_in = self.models[self.kept[0]]
            self._score([stand_in if k in lanes.dropped else one for k, one in self.models.items()], held)
        self.passes = np.rint(np.mean(passes, axis=0)).astype(np.int64)
        """number of passes of the best model of each penalty ``(penalties,)``, averaged over splits"""
        if estimator.refit:
            numbers, ends = self.kept, self.passes[self.kept].tolist()
            chosen = [recipes[k] for k in numbers]
            lanes = self._run(chosen, self._draws.whole, None, _Ending(ends), max(ends))
            self._keep(lanes.models, numbers, {numbers[place] for place in lanes.dropped})

    def scores(self) -> F64:
        """The `score` of each model ``(models,)``: accuracy, or R²; NaN if undefined."""
        truths, weights = (np.concatenate(one).astype(np.float64) for one in (self._truths, self._weights))
        means = (np.atleast_1d(faults) / weights.sum() for faults in self._faults)
        return np.array([self._estimator._score_of(mean, truths, weights) for mean in means])

    def _keep(self, models: Sequence[Model], numbers: Sequence[int], lost: Collection[int]) -> None:
        self.models = dict(zip(numbers, models, strict=True))
        self.kept = [k for k in self.kept if k not in lost]
        if not self.kept:
            raise divergence.DivergedError("learning diverged in some fold under every penalty")

    def _score(self, models: Sequence[Model], draw: matrices.Draw) -> None:
        """Predict rows that these models have not learned."""
        factors, done = self._encoded.factors, 0
        for chunk in matrices.MatrixSource(self._matrix, draw).chunks():
            rows = draw.rows[done : done + len(chunk)]
            done += len(chunk)
            by = np.ones(len(rows)) if factors is None else factors[rows]
            losses = []
            for k, model in enumerate(models):
                margins = model.predict(chunk)
                losses.append(model.head.losses(margins, chunk) * by)
                faults = self._estimator._faults(model.head, margins, chunk.labels, chunk.targets)
                self._faults[k] = self._faults[k] + chunk.weights @ faults
            self.losses.add(np.array(losses), chunk.weights * by)
            self._truths.append(chunk.labels[:, np.newaxis] if chunk.targets is None else chunk.targets)
            self._weights.append(chunk.weights)

    def _run(
        self,
        recipes: Sequence[Recipe],
        draw: matrices.Draw,
        held: matrices.MatrixSource | None,
        policy: scoring.Patience,
        passes: int,
    ) -> ModelSet:
        self.models = {}  # free the old models first, to save memory
        models = ModelSet(recipes, say=partial(warn_user, category=ConvergenceWarning))
        solve = self._estimator._may_solve(self._matrix, draw)
        source = self.source(draw)
        ui = self._estimator._ui()
        plan = trainer.TrainingPlan(passes, ui.report_every, patience=policy.passes, solve=solve)
        more: Any = {"order": source, "holdout": held, "policy": policy, "ui": ui}
        found = trainer.Trainer(models, source, plan, **more).run().warnings
        self.troubles = self.troubles or found
        return models


class _Ending(scoring.Patience):
    """Stops each lane after its own number of passes."""

    def __init__(self, ends: Sequence[int]) -> None:
        super().__init__()
        self._ends = ends

    def after_pass(self, models: ModelSet, number: int, scores: scoring.Scores | None) -> bool:
        """Stop lanes that are done; True after the last pass of all."""
        over = number >= max(self._ends)
        for k in () if over else models.alive:  # lanes that end with training learn their last batch too
            if self._ends[k] <= number:
                models.parts[0].rest(k)
        return over


@parameters
class SparseFrontierEstimator(SparseEstimator):
    """Models of one rule with different penalties, one of which is chosen."""

    _: KW_ONLY
    l1s: int | ArrayLike = 16
    choose: str = "best"
    cv: int | None = None
    refit: bool = True
    _direct: ClassVar[int] = 1 << 17  # each model has a table of its own

    def fit(
        self,
        X: Examples,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn a model for each penalty side by side, and choose one by its loss on held-out rows.

        Arguments and errors as for `SparseOnlineClassifier.fit`; also ValueError if no model satisfies
        `choose`. Examples of one of the `groups` ``(n,)``, such as those of a user, are in one fold, or held
        out together; a splitter given as `cv` gets the groups too. A penalty whose loss or weights become
        infinite or NaN is left out with a
        ConvergenceWarning; `DivergedError` if none is left.
        """
        self._check_options()
        with self._unchanged_by_errors():
            X, matrix, weights, encoded = self._taken_in(X, y, sample_weight, reset=True, whole=True)
            recipe = replace(self._recipe(), layout=self._layout_of_model())
            recipe.objective.domain.check(matrix.labels, matrix.targets)
            draws = drawn(self, matrix, weights, self._split_of(y, len(matrix), groups))
            passes = self._passes_over(recipe, matrix, draws.whole)
            school = SideBySide(self, matrix, encoded, draws, passes)
            penalties = self._penalties(recipe, school.source(draws.whole), len(draws.whole.rows))
            school.learn(recipe, penalties)
            self._take(school, penalties)
            if more := between(self._points(), self.choose):  # a budget between two
                penalties = sorted([*penalties, *more])
                school.learn(recipe, penalties)
                self._take(school, penalties)
            self.choose_again(self.choose)
            self._note_features(X, matrix, self._path)
        inputs.warn_of(self, X, school.troubles)
        return self

    def _split_of(self, y: ArrayLike, size: int, groups: ArrayLike | None) -> Splitter:
        from sklearn.model_selection import check_cv  # takes 0.2 s to import

        grouped = groups_of_examples(groups, size)
        if self.cv is None:
            return partial(held_out, fraction=self.validation_fraction, groups=grouped)
        if isinstance(self.cv, int | np.integer):
            return partial(folds, count=int(self.cv), groups=grouped)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        return partial(given_splits, splits=splitter.split(np.empty((size, 1)), y, groups), size=size)

    def _penalties(self, recipe: Recipe, source: Source, rows: int) -> list[float]:
        """The penalties given, or as many as wanted, in a range found from the first rows."""
        penalty_name(recipe.rule)
        if np.ndim(self.l1s):
            return sorted(np.asarray(self.l1s, np.float64).tolist())
        try:
            return PenaltyRange(f"auto:{self.l1s}").found_in(source, recipe, rows)
        except NoWeightError:
            return PenaltyRange(f"{FALLBACK}:{self.l1s}").values

    def _take(self, school: SideBySide, penalties: list[float]) -> None:
        kept, losses = school.kept, school.losses
        self._path, self._sparse = [school.models[k].readout() for k in kept], None
        self.l1s_, self.score_path_ = np.array(penalties)[kept], school.scores()[kept]
        self.loss_path_ = np.array([losses.mean(k) for k in kept])
        shown = (self._shown(one.weights_of(one.keys).T) for one in self._path)
        self.nnz_path_ = np.array([*map(np.count_nonzero, shown)])
        if not np.isfinite(self.loss_path_).any():
            raise ValueError(
                "no penalty has a finite loss on the held-out examples, or their weights are all zero"
            )
        best = kept[int(np.nanargmin(self.loss_path_))]
        self.se_path_ = np.array([losses.error_of_difference(k, best) for k in kept], float)
        self._passes = school.passes[kept]

    def _points(self) -> list[choice.Point]:

        paths = (self.l1s_, self.nnz_path_, self.loss_path_, self.se_path_)
        columns = zip(*(one.tolist() for one in paths), strict=True)
        return [
            choice.Point(l1, "", nnz, None, {"loss": loss}, None if np.isnan(se) else se)
            for l1, nnz, loss, se in columns
        ]

    def choose_again(self, which: str | int) -> Self:
        """Choose another of the models by index or by a criterion, as for `choose`, without learning.

        The choice stays until the next `fit`. ValueError if there is no such model; nothing then changes.
        """
        check_is_fitted(self, "_path")
        if isinstance(which, int | np.integer):
            if not 0 <= which < len(self._path):
                raise ValueError(f"there are models 0 to {len(self._path) - 1}, not {which}")
            number = int(which)
        else:
            number = choice.choose(self._points(), which)
        self.chosen_, self.l1_ = number, float(self.l1s_[number])
        self._model, self.n_iter_ = self._path[number], int(self._passes[number])
        return self

    def _check_options(self) -> None:

        self._check_shared(self.cv is None)
        choice.check_choice(self.choose)
        check_flag("refit", self.refit)
        if self.cv is not None:
            if isinstance(self.cv, int | float | str | bytes | np.number):
                check_whole("cv", self.cv, 2)
            if not self.refit:
                raise ValueError("with cv, no model is trained on all examples unless refit=True")
        if np.ndim(self.l1s):
            given = np.asarray(self.l1s)
            fit = given.ndim == 1 and given.size > 0 and given.dtype.kind in "iuf"
            if not (fit and np.isfinite(given).all() and (given >= 0).all()):
                wanted = "a number of penalties, or an array of finite numbers >= 0"
                raise ValueError(f"l1s must be {wanted}, not {given}")
        else:
            check_whole("l1s", self.l1s, 2)
            PenaltyRange(f"auto:{self.l1s}")

    @property
    def feature_keys_path_(self) -> NDArray[np.uint64]:
        """Keys, ascending, of the features with a weight in any of the models. See `feature_keys_`."""
        check_is_fitted(self)
        return np.unique(np.concatenate([one.keys for one in self._path]))

    @property
    def coef_path_(self) -> Any:
        """Weights of all models, CSR: ``(n_l1s, d)`` for one output, else a list of n_l1s ``(outputs, d)``.

        If the columns of `coef_` correspond to `feature_keys_`, these correspond to `feature_keys_path_`.
        """
        check_is_fitted(self)
        keys = None if self._weighs_columns() else self.feature_keys_path_
        tables = [self._table_of(model, keys, sparse=True) for model in self._path]
        return vstack(tables, "csr") if tables[0].shape[0] == 1 else tables

    @property
    def intercept_path_(self) -> F64:
        """Intercepts of all models ``(n_l1s, outputs)``."""
        check_is_fitted(self)
        return np.array([self._shown(model.bias.astype(np.float64)) for model in self._path])


@parameters
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

    calibrate: ClassVar[bool] = False


@parameters
class SparseFrontierRegressor(SparseRegressing, SparseFrontierEstimator):
    """A sparse linear regressor that finds its penalty: one `fit` learns a model for each of many.

    Parameters and attributes are those of `SparseFrontierClassifier`, except for the shapes of weights, which
    are those of `SparseOnlineRegressor`. `score_path_` is R² over all held-out examples, NaN for fewer than
    two. `coef_path_` is CSR ``(n_l1s, d)`` for one output, else a list of n_l1s CSR ``(outputs, d)``.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 20))
    >>> model = SparseFrontierRegressor(choose="within:5%", random_state=0).fit(X, X[:, 0] - 2 * X[:, 1])
    >>> np.flatnonzero(abs(model.coef_) > 0.01).tolist(), bool(model.score_path_.max() > 0.99)
    ([0, 1], True)
    """
