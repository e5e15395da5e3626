"""Cross-validation of many penalties at once, with all folds from one reading."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from thresher.data.errors import DataError
from thresher.data.inputs.any_data import Data
from thresher.data.inputs.matrices import identified
from thresher.data.source import Source
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.prediction import Readout
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.progress import Ui
from thresher.learning.training.shares import are_given
from thresher.learning.training.trainer import Outcome, Trainer, TrainingPlan
from thresher.options.lanes import AUTO
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import flag_of, mention, spelled
from thresher.options.option import Options, given_in
from thresher.plans import run
from thresher.plans.budget import reading_again, use_of
from thresher.plans.folds import (
    Estimate,
    Folds,
    FoldScores,
    Split,
    check_size,
    estimates_of,
    paired,
)
from thresher.plans.frontier import chosen_of
from thresher.plans.models import Frontier
from thresher.plans.path import check_varied, recipes_of
from thresher.plans.penalties import PenaltyRange, leaves_penalty_open, penalty_name, with_penalty
from thresher.plans.repeat import passes_said, train_command
from thresher.plans.run import Opened, Plan, Training
from thresher.plans.run_setup import groups_of


class CrossValidating(Plan):
    """Models of all rows outside each fold; with `refit`, of all rows too."""

    name, judges, varies, dealt = "cv", True, True, "be in a different fold"

    def __init__(self, options: Options, split: Split, refit: bool) -> None:
        super().__init__(options)
        self.split, self._refit = split, refit
        self.penalty: str | None = None
        """the name of the parameter that differs; None if one model is evaluated"""

    def look(self, recipe: Recipe) -> None:
        """Find out whether there are several penalties, and whether the models are too many or too large."""
        if self.options["l1"] is not None:
            check_varied(self.options, recipe)
        with of_options():
            varied = self.options["l1"] is not None or leaves_penalty_open(self.options["rule"])
        self.penalty = penalty_name(recipe.rule) if varied else None
        count = PenaltyRange(self.options["l1"] or AUTO).count if varied else 1
        with of_options():
            check_size(recipe, self.split.count, count, self._refit)

    def new(self, recipe: Recipe, initial: Readout | None, data: Opened) -> ModelSet:
        """A model for each penalty and fold."""
        recipe = replace(recipe, layout=data.source.layout)
        recipes = [recipe] if self.penalty is None else recipes_of(recipe, self.options, data)
        folds = Folds(self.split.count, recipe.seed, forward=self.split.forward, whole=self._refit)
        return ModelSet(recipes, folds)

    def rereads(self, source: Source, training: TrainingPlan, new: bool) -> int:
        """To evaluate the folds, and before to count the rows, if folds go forward."""
        return 1 + self.split.forward


class Validation(Training):
    """Cross-validation that is prepared."""

    plan: CrossValidating
    missed: Sequence[Finding] = ()
    """that no penalty satisfies what was to be chosen"""

    @property
    def folds(self) -> Folds:
        """How rows are split."""
        share = self.trainer.models.share
        assert isinstance(share, Folds)
        return share

    def judge(self) -> Frontier:
        """Evaluate the folds by reading the data once more."""
        points, scores = self._estimates(self.trainer)
        models = [one.model for one in points if one.model is not None]
        extras: Any = {"folds": self.folds, "sets": self.trainer.models}
        extras["warnings"] = scores.troubles()
        return Frontier(self.plan.penalty, points, models, _learn=self._further, **extras)

    def choose(self, found: Frontier) -> tuple[int, str, dict[str, Any] | None]:
        """The number of the chosen penalty, the criterion used, and the use of a budget of weights."""
        found.fill(self.plan.options["choose"])
        number, which, self.missed = chosen_of(found.points, self.plan.options["choose"], self.ui.warn)
        use = use_of(found.points, number, self.plan.options["choose"])
        if use and not self.folds.whole:
            remedy = f"give {spelled(flag_of('model'), 'refit=True')} to choose by its own"
            self.ui.warn(f"weights are means over the folds, and a model of all rows has more: {remedy}")
        return number, which, use

    def command(self, data: Sequence[str], outcome: Outcome, rule: str) -> str:
        """The command that trains a model of all rows."""
        given, passes = (
            given_in(self.plan.options),
            passes_said(outcome.figures["passes"], self.trainer.models.recipe, outcome.figures.get("solved")),
        )
        return train_command(
            data, given.get("model"), {**given, "rule": rule, "passes": passes, "judge": None}
        )

    def _estimates(self, trainer: Trainer) -> tuple[list[Estimate], FoldScores]:
        self.ui.say("reading the data again to evaluate the folds")
        again = trainer.order.over(trainer.reread(), 1)
        with closing(again.chunks()) as chunks:
            scores = FoldScores(trainer.models, self.folds, chunks, judge := trainer.plan.judge)
        return estimates_of(trainer.models, self.folds, scores.figures, judge), scores

    def _further(self, found: Frontier, penalties: list[float]) -> None:
        """Add results for further penalties, in the same folds of the same data, unless learning diverges."""
        self.ui.say(reading_again(penalties))
        first = self.trainer
        recipes = [with_penalty(first.models.recipe, value) for value in penalties]
        models = ModelSet(recipes, self.folds, say=self.ui.say)
        extras: Any = {"ui": first.ui, "stopper": first.stopper, "order": first.order}
        trainer = Trainer(models, first.reread(), first.plan, reread=first.reread, **extras)
        try:
            trainer.run()
        except DivergedError:
            return
        points = [*found.points, *self._estimates(trainer)[0]]
        found.points[:] = paired(sorted(points, key=lambda one: one.penalty or 0.0))
        found.models[:] = [one.model for one in found.points if one.model is not None]


def prepare(
    data: Data, options: Options, ui: Ui, *, refit: bool, outputs: Sequence[Path | None] = ()
) -> Validation:
    """Prepare cross-validation; with `refit`, a model of all rows is trained too.

    `outputs` are files that will be written. Raises `UsageError`, `DataError`, OSError.
    """
    split, order = Split.of(options["folds"]), options["order"] or "as-is"
    instead = f"or draw folds, {mention(folds=split.count)}"
    if split.forward and are_given(groups_of(layout_asked(options), options)):
        raise DataError(
            f"the blocks of {mention(folds=split.shown)} are consecutive rows, and a group may be in"
            f" several: leave {mention('group')} out, {instead}"
        )
    if split.forward and order != "as-is":
        raise DataError(
            f"{mention(folds=split.shown)} follows the order of the data, which {mention(order=order)}"
            f" changes: leave {mention('order')} out, {instead}"
        )
    plan = CrossValidating(options, split, refit)
    found = run.prepare(plan, data, ui, Validation, outputs)
    if split.forward:  # their number tells where blocks begin
        trainer, folds = found.trainer, found.folds
        with closing(trainer.source.chunks()) as chunks:
            folds.total = sum(len(chunk) for chunk in chunks)
        if folds.total <= folds.count:
            needed = f"{mention(folds=split.shown)} needs at least {folds.count + 1} rows"
            raise DataError(f"{needed}; rows read: {folds.total}")
        trainer.source = identified(trainer.reread())
    return found
