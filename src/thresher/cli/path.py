"""``thresher path``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thresher.cli import saving
from thresher.cli.console import Console, ended
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.lanes import BEST, PathCommand
from thresher.options.option import UsageError

if TYPE_CHECKING:
    from thresher.lanes.folder import FrontierTable
    from thresher.learning.training.trainer import Outcome
    from thresher.runs.path import FrontierTraining

ARGUMENTS, OPTIONS = (DATA,), PathCommand


def command(data: list[str], options: PathCommand) -> None:
    """Learn a model for each of many penalties in one reading, and show the loss and size of each.

    If DATA is the folder of an earlier run, take another model from it.
    """
    from thresher.learning.files.folder import FRONTIER
    from thresher.runs import path as runs
    from thresher.runs.preparing import Inputs, quarantine_of

    saving.check_picture(options["plot"])
    if len(data) == 1 and runs.is_folder(Path(data[0]), options):
        _take(Path(data[0]), options)
        return
    folder = options["model"]
    if folder is None:
        raise UsageError("missing option --model DIR: the folder to write")
    options["checkpoint"] = spare = Path(f"{folder}.checkpoint")
    saving.check_folder(FRONTIER, folder, [spare, quarantine_of(options["on_error"]), options["plot"]], [])
    run = runs.prepare(Inputs(data), options, Console(options["quiet"]))
    with closing(run.trainer.stopper.listen()):
        _learn(run, folder, data, options)


def _learn(run: FrontierTraining, path: Path, data: list[str], options: PathCommand) -> None:
    """Train, save and report; if training is stopped in a replay, the models are saved as they are."""
    from thresher.lanes.frontier import Learned
    from thresher.learning.training.interruption import Interrupted

    which, stopper = options["choose"] or BEST, run.trainer.stopper

    def save(learned: Learned) -> None:
        with saving.signals_wait(path, stopper):
            run.save(learned, path, which, say=False)

    try:
        outcome: Outcome = ended(run)
    except Interrupted as stopped:
        if run.beside:
            raise
        kept, said = (
            (lambda: run.save(run.learned(), path, which, say=False)),
            f"the models are saved in {path}",
        )
        raise saving.kept(stopped, run.trainer, kept, said) from None
    learned = run.filled(outcome, path, which, save)
    with saving.signals_wait(path, stopper):
        found = run.save(learned, path, which)
        run.trainer.discard_checkpoint()
        with saving.saved_before(path):
            _draw(found, options["plot"])
        _tell(outcome, found, run.command(data, found, learned.models[found.chosen]), path, options)
    check_strictly(outcome.warnings, options["strict"], path)


def _draw(found: FrontierTable, plot: Path | None) -> None:
    """Write the picture, where it is wanted."""
    if plot is not None:
        from thresher.lanes.frontier import picture
        from thresher.learning.inspection.plots import write

        write(plot, picture(found.points, found.chosen))


def _take(source: Path, options: PathCommand) -> None:
    """Copy a model out of a folder, by default the one chosen when it was written; or show the table."""
    from thresher.cli.output import show_figures, show_result, shown_use
    from thresher.lanes import folder, models
    from thresher.runs.path import chosen_in

    target, plot, as_json = options["model"], options["plot"], options["json"]
    saving.check_model(target, [plot], [*source.iterdir()])
    saving.check_outside(source, [target, plot])
    found = chosen_in(source, options["choose"])
    _draw(found, plot)
    used = shown_use(found.use, as_json)
    if target is None and as_json:
        show_figures({**found.as_dict(), **used}, True)
    elif target is None:
        click.echo("\n".join(models.of_points(found.points, found.penalty, found.chosen)))
        show_figures(used, False)
    else:
        with saving.unbroken(target):
            folder.take(source, found.chosen, target)
        point = found.points[found.chosen].as_dict(found.penalty)
        del point["dropped"]
        show_result({**point, **used, "model": str(target)}, as_json, target)


def _tell(outcome: Outcome, found: FrontierTable, command: str, path: Path, options: PathCommand) -> None:
    from thresher.cli.output import figures_of_run, in_json, show_result, shown_use, tell_outcome
    from thresher.lanes import models
    from thresher.lanes.folder import PICTURE, file_of

    tell_outcome(outcome)
    as_json = options["json"]
    figures, used = figures_of_run(outcome), shown_use(found.use, as_json)
    if as_json:
        figures = {**found.as_dict(), **figures, "model": str(path), "command": command, **used}
        figures["warnings"] = in_json(outcome.warnings)
    else:
        if not options["quiet"]:
            click.echo("\n".join(models.of_points(found.points, found.penalty, found.chosen)))
        figures |= {**used, "picture": str(path / PICTURE), "chosen": str(path / file_of(found.chosen))}
        figures["command"] = command
    show_result(figures, as_json, path)
