"""``thresher tune``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli import options, saving
from thresher.cli import train_options as t
from thresher.cli.commandline import passes_said
from thresher.cli.decorators import reads_elsewhere, takes
from thresher.cli.errors import UsageError, check_strictly
from thresher.cli.model_flags import ModelFlags, new_recipe
from thresher.cli.overwriting import check_model
from thresher.cli.plain_values import Bounds
from thresher.cli.reading import Reading, held_out, passes_asked, sources_of, with_classes

if TYPE_CHECKING:
    from thresher.cli.watching import Quiet
    from thresher.lanes.search import Search
    from thresher.lanes.tuning import Trial
    from thresher.learning.model import Model
    from thresher.learning.shares import Part

SHORT = "Race settings of several rules, and learn the best."
_VARIED = ("rule", "rate", "alpha", "l1")
_OWN = ("rules", "budget", "passes", "replay", "as_json", "quiet", "strict")
"""Options that `train` does not have, that do not change the model, or whose value is another."""

Rules = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...", help="Rules to try: see thresher rules.  [default: ft-ftrl,adagrad-fobos]"
    ),
]
Budget = Annotated[int, typer.Option(metavar="N", help="How many settings to try in all."), Bounds(1, 4096)]
Holdout = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|SHARE|every-Nth|last:SHARE|FILTER",
        help="Data to report on: a file, or a share of the rows (0.2: one of every 5; last:0.1: the last; "
        "'day >= 20': those that meet a condition), which are then not learned.  [default: the last tenth of "
        "the rows, each predicted before it is learned]",
    ),
]


@reads_elsewhere
@takes(hidden=_VARIED, flags=ModelFlags, table=options.Table)
def command(
    context: typer.Context,
    data: options.Data,
    model: t.ModelFile,
    flags: Any = None,
    rules: Rules = None,
    budget: Budget = 64,
    passes: t.PassesAtOnce = None,
    replay: t.Replay = None,
    order: t.Order = None,
    holdout: Holdout = None,
    table: options.Table = options.NO_TABLE,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
    cache: t.Cache = True,
    quiet: t.Quiet = False,
    strict: t.Strict = False,
    as_json: options.Json = False,
) -> None:
    """Race settings of several rules in three readings, train the best, and print the command that trains it.

    The choice is by the loss on rows before they are learned. The report is on other rows.
    """
    from thresher.cli.watching import watcher
    from thresher.learning import modelfile
    from thresher.learning.shares import condition_of

    _check_open(flags)
    every, held = held_out(holdout, table.group)
    check_model(model, [options.quarantine_of(on_error)], data)
    reading = Reading(data, held, table, on_error, threads, cache, order, False, None, condition_of(every))
    watching = watcher(quiet)
    search = _search(reading, flags, every, rules, budget, model, (passes, replay), watching, quiet)
    try:
        search.run()
    finally:
        watching.close()
    trial, found = search.tuner.winner()
    figures = {"report_on": _reported_on(search, holdout), **_under_report(search.report())}
    figures["command"] = _command(context, trial, found)
    with saving.unbroken(model):
        modelfile.save(found, model)
        _tell(search, figures, model, as_json, quiet)
    _end(search, strict, model)


def _end(search: Search, strict: bool, path: Path) -> None:
    """Say by the exit status that the search was stopped, or that there were warnings."""
    saving.tell_interrupted(search.interrupted, path)
    check_strictly(search.warnings, strict, path)


def _reported_on(search: Search, holdout: str | None) -> str:
    """The rows reported on, in words."""
    if holdout is not None:
        return holdout
    first, last = (search.tuner.until or 0) + 1, search.tuner.winner()[0].rows
    return f"rows {first:,} to {last:,}, each before it was learned"


def _under_report(figures: dict[str, Any]) -> dict[str, Any]:
    return {f"report_{name}": value for name, value in figures.items()}


def _check_open(flags: ModelFlags) -> None:
    """UsageError for an option that fixes what tune searches for."""
    for name in _VARIED:
        if getattr(flags, name) is not None:
            raise UsageError(f"--{name} is varied by tune: leave it out; --rules names the rules to try")


def _centring(flags: ModelFlags, rules: str | Sequence[str]) -> ModelFlags:
    """The options, which say whether columns are centred for these rules. UsageError."""
    from thresher.lanes.tuning import are_centred

    try:
        return replace(flags, centre=are_centred(rules, flags.scale, flags.centre))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _search(
    reading: Reading,
    flags: ModelFlags,
    every: Part,
    rules: str | None,
    budget: int,
    path: Path,
    asked: tuple[str | None, str | None],
    watching: Quiet,
    quiet: bool,
) -> Search:
    """A search over these settings. UsageError if they are invalid."""
    from thresher.cli.watching import say_unless
    from thresher.engine import notices
    from thresher.lanes.search import Search
    from thresher.lanes.tuning import RULES, Tuner

    made, names = passes_asked(asked[0] or "auto", asked[1]), RULES if rules is None else rules
    notices.when_compiling(None if quiet else watching.say)
    flags = _centring(flags, names)
    layout, wanted = with_classes(flags, reading, reading.table.layout(), say_unless(quiet, watching))
    base = new_recipe(wanted)
    source, held = sources_of(reading, layout, base.head().domain, [path], 1)
    try:
        tuner = Tuner(replace(base, layout=source.layout), names, budget)
    except ValueError as error:
        raise UsageError(str(error)) from error

    def tell(number: int) -> None:
        if not quiet and tuner.chosen is not None:
            best, rounds = tuner.trials[tuner.chosen], len(tuner.rounds)
            watching.say(f"round {number + 1} of {rounds}, {len(tuner.trials)} settings: {best.rule}")

    order = reading.order_of(None, base.seed)
    beside = watching, tell, every, *made
    return Search(tuner, source, order, held, reading.cache, *beside)


def _tell(search: Search, found: dict[str, Any], path: Path, as_json: bool, quiet: bool) -> None:
    from thresher.cli.output import in_json, show_result, tell_skipped, tell_warnings, tell_weightless
    from thresher.lanes.table import of_trials

    tuner = search.tuner
    if search.lines is not None:
        tell_skipped(search.lines)
    tell_weightless(search.weightless, search.tuner.winner()[1].examples)
    tell_warnings(search.warnings)
    trial, model = tuner.winner()
    chosen = tuner.chosen or 0
    figures = {
        "examples": model.examples,
        "passes": model.record.passes if model.record else 1,
        "settings": len(tuner.trials),
        "seed": tuner.seed,
        "rule": trial.rule,
        "rate": trial.rate,
        "nonzero": model.nonzero,
        **found,
        "model": str(path),
    }
    if as_json:
        trials, warned = [one.as_dict() for one in tuner.trials], in_json(search.warnings)
        show_result({"trials": trials, "chosen": chosen, **figures, "warnings": warned}, True, path)
        return
    if not quiet:
        typer.echo("late loss: over the last half of the rows used for choosing; the lowest is chosen")
        typer.echo("\n".join(of_trials(tuner.trials, chosen)))
    show_result({name: value for name, value in figures.items() if value is not None}, False, path)


def _command(context: Any, trial: Trial, model: Model) -> str:
    """The command that trains this model alone: the options given, without those only tune has."""
    passes = passes_said(model.record.passes if model.record else 1, model.recipe)
    words = [word for parameter in context.command.params for word in _as_words(parameter, context)]
    words += ["--rule", trial.rule, *([] if trial.rate is None else ["--rate", trial.rate])]
    words += [] if passes is None else ["--passes", str(passes)]
    if model.recipe.centre != model.recipe.centred_by_default and not {*words} & {"--centre", "--no-centre"}:
        words.append("--centre" if model.recipe.centre else "--no-centre")
    return shlex.join(["thresher", "train", *words])


def _as_words(parameter: Any, context: Any) -> list[str]:
    """How a parameter was given on the command line; empty if it was not."""
    source = context.get_parameter_source(parameter.name)
    if source is None or source.name != "COMMANDLINE" or parameter.name in _OWN:
        return []
    value, name = context.params[parameter.name], min(parameter.opts, key=len)
    if isinstance(value, bool):
        return [name if value else parameter.secondary_opts[0]]
    texts = [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
    argument = parameter.param_type_name == "argument"
    return texts if argument else [word for one in texts for word in (name, one)]
