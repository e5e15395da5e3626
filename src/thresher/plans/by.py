"""``train --by``: a model for each value of a column, beside one of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.choice import column_of
from thresher.learning.model.bags import to_go_on
from thresher.learning.model.by_column import ByColumn, models_by
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.prediction import Readout
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.record import Difference, Record
from thresher.options.layouts import of_options
from thresher.options.messages import mention
from thresher.options.option import Options, UsageError
from thresher.plans.run import Opened, Plan, check_same


class By(Plan):
    """A model for each value of a column."""

    name, dealt = "ensemble", "have another number"

    def __init__(self, options: Options, column: str) -> None:
        super().__init__(options)
        self._share = ByColumn(column)

    def go_on(self, given: Any) -> tuple[ModelSet, Record]:
        """The models, which go on with their values; new ones begin."""
        with of_options():
            found = to_go_on(given, lambda one: ByColumn(column_of(one.rows) or "", one.record, one.values))
        check_same(self.difference(found), "the file")
        return found, found.lead.record

    def difference(self, models: ModelSet, before: TrainingState | None = None) -> Iterator[Difference]:
        """The column must be the same, as well."""
        yield from super().difference(models)
        if models.share.spec != self._share.spec:
            yield Difference("by", column_of(models.share.spec), ("by",))

    def new(self, recipe: Recipe, initial: Readout | None, data: Opened) -> ModelSet:
        """The model of all rows; those of values come with their first rows."""
        if initial is not None:
            raise UsageError(f"{mention('init')} is for one model, not for one for each value of a column")
        with of_options():
            return models_by(recipe, self._share.column)

    def figures(self, model: Any) -> dict[str, Any]:
        """The column, and how many values it has."""
        return {"by": self._share.column, "values": len(model.values)}
