"""``train``: one model, an ensemble, a model for each value of a column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.choice import column_of
from thresher.learning.files.model_file import looks_like_ours
from thresher.learning.model import bags as bagging
from thresher.learning.model.bags import Bags
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.prediction import LinearPredictor
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.warm_start import start_from
from thresher.learning.training.record import Difference
from thresher.learning.training.trainer import Outcome
from thresher.options.layouts import of_options
from thresher.options.messages import mention
from thresher.options.option import Options, UsageError
from thresher.plans.run import Opened, Plan, bags_of


class ManyModels(Plan):
    """An ensemble, or a model for each value of a column beside one of all rows."""

    def __init__(self, options: Options, spec: int | str) -> None:
        super().__init__(options)
        with of_options():
            self._spec = bagging.share_of(spec).spec
        self._column, self._selects = column_of(self._spec), "bags" in options
        self.name = "select" if self._selects else "ensemble"
        self.whose = "the file" if self._column else "the ensemble"
        self.dealt = "have another number" if self._column else "go to different models"

    def revive(self, given: Any) -> ModelSet:
        """The models; new ones begin with new values."""
        said = [name for name in ("by", "ensemble") if self.options.get(name)]
        if said and looks_like_ours(Path(given)) and bags_of(given) is None:
            raise UsageError(f"{given}: not an ensemble; leave {mention(*said)} out")
        return bagging.to_go_on(given)

    def difference(self, models: ModelSet, before: TrainingState | None = None) -> Iterator[Difference]:
        """The models must be as many, and learn the same rows, as well."""
        yield from super().difference(models)
        then, now = models.share.spec, self._spec
        if self._selects:
            bags, own = Bags.of(then), Bags.of(now)
            for option, one, other in (("bags", bags.count, own.count), ("share", bags.share, own.share)):
                if one != other:
                    yield Difference(option, one, (option,))
        elif then != now:
            made, given = ("by" if column_of(spec) else "models" for spec in (then, now))
            yield Difference(made, column_of(then) or then, (given,))

    def new(self, recipe: Recipe, initial: LinearPredictor | None, data: Opened) -> ModelSet:
        """The models, all with the same weights; those of values come with their first rows."""
        if initial is not None and self._column:
            raise UsageError(f"{mention('init')} is for one model, not for one for each value of a column")
        with of_options():
            models = bagging.make_bags(recipe, bagging.share_of(self._spec, recipe.seed))
            for model in models.models:
                if initial is not None:
                    start_from(model, initial)
        return models

    def figures(self, outcome: Outcome) -> dict[str, Any]:
        """What the models are, too."""
        found, model = super().figures(outcome), self.trainer.model
        if self._column:
            return found | {"by": self._column, "values": len(model.values)}
        return found | {"ensemble": self._spec}
