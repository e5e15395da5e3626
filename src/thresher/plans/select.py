"""Stability selection: an ensemble of half-samples, and what its models agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

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
from thresher.plans.penalties import for_halves
from thresher.plans.stability import Selection, selection_of, troubles_of
from thresher.plans.train import Many


class Selecting(Many):
    """Models of half-samples, whose penalty is twice that of the rule unless it is given."""

    def __init__(self, options: Options) -> None:
        asked = options.but(holdout=None, early_stop=None)
        if not isinstance(options["rule"], Recipe):
            with of_options():
                l1 = for_halves(options["rule"], options["l1"])
            asked = asked if l1 is None else asked.but(l1=l1)
        super().__init__(asked, Bags(options["bags"], HALVES, share=options["share"]).spec)
        self._doubled = asked["l1"] != options["l1"]

    def prepare(self, data: Data, ui: Ui, outputs: Sequence[Path | None] = ()) -> Self:
        """As that of any plan. `UsageError` for a store whose features have no names."""
        super().prepare(data, ui, outputs)
        with of_options():
            check_nameable(self.trainer.models.recipe.store)
        if self._doubled:  # noise that is measured at the solution needs no larger penalty
            self.trainer.models.share.deviations /= 2
        return self

    def select(self, outcome: Outcome) -> Selection:
        """What the halves have selected, with names if they were asked for. `DataError`."""
        options, models = self.options, self.trainer.models
        found = selection_of(models, options["false"], options["nonzero"])
        called = known_names(models.models[0].readout())
        if options["names"]:
            called |= dict(find_names(self.source, np.sort(found.keys)))
        return replace(found, called=called, warnings=[*outcome.warnings, *troubles_of(found)])
