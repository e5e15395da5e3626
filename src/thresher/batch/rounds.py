"""The objective and the settings of the batch solvers, and their rounds.

A round is a certificate over all columns, then sweeps over the active ones, until the certificate is small.

The default draws a new order of columns for every sweep. AdaBoost's step is exact only for features in {-1,
0, 1}; for text its bound is three to ten times too wide. Adapting the widths to the observed loss took
`random` from 72 sweeps to 12 on 20,000 rows of RCV1-like text, and `parallel` from 3,420 to about 400
(docs/boost.md). `cyclic` went from 71 to 161: with nearly exact steps, a fixed order is slow where features
are correlated.

A loss says whether it can be boosted (`BOOSTABLE`), so the solver names none: it gets mass and loss of an
example from `value_slope`.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.options.checks import MOST_SEED, check_whole

ORDERS = ("cyclic", "random", "parallel")


class Round(NamedTuple):
    """The state at the start of a round; round 0 is the model without features."""

    number: int
    sweeps: int
    """sweeps so far over the chosen columns"""
    objective: float
    certificate: float
    nonzero: int
    """nonzero weights, without the intercept"""
    seconds: float


@dataclass(frozen=True)
class BoostPlan:
    """The objective and the settings of the solver.

    Raises ValueError for a number out of range or an unknown order.
    """

    l1: float = 1.0
    l2: float = 0.0
    order: str = "random"
    tolerance: float = 1e-4
    rounds: int = 1000
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("l1", "l2", "tolerance"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be >= 0, not {getattr(self, name):g}")
        check_whole("seed", self.seed, 0, MOST_SEED)
        if self.order not in ORDERS:
            raise ValueError(f"no order is called {self.order!r}; known: {', '.join(ORDERS)}")


def loss_of(spec: Any) -> Any:
    """The loss of a SPEC; raises ValueError unless the solver's bound holds for it."""
    loss = parts.make("loss", spec)
    if not loss.BOOSTABLE:
        able = [name for name in sorted(parts.REGISTRY["loss"]) if parts.lookup("loss", name).BOOSTABLE]
        raise ValueError(
            f"boost does not support the loss {parts.part_name(type(loss))}; choose {' or '.join(able)}"
        )
    return loss


F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

SWEEPS = 20
"""Maximum number of sweeps between two certificates."""
NOISE = 1e-6
"""The certificate's unit is at least this share of a column's mass, in case all gradients vanish at first."""
_EASE = 0.1
"""Sweeps end when the largest violation found is at most this share of the certificate before them."""


class Rounds(ABC):
    """Minimises sum_i c_i loss(y_i, w.x_i + b) + l1 |w|_1 + l2 |w|^2 / 2 over w and, if present, b.

    `keys` (d,) are those of the features. `w` holds the weights, followed by the intercept. `up`, `down` and
    `gap` are the masses and the violation of each column when last computed. Subclasses say how columns move.
    """

    examples: int

    def __init__(
        self, keys: NDArray[np.uint64], intercept: bool, lowest_label: float, plan: BoostPlan
    ) -> None:
        self.keys, self.intercept, self.lowest_label, self.plan = keys, intercept, lowest_label, plan
        self.penalties = (float(plan.l1), float(plan.l2))
        self.w, self.up, self.down, self.gap = (np.zeros(len(keys) + intercept) for _ in range(4))
        self.all = np.arange(len(self.w))
        self.chosen = self.all
        self.unit, self.one_sided = 1.0, 0

    @abstractmethod
    def measure_all(self) -> None:
        """Compute the masses and violations of all columns."""

    @abstractmethod
    def weigh(self) -> float:
        """The sum of losses; computes the mass of every example."""

    @abstractmethod
    def fit_intercept(self) -> None:
        """Move the intercept alone to its minimum, or near it."""

    @abstractmethod
    def move(self) -> float:
        """Move every chosen column once; returns the largest violation found."""

    @abstractmethod
    def labels_and_sides(self) -> tuple[bool, bool]:
        """Whether all examples that count are of one class, and whether all are on the right side."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held for the work."""

    def choose(self, chosen: I64) -> None:
        """Set the columns to sweep over, ascending."""
        self.chosen = chosen

    def run(self, callback: Callable[[Round], None] = lambda _: None) -> Round:
        """Solve, calling `callback` with every round; returns the last round, that of the final `w`."""
        started, sweeps = time.perf_counter(), 0
        self._start()
        for number in range(self.plan.rounds + 1):
            self.measure_all()
            row = Round(
                number,
                sweeps,
                self.objective(),
                self.certificate,
                int(np.count_nonzero(self.w[: len(self.keys)])),
                time.perf_counter() - started,
            )
            callback(row)
            if row.certificate <= self.plan.tolerance:
                break
            if number < self.plan.rounds:
                self.choose(np.flatnonzero((self.w != 0) | (self.gap > 0)))
                enough = _EASE * self.certificate * self.unit
                for _ in range(SWEEPS):
                    sweeps += 1
                    if self.move() <= enough:
                        break
        return row

    def _start(self) -> None:
        """Fit the intercept alone, and compute the unit of the certificate there."""
        self.weigh()
        self.measure_all()
        sided = (self.up > 0) != (self.down > 0)
        self.one_sided = int(np.count_nonzero(sided[: len(self.keys)]))
        if self.intercept and not sided[-1]:
            self.fit_intercept()
            self.measure_all()
        pulls, sums = np.abs(self.up - self.down), self.up + self.down
        pulls = pulls[: len(self.keys)]
        self.unit = float(max(pulls.max(initial=0.0), NOISE * sums.max(initial=0.0))) or 1.0

    @property
    def certificate(self) -> float:
        """Largest violation of the optimality conditions when last computed for all columns, in units.

        The unit is the largest gradient of a feature with all weights zero and the intercept fitted: the
        smallest l1 at which no feature is used.
        """
        return float(self.gap.max(initial=0.0)) / self.unit

    def objective(self) -> float:
        """The loss plus the penalties."""
        (l1, l2), w = self.penalties, self.w[: len(self.keys)]
        return self.weigh() + l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(np.square(w).sum())

    def endless(self) -> str | None:
        """Why the objective has no minimum, if that is known; None otherwise."""
        alike, separated = self.labels_and_sides()
        unpenalised = not any(self.penalties)
        if alike and (self.intercept or unpenalised):
            return "all examples are of one class"
        if unpenalised and separated:
            return "the classes are separable and nothing is penalised"
        if unpenalised and self.one_sided:
            return f"{self.one_sided:,} features support one class only and nothing is penalised"
        return None
