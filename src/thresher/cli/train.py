"""``thresher train``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli import saving
from thresher.cli.console import Console, ended
from thresher.cli.errors import StoppedAfterSaving, check_strictly
from thresher.options.arguments import DATA
from thresher.options.output import TrainCommand

if TYPE_CHECKING:
    from thresher.learning.training.trainer import Outcome
    from thresher.runs.train import Training

ARGUMENTS, OPTIONS = (DATA,), TrainCommand


def command(data: list[str], options: TrainCommand) -> None:
    """Learn a sparse linear model from a stream, and report how well it predicted each example beforehand."""
    from thresher.runs import train
    from thresher.runs.preparing import Inputs

    path, curve = options["model"], options["curve"]
    options["checkpoint"] = Path(f"{path}.checkpoint")
    _check_targets(data, options)
    own = [None if options["ensemble"] else path, curve]
    run = train.prepare(
        Inputs(data), options, Console(options["quiet"]), bags=options["ensemble"], outputs=own
    )
    with closing(run.trainer.stopper.listen()):
        outcome = _train(run, options)
        check_strictly(outcome.warnings, options["strict"], path)


def _check_targets(data: list[str], options: TrainCommand) -> None:
    """Check that what exists at the places to write to may be replaced; `UsageError`, OSError."""
    from thresher.cli.saving import check_curve, check_folder, check_model, check_picture
    from thresher.learning.files.folder import ENSEMBLE
    from thresher.options.option import UsageError
    from thresher.runs.preparing import check_outputs, quarantine_of

    path, held = options["model"], options["holdout"]
    beside: list[Any] = [options[name] for name in ("curve", "plot", "checkpoint")]
    beside.append(quarantine_of(options["on_error"]))
    inputs = [*data, "-" if held is None else str(held)]
    if options["ensemble"]:
        check_folder(ENSEMBLE, path, beside, inputs)
        if options["names"]:
            raise UsageError(
                "--names works with one model only: use thresher name on a model of the ensemble"
            )
    else:
        check_model(path, beside, inputs)
    check_outputs(
        beside, [str(options[name]) for name in ("init", "continue_from") if options[name] is not None]
    )
    check_curve(options["curve"])
    check_picture(options["plot"])


def _train(run: Training, options: TrainCommand) -> Outcome:
    """Train, save and report."""
    from thresher.learning.training.interruption import Interrupted

    path = options["model"]
    try:
        outcome: Outcome = ended(run)
    except Interrupted as stopped:
        said = saving.without_names(path) if run.names else f"the model is saved in {path}"
        state = not options["weights_only"]
        raise saving.kept(stopped, run.trainer, lambda: run.model.save(path, state=state), said) from None
    with saving.signals_wait(path, run.trainer.stopper):
        complete = _save(run, options)
        _tell(run, outcome, options)
        if not complete:
            raise StoppedAfterSaving(f"interrupted; {saving.without_names(path)}")
    return outcome


def _save(run: Training, options: TrainCommand) -> bool:
    """Save the model, then again with names if they are wanted; False if a signal interrupted that."""
    from thresher.data.errors import DataError

    path, state, trainer = options["model"], not options["weights_only"], run.trainer
    run.model.save(path, state=state)
    trainer.discard_checkpoint()
    if not run.will_name:
        return True
    if not options["quiet"]:
        trainer.watcher.say("reading the names of features")
    try:
        if not trainer.stopper.unless_asked(run.name):
            return False
    except DataError as error:
        raise DataError(f"{error} ({saving.without_names(path)})") from error
    run.model.save(path, state=state)
    return True


def _write(run: Training, outcome: Outcome, options: TrainCommand) -> None:
    """Write the table and the picture, where they are wanted."""
    if options["curve"] is not None:
        from thresher.cli.output import write_curve

        write_curve(options["curve"], outcome.table)
    if options["plot"] is not None:
        from thresher.learning.inspection import plots

        stages, loss = plots.stages_of_table(outcome.table), run.model.recipe.loss
        plots.write(Path(options["plot"]), plots.learning(stages, str(loss), outcome.holdout))


def _tell(run: Training, outcome: Outcome, options: TrainCommand) -> None:
    from thresher.cli.output import in_json, show_result, tell_outcome
    from thresher.learning.inspection.formatting import of_first_pass

    path, model = options["model"], run.model
    with saving.saved_before(path):
        _write(run, outcome, options)
    tell_outcome(outcome)
    waiting = model.features_waiting
    figures: dict[str, Any] = {
        "examples": outcome.examples,
        "passes": outcome.passes,
        "progressive_loss": outcome.progressive_loss,
        "nonzero": outcome.nonzero,
        "features_seen": outcome.features_seen,
        **({} if waiting is None else {"features_waiting": waiting}),
        **({} if model.names is None else {"named": len(model.names)}),
        "seconds": round(outcome.seconds, 3),
        **({"seconds_compiling": round(outcome.compiling, 3)} if outcome.compiling else {}),
        "examples_per_second": round(outcome.examples_per_second),
        "skipped": outcome.skipped,
        **({"importance_0": outcome.weightless} if outcome.weightless else {}),
        **run.learner.figures(model),
        "model": str(path),
    }
    figures |= {f"holdout_{name}": value for name, value in (outcome.holdout or {}).items()}
    if options["json"]:
        figures["warnings"] = in_json(outcome.warnings)
    else:
        figures["progressive_loss"] = of_first_pass(outcome.progressive_loss, outcome.passes > 1)
    show_result(figures, options["json"], path)
