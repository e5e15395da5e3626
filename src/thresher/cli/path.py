"""``thresher path``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thresher.cli import saving
from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.lanes import BEST, PathCommand
from thresher.options.option import UsageError

if TYPE_CHECKING:
    from thresher.lanes.folder import FrontierTable
    from thresher.lanes.frontier import Learned
    from thresher.learning.training.trainer import Outcome
    from thresher.runs.path import FrontierTraining

ARGUMENTS, OPTIONS = (DATA,), PathCommand


def command(data: list[str], options: PathCommand) -> None:
    """Learn a model for each of many penalties in one reading, and show the loss and size of each.

    If DATA is the folder of an earlier run, take another model from it.
    """
    from thresher.learning.files.folder import FRONTIER
    from thresher.runs import path as runs
    from thresher.runs.preparing import Inputs

    if len(data) == 1 and runs.is_folder(Path(data[0]), options):
        _take(Path(data[0]), options)
        return
    folder = options["model"]
    if folder is None:
        raise UsageError("missing option --model DIR: the folder to write")
    options["checkpoint"] = Path(f"{folder}.checkpoint")
    saving.check_targets(folder, options, [], FRONTIER)
    run = runs.prepare(Inputs(data), options, Console(options["quiet"]))
    with closing(run.trainer.stopper.listen()):
        _learn(run, folder, data, options)


def _learn(run: FrontierTraining, path: Path, data: list[str], options: PathCommand) -> None:
    """Train, save and report; if training is stopped in a replay, the models are saved as they are."""
    which, stopper = options["choose"] or BEST, run.trainer.stopper

    def save(learned: Learned) -> None:
        with saving.unbroken(path, stopper):
            run.save(learned, path, which, say=False)

    keep = None if run.beside else (lambda: run.save(run.learned(), path, which, say=False))
    outcome: Outcome = saving.ended(run, keep, f"the models are saved in {path}")
    learned = run.filled(outcome, path, which, save)
    with saving.unbroken(path, stopper):
        found = run.save(learned, path, which)
        run.trainer.discard_checkpoint()
        with saving.saved_before(path):
            found.draw(options["plot"])
        _tell(outcome, found, run.command(data, found, learned.models[found.chosen]), path, options)
    check_strictly(outcome.warnings, options)


def _take(source: Path, options: PathCommand) -> None:
    """Copy a model out of a folder, by default the one chosen when it was written; or show the table."""
    from thresher.cli.output import show_figures, show_result, shown_use
    from thresher.lanes import folder
    from thresher.lanes.models import of_points
    from thresher.runs.path import chosen_in

    target, as_json = options["model"], options["json"]
    saving.check_targets(target, options, [*source.iterdir()])
    saving.check_outside(source, [target, options["plot"]])
    found = chosen_in(source, options["choose"])
    found.draw(options["plot"])
    used = shown_use(found.use, as_json)
    if target is not None:
        with saving.unbroken(target):
            folder.take(source, found.chosen, target)
        point = found.points[found.chosen].as_dict(found.penalty)
        del point["dropped"]
        show_result({**point, **used, "model": str(target)}, as_json, target)
    elif as_json:
        show_figures({**found.as_dict(), **used}, True)
    else:
        click.echo("\n".join(of_points(found.points, found.penalty, found.chosen)))
        show_figures(used, False)


def _tell(
    outcome: Outcome, found: FrontierTable, command: str | None, path: Path, options: PathCommand
) -> None:
    from thresher.cli.output import figures_of_run, show_run, shown_use, tell_outcome
    from thresher.lanes.folder import PICTURE, file_of
    from thresher.lanes.models import of_points

    tell_outcome(outcome)
    figures, used = figures_of_run(outcome), shown_use(found.use, options["json"])
    said = {} if command is None else {"command": command}
    if options["json"]:
        figures |= {"model": str(path), **said, **used}
    else:
        figures |= {
            **used,
            "picture": str(path / PICTURE),
            "chosen": str(path / file_of(found.chosen)),
            **said,
        }
    table = of_points(found.points, found.penalty, found.chosen)
    show_run(figures, outcome.warnings, options, table, found.as_dict())
