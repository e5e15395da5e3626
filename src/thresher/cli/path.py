"""``thresher path``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.cli import saving
from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.lanes import PathCommand
from thresher.options.option import Options

if TYPE_CHECKING:
    from thresher.learning.files.choice import FrontierTable
    from thresher.learning.training.trainer import Outcome
    from thresher.plans.frontier import Learned
    from thresher.plans.path import FrontierTraining

ARGUMENTS, OPTIONS = (DATA,), PathCommand


def command(data: list[str], options: Options) -> None:
    """Learn a model for each of many penalties in one reading, and show the loss and size of each."""
    from thresher.plans import path as plans
    from thresher.plans.run_setup import Inputs

    path = options["model"]
    options["checkpoint"] = Path(f"{path}.checkpoint")
    saving.check_targets(path, options, [])
    run = plans.prepare(Inputs(data), options, Console(options["quiet"]), outputs=[path])
    with closing(run.trainer.stopper.listen()):
        _learn(run, path, data, options)


def _learn(run: FrontierTraining, path: Path, data: list[str], options: Options) -> None:
    """Train, save and report; if training is stopped in a replay, the models are saved as they are."""
    which, stopper = options["choose"], run.trainer.stopper

    def save(learned: Learned) -> None:
        with saving.unbroken(path, stopper):
            run.save_frontier(learned, path, which, say=False)

    def keep() -> None:
        run.save_frontier(run.learned(), path, which, say=False)

    first = not run.trainer.plan.finished
    outcome: Outcome = saving.ended(run, keep if first else None, f"the models are saved in {path}")
    learned = run.filled(outcome, path, which, save)
    with saving.unbroken(path, stopper):
        found = run.save_frontier(learned, path, which)
        run.trainer.discard_checkpoint()
        with saving.saved_before(path):
            run.draw_frontier(found, options["plot"], options["table"])
        outcome.warnings += run.missed
        _tell(outcome, found, run.command(data, found, learned.models[found.chosen]), path, options)
    check_strictly(outcome.warnings, options)


def _tell(outcome: Outcome, found: FrontierTable, command: str | None, path: Path, options: Options) -> None:
    from thresher.cli.output import figures_of_run, show_run, shown_use, tell_outcome
    from thresher.plans.budget import use_of
    from thresher.plans.models import of_points

    tell_outcome(outcome)
    used = shown_use(use_of(found.points, found.chosen, options["choose"]), options["json"])
    said = {} if command is None else {"command": command}
    figures = {**figures_of_run(outcome), **used, "model": str(path), **said}
    table = of_points(found.points, found.penalty, found.chosen)
    show_run(figures, outcome.warnings, options, table, found.as_dict())
