"""What ``train`` trains: one model, the lanes of the rule ``auto``, or an ensemble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from thresher.data.layout import as_option
from thresher.data.order import Order
from thresher.lanes import auto
from thresher.lanes.folds import check_order
from thresher.learning.files import checkpoint
from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.model_file import ENSEMBLE, Contents, looks_like_ours
from thresher.learning.model import bags
from thresher.learning.model.bags import HALVES, Bags
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet, Referee
from thresher.learning.model.prediction import Readout
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.warm_start import start_from, to_go_on
from thresher.learning.training.progress import of_earlier
from thresher.learning.training.record import Record
from thresher.options.layouts import of_options
from thresher.options.messages import literal, mention, spelled
from thresher.options.model import RecipeOptions
from thresher.options.option import DEFAULT_RULE, UsageError, given_in
from thresher.parts import AUTO
from thresher.runs.preparing import OF_RULES
from thresher.runs.ui import Ui


class Learner:
    """One model: how it is created, or restored from a checkpoint."""

    plan = "train"
    race: Callable[[int], Referee] | None = None

    def __init__(self, options: Any) -> None:
        self.options = options
        """those that define the models"""

    def check(self, order: Order, passes: int) -> None:
        """`UsageError` for options that do not apply."""

    def load(self, path: Path) -> tuple[ModelSet, TrainingState]:
        """Load a checkpoint. `UsageError` if the options contradict it; `ModelFileError`."""
        models, before = checkpoint.load(path, self.plan, self.race)
        self.check_loaded(models)
        return models, before

    def go_on(self, given: Any) -> tuple[ModelSet, Record]:
        """A trained model or its file, to go on with, and its record. The errors of `load` and `to_go_on`."""
        with of_options():
            if bags_of(given) is not None:
                called = given if isinstance(given, str | PathLike) else "the model"
                raise UsageError(f"{called} is an ensemble: go on with it in thresher.ensemble")
            model = to_go_on(given)
        self.check_loaded(ModelSet.of(model), "the model")
        model.curve = of_earlier(model.curve)
        return ModelSet.of(model), record_to_go_on(model, model.record)

    def check_loaded(self, models: ModelSet, whose: str = "the checkpoint") -> None:
        """`UsageError` if the options contradict what was loaded."""
        check_same(given_in(self.options, RecipeOptions), models.recipe, whose)

    def new(self, recipe: Recipe, initial: Readout | None, ui: Ui) -> ModelSet:
        """A new set, with the weights to start from, if any. `UsageError`."""
        with of_options():
            model = Model(recipe)
            if initial is not None:
                start_from(model, initial)
        return ModelSet.of(model)

    def beside(self, ui: Ui) -> dict[str, Any]:
        """Further arguments for the Trainer."""
        return {}

    def figures(self, model: Any) -> dict[str, Any]:
        """Figures to report about the final model, beside those of every model."""
        return {}


class Auto(Learner):
    """Lanes with settings around the default rule, of which one wins."""

    race = staticmethod(auto.race_of)

    def __init__(self, options: Any) -> None:
        super().__init__(options.but(rule=DEFAULT_RULE))
        self._given = [name for name in ("l1", "alpha") if name in given_in(options)]

    def check_loaded(self, models: ModelSet, whose: str = "the checkpoint") -> None:
        """The rule of a winner must be among those that these options race."""
        given = {
            name: value for name, value in given_in(self.options, RecipeOptions).items() if name != "rule"
        }
        if models.race is not None:
            check_same(given, models.recipe, whose)
            return
        own, recipe = {name: given.pop(name) for name in ("l1", "alpha") if name in given}, models.recipe
        check_same(given, recipe, whose)
        more = own | ({"rate": given["rate"]} if "rate" in given else {})
        known = Recipe(loss=recipe.loss, outputs=recipe.outputs, **more)
        if recipe.rule not in [one.rule for one in auto.field(known, self._given)]:
            raise UsageError(f"{whose} was made with {mention(rule=recipe.rule)}: give the same options")

    def new(self, recipe: Recipe, initial: Readout | None, ui: Ui) -> ModelSet:
        """The lanes."""
        if initial is not None:
            raise UsageError(f"{mention('init')} is for one model only: give a rule other than auto")
        with of_options():
            return auto.start(recipe, ui.say, self._given)

    def beside(self, ui: Ui) -> dict[str, Any]:
        """How to choose and announce the winner."""

        def successor(models: ModelSet, over: bool) -> ModelSet:
            found = auto.successor(models, over)
            if found is not models:
                ui.say(f"after {found.examples:,} examples: continuing with {found.recipe.rule}")
            return found

        return {"successor": successor}

    def figures(self, model: Model) -> dict[str, Any]:
        """The settings that won."""
        return {"rule": model.recipe.rule}


def bags_of(given: Any) -> str | None:
    """How many models an ensemble has, or the one in a file, and which rows they learn; None for others."""
    if isinstance(given, str | PathLike) and looks_like_ours(Path(given)):
        found = Contents.of(Path(given))
        return f"{found.run[ENSEMBLE]['rows']}:{len(found)}" if ENSEMBLE in found.run else None
    return f"{given.rows}:{len(given.models)}" if isinstance(given, Ensemble) else None


def _bags(spec: str) -> str:
    found = Bags.of(spec)
    if found.rows == HALVES:
        return mention(bags=found.count, share=found.share)
    return spelled(f"--ensemble {spec}", f"models={literal(spec)}")


class Many(Learner):
    """An ensemble."""

    plan = "ensemble"

    def __init__(self, options: Any, spec: int | str) -> None:
        super().__init__(options)
        with of_options():
            self._spec = Bags.of(spec).spec

    def check(self, order: Order, passes: int) -> None:
        """In every pass, a row goes to the same models."""
        with of_options():
            check_order(order, passes, "go to different models")

    def go_on(self, given: Any) -> tuple[ModelSet, Record]:
        """The ensemble."""
        with of_options():
            found = bags.to_go_on(given)
        self.check_loaded(found, "the ensemble")
        return found, found.lead.record

    def check_loaded(self, models: ModelSet, whose: str = "the checkpoint") -> None:
        """The models must be as many, and learn the same rows, as well."""
        super().check_loaded(models, whose)
        if models.share.spec != self._spec:
            raise UsageError(f"{whose} was made with {_bags(models.share.spec)}")

    def new(self, recipe: Recipe, initial: Readout | None, ui: Ui) -> ModelSet:
        """The ensemble; all its models start with the same weights."""
        with of_options():
            models = bags.bagged(recipe, Bags.of(self._spec, recipe.seed))
            for model in models.models:
                if initial is not None:
                    start_from(model, initial)
        return models

    def figures(self, model: Any) -> dict[str, Any]:
        """What the ensemble consists of."""
        return {"ensemble": model.bags.spec}


def learner_of(options: Any, spec: int | str | None) -> Learner:
    """The learner for these options; `UsageError` if they exclude each other."""
    races = isinstance(options["rule"], str) and options["rule"] == AUTO
    if (races or spec is not None) and options.get("slices"):
        raise UsageError(f"{mention('slices')} is for one model, not for an ensemble or the rule auto")
    if spec is not None:
        if races:
            raise UsageError(
                f"{mention(rule='auto')} finds one model: give another {mention('rule')}, or"
                f" {spelled('leave out --ensemble', 'use thresher.train')}"
            )
        return Many(options, spec)
    return Auto(options) if races else Learner(options)


def record_to_go_on(model: Model, record: Record | None) -> Record:
    """The record of a model; one with what is known, if Python taught it more than that says."""
    return record or Record(lines=model.examples, examples=model.examples)


def check_same(given: dict[str, Any], recipe: Recipe, whose: str = "the checkpoint") -> None:
    """`UsageError` if an option contradicts the recipe of a checkpoint, or of a model to go on from."""
    options = dict(given)
    of_rule = {name: options.pop(name) for name in OF_RULES if name in options}
    if isinstance(of_rule.get("rule"), Recipe):
        raise UsageError(f"{whose} contains the recipe; leave it out")
    if of_rule and _other(recipe, "rule", {"rate": None, **of_rule}):
        raise _made_otherwise(whose, recipe, "rule", *of_rule)
    for name, value in options.items():
        field = "rate" if name == "eta0" else name
        if _other(recipe, field, {name: value}):
            raise _made_otherwise(whose, recipe, field, name)


def _other(recipe: Recipe, field: str, options: dict[str, Any]) -> bool:
    """Whether these options would change the field, or are invalid for the recipe."""
    try:
        changed = replace(recipe, **options)
    except ValueError:
        return True
    return bool(getattr(changed, field) != getattr(recipe, field))


def _made_otherwise(whose: str, recipe: Recipe, field: str, *options: str) -> UsageError:
    flags = " and ".join(map(mention, options))
    return UsageError(f"{whose} was made {as_option(field, getattr(recipe, field))}; leave {flags} out")
