"""``thresher select``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.cli import saving
from thresher.cli.console import Console
from thresher.cli.errors import check_strictly
from thresher.options.arguments import DATA
from thresher.options.select import SelectCommand

if TYPE_CHECKING:
    from thresher.runs.select import Selecting

ARGUMENTS, OPTIONS = (DATA,), SelectCommand


def command(data: list[str], options: SelectCommand) -> None:
    """Find the features that live in most halves of the rows, and bound how many of them are false.

    One reading trains a model of each half. A feature is kept if the share of the halves in which it lives
    reaches a threshold, from which at most --false false features are expected.
    """
    from thresher.learning.files.folder import SELECTION
    from thresher.runs import select as runs
    from thresher.runs.preparing import Inputs

    folder, kept = options["model"], options["keep"]
    options["checkpoint"] = Path(f"{folder}.checkpoint")
    saving.check_targets(folder, options, data, SELECTION)
    saving.check_targets(kept, options, data)
    run = runs.prepare(
        Inputs(data), options, Console(options["quiet"]), keep=kept is not None, outputs=[kept]
    )
    with closing(run.trainer.stopper.listen()):
        _select(run, folder, options)


def _select(run: Selecting, folder: Path, options: SelectCommand) -> None:
    """Train, save and report."""
    from thresher.cli.output import figures_of_run, show_run, tell_outcome

    outcome = saving.ended(run, lambda: run.selected(outcome).save(folder), f"the selection is in {folder}")
    found = run.selected(outcome)
    with saving.unbroken(folder, run.trainer.stopper):
        found.save(folder)
        run.trainer.discard_checkpoint()
        own = {}
        if options["keep"] is not None and (model := run.keep(found)) is not None:
            model.save(options["keep"])
            own = {"keep": str(options["keep"])}
        outcome.warnings = found.warnings
        tell_outcome(outcome)
        figures = {**found.figures(), **figures_of_run(outcome), **own, "model": str(folder)}
        del figures["features_seen"]
        rows = {"kept_features": [one for one in found.rows() if one["kept"]]}
        show_run(figures, found.warnings, options, found.lines(), rows)
    check_strictly(found.warnings, options)
