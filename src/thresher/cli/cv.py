"""``thresher cv``."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from thresher.cli import saving
from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.lanes import CvCommand
from thresher.options.option import Options

if TYPE_CHECKING:
    from thresher.learning.training.trainer import Outcome

ARGUMENTS, OPTIONS = (DATA,), CvCommand


def command(data: list[str], options: Options) -> None:
    """Evaluate penalties by cross-validation: one reading trains all folds, a second one evaluates them.

    A rule with a fixed penalty, or with none, is evaluated as it is. A run that is interrupted saves nothing,
    but in passes over rows in memory that nobody asked for: these end early.
    """
    from thresher.cli.output import figures_of_run, show_run, shown_use, tell_outcome
    from thresher.data.sources.reader import prepare_readers
    from thresher.learning.files.model_file import OF_THE_COMMAND, tell_large_state
    from thresher.plans import cv as plans
    from thresher.plans.models import of_estimates
    from thresher.plans.run_setup import Inputs

    model, started, ui = options["model"], time.perf_counter(), Console(options["quiet"])
    saving.check_targets(model, options, data)
    run = plans.prepare(Inputs(data), options, ui, refit=model is not None, outputs=[model])
    started += prepare_readers()
    outcome: Outcome = saving.ended(run)
    found = run.judged()
    number, which, use = run.choose(found)
    used, own = shown_use(use, options["json"]), dict[str, Any]()
    again = {"command": run.command(data, outcome, found.points[number].spec)}
    took = {"seconds": round(time.perf_counter() - started, 3)}
    with nullcontext() if model is None else saving.unbroken(model):
        if model is not None:
            tell_large_state([final := found.choose(which)], ui.say, OF_THE_COMMAND)
            final.save(model)
            own = {"nonzero": final.nonzero, "model": str(model)}
        outcome.warnings = run.troubles(outcome)
        tell_outcome(outcome)
        figures = {"folds": run.plan.split.shown, **figures_of_run(outcome), **took, **used, **own, **again}
        del figures["features_seen"]
        lanes = [point.as_dict(found.penalty) for point in found.points]
        whole = {"lanes": lanes, "chosen": number, "choice": which, "penalty": found.penalty}
        whole |= {"folds": run.plan.split.shown, **used, **again, **took, **own}
        table = of_estimates(found.points, found.penalty, number)
        show_run(figures, outcome.warnings, options, table, whole)
        check_strictly(outcome.warnings, options)
    saving.tell_interrupted(run.trainer.cut_short, model)
