"""One run: what all that learns from data does, whatever its plan; and the plan of one model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from thresher.data.columns import same_columns
from thresher.data.errors import DataError
from thresher.data.formats.tables.column_statistics import columns_seen
from thresher.data.inputs.any_data import Data, is_matrix, open_data
from thresher.data.layout import COLUMN_OPTIONS, AnyLayout, Layout, SettledLayout
from thresher.data.log.source import LogSource
from thresher.data.order import Order, make_order
from thresher.data.source import Source
from thresher.engine.atomic import clear_abandoned
from thresher.learning.evaluation.figures import Judged
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.checkpoint import TrainingState
from thresher.learning.files.choice import LOSS
from thresher.learning.files.model_file import ENSEMBLE, FRONTIER, Contents, looks_like_ours, predictor_of
from thresher.learning.inspection.feature_names import check_nameable, keep_names
from thresher.learning.model.agreement import COLUMNS, kind_of_model
from thresher.learning.model.bags import spec_of
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.model import Model, as_model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.objective import figures_of as of_calibration
from thresher.learning.model.prediction import BasePredictor, LinearPredictor
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.warm_start import check_data, layout_from, start_from, to_go_on
from thresher.learning.training.passes import Passes, bytes_of
from thresher.learning.training.progress import Ui, is_due
from thresher.learning.training.record import Difference, Record
from thresher.learning.training.shares import HeldOutPart, check_ungrouped
from thresher.learning.training.trainer import Outcome, Trainer
from thresher.options.data import LayoutOptions
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import mention, mention_command
from thresher.options.model import RecipeOptions
from thresher.options.option import Options, UsageError, given_options
from thresher.plans import run_setup

WITHOUT_NAMES = "the model is saved in {} without the names of features; thresher name adds them"


class Opened(NamedTuple):
    """The data, as a plan meets them."""

    source: Source
    order: Order
    again: Callable[[], Source]
    """opens them once more"""


class Plan:
    """What is learned from one reading of the data: here, one model. Others say what differs.

    It is prepared, its trainer runs, and then it tells what was learned.
    """

    trainer: Trainer
    source: Source
    """the data as they were opened"""
    ui: Ui

    name = "train"
    """the command, which can resume it"""
    held: HeldOutPart = 0
    """what is held out unless another hold-out is asked for"""
    dealt = ""
    """what would happen to a row with another number in a later pass, if rows are dealt by their numbers"""

    rereads = 0
    """how often the data are read after the passes, to evaluate the models"""
    whose = "the model"
    """what goes on, in messages"""
    varies = False
    """whether models differ in `l1`, which then defines none of them"""

    def __init__(self, options: Options) -> None:
        self.options = options

    def look(self, recipe: Recipe) -> None:
        """`UsageError` for a recipe that does not fit the plan."""

    def new(self, recipe: Recipe, initial: LinearPredictor | None, data: Opened) -> ModelSet:
        """The models, with the weights to start from, if any. `UsageError`."""
        with of_options():
            model = Model(recipe)
            if initial is not None:
                start_from(model, initial)
        return ModelSet.of([model])

    def revive(self, given: object) -> ModelSet:
        """A trained model or its file, to go on with. ValueError, `ModelFileError`."""
        if bags_of(given) is not None:
            called = given if isinstance(given, str | os.PathLike) else "the model"
            raise UsageError(f"{called} is an ensemble: go on with it in thresher.ensemble")
        model = to_go_on(given)
        if isinstance(given, str | os.PathLike) and FRONTIER in Contents.of(Path(given)).run:
            self.whose = f"the model chosen in {given} ({mention_command('choose')} takes others out)"
        return ModelSet.of([model])

    def difference(self, models: ModelSet, before: TrainingState | None = None) -> Iterator[Difference]:
        """What options say otherwise than models that are to go on, or are resumed in the state `before`."""
        yield from of_recipe(given_options(self.options, RecipeOptions), models.recipe)

    def prepare(self, data: Data, ui: Ui, outputs: Sequence[Path | None] = ()) -> Self:
        """Open the data, and prepare the training; `outputs` are files that will be written.

        Raises `UsageError`, `DataError`, `ModelFileError`, OSError.
        """
        options, checkpoint_path = self.options, self.options.get("checkpoint")
        training, judge = run_setup.plan_of(options, ui, self.name, checkpoint_path, self.held)
        models, earlier, before = self._trained(ui)
        then, part = before or earlier or Record(), training.holdout_every
        data, topics = run_setup.with_extents(data, then.topics, ui, resumes=before is not None)
        # one pass unless asked for more: over topics, since the next run goes on after these rows; if the
        # model was made in one; and over what a server has logged, which it has learned in one
        once = bool(topics or (earlier and (earlier.passes == 1 or run_setup.is_logged(data))))
        training = run_setup.agree(training, options, before, once)
        if topics and not data:
            if models is None or earlier is None:
                raise DataError(f"{topics[0].name}: no messages yet")
            raise run_setup.nothing_new(models.lead, earlier, topics)
        recipe, read, started = self._reading(data, models, before is not None, part, ui)
        if training.judge != LOSS and judge is None and not (training.holdout_every or self.rereads):
            raise UsageError(f"{mention(judge=training.judge)} needs {mention('holdout')}")
        order = make_order(options["order"] or (before.order if before else "as-is"), recipe.seed)
        if self.dealt and training.passes > 1 and not order.steady:
            raise UsageError(f"in the order {order.spec}, a row would {self.dealt} in each pass: use once")
        domain = recipe.objective.domain
        domain_now = domain if earlier is None else domain.of_model()
        source = open_data(data, domain_now, **read)
        held = run_setup.holdout_of(judge, domain, source, read, training.passes == 1)
        run_setup.check_written(outputs, options, (), data, source, held)
        if earlier is not None and isinstance(source, LogSource) and source.begin.row:
            begin = f"begins with row {source.begin.row + 1:,}"
            ui.warn(f"{source.folder}: {begin}; those before have been removed")
        known: Sequence[str] = ()
        classes = () if models is None else models.lead.classes
        if models is None:
            again = partial(run_setup.again_of, data, source, domain, read)
            models = self.new(recipe, started, Opened(source, order, again))
            models.layout = source.layout
            source = check_data(started, source)
        elif earlier is not None:
            known = () if models.layout is None else models.layout.columns
            # before its layout is that of these data
            source = check_data(models.lead, source, "the model was")
            now, trained = source.layout, models.layout
            grown = now is not None and bool({*now.columns} - {*known})  # new columns are features
            models.layout = now if trained is None or grown else trained
        else:
            models.layout = source.layout
        if training.judge != LOSS:
            with of_options():
                Judged(models.lead, training.judge)
        if source.words is not None:
            source.words.add(classes)
            models.name_classes(source)
        models.share.attach(source, held)
        models.say, first = ui.say, models.models[0]
        if options.get("names"):
            check_nameable(first.store, source)
            if not source.rereadable:
                why = f"{mention(names=True)} reads the data again, but a stream can be read only once"
                raise UsageError(f"{why}: use {mention_command('name')} afterwards")
        if models.recipe.calibrate and training.passes > 1 and not models.recipe.rule_part.AUTOMATIC:
            new = f"{mention(calibrate=True)} learns from the margins of rows that are new"
            raise UsageError(f"{new}: use {mention(passes=1)}")
        readings = 1 if order.held else training.passes
        reads = Passes(source, readings + self.rereads, cached=options["cache"])
        words: Any = source.words or (source.layout.classes if source.layout else ())
        ui.show_classes(models.recipe.objective, words)
        trainer = Trainer(
            models,
            reads.first,
            training,
            reread=reads.later,
            order=order,
            holdout=held,
            ui=ui,
            stopper=ui.stopper(checkpoint=checkpoint_path is not None),
            columns=[one for one in columns_seen(source) if one.name not in known],
            topics=topics,
        )
        if earlier is not None:
            trainer.follow(earlier)
        if before is not None and checkpoint_path is not None:
            with model_file.naming_file(checkpoint_path):
                trainer.continue_from(before)
        # it skips what it cannot learn of rows that were acknowledged
        if trainer.source.is_log and first.is_alone:
            first.feed.skip = trainer.skip
        self.trainer, self.source, self.ui = trainer, source, ui
        return self

    def _trained(self, ui: Ui) -> tuple[ModelSet | None, Record | None, TrainingState | None]:
        """The models that go on and their record, or those of a checkpoint and its state; None for new ones.

        `UsageError` for options that contradict them.
        """
        options, resumes = self.options, bool(self.options.get("resume"))
        init, old, checkpoint_path = (options.get(name) for name in ("init", "continue_from", "checkpoint"))
        if init is not None and (resumes or old is not None):
            other = mention("resume" if resumes else "continue_from")
            raise UsageError(f"{mention('init')} starts anew, {other} goes on: give only one of them")
        if checkpoint_path is not None and not resumes:
            look_at(checkpoint_path, ui)
        models = earlier = None
        if old is not None:
            with of_options():
                models = self.revive(old)
            check_same(self.difference(models), self.whose)
            for model in models.models:  # of the ends of passes, only the last stays a point
                curve = model.curve
                model.curve = tuple(one for one in curve if is_due(one.examples) or one is curve[-1])
            rows = models.lead.examples
            earlier = models.lead.record or Record(lines=rows, examples=rows)
        if not resumes or checkpoint_path is None:
            return models, earlier, None
        resumed, before = checkpoint.load(checkpoint_path, self.name)
        check_same(self.difference(resumed, before), "the checkpoint")
        check_same(of_reading(options, resumed.layout, before), "the checkpoint")
        if models is not None and (
            before.earlier != earlier
            or replace(resumed.recipe, layout=None) != replace(models.recipe, layout=None)
        ):
            other = "does not go on from this model, or from it as it is now"
            raise UsageError(f"the checkpoint {other}: leave {mention('continue_from')} out")
        return resumed, None, before

    def _reading(
        self, data: Data, models: ModelSet | None, resumes: bool, part: HeldOutPart, ui: Ui
    ) -> tuple[Recipe, dict[str, Any], LinearPredictor | None]:
        """The recipe, how the data are opened for it, and the weights that new models start from."""
        options = self.options
        if models is None:
            init, started = options.get("init"), None
            if isinstance(init, str | os.PathLike):
                started = model_file.load_predictor(os.fspath(init))[0]
            elif init is not None:
                try:
                    started = as_model(init).predictor()
                except TypeError as error:
                    raise TypeError(f"init: {error}") from error
            layout = _layout(data, options, started)
            defining = options.but(l1=None) if self.varies else options
            recipe, read = run_setup.recipe_for(data, defining, layout, part, ui, started)
            self.look(recipe)
            return recipe, read, started
        if resumes:
            layout = run_setup.layout_of_checkpoint(options, models.layout)
        else:
            layout, words = _layout(data, options, models.lead, grouped=True), models.lead.classes
            if words and not (layout and layout.classes):  # rows in memory are labelled with the same words
                layout = replace(layout or Layout(), classes=words)
            check_ungrouped(part, run_setup.groups_of(layout, options))
        return models.recipe, run_setup.reading_of(options, layout, part), None

    def save(self, path: Path, state: bool) -> bool:
        """Write the model, then again with names if they are wanted; False if a signal interrupted that.

        OSError; `DataError` if names cannot be read.
        """
        self.trainer.model.save(path, state=state)
        self.trainer.discard_checkpoint()
        if not self.will_name:
            return True
        self.ui.say("reading the names of features")
        try:
            if not self.trainer.stopper.unless_asked(partial(keep_names, self.trainer.model, self.source)):
                return False
        except DataError as error:
            raise DataError(f"{error} ({WITHOUT_NAMES.format(path)})") from error
        self.trainer.model.save(path, state=state)
        return True

    @property
    def will_name(self) -> bool:
        """Whether names are found once the model is learned: asked for, or those it started from go on."""
        source, named = self.source, bool(getattr(self.trainer.model, "names", None))
        return bool(self.options.get("names")) or (named and source.rereadable and source.nameable)

    def figures(self, outcome: Outcome) -> dict[str, Any]:
        """Figures of what `run` has learned, and of the run."""
        model, found = self.trainer.model, dict[str, Any]()
        for name, value in outcome.figures.items():
            found[name] = value
            if name == "features_seen":
                waiting = model.features_waiting
                found |= {} if waiting is None else {"features_waiting": waiting}
                found |= {} if model.names is None else {"named": len(model.names)}
                found |= {"calibration": of_calibration(model.head)} if model.recipe.calibrate else {}
        return found


def _layout(
    data: Data, options: Options, started: BasePredictor | None, grouped: bool = False
) -> AnyLayout | None:
    """How to read the data: as given, as in a recipe, or as the data of the model to start from were read.

    `grouped` as in `layout_from`.
    """
    rule = options["rule"]
    found = layout_asked(options) or (rule.layout if isinstance(rule, Recipe) else None)
    ids = started is not None and kind_of_model(started).features != COLUMNS
    if started is None or (ids and not run_setup.are_files(data)) or is_matrix(data):
        return found
    with of_options(DataError):
        return layout_from(started, found, grouped)


def look_at(checkpoint_path: Path, ui: Ui) -> None:
    """Report an old checkpoint at this path; `UsageError` if the file there is not a checkpoint.

    Unfinished checkpoints of killed runs are removed.
    """
    clear_abandoned(checkpoint_path)
    ours = looks_like_ours(checkpoint_path)
    if checkpoint_path.is_symlink() or ours is False:
        raise UsageError(f"{checkpoint_path} is not a checkpoint, but would be replaced by one: rename it")
    if ours:
        left = f"{checkpoint_path} is left from an interrupted run"
        ui.warn(f"{left}, from which {mention('resume')} continues; this run starts anew and replaces it")


def bags_of(given: object) -> str | None:
    """How many models an ensemble has, or the one in a file, and which rows they learn; None for others."""
    if isinstance(given, str | os.PathLike) and looks_like_ours(Path(given)):
        found = Contents.of(Path(given))
        given = Ensemble.read(found, predictor_of) if ENSEMBLE in found.run else None
    return spec_of(given.rows, len(given.models)) if isinstance(given, Ensemble) else None


def of_recipe(given: Mapping[str, object], recipe: Recipe) -> Iterator[Difference]:
    """What options say otherwise than a recipe. `UsageError` if they have a recipe of their own."""
    options = dict(given)
    of_rule = {name: options.pop(name) for name in run_setup.OF_RULES if name in options}
    if isinstance(of_rule.get("rule"), Recipe):
        raise UsageError("what goes on contains the recipe; leave it out")
    if of_rule and _other(recipe, "rule", {"rate": None, **of_rule}):
        yield Difference("rule", recipe.rule, tuple(of_rule))
    for name, value in options.items():
        field = "rate" if name == "eta0" else name
        if _other(recipe, field, {name: value}):
            yield Difference(field, getattr(recipe, field), (name,))


def _other(recipe: Recipe, field: str, options: dict[str, Any]) -> bool:
    """Whether these options would change the field, or are invalid for the recipe."""
    try:
        changed = replace(recipe, **options)
    except ValueError:
        return True
    return bool(getattr(changed, field) != getattr(recipe, field))


def of_reading(options: Options, layout: SettledLayout | None, before: TrainingState) -> Iterator[Difference]:
    """What options say otherwise on how data are read than a checkpoint and its layout. `DataError`."""
    replay, later = options["replay"], before.position.number > 1
    asked = {
        "early_stop": (before.patience or None, options.get("early_stop") if later else None),
        "judge": (before.judge, options.get("judge") if later else None),
        "order": (before.order, options["order"]),
        "replay": (before.replay, bytes_of(replay) if replay is not None and before.replay else None),
    }
    for name, (then, now) in asked.items():
        if now not in (None, then):
            yield Difference(name, then, (name,))
    if layout is None:
        return
    given = given_options(options, LayoutOptions)
    given.pop("format", None)
    said = {one.name: getattr(layout, one.name) for one in fields(layout)}
    own = [name for name in COLUMN_OPTIONS if name in given and (layout.columns or name not in said)]
    columns = {name: given.pop(name) for name in own}
    for name, have in {**said, "delimiter": layout.delimited_by}.items():
        if given.get(name, have) != have:
            yield Difference(name, have, (name,))
    if not same_columns(Layout(layout.format, **columns), layout, "the checkpoint"):
        raise UsageError(f"the checkpoint was made with other columns; leave {mention(*columns)} out")


def check_same(found: Iterable[Difference], whose: str) -> None:
    """`UsageError` for the first difference between what options say and what was made."""
    for one in found:
        raise UsageError(one.told(whose))
