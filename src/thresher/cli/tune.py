"""``thresher tune``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from thresher.cli import saving
from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.lanes import VARIED, TuneCommand

if TYPE_CHECKING:
    from thresher.lanes.models import Tuned
    from thresher.runs.tune import Search

ARGUMENTS, OPTIONS, HIDDEN = (DATA,), TuneCommand, VARIED


def command(data: list[str], options: TuneCommand) -> None:
    """Race settings of several rules in three readings, train the best, and print the command that trains it.

    The choice is by the loss on rows before they are learned. The report is on other rows.
    """
    from thresher.runs import tune as runs
    from thresher.runs.preparing import Inputs, quarantine_of

    path, ui = options["model"], Console(options["quiet"])
    saving.check_model(path, [quarantine_of(options["on_error"])], data)
    search = runs.prepare(Inputs(data), options, ui, outputs=[path])
    try:
        search.run()
    finally:
        ui.watcher.close()
    found = search.tuned()
    with saving.unbroken(path):
        found.model.save(path)
        _tell(search, found, data, options)
    saving.tell_interrupted(search.interrupted, path)
    check_strictly(found.warnings, options["strict"], path)


def _tell(search: Search, found: Tuned, data: list[str], options: TuneCommand) -> None:
    from thresher.cli.output import in_json, show_result, tell_skipped, tell_warnings, tell_weightless
    from thresher.lanes.models import of_trials

    model, chosen, path = found.model, found.trials[found.chosen], options["model"]
    if search.lines is not None:
        tell_skipped(search.lines)
    tell_weightless(search.weightless, model.examples)
    tell_warnings(found.warnings)
    figures: dict[str, Any] = {
        "examples": model.examples,
        "passes": model.record.passes if model.record else 1,
        "settings": len(found.trials),
        "seed": search.tuner.seed,
        "rule": chosen.rule,
        "rate": chosen.rate,
        "nonzero": model.nonzero,
        "report_on": search.reported_on(options["holdout"]),
        **{f"report_{name}": value for name, value in found.report.items()},
        "command": search.command(data, options),
        "model": str(path),
    }
    if options["json"]:
        trials, warned = [one.as_dict() for one in found.trials], in_json(found.warnings)
        figures = {"trials": trials, "chosen": found.chosen, **figures, "warnings": warned}
    else:
        figures = {name: value for name, value in figures.items() if value is not None}
        if not options["quiet"]:
            click.echo("late loss: over the last half of the rows used for choosing; the lowest is chosen")
            click.echo("\n".join(of_trials(found.trials, found.chosen)))
    show_result(figures, options["json"], path)
