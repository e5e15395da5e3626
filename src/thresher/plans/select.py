"""Stability selection: an ensemble of half-samples, and what its models agree on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from thresher.data.chunk import Chunk, concat
from thresher.data.columns import NUMERIC
from thresher.data.features.names import find_names
from thresher.data.inputs.any_data import Data
from thresher.learning.inspection.feature_names import check_nameable, known_names
from thresher.learning.model.bags import HALF, Bags
from thresher.learning.model.ensemble import HALVES
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.interruption import Interrupted
from thresher.learning.training.progress import Ui
from thresher.learning.training.shares import together
from thresher.learning.training.trainer import Outcome
from thresher.options.layouts import of_options
from thresher.options.messages import mention
from thresher.options.option import Options, UsageError
from thresher.parts import REGISTRY, lookup, make, part_name
from thresher.plans import train
from thresher.plans.estimation import MOST, estimate
from thresher.plans.penalties import for_halves, penalty_in
from thresher.plans.run import Training, check_names_again
from thresher.plans.stability import Selection, selection_of, troubles_of, troubles_of_estimates


@dataclass
class Selecting(Training):
    """A selection that is prepared."""

    options: Options

    def select(self, outcome: Outcome) -> Selection:
        """What the halves have selected, with names if they were asked for. `DataError`."""
        options, models = self.options, self.trainer.models
        found = selection_of(models, options["false"], options["nonzero"])
        called = known_names(models.models[0].readout())
        if options["names"]:
            called |= dict(find_names(self.source, np.sort(found.keys)))
        return replace(found, called=called, warnings=[*outcome.warnings, *troubles_of(found)])

    def estimate(self, found: Selection) -> Selection:
        """With estimates from the rows that were set aside, if asked for. `DataError`, `Interrupted`."""
        keys = found.keys[found.kept][:MOST]
        if not self.options["estimate"] or not len(keys):
            return found
        first, taken, number = self.trainer, list[Chunk](), 0
        recipe, source, layout = first.models.recipe, first.reread(), first.models.layout
        first.ui.say("estimating the kept features from the other half of the rows")
        with closing(source.chunks()) as chunks:
            for chunk, apart in first.holdout.divided(first.stopper.each(chunks, self._stop)):
                groups = None if chunk.groups is None else together(chunk.groups, number)
                number += len(chunk)
                rows = replace(chunk, groups=groups).take(apart & (chunk.weights > 0))
                taken.append(rows.only(np.sort(keys)))
        rows = concat(taken)
        if rows.groups is not None:
            rows = rows.take(np.argsort(rows.groups, kind="stable"))
        gaps = layout is not None and layout.gaps and NUMERIC in layout.kinds
        own = estimate(rows, keys, recipe.objective, gaps=gaps, intercept=recipe.intercept)
        found = replace(found, estimates=own)
        return replace(found, warnings=[*found.warnings, *troubles_of_estimates(found)])

    def _stop(self) -> None:
        raise Interrupted(None, self.trainer.models.examples)


def prepare(data: Data, options: Options, ui: Ui, *, outputs: Sequence[Path | None] = ()) -> Selecting:
    """Prepare a selection; `outputs` are files that will be written.

    Raises `UsageError`, `DataError`, `ModelFileError`, OSError.
    """
    bags = Bags(options["bags"], HALVES, share=options["share"]).spec
    asked = options.but(names=False, holdout=HALF if options["estimate"] else None, early_stop=None)
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
    if options["estimate"]:
        _check_estimable(model.recipe)
        training.trainer.holdout.set_aside()
    if options["estimate"] and not training.source.rereadable:
        raise UsageError(
            f"{mention(estimate=True)} reads the data again, but a stream can be read only once: leave it out"
        )
    own = None if asked["l1"] == options["l1"] else penalty_in(make("rule", options["rule"]))
    if own is not None:  # noise that is measured at the solution needs no larger penalty
        training.trainer.models.share.deviations *= own / penalty_in(model.recipe.rule_part)
    return Selecting(**vars(training), options=options)


def _check_estimable(recipe: Recipe) -> None:
    """`UsageError` unless the model has one output, and its loss a likelihood."""
    head = recipe.objective
    if head.count == 1 and head.loss.LIKELIHOOD:
        return
    able = [name for name in sorted(REGISTRY["loss"]) if lookup("loss", name).LIKELIHOOD]
    has = "several outputs" if head.outputs.kind != "one" else f"the loss {part_name(type(head.loss))}"
    raise UsageError(
        f"{mention(estimate=True)} is for one output and the losses {', '.join(able)}, not for {has}: leave"
        " it out"
    )
