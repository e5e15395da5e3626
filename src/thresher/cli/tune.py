"""``thresher tune``."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from thresher.cli import saving
from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.lanes import VARIED, TuneCommand
from thresher.options.option import Options

if TYPE_CHECKING:
    from thresher.plans.models import Tuned
    from thresher.plans.tune import Search

ARGUMENTS, OPTIONS, HIDDEN = (DATA,), TuneCommand, VARIED


def command(data: list[str], options: Options) -> None:
    """Race settings of several rules in three readings, train the best, and print the command that trains it.

    The choice is by the loss on rows before they are learned. The report is on other rows.
    """
    from thresher.learning.files.model_file import OF_THE_COMMAND, tell_large_state
    from thresher.plans import tune as plans
    from thresher.plans.run_setup import Inputs

    path, ui = options["model"], Console(options["quiet"])
    saving.check_targets(path, options, data)
    search = plans.prepare(Inputs(data), options, ui, outputs=[path])
    with closing(ui.watcher):
        search.run()
    found = search.tuned()
    with saving.unbroken(path):
        tell_large_state([found.model], ui.say, OF_THE_COMMAND)
        found.model.save(path)
        _tell(search, found, data, options)
    saving.tell_interrupted(search.interrupted, path)
    check_strictly(found.warnings, options)


def _tell(search: Search, found: Tuned, data: list[str], options: Options) -> None:
    from thresher.cli.output import show_run, tell_skipped, tell_warnings, tell_weightless
    from thresher.plans.models import of_trials

    model, chosen = found.model, found.trials[found.chosen]
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
        "model": str(options["model"]),
    }
    if not options["json"]:
        figures = {name: value for name, value in figures.items() if value is not None}
    head = "late loss: over the last half of the rows used for choosing; the lowest is chosen"
    whole = {"trials": [one.as_dict() for one in found.trials], "chosen": found.chosen}
    show_run(figures, found.warnings, options, [head, *of_trials(found.trials, found.chosen)], whole)
