"""``train``: one model, the race of the rule ``auto``, or an ensemble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.choice import column_of
from thresher.learning.model import bags as bagging
from thresher.learning.model.bags import Bags
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.prediction import Readout
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.warm_start import start_from
from thresher.learning.training.record import Difference, Record
from thresher.options.layouts import of_options
from thresher.options.messages import flag_of, mention, spelled
from thresher.options.model import RecipeOptions
from thresher.options.option import DEFAULT_RULE, Options, UsageError, given_in
from thresher.parts import AUTO
from thresher.plans import auto, run
from thresher.plans.by import By
from thresher.plans.run import Opened, Plan, Training, check_same, of_recipe
from thresher.plans.run_setup import Inputs
from thresher.plans.ui import Ui


class Auto(Plan):
    """Lanes with settings around the default rule, of which one wins."""

    race, successor = staticmethod(auto.race_of), staticmethod(auto.successor)

    def __init__(self, options: Options) -> None:
        super().__init__(options.but(rule=DEFAULT_RULE))
        self._given = [name for name in ("l1", "alpha") if name in given_in(options)]

    def lanes(self, recipe: Recipe) -> ModelSet:
        """Those of the race."""
        with of_options():
            recipes = auto.field(recipe, self._given)
            return ModelSet(recipes, race=auto.race_of(len(recipes)))

    def difference(self, models: ModelSet, before: TrainingState | None = None) -> Iterator[Difference]:
        """The rule of a winner must be among those that these options race."""
        given, recipe = given_in(self.options, RecipeOptions), models.recipe
        given.pop("rule", None)
        own = {name: given.pop(name) for name in ("l1", "alpha") if name in given and models.race is None}
        yield from of_recipe(given, recipe)
        more = own | ({"rate": given["rate"]} if "rate" in given else {})
        known = Recipe(loss=recipe.loss, outputs=recipe.outputs, **more)
        if models.race is not None and len(models.recipes) != len(auto.field(recipe, self._given)):
            varied = tuple(name for name in ("alpha", "l1") if name in self._given)
            yield Difference((*varied, "alpha")[0], None, varied)
        if models.race is None and recipe.rule not in [one.rule for one in auto.field(known, self._given)]:
            yield Difference("rule", recipe.rule, ("rule", *own))

    def new(self, recipe: Recipe, initial: Readout | None, data: Opened) -> ModelSet:
        """The lanes."""
        if initial is not None:
            raise UsageError(f"{mention('init')} is for one model only: give a rule other than auto")
        return self.lanes(recipe)

    def figures(self, model: Model) -> dict[str, Any]:
        """The settings that won."""
        return {"rule": model.recipe.rule}


class Many(Plan):
    """An ensemble."""

    dealt = "go to different models"

    def __init__(self, options: Options, spec: int | str) -> None:
        super().__init__(options)
        with of_options():
            self._bags = Bags.of(spec)
        self._selects = "bags" in options
        self.name = "select" if self._selects else "ensemble"

    def go_on(self, given: Any) -> tuple[ModelSet, Record]:
        """The ensemble."""
        with of_options():
            found = bagging.to_go_on(given, bagging.bagged_again)
        check_same(self.difference(found), "the ensemble")
        return found, found.lead.record

    def difference(self, models: ModelSet, before: TrainingState | None = None) -> Iterator[Difference]:
        """The models must be as many, and learn the same rows, as well."""
        yield from super().difference(models)
        then = Bags.of(models.share.spec)
        if self._selects:
            for option, one, other in (
                ("bags", then.count, self._bags.count),
                ("share", then.share, self._bags.share),
            ):
                if one != other:
                    yield Difference(option, one, (option,))
        elif then.spec != self._bags.spec:
            yield Difference("models", then.spec, ("models",))

    def new(self, recipe: Recipe, initial: Readout | None, data: Opened) -> ModelSet:
        """The ensemble; all its models start with the same weights."""
        with of_options():
            models = bagging.bagged(recipe, replace(self._bags, seed=recipe.seed))
            for model in models.models:
                if initial is not None:
                    start_from(model, initial)
        return models

    def figures(self, model: Any) -> dict[str, Any]:
        """What the ensemble consists of."""
        return {"ensemble": self._bags.spec}


def prepare(
    inputs: Inputs,
    options: Options,
    ui: Ui,
    *,
    bags: int | str | None = None,
    outputs: Sequence[Path | None] = (),
) -> Training:
    """Prepare the training of one model, or of an ensemble with `bags`.

    `outputs` are files that will be written. Raises `UsageError`, `DataError`, `ModelFileError`, OSError.
    """
    races = isinstance(options["rule"], str) and options["rule"] == AUTO
    if (races or bags is not None) and options.get("slices"):
        raise UsageError(f"{mention('slices')} is for one model, not for an ensemble or the rule auto")
    if races and bags is not None:
        raise UsageError(
            f"{mention(rule='auto')} finds one model: give another {mention('rule')}, or"
            f" {spelled('leave out ' + flag_of('ensemble'), 'use thresher.train')}"
        )
    column = column_of(bags) if isinstance(bags, str) else None
    if column is not None:
        plan: Plan = By(options, column)
    else:
        plan = Many(options, bags) if bags is not None else Auto(options) if races else Plan(options)
    return run.prepare(plan, inputs, ui, Training, outputs)
