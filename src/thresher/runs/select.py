"""Stability selection: an ensemble of half-samples, what its models agree on, and a model of that alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from thresher.data.features.names import Names, find_names
from thresher.lanes.bags import HALVES, Bags
from thresher.lanes.penalties import leaves_penalty_open, penalty_in, penalty_name
from thresher.lanes.stability import Selection, no_threshold, selection_of
from thresher.learning.inspection.feature_names import check_nameable, known_names
from thresher.learning.model.model import Model
from thresher.learning.model.preparation import LISTED
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.trainer import Outcome, Trainer
from thresher.options.layouts import of_options
from thresher.options.messages import flag_of, mention, spelled
from thresher.options.option import UsageError
from thresher.parts import AUTO, make
from thresher.runs import train
from thresher.runs.preparing import Inputs
from thresher.runs.train import Training, check_names_again
from thresher.runs.ui import Ui


@dataclass
class Selecting:
    """A selection that is prepared."""

    training: Training
    options: Any
    names: Names | None = None
    """of the features that live in a half, if they were asked for"""

    @property
    def trainer(self) -> Trainer[Any]:
        """What trains the halves."""
        return self.training.trainer

    def run(self) -> Outcome:
        """Train a model of each half. Raises `Interrupted`, `DataError`, `DivergedError`."""
        return self.training.run()

    def selected(self, outcome: Outcome) -> Selection:
        """What the halves have selected, with names if they were asked for. `DataError`."""
        options, models = self.options, self.trainer.model.models
        found = selection_of(models, options["false"], options["nonzero"])
        called = known_names(models[0].readout())
        if options["names"]:
            self.names = find_names(self.training.source, _sorted(found.keys))
            called |= dict(self.names)
        more = [] if found.threshold is not None else [no_threshold(found)]
        return replace(found, called=called, warnings=[*outcome.warnings, *more])

    def keep(self, found: Selection) -> Model | None:
        """A model of the kept features alone, learned from the data again; None if none is kept.

        `DataError`, `DivergedError`, `Interrupted`.
        """
        if not found.kept.any():
            return None
        first = self.trainer
        recipe = replace(first.model.recipe, admit=LISTED)
        recipe = replace(recipe, rule=_rule_of(self.options, recipe))
        model = Model(recipe)
        kept = _sorted(found.keys[found.kept])
        model.admit_only(kept)
        source = first.reread()
        model.layout = source.layout
        plan = replace(first.plan, checkpoint=None, checkpoint_every=0)
        more: Any = {"watcher": first.watcher, "stopper": first.stopper}
        Trainer(model, source, plan, reread=first.reread, order=first.order, **more).run()
        model.names = None if self.names is None else self.names.only(kept)
        return model


def _sorted(keys: Any) -> Any:
    return keys[keys.argsort()]


def _rule_of(options: Any, recipe: Recipe) -> Any:
    """The rule of the model of kept features: with the penalty that `train` would give it."""
    if options["l1"] is not None or isinstance(options["rule"], Recipe) or not _opens(options["rule"]):
        return recipe.rule
    return recipe.make_rule()._replace(l1=penalty_in(make("rule", options["rule"])))


def _opens(rule: Any) -> bool:
    """Whether a rule has an l1 that is not said."""
    return not isinstance(rule, Recipe) and leaves_penalty_open(rule) and penalty_name(rule) == "l1"


def _with_penalty(options: Any) -> Any:
    """The options with the penalty of the halves: twice that of the rule, unless the user says another."""
    with of_options():
        if options["l1"] is not None or not _opens(options["rule"]):
            return options
        own = penalty_in(make("rule", options["rule"]))
    return options.but(l1=2 * own) if own else options


def prepare(
    inputs: Inputs, options: Any, ui: Ui, *, keep: bool, outputs: Sequence[Path | None] = ()
) -> Selecting:
    """Prepare a selection; with `keep`, a model of the kept features follows.

    `outputs` are files that will be written. Raises `UsageError`, `DataError`, `ModelFileError`, OSError.
    """
    if isinstance(options["rule"], str) and options["rule"] == AUTO:
        raise UsageError(f"{mention(rule='auto')} finds one model: give another {mention('rule')}")
    bags = Bags(options["bags"], HALVES, share=options["share"]).spec
    more = {"holdout": None, "early_stop": None}
    asked = _with_penalty(options).but(names=False, **more)
    training = train.prepare(inputs, asked, ui, bags=bags, outputs=outputs)
    model = training.model.lead
    with of_options():
        check_nameable(model.recipe.store)
    if options["names"]:
        check_names_again(training.source, model.recipe.store)
    if keep and not training.source.rereadable:
        raise UsageError(
            f"{spelled(flag_of('keep'), 'keep=True')} learns the data again, but a stream can be read only"
            " once: leave it out"
        )
    return Selecting(training, options)
