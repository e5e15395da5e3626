"""Learning the models of a path side by side, from one matrix, and scoring them on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from thresher.data.inputs.matrices import Draw, Matrix, MatrixSource
from thresher.data.source import Source
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.progress import PassPrinter
from thresher.learning.training.scores import Best, PairedLosses, Patience, Scores
from thresher.learning.training.trainer import Trainer, TrainingPlan
from thresher.options.messages import warn_user
from thresher.plans.penalties import with_penalty
from thresher.sklearn.estimator import F64, EncodedLabels
from thresher.sklearn.row_order import weighted


class HeldOutRows:
    """Losses and scores of `count` models, over all rows that were held out from them.

    Losses are weighted by importance and class weight, scores only by importance, like `score`.
    """

    def __init__(self, estimator: Any, matrix: Any, encoded: EncodedLabels, count: int) -> None:
        self._estimator, self._matrix, self._encoded = estimator, matrix, encoded
        self.losses = PairedLosses(count)
        self._faults: list[F64] = [np.zeros(1)] * count
        self._truths: list[Any] = []
        self._weights: list[Any] = []

    def add(self, models: Sequence[Any], draw: Any) -> None:
        """Predict rows that these models have not learned."""
        factors, done = self._encoded.factors, 0
        for chunk in MatrixSource(self._matrix, draw).chunks():
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

    def scores(self) -> F64:
        """The `score` of each model ``(models,)``: accuracy, or R²; NaN if undefined."""
        truths, weights = (np.concatenate(one).astype(np.float64) for one in (self._truths, self._weights))
        means = (np.atleast_1d(faults) / weights.sum() for faults in self._faults)
        return np.array([self._estimator._score_of(mean, truths, weights) for mean in means])


class SideBySide:
    """Learns a model for each penalty from an estimator's data, and evaluates it.

    Call `begin`, then `learn_split` for each split, then optionally `learn_all`.
    """

    models: dict[int, Model]
    """The models of the last run, by index of the penalty."""
    judged: HeldOutRows
    kept: list[int]
    """Indices of the penalties with which every run finished."""

    def __init__(self, estimator: Any, matrix: Matrix, encoded: EncodedLabels, seed: int, most: int) -> None:
        """`most`: passes over the rows, unless a model stops early."""
        self._estimator, self._matrix, self._encoded, self._most = estimator, matrix, encoded, most
        self._seed = seed if estimator.shuffle else None
        self._passes: list[list[int]] = []
        self.troubles: list[Finding] = []
        """trouble with the data or the first run"""

    def source(self, draw: Draw) -> MatrixSource:
        """The examples of a draw, in the order of each pass."""
        draw = weighted(draw, self._encoded)
        return MatrixSource(self._matrix, draw, self._seed, self._most, self._estimator._class_names())

    def begin(self, recipe: Recipe, penalties: Sequence[float]) -> None:
        """Set the penalties."""
        self._recipes = [with_penalty(recipe, value) for value in penalties]
        self.kept = list(range(len(penalties)))
        self.judged = HeldOutRows(self._estimator, self._matrix, self._encoded, len(penalties))

    @property
    def passes(self) -> Any:
        """Number of passes of the best model of each penalty ``(penalties,)``, averaged over splits."""
        return np.rint(np.mean(self._passes, axis=0)).astype(np.int64)

    def learn_split(self, learned: Draw, held: Draw) -> None:
        """Learn some rows, and evaluate on others, which also decide when to stop early, if enabled."""
        patience = self._estimator.patience if self._estimator.early_stopping else 0
        given = self.source(held) if patience else None
        lanes, bests = self._run(self._recipes, learned, given, Patience(patience), self._most)
        self._passes.append(
            [bests[k].number if k in bests else self._most for k in range(len(self._recipes))]
        )
        self._drop(lanes.dropped)
        self.models = dict(enumerate(lanes.models))
        stand_in = self.models[self.kept[0]]
        self.judged.add([stand_in if k in lanes.dropped else one for k, one in self.models.items()], held)

    def learn_all(self, draw: Draw) -> None:
        """Learn all rows anew, each model for its best number of passes."""
        ends = self.passes[self.kept].tolist()
        lanes, _ = self._run([self._recipes[k] for k in self.kept], draw, None, _Ending(ends), max(ends))
        self.models = dict(zip(self.kept, lanes.models, strict=True))
        self._drop({self.kept[place] for place in lanes.dropped})

    def _drop(self, lost: Any) -> None:
        self.kept = [k for k in self.kept if k not in lost]
        if not self.kept:
            raise DivergedError("learning diverged in some fold under every penalty")

    def _run(
        self, recipes: Sequence[Recipe], draw: Draw, held: Source | None, policy: Patience, passes: int
    ) -> tuple[ModelSet, dict[int, Best]]:
        self.models = {}  # free the old models first, to save memory
        models = ModelSet(recipes, say=partial(warn_user, category=ConvergenceWarning))
        source, plan = self.source(draw), TrainingPlan(passes, None, patience=policy.passes)
        watcher = PassPrinter(lambda: models.lead.nonzero, self._estimator.verbose)
        more: Any = {"order": source, "holdout": held, "policy": policy, "watcher": watcher}
        found = Trainer(models, source, plan, **more).run().warnings
        self.troubles = self.troubles or found
        return models, policy.bests


class _Ending(Patience):
    """Stops each lane after its own number of passes."""

    def __init__(self, ends: Sequence[int]) -> None:
        super().__init__()
        self._ends = ends

    def after_pass(self, models: ModelSet, number: int, scores: Scores | None) -> bool:
        """Stop lanes that are done; True after the last pass of all."""
        over = number >= max(self._ends)
        for k in () if over else models.alive:  # lanes that end with training learn their last batch too
            if self._ends[k] <= number:
                models.rest(k)
        return over
