"""``thresher path``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli import options, saving
from thresher.cli import train_options as t
from thresher.cli.commandline import passes_said, train_command
from thresher.cli.decorators import reads_elsewhere, takes
from thresher.cli.errors import UsageError, check_strictly
from thresher.cli.lanes_options import (
    AUTO,
    BEST,
    Penalties,
    budget_of,
    check_varied,
    choice,
    chosen_of,
    compile_penalties_ahead,
    recipes_of,
)
from thresher.cli.model_flags import ModelFlags, new_recipe
from thresher.cli.overwriting import check_folder, check_model, check_outside
from thresher.cli.plotting import plot as drawing
from thresher.cli.reading import Reading, agreed, look_at, planned, run, sources_of, with_classes

if TYPE_CHECKING:
    from thresher.cli.watching import Quiet
    from thresher.lanes.checkpoint import Loaded
    from thresher.lanes.folder import Table
    from thresher.lanes.frontier import Learned
    from thresher.lanes.judging import LanesHoldout
    from thresher.lanes.lanes import Lanes
    from thresher.learning.model import Model
    from thresher.learning.recipe import Recipe
    from thresher.learning.training import Outcome, Plan, Trainer

SHORT = "Learn a model for each of many penalties in one reading, and choose one."
Folder = Annotated[
    Path | None,
    typer.Option(
        "--model",
        "-m",
        metavar="DIR|MODEL",
        show_default=False,
        help="The folder to write: a table, a picture, a model for each penalty. If DATA is such a folder: "
        "where to write the chosen model; without it, the table is shown.",
    ),
]
Choice = Annotated[str | None, choice("best; for a folder, the choice made when it was written")]
Holdout = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|SHARE|every-Nth|last:SHARE|FILTER|none",
        help="Data to choose by: a file, or a share of the rows (0.1: one of every 10, drawn with "
        "--seed; last:0.1: the last; 'day >= 20': those that meet a condition), which are then not learned; "
        "or none, to choose by the progressive loss."
        "  [default: every-10th]",
    ),
]
Plot = Annotated[Path | None, drawing("loss over the number of weights")]


@reads_elsewhere
@takes(flags=ModelFlags, table=options.Table)
def command(
    data: options.Data,
    model: Folder = None,
    flags: Any = None,
    l1: Penalties = None,
    choose: Choice = None,
    passes: t.AutoPasses = None,
    replay: t.Replay = None,
    order: t.Order = None,
    holdout: Holdout = None,
    early_stop: t.EarlyStop = None,
    checkpoint_every: t.CheckpointEvery = None,
    resume: t.Resume = False,
    table: options.Table = options.NO_TABLE,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
    cache: t.Cache = True,
    plot: Plot = None,
    quiet: t.Quiet = False,
    strict: t.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Learn a model for each of many penalties in one reading, and show the loss and size of each.

    If DATA is the folder of an earlier run, take another model from it.
    """
    of_training = (flags != ModelFlags(), l1, passes, replay, order, holdout, early_stop, checkpoint_every)
    if len(data) == 1 and _is_frontier(
        Path(data[0]), any((*of_training, resume)) or table != options.NO_TABLE
    ):
        _take(Path(data[0]), choose, model, plot, as_json)
        return
    model, spare = _outputs(model, [options.quarantine_of(on_error), plot])
    asked, judged = (passes or "auto", replay), _judged(holdout)
    plan, held = planned(*asked, None, judged, early_stop, spare, checkpoint_every, table.group)
    reading = Reading(data, held, table, on_error, threads, cache, order, False, None, plan.marked)
    choose = choose or BEST
    running = _running(plan, asked, flags, reading, l1, resume, quiet, choose)
    more = {"on_error": None if on_error == "fail" else on_error}
    trains = partial(_command, running.trainer, data, flags, table, more, judged)
    _learn(running, model, choose, trains, plot, as_json, quiet, strict)


def _judged(holdout: str | None) -> str | None:
    return None if holdout == "none" else holdout or "every-10th"


def _outputs(model: Path | None, others: list[Path | None]) -> tuple[Path, Path]:
    """The folder and the checkpoint, checked to be writable and apart from `others`; OSError, UsageError."""
    from thresher.learning.modelfolder import FRONTIER

    if model is None:
        raise UsageError("missing option --model DIR: the folder to write")
    spare = Path(f"{model}.checkpoint")
    check_folder(FRONTIER, model, [spare, *others], [])
    return model, spare


def _command(
    trainer: Trainer[Lanes],
    data: list[str],
    flags: ModelFlags,
    table: options.Table,
    more: dict[str, Any],
    holdout: str | None,
    found: Table,
    chosen: Model,
) -> str:
    """The command that trains the chosen model for as many passes as were best, on all rows.

    For a budget of weights, on the same rows: a model of more rows has more weights.
    """
    order = trainer.order.spec
    own: dict[str, Any] = {
        "passes": passes_said(chosen.record.passes if chosen.record else 1, chosen.recipe),
        "order": None if order == "as-is" else order,
        **more,
        "holdout": None if budget_of(found.choice) is None else holdout,
    }
    return train_command(data, None, found.points[found.chosen].spec, flags, table, **own)


@dataclass
class _Running:
    """Training of lanes, and of further lanes to use a budget of weights."""

    trainer: Trainer[Lanes]
    judging: LanesHoldout
    reading: Reading
    beside: list[float]
    """penalties of the finished models, in the folder, to which these lanes will be added"""

    def learned(self) -> Learned:
        """The trained models."""
        from thresher.lanes.frontier import Learned, points_of

        return Learned(points_of(self.trainer.model, self.judging), self.trainer.model.models)

    def again(self, penalties: list[float], beside: list[float]) -> _Running:
        """Lanes with further penalties on the same data; a signal stops them with a checkpoint."""
        from thresher.data.order import make_order
        from thresher.lanes import checkpoint
        from thresher.lanes.judging import LanesHoldout
        from thresher.lanes.lanes import Lanes
        from thresher.lanes.penalties import with_penalty

        first, plan = self.trainer, self.trainer.plan
        base, spare = first.model.models[0].recipe, plan.checkpoint
        reading = replace(self.reading, on_error=self.reading.lenient)
        layout = first.model.layout or reading.table.layout()
        source, held = sources_of(reading, layout, base.head().domain, [spare], plan.passes)
        lanes = Lanes([with_penalty(base, value) for value in penalties], first.watcher.say)
        lanes.layout, judging = source.layout, LanesHoldout(plan.holdout_every, held)
        save = partial(checkpoint.save, holdout=judging, beside=beside)
        more: Any = {"watcher": first.watcher, "judging": lambda every, given: judging, "save": save}
        order = make_order(first.order.spec, base.seed)
        trainer = reading.trainer(lanes, source, held, plan, order, **more)
        trainer.stopper, trainer.owns_checkpoint = first.stopper, first.owns_checkpoint
        return _Running(trainer, judging, reading, beside)


def _learn(
    running: _Running,
    path: Path,
    which: str,
    trains: Callable[[Table, Model], str],
    plot: Path | None,
    as_json: bool,
    quiet: bool,
    strict: bool,
) -> None:
    """Train, save and report."""
    from thresher.learning.wholefile import discard

    trainer = running.trainer
    held = trainer.holdout.given
    options.check_outputs([plot], [*trainer.source.names, *(held.names if held else [])])
    trainer.stopper.listen()
    try:
        outcome = _run(running, path, which)
        learned = _filled(running, outcome, path, which, quiet)
        with saving.signals_wait(path, trainer.stopper):
            found = _save(trainer, learned, path, which)
            if trainer.plan.checkpoint is not None and trainer.owns_checkpoint:
                discard(trainer.plan.checkpoint)
            with saving.saved_before(path):
                _draw(found, plot)
            command = trains(found, learned.models[found.chosen])
            _tell(outcome, found, command, path, as_json, quiet)
        check_strictly(outcome.warnings, strict, path)
    finally:
        trainer.stopper.close()


def _run(running: _Running, path: Path, which: str) -> Outcome:
    """Train; if it is stopped in a replay, save the models as they are."""
    from thresher.learning.stopping import Interrupted

    trainer = running.trainer
    try:
        return run(trainer)
    except Interrupted as stopped:
        if running.beside:
            raise

        def save() -> None:
            _save(trainer, running.learned(), path, which, say=lambda line: None)

        raise saving.kept(stopped, trainer, save, f"the models are saved in {path}") from None


def _filled(running: _Running, outcome: Outcome, path: Path, which: str, quiet: bool) -> Learned:
    """The trained models; for a budget that lies between two, also some with penalties between theirs.

    What is there already is saved before the data are read again. The time for that is added to `outcome`.
    """
    from thresher.lanes import budget, folder
    from thresher.lanes.frontier import joined
    from thresher.learning.finite import DivergedError

    if running.beside:
        before = folder.load_models(path, folder.load(path))
        return joined(before, running.learned(), running.judging.source())
    trainer, learned = running.trainer, running.learned()
    held, between = running.judging.given, budget.between(learned.points, which)
    if not between:
        return learned
    if not (trainer.source.rereadable and (held is None or held.rereadable)):
        trainer.watcher.say(budget.unread(between))
        return learned
    with saving.signals_wait(path, trainer.stopper):
        _save(trainer, learned, path, which, say=lambda line: None)
    if not quiet:
        trainer.watcher.say(budget.reading_again(between))
    further = running.again(between, [point.penalty for point in learned.points])
    try:
        again = run(further.trainer)
    except DivergedError:
        return learned
    outcome.seconds, outcome.compiling = (
        outcome.seconds + again.seconds,
        outcome.compiling + again.compiling,
    )
    trainer.owns_checkpoint |= further.trainer.owns_checkpoint
    return joined(learned, further.learned(), further.judging.source())


def _is_frontier(source: Path, more: bool) -> bool:
    """Whether DATA is a folder of models; UsageError if unfinished, or if other options (`more`) are set."""
    from thresher.lanes import folder

    started = not source.is_file() and Path(f"{source}.checkpoint").exists()
    if started and not folder.is_frontier(source):
        raise UsageError(f"{source} is not finished: run it again with the same options and --resume")
    if folder.is_frontier(source) and more:
        raise UsageError(f"{source} is a folder of learned models: only --choose and --plot apply to it")
    return folder.is_frontier(source)


def _draw(found: Table, plot: Path | None) -> None:
    """Write the picture, where it is wanted."""
    if plot is not None:
        from thresher.lanes.picture import picture
        from thresher.learning.pictures import write

        write(plot, picture(found.points, found.chosen))


def _take(source: Path, choose: str | None, target: Path | None, plot: Path | None, as_json: bool) -> None:
    """Copy a model out of a folder, by default the one chosen when it was written; or show the table."""
    from thresher.cli.output import show_figures, show_result
    from thresher.lanes import folder, table
    from thresher.lanes.budget import sentence, use_of
    from thresher.lanes.frontier import choose as chosen

    found = folder.load(source)
    check_model(target, [plot], [*source.iterdir()])
    check_outside(source, [target, plot])
    try:
        number = found.chosen if choose is None else chosen(found.points, choose)
    except ValueError as error:
        raise UsageError(str(error)) from error
    found = replace(found, chosen=number, choice=choose or found.choice)
    _draw(found, plot)
    use = use_of(found.points, number, found.choice)
    of_use = {"budget": use if as_json else sentence(use)} if use else {}
    if target is None and as_json:
        show_figures({**found.as_dict(), **of_use}, True)
        return
    if target is None:
        typer.echo("\n".join(table.of_points(found.points, found.penalty, number)))
        show_figures(of_use, False)
        return
    with saving.unbroken(target):
        folder.take(source, number, target)
    point = found.points[number].as_dict(found.penalty)
    shown = {k: v for k, v in point.items() if k != "dropped"}
    show_result({**shown, **of_use, "model": str(target)}, as_json, target)


def _watching(quiet: bool) -> Quiet:
    from thresher.cli.watching import watcher
    from thresher.engine import notices

    watching = watcher(quiet)
    notices.when_compiling(None if quiet else watching.say)
    return watching


def _running(
    plan: Plan, asked: tuple[str, str | None], flags: ModelFlags, reading: Reading, l1: str | None,
    resume: bool, quiet: bool, which: str,
) -> _Running:  # fmt: skip
    from thresher.cli.watching import say_unless
    from thresher.lanes import checkpoint
    from thresher.lanes.judging import LanesHoldout
    from thresher.lanes.lanes import Lanes
    from thresher.learning import modelfile

    watching = _watching(quiet)
    layout, wanted = with_classes(flags, reading, reading.table.layout(), say_unless(quiet, watching))
    base = new_recipe(wanted)
    check_varied(flags.rule or "", l1, base)
    spare: Any = plan.checkpoint  # always named here
    loaded = checkpoint.load(spare) if resume else None
    plan = agreed(plan, asked[0], loaded.training if loaded else None, asked[1])
    if loaded is None:
        look_at(spare, watching)
    ahead = compile_penalties_ahead(base, plan.judges(reading.holdout))
    layout = reading.table.layout(loaded.lanes.layout) if loaded else layout
    source, held = sources_of(reading, layout, base.head().domain, [spare], plan.passes)
    order = reading.order_of(loaded.training if loaded else None, base.seed)
    if loaded:
        lanes, _, judging, finished = loaded
        _check_same(loaded, base, l1, spare)
    else:
        lanes = Lanes(recipes_of(base, l1 or AUTO, reading, source, order, ahead.wait), watching.say)
        judging, finished = LanesHoldout(), []
    judging.begin(plan.holdout_every, held)
    lanes.layout = source.layout
    beside: Any = {"watcher": watching, "ready": ahead.wait, "judging": lambda every, given: judging}
    beside["save"] = partial(checkpoint.save, holdout=judging, beside=finished)
    more = budget_of(which) is not None and source.rereadable and not finished
    trainer = reading.trainer(lanes, source, held, plan, order, more, **beside)
    if loaded is not None:
        with modelfile.naming_file(spare):
            trainer.continue_from(loaded.training)
    return _Running(trainer, judging, reading, finished)


def _check_finished(beside: list[float], spare: Path) -> None:
    """UsageError unless the models to which a checkpoint adds others are in the folder."""
    from thresher.lanes import folder

    path = spare.with_name(spare.name.removesuffix(".checkpoint"))
    there = [point.penalty for point in folder.load(path).points] if folder.is_frontier(path) else []
    if there != beside:
        raise UsageError(
            f"{spare} adds models to {path}, which does not have the others: run again without --resume"
        )


def _check_same(loaded: Loaded, base: Recipe, l1: str | None, spare: Path) -> None:
    """UsageError if options contradict the recipes of a checkpoint."""
    from thresher.lanes.penalties import Range, penalty_in, penalty_name, with_penalty

    lanes = loaded.lanes
    if loaded.beside:
        _check_finished(loaded.beside, spare)
    had = loaded.beside or [penalty_in(model.rule) for model in lanes.models]
    wanted = Range(l1 or AUTO)
    if (wanted.values and wanted.values != had) or (l1 and wanted.count != len(had)):
        raise UsageError(
            f"the checkpoint has {len(had)} penalties from {had[0]:g} to {had[-1]:g}; leave --l1 out"
        )
    before = lanes.models[0].recipe
    if penalty_name(before.rule) != penalty_name(base.rule):
        raise UsageError(f"the checkpoint was made with --rule {before.rule}")
    now = with_penalty(base, penalty_in(lanes.models[0].rule))
    for field in fields(now):
        then = getattr(before, field.name)
        if field.name != "layout" and getattr(now, field.name) != then:
            raise UsageError(f"the checkpoint was made with {field.name} {then}: give the same options")


def _save(
    trainer: Trainer[Lanes],
    learned: Learned,
    path: Path,
    which: str,
    say: Callable[[str], None] | None = None,
) -> Table:
    from thresher.lanes import folder
    from thresher.lanes.penalties import penalty_name

    number, which = chosen_of(learned.points, which, say or trainer.watcher.say)
    found = folder.Table(penalty_name(learned.models[0].rule), learned.points, number, which)
    folder.save(path, found, learned.models)
    return found


def _tell(outcome: Outcome, found: Table, command: str, path: Path, as_json: bool, quiet: bool) -> None:
    from thresher.cli.output import in_json, show_result, tell_skipped, tell_warnings, tell_weightless
    from thresher.lanes import table
    from thresher.lanes.budget import sentence, use_of
    from thresher.lanes.folder import PICTURE, model_file

    for report in outcome.reports:
        tell_skipped(report)
    tell_weightless(outcome.weightless, outcome.examples)
    tell_warnings(outcome.warnings)
    figures: dict[str, Any] = {
        "examples": outcome.examples,
        "passes": outcome.passes,
        "features_seen": outcome.features_seen,
        "seconds": round(outcome.seconds, 3),
        **({"seconds_compiling": round(outcome.compiling, 3)} if outcome.compiling else {}),
        "skipped": outcome.skipped,
    }
    use = use_of(found.points, found.chosen, found.choice)
    if as_json:
        figures_shown = {**found.as_dict(), **figures, "model": str(path), "command": command}
        figures_shown |= {"budget": use} if use else {}
        figures_shown["warnings"] = in_json(outcome.warnings)
        show_result(figures_shown, True, path)
        return
    if not quiet:
        typer.echo("\n".join(table.of_points(found.points, found.penalty, found.chosen)))
    figures |= {"budget": sentence(use)} if use else {}
    figures |= {"picture": str(path / PICTURE), "chosen": str(path / model_file(found.chosen))}
    figures["command"] = command
    show_result(figures, False, path)
