"""``thresher train``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli import options, saving
from thresher.cli import train_options as t
from thresher.cli.asked import Asked, check_same, new_model, said
from thresher.cli.errors import StoppedAfterSaving, UsageError

if TYPE_CHECKING:
    from thresher.cli.watching import Quiet
    from thresher.data.labels import Domain
    from thresher.data.layout import AnyLayout
    from thresher.data.order import Order
    from thresher.learning.model import Model
    from thresher.learning.standing import Standing
    from thresher.learning.training import Outcome, Plan, Trainer

NAME = "train"
SHORT = "Learn a sparse linear model from a stream."


@dataclass(frozen=True)
class _Reading:
    """What is read, and how."""

    data: list[str]
    holdout: str | None
    table: options.Table
    on_error: str
    threads: int | None
    cache: bool
    order: str | None
    names: bool
    init: Path | None

    @property
    def lenient(self) -> str:
        """What to do about a bad line where it is read beside the training: nothing is set aside again."""
        return "fail" if self.on_error == "fail" else "skip"

    def order_of(self, stopped: Standing | None, seed: int) -> Order:
        """The order of the rows, which after a stop must be that of before."""
        from thresher.data.order import make_order

        before = stopped.order if stopped else None
        if before and self.order not in (None, before):
            raise UsageError(f"the checkpoint was made with --order {before}; leave --order out")
        return make_order(self.order or before or "as-is", seed)

    def goes_on(self, checkpoint: Path) -> Path:
        """The checkpoint; UsageError where training is to begin with a model."""
        if self.init:
            raise UsageError("--init begins a training, --resume goes on with one: give one of them")
        return checkpoint

    def begun(self, model: Model) -> Model:
        """The model, with the weights that training is to begin with."""
        from thresher.learning.api import load
        from thresher.learning.warmstart import start_from

        if not self.init:
            return model
        weights = load(self.init)
        try:
            start_from(model, weights)
        except ValueError as error:
            raise UsageError(str(error)) from None
        return model

    def check_nameable(self, source: Any, store: str) -> None:
        """UsageError, DataError where names are wanted and cannot be had."""
        from thresher.learning.feature_names import check_nameable

        if self.names:
            check_nameable(store)
            if not source.rereadable:
                raise UsageError(
                    "--names reads the data once more, which a stream cannot be: use thresher name afterwards"
                )

    def name(self, model: Model) -> None:
        """Keep the names of features."""
        from thresher.learning.feature_names import name_features

        name_features(model, self.data, on_error=self.lenient)


@options.takes(asked=Asked, table=options.Table)
def command(
    data: options.Data,
    model: t.ModelFile,
    asked: Any = None,
    passes: t.Passes = None,
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
    names: t.Names = False,
    weights_only: t.WeightsOnly = False,
    quiet: t.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Learn a sparse linear model from a stream, and say how well it predicted each example beforehand."""
    from thresher.learning.training import Plan

    spare = Path(f"{model}.checkpoint")
    options.check_outputs([model, curve, spare, options.quarantine_of(on_error)], [])
    every, held = _holdout(holdout, early_stop)
    plan = Plan(passes or 1, report_every or 0, every, early_stop or 0, spare, checkpoint_every or 0)
    reading = _Reading(data, held, table, on_error, threads, cache, order, names, init)
    trainer = _trainer(plan, passes, asked, reading, resume, quiet, model, curve, spare)
    trainer.stopper.listen()
    try:
        outcome = _run(trainer)
        with saving.signals_wait(model, trainer.stopper):
            complete = _save(trainer, reading, model, weights_only, quiet)
            _tell(trainer, outcome, model, curve, as_json)
            if not complete:
                raise StoppedAfterSaving(f"interrupted; {saving.without_names(model)}")
    finally:
        trainer.stopper.close()


def _holdout(text: str | None, early_stop: int | None) -> tuple[int, str | None]:
    """``every-10th`` as (10, None), a file as (0, file)."""
    if early_stop and not text:
        raise UsageError("--early-stop needs --holdout")
    found = re.fullmatch(r"every-(\d+)(st|nd|rd|th)?", text or "")
    if found is None:
        return 0, text
    every = int(found[1])
    if every < 2:
        raise UsageError("--holdout every-Nth: N must be at least 2")
    return every, None


def _trainer(
    plan: Plan,
    passes: int | None,
    asked: Asked,
    reading: _Reading,
    resume: bool,
    quiet: bool,
    *outputs: Path | None,
) -> Trainer:
    from thresher.cli.watching import watcher
    from thresher.engine import notices
    from thresher.learning import checkpoint, modelfile
    from thresher.learning.ahead import compile_ahead
    from thresher.learning.passes import Passes
    from thresher.learning.training import Trainer

    watching = watcher(quiet)
    notices.when_compiling(None if quiet else lambda: watching.say(notices.COMPILING))
    spare = plan.checkpoint
    assert spare is not None
    loaded = checkpoint.load(reading.goes_on(spare)) if resume else None
    plan = _agreed(plan, passes, loaded[1] if loaded else None)
    if loaded is not None:
        check_same(asked, loaded[0].recipe)
    else:
        _look_at(spare, watching)
    model = loaded[0] if loaded else reading.begun(new_model(_with_classes(asked, reading)))
    ahead = compile_ahead(model, reading.holdout is not None or plan.holdout_every > 0)
    order = reading.order_of(loaded[1] if loaded else None, model.recipe.seed)
    layout = reading.table.layout(loaded[0].layout if loaded else None)
    source, held = _sources(reading, layout, model.head.domain, [*outputs], plan.passes)
    model.layout = source.layout
    reading.check_nameable(source, model.store)
    reads = Passes(source, order.reads(plan.passes), cached=reading.cache)
    beside: Any = {"watcher": watching, "stopper": saving.make_stopper(), "ready": ahead.wait}
    trainer = Trainer(model, reads.first, plan, reread=reads.later, order=order, holdout=held, **beside)
    if loaded is not None:
        with modelfile.naming_file(spare):
            trainer.go_on(loaded[1])
    return trainer


def _agreed(plan: Plan, passes: int | None, before: Standing | None) -> Plan:
    """The plan, with what was not said as it was when the checkpoint was made."""
    if before is None:
        return plan
    under_way = before.position.number
    if passes is not None and passes < under_way:
        raise UsageError(f"the checkpoint is in pass {under_way}: --passes must be at least that")
    return replace(plan, passes=passes or before.passes, patience=plan.patience or before.patience)


def _look_at(spare: Path, watching: Quiet) -> None:
    """Say that there is a checkpoint from before; UsageError for anything else of that name."""
    from thresher.learning.modelfile import looks_like_ours

    if spare.is_symlink() or (spare.exists() and not looks_like_ours(spare)):
        raise UsageError(f"{spare} is no checkpoint, but checkpoints would be written there: move it away")
    if spare.exists():
        watching.say(f"{spare} is left from an earlier run and not used; --resume goes on from it")


def _with_classes(asked: Asked, reading: _Reading) -> dict[str, Any]:
    """What was asked for, with the classes found in the data where it leaves them open."""
    from thresher.data import open_source
    from thresher.learning import head

    wanted = said(asked)
    if not head.leaves_classes_open(wanted.get("loss", "logistic"), wanted.get("outputs")):
        return wanted
    if "-" in reading.data:
        raise UsageError("standard input is read once only: say the classes, --outputs classes:LO-HI")
    layout = reading.table.layout(None)
    source = open_source(
        reading.data,
        layout=layout,
        domain="whole",
        on_error=reading.lenient,
        threads=reading.threads,
        where=reading.table.where,
    )
    return wanted | {"outputs": head.classes_of(source)}


def _sources(
    reading: _Reading, layout: AnyLayout | None, domain: Domain, outputs: list[Path | None], passes: int
) -> tuple[Any, Any]:
    """The data, and the hold-out file or None."""
    from thresher.data import open_source

    source = open_source(
        reading.data,
        layout=layout,
        domain=domain,
        on_error=reading.on_error,
        threads=reading.threads,
        where=reading.table.where,
    )
    held = None
    if reading.holdout is not None:
        held = open_source(
            reading.holdout,
            layout=source.layout,
            domain=domain,
            on_error=reading.lenient,
            threads=reading.threads,
        )
        if passes > 1 and not held.rereadable:
            raise UsageError(
                "the hold-out can be read only once, and is evaluated after every pass: give a file"
            )
    names = [*source.names, *(held.names if held else [])]
    if names.count("-") > 1:
        raise UsageError("standard input cannot be both the data and the hold-out")
    options.check_outputs([*outputs, options.quarantine_of(reading.on_error)], names)
    return source, held


def _run(trainer: Trainer) -> Outcome:
    watching: Quiet = trainer.watcher  # type: ignore[assignment]
    try:
        return trainer.run()
    finally:
        watching.close()


def _save(trainer: Trainer, reading: _Reading, path: Path, weights_only: bool, quiet: bool) -> bool:
    """Save the model, and once more with names where they are wanted; False if a signal cut these short."""
    from thresher.data.errors import DataError
    from thresher.learning import modelfile
    from thresher.learning.wholefile import clear_abandoned, discard

    modelfile.save(trainer.model, path, state=not weights_only)
    clear_abandoned(path)
    if trainer.plan.checkpoint is not None and trainer.owns_checkpoint:
        discard(trainer.plan.checkpoint)
    if not reading.names:
        return True
    if not quiet:
        trainer.watcher.say("reading the names of features")
    try:
        if not trainer.stopper.unless_asked(lambda: reading.name(trainer.model)):
            return False
    except DataError as error:
        raise DataError(f"{error} ({saving.without_names(path)})") from error
    modelfile.save(trainer.model, path, state=not weights_only)
    return True


def _tell(trainer: Trainer, outcome: Outcome, path: Path, curve: Path | None, as_json: bool) -> None:
    from thresher.cli.output import show_result, tell_skipped

    if curve is not None:
        from thresher.cli.watching import write_curve

        write_curve(curve, outcome.table)
    for report in outcome.reports:
        tell_skipped(report)
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
        "model": str(path),
    }
    figures |= {f"holdout_{name}": value for name, value in (outcome.holdout or {}).items()}
    show_result(figures, as_json, path)
