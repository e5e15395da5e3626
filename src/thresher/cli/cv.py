"""``thresher cv``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from thresher.cli import saving
from thresher.cli.console import Console, ended
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.lanes import CvCommand

if TYPE_CHECKING:
    from thresher.lanes.models import CrossValidation
    from thresher.learning.training.trainer import Outcome
    from thresher.runs.cv import Validation

ARGUMENTS, OPTIONS = (DATA,), CvCommand


def command(data: list[str], options: CvCommand) -> None:
    """Evaluate penalties by cross-validation: one reading trains all folds, a second one evaluates them.

    A rule with a fixed penalty, or with none, is evaluated as it is. A run that is interrupted in its first
    pass saves nothing.
    """
    from thresher.data.sources.pieces import prepare_readers
    from thresher.runs import cv as runs
    from thresher.runs.lanes import chosen_of
    from thresher.runs.preparing import Inputs, quarantine_of

    model, started = options["model"], time.perf_counter()
    saving.check_model(model, [quarantine_of(options["on_error"])], data)
    ui = Console(options["quiet"])
    run = runs.prepare(Inputs(data), options, ui, refit=model is not None, outputs=[model])
    started += prepare_readers()
    outcome = ended(run)
    found = run.judged()
    found.fill(options["choose"])
    number, which = chosen_of(found.points, options["choose"], ui.warn)
    summary = {"chosen": number, "choice": which, "penalty": found.penalty, "folds": run.split.shown}
    summary |= _use(found, number, which, options["json"], ui)
    summary |= {"command": run.command(data, outcome, found.points[number].spec)}
    summary["seconds"] = round(time.perf_counter() - started, 3)
    if model is None:
        _tell(run, outcome, found, summary, options)
    else:
        with saving.unbroken(model):
            (final := found.model(which)).save(model)
            summary |= {"nonzero": final.nonzero, "model": str(model)}
            _tell(run, outcome, found, summary, options)
    saving.tell_interrupted(run.trainer.cut_short, model)


def _use(found: CrossValidation, number: int, which: str, as_json: bool, ui: Console) -> dict[str, Any]:
    """The use of a budget of weights, if there is one."""
    from thresher.cli.output import shown_use
    from thresher.lanes.budget import use_of

    use = use_of(found.points, number, which)
    if use and found.folds.whole is None:
        ui.warn(
            "weights are means over the folds, and a model of all rows has more: give --model to choose by "
            "its own"
        )
    return shown_use(use, as_json)


def _tell(
    run: Validation,
    outcome: Outcome,
    found: CrossValidation,
    summary: dict[str, Any],
    options: CvCommand,
) -> None:
    from thresher.cli.output import in_json, show_figures, show_result, tell_outcome
    from thresher.lanes import models

    outcome.warnings, model = run.troubles(outcome), options["model"]
    tell_outcome(outcome)
    figures = {"folds": summary["folds"], "examples": outcome.examples, "passes": outcome.passes}
    figures["seconds"] = summary["seconds"]
    figures |= {"seconds_compiling": round(outcome.compiling, 3)} if outcome.compiling else {}
    figures["skipped"] = outcome.skipped
    figures |= {name: summary[name] for name in ("budget", "nonzero", "model", "command") if name in summary}
    if options["json"]:
        lanes = [point.as_dict(found.penalty) for point in found.points]
        figures = {"lanes": lanes, **summary, **figures, "warnings": in_json(outcome.warnings)}
    elif not options["quiet"]:
        click.echo("\n".join(models.of_estimates(found.points, found.penalty, summary["chosen"])))
    if model is None:
        show_figures(figures, options["json"])
    else:
        show_result(figures, options["json"], model)
    check_strictly(outcome.warnings, options["strict"], model)
