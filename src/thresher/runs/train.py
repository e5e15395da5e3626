"""Training one model, or an ensemble."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from thresher.data.errors import DataError
from thresher.data.inputs.any_data import Data, is_matrix
from thresher.data.layout import AnyLayout, Layout
from thresher.data.log.source import LogSource
from thresher.data.source import Source
from thresher.engine.atomic import clear_abandoned
from thresher.learning.files import model_file
from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.model_file import looks_like_ours
from thresher.learning.inspection import plots
from thresher.learning.inspection.feature_names import check_namer, keep_names, names_follow
from thresher.learning.model.agreement import COLUMNS, kind_of_model
from thresher.learning.model.calibration import figures_of as of_calibration
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.model import Model, as_model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.prediction import LinearPredictor, ModelOrFile, Readout
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.warm_start import checked_data, extended, layout_from
from thresher.learning.training.ahead import Ahead, compile_ahead
from thresher.learning.training.record import Record
from thresher.learning.training.shares import Part, check_ungrouped
from thresher.learning.training.trainer import Outcome, Trainer
from thresher.options.layouts import layout_asked, of_layouts, of_options
from thresher.options.messages import mention, mention_command
from thresher.options.option import UsageError
from thresher.runs.learners import Learner, learner_of
from thresher.runs.preparing import (
    Inputs,
    agreed,
    are_files,
    check_written,
    going_on_like,
    groups_of,
    holdout_of,
    layout_of_checkpoint,
    order_of,
    plan_of,
    reading_of,
    ready,
    source_of,
    trainer_of,
)
from thresher.runs.ui import Ui


@dataclass
class Training:
    """A training that is prepared."""

    trainer: Trainer
    learner: Learner
    source: Source
    names: bool
    """whether to find the names of features"""
    ui: Ui

    @property
    def model(self) -> Any:
        """What is trained; after `run`, what it has become."""
        return self.trainer.model

    def run(self) -> Outcome:
        """Train. Raises `Interrupted`, `DataError`, `DivergedError`."""
        outcome = self.trainer.run()
        if not self.names and self._has_names() and not self.source.rereadable:
            outcome.warnings += names_follow(self.model, self.source)
        return outcome

    def save(self, path: Path, state: bool) -> bool:
        """Write the model, then again with names if they are wanted; False if a signal interrupted that.

        OSError; `DataError` if names cannot be read.
        """
        self.model.save(path, state=state)
        self.trainer.discard_checkpoint()
        if not self.will_name:
            return True
        self.ui.say("reading the names of features")
        try:
            if not self.trainer.stopper.unless_asked(self.name):
                return False
        except DataError as error:
            raise DataError(f"{error} ({self.without_names(path)})") from error
        self.model.save(path, state=state)
        return True

    def tell_large_state(self) -> None:
        """Say how much learning state `save` will write, if that is much."""
        models = self.model.models if isinstance(self.model, Ensemble) else [self.model]
        model_file.tell_large_state(models, self.ui.say, model_file.LEAVES_OUT)

    def without_names(self, path: Path) -> str:
        """What is saved if the names are not read, in words."""
        return f"the model is saved in {path} without the names of features; thresher name adds them"

    def draw(self, path: str | os.PathLike[str] | None, outcome: Outcome) -> None:
        """Draw the table of progress, if a path is given. OSError."""
        if path is not None:
            stages, loss = plots.stages_of_table(outcome.table), self.model.recipe.loss
            plots.write(Path(path), plots.learning(stages, str(loss), outcome.holdout))

    def figures(self, outcome: Outcome) -> dict[str, Any]:
        """Figures of what `run` has learned, and of the run."""
        model, waiting = self.model, self.model.features_waiting
        return {
            "examples": outcome.examples,
            "passes": outcome.passes,
            "progressive_loss": outcome.progressive_loss,
            **outcome.figures_of_new,
            **({"left_out": outcome.left_out} if outcome.left_out else {}),
            "nonzero": outcome.nonzero,
            "features_seen": outcome.features_seen,
            **({} if waiting is None else {"features_waiting": waiting}),
            **({} if model.names is None else {"named": len(model.names)}),
            **({"calibration": of_calibration(model.head)} if model.recipe.calibrate else {}),
            "seconds": round(outcome.seconds, 3),
            **({"seconds_compiling": round(outcome.compiling, 3)} if outcome.compiling else {}),
            "examples_per_second": round(outcome.examples_per_second),
            "skipped": outcome.skipped,
            **({"importance_0": outcome.weightless} if outcome.weightless else {}),
            **self.learner.figures(model),
            **({"slices": model.record.slices} if model.record and model.record.slices else {}),
        }

    def _has_names(self) -> bool:
        """Whether the model has names of the weights that it started from."""
        return bool(getattr(self.model, "names", None))

    @property
    def will_name(self) -> bool:
        """Whether names of features are to be found once the model is learned, by reading the data again."""
        return self.names or (self._has_names() and self.source.rereadable)

    def name(self) -> None:
        """Find and keep the names of features. `DataError`."""
        if self.names:
            keep_names([self.model], self.source)
        else:
            names_follow(self.model, self.source)


def prepare(
    inputs: Inputs,
    options: Any,
    ui: Ui,
    *,
    bags: int | str | None = None,
    outputs: Sequence[Path | None] = (),
) -> Training:
    """Prepare the training of one model, or of an ensemble with `bags`.

    `outputs` are files that will be written. Raises `UsageError`, `DataError`, `ModelFileError`, OSError.
    """
    learner, spare = learner_of(options, bags), options.get("checkpoint")
    plan, judge = plan_of(options, ui, learner.plan, spare)
    resumed, before = _resumed(learner, options)
    plan = agreed(plan, options, before)
    if resumed is None:
        if spare is not None:
            look_at(spare, ui)
        models, read, like, earlier = _begin(inputs, options, learner, plan.holdout_every, ui)
        plan = going_on_like(plan, options, earlier, inputs.data)
    else:
        models, like, earlier = resumed, None, None
        layout = layout_of_checkpoint(options, models.layout)
        read = reading_of(options, plan.holdout_every) | {"layout": layout}
    slices = None
    if options.get("slices"):
        from thresher.learning.evaluation.slices import ProgressiveSlices

        slices = ProgressiveSlices()
        models.models[0].listen(slices)
    one = models.models[0] if models.models[0].is_alone and len(models.parts) == 1 else None
    example, ahead = one or Model(models.recipe), Ahead()
    if ui.forks:
        lanes = models if one is None and len(models.parts) == 1 else None
        ahead = compile_ahead(example, plan.judges(judge), lanes, then=True)
    order = order_of(options, before, example.recipe.seed)
    learner.check(order, plan.passes)
    source = source_of(inputs, models.head.domain.of_model(earlier is not None), read)
    held = holdout_of(judge, models.head.domain, source, read, plan.passes == 1)
    check_written(outputs, options, inputs.data, source, held)
    known = () if earlier is None else columns_of(models)
    if earlier is not None and isinstance(source, LogSource) and source.begin.row:
        ui.warn(f"{source.folder}: begins with row {source.begin.row + 1:,}; those before have been removed")
    if earlier is None:
        models.layout = source.layout
        source = checked_data(like, source)
    else:
        source = follow(models, source)
    if options.get("names"):
        check_names_again(source, example.store)
    if slices is not None:
        with of_options():
            slices.begin(source, options["slices"], models.recipe.head())
    beside = {"ready": ahead.wait, "earlier": earlier, "known": known, "before": before, **learner.beside(ui)}
    beside |= {"stopper": ui.stopper(checkpoint=spare is not None), "slices": slices}
    trainer = trainer_of(models, source, plan, order, held, options["cache"], ui, **beside)
    # it skips what it cannot learn of rows that were acknowledged
    if trainer.source.acknowledged and one is not None:
        one.skip_with(trainer.skip)
    return Training(trainer, learner, source, bool(options.get("names")), ui)


def _resumed(learner: Learner, options: Any) -> tuple[Any, Any]:
    """What a checkpoint holds: the learner and the state of training; None for both unless it resumes."""
    if not options.get("resume"):
        return None, None
    if options.get("init") is not None:
        both = f"{mention('init')} starts a new training, {mention('resume')} continues one"
        raise UsageError(f"{both}: give only one of them")
    models, before = learner.load(options["checkpoint"])
    if options.get("continue_from") is not None:
        old, earlier = learner.go_on(options["continue_from"])
        check_goes_on(before, models.recipe, old.recipe, earlier)
    return models, before


def check_goes_on(before: TrainingState, recipe: Recipe, old: Recipe, earlier: Record) -> None:
    """`UsageError` unless a checkpoint, of a recipe, is of a training that went on from an old one."""
    if before.earlier is None:
        raise UsageError(f"the checkpoint was made without {mention('continue_from')}; leave it out")
    if before.earlier != earlier or replace(recipe, layout=None) != replace(old, layout=None):
        raise UsageError(
            "the checkpoint goes on from another model, or from this one as it was before: give the same"
            f" {mention('continue_from')}, or leave it out"
        )


class _Beginning(NamedTuple):
    """What a training begins with."""

    models: ModelSet
    read: dict[str, Any]
    """how the data are opened"""
    like: LinearPredictor | None
    """the weights that the model starts from"""
    earlier: Record | None
    """the record of the model, if it goes on"""


def _begin(inputs: Inputs, options: Any, learner: Learner, part: Part, ui: Ui) -> _Beginning:
    """A new model, perhaps with the weights of another; or a trained one, which goes on."""
    init, old = options.get("init"), options.get("continue_from")
    if old is None:
        started = None if init is None else _weights_of(init)
        layout = _layout(inputs.data, options, started)
        recipe, read = ready(inputs, learner.options, layout, part, ui, started)
        return _Beginning(learner.new(recipe, started, ui), read, started, None)
    if init is not None:
        both = f"{mention('init')} starts a new model, {mention('continue_from')} goes on with one"
        raise UsageError(f"{both}: give only one of them")
    models, earlier = learner.go_on(old)
    return _Beginning(models, reading_on(inputs, options, models.lead, part), None, earlier)


def reading_on(inputs: Inputs, options: Any, model: LinearPredictor, part: Part) -> dict[str, Any]:
    """How data are opened for a model that goes on with them. `UsageError`."""
    layout = _layout(inputs.data, options, model, grouped=True)
    words = model.classes
    if words and not (layout and layout.classes):  # rows in memory are labelled with the same words
        layout = replace(layout or Layout(), classes=words)
    check_ungrouped(part, groups_of(inputs, layout, options))
    return reading_of(options, part) | {"layout": layout}


def columns_of(models: ModelSet) -> Sequence[str]:
    """The columns that models know; none if their data were no table."""
    return () if models.layout is None else models.layout.columns


def follow(models: ModelSet, source: Source) -> Source:
    """The source, for models to go on with. New columns are features from here on.

    `DataError` for features of another kind.
    """
    models.layout = extended(models.layout, source.layout)
    return checked_data(models.lead, source, "the model was")


def _weights_of(model: ModelOrFile) -> Readout:
    """The weights of a model, a file or an estimator. `ModelFileError`; TypeError for anything else."""
    if isinstance(model, str | os.PathLike):
        return model_file.load_readout(os.fspath(model))[0]
    try:
        return as_model(model).readout()
    except TypeError as error:
        raise TypeError(f"init: {error}") from error


def _layout(
    data: Data, options: Any, started: LinearPredictor | None, grouped: bool = False
) -> AnyLayout | None:
    """How to read the data: as given, as in a recipe, or as the data of the model to start from were read.

    `grouped` as in `layout_from`.
    """
    rule = options["rule"]
    found = layout_asked(options) or (rule.layout if isinstance(rule, Recipe) else None)
    ids = started is not None and kind_of_model(started).features != COLUMNS
    if started is None or (ids and not are_files(data)) or is_matrix(data):
        return found
    with of_layouts():
        return layout_from(started, found, grouped)


def look_at(spare: Path, ui: Ui) -> None:
    """Report an old checkpoint at this path; `UsageError` if the file there is not a checkpoint.

    Unfinished checkpoints of killed runs are removed.
    """
    clear_abandoned(spare)
    ours = looks_like_ours(spare)
    if spare.is_symlink() or ours is False:
        raise UsageError(
            f"{spare} is not a checkpoint, but checkpoints would be written there: move or rename it"
        )
    if ours:
        ui.warn(
            f"{spare} is left from an interrupted run, from which {mention('resume')} continues; this run"
            " starts anew and replaces it"
        )


def check_names_again(source: Source, store: str) -> None:
    """`UsageError` or `DataError` if names cannot be found once the model is learned."""
    check_namer(source, store)
    if not source.rereadable:
        raise UsageError(
            f"{mention(names=True)} reads the data again, but a stream can be read only once: use"
            f" {mention_command('name')} afterwards"
        )
