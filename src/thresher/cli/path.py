"""``thresher path``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thresher.cli import saving
from thresher.cli.console import Console, ended
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.lanes import BEST, PathCommand
from thresher.options.option import UsageError, given_in

if TYPE_CHECKING:
    from thresher.lanes.folder import FrontierTable
    from thresher.lanes.frontier import Learned
    from thresher.learning.training.trainer import Outcome
    from thresher.runs.path import FrontierTraining

ARGUMENTS, OPTIONS = (DATA,), PathCommand
_OF_FOLDERS = ("model", "choose", "plot", "quiet", "strict", "json")
"""Options that apply to a folder of models"""


def command(data: list[str], options: PathCommand) -> None:
    """Learn a model for each of many penalties in one reading, and show the loss and size of each.

    If DATA is the folder of an earlier run, take another model from it.
    """
    from thresher.cli.saving import check_folder, check_picture
    from thresher.learning.files.folder import FRONTIER
    from thresher.runs import path as runs
    from thresher.runs.preparing import Inputs, quarantine_of

    check_picture(options["plot"])
    more = any(name not in _OF_FOLDERS for name in given_in(options))
    if len(data) == 1 and _is_frontier(Path(data[0]), more):
        _take(Path(data[0]), options)
        return
    folder = options["model"]
    if folder is None:
        raise UsageError("missing option --model DIR: the folder to write")
    options["checkpoint"] = spare = Path(f"{folder}.checkpoint")
    check_folder(FRONTIER, folder, [spare, quarantine_of(options["on_error"]), options["plot"]], [])
    run = runs.prepare(Inputs(data), options, Console(options["quiet"]))
    run.trainer.stopper.listen()
    try:
        _learn(run, folder, data, options)
    finally:
        run.trainer.stopper.close()


def _learn(run: FrontierTraining, path: Path, data: list[str], options: PathCommand) -> None:
    """Train, save and report."""
    from thresher.engine.atomic import discard

    which, trainer = options["choose"] or BEST, run.trainer
    outcome = _run(run, path, which)
    learned = _filled(run, outcome, path, which)
    with saving.signals_wait(path, trainer.stopper):
        found = _save(run, learned, path, which)
        if trainer.plan.checkpoint is not None and trainer.owns_checkpoint:
            discard(trainer.plan.checkpoint)
        with saving.saved_before(path):
            _draw(found, options["plot"])
        _tell(outcome, found, _command(run, data, found, learned.models[found.chosen]), path, options)
    check_strictly(outcome.warnings, options["strict"], path)


def _run(run: FrontierTraining, path: Path, which: str) -> Outcome:
    """Train; if it is stopped in a replay, save the models as they are."""
    from thresher.learning.training.interruption import Interrupted

    try:
        outcome: Outcome = ended(run)
    except Interrupted as stopped:
        if run.beside:
            raise

        def save() -> None:
            _save(run, run.learned(), path, which, say=False)

        raise saving.kept(stopped, run.trainer, save, f"the models are saved in {path}") from None
    return outcome


def _command(run: FrontierTraining, data: list[str], found: FrontierTable, chosen: Any) -> str:
    """The command that trains the chosen model for as many passes as were best, on all rows.

    For a budget of weights, on the same rows: a model of more rows has more weights.
    """
    from thresher.lanes.budget import budget_of
    from thresher.runs.repeat import passes_said, train_command

    passes = chosen.record.passes if chosen.record else 1
    own = {
        "rule": found.points[found.chosen].spec,
        "passes": passes_said(passes, chosen.recipe),
        "holdout": None if budget_of(found.choice) is None else _judged(run.options),
    }
    return train_command(data, None, {**given_in(run.options), **own, "resume": None, "early_stop": None})


def _judged(options: Any) -> str | None:
    return None if options["holdout_every"] == 0 else options["holdout"] or "every-10th"


def _filled(run: FrontierTraining, outcome: Outcome, path: Path, which: str) -> Learned:
    """The trained models; for a budget that lies between two, also some with penalties between theirs.

    What is there already is saved before the data are read again. The time for that is added to `outcome`.
    """
    from thresher.lanes import budget, folder
    from thresher.learning.model.divergence import DivergedError

    if run.beside:
        return run.joined(folder.load_models(path, folder.load(path)))
    trainer, learned = run.trainer, run.learned()
    between = budget.between(learned.points, which)
    if not between:
        return learned
    if not run.rereadable:
        run.ui.warn(budget.unread(between))
        return learned
    with saving.signals_wait(path, trainer.stopper):
        _save(run, learned, path, which, say=False)
    run.ui.say(budget.reading_again(between))
    further = run.again(between, [point.penalty for point in learned.points])
    try:
        again = ended(further)
    except DivergedError:
        return learned
    outcome.seconds, outcome.compiling = (
        outcome.seconds + again.seconds,
        outcome.compiling + again.compiling,
    )
    trainer.owns_checkpoint |= further.trainer.owns_checkpoint
    return further.joined(learned)


def _is_frontier(source: Path, more: bool) -> bool:
    """Whether DATA is a folder of models; UsageError if unfinished, or if other options (`more`) are set."""
    from thresher.lanes import folder

    started = not source.is_file() and Path(f"{source}.checkpoint").exists()
    if started and not folder.is_frontier(source):
        raise UsageError(f"{source} is not finished: run it again with the same options and --resume")
    if folder.is_frontier(source) and more:
        raise UsageError(f"{source} is a folder of learned models: only --choose and --plot apply to it")
    return folder.is_frontier(source)


def _draw(found: FrontierTable, plot: Path | None) -> None:
    """Write the picture, where it is wanted."""
    if plot is not None:
        from thresher.lanes.frontier import picture
        from thresher.learning.inspection.plots import write

        write(plot, picture(found.points, found.chosen))


def _take(source: Path, options: PathCommand) -> None:
    """Copy a model out of a folder, by default the one chosen when it was written; or show the table."""
    from thresher.cli.output import show_figures, show_result
    from thresher.cli.saving import check_model, check_outside
    from thresher.lanes import folder, models
    from thresher.lanes.budget import sentence, use_of
    from thresher.lanes.frontier import choose

    target, plot, which, as_json = options["model"], options["plot"], options["choose"], options["json"]
    found = folder.load(source)
    check_model(target, [plot], [*source.iterdir()])
    check_outside(source, [target, plot])
    try:
        number = found.chosen if which is None else choose(found.points, which)
    except ValueError as error:
        raise UsageError(str(error)) from error
    found = replace(found, chosen=number, choice=which or found.choice)
    _draw(found, plot)
    use = use_of(found.points, number, found.choice)
    of_use = {"budget": use if as_json else sentence(use)} if use else {}
    if target is None and as_json:
        show_figures({**found.as_dict(), **of_use}, True)
        return
    if target is None:
        click.echo("\n".join(models.of_points(found.points, found.penalty, number)))
        show_figures(of_use, False)
        return
    with saving.unbroken(target):
        folder.take(source, number, target)
    point = found.points[number].as_dict(found.penalty)
    shown = {k: v for k, v in point.items() if k != "dropped"}
    show_result({**shown, **of_use, "model": str(target)}, as_json, target)


def _save(run: FrontierTraining, learned: Learned, path: Path, which: str, say: bool = True) -> FrontierTable:
    from thresher.lanes import folder
    from thresher.runs.lanes import chosen_of

    number, which = chosen_of(learned.points, which, run.ui.warn if say else lambda line: None)
    found = folder.FrontierTable(run.penalty, learned.points, number, which)
    folder.save(path, found, learned.models)
    return found


def _tell(outcome: Outcome, found: FrontierTable, command: str, path: Path, options: PathCommand) -> None:
    from thresher.cli.output import in_json, show_result, tell_outcome
    from thresher.lanes import models
    from thresher.lanes.budget import sentence, use_of
    from thresher.lanes.folder import PICTURE, file_of

    tell_outcome(outcome)
    figures: dict[str, Any] = {
        "examples": outcome.examples,
        "passes": outcome.passes,
        "features_seen": outcome.features_seen,
        "seconds": round(outcome.seconds, 3),
        **({"seconds_compiling": round(outcome.compiling, 3)} if outcome.compiling else {}),
        "skipped": outcome.skipped,
    }
    use = use_of(found.points, found.chosen, found.choice)
    if options["json"]:
        figures_shown = {**found.as_dict(), **figures, "model": str(path), "command": command}
        figures_shown |= {"budget": use} if use else {}
        figures_shown["warnings"] = in_json(outcome.warnings)
        show_result(figures_shown, True, path)
        return
    if not options["quiet"]:
        click.echo("\n".join(models.of_points(found.points, found.penalty, found.chosen)))
    figures |= {"budget": sentence(use)} if use else {}
    figures |= {"picture": str(path / PICTURE), "chosen": str(path / file_of(found.chosen))}
    figures["command"] = command
    show_result(figures, False, path)
