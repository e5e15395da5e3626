"""Tuning: many settings of several rules race in a few readings, and the best is told.

Rows are counted first. The rows that `tune` reports on must not influence any choice, not even which settings
are dropped at a mark, so it must know before the first race where the last tenth begins. Counting takes one
reading, which fills the cache for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from thresher.data.formats.tables.column_statistics import columns_seen
from thresher.data.inputs.any_data import Data, open_data
from thresher.data.order import Order, make_order
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.learning.diagnostics.findings import WEIGHTLESS, Finding
from thresher.learning.evaluation import evaluate
from thresher.learning.inspection.formatting import finite
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import is_centred
from thresher.learning.training.holdout import Holdout
from thresher.learning.training.interruption import Interrupted, Stopper
from thresher.learning.training.passes import Passes, ReplayBuffer, bytes_to_keep, passes_for
from thresher.learning.training.progress import Ui
from thresher.learning.training.shares import HeldOutPart
from thresher.learning.training.trainer import Outcome, Trainer, TrainingPlan
from thresher.options.lanes import VARIED
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import mention
from thresher.options.option import DEFAULT_RULE, Options, UsageError, given_options
from thresher.plans.models import Tuned
from thresher.plans.repeat import passes_said, train_command
from thresher.plans.run_setup import check_written, holdout_of, plan_of, recipe_for
from thresher.plans.settings import RULES, Tuner, rules_of


def judged_rows(rows: int) -> int:
    """Number of rows used for choosing; the last tenth of `rows` is kept for the report."""
    return rows - -(-rows // 10)


class _HeldOut(Holdout):
    """Rows that are held out of all readings and evaluated only at the end. Others may be kept in memory."""

    def __init__(self, every: HeldOutPart, budget: int, order: Order) -> None:
        super().__init__(every)
        self._budget, self._order = budget, order
        self.memory: ReplayBuffer | None = None

    def rest(self, source: Source) -> Source:
        """The other rows, from memory if an earlier reading could keep them all."""
        rest = super().rest(source)
        if not self._budget or (self.memory is not None and self.memory.dropped):
            return rest
        if self.memory is None or not self.memory.complete:
            self.memory = ReplayBuffer(rest, self._budget, held=self._order.held)
            return self.memory
        return self.memory.later()

    def source(self) -> None:
        """None: nothing is evaluated after a pass."""
        return


class Search:
    """The readings of a tuner. The report is on a hold-out, of other data or of these rows.

    Without one, the last tenth of the rows is kept for the report. Readings after the first use the cache, if
    there may be one. Settings race in one pass; the best is then trained anew in the passes that were asked
    for. Or, if its rule is automatic and the rows fit in memory, in as many as `train` makes of them.
    """

    outcome: Outcome
    """that of the last reading, which has the best settings; with the line counts of the first"""
    interrupted = False
    """whether Ctrl-C came when the best setting was known, and learned in further passes"""

    def __init__(self, options: Options) -> None:
        for name in VARIED:
            if name in given_options(options):
                raise UsageError(f"{mention(name)} is varied by tune; {mention('rules')} are those to try")
        self.options = options

    def prepare(self, data: Data, ui: Ui, outputs: Sequence[Path | None] = ()) -> Self:
        """Open the data; `outputs` are files that will be written. `UsageError`, `DataError`."""
        options, (plan, judge) = self.options, plan_of(self.options, ui)
        every, self._passes = plan.holdout_every, plan.passes
        rules = RULES if options["rules"] is None else options["rules"]
        with of_options():
            # columns are centred if they are for one of the rules by default
            centre = any(is_centred(rule, options["scale"], options["centre"]) for rule in rules_of(rules))
        asked = options.but(rule=DEFAULT_RULE, centre=centre)
        base, read = recipe_for(data, asked, layout_asked(options), every, ui)
        source = open_data(data, base.objective.domain, **read)
        self._held = holdout_of(judge, base.objective.domain, source, read, once=True)
        check_written(outputs, options, (), data, source, self._held)
        with of_options():
            self.tuner = Tuner(replace(base, layout=source.layout), rules, options["budget"])
        self._order, self._ui = make_order(options["order"] or "as-is", base.seed), ui
        automatic = any(type(rule).AUTOMATIC for rule in self.tuner.rules)
        kept = bytes_to_keep(plan.replay, automatic, "these rules")
        self._holdout = _HeldOut(every, kept, self._order)
        self._counts = self._started = self._held is None and not every
        readings = len(self.tuner.rounds) + self._counts + (self._passes if self._passes > 1 else 0)
        self._reads = Passes(source, 1 if self._order.held else readings, cached=options["cache"])
        self._columns = columns_seen(source)
        return self

    def run(self) -> None:
        """Run all rounds. Raises `DataError`."""
        reports = list[Report]()
        if self._counts:
            source = self._order.over(self._holdout.rest(self._reads.first), 1)
            with closing(source.chunks()) as chunks:
                rows = sum(len(chunk.counting()) for chunk in chunks)
            reports = [self._reads.first.report]
            self.tuner.until = judged_rows(rows)
        for number in range(len(self.tuner.rounds)):
            lanes, error = self.tuner.draw(number), None
            try:
                self.outcome = self._trainer(lanes, TrainingPlan(1, None)).run()
                self.outcome.reports = reports = reports or self.outcome.reports
            except DivergedError as found:
                error = found
            self.tuner.settle(lanes, error)
            if self.tuner.chosen is not None:
                best, rounds = self.tuner.trials[self.tuner.chosen], len(self.tuner.rounds)
                settings = len(self.tuner.trials)
                self._ui.say(f"round {number + 1} of {rounds}, {settings} settings: {best.rule}")
        model, passes, memory = self.tuner.model, self._passes, self._holdout.memory
        if model is None:
            return
        if memory is not None and memory.complete and model.recipe.rule_part.AUTOMATIC:
            passes = max(passes, passes_for(memory.whole))  # as many as `train` makes of these rows
        if passes == 1:
            return
        stopper = Stopper()  # train the best setting anew
        extras = {"reread": self._reads.later, "stopper": stopper}
        trainer = self._trainer(Model(model.recipe), TrainingPlan(passes, None), **extras)
        stopper.listen_here()
        try:
            self.outcome.warnings, self.tuner.model = trainer.run().warnings, trainer.model
        except DivergedError as error:
            kept = "the best setting is kept as it was after one pass, since it diverged in a later one"
            self.outcome.warnings.append(Finding("diverged", f"{kept}: {error}"))
        except Interrupted:
            self.interrupted = True
            kept = "interrupted in the passes of the best setting, which is kept as it was after the first"
            more = "train again for the other passes"
            self.outcome.warnings.append(Finding("ended-early", f"{kept}: {more}"))
        finally:
            stopper.close()

    def _trainer(self, model: Any, plan: TrainingPlan, **extras: Any) -> Trainer:
        extras |= {"ui": self._ui, "judging": self._holdout}
        source = self._reads.later() if self._started else self._reads.first
        self._started = True
        return Trainer(model, source, plan, order=self._order, columns=self._columns, **extras)

    def result(self) -> Tuned:
        """The winner, with figures on rows not used for choosing. `DivergedError` if there is no winner."""
        trial, model = self.tuner.winner()
        held = self._held or Holdout.source(self._holdout)  # `_HeldOut` keeps them from the trainer
        if held is not None:
            with closing(held.chunks()) as chunks:
                found = evaluate.score(model, chunks).figures()
            if not found["examples"]:
                self.outcome.warnings.append(WEIGHTLESS)
            report = {**finite(found)}
        else:
            loss, weight = self.tuner.late
            examples = trial.rows - (self.tuner.until or 0)
            report = {"examples": examples, "loss": loss / weight if weight else None}
        return Tuned(model, self.tuner.trials, self.tuner.chosen or 0, report, [*self.outcome.warnings])

    def command(self, data: Sequence[str]) -> str:
        """The command that trains the best setting alone."""
        (trial, model), options = self.tuner.winner(), self.options
        recipe, passes = model.recipe, passes_said(model.record.passes if model.record else 1, model.recipe)
        own: dict[str, Any] = {"rule": trial.rule, "rate": trial.rate, "passes": passes}
        own |= {"centre": recipe.centre} if "centre" in recipe.chosen() else {}
        return train_command(data, Path(options["model"]), options, holdout=options["holdout"], **own)
