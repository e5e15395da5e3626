"""Stability selection: an ensemble of half-samples, and what its models agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from thresher.data.features.names import find_names
from thresher.data.inputs.any_data import Data
from thresher.learning.inspection.feature_names import check_nameable, known_names
from thresher.learning.model.bags import Bags
from thresher.learning.model.ensemble import HALVES
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.progress import Ui
from thresher.learning.training.trainer import Outcome
from thresher.options.layouts import of_options
from thresher.options.option import Options
from thresher.parts import make
from thresher.plans import run
from thresher.plans.penalties import for_halves, penalty_in
from thresher.plans.run import Training
from thresher.plans.stability import Selection, selection_of, troubles_of
from thresher.plans.train import Many


class Selecting(Training):
    """A selection that is prepared."""

    def select(self, outcome: Outcome) -> Selection:
        """What the halves have selected, with names if they were asked for. `DataError`."""
        options, models = self.plan.options, self.trainer.models
        found = selection_of(models, options["false"], options["nonzero"])
        called = known_names(models.models[0].readout())
        if options["names"]:
            called |= dict(find_names(self.source, np.sort(found.keys)))
        return replace(found, called=called, warnings=[*outcome.warnings, *troubles_of(found)])


def prepare(data: Data, options: Options, ui: Ui, *, outputs: Sequence[Path | None] = ()) -> Selecting:
    """Prepare a selection; `outputs` are files that will be written.

    Raises `UsageError`, `DataError`, `ModelFileError`, OSError.
    """
    bags = Bags(options["bags"], HALVES, share=options["share"]).spec
    asked = options.but(holdout=None, early_stop=None)
    if not isinstance(options["rule"], Recipe):
        with of_options():
            l1 = for_halves(options["rule"], options["l1"])
        asked = asked if l1 is None else asked.but(l1=l1)
    training = run.prepare(Many(asked, bags), data, ui, Selecting, outputs)
    model = training.model.models[0]
    with of_options():
        check_nameable(model.recipe.store)
    own = None if asked["l1"] == options["l1"] else penalty_in(make("rule", options["rule"]))
    if own is not None:  # noise that is measured at the solution needs no larger penalty
        training.trainer.models.share.deviations *= own / penalty_in(model.recipe.rule_part)
    return training
