"""The results of `thresher.path`, `thresher.cv` and `thresher.tune`, and tables that compare their models.

A tuner works in rounds, each one reading of the data, and reports on the winner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from thresher.data.formats.tables.column_statistics import columns_seen
from thresher.data.order import Order
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.lanes import budget, folder
from thresher.lanes.folds import Estimate, Folds, Results, estimates_of
from thresher.lanes.frontier import Learned, Point, check_choice, choose, instead_of, noted, picture
from thresher.lanes.lanes import alone
from thresher.lanes.tuning import Trial, Tuner, judged_rows
from thresher.learning.diagnostics.findings import Trouble, warn
from thresher.learning.evaluation import evaluate
from thresher.learning.inspection.formatting import shown
from thresher.learning.inspection.frames import frame_of, held, identity
from thresher.learning.inspection.plots import checked, write
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.training.holdout import Holdout
from thresher.learning.training.interruption import Interrupted, Stopper
from thresher.learning.training.passes import Kept, Passes, bytes_to_keep, is_automatic, passes_for
from thresher.learning.training.progress import Watcher
from thresher.learning.training.shares import Part
from thresher.learning.training.trainer import Trainer, TrainingPlan

if TYPE_CHECKING:
    import pandas as pd


_HEADS = {"nonzero": "non-zero", "paired_error": "± paired"}


def lines_of(dicts: Sequence[dict[str, Any]], keys: Sequence[str], chosen: int | None) -> list[str]:
    """A line for each model, with a star at the chosen one, and the reason if one was dropped."""
    heads = [_HEADS.get(key, key.replace("holdout_", "held-out ")).replace("_", " ") for key in keys]
    widths = [max(len(head), 10) for head in heads]
    lines = ["  " + "  ".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))]
    for k, one in enumerate(dicts):
        cells = (f"{shown(one.get(key)):>{width}}" for key, width in zip(keys, widths, strict=True))
        why = f"  ({one['dropped']})" if one.get("dropped") else ""
        lines.append(("* " if k == chosen else "  ") + "  ".join(cells) + why)
    return lines


def of_points(points: Sequence[Point], penalty: str, chosen: int | None) -> list[str]:
    """The table of a frontier."""
    dicts = [point.as_dict(penalty) for point in points]
    figures = dict.fromkeys(key for one in dicts for key in one if key.startswith("holdout_"))
    keys = [penalty, "nonzero", "progressive_loss", *figures]
    return lines_of(dicts, [key for key in keys if key != "holdout_examples"], chosen)


def of_estimates(estimates: Sequence[Estimate], penalty: str | None, chosen: int | None) -> list[str]:
    """The table of a cross-validation; weights are rounded, and ``1se``'s error follows the loss's error."""
    dicts = [one.as_dict(penalty) for one in estimates]
    keys = list(dict.fromkeys(key for one in dicts for key in one if key not in ("spec", "dropped")))
    keys.remove("paired_error")
    keys.insert(keys.index("loss_se") + 1 if "loss_se" in keys else len(keys), "paired_error")
    rows = [one | {"nonzero": one["nonzero"] and round(one["nonzero"])} for one in dicts]
    return lines_of(rows, keys, chosen)


def of_trials(trials: Sequence[Trial], chosen: int | None) -> list[str]:
    """The table of a tuner's settings."""
    rows = [{"setting": setting_of(one), **one.as_dict()} for one in trials]
    return lines_of(rows, ["round", "rows", "progressive_loss", "late_loss", "setting"], chosen)


def setting_of(trial: Trial) -> str:
    """The options that train this setting."""
    return trial.rule if trial.rate is None else f"{trial.rule} --rate {trial.rate}"


def shown_with_choice(
    points: Sequence[budget.Penalised], choice: str, table: Callable[[int | None], list[str]]
) -> str:
    """The table of models, with a star at the chosen one, and notes on the choice."""
    try:
        chosen: int | None = choose(points, choice)
    except ValueError:
        chosen = None
    use = None if chosen is None else budget.use_of(points, chosen, choice)
    return noted([*table(chosen), *([budget.sentence(use)] if use else [])], points, chosen)


@dataclass(frozen=True)
class Tuned:
    """The best of many settings."""

    model: Model
    """the best model, trained on all rows; ``model.recipe`` trains it alone"""
    trials: list[Trial]
    """all settings with their results"""
    chosen: int
    """number of the best"""
    report: dict[str, Any]
    """``examples``, ``loss`` ... of the model on rows that were not used for choosing"""
    warnings: list[Trouble] = field(default_factory=list)
    """trouble with the data or the run"""

    def __repr__(self) -> str:
        """The table printed by ``thresher tune``, with a star at the chosen setting, and the report."""
        figures = ", ".join(f"{name} {shown(value)}" for name, value in self.report.items())
        return "\n".join([*of_trials(self.trials, self.chosen), f"rows not used for choosing: {figures}"])

    def frame(self) -> pd.DataFrame:
        """A row per setting, under the names that all results share; ``late_loss`` was chosen by.

        ``holdout_`` figures are of the chosen model, on rows not used for choosing. See docs/python.md.
        ImportError without pandas.
        """
        base, rows = self.model.recipe, list[dict[str, Any]]()
        for k, trial in enumerate(self.trials):
            recipe = replace(base, rule=trial.rule, rate=trial.rate, alpha=None, l1=None, l2=None, eta0=None)
            won = {"nonzero": self.model.nonzero, **held(self.report)} if k == self.chosen else {}
            own = {
                "examples": trial.rows,
                "progressive_loss": trial.progressive_loss,
                "chosen": k == self.chosen,
                "dropped": trial.dropped,
                **won,
            }
            more = {"rate": trial.rate, "round": trial.round, "late_loss": trial.late_loss}
            rows.append({**identity(recipe), **own, **more})
        return frame_of(rows)

    @property
    def model_(self) -> Model:
        """The best model, which `thresher.predict`, `evaluate`, `save` and the like take in its place."""
        return self.model


class _HeldOut(Holdout):
    """Rows that are held out of all readings and evaluated only at the end. Others may be kept in memory."""

    def __init__(self, every: Part, budget: int, order: Order) -> None:
        super().__init__(every)
        self._budget, self._order = budget, order
        self._memory: Kept | None = None

    def rest(self, source: Source) -> Source:
        """The other rows, from memory if an earlier reading could keep them all."""
        rest = super().rest(source)
        if not self._budget or (self._memory is not None and self._memory.dropped):
            return rest
        if self._memory is None or not self._memory.complete:
            self._memory = Kept(rest, self._budget, held=self._order.reads(2) == 1)
            return self._memory
        return self._memory.later()

    def passes_of(self, model: Model) -> int:
        """How many passes `train` makes of these rows, which have been read, with the rule of `model`."""
        if self._memory is None or not self._memory.complete or not is_automatic(model.recipe):
            return 1
        return passes_for(self._memory.whole)

    def source(self) -> None:
        """None: nothing is evaluated after a pass."""
        return

    def kept(self) -> Source | None:
        """The held-out rows, or None."""
        return super().source()


class Search:
    """The readings of a tuner. The report is on `held`, or on every `every`-th row, which is held out.

    With neither, the last tenth of the rows is kept for the report. Readings after the first use the cache,
    if there may be one. Settings race in one pass; the best is then trained anew in `passes` passes. Or, if
    its rule is automatic and the rows fit in `replay` bytes of memory, in as many as `train` makes of them.
    """

    def __init__(
        self,
        tuner: Tuner,
        source: Source,
        order: Order,
        held: Source | None,
        cached: bool,
        watcher: Watcher | None = None,
        tell: Callable[[int], None] = lambda number: None,
        every: Part = 0,
        passes: int = 1,
        replay: int = 0,
    ) -> None:
        self.tuner, self._order, self._held, self._passes = tuner, order, held, passes
        self._holdout = _HeldOut(every, bytes_to_keep(replay, tuner.may_replay, "these rules"), order)
        self._counts = held is None and not every
        readings = len(tuner.rounds) + self._counts + (passes if passes > 1 else 0)
        self._reads = Passes(source, order.reads(readings), cached=cached)
        self._watcher, self._tell = watcher, tell
        self._started = False
        self.interrupted = False
        """whether Ctrl-C came when the best setting was known, and learned in further passes"""
        self.lines: Report | None = None
        """line counts of the data"""
        self.weightless = 0
        """rows of importance 0 in a reading"""
        self.warnings: list[Trouble] = []
        """trouble in the last reading, which has the best settings"""
        self._columns = columns_seen(source)

    def run(self) -> None:
        """Run all rounds. Raises `DataError`."""
        if self._counts:
            source = self._order.over(self._holdout.rest(self._source()), 1)
            with closing(source.chunks()) as chunks:
                rows = sum(len(chunk.counting()) for chunk in chunks)
            self.lines = self._reads.first.report
            self.tuner.until = judged_rows(rows)
        for number in range(len(self.tuner.rounds)):
            self._round(number)
            self._tell(number)
        if self.tuner.model is not None:
            self._learn_again(self.tuner.model)

    def _learn_again(self, best: Model) -> None:
        """Train the best setting anew, if it makes more than one pass."""
        passes = max(self._passes, self._holdout.passes_of(best))
        if passes == 1:
            return
        stopper = Stopper()
        beside = {"reread": self._reads.later, "stopper": stopper}
        trainer = self._trainer(Model(best.recipe), TrainingPlan(passes, None), **beside)
        stopper.listen_here()
        try:
            self.warnings, self.tuner.model = trainer.run().warnings, trainer.model
        except DivergedError as error:
            kept = "the best setting is kept as it was after one pass, since it diverged in a later one"
            self.warnings = [*self.warnings, Trouble("diverged", f"{kept}: {error}")]
        except Interrupted:
            self.interrupted = True
            kept = "interrupted in the passes of the best setting, which is kept as it was after the first"
            self.warnings = [
                *self.warnings,
                Trouble("ended-early", f"{kept}: train again for the other passes"),
            ]
        finally:
            stopper.close()

    def _source(self) -> Source:
        """The source of the next reading."""
        started, self._started = self._started, True
        return self._reads.later() if started else self._reads.first

    def _round(self, number: int) -> None:
        lanes, error = self.tuner.draw(number), None
        try:
            outcome = self._trainer(lanes, TrainingPlan(1, None)).run()
            self.warnings, self.weightless = outcome.warnings, outcome.weightless
            self.lines = self.lines or outcome.reports[0]
        except DivergedError as found:
            error = found
        self.tuner.settle(lanes, error)

    def _trainer(self, model: Any, plan: TrainingPlan, **beside: Any) -> Trainer[Any]:
        beside |= {"watcher": self._watcher, "judging": lambda every, given: self._holdout}
        return Trainer(model, self._source(), plan, order=self._order, columns=self._columns, **beside)

    def report(self) -> dict[str, Any]:
        """Figures of the winner on rows not used for choosing. `DivergedError` if there is no winner."""
        trial, model = self.tuner.winner()
        held = self._held or self._holdout.kept()
        if held is not None:
            with closing(held.chunks()) as chunks:
                return {**evaluate.score(model, chunks).figures()}
        loss, weight = self.tuner.late
        examples = trial.rows - (self.tuner.until or 0)
        return {"examples": examples, "loss": loss / weight if weight else None}


@dataclass(frozen=True)
class Frontier:
    """Models of one rule with different penalties, from the weakest to the strongest."""

    penalty: str
    """name of the penalty parameter"""
    points: list[Point]
    """loss and number of weights of each model"""
    models: list[Model]
    """the model of each point. These are lanes: a `copy` can keep learning on its own"""
    warnings: list[Trouble] = field(default_factory=list)
    """trouble with the data or the run"""
    choice: str = "best"
    """what is chosen unless you say otherwise"""
    _learn: Callable[[Learned, list[float]], Learned] | None = field(default=None, repr=False, compare=False)
    """adds models with further penalties; None if the data cannot be read again"""
    _tried: set[str] = field(default_factory=set, repr=False, compare=False)
    """budgets for which penalties were added"""

    def __repr__(self) -> str:
        """The table printed by ``thresher path``, with a star at the chosen model."""
        table = partial(of_points, self.points, self.penalty)
        return shown_with_choice(self.points, self.choice, table)

    @property
    def model_(self) -> Model:
        """The chosen one, which `thresher.predict`, `evaluate`, `save` and the like take in place of all."""
        return self.models[self.choose()]

    def choose(self, which: str | None = None) -> int:
        """Number of the point selected by ``best``, ``1se``, ``within:P%`` or ``nnz:N``; ValueError.

        The first ``nnz:N`` whose budget lies between two models reads the data once more: models with
        penalties between theirs are added, and numbers of points change. If the data can be read only once, a
        warning says so.
        """
        which = check_choice(self.choice if which is None else which)
        budget.fill(self.points, which, self._tried, None if self._learn is None else self._add)
        return choose(self.points, which)

    def _add(self, penalties: list[float]) -> None:
        """Learn models with further penalties."""
        assert self._learn is not None
        grown = self._learn(Learned(self.points, self.models), penalties)
        self.points[:], self.models[:] = grown

    def model(self, which: str | None = None) -> Model:
        """The model of the selected point, independent of the other lanes."""
        return alone(self.models[self.choose(which)])

    def frame(self) -> pd.DataFrame:
        """A row per model, under the names that all results share. ImportError without pandas.

        See docs/python.md.
        """
        chosen = self.choose()
        return frame_of(
            {
                **identity(model.recipe),
                "examples": model.examples,
                "nonzero": point.nonzero,
                "progressive_loss": point.progressive_loss,
                "chosen": k == chosen,
                "dropped": point.dropped,
                **held(point.holdout),
            }
            for k, (point, model) in enumerate(zip(self.points, self.models, strict=True))
        )

    def plot(self, path: str | PathLike[str], which: str | None = None) -> None:
        """Draw loss over the number of weights to an SVG file. Raises OSError, ValueError."""
        target = checked(path)
        chosen = self.choose(which)
        write(target, picture(self.points, chosen))

    def save(self, path: str | PathLike[str], which: str | None = None) -> None:
        """Write the same folder as ``thresher path``, replacing an older one. Raises OSError."""
        folder.check_folder(Path(path))
        chosen = self.choose(which)
        found = folder.FrontierTable(
            self.penalty, self.points, chosen, self.choice if which is None else which
        )
        folder.save(Path(path), found, self.models)


F = TypeVar("F", "Frontier", "CrossValidation")


def with_choice(found: F) -> F:
    """The models, of which one is chosen: `instead_of` it, with a warning, if the criterion selects none."""
    try:
        found.choose()
    except ValueError as error:
        if found.choice == "best":
            return found  # choosing explains it
        instead = instead_of(found.points, found.choice)
        which = "the best" if instead == "best" else "that"
        warnings = found.warnings + warn([Trouble("choice", f"{error}; choosing {which} instead")])
        return with_choice(replace(found, choice=instead, warnings=warnings))
    return found


@dataclass(frozen=True)
class CrossValidation:
    """Results of cross-validation for each penalty, from the weakest to the strongest."""

    penalty: str | None
    """name of the penalty parameter; None if a single model was evaluated"""
    points: list[Estimate]
    """loss and number of weights for each penalty"""
    folds: Folds
    """the models of the first reading"""
    warnings: list[Trouble] = field(default_factory=list)
    """trouble with the data or the run"""
    choice: str = "best"
    """what is chosen unless you say otherwise"""
    _results: Results | None = field(default=None, repr=False, compare=False)
    _learn: Callable[[list[float]], Results | None] | None = field(default=None, repr=False, compare=False)
    """evaluates further penalties"""
    _tried: set[str] = field(default_factory=set, repr=False, compare=False)
    """budgets for which penalties were added"""

    def __repr__(self) -> str:
        """The table printed by ``thresher cv``, with a star at the chosen one."""
        table = partial(of_estimates, self.points, self.penalty)
        return shown_with_choice(self.points, self.choice, table)

    def choose(self, which: str | None = None) -> int:
        """Number of the point selected by ``best``, ``1se``, ``within:P%`` or ``nnz:N``; ValueError.

        With `refit`, ``nnz:N`` counts the weights of the models of all rows, else their mean over folds. The
        first ``nnz:N`` whose budget lies between two penalties evaluates further ones between them, which are
        added; numbers of points then change.
        """
        which = check_choice(self.choice if which is None else which)
        self.fill(which)
        return choose(self.points, which)

    def fill(self, which: str) -> None:
        """Evaluate further penalties if `which` is ``nnz:N`` and its budget lies between two of them."""
        budget.fill(self.points, which, self._tried, self._add)

    def _add(self, penalties: list[float]) -> None:
        """Evaluate further penalties."""
        more = None if self._learn is None else self._learn(penalties)
        if more is not None and self._results is not None:
            grown = self._results.joined(more)
            vars(self._results).update(vars(grown))
            self.points[:] = estimates_of(grown, self.penalty is not None)

    def frame(self) -> pd.DataFrame:
        """A row per penalty and fold, counted from 1, under the names that all results share.

        See docs/python.md. ImportError without pandas.
        """
        chosen, found = self.choose(), self._results
        assert found is not None
        return frame_of(
            {
                **identity(recipe),
                "fold": fold + 1,
                "nonzero": None if found.dropped[k] else found.counts[k][fold],
                "chosen": k == chosen,
                "dropped": found.dropped[k],
                **(held(found.judged[k][fold]) if found.judged[k] else {}),
            }
            for k, recipe in enumerate(found.recipes)
            for fold in range(self.folds.count)
        )

    @property
    def model_(self) -> Model:
        """The chosen one, which `thresher.predict`, `evaluate`, `save` and the like take; as `model`."""
        return self._whole[self.choose()]

    def model(self, which: str | None = None) -> Model:
        """The model with that penalty trained on all rows, which can keep learning on its own.

        ValueError unless cross-validation ran with `refit`.
        """
        number = self.choose(which) if self.folds.whole else 0
        return copy(self._whole[number])

    @property
    def _whole(self) -> list[Model]:
        if self._results is None or self._results.whole is None:
            raise ValueError("no final model was trained: use cv(..., refit=True)")
        return self._results.whole
