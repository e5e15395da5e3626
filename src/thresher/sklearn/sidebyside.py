"""Learning the models of a path side by side, from one matrix, and scoring them on held-out rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from thresher.data.chunk import Chunk
from thresher.data.inputs import matrices
from thresher.learning.diagnostics import findings
from thresher.learning.model import divergence
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.training import progress, trainer
from thresher.learning.training import scores as scoring
from thresher.options.messages import warn_user
from thresher.plans.penalties import with_penalty
from thresher.sklearn.estimator import F64, EncodedLabels
from thresher.sklearn.row_order import Drawn, weighted

if TYPE_CHECKING:
    from thresher.sklearn.frontier import SparseFrontierEstimator


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
                [policy.bests[k].number if k in policy.bests else self._most for k in range(len(recipes))]
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
        plan = trainer.TrainingPlan(passes, None, patience=policy.passes, solve=solve)
        ui = progress.PassPrinter(lambda: models.lead.nonzero, self._estimator.verbose)
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
