"""Cross-validation of many penalties at once, with all folds from one reading."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from thresher.data.errors import DataError
from thresher.data.inputs.matrices import identified
from thresher.lanes.budget import reading_again, use_of
from thresher.lanes.folds import Folds, FoldScores, Results, Split, check_order, check_size, estimates_of
from thresher.lanes.models import CrossValidation
from thresher.lanes.penalties import PenaltyRange, penalty_name, with_penalty
from thresher.learning.diagnostics.findings import Trouble
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model_set import ModelSet
from thresher.learning.training.ahead import Ahead
from thresher.learning.training.trainer import Outcome, Trainer, TrainingPlan
from thresher.options.lanes import AUTO
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import flag_of, mention, spelled
from thresher.options.option import given_in
from thresher.runs.lanes import chosen_of, compile_penalties_ahead, is_varied, recipes_of
from thresher.runs.preparing import (
    Inputs,
    again_of,
    check_written,
    groups_of,
    order_of,
    passes_asked,
    ready,
    source_of,
    trainer_of,
)
from thresher.runs.repeat import passes_said, train_command
from thresher.runs.ui import Ui


@dataclass
class Validation:
    """Cross-validation that is prepared."""

    trainer: Trainer
    folds: Folds
    penalty: str | None
    """the name of the parameter that differs; None if one model is evaluated"""
    split: Split
    options: Any
    ui: Ui

    def run(self) -> Outcome:
        """Train all folds. Raises `DataError`."""
        return self.trainer.run()

    def judged(self) -> CrossValidation:
        """Evaluate the folds by reading the data once more."""
        results, self._scores = self._results(self.trainer)
        points = estimates_of(results, self.penalty is not None)
        more: Any = {"_results": results, "_learn": self._further}
        return CrossValidation(self.penalty, points, self.trainer.models, self.folds, **more)

    def choose(self, found: CrossValidation) -> tuple[int, str, dict[str, Any] | None]:
        """The number of the chosen penalty, the criterion used, and the use of a budget of weights."""
        found.fill(self.options["choose"])
        number, which = chosen_of(found.points, self.options["choose"], self.ui.warn)
        use = use_of(found.points, number, which)
        if use and not found.folds.whole:
            remedy = f"give {spelled(flag_of('model'), 'refit=True')} to choose by its own"
            self.ui.warn(f"weights are means over the folds, and a model of all rows has more: {remedy}")
        return number, which, use

    def troubles(self, outcome: Outcome) -> list[Trouble]:
        """Trouble with the data, the training and the folds."""
        return [*outcome.warnings, *self._scores.troubles()]

    def command(self, data: Sequence[str], outcome: Outcome, rule: str) -> str:
        """The command that trains a model of all rows."""
        given, passes = given_in(self.options), passes_said(outcome.passes, self.trainer.models.recipe)
        return train_command(data, given.get("model"), {**given, "rule": rule, "passes": passes})

    def _results(self, trainer: Trainer) -> tuple[Results, FoldScores]:
        self.ui.say("reading the data again to evaluate the folds")
        again = trainer.order.over(trainer.reread(), 1)
        with closing(again.chunks()) as chunks:
            scores = FoldScores(trainer.models, self.folds, chunks)
        return Results.of(trainer.models, self.folds, scores.figures), scores

    def _further(self, penalties: list[float]) -> Results | None:
        """Results for further penalties, in the same folds of the same data; None if learning diverges."""
        self.ui.say(reading_again(penalties))
        first = self.trainer
        recipes = [with_penalty(first.models.recipe, value) for value in penalties]
        models = ModelSet(recipes, self.folds, say=self.ui.say)
        beside: Any = {"watcher": first.watcher, "stopper": first.stopper, "order": first.order}
        trainer = Trainer(models, first.reread(), first.plan, reread=first.reread, **beside)
        try:
            trainer.run()
        except DivergedError:
            return None
        return self._results(trainer)[0]


def prepare(
    inputs: Inputs, options: Any, ui: Ui, *, refit: bool, outputs: Sequence[Path | None] = ()
) -> Validation:
    """Prepare cross-validation; with `refit`, a model of all rows is trained too.

    `outputs` are files that will be written. Raises `UsageError`, `DataError`, OSError.
    """
    layout = layout_asked(options)
    split = Split.of(options["folds"]).checked(
        options["order"] or "as-is", groups_of(inputs, layout, options)
    )
    made, kept = passes_asked(options)
    plan = TrainingPlan(made, None, folds=True, replay=kept, name="cv")
    base, read = ready(inputs, options.but(l1=None), layout, 0, ui)
    varied = is_varied(options, base)
    ahead = compile_penalties_ahead(base, True, ui) if varied else Ahead()
    order, wanted = order_of(options, None, base.seed), PenaltyRange(options["l1"] or AUTO)
    source = source_of(inputs, base.head().domain, read)
    check_written(outputs, options, inputs.data, source)
    base = replace(base, layout=source.layout)
    with of_options():
        check_order(order, plan.passes)
        check_size(base, split.count, wanted.count if varied else 1, refit)
    recipes = [base]
    if varied:
        again = partial(again_of, inputs, source, base.head().domain, read)
        recipes = recipes_of(base, options, again, not source.rereadable, order, ahead)
    folds = Folds(split.count, base.seed, forward=split.forward, whole=refit)
    models = ModelSet(recipes, folds, say=ui.say)
    beside: Any = {"ready": ahead.wait, "stopper": ui.stopper(checkpoint=False)}
    more = 1 + split.forward
    trainer = trainer_of(models, source, plan, order, None, options["cache"], ui, more=more, **beside)
    penalty = penalty_name(base.rule) if varied else None
    _count(trainer, folds)
    return Validation(trainer, folds, penalty, split, options, ui)


def _count(trainer: Trainer, folds: Folds) -> None:
    """If folds go forward, count the rows first: their number tells where blocks begin.

    `DataError` for fewer rows than blocks.
    """
    if not folds.forward:
        return
    with closing(trainer.source.chunks()) as chunks:
        folds.total = sum(len(chunk) for chunk in chunks)
    if folds.total <= folds.count:
        needed = f"{mention(folds=f'forward:{folds.count}')} needs at least {folds.count + 1} rows"
        raise DataError(f"{needed}; rows read: {folds.total}")
    trainer.source = identified(trainer.reread())
