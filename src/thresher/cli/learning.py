"""The commands that learn: ``thresher train``, ``path``, ``cv``, ``tune``, ``select`` and ``boost``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli import output, saving
from thresher.cli.errors import StoppedAfterSaving, check_strictly
from thresher.cli.parser import DATA, command
from thresher.options import lanes, training
from thresher.options.option import Options, UsageError

if TYPE_CHECKING:
    from thresher.batch.rounds import Round
    from thresher.learning.training.trainer import Outcome

_ROUND = f"{'round':>6} {'sweeps':>7} {'objective':>16} {'certificate':>12} {'non-zero':>10} {'seconds':>8}"
_OF_SOLUTION = ("examples", "rounds", "sweeps", "objective", "certificate", "converged")


@contextmanager
def _prepare_run(
    plan: Callable[[Options], Any], data: list[str], options: Options
) -> Iterator[tuple[Any, Path]]:
    """A run that signals stop, with a checkpoint beside its model; and the path of the model."""
    from thresher.cli.console import console

    path = options["model"]
    options["checkpoint"] = Path(f"{path}.checkpoint")
    saving.check_targets(path, options, data)
    run = plan(options).prepare(data, console(options["quiet"]), [path])
    with closing(run.trainer.stopper.listen()):
        yield run, path


@contextmanager
def _save_unchanged(options: Options) -> Iterator[None]:
    """A run that may find nothing new: its model is what it goes on from, perhaps under another name."""
    from thresher.data.errors import NothingNewError

    path, old = options["model"], options["continue_from"]
    try:
        yield
    except NothingNewError as nothing:
        if nothing.moved or Path(path).resolve() != Path(old or path).resolve():
            with saving.defer_signals(path):
                nothing.model.save(path, state=not options["weights_only"])
        raise


@command(training.TrainCommand, DATA)
def train(data: list[str], options: Options) -> None:
    """Learn a sparse linear model from a stream, and report how well it predicted each example beforehand."""
    from thresher.learning.files.checkpoint import bags_in
    from thresher.learning.files.choice import by_spec
    from thresher.learning.inspection import plots
    from thresher.learning.inspection.formatting import of_first_pass
    from thresher.learning.model.objective import in_words
    from thresher.plans.run import WITHOUT_NAMES, Plan, bags_of
    from thresher.plans.train import ManyModels

    checkpoint_path, state = Path(f"{options['model']}.checkpoint"), not options["weights_only"]
    if options["by"] and options["ensemble"]:
        raise UsageError("--by and --ensemble are two ways to train several models: give one of them")
    by = options["by"] and by_spec(options["by"])
    bags = options["ensemble"] or by or bags_of(options["continue_from"])
    if bags is None and options["resume"] and checkpoint_path.is_file():
        bags = bags_in(checkpoint_path)
    if bags and options["names"]:
        raise UsageError("--names works with one model only: use thresher name afterwards")
    plan = partial(ManyModels, spec=bags) if bags else Plan
    with _save_unchanged(options), _prepare_run(plan, data, options) as (run, path):
        said = WITHOUT_NAMES.format(path) if options["names"] else f"the model is saved in {path}"
        outcome: Outcome = saving.finish(run, lambda: run.trainer.model.save(path, state=state), said)
        with saving.defer_signals(path, run.trainer.stopper):
            complete = run.save(path, state)
            with saving.say_saved(path):
                output.write_curve(options["curve"], outcome.table)
                if options["plot"] is not None:
                    loss = str(run.trainer.model.recipe.loss)
                    plots.write(options["plot"], plots.learning(outcome.table, loss, outcome.holdout))
            figures = {**run.figures(outcome), "model": str(path)}
            figures |= {f"holdout_{name}": value for name, value in (outcome.holdout or {}).items()}
            if not options["json"]:
                again = figures["passes"] > 1 or "solved" in figures
                figures["progressive_loss"] = of_first_pass(figures["progressive_loss"], again)
                if "calibration" in figures:
                    figures["probability"] = in_words(figures.pop("calibration"))
            output.show_run(figures, outcome, options)
            if not complete:
                raise StoppedAfterSaving(f"interrupted; {WITHOUT_NAMES.format(path)}")
        check_strictly(outcome.warnings, options)


@command(lanes.PathCommand, DATA)
def path(data: list[str], options: Options) -> None:
    """Learn a model for each of many penalties in one reading, and show the loss and size of each."""
    from thresher.learning.inspection import plots
    from thresher.plans.budget import use_of
    from thresher.plans.frontier import picture
    from thresher.plans.models import lane_lines
    from thresher.plans.path import Paths

    with _prepare_run(Paths, data, options) as (run, path):
        state = options["state"] or run.trainer.state.earlier is not None
        saved = f"the models are saved in {path}"
        outcome: Outcome = saving.finish(run, lambda: run.frontier().decided().save(path, state=state), saved)
        learned = run.frontier()
        with saving.defer_signals(path, run.trainer.stopper):
            learned = learned.decided(run.ui.warn)
            learned.save(path, state=state)
            found = learned.summary()
            run.trainer.discard_checkpoint()
            with saving.say_saved(path):
                drawn = partial(picture, found.points, found.chosen)
                plots.draw(options["plot"], drawn, options["table"], learned.table)
            outcome.warnings += learned.warnings
            used = output.budget_figures(use_of(found.points, found.chosen, run.choice), options["json"])
            again = run.command(data, found, model := learned.models[found.chosen])
            said = output.solution_figure(model) | {"command": again}
            figures = {**output.figures_of_run(outcome), **used, "model": str(path), **said}
            whole = found.as_dict()
            table = lane_lines(whole["lanes"], found.penalty, found.chosen)
            output.show_run(figures, outcome, options, table, whole)
        check_strictly(outcome.warnings, options)


@command(lanes.CvCommand, DATA)
def cv(data: list[str], options: Options) -> None:
    """Evaluate penalties by cross-validation: one reading trains all folds, a second one evaluates them.

    A rule with a fixed penalty, or with none, is evaluated as it is. A run that is interrupted saves nothing,
    but in passes over rows in memory that nobody asked for: these end early.
    """
    from thresher.cli.console import console
    from thresher.data.sources.reader import prepare_readers
    from thresher.plans.budget import use_of
    from thresher.plans.cv import CrossValidation
    from thresher.plans.models import of_estimates

    model, started, ui = options["model"], time.perf_counter(), console(options["quiet"])
    saving.check_targets(model, options, data)
    run = CrossValidation(options).prepare(data, ui, [model])
    started += prepare_readers()
    outcome: Outcome = saving.finish(run)
    found = run.judge().decided(ui.warn)
    number, use = found.number(), use_of(found.points, found.number(), options["choose"])
    if use and not found.models:
        remedy = "give --model to choose by its own"
        ui.warn(f"weights are means over the folds, and a model of all rows has more: {remedy}")
    used, own = output.budget_figures(use, options["json"]), dict[str, Any]()
    again = {"command": run.command(data, outcome, found.points[number].spec)}
    took = {"seconds": round(time.perf_counter() - started, 3)}
    with nullcontext() if model is None else saving.defer_signals(model):
        if model is not None:
            final = found.choose()
            final.save(model)
            own = {**output.solution_figure(final), "nonzero": final.nonzero, "model": str(model)}
        outcome.warnings = [*outcome.warnings, *found.warnings]
        figures = {
            "folds": options["folds"],
            **output.figures_of_run(outcome),
            **took,
            **used,
            **own,
            **again,
        }
        del figures["features_seen"]
        each = [point.as_dict(found.penalty) for point in found.points]
        whole = {"lanes": each, "chosen": number, "choice": found.choice, "penalty": found.penalty}
        whole |= {"folds": options["folds"], **used, **again, **took, **own}
        table = of_estimates(found.points, found.penalty, number)
        output.show_run(figures, outcome, options, table, whole)
        check_strictly(outcome.warnings, options)
    saving.tell_interrupted(run.trainer.cut_short, model)


@command(lanes.TuneCommand, DATA, hidden=lanes.VARIED)
def tune(data: list[str], options: Options) -> None:
    """Race settings of several rules in three readings, train the best, and print the command that trains it.

    The choice is by the loss on rows before they are learned. The report is on other rows.
    """
    from thresher.cli.console import console
    from thresher.plans.models import of_trials
    from thresher.plans.tune import Search

    path, ui = options["model"], console(options["quiet"])
    saving.check_targets(path, options, data)
    search = Search(options).prepare(data, ui, [path])
    with closing(ui):
        search.run()
    found = search.result()
    model, chosen = found.model, found.trials[found.chosen]
    with saving.defer_signals(path):
        model.save(path)
        rows = f"rows {(search.tuner.until or 0) + 1:,} to {chosen.rows:,}, each before it was learned"
        figures: dict[str, Any] = {
            "examples": model.examples,
            "passes": model.record.passes if model.record else 1,
            "settings": len(found.trials),
            "seed": search.tuner.base.seed,
            "rule": chosen.rule,
            "rate": chosen.rate,
            "nonzero": model.nonzero,
            "report_on": rows if options["holdout"] in (None, "none") else str(options["holdout"]),
            **{f"report_{name}": value for name, value in found.report.items()},
            "command": search.command(data),
            "model": str(path),
        }
        if not options["json"]:
            figures = {name: value for name, value in figures.items() if value is not None}
        head = "late loss: over the last half of the rows used for choosing; the lowest is chosen"
        whole = {"trials": [asdict(one) for one in found.trials], "chosen": found.chosen}
        table = [head, *of_trials(found.trials, found.chosen)]
        output.show_run(figures, search.outcome, options, table, whole)
    saving.tell_interrupted(search.interrupted, path)
    check_strictly(found.warnings, options)


@command(lanes.SelectCommand, DATA)
def select(data: list[str], options: Options) -> None:
    """Find the features that live in most halves of the rows, and bound how many of them are false.

    One reading trains a model of each half. A feature is kept if the share of the halves in which it lives
    reaches a threshold, from which at most --false false features are expected.
    """
    from thresher.learning.inspection import plots
    from thresher.learning.inspection.feature_names import is_nameable
    from thresher.options.messages import as_shown
    from thresher.plans.select import Selecting
    from thresher.plans.stability import NO_NAMES

    with _prepare_run(Selecting, data, options) as (run, path):
        outcome = saving.finish(run, lambda: run.select().save(path), f"the selection is in {path}")
        found = run.select()
        with saving.defer_signals(path, run.trainer.stopper):
            found.save(path)
            run.trainer.discard_checkpoint()
            with saving.say_saved(path):
                plots.draw(options["plot"], found.plot, options["table"], found.table)
            outcome.warnings += found.warnings
            figures = {**found.figures(), **output.figures_of_run(outcome), "model": str(path)}
            del figures["features_seen"]
            rows, lines = {"kept_features": found.kept_rows()}, found.lines()
            if not options["names"] and is_nameable(run.trainer.models.models[0].predictor()):
                lines.append(as_shown(NO_NAMES))
            output.show_run(figures, outcome, options, lines, rows)
        check_strictly(outcome.warnings, options)


@command(training.BoostCommand, DATA)
def boost(data: list[str], options: Options) -> None:
    """Minimise the sum of losses + L1 |w|_1 + L2 |w|^2 / 2 to a certified optimum, with data in memory."""
    from thresher.cli.console import console
    from thresher.learning.training.trainer import Outcome
    from thresher.plans.models import lane_lines
    from thresher.runs import boost as runs

    path, ui = options["model"], console(options["quiet"])
    saving.check_targets(path, options, data)
    source, run = runs.prepare(data, options, ui, outputs=[path])

    def tell(row: Round) -> None:
        if not row.number:
            ui.say(_ROUND)
        ui.say(
            f"{row.number:>6,} {row.sweeps:>7,} {row.objective:>16.9g} {row.certificate:>12.3e}"
            f" {row.nonzero:>10,} {row.seconds:>8.2f}"
        )

    found, lanes = run(tell), None
    with saving.defer_signals(path):
        if found.frontier is None:
            found.save(path)
        else:
            found.frontier.save(path)
            lanes = found.frontier.summary()
        figures = {name: getattr(found.solution, name) for name in _OF_SOLUTION}
        figures |= {"nonzero": found.nonzero, "features_seen": found.solution.features_seen}
        figures |= {"seconds": round(found.solution.seconds, 3), "skipped": source.report.skipped}
        whole = {} if lanes is None else lanes.as_dict()
        table = [] if lanes is None else lane_lines(whole["lanes"], lanes.penalty, lanes.chosen)
        outcome = Outcome(figures, None, [source.report], [], found.warnings)
        output.show_run({**figures, "model": str(path)}, outcome, options, table, whole)
        check_strictly(found.warnings, options)
