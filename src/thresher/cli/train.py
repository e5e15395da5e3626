"""``thresher train``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.cli import saving
from thresher.cli.console import Console
from thresher.cli.errors import StoppedAfterSaving, check_strictly
from thresher.options.arguments import DATA
from thresher.options.option import Options, UsageError
from thresher.options.output import TrainCommand

if TYPE_CHECKING:
    from thresher.learning.training.trainer import Outcome
    from thresher.plans.run import Training

ARGUMENTS, OPTIONS = (DATA,), TrainCommand


def command(data: list[str], options: Options) -> None:
    """Learn a sparse linear model from a stream, and report how well it predicted each example beforehand."""
    from thresher.learning.files.checkpoint import bags_in
    from thresher.plans import train as plans
    from thresher.plans.run import bags_of
    from thresher.plans.run_setup import Inputs

    path, checkpoint_path = options["model"], Path(f"{options['model']}.checkpoint")
    bags = options["ensemble"] or bags_of(options["continue_from"])
    if bags is None and options["resume"] and checkpoint_path.is_file():
        bags = bags_in(checkpoint_path)
    options["checkpoint"] = checkpoint_path
    saving.check_targets(path, options, data)
    if bags and options["names"]:
        raise UsageError("--names works with one model only: use thresher name afterwards")
    run = plans.prepare(Inputs(data), options, Console(options["quiet"]), bags=bags, outputs=[path])
    with closing(run.trainer.stopper.listen()):
        outcome = _train(run, options)
        check_strictly(outcome.warnings, options)


def _train(run: Training, options: Options) -> Outcome:
    """Train, save and report."""
    from thresher.cli.output import write_curve

    path, state = options["model"], not options["weights_only"]
    said = run.without_names(path) if run.names else f"the model is saved in {path}"
    outcome: Outcome = saving.ended(run, lambda: run.model.save(path, state=state), said)
    with saving.unbroken(path, run.trainer.stopper):
        if state:
            run.tell_large_state()
        complete = run.save(path, state)
        with saving.saved_before(path):
            write_curve(options["curve"], outcome.table)
            run.draw(options["plot"], outcome)
        _tell(run, outcome, options)
        if not complete:
            raise StoppedAfterSaving(f"interrupted; {run.without_names(path)}")
    return outcome


def _tell(run: Training, outcome: Outcome, options: Options) -> None:
    from thresher.cli.output import show_run, tell_outcome
    from thresher.learning.inspection.formatting import of_first_pass
    from thresher.learning.model.calibration import in_words

    tell_outcome(outcome)
    loss = outcome.progressive_loss
    figures = {**run.figures(outcome), "model": str(options["model"])}
    figures |= {f"holdout_{name}": value for name, value in (outcome.holdout or {}).items()}
    if not options["json"]:
        figures["progressive_loss"] = of_first_pass(loss, outcome.passes > 1)
        if "calibration" in figures:
            figures["probability"] = in_words(figures.pop("calibration"))
    slices, lines = {} if options["json"] else figures.pop("slices", {}), list[str]()
    if slices:
        from thresher.learning.evaluation.slices import slice_lines

        kind = " (progressive, first pass)" if outcome.passes > 1 else " (progressive)"
        lines = [line for column, rows in slices.items() for line in slice_lines(column, rows, kind)]
    show_run(figures, outcome.warnings, options.but(quiet=False), lines)  # they were asked for
