"""Stability selection: an ensemble of half-samples, what its models agree on, and a model of that alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.features.names import Names, find_names
from thresher.data.inputs.any_data import Data
from thresher.learning.inspection.feature_names import check_nameable, known_names
from thresher.learning.model.bags import Bags
from thresher.learning.model.ensemble import HALVES
from thresher.learning.model.model import Model
from thresher.learning.model.preprocessing import LISTED
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.progress import Ui
from thresher.learning.training.trainer import Outcome, Trainer
from thresher.options.layouts import of_options
from thresher.options.messages import flag_of, mention, spelled
from thresher.options.option import Options, UsageError
from thresher.parts import AUTO, make
from thresher.plans import train
from thresher.plans.penalties import for_halves, penalty_in, with_penalty
from thresher.plans.run import Training, check_names_again
from thresher.plans.stability import Selection, selection_of, troubles_of


@dataclass
class Selecting(Training):
    """A selection that is prepared."""

    options: Options
    penalty: float | None = None
    """of the model of kept features, if the halves have another"""
    names: Names | None = None
    """of the features that live in a half, if they were asked for"""

    def selected(self, outcome: Outcome) -> Selection:
        """What the halves have selected, with names if they were asked for. `DataError`."""
        options, models = self.options, self.trainer.model.models
        found = selection_of(models, options["false"], options["nonzero"])
        called = known_names(models[0].readout())
        if options["names"]:
            self.names = find_names(self.source, np.sort(found.keys))
            called |= dict(self.names)
        return replace(found, called=called, warnings=[*outcome.warnings, *troubles_of(found)])

    def keep(self, found: Selection) -> Model | None:
        """A model of the kept features alone, learned from the data again; None if none is kept.

        `DataError`, `DivergedError`, `Interrupted`.
        """
        if not found.kept.any():
            return None
        first = self.trainer
        recipe = replace(first.models.recipe, admit=LISTED)
        if self.penalty is not None:
            recipe = with_penalty(recipe, self.penalty)
        model = Model(recipe)
        kept = np.sort(found.keys[found.kept])
        model.admit_only(kept)
        source = first.reread()
        model.layout = source.layout
        plan = replace(first.plan, checkpoint=None, checkpoint_every=0)
        more: Any = {"ui": first.ui, "stopper": first.stopper}
        Trainer(model, source, plan, reread=first.reread, order=first.order, **more).run()
        model.names = None if self.names is None else self.names.only(kept)
        return model


def prepare(
    data: Data, options: Options, ui: Ui, *, keep: bool, outputs: Sequence[Path | None] = ()
) -> Selecting:
    """Prepare a selection; with `keep`, a model of the kept features follows.

    `outputs` are files that will be written. Raises `UsageError`, `DataError`, `ModelFileError`, OSError.
    """
    if isinstance(options["rule"], str) and options["rule"] == AUTO:
        raise UsageError(f"{mention(rule='auto')} finds one model: give another {mention('rule')}")
    bags = Bags(options["bags"], HALVES, share=options["share"]).spec
    asked = options.but(names=False, holdout=None, early_stop=None)
    if not isinstance(options["rule"], Recipe):
        with of_options():
            l1 = for_halves(options["rule"], options["l1"])
        asked = asked if l1 is None else asked.but(l1=l1)
    training = train.prepare(data, asked, ui, bags=bags, outputs=outputs)
    model = training.model.models[0]
    with of_options():
        check_nameable(model.recipe.store)
    if options["names"]:
        check_names_again(training.source, model.recipe.store)
    if keep and not training.source.rereadable:
        raise UsageError(
            f"{spelled(flag_of('keep'), 'keep=True')} learns the data again, but a stream can be read only"
            " once: leave it out"
        )
    own = None if asked["l1"] == options["l1"] else penalty_in(make("rule", options["rule"]))
    return Selecting(**vars(training), options=options, penalty=own)
