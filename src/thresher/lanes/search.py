"""``thresher.tune``: the rounds of a tuner, each one reading of the data, and the report on the winner."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from thresher.data.formats.tables.heads import columns_seen
from thresher.data.order import Order
from thresher.data.report import Report
from thresher.lanes import table
from thresher.lanes.tuning import Trial, Tuner, judged_rows
from thresher.learning import metrics
from thresher.learning.figures import shown
from thresher.learning.finite import DivergedError
from thresher.learning.frames import frame_of, held, identity
from thresher.learning.holdout import Holdout
from thresher.learning.model import Model
from thresher.learning.passes import Kept, Passes
from thresher.learning.progress import Watcher
from thresher.learning.repeating import bytes_to_keep, is_automatic, passes_for
from thresher.learning.shares import Part
from thresher.learning.stopping import Interrupted, Stopper
from thresher.learning.training import Plan, Trainer
from thresher.learning.trouble import Trouble

if TYPE_CHECKING:
    import pandas as pd


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
        return "\n".join(
            [*table.of_trials(self.trials, self.chosen), f"rows not used for choosing: {figures}"]
        )

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

    def rest(self, source: Any) -> Any:
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

    def source(self) -> Any:
        """None: nothing is evaluated after a pass."""
        return None

    def kept(self) -> Any:
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
        source: Any,
        order: Order,
        held: Any,
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
        trainer = self._trainer(Model(best.recipe), Plan(passes, None), **beside)
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

    def _source(self) -> Any:
        """The source of the next reading."""
        started, self._started = self._started, True
        return self._reads.later() if started else self._reads.first

    def _round(self, number: int) -> None:
        lanes, error = self.tuner.draw(number), None
        try:
            outcome = self._trainer(lanes, Plan(1, None)).run()
            self.warnings, self.weightless = outcome.warnings, outcome.weightless
            self.lines = self.lines or outcome.reports[0]
        except DivergedError as found:
            error = found
        self.tuner.settle(lanes, error)

    def _trainer(self, model: Any, plan: Plan, **beside: Any) -> Trainer[Any]:
        beside |= {"watcher": self._watcher, "judging": lambda every, given: self._holdout}
        return Trainer(model, self._source(), plan, order=self._order, columns=self._columns, **beside)

    def report(self) -> dict[str, Any]:
        """Figures of the winner on rows not used for choosing. `DivergedError` if there is no winner."""
        trial, model = self.tuner.winner()
        held = self._held or self._holdout.kept()
        if held is not None:
            with closing(held.chunks()) as chunks:
                return {**metrics.score(model, chunks).figures()}
        loss, weight = self.tuner.late
        examples = trial.rows - (self.tuner.until or 0)
        return {"examples": examples, "loss": loss / weight if weight else None}
