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
from thresher.learning.training.progress import Ui
from thresher.options.layouts import of_options
from thresher.options.option import Options
from thresher.parts import make
from thresher.plans.penalties import leaves_penalty_open, penalty_in, penalty_name
from thresher.plans.stability import Selection, selection_of, troubles_of
from thresher.plans.train import ManyModels


class Selecting(ManyModels):
    """Models of half-samples, whose penalty is twice that of the rule unless it is given."""

    def __init__(self, options: Options) -> None:
        rule, asked = options["rule"], options.but(holdout=None, early_stop=None)
        with of_options():
            is_open = options["l1"] is None and leaves_penalty_open(rule) and penalty_name(rule) == "l1"
            own = penalty_in(make("rule", rule)) if is_open else 0.0
        self._doubled = own > 0
        if self._doubled:
            asked = asked.but(l1=2 * own)
        super().__init__(asked, Bags(options["bags"], HALVES, share=options["share"]).spec)

    def prepare(self, data: Data, ui: Ui, outputs: Sequence[Path | None] = ()) -> Self:
        """As that of any plan. `UsageError` for a store whose features have no names."""
        super().prepare(data, ui, outputs)
        with of_options():
            check_nameable(self.trainer.models.recipe.store)
        if self._doubled:  # noise that is measured at the solution needs no larger penalty
            self.trainer.models.share.deviations /= 2
        return self

    def select(self) -> Selection:
        """What the halves have selected, with its trouble, and names if they were asked for. `DataError`."""
        options, models = self.options, self.trainer.models
        found = selection_of(models, options["false"], options["nonzero"])
        called = known_names(models.models[0].predictor())
        if options["names"]:
            called |= dict(find_names(self.source, np.sort(found.keys)))
        return replace(found, called=called, warnings=troubles_of(found))
