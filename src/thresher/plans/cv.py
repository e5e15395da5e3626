"""Cross-validation of many penalties at once, with all folds from one reading."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.prediction import LinearPredictor
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.trainer import Outcome
from thresher.options.lanes import AUTO
from thresher.options.layouts import of_options
from thresher.options.option import Options
from thresher.plans.folds import (
    Folds,
    FoldScores,
    check_size,
    estimates_of,
)
from thresher.plans.models import Frontier
from thresher.plans.path import recipes_of
from thresher.plans.penalties import PenaltyRange, leaves_penalty_open, penalty_name
from thresher.plans.repeat import passes_said, train_command
from thresher.plans.run import Opened, Plan


class CrossValidation(Plan):
    """Models of all rows outside each fold; with `refit`, or a file to write, of all rows too."""

    name, varies, dealt = "cv", True, "be in a different fold"

    rereads = 1

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._refit = bool(options["refit"] or options["model"])
        self.penalty: str | None = None
        """the name of the parameter that differs; None if one model is evaluated"""

    def look(self, recipe: Recipe) -> None:
        """Find out whether there are several penalties, and whether the models are too many or too large."""
        l1 = self.options["l1"]
        with of_options():
            varied = l1 is not None or leaves_penalty_open(self.options["rule"])
            self.penalty = penalty_name(recipe.rule) if varied else None
            count = PenaltyRange(AUTO if l1 is None else l1).count if varied else 1
            check_size(recipe, self.options["folds"], count, self._refit)

    def new(self, recipe: Recipe, initial: LinearPredictor | None, data: Opened) -> ModelSet:
        """A model for each penalty and fold."""
        recipe = replace(recipe, layout=data.source.layout)
        recipes = [recipe] if self.penalty is None else recipes_of(recipe, self.options, data)
        return ModelSet(recipes, Folds(self.options["folds"], recipe.seed, whole=self._refit))

    def judge(self) -> Frontier:
        """Evaluate the folds by reading the data once more."""
        trainer, models, judge = self.trainer, self.trainer.models, self.trainer.plan.judge
        folds = models.share
        assert isinstance(folds, Folds)
        self.ui.say("reading the data again to evaluate the folds")
        with closing(trainer.order.over(trainer.reread(), 1).chunks()) as chunks:
            scores = FoldScores(models, folds, chunks, judge)
        points = estimates_of(models, folds, scores.figures, judge)
        final = [one.model for one in points if one.model is not None]
        return Frontier(self.penalty, points, final, scores.troubles(), self.options["choose"], folds)

    def command(self, data: Sequence[str], outcome: Outcome, rule: str) -> str:
        """The command that trains a model of all rows."""
        figures, recipe = outcome.figures, self.trainer.models.recipe
        passes = passes_said(figures["passes"], recipe, figures.get("solved"))
        return train_command(data, self.options["model"], self.options, rule=rule, passes=passes)
