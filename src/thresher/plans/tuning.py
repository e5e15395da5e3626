"""Tuning: many settings of several rules race in a few readings; later settings are close to good ones.

Rows are counted first. The rows that `tune` reports on must not influence any choice, not even which settings
are dropped at a mark, so it must know before the first race where the last tenth begins. Counting takes one
reading, which fills the cache for the others. Settings are compared over the last half of the rows used to
choose, as in any race, so settings from different rounds can be compared too. At a mark, the worse half is
dropped only if it is two standard errors worse: lanes of an octet cost nothing extra, and slow starters won
on several sets. More rules were tried as defaults: of 23 sets `ftrl` was chosen on one, iPinYou, where its
test loss is 1.4 times the default's, and `normalized` on none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher import parts
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.options.checks import check_whole
from thresher.plans.race import Race, RaceRecord

RULES = ("ft-ftrl", "adagrad-fobos")
FIRST = 1024
"""rows before any lane is dropped"""
MOST = 4096
_LEFT = 4
"""minimum number of lanes that learn to the end of a round"""
_BEHIND = 2.0
"""standard errors by which a dropped lane is worse than the best"""
_PARENTS = 4
_WHOLE = 1 << 62
Range = tuple[float, float]


def ranges_of(rule: Any) -> dict[str, Range]:
    """The parameters of a rule worth tuning, with their ranges; a field of its rate is ``rate.eta0``."""
    own = getattr(type(rule), "TUNED", None)
    if own is None:  # the rule does not say: a factor of 100 around its penalties
        given = {name: float(getattr(rule, name)) for name in rule.PENALTIES}
        own = {name: (v / 100, v * 100) for name, v in given.items() if 0 < v < math.inf}
    found = dict(own)
    if hasattr(rule, "rate"):
        found |= {f"rate.{name}": ends for name, ends in getattr(type(rule.rate), "TUNED", {}).items()}
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


@dataclass
class Trial:
    """A setting and its results."""

    rule: str
    """its SPEC"""
    rate: str | None
    round: int
    """round in which it was drawn, from 1"""
    rows: int = 0
    """number of rows learned"""
    progressive_loss: float | None = None
    """over these rows; None if nothing was learned"""
    late_loss: float | None = None
    """over the last half of the rows used for choosing; the criterion; None if dropped"""
    dropped: str | None = None
    """why it was dropped, or None"""


def rules_of(given: str | Sequence[str]) -> list[Any]:
    """The rules of these names. ValueError."""
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else given
    if not names or len(set(names)) < len(names):
        raise ValueError("rules: name one or more, each once")
    if with_parameters := [name for name in names if ":" in name]:
        raise ValueError(f"rules: remove the parameters, which are tuned, from {with_parameters[0]}")
    return [parts.make("rule", name) for name in names]


def _halve(record: RaceRecord, lanes: ModelSet, last: bool) -> None:
    """Drop the weaker half, except for lanes only slightly worse than the best; none at the last mark."""
    if last:
        return  # the lanes that are left learn all rows
    losses = record.losses()
    ranked = sorted(lanes.alive, key=lambda k: (losses[k], k))
    for k in ranked[max(len(ranked) // 2, _LEFT) :]:
        behind = record.excess(k, ranked[0])
        if behind.errors >= _BEHIND:
            more = 100 * (losses[k] / losses[ranked[0]] - 1) if losses[ranked[0]] > 0 else math.inf
            lanes.parts[0].drop(k, f"{more:.3g} % more loss than the best at row {lanes.examples:,}")


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
        check_whole("budget", budget, 1, MOST)
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
        return ModelSet(recipes, race=Race(_halve, count, FIRST, until))

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
        assert isinstance(lanes.race, Race)
        lanes.race.end(lanes)
        first = len(self.trials) - len(lanes.models)
        losses = lanes.race.record.averages()
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
            now, then = self.model.tally, lanes.race.record.sums(self.chosen - first)
            self.late = now[0] - then[0], now[1] - then[1]

    def winner(self) -> tuple[Trial, Model]:
        """The best trial and model. Raises `DivergedError` if no setting finished training."""
        if self.model is None or self.chosen is None:
            raise self._error or DivergedError("no setting finished training")
        return self.trials[self.chosen], self.model


def judged_rows(rows: int) -> int:
    """Number of rows used for choosing; the last tenth of `rows` is kept for the report."""
    return rows - -(-rows // 10)
