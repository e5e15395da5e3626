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
from thresher.options.option import given_in

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
    from thresher.cli.saving import check_model
    from thresher.data.sources.pieces import prepare_readers
    from thresher.runs import cv as runs
    from thresher.runs.lanes import chosen_of
    from thresher.runs.preparing import Inputs, quarantine_of

    model, started = options["model"], time.perf_counter()
    check_model(model, [quarantine_of(options["on_error"])], data)
    ui = Console(options["quiet"])
    run = runs.prepare(Inputs(data), options, ui, refit=model is not None, outputs=[model])
    started += prepare_readers()
    outcome = ended(run)
    found = _judged(run, options["choose"])
    number, which = chosen_of(found.points, options["choose"], ui.warn)
    shown = {"chosen": number, "choice": which, "penalty": found.penalty, "folds": run.split.shown}
    summary = {**shown, **_use(found, number, which, options["json"], ui)}
    summary |= {"command": _command(run, outcome, data, found.points[number].spec)}
    summary["seconds"] = round(time.perf_counter() - started, 3)
    if model is None:
        _tell(run, outcome, found, summary, options)
    else:
        with saving.unbroken(model):
            (final := found.model(which)).save(model)
            summary |= {"nonzero": final.nonzero, "model": str(model)}
            _tell(run, outcome, found, summary, options)
    saving.tell_interrupted(run.trainer.cut_short, model)


def _command(run: Validation, outcome: Outcome, data: list[str], rule: str) -> str:
    """The command that trains a model of all rows."""
    from thresher.runs.repeat import passes_said, train_command

    given = given_in(run.options)
    passes = passes_said(outcome.passes, run.trainer.model.recipe)
    return train_command(data, given.get("model"), {**given, "rule": rule, "passes": passes})


def _judged(run: Validation, which: str) -> CrossValidation:
    """Evaluate the folds, and further penalties if `which` is a budget of weights that lies between two."""
    from thresher.lanes.budget import between, reading_again

    found = run.judged()
    if penalties := between(found.points, which):
        run.ui.say(reading_again(penalties))
    found.fill(which)
    return found


def _use(found: CrossValidation, number: int, which: str, as_json: bool, ui: Console) -> dict[str, Any]:
    """The use of a budget of weights, if there is one."""
    from thresher.lanes.budget import sentence, use_of

    use = use_of(found.points, number, which)
    if use and found.folds.whole is None:
        ui.warn(
            "weights are means over the folds, and a model of all rows has more: give --model to choose by "
            "its own"
        )
    return {"budget": use if as_json else sentence(use)} if use else {}


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
