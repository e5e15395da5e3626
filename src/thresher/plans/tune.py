"""Tuning: many settings of several rules race in a few readings; later settings are close to good ones.

Rows are counted first. The rows that `tune` reports on must not influence any choice, not even which settings
are dropped at a mark, so it must know before the first race where the last tenth begins. Counting takes one
reading, which fills the cache for the others. Settings are compared over the last half of the rows used to
choose, so settings from different rounds can be compared too. At a mark, the worse half is
dropped only if it is two standard errors worse: eight lanes cost little more than one, and slow starters won
on several sets. More rules were tried as defaults: of 23 sets `ftrl` was chosen on one, iPinYou, where its
test loss is 1.4 times the default's, and `normalized` on none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.formats.tables.column_statistics import columns_seen
from thresher.data.inputs.any_data import Data, open_data
from thresher.data.order import Order, make_order
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.learning.diagnostics.findings import Finding, weightless_held_out
from thresher.learning.evaluation import evaluate
from thresher.learning.inspection.formatting import finite
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe, is_centred
from thresher.learning.training.holdout import Holdout
from thresher.learning.training.interruption import Interrupted, Stopper
from thresher.learning.training.passes import Passes, ReplayBuffer, bytes_to_keep, is_automatic, passes_for
from thresher.learning.training.progress import Ui
from thresher.learning.training.shares import HeldOutPart
from thresher.learning.training.trainer import Trainer, TrainingPlan
from thresher.options.lanes import VARIED
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import mention
from thresher.options.option import DEFAULT_RULE, Options, UsageError, given_in
from thresher.plans.models import Trial, Tuned
from thresher.plans.repeat import passes_said, train_command
from thresher.plans.run_setup import (
    check_written,
    held_apart,
    holdout_of,
    passes_asked,
    recipe_for,
)

RULES = ("ft-ftrl", "adagrad-fobos")
FIRST = 1024
"""rows before any lane is dropped"""
_LEFT = 4
"""minimum number of lanes that learn to the end of a round"""
_BEHIND = 2.0
"""standard errors by which a dropped lane is worse than the best"""
_PARENTS = 4
_NARROWEST = 8
"""rows in the shortest block"""
_BLOCKS = 32
"""blocks from one power of two of rows to the next"""
_WHOLE = 1 << 62
Range = tuple[float, float]
F64 = NDArray[np.float64]


def ranges_of(rule: Any) -> dict[str, Range]:
    """The parameters of a rule worth tuning, with their ranges; a field of its rate is ``rate.eta0``."""
    own = rule.TUNED
    if own is None:  # the rule does not say: a factor of 100 around its penalties
        given = {name: float(getattr(rule, name)) for name in rule.PENALTIES}
        own = {name: (v / 100, v * 100) for name, v in given.items() if 0 < v < math.inf}
    found = dict(own)
    if hasattr(rule, "rate"):
        found |= {f"rate.{name}": ends for name, ends in (rule.rate.TUNED or {}).items()}
    return found


def values_of(rule: Any) -> dict[str, float]:
    """The rule's values of the parameters in `ranges_of`."""
    names = {name: name.rpartition(".") for name in ranges_of(rule)}
    return {name: float(getattr(rule.rate if rate else rule, own)) for name, (rate, _, own) in names.items()}


def with_values(rule: Any, values: dict[str, float]) -> Any:
    """The rule with other values, rounded to four digits, because people read SPECs."""
    values = {name: float(f"{value:.4g}") for name, value in values.items()}
    own = {name: value for name, value in values.items() if "." not in name}
    rates = {name.partition(".")[2]: value for name, value in values.items() if "." in name}
    rate = {"rate": rule.rate._replace(**rates)} if rates else {}
    return rule._replace(**own, **rate)


def rules_of(given: str | Sequence[str]) -> list[Any]:
    """The rules of these names. ValueError."""
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else given
    if not names or len(set(names)) < len(names):
        raise ValueError("rules: name one or more, each once")
    if with_parameters := [name for name in names if ":" in name]:
        raise ValueError(f"rules: remove the parameters, which are tuned, from {with_parameters[0]}")
    return [parts.make("rule", name) for name in names]


class Race:
    """Compares lanes at rows `FIRST`, 2 `FIRST`, 4 `FIRST` ... by their losses up to row `until`.

    Marks are rows of the stream, however it is cut into chunks. What is compared are progressive losses in
    the last half of the rows so far: if all counted, the start would decide, and of settings close to the
    default one was chosen that is up to 23 % worse (iPinYou); the same holds for the last three quarters.
    Sums are kept at the ends of blocks of 8 rows, later of 1 / 32 of a power of two, so 32 to 64 blocks give
    each difference a standard error.
    """

    def __init__(self, lanes: int, until: int) -> None:
        self._until = until
        self.ended = until <= 0
        """whether no more rows count"""
        self.ends: list[int] = [0]
        self.sums: list[list[float]] = [[0.0] * (1 + lanes)]
        """up to each end, the importance of the rows, and the progressive loss of each lane"""

    def due(self, done: int) -> int:
        """Rows from row `done` to the end of its block, or to the last mark if that comes first."""
        width = _width(done)
        return _WHOLE if self.ended else min(width - done % width, self._until - done)

    def end_of_block(self, lanes: ModelSet, over: bool = False) -> None:
        """Record the sums at the end of a block, or if no more rows count (`over`); judge at a mark."""
        done = lanes.examples
        if self.ended or not (over or done == self._until or done % _width(done) == 0):
            return
        if done > self.ends[-1]:
            sums = [math.inf] * len(self.sums[0])
            for k in lanes.alive:
                sums[1 + k], sums[0] = lanes.models[k].tally
            self.ends.append(done)
            self.sums.append(sums)
        self.ended = over or done == self._until
        if not self.ended and done >= FIRST and done & (done - 1) == 0:
            self.judge(lanes)

    def judge(self, lanes: ModelSet) -> None:
        """Drop the weaker half, except for lanes only slightly worse than the best."""
        losses = self.losses()
        ranked = sorted(lanes.alive, key=lambda k: (losses[k], k))
        for k in ranked[max(len(ranked) // 2, _LEFT) :]:
            if self.excess(k, ranked[0]) >= _BEHIND:
                more = 100 * (losses[k] / losses[ranked[0]] - 1) if losses[ranked[0]] > 0 else math.inf
                lanes.parts[0].drop(k, f"{more:.3g} % more loss than the best at row {lanes.examples:,}")

    def late(self) -> F64:
        """Importance and losses of each block in the last half of the rows (blocks, 1 + lanes)."""
        first = int(np.searchsorted(self.ends, self.ends[-1] / 2))
        with np.errstate(invalid="ignore"):  # for dropped lanes
            return np.diff(np.array(self.sums[first:]), axis=0)

    def losses(self) -> F64:
        """Sum of losses of each lane in the last half of the rows."""
        return np.asarray(self.late()[:, 1:].sum(axis=0))

    def excess(self, one: int, other: int) -> float:
        """How much higher the loss of lane `one` is than that of `other` in the last half of the rows.

        In standard errors. With the difference d_b in block b, its importance w_b and m = sum d / sum w, one
        is that of a ratio: sqrt(B / (B - 1) sum (d_b - m w_b)^2) for B blocks.
        """
        late = self.late()
        weights, difference = late[:, 0], late[:, 1 + one] - late[:, 1 + other]
        total, count = float(difference.sum()), len(late)
        centred = difference - total / (float(weights.sum()) or 1.0) * weights
        error = math.sqrt(float(centred @ centred) * count / max(count - 1, 1))
        return total / error if error else 0.0


def _width(done: int) -> int:
    """Number of rows of a block that begins at row `done`."""
    return max(_NARROWEST, (1 << done.bit_length() >> 1) // _BLOCKS)


class Tuner:
    """Draws settings round by round, and keeps the best model.

    The first round takes each of the `rules` with its defaults, then settings drawn log-uniformly from their
    ranges; later rounds draw near the best so far, in shrinking steps. The settings of a round learn side by
    side from the first row on, and are compared up to row `until` (None: all rows). ValueError for numbers
    out of range, and for a rule that cannot be combined with the rest of `base`.
    """

    def __init__(
        self, base: Recipe, rules: str | Sequence[str] = RULES, budget: int = 64, until: int | None = None
    ) -> None:
        self.base, self.rules = base, rules_of(rules)
        for rule in self.rules:
            Model(replace(base, rule=rule, rate=None, layout=None))
        self.until = until
        self._open = [rule for rule in self.rules if ranges_of(rule)]
        near, few = budget // 4, budget < max(8, 2 * len(self.rules))
        self.rounds = [budget] if few else [budget - 2 * near, near, near]
        """number of settings in each round: half from the whole ranges, the rest near the best; few in one"""
        if not self._open:
            self.rounds = [min(budget, len(self.rules))]
        self.trials: list[Trial] = []
        self.chosen: int | None = None
        """number of the best trial"""
        self.model: Model | None = None
        """the best model, which has learned all rows"""
        self.late: tuple[float, float] = (0.0, 0.0)
        """its loss after row `until`, and the importance of these rows"""
        self._error: DivergedError | None = None

    def draw(self, number: int) -> ModelSet:
        """Lanes for round `number`, from 0."""
        rng = np.random.default_rng([self.base.seed, number])
        count = self.rounds[number]
        drawn = self._anywhere(count, rng) if number == 0 else self._near(count, 0.5**number, rng)
        recipes = [replace(self.base, rule=rule, rate=None) for rule in drawn]
        self.trials += [
            Trial(str(one.rule), None if one.rate is None else str(one.rate), number + 1) for one in recipes
        ]
        until = _WHOLE if self.until is None else self.until
        return ModelSet(recipes, race=Race(count, until))

    def _anywhere(self, count: int, rng: np.random.Generator) -> list[Any]:
        found = list(self.rules[:count])
        while len(found) < count:
            rule = self._open[len(found) % len(self._open)]
            drawn = {
                name: math.exp(rng.uniform(math.log(low), math.log(high)))
                for name, (low, high) in ranges_of(rule).items()
            }
            found.append(with_values(rule, drawn))
        return found

    def _near(self, count: int, width: float, rng: np.random.Generator) -> list[Any]:
        tried = sorted(
            (float(one.late_loss), k) for k, one in enumerate(self.trials) if one.late_loss is not None
        )
        rules = [parts.rule_of(self.trials[k].rule, self.trials[k].rate) for _, k in tried]
        best = [rule for rule in rules if ranges_of(rule)][:_PARENTS]
        found = []
        for k in range(count if best else 0):
            parent = best[k % len(best)]
            moved = values_of(parent)
            for name, (low, high) in ranges_of(parent).items():
                reach = width * math.log(high / low) / 2
                moved[name] *= math.exp(rng.uniform(-reach, reach))
            found.append(with_values(parent, moved))
        return found or self._anywhere(count, rng)

    def settle(self, lanes: ModelSet, error: DivergedError | None = None) -> None:
        """Record the results of a round; `error` is set if all lanes diverged."""
        self._error = self._error or error
        lanes.race.end_of_block(lanes, over=True)
        first = len(self.trials) - len(lanes.models)
        losses = (lanes.race.losses() / (float(lanes.race.late()[:, 0].sum()) or 1.0)).tolist()
        for k, model in enumerate(lanes.models):
            trial = self.trials[first + k]
            trial.dropped = lanes.dropped.get(k)
            trial.rows = lanes.examples if k in lanes.alive else lanes.parts[0].left_at[k]
            trial.progressive_loss = model.tally.known
            if k in lanes.alive:
                trial.late_loss = losses[k]
        for k in lanes.alive:
            best = None if self.chosen is None else self.trials[self.chosen].late_loss
            if best is None or losses[k] < best:
                self.chosen = first + k
        if self.chosen is not None and self.chosen >= first:
            self.model = copy(lanes.models[self.chosen - first])
            now, then = self.model.tally, lanes.race.sums[-1]
            self.late = now[0] - then[1 + self.chosen - first], now[1] - then[0]

    def winner(self) -> tuple[Trial, Model]:
        """The best trial and model. Raises `DivergedError` if no setting finished training."""
        if self.model is None or self.chosen is None:
            raise self._error or DivergedError("no setting finished training")
        return self.trials[self.chosen], self.model


def judged_rows(rows: int) -> int:
    """Number of rows used for choosing; the last tenth of `rows` is kept for the report."""
    return rows - -(-rows // 10)


class _HeldOut(Holdout):
    """Rows that are held out of all readings and evaluated only at the end. Others may be kept in memory."""

    def __init__(self, every: HeldOutPart, budget: int, order: Order) -> None:
        super().__init__(every)
        self._budget, self._order = budget, order
        self._memory: ReplayBuffer | None = None

    def rest(self, source: Source) -> Source:
        """The other rows, from memory if an earlier reading could keep them all."""
        rest = super().rest(source)
        if not self._budget or (self._memory is not None and self._memory.dropped):
            return rest
        if self._memory is None or not self._memory.complete:
            self._memory = ReplayBuffer(rest, self._budget, held=self._order.held)
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
        ui: Ui,
        every: HeldOutPart = 0,
        passes: int = 1,
        replay: int = 0,
    ) -> None:
        self.tuner, self._order, self._held, self._passes = tuner, order, held, passes
        automatic = any(type(rule).AUTOMATIC for rule in tuner.rules)
        self._holdout = _HeldOut(every, bytes_to_keep(replay, automatic, "these rules"), order)
        self._counts = held is None and not every
        readings = len(tuner.rounds) + self._counts + (passes if passes > 1 else 0)
        self._reads = Passes(source, 1 if order.held else readings, cached=cached)
        self._ui = ui
        self._started = self._counts
        self.interrupted = False
        """whether Ctrl-C came when the best setting was known, and learned in further passes"""
        self.lines: Report | None = None
        """line counts of the data"""
        self.weightless = 0
        """rows of importance 0 in a reading"""
        self.warnings: list[Finding] = []
        """trouble in the last reading, which has the best settings"""
        self._columns = columns_seen(source)

    def run(self) -> None:
        """Run all rounds. Raises `DataError`."""
        if self._counts:
            source = self._order.over(self._holdout.rest(self._reads.first), 1)
            with closing(source.chunks()) as chunks:
                rows = sum(len(chunk.counting()) for chunk in chunks)
            self.lines = self._reads.first.report
            self.tuner.until = judged_rows(rows)
        for number in range(len(self.tuner.rounds)):
            lanes, error = self.tuner.draw(number), None
            try:
                outcome = self._trainer(lanes, TrainingPlan(1, None)).run()
                self.warnings, self.weightless = outcome.warnings, outcome.figures.get("importance_0", 0)
                self.lines = self.lines or outcome.reports[0]
            except DivergedError as found:
                error = found
            self.tuner.settle(lanes, error)
            if self.tuner.chosen is not None:
                best, rounds = self.tuner.trials[self.tuner.chosen], len(self.tuner.rounds)
                settings = len(self.tuner.trials)
                self._ui.say(f"round {number + 1} of {rounds}, {settings} settings: {best.rule}")
        if self.tuner.model is not None:
            self._learn_again(self.tuner.model)

    def _learn_again(self, best: Model) -> None:
        """Train the best setting anew, if it makes more than one pass."""
        passes = max(self._passes, self._holdout.passes_of(best))
        if passes == 1:
            return
        stopper = Stopper()
        extras = {"reread": self._reads.later, "stopper": stopper}
        trainer = self._trainer(Model(best.recipe), TrainingPlan(passes, None), **extras)
        stopper.listen_here()
        try:
            self.warnings, self.tuner.model = trainer.run().warnings, trainer.model
        except DivergedError as error:
            kept = "the best setting is kept as it was after one pass, since it diverged in a later one"
            self.warnings = [*self.warnings, Finding("diverged", f"{kept}: {error}")]
        except Interrupted:
            self.interrupted = True
            kept = "interrupted in the passes of the best setting, which is kept as it was after the first"
            found = Finding("ended-early", f"{kept}: train again for the other passes")
            self.warnings = [*self.warnings, found]
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
                self.warnings = [*self.warnings, weightless_held_out()]
            report = {**finite(found)}
        else:
            loss, weight = self.tuner.late
            examples = trial.rows - (self.tuner.until or 0)
            report = {"examples": examples, "loss": loss / weight if weight else None}
        return Tuned(model, self.tuner.trials, self.tuner.chosen or 0, report, self.warnings)

    def command(self, data: Sequence[str], options: Options) -> str:
        """The command that trains the best setting alone."""
        trial, model = self.tuner.winner()
        recipe, passes = model.recipe, passes_said(model.record.passes if model.record else 1, model.recipe)
        own: dict[str, Any] = {"rule": trial.rule, "rate": trial.rate, "passes": passes}
        own |= {} if recipe.centre == recipe.centred_by_default else {"centre": recipe.centre}
        return train_command(data, Path(options["model"]), options, holdout=options["holdout"], **own)


def prepare(data: Data, options: Options, ui: Ui, *, outputs: Sequence[Path | None] = ()) -> Search:
    """Prepare a search over settings; `outputs` are files that will be written. `UsageError`, `DataError`."""
    for name in VARIED:
        if name in given_in(options):
            raise UsageError(
                f"{mention(name)} is varied by tune: leave it out; {mention('rules')} names the rules to try"
            )
    every, judge = held_apart(options)
    made, kept = passes_asked(options)
    rules = RULES if options["rules"] is None else options["rules"]
    with of_options():
        # columns are centred if they are for one of the rules by default
        centre = any(is_centred(rule, options["scale"], options["centre"]) for rule in rules_of(rules))
    base, read = recipe_for(
        data, options.but(rule=DEFAULT_RULE, centre=centre), layout_asked(options), every, ui
    )
    source = open_data(data, base.objective.domain, **read)
    held = holdout_of(judge, base.objective.domain, source, read, once=True)
    check_written(outputs, options, data, source, held)
    with of_options():
        tuner = Tuner(replace(base, layout=source.layout), rules, options["budget"])
    order = make_order(options["order"] or "as-is", base.seed)
    return Search(tuner, source, order, held, options["cache"], ui, every, made, kept)
