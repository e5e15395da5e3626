"""``thresher select``."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.cli import saving
from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.option import Options
from thresher.options.select import SelectCommand

if TYPE_CHECKING:
    from thresher.plans.select import Selecting

ARGUMENTS, OPTIONS = (DATA,), SelectCommand


def command(data: list[str], options: Options) -> None:
    """Find the features that live in most halves of the rows, and bound how many of them are false.

    One reading trains a model of each half. A feature is kept if the share of the halves in which it lives
    reaches a threshold, from which at most --false false features are expected.
    """
    from thresher.plans import select as plans
    from thresher.plans.run_setup import Inputs

    path = options["model"]
    options["checkpoint"] = Path(f"{path}.checkpoint")
    saving.check_targets(path, options, data)
    run = plans.prepare(
        Inputs(data), options, Console(options["quiet"]), keep=options["keep"], outputs=[path]
    )
    with closing(run.trainer.stopper.listen()):
        _select(run, path, options)


def _select(run: Selecting, path: Path, options: Options) -> None:
    """Train, save and report."""
    from thresher.cli.output import figures_of_run, show_run, tell_outcome
    from thresher.learning.inspection import plots

    outcome = saving.ended(run, lambda: run.selected(outcome).save(path), f"the selection is in {path}")
    found = run.selected(outcome)
    with saving.unbroken(path, run.trainer.stopper):
        found.save(path)
        run.trainer.discard_checkpoint()
        if options["keep"] and (model := run.keep(found)) is not None:
            found = replace(found, model=model)
            found.save(path)
        with saving.saved_before(path):
            plots.draw(options["plot"], found.picture, options["table"], found.table)
        outcome.warnings = found.warnings
        tell_outcome(outcome)
        figures = {**found.figures(), **figures_of_run(outcome), "model": str(path)}
        del figures["features_seen"]
        rows = {"kept_features": [one for one in found.rows() if one["kept"]]}
        show_run(figures, found.warnings, options, found.lines(), rows)
    check_strictly(found.warnings, options)
