"""``thresher tune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thresher.cli import saving
from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.lanes import VARIED, TuneCommand
from thresher.options.option import given_in

if TYPE_CHECKING:
    from thresher.lanes.models import Search
    from thresher.lanes.tuning import Trial
    from thresher.learning.model.model import Model

ARGUMENTS, OPTIONS, HIDDEN = (DATA,), TuneCommand, VARIED


def command(data: list[str], options: TuneCommand) -> None:
    """Race settings of several rules in three readings, train the best, and print the command that trains it.

    The choice is by the loss on rows before they are learned. The report is on other rows.
    """
    from thresher.cli.saving import check_model
    from thresher.learning.files import model_file
    from thresher.runs import tune as runs
    from thresher.runs.preparing import Inputs, quarantine_of

    model, ui = options["model"], Console(options["quiet"])
    check_model(model, [quarantine_of(options["on_error"])], data)
    search = runs.prepare(Inputs(data), options, ui, outputs=[model])
    try:
        search.run()
    finally:
        ui.watcher.close()
    trial, found = search.tuner.winner()
    figures = {"report_on": _reported_on(search, options["holdout"])}
    figures |= {f"report_{name}": value for name, value in search.report().items()}
    figures["command"] = _command(data, options, trial, found)
    with saving.unbroken(model):
        model_file.save(found, model)
        _tell(search, figures, options)
    saving.tell_interrupted(search.interrupted, model)
    check_strictly(search.warnings, options["strict"], model)


def _reported_on(search: Search, holdout: Any) -> str:
    """The rows reported on, in words."""
    if holdout is not None:
        return str(holdout)
    first, last = (search.tuner.until or 0) + 1, search.tuner.winner()[0].rows
    return f"rows {first:,} to {last:,}, each before it was learned"


def _tell(search: Search, found: dict[str, Any], options: TuneCommand) -> None:
    from thresher.cli.output import in_json, show_result, tell_skipped, tell_warnings, tell_weightless
    from thresher.lanes.models import of_trials

    tuner, path = search.tuner, options["model"]
    if search.lines is not None:
        tell_skipped(search.lines)
    tell_weightless(search.weightless, search.tuner.winner()[1].examples)
    tell_warnings(search.warnings)
    trial, model = tuner.winner()
    chosen = tuner.chosen or 0
    figures = {
        "examples": model.examples,
        "passes": model.record.passes if model.record else 1,
        "settings": len(tuner.trials),
        "seed": tuner.seed,
        "rule": trial.rule,
        "rate": trial.rate,
        "nonzero": model.nonzero,
        **found,
        "model": str(path),
    }
    if options["json"]:
        trials, warned = [one.as_dict() for one in tuner.trials], in_json(search.warnings)
        show_result({"trials": trials, "chosen": chosen, **figures, "warnings": warned}, True, path)
        return
    if not options["quiet"]:
        click.echo("late loss: over the last half of the rows used for choosing; the lowest is chosen")
        click.echo("\n".join(of_trials(tuner.trials, chosen)))
    show_result({name: value for name, value in figures.items() if value is not None}, False, path)


def _command(data: list[str], options: TuneCommand, trial: Trial, model: Model) -> str:
    """The command that trains this model alone."""
    from thresher.runs.repeat import passes_said, train_command

    recipe, given = model.recipe, given_in(options)
    passes = passes_said(model.record.passes if model.record else 1, recipe)
    own = {"rule": trial.rule, "rate": trial.rate, "passes": passes}
    if recipe.centre != recipe.centred_by_default:
        own["centre"] = recipe.centre
    return train_command(data, Path(options["model"]), {**given, **own})
