"""``thresher cv``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli import options, saving
from thresher.cli import train_options as t
from thresher.cli.commandline import passes_said, train_command
from thresher.cli.decorators import reads_elsewhere, takes
from thresher.cli.errors import UsageError, check_strictly
from thresher.cli.lanes_options import (
    AUTO,
    BEST,
    Penalties,
    check_varied,
    choice,
    chosen_of,
    compile_penalties_ahead,
    recipes_of,
)
from thresher.cli.model_flags import ModelFlags, new_recipe
from thresher.cli.overwriting import check_model
from thresher.cli.reading import Reading, passes_asked, run, sources_of, with_classes

if TYPE_CHECKING:
    from thresher.lanes.folds import Folds, Split
    from thresher.lanes.validation import CrossValidation
    from thresher.learning.recipe import Recipe
    from thresher.learning.training import Outcome, Trainer

SHORT = "Cross-validate many penalties in one reading, and choose one."


def _check_folds(text: str) -> str:
    from thresher.lanes.folds import Split

    try:
        return str(Split.of(text).shown)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


Count = Annotated[
    str,
    typer.Option(
        "--folds",
        metavar="K|forward:K",
        callback=_check_folds,
        help="Of every K rows, one is in each fold, drawn with --seed, and is evaluated by a model that did "
        "not learn it. forward:K, for rows in the order of time, cuts them into K + 1 blocks: each but the "
        "first is evaluated by a model of all rows before it.",
    ),
]
ModelFile = Annotated[
    Path | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Where to write the model of all rows with the chosen penalty.  [default: nowhere; the"
        " command that trains it is printed]",
    ),
]
Choice = Annotated[str, choice(BEST)]


@reads_elsewhere
@takes(flags=ModelFlags, table=options.Table)
def command(
    data: options.Data,
    folds: Count = "10",
    model: ModelFile = None,
    flags: Any = None,
    l1: Penalties = None,
    choose: Choice = BEST,
    passes: t.PassesAtOnce = None,
    replay: t.Replay = None,
    order: t.Order = None,
    table: options.Table = options.NO_TABLE,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
    cache: t.Cache = True,
    quiet: t.Quiet = False,
    strict: t.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Evaluate penalties by cross-validation: one reading trains all folds, a second one evaluates them.

    A rule with a fixed penalty, or with none, is evaluated as it is. A run that is interrupted in its first
    pass saves nothing.
    """
    from thresher.data.sources.pieces import prepare_readers

    split, started = _split(folds, order, table), time.perf_counter()
    reading = Reading(data, None, table, on_error, threads, cache, order, False, None)
    trainer, penalty = _trainer(reading, (passes, replay), flags, l1, split, model, quiet)
    started += prepare_readers()
    outcome = run(trainer)
    found = _judged(trainer, penalty, choose, quiet)
    number, which = chosen_of(found.points, choose, trainer.watcher.say)
    summary: dict[str, Any] = {"chosen": number, "choice": which, "penalty": penalty, "folds": split.shown}
    more = _said(trainer, outcome, order, on_error)
    same = train_command(data, model, found.points[number].spec, flags, table, **more)
    summary |= _use(found, number, which, as_json, trainer.watcher.say) | {"command": same}
    summary["seconds"] = round(time.perf_counter() - started, 3)
    if model is None:
        _tell(outcome, found, summary, None, as_json, quiet, strict)
    else:
        with saving.unbroken(model):
            (final := found.model(which)).save(model)
            summary |= {"nonzero": final.nonzero, "model": str(model)}
            _tell(outcome, found, summary, model, as_json, quiet, strict)
    saving.tell_interrupted(trainer.cut_short, model)


def _said(trainer: Trainer[Folds], outcome: Outcome, order: str | None, on_error: str) -> dict[str, Any]:
    """Further options of the command that trains a model of all rows."""
    passes = passes_said(outcome.passes, trainer.model.recipe)
    return {"passes": passes, "order": order, "on_error": None if on_error == "fail" else on_error}


def _split(folds: str, order: str | None, table: options.Table) -> Split:
    """How rows are split into folds. DataError for options that do not go with that."""
    from thresher.lanes.folds import Split

    return Split.of(folds).checked(order or "as-is", table.group)


def _judged(trainer: Trainer[Folds], penalty: str | None, which: str, quiet: bool) -> CrossValidation:
    """Evaluate the folds, and further penalties if `which` is a budget of weights that lies between two."""
    from thresher.lanes.budget import between, reading_again
    from thresher.lanes.validation import judged_by

    found = judged_by(trainer, penalty)
    if (penalties := between(found.points, which)) and not quiet:
        trainer.watcher.say(reading_again(penalties))
    found.fill(which)
    return found


def _use(
    found: CrossValidation, number: int, which: str, as_json: bool, say: Callable[[str], None]
) -> dict[str, Any]:
    """The use of a budget of weights, if there is one."""
    from thresher.lanes.budget import sentence, use_of

    use = use_of(found.points, number, which)
    if use and found.folds.whole is None:
        say(
            "weights are means over the folds, and a model of all rows has more: give --model to choose by "
            "its own"
        )
    return {"budget": use if as_json else sentence(use)} if use else {}


def _trainer(
    reading: Reading,
    asked: tuple[str | None, str | None],
    flags: ModelFlags,
    l1: str | None,
    split: Split,
    model: Path | None,
    quiet: bool,
) -> tuple[Trainer[Folds], str | None]:
    """The trainer of the folds, and the name of the penalty that is varied."""
    from thresher.cli.watching import say_unless, watcher
    from thresher.engine import notices
    from thresher.lanes.folds import Folds, check_size
    from thresher.lanes.penalties import Range, penalty_name
    from thresher.lanes.validation import check_order, counted
    from thresher.learning.ahead import Ahead
    from thresher.learning.training import Plan

    made, kept = passes_asked(asked[0] or "auto", asked[1])
    plan = Plan(made, None, folds=True, replay=kept)
    check_model(model, [options.quarantine_of(reading.on_error)], reading.data)
    watching = watcher(quiet)
    notices.when_compiling(None if quiet else watching.say)
    layout, wanted = with_classes(flags, reading, reading.table.layout(), say_unless(quiet, watching))
    base = new_recipe(wanted)
    varied = _is_varied(flags.rule, base, l1)
    ahead = compile_penalties_ahead(base, True) if varied else Ahead()
    order = reading.order_of(None, base.seed)
    source, _ = sources_of(reading, layout, base.head().domain, [model], plan.passes + 1)
    base = replace(base, layout=source.layout)
    try:
        check_order(order, plan.passes)
        check_size(base, split.count, Range(l1 or AUTO).count if varied else 1, model is not None)
    except ValueError as error:
        raise UsageError(str(error)) from error
    recipes = recipes_of(base, l1 or AUTO, reading, source, order, ahead.wait) if varied else [base]
    folds = Folds(recipes, split.count, forward=split.forward, whole=model is not None, say=watching.say)
    beside: Any = {"watcher": watching, "ready": ahead.wait}
    more = 1 + split.forward
    trainer = reading.trainer(folds, source, None, plan, order, more, **beside)
    return counted(trainer), penalty_name(base.rule) if varied else None


def _is_varied(rule: str | None, base: Recipe, l1: str | None) -> bool:
    """Whether to vary the penalty; UsageError if a range is given and the rule cannot use it."""
    from thresher.lanes.penalties import leaves_penalty_open

    if l1 is not None:
        check_varied(rule or "", l1, base)
        return True
    return leaves_penalty_open(rule or type(base).rule)


def _tell(
    outcome: Outcome,
    found: CrossValidation,
    summary: dict[str, Any],
    model: Path | None,
    as_json: bool,
    quiet: bool,
    strict: bool,
) -> None:
    from thresher.cli.output import (
        in_json,
        show_figures,
        show_result,
        tell_skipped,
        tell_warnings,
        tell_weightless,
    )
    from thresher.lanes import table

    outcome.warnings += found.folds.troubles()
    tell_skipped(outcome.reports[0])
    tell_weightless(outcome.weightless, outcome.examples)
    tell_warnings(outcome.warnings)
    figures = {"folds": summary["folds"], "examples": outcome.examples, "passes": outcome.passes}
    figures["seconds"] = summary["seconds"]
    figures |= {"seconds_compiling": round(outcome.compiling, 3)} if outcome.compiling else {}
    figures["skipped"] = outcome.skipped
    figures |= {name: summary[name] for name in ("budget", "nonzero", "model", "command") if name in summary}
    if as_json:
        lanes = [point.as_dict(found.penalty) for point in found.points]
        figures = {"lanes": lanes, **summary, **figures, "warnings": in_json(outcome.warnings)}
    elif not quiet:
        typer.echo("\n".join(table.of_estimates(found.points, found.penalty, summary["chosen"])))
    if model is None:
        show_figures(figures, as_json)
    else:
        show_result(figures, as_json, model)
    check_strictly(outcome.warnings, strict, model)
