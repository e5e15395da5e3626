"""``thresher train``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli import options, saving
from thresher.cli import train_options as t
from thresher.cli.decorators import reads_elsewhere, takes
from thresher.cli.errors import StoppedAfterSaving, check_strictly
from thresher.cli.learners import Learner, learner_of
from thresher.cli.model_flags import ModelFlags
from thresher.cli.reading import (
    Reading,
    agreed,
    check_files,
    look_at,
    planned,
    run,
    sources_of,
    with_classes,
)

if TYPE_CHECKING:
    from thresher.learning.model import Model
    from thresher.learning.training import Outcome, Plan, Trainer

SHORT = "Learn a sparse linear model from a stream."


@reads_elsewhere
@takes(flags=ModelFlags, table=options.Table)
def command(
    data: options.Data,
    model: t.ModelFile,
    flags: Any = None,
    passes: t.AutoPasses = None,
    replay: t.Replay = None,
    order: t.Order = None,
    holdout: t.Holdout = None,
    early_stop: t.EarlyStop = None,
    report_every: t.ReportEvery = None,
    checkpoint_every: t.CheckpointEvery = None,
    resume: t.Resume = False,
    init: t.Init = None,
    table: options.Table = options.NO_TABLE,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
    cache: t.Cache = True,
    curve: t.Curve = None,
    plot: t.Plot = None,
    names: t.Names = False,
    weights_only: t.WeightsOnly = False,
    ensemble: t.Ensemble = None,
    quiet: t.Quiet = False,
    strict: t.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Learn a sparse linear model from a stream, and report how well it predicted each example beforehand."""
    spare, learner = Path(f"{model}.checkpoint"), learner_of(flags, ensemble)
    check_files(learner, model, [curve, plot, spare], on_error, [*data, holdout or "-"], init, resume)
    asked = passes or "auto", replay
    plan, held = planned(*asked, report_every or 0, holdout, early_stop, spare, checkpoint_every, table.group)
    reading = Reading(data, held, table, on_error, threads, cache, order, names, init, plan.marked)
    files = [*learner.files(model), curve, plot, spare]
    trainer = _trainer(plan, asked, learner, reading, resume, quiet, *files)
    with closing(trainer.stopper.listen()):
        outcome = _train(trainer, learner, reading, (model, curve, plot), not weights_only, quiet, as_json)
        check_strictly(outcome.warnings, strict, model)


def _trainer(
    plan: Plan,
    asked: tuple[str, str | None],
    learner: Learner,
    reading: Reading,
    resume: bool,
    quiet: bool,
    *outputs: Path | None,
) -> Trainer[Model]:
    from thresher.cli.watching import say_unless, watcher
    from thresher.engine import notices
    from thresher.learning import modelfile
    from thresher.learning.ahead import compile_ahead
    from thresher.learning.warmstart import checked_data

    watching = watcher(quiet)
    notices.when_compiling(None if quiet else watching.say)
    spare: Any = plan.checkpoint
    loaded, before = learner.load(spare) if resume else (None, None)
    initial = reading.initial_weights()
    plan = agreed(plan, asked[0], before, asked[1])
    layout, model = reading.layout(loaded, initial), loaded
    if model is None:
        look_at(spare, watching)
        layout, wanted = with_classes(learner.flags, reading, layout, say_unless(quiet, watching), initial)
        model = learner.new(wanted, initial, watching.say)
    example = learner.example(model)
    ahead = compile_ahead(example, plan.judges(reading.holdout), *learner.before(model, example))
    order = reading.order_of(before, example.recipe.seed)
    learner.check(reading, order, plan.passes)
    source, held = sources_of(reading, layout, model.head.domain, [*outputs], plan.passes)
    model.layout = source.layout
    source = checked_data(initial, source)
    reading.check_nameable(source, example.store)
    beside = {"watcher": watching, "ready": ahead.wait, **learner.beside(None if quiet else watching.say)}
    trainer = reading.trainer(model, source, held, plan, order, **beside)
    if before is not None:
        with modelfile.naming_file(spare):
            trainer.continue_from(before)
    return trainer


def _train(
    trainer: Trainer[Model],
    learner: Learner,
    reading: Reading,
    files: tuple[Path, Path | None, Path | None],
    state: bool,
    quiet: bool,
    as_json: bool,
) -> Outcome:
    """Train, save and report; the first of the files is the model."""
    from thresher.learning.stopping import Interrupted

    try:
        outcome = run(trainer)
    except Interrupted as stopped:
        said = saving.without_names(files[0]) if reading.names else f"the model is saved in {files[0]}"
        raise saving.kept(stopped, trainer, lambda: trainer.model.save(files[0], state=state), said) from None
    outcome.warnings += reading.unnamed(trainer.model, trainer.source)
    with saving.signals_wait(files[0], trainer.stopper):
        complete = _save(trainer, reading, files[0], state, quiet)
        _tell(trainer, outcome, learner, files, as_json)
        if not complete:
            raise StoppedAfterSaving(f"interrupted; {saving.without_names(files[0])}")
    return outcome


def _save(trainer: Trainer[Model], reading: Reading, path: Path, state: bool, quiet: bool) -> bool:
    """Save the model, then again with names if `--names` was given; False if a signal interrupted that."""
    from thresher.data.errors import DataError
    from thresher.learning.wholefile import discard

    trainer.model.save(path, state=state)
    if trainer.plan.checkpoint is not None and trainer.owns_checkpoint:
        discard(trainer.plan.checkpoint)
    if not (reading.names or reading.follows(trainer.model, trainer.source)):
        return True
    if not quiet:
        trainer.watcher.say("reading the names of features")
    try:
        if not trainer.stopper.unless_asked(lambda: reading.name(trainer.model)):
            return False
    except DataError as error:
        raise DataError(f"{error} ({saving.without_names(path)})") from error
    trainer.model.save(path, state=state)
    return True


def _write(trainer: Trainer[Model], outcome: Outcome, curve: Path | None, plot: Path | None) -> None:
    """Write the table and the picture, where they are wanted."""
    if curve is not None:
        from thresher.cli.watching import write_curve

        write_curve(curve, outcome.table)
    if plot is not None:
        from thresher.learning import pictures

        stages, loss = pictures.stages_of_table(outcome.table), trainer.model.recipe.loss
        pictures.write(plot, pictures.learning(stages, str(loss), outcome.holdout))


def _tell(
    trainer: Trainer[Model],
    outcome: Outcome,
    learner: Learner,
    files: tuple[Path, Path | None, Path | None],
    as_json: bool,
) -> None:
    from thresher.cli.output import in_json, show_result, tell_skipped, tell_warnings, tell_weightless
    from thresher.learning.figures import of_first_pass

    path, curve, plot = files
    with saving.saved_before(path):
        _write(trainer, outcome, curve, plot)
    for report in outcome.reports:
        tell_skipped(report)
    tell_weightless(outcome.weightless, outcome.examples)
    tell_warnings(outcome.warnings)
    waiting = trainer.model.features_waiting
    figures: dict[str, Any] = {
        "examples": outcome.examples,
        "passes": outcome.passes,
        "progressive_loss": outcome.progressive_loss,
        "nonzero": outcome.nonzero,
        "features_seen": outcome.features_seen,
        **({} if waiting is None else {"features_waiting": waiting}),
        **({} if trainer.model.names is None else {"named": len(trainer.model.names)}),
        "seconds": round(outcome.seconds, 3),
        **({"seconds_compiling": round(outcome.compiling, 3)} if outcome.compiling else {}),
        "examples_per_second": round(outcome.examples_per_second),
        "skipped": outcome.skipped,
        **({"importance_0": outcome.weightless} if outcome.weightless else {}),
        **learner.figures(trainer.model),
        "model": str(path),
    }
    figures |= {f"holdout_{name}": value for name, value in (outcome.holdout or {}).items()}
    if as_json:
        figures["warnings"] = in_json(outcome.warnings)
    else:
        figures["progressive_loss"] = of_first_pass(outcome.progressive_loss, outcome.passes > 1)
    show_result(figures, as_json, path)
