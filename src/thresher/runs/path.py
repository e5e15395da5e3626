"""Training models for many penalties from one reading, and choosing from a folder of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from thresher.data.order import make_order
from thresher.data.source import Source
from thresher.lanes import budget, frontier
from thresher.lanes.frontier import Learned, joined, picture, points_of
from thresher.lanes.models import Frontier, table_of_points
from thresher.lanes.penalties import PenaltyRange, penalty_in, penalty_name, with_penalty
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.choice import FrontierTable
from thresher.learning.inspection import plots
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet, going_on
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.progress import of_earlier
from thresher.learning.training.record import Record
from thresher.learning.training.shares import Part
from thresher.learning.training.trainer import Outcome, Trainer
from thresher.options.lanes import AUTO
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import mention
from thresher.options.model import RecipeOptions
from thresher.options.option import UsageError, given_in
from thresher.runs.lanes import check_varied, chosen_of, compile_penalties_ahead, recipes_of
from thresher.runs.learners import check_same, record_to_go_on
from thresher.runs.preparing import (
    Inputs,
    Ready,
    again_of,
    agreed,
    check_written,
    going_on_like,
    holdout_of,
    layout_of_checkpoint,
    order_of,
    plan_of,
    ready,
    source_of,
    trainer_of,
)
from thresher.runs.repeat import passes_said, train_command
from thresher.runs.train import check_goes_on, columns_of, follow, look_at, reading_on
from thresher.runs.ui import Ui


@dataclass
class FrontierTraining:
    """Training of lanes, and of further lanes to use a budget of weights."""

    trainer: Trainer
    inputs: Inputs
    source: Source
    """the data as they were opened"""
    options: Any
    read: dict[str, Any]
    """how the data are opened"""
    ui: Ui

    @property
    def penalty(self) -> str:
        """The name of the parameter that differs."""
        return penalty_name(self.trainer.models.models[0].rule)

    @property
    def goes_on(self) -> bool:
        """Whether the models had learned other data before, which others would lack."""
        return self.options["continue_from"] is not None

    @property
    def rereadable(self) -> bool:
        """Whether data and hold-out can be read again, to train with further penalties."""
        held = self.trainer.holdout.given
        return not self.goes_on and self.trainer.source.rereadable and (held is None or held.rereadable)

    @property
    def keeps_state(self) -> bool:
        """Whether the models in the file can go on: if that was asked for, or if they went on already."""
        return bool(self.options["state"]) or self.goes_on

    def run(self) -> Outcome:
        """Train. Raises `Interrupted`, `DataError`, `DivergedError`."""
        return self.trainer.run()

    def learned(self) -> Learned:
        """The trained models."""
        first = self.trainer
        return Learned(points_of(first.models, first.scores, first.policy.bests), first.models.models)

    def added_to(self, before: Learned, outcome: Outcome | None = None) -> Learned:
        """The models of an earlier run, and these, once they are learned, unless learning diverges.

        The time for these is added to an `outcome`.
        """
        try:
            again = self.run()
        except DivergedError:
            return before
        if outcome is not None:
            outcome.seconds, outcome.compiling = (
                outcome.seconds + again.seconds,
                outcome.compiling + again.compiling,
            )
        return joined(before, self.learned(), self.trainer.holdout.source())

    def filled(self, outcome: Outcome, path: Path, which: str, saved: Callable[[Learned], object]) -> Learned:
        """The trained models, and for a budget that lies between two, some with penalties between theirs.

        `saved` is called before the data are read again for these. `path` is the file to which a checkpoint
        of such models adds them: before there is one, the models in the file get their state.
        """
        if self.trainer.plan.finished:
            return joined(frontier.load(path)[1], self.learned(), self.trainer.holdout.source())
        learned = self.learned()
        between = budget.between(learned.points, which)
        if between and not self.rereadable:
            self.ui.warn(budget.lonely() if self.goes_on else budget.unread(between))
        if not between or not self.rereadable:
            return learned
        saved(learned)
        self.ui.say(budget.reading_again(between))
        further = self.again(between, tuple(point.penalty for point in learned.points))
        if not self.keeps_state:
            whole = cache(partial(self.save, learned, path, which, say=False, state=True))
            further.trainer.before_checkpoint = whole
        return further.added_to(learned, outcome)

    def save(
        self, learned: Learned, path: Path, which: str, *, say: bool = True, state: bool = False
    ) -> FrontierTable:
        """Write the models, with `state` in any case; return their table. OSError, `DataError`."""
        kept = state or self.keeps_state
        if kept:
            why = f"{mention('resume')} needs it" if state else model_file.LEFT_OUT
            model_file.tell_large_state(learned.models, self.ui.say, why)
        number, which = chosen_of(learned.points, which, self.ui.warn if say else lambda line: None)
        found = FrontierTable(self.penalty, learned.points, number, which)
        frontier.save(path, found, learned.models, kept)
        return found

    def draw(self, found: FrontierTable, plot: Path | None, table: Path | None) -> None:
        """Write a picture and a table of the models to the files that are named. OSError."""
        points, chosen = found.points, found.chosen
        rows = partial(table_of_points, points, found.penalty, chosen)
        plots.draw(plot, partial(picture, points, chosen), table, rows)

    def command(self, data: Sequence[str], found: FrontierTable, chosen: Model) -> str | None:
        """The command that trains the chosen model for as many passes as were best, on all rows.

        For a budget of weights, on the same rows: a model of more rows has more weights. None for a model
        that has gone on, of whose rows these are only the last.
        """
        held = None if self.options["holdout_every"] == 0 else self.options["holdout"] or "every-10th"
        own = {
            "rule": found.points[found.chosen].spec,
            "passes": passes_said(chosen.record.passes if chosen.record else 1, chosen.recipe),
            "holdout": held if budget.budget_of(found.choice) is not None else None,
        }
        if self.goes_on:
            return None
        return train_command(
            data, None, {**given_in(self.options), **own, "resume": None, "early_stop": None}
        )

    def again(self, penalties: list[float], finished: tuple[float, ...] = ()) -> FrontierTraining:
        """Lanes with further penalties on the same data; a signal stops them with a checkpoint.

        `finished` are the penalties of those to which they will be added.
        """
        first, base = self.trainer, self.trainer.models.recipe
        plan = replace(first.plan, finished=finished)
        models = ModelSet([with_penalty(base, value) for value in penalties], say=self.ui.say)
        source = again_of(self.inputs, self.source, base.head().domain, self.read)
        models.layout, order = source.layout, make_order(first.order.spec, base.seed)
        held = first.holdout.given
        more: Any = {"stopper": first.stopper}
        trainer = trainer_of(models, source, plan, order, held, self.options["cache"], self.ui, **more)
        return replace(self, trainer=trainer)


def prepare(inputs: Inputs, options: Any, ui: Ui, outputs: Sequence[Path | None] = ()) -> FrontierTraining:
    """Prepare the training of a model for each of many penalties; `outputs` are files that will be written.

    Raises `UsageError`, `DataError`, `ModelFileError`, OSError.
    """
    spare, options = options.get("checkpoint"), _said(options)
    plan, judge = plan_of(options, ui, "path", spare, default=10)
    trained = _going_on(options, ui)
    base, read = _basis(inputs, options, trained, plan.holdout_every, ui)
    resumed, before = _resumed(options, trained, spare, ui)
    plan = agreed(going_on_like(plan, options, trained[1], inputs.data) if trained else plan, options, before)
    if resumed is not None:
        read["layout"] = layout_of_checkpoint(options, resumed.layout)
    ahead = compile_penalties_ahead(base, plan.judges(judge), ui)
    domain = base.head().domain
    source = source_of(inputs, domain.of_model(trained is not None), read)
    held = holdout_of(judge, domain, source, read, plan.passes == 1)
    check_written(outputs, options, inputs.data, source, held)
    order = order_of(options, before, base.seed)
    beside: Any = {"ready": ahead.wait, "before": before}
    beside["stopper"] = ui.stopper(checkpoint=spare is not None)
    if resumed is not None and before is not None:
        models, plan = resumed, replace(plan, finished=before.finished)
        _check_same(models, before.finished, base, options["l1"], spare)
        models.layout = source.layout
    elif trained is not None:
        models, beside["earlier"] = trained
        beside["known"] = columns_of(models)
        source = follow(models, source)
    else:
        again = partial(again_of, inputs, source, domain, read)
        recipes = recipes_of(base, options, again, not source.rereadable, order, ahead)
        models = ModelSet(recipes)
        models.layout = source.layout
    models.say = ui.say
    fills = budget.budget_of(options["choose"]) is not None and not plan.finished and trained is None
    more = fills and source.rereadable
    trainer = trainer_of(models, source, plan, order, held, options["cache"], ui, more=more, **beside)
    return FrontierTraining(trainer, inputs, source, options, read, ui)


def _resumed(
    options: Any, trained: tuple[ModelSet, Record] | None, spare: Path | None, ui: Ui
) -> tuple[ModelSet | None, TrainingState | None]:
    """The checkpoint to resume from; None for a new run, before which what is there is looked at."""
    if options.get("resume"):
        models, before = checkpoint.load(options["checkpoint"], "path")
        if trained is not None:
            check_goes_on(before, models.recipe, trained[0].recipe, trained[1])
        return models, before
    if spare is not None:
        look_at(spare, ui)
    return None, None


def _said(options: Any) -> Any:
    """The options, where a hold-out of none is said as no rows."""
    none = isinstance(options["holdout"], str) and options["holdout"] == "none"
    return options.but(holdout=None, holdout_every=0) if none else options


def _basis(
    inputs: Inputs, options: Any, trained: tuple[ModelSet, Record] | None, part: Part, ui: Ui
) -> Ready:
    """The recipe of all models, and how the data are read."""
    if trained is not None:
        models = trained[0]
        return Ready(models.recipe, reading_on(inputs, options, models.lead, part))
    found = ready(inputs, options.but(l1=None), layout_asked(options), part, ui)
    check_varied(options, found.recipe)
    return found


def _going_on(options: Any, ui: Ui) -> tuple[ModelSet, Record] | None:
    """The lanes of a frontier that go on, and their record; None for new ones. The errors of `prepare`."""
    given = options["continue_from"]
    if given is None:
        return None
    if isinstance(given, str | os.PathLike):
        points, models = frontier.load(Path(given))[1]
    elif isinstance(given, Frontier):
        points, models = given.points, given.models
    else:
        raise TypeError(f"expected a frontier, not {type(given).__name__}")
    dropped = {k: point.dropped for k, point in enumerate(points) if point.dropped is not None}
    with of_options():
        lanes = going_on(models, dropped)
    for one in lanes.models:
        one.curve = of_earlier(one.curve)
    _check_agree(options, lanes)
    return lanes, record_to_go_on(lanes.lead, models[lanes.alive[0]].record)


def _check_agree(options: Any, lanes: ModelSet) -> None:
    """`UsageError` if options contradict the recipes of models that go on."""
    said, recipe = given_in(options, RecipeOptions), lanes.recipe
    _check_penalties(said.pop("l1", None), [penalty_in(model.rule) for model in lanes.models], "the file")
    rule = {name: said.pop(name) for name in ("rule", "alpha") if name in said}
    check_same(said, recipe, "the frontier")
    with of_options():
        if rule and with_penalty(replace(recipe, **rule), penalty_in(lanes.lead.rule)).rule != recipe.rule:
            raise UsageError(
                f"the frontier was made with {mention(rule=recipe.rule)}; leave {mention(*rule)} out"
            )


def _check_same(models: ModelSet, finished: Sequence[float], base: Recipe, l1: Any, spare: Path) -> None:
    """`UsageError` if options contradict the recipes of a checkpoint."""
    if finished:
        path = spare.with_name(spare.name.removesuffix(".checkpoint"))
        table = model_file.Contents.of(path).frontier() if path.exists() else None
        if table is None or [point.penalty for point in table.points] != [*finished]:
            raise UsageError(
                f"{spare} adds models to {path}, which does not have the others: run again without"
                f" {mention('resume')}"
            )
    before, penalties = models.recipe, [penalty_in(model.rule) for model in models.models]
    _check_penalties(l1, [*finished] or penalties, "the checkpoint")
    if penalty_name(before.rule) != penalty_name(base.rule):
        raise UsageError(f"the checkpoint was made with {mention(rule=before.rule)}")
    now = with_penalty(base, penalties[0])
    for field in fields(now):
        then = getattr(before, field.name)
        if field.name != "layout" and getattr(now, field.name) != then:
            raise UsageError(f"the checkpoint was made with {field.name} {then}: give the same options")


def _check_penalties(l1: Any, had: list[float], whose: str) -> None:
    """`UsageError` if other penalties are asked for than there are."""
    wanted = PenaltyRange(AUTO if l1 is None else l1)
    if (wanted.values and wanted.values != had) or (l1 is not None and wanted.count != len(had)):
        raise UsageError(
            f"{whose} has {len(had)} penalties from {had[0]:g} to {had[-1]:g}; leave {mention('l1')} out"
        )
