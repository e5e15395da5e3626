"""Training models for many penalties from one reading, and choosing from a folder of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from thresher.data.order import make_order
from thresher.learning.files import model_file
from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.choice import LOSS, FrontierTable, no_standard_error
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet, going_on
from thresher.learning.model.prediction import LinearPredictor
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.record import Difference, Record
from thresher.options.lanes import AUTO
from thresher.options.layouts import of_options
from thresher.options.messages import mention
from thresher.options.model import RecipeOptions
from thresher.options.option import Options, UsageError, given_options
from thresher.plans import budget
from thresher.plans.frontier import points_of
from thresher.plans.models import Frontier
from thresher.plans.penalties import (
    PenaltyRange,
    leaves_penalty_open,
    penalty_in,
    penalty_name,
    with_penalty,
)
from thresher.plans.repeat import choosing_first, chosen_of, passes_said, train_command
from thresher.plans.run import Opened, Plan, of_recipe


def recipes_of(base: Recipe, options: Options, data: Opened) -> list[Recipe]:
    """One recipe per penalty.

    A range is found on the first rows in the order of the run. `UsageError` if it cannot be found, as in data
    that can be read only once; `DataError`.
    """
    wanted = PenaltyRange(AUTO if options["l1"] is None else options["l1"])
    with of_options():
        if wanted.values:
            return [with_penalty(base, value) for value in wanted.values]
        if not data.source.rereadable:
            raise UsageError(f"the data can be read only once: give the penalties, {mention(l1='LO:HI:N')}")
        source = data.again()
        first = make_order(data.order.spec, base.seed).over(source, 1)
        values = wanted.find_range(first, replace(base, layout=source.layout))
        return [with_penalty(base, value) for value in values]


class Paths(Plan):
    """A model for each of many penalties, side by side; a tenth of the rows is held out to choose by."""

    name, held, whose, varies = "path", 10, "the frontier", True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.choice: str = options["choose"]
        """what is chosen: of a frontier that goes on, as before, unless it is asked for"""

    def look(self, recipe: Recipe) -> None:
        """The rule must have a penalty, which is open unless a range is given."""
        rule, judge = self.options["rule"], self.options["judge"]
        with of_options():
            name, is_open = penalty_name(recipe.rule), leaves_penalty_open(rule)
        if isinstance(rule, str) and not is_open and self.options["l1"] is None:
            ranged = f"leave it out of {mention('rule')}, or give its range, {mention(l1='LO:HI:N')}"
            raise UsageError(f"{name} differs between the models: {ranged}")
        if self.options["choose"] == "1se" and judge not in (None, LOSS):
            raise UsageError(no_standard_error(judge))

    def new(self, recipe: Recipe, initial: LinearPredictor | None, data: Opened) -> ModelSet:
        """A model for each penalty, given or in the range that is found in the first rows."""
        return ModelSet(recipes_of(recipe, self.options, data))

    def revive(self, given: object) -> ModelSet:
        """The lanes of a frontier."""
        if isinstance(given, str | os.PathLike):
            given = Frontier.read(model_file.Contents.of(Path(given)), model_file.revive)
        if not isinstance(given, Frontier):
            raise TypeError(f"expected a frontier, not {type(given).__name__}")
        if isinstance(given.model_, LinearPredictor):
            raise UsageError("a frontier that was loaded can only predict: give its file to go on with")
        if "choose" not in self.options.given:
            self.choice = given.choice
        dropped = {k: point.dropped for k, point in enumerate(given.points) if point.dropped is not None}
        return going_on(given.models, dropped)

    def difference(self, models: ModelSet, before: TrainingState | None = None) -> Iterator[Difference]:
        """The penalties must be the same, too."""
        options, recipe = given_options(self.options, RecipeOptions), models.recipe
        had = [penalty_in(model.rule) for model in models.models]
        l1 = options.pop("l1", None)
        wanted = PenaltyRange(AUTO if l1 is None else l1)
        if (wanted.values and wanted.values != had) or (l1 is not None and wanted.count != len(had)):
            yield Difference("l1", f"{had[0]:g}:{had[-1]:g}:{len(had)}", ("l1",))
        rule = {name: options.pop(name) for name in ("rule", "alpha", "l2") if name in options}
        yield from of_recipe(options, recipe)
        with of_options():
            same = penalty_name(rule.get("rule", recipe.rule)) == penalty_name(recipe.rule)
            same = same and with_penalty(replace(recipe, **rule), had[0]).rule == recipe.rule
        if rule and not same:
            yield Difference("rule", recipe.rule, tuple(rule))

    def frontier(self) -> Frontier:
        """The trained models."""
        first = self.trainer
        points = points_of(first.models, first.scores, first.policy.scored, first.plan.judge)
        models = first.models.models
        return Frontier(penalty_name(models[0].rule), points, models, choice=self.choice)

    def command(self, data: Sequence[str], found: FrontierTable, chosen: Model) -> str:
        """The command that trains the chosen model for as many passes as were best, on all rows.

        For a budget of weights, on the same rows: a model of more rows has more weights. A model that
        has gone on does so from the one that it was.
        """
        options, made = self.options, chosen.record or Record()
        held = None if options["holdout"] == "none" else options["holdout"] or "every-10th"
        # a run that was resumed need not say again what it goes on from
        old, own = str(options["continue_from"] or "OLD"), dict[str, object]()
        if made.continued:
            own["continue_from"] = chosen_of(old, found.chosen)
        train = train_command(
            data,
            None,
            options,
            chosen if options["resume"] else None,
            rule=found.points[found.chosen].spec,
            passes=passes_said(made.passes, chosen.recipe, made.solved),
            holdout=held if budget.budget_of(found.choice) is not None else None,
            **own,
        )
        return choosing_first(train, old, found.chosen) if made.continued else train
