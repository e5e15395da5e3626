"""Settings of several rules, drawn round by round: later ones are close to good ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from thresher import parts
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.plans.models import Trial
from thresher.plans.race import WHOLE, Race

RULES = ("ft-ftrl", "adagrad-fobos")
"""More were tried: of 23 sets `ftrl` was chosen on one, iPinYou, where its test loss is 1.4 times the
default's, and `normalized` on none."""
_PARENTS = 4
Range = tuple[float, float]


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
        tried = sorted(
            (float(one.late_loss), k) for k, one in enumerate(self.trials) if one.late_loss is not None
        )
        rules = [parts.rule_of(self.trials[k].rule, self.trials[k].rate) for _, k in tried]
        best = [rule for rule in rules if ranges_of(rule)][:_PARENTS]
        drawn = list[Any]()  # near the best so far, each round nearer; in the first one, anywhere
        for k in range(count if best and number else 0):
            parent = best[k % len(best)]
            moved = values_of(parent)
            for name, (low, high) in ranges_of(parent).items():
                reach = 0.5**number * math.log(high / low) / 2
                moved[name] *= math.exp(rng.uniform(-reach, reach))
            drawn.append(with_values(parent, moved))
        drawn = drawn or self._anywhere(count, rng)
        recipes = [replace(self.base, rule=rule, rate=None) for rule in drawn]
        self.trials += [
            Trial(str(one.rule), None if one.rate is None else str(one.rate), number + 1) for one in recipes
        ]
        until = WHOLE if self.until is None else self.until
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

    def settle(self, lanes: ModelSet, error: DivergedError | None = None) -> None:
        """Record the results of a round; `error` is set if all lanes diverged."""
        self._error = self._error or error
        lanes.race.end_of_block(lanes, over=True)
        first = len(self.trials) - len(lanes.models)
        weight = float(lanes.race.late()[:, 0].sum()) or 1.0
        losses = [loss / weight for loss in lanes.race.losses().tolist()]
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
