"""``thresher path``."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli import options, saving
from thresher.cli import train_options as t
from thresher.cli.asked import Asked, new_recipe
from thresher.cli.errors import UsageError
from thresher.cli.reading import Reading, agreed, held_out, look_at, run, sources_of, with_classes

if TYPE_CHECKING:
    from thresher.lanes.folder import Table
    from thresher.lanes.judging import LanesHoldout
    from thresher.lanes.lanes import Lanes
    from thresher.learning.recipe import Recipe
    from thresher.learning.training import Outcome, Plan, Trainer

NAME = "path"
SHORT = "Learn a model for each of many penalties in one reading, and choose."
_BEST, _AUTO = "best", "auto:16"
_HEADS = {"nonzero": "non-zero"}


def _check_choice(text: str | None) -> str | None:
    from thresher.lanes.frontier import check_choice

    try:
        return text if text is None else check_choice(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _check_range(text: str | None) -> str | None:
    from thresher.lanes.penalties import Range

    try:
        Range(text or _AUTO)
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
    str | None,
    typer.Option(
        "--l1",
        metavar="LO:HI:N|auto:N",
        callback=_check_range,
        help="Penalties: N at even ratios, between two or in a range found by the first 4,096 rows. Of a rule"
        " without an l1 they are its own.  [default: auto:16]",
    ),
]
Choice = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        callback=_check_choice,
        help="best, the least loss; 1se, the sparsest within a standard error of it; within:P%, the sparsest"
        " that loses at most so much of it; nnz:N, the best with at most N weights.  [default: best; out of a"
        " folder, what was chosen when it was written]",
    ),
]
Holdout = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|every-Nth|none",
        help="What to choose by: a file, or every Nth example, which is then not learned from; or none: by"
        " the progressive loss.  [default: every-10th]",
    ),
]


@options.takes(asked=Asked, table=options.Table)
def command(
    data: options.Data,
    model: Folder,
    asked: Any = None,
    l1: Penalties = None,
    choose: Choice = None,
    passes: t.Passes = None,
    order: t.Order = None,
    holdout: Holdout = None,
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

    of_training = (asked != Asked(), l1, passes, order, holdout, early_stop, checkpoint_every, resume)
    if len(data) == 1 and _is_frontier(Path(data[0]), any(of_training) or table != options.NO_TABLE):
        _take(Path(data[0]), choose, model, as_json)
        return
    folder.check_folder(model)
    spare = Path(f"{model}.checkpoint")
    options.check_outputs([spare, options.quarantine_of(on_error)], [])
    every, held = held_out(None if holdout == "none" else holdout or "every-10th", early_stop)
    plan = Plan(passes or 1, None, every, early_stop or 0, spare, checkpoint_every or 0)
    reading = Reading(data, held, table, on_error, threads, cache, order, False, None)
    trainer, judging = _trainer(plan, passes, asked, reading, l1, resume, quiet)
    _learn(trainer, judging, model, choose or _BEST, as_json)


def _learn(trainer: Trainer[Lanes], judging: LanesHoldout, path: Path, choice: str, as_json: bool) -> None:
    """Train, save, tell."""
    trainer.stopper.listen()
    try:
        outcome = run(trainer)
        with saving.signals_wait(path, trainer.stopper):
            _tell(outcome, _save(trainer, judging, path, choice), path, as_json)
    finally:
        trainer.stopper.close()


def _is_frontier(source: Path, more: bool) -> bool:
    """Whether DATA is a folder to take a model from; UsageError if `more` is said, or it is not finished."""
    from thresher.lanes import folder

    if not source.exists() and Path(f"{source}.checkpoint").exists():
        raise UsageError(f"{source} is not finished: go on with its own options and --resume")
    if folder.is_frontier(source) and more:
        raise UsageError(f"{source} is a folder of models that have learned: only --choose goes with it")
    return folder.is_frontier(source)


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
    plan: Plan, passes: int | None, asked: Asked, reading: Reading, l1: str | None, resume: bool, quiet: bool
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
    base = new_recipe(with_classes(asked, reading, reading.table.layout()))
    _check_varied(asked.rule or "", base)
    loaded = checkpoint.load(spare) if resume else None
    plan = agreed(plan, passes, loaded[1] if loaded else None)
    if loaded is None:
        look_at(spare, watching)
    layout = reading.table.layout(loaded[0].layout if loaded else None)
    source, held = sources_of(reading, layout, base.head().domain, [spare], plan.passes)
    order = reading.order_of(loaded[1] if loaded else None, base.seed)
    if loaded:
        lanes = loaded[0]
        _check_same(lanes, base, l1)
    else:
        lanes = Lanes(_recipes(base, l1 or _AUTO, reading, source), watching.say)
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


def _recipes(base: Recipe, l1: str, reading: Reading, source: Any) -> list[Recipe]:
    """One for each penalty; UsageError where a range cannot be found, or the rule has none."""
    from dataclasses import replace

    from thresher.lanes.penalties import Range, with_penalty

    wanted = Range(l1)
    try:
        if wanted.values:
            return [with_penalty(base, value) for value in wanted.values]
        if not source.rereadable:
            raise UsageError("a stream is read once only: say the range of penalties, --l1 LO:HI:N")
        again = reading.again(source.layout, base.head().domain)
        values = wanted.found_in(again, replace(base, layout=source.layout))
    except ValueError as error:
        raise UsageError(str(error)) from error
    return [with_penalty(base, value) for value in values]


def _check_varied(rule: str, base: Recipe) -> None:
    """UsageError for a rule that says the penalty which is to be varied, or has none."""
    from thresher.lanes.penalties import penalty_name

    try:
        name = penalty_name(base.rule)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if any(field.strip().startswith(f"{name}=") for field in rule.partition(":")[2].split(",")):
        raise UsageError(f"--rule {rule}: {name} is what the models differ in; say its range, --l1 LO:HI:N")


def _check_same(lanes: Lanes, base: Recipe, l1: str | None) -> None:
    """UsageError where options say something else than the recipes of a checkpoint."""
    from thresher.lanes.penalties import Range, penalty_in, penalty_name, with_penalty

    had = [penalty_in(model.rule) for model in lanes.models]
    wanted = Range(l1 or _AUTO)
    if (wanted.values and wanted.values != had) or (l1 and wanted.count != len(had)):
        raise UsageError(
            f"the checkpoint has {len(had)} penalties from {had[0]:g} to {had[-1]:g}; leave --l1 out"
        )
    before = lanes.models[0].recipe
    if penalty_name(before.rule) != penalty_name(base.rule):
        raise UsageError(f"the checkpoint was made with --rule {before.rule}")
    now = with_penalty(base, penalty_in(lanes.models[0].rule))
    for field in fields(now):
        then = getattr(before, field.name)
        if field.name != "layout" and getattr(now, field.name) != then:
            raise UsageError(f"the checkpoint was made with {field.name} {then}: give the same options")


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
    if number in (0, len(points) - 1):
        end = "strongest" if number else "weakest"
        trainer.watcher.say(
            f"the {end} penalty of all is chosen: a range that goes further may hold a better one"
        )
    found = folder.Table(penalty_name(trainer.model.models[0].rule), points, number, choice)
    folder.save(path, found, trainer.model)
    if trainer.plan.checkpoint is not None and trainer.owns_checkpoint:
        discard(trainer.plan.checkpoint)
    return found


def _tell(outcome: Outcome, found: Table, path: Path, as_json: bool) -> None:
    from thresher.cli.output import show_result, tell_skipped
    from thresher.lanes.folder import PICTURE, model_file

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
    figures |= {"picture": str(path / PICTURE), "chosen": str(path / model_file(found.chosen))}
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
