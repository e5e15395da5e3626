"""``thresher path``."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli import options, saving
from thresher.cli import train_options as t
from thresher.cli.asked import Asked
from thresher.cli.errors import UsageError
from thresher.cli.reading import Reading, agreed, held_out, look_at, sources_of, with_classes

if TYPE_CHECKING:
    from thresher.cli.watching import Quiet
    from thresher.lanes.folder import Table
    from thresher.lanes.judging import LanesHoldout
    from thresher.lanes.lanes import Lanes
    from thresher.learning.recipe import Recipe
    from thresher.learning.training import Outcome, Plan, Trainer

NAME = "path"
SHORT = "Learn a model for each of many penalties in one reading, and choose."
_BEST = "best"
_HEADS = {"nonzero": "non-zero"}


def _check_choice(text: str | None) -> str | None:
    from thresher.lanes.frontier import check_choice

    try:
        return text if text is None else check_choice(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _check_range(text: str) -> str:
    from thresher.lanes.penalties import Range

    try:
        Range(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return text


Folder = Annotated[
    Path,
    typer.Option(
        "--model",
        "-m",
        metavar="DIR|MODEL",
        show_default=False,
        help="The folder to write: a table, a picture, a model for each penalty. Or, where DATA is such a"
        " folder, where to write the model that is chosen.",
    ),
]
Penalties = Annotated[
    str,
    typer.Option(
        "--l1",
        metavar="LO:HI:N|auto:N",
        callback=_check_range,
        help="Penalties: N at even ratios, between two or in a range found by the first 4,096 rows. Of a rule"
        " without an l1 they are its own.",
    ),
]
Choice = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        callback=_check_choice,
        help="best, the least loss; 1se, the sparsest within a standard error of it; within:P%, the sparsest"
        " that loses at most so much of it; nnz:N, the best with at most N weights.  [default: best]",
    ),
]
Holdout = Annotated[
    str,
    typer.Option(
        metavar="FILE|every-Nth|none",
        help="What to choose by: a file, or every Nth example, which is then not learned from; or none: by"
        " the progressive loss.",
    ),
]


@options.takes(asked=Asked, table=options.Table)
def command(
    data: options.Data,
    model: Folder,
    asked: Any = None,
    l1: Penalties = "auto:16",
    choose: Choice = None,
    passes: t.Passes = None,
    order: t.Order = None,
    holdout: Holdout = "every-10th",
    early_stop: t.EarlyStop = None,
    checkpoint_every: t.CheckpointEvery = None,
    resume: t.Resume = False,
    table: options.Table = options.NO_TABLE,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
    cache: t.Cache = True,
    quiet: t.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Learn a model for each of many penalties, from one reading, and show what each costs and saves.

    Given the folder of such a run as DATA, take another model out of it.
    """
    from thresher.lanes import folder
    from thresher.learning.training import Plan

    if len(data) == 1 and folder.is_frontier(Path(data[0])):
        _take(Path(data[0]), choose, model, as_json)
        return
    folder.check_folder(model)
    spare = Path(f"{model}.checkpoint")
    options.check_outputs([spare, options.quarantine_of(on_error)], [])
    every, held = held_out(None if holdout == "none" else holdout, early_stop)
    plan = Plan(passes or 1, None, every, early_stop or 0, spare, checkpoint_every or 0)
    reading = Reading(data, held, table, on_error, threads, cache, order, False, None)
    trainer, judging = _trainer(plan, passes, asked, reading, l1, resume, quiet)
    trainer.stopper.listen()
    try:
        outcome = _run(trainer)
        with saving.signals_wait(model, trainer.stopper):
            found = _save(trainer, judging, model, choose or _BEST)
            _tell(outcome, found, model, as_json)
    finally:
        trainer.stopper.close()


def _take(source: Path, choose: str | None, target: Path, as_json: bool) -> None:
    """Copy the model of a point of a frontier; the one chosen then if nothing is said."""
    from thresher.cli.output import show_result
    from thresher.lanes import folder
    from thresher.lanes.frontier import choose as chosen

    found = folder.load(source)
    options.check_outputs([target], [*source.iterdir()])
    try:
        number = found.chosen if choose is None else chosen(found.points, choose)
    except ValueError as error:
        raise UsageError(str(error)) from error
    with saving.unbroken(target):
        folder.take(source, number, target)
    point = found.points[number].as_dict(found.penalty)
    shown = {k: v for k, v in point.items() if k != "dropped"}
    show_result({**shown, "model": str(target)}, as_json, target)


def _trainer(
    plan: Plan, passes: int | None, asked: Asked, reading: Reading, l1: str, resume: bool, quiet: bool
) -> tuple[Trainer[Lanes], LanesHoldout]:
    from thresher.cli.watching import watcher
    from thresher.engine import notices
    from thresher.lanes import checkpoint
    from thresher.lanes.judging import LanesHoldout
    from thresher.lanes.lanes import Lanes
    from thresher.learning import modelfile

    watching = watcher(quiet)
    notices.when_compiling(None if quiet else lambda: watching.say(notices.COMPILING))
    spare = plan.checkpoint
    assert spare is not None
    base = _recipe(with_classes(asked, reading, reading.table.layout()))
    loaded = checkpoint.load(spare) if resume else None
    plan = agreed(plan, passes, loaded[1] if loaded else None)
    if loaded is None:
        look_at(spare, watching)
    layout = reading.table.layout(loaded[0].layout if loaded else None)
    source, held = sources_of(reading, layout, base.head().domain, [spare], plan.passes)
    order = reading.order_of(loaded[1] if loaded else None, base.seed)
    if loaded:
        lanes = loaded[0]
        _check_same(lanes, base)
    else:
        lanes = Lanes(_recipes(base, l1, reading, source), watching.say)
    judging = loaded[2] if loaded else LanesHoldout()
    judging.begin(plan.holdout_every, held)
    lanes.layout = source.layout
    beside: Any = {"watcher": watching, "judging": lambda every, given: judging}
    save = partial(checkpoint.save, holdout=judging)
    trainer = reading.trainer(lanes, source, held, plan, order, save=save, **beside)
    if loaded is not None:
        with modelfile.naming_file(spare):
            trainer.go_on(loaded[1])
    return trainer, judging


def _recipe(wanted: dict[str, Any]) -> Recipe:
    from thresher.learning.recipe import Recipe

    try:
        return Recipe(**wanted)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _recipes(base: Recipe, l1: str, reading: Reading, source: Any) -> list[Recipe]:
    """One for each penalty; UsageError where a range cannot be found, or the rule has none."""
    from dataclasses import replace

    from thresher.lanes.penalties import Range, penalty_name, with_penalty

    wanted = Range(l1)
    try:
        penalty_name(base.rule)
        if wanted.values:
            return [with_penalty(base, value) for value in wanted.values]
        if not source.rereadable:
            raise UsageError("a stream is read once only: say the range of penalties, --l1 LO:HI:N")
        values = wanted.found_in(_again(reading, base, source), replace(base, layout=source.layout))
    except ValueError as error:
        raise UsageError(str(error)) from error
    return [with_penalty(base, value) for value in values]


def _again(reading: Reading, base: Recipe, source: Any) -> Any:
    """The data, to look at their beginning; bad lines are told of when they are learned from."""
    from thresher.data import open_source

    return open_source(
        reading.data,
        layout=source.layout,
        domain=base.head().domain,
        on_error=reading.lenient,
        threads=1,
        where=reading.table.where,
    )


def _check_same(lanes: Lanes, base: Recipe) -> None:
    """UsageError where options say something else than the recipes of a checkpoint."""
    from thresher.lanes.penalties import penalty_in, penalty_name, with_penalty

    before = lanes.models[0].recipe
    if penalty_name(before.rule) != penalty_name(base.rule):
        raise UsageError(f"the checkpoint was made with --rule {before.rule}")
    now = with_penalty(base, penalty_in(lanes.models[0].rule))
    for field in fields(now):
        then = getattr(before, field.name)
        if field.name != "layout" and getattr(now, field.name) != then:
            raise UsageError(f"the checkpoint was made with {field.name} {then}: give the same options")


def _run(trainer: Trainer[Lanes]) -> Outcome:
    watching: Quiet = trainer.watcher  # type: ignore[assignment]
    try:
        return trainer.run()
    finally:
        watching.close()


def _save(trainer: Trainer[Lanes], judging: LanesHoldout, path: Path, choice: str) -> Table:
    from thresher.lanes import folder
    from thresher.lanes.frontier import choose, points_of
    from thresher.lanes.penalties import penalty_name
    from thresher.learning.wholefile import discard

    points = points_of(trainer.model, judging)
    try:
        number = choose(points, choice)
    except ValueError as error:
        trainer.watcher.say(f"{error}: the best is chosen")
        choice = _BEST
        number = choose(points, choice)
    found = folder.Table(penalty_name(trainer.model.models[0].rule), points, number, choice)
    folder.save(path, found, trainer.model)
    if trainer.plan.checkpoint is not None and trainer.owns_checkpoint:
        discard(trainer.plan.checkpoint)
    return found


def _tell(outcome: Outcome, found: Table, path: Path, as_json: bool) -> None:
    from thresher.cli.output import show_result, tell_skipped
    from thresher.lanes.folder import PICTURE

    for report in outcome.reports:
        tell_skipped(report)
    figures: dict[str, Any] = {
        "examples": outcome.examples,
        "passes": outcome.passes,
        "features_seen": outcome.features_seen,
        "seconds": round(outcome.seconds, 3),
        "skipped": outcome.skipped,
    }
    if as_json:
        show_result({**found.as_dict(), **figures, "model": str(path)}, True, path)
        return
    for line in table_of(found):
        typer.echo(line)
    figures |= {"picture": str(path / PICTURE), "models": str(path)}
    show_result(figures, False, path)


def table_of(found: Table) -> list[str]:
    """The frontier for people: a line for each penalty, a star at the one chosen."""
    from thresher.cli.output import shown

    told = [point.as_dict(found.penalty) for point in found.points]
    figures = dict.fromkeys(key for one in told for key in one if key.startswith("holdout_"))
    keys = [found.penalty, "nonzero", "progressive_loss", *figures]
    keys = [key for key in keys if key != "holdout_examples"]
    heads = [_HEADS.get(key, key.replace("holdout_", "held-out ")).replace("_", " ") for key in keys]
    widths = [max(len(head), 10) for head in heads]
    lines = ["  " + "  ".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))]
    for k, one in enumerate(told):
        cells = (f"{shown(one.get(key)):>{width}}" for key, width in zip(keys, widths, strict=True))
        why = f"  ({one['dropped']})" if one["dropped"] else ""
        lines.append(("* " if k == found.chosen else "  ") + "  ".join(cells) + why)
    return lines
