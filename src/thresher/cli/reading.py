"""What a command that learns reads: the data, the hold-out, and the classes found in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from thresher.cli import options
from thresher.cli.errors import UsageError
from thresher.cli.model_flags import ModelFlags, new_recipe, options_of
from thresher.cli.overwriting import check_curve

if TYPE_CHECKING:
    from thresher.cli.learners import Learner
    from thresher.cli.watching import Quiet
    from thresher.data.labels import Domain
    from thresher.data.layout import AnyLayout
    from thresher.data.order import Order
    from thresher.learning.model import Model
    from thresher.learning.readout import Readout
    from thresher.learning.shares import Part
    from thresher.learning.trained import Trained
    from thresher.learning.training import Outcome, Plan, Trainer
    from thresher.learning.training_state import TrainingState

M = TypeVar("M", bound="Trained")


@dataclass(frozen=True)
class Reading:
    """What to read, and how."""

    data: list[str]
    holdout: str | None
    table: options.Table
    on_error: str
    threads: int | None
    cache: bool
    order: str | None
    names: bool
    init: Path | None
    marked: str = ""
    """the condition that held-out rows meet, if that is how they are chosen"""

    @property
    def lenient(self) -> str:
        """What to do about bad lines in readings other than training: never quarantine a line twice."""
        return "fail" if self.on_error == "fail" else "skip"

    def again(self, layout: AnyLayout | None, domain: Domain | str) -> Any:
        """The data, to read before or after training; bad lines are reported only in training."""
        from thresher.data import open_source

        return open_source(
            self.data,
            layout=layout,
            domain=domain,
            on_error=self.lenient,
            threads=self.threads,
            where=self.table.where,
        )

    def order_of(self, stopped: TrainingState | None, seed: int) -> Order:
        """The order of the rows; when resuming, it must be the order of the checkpoint."""
        from thresher.data.order import make_order

        before = stopped.order if stopped else None
        if before and self.order not in (None, before):
            raise UsageError(f"the checkpoint was made with --order {before}; leave --order out")
        return make_order(self.order or before or "as-is", seed)

    def initial_weights(self) -> Readout | None:
        """The weights to start from (`--init`), or None."""
        if not self.init:
            return None
        from thresher.learning.api import load

        return load(self.init)

    def layout(self, before: Model | None, initial: Readout | None) -> AnyLayout:
        """How to read the data: like the checkpoint, or like the data of the weights to start from."""
        if before is not None:
            return self.table.layout(before.layout)
        return self.table.for_warm_start(initial.layout if initial else None)

    def check_nameable(self, source: Any, store: str) -> None:
        """UsageError or DataError if `--names` is given and names cannot be found."""
        if self.names:
            from thresher.learning.feature_names import check_nameable

            check_nameable(store)
            if not source.rereadable:
                raise UsageError(
                    "--names reads the data again, but a stream can be read only once: use thresher "
                    "name afterwards"
                )

    def trainer(
        self, model: M, source: Any, held: Any, plan: Plan, order: Order, more: int = 0, **beside: Any
    ) -> Trainer[M]:
        """A trainer of the model on the source, with signal handling; `more` counts further readings."""
        from thresher.cli.saving import make_stopper
        from thresher.data.formats.tables.heads import columns_seen
        from thresher.learning.passes import Passes
        from thresher.learning.training import Trainer

        reads = Passes(source, order.reads(plan.passes + more), cached=self.cache)
        beside["columns"] = columns_seen(source)
        beside["watcher"].show_classes(model.head, source.layout.classes)
        beside |= {"reread": reads.later, "order": order, "holdout": held, "stopper": make_stopper()}
        return Trainer(model, reads.first, plan, **beside)

    def follows(self, model: Any, source: Any) -> bool:
        """Whether the model has names of the weights it started from, and these data can be read again."""
        return bool(getattr(model, "names", None)) and source.rereadable

    def unnamed(self, model: Any, source: Any) -> list[Any]:
        """Trouble with features without names, if the model has names and the data cannot be read again."""
        from thresher.learning.feature_names import names_follow

        has_names = bool(getattr(model, "names", None))
        return names_follow(model, source) if has_names and not source.rereadable else []

    def name(self, model: Model) -> None:
        """Find and keep the names of features."""
        from thresher.learning.feature_names import name_features

        name_features(model, self.data, on_error=self.lenient)


def check_files(
    learner: Learner,
    model: Path,
    beside: list[Path | None],
    on_error: str,
    inputs: list[str],
    init: Path | None,
    resume: bool,
) -> None:
    """Check that outputs are writable, and that only the model may overwrite `init`; UsageError, OSError.

    The first output beside the model is the curve.
    """
    beside = [*beside, options.quarantine_of(on_error)]
    learner.check_target(model, beside, inputs)
    if init is not None:
        _check_init(beside, init, resume)
    check_curve(beside[0])


def _check_init(beside: list[Path | None], init: Path, resume: bool) -> None:
    if resume:
        raise UsageError("--init starts a new training, --resume continues one: give only one of them")
    if init == Path():
        raise UsageError("--init: name the file of a model")
    options.check_outputs(beside, [init])


def with_initial_weights(model: Model, weights: Readout | None) -> Model:
    """The model, with the weights to start from."""
    from thresher.learning.warmstart import start_from

    if weights is not None:
        try:
            start_from(model, weights)
        except ValueError as error:
            raise UsageError(str(error)) from None
    return model


def held_out(text: str | None, group: str | None, early_stop: int | None = None) -> tuple[Part, str | None]:
    """``every-10th`` and ``0.1`` as (10, None); a file as (0, file)."""
    from thresher.learning.shares import check_ungrouped, part_of

    if early_stop and not text:
        raise UsageError("--early-stop needs --holdout")
    try:
        part = part_of(text)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    if part is None:
        return 0, text
    check_ungrouped(part, group)
    return part, None


def passes_asked(passes: int | str | None, replay: str | None) -> tuple[int, int]:
    """The fields `passes` and `replay` of a plan. `passes` is a number or ``auto``; default 1. UsageError."""
    from thresher.learning.repeating import AUTO, REPLAY, agreed_passes

    number = passes if passes == AUTO else int(passes or 1)
    try:
        return agreed_passes(number, REPLAY if replay is None else replay)
    except ValueError as error:
        raise UsageError(f"--{error}") from error


def planned(
    passes: int | str | None,
    replay: str | None,
    report_every: int | None,
    holdout: str | None,
    early_stop: int | None,
    spare: Path,
    checkpoint_every: int | None,
    group: str | None,
) -> tuple[Plan, str | None]:
    """The training plan and the hold-out file, if any. `passes` is a number or ``auto``; default 1."""
    from thresher.learning.training import Plan

    part, held = held_out(holdout, group, early_stop)
    made, kept = passes_asked(passes, replay)
    saving = spare, checkpoint_every or 0
    return Plan(made, report_every, part, early_stop or 0, *saving, replay=kept), held


def with_classes(
    flags: ModelFlags,
    reading: Reading,
    layout: AnyLayout,
    say: Callable[[str], None],
    initial: Readout | None = None,
) -> tuple[AnyLayout, dict[str, Any]]:
    """The layout of the data and the model's options; classes left open are found by reading the data.

    Calls `say` with the words found. UsageError if they do not fit the options.
    """
    from thresher.data.errors import DataError
    from thresher.data.files.paths import reads_once
    from thresher.learning.classes import look
    from thresher.learning.head import leaves_classes_open
    from thresher.learning.recipe import with_gaps, without_means

    wanted = without_means(options_of(flags), initial)
    streams = reads_once(reading.data)
    loss, outputs = wanted.get("loss"), wanted.get("outputs")
    if streams and not layout.classes and leaves_classes_open(loss or "logistic", outputs):
        raise UsageError(
            "standard input can be read only once: give the classes, --outputs classes:LO-HI or "
            "--classes A,B,..."
        )
    try:
        found = look(None if streams else reading.again, layout, loss, outputs)
    except DataError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error
    if found.note:
        say(found.note)
    wanted |= {"loss": found.loss, "outputs": found.outputs}
    return with_gaps(found.layout, new_recipe(wanted).centre), wanted


def sources_of(
    reading: Reading, layout: AnyLayout, domain: Domain | str, outputs: list[Path | None], passes: int
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
        marked=reading.marked,
    )
    held = None
    if reading.holdout is not None:
        held = open_source(
            reading.holdout,
            layout=source.layout.ungrouped(),
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


def agreed(
    plan: Plan, passes: int | str | None, before: TrainingState | None, replay: str | None = None
) -> Plan:
    """The plan, with options not given taken from the checkpoint; passes ``auto`` are those of it."""
    from thresher.learning.repeating import AUTO, bytes_of

    if before is None:
        return plan
    under_way, number = before.position.number, None if passes in (None, AUTO) else int(passes or 1)
    if number is not None and number < under_way:
        raise UsageError(f"the checkpoint is in pass {under_way}: --passes must be at least that")
    if replay is not None and before.replay and bytes_of(replay) != before.replay:
        raise UsageError(f"the checkpoint was made with --replay {before.replay}; leave --replay out")
    kept = before.replay if number is None or under_way > 1 else 0  # places in a replay are those of its rows
    made = number or (1 if kept else before.passes)
    return replace(plan, passes=made, replay=kept, patience=plan.patience or before.patience)


def look_at(spare: Path, watching: Quiet) -> None:
    """Report an old checkpoint at this path; UsageError if the file there is not a checkpoint.

    Unfinished checkpoints of killed runs are removed.
    """
    from thresher.learning.modelfile import looks_like_ours
    from thresher.learning.wholefile import clear_abandoned

    clear_abandoned(spare)
    ours = looks_like_ours(spare)
    if spare.is_symlink() or ours is False:
        raise UsageError(
            f"{spare} is not a checkpoint, but checkpoints would be written there: move or rename it"
        )
    if ours:
        watching.say(f"{spare} is left from an earlier run and not used; --resume continues from it")


def run(trainer: Trainer[M]) -> Outcome:
    """Train; remove the progress bar even if training fails."""
    watching: Quiet = trainer.watcher  # type: ignore[assignment]
    try:
        return trainer.run()
    finally:
        watching.close()
