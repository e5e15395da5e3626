"""The objective and the settings of the batch solvers, and their rounds, each with a certificate.

A loss says how it can be minimised, so the solvers name none: by Newton's method if it defines `curvature`,
by parallel steps if it is `BOOSTABLE`.
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
from thresher.data.errors import OneLineError
from thresher.engine.protocol import KINDS, writes
from thresher.options.messages import mention, mention_command

METHODS = ("newton", "parallel")


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

    Raises ValueError for a number out of range or an unknown method.
    """

    l1: float = 1.0
    l2: float = 0.0
    deviations: bool = False
    """whether penalties are in standard deviations of noise, see `newton.settled`"""
    method: str = "newton"
    tolerance: float = 1e-4
    rounds: int = 1000
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("l1", "l2", "tolerance"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be >= 0, not {getattr(self, name):g}")
        if self.method not in METHODS:
            raise ValueError(f"no method is called {self.method!r}; known: {', '.join(METHODS)}")
        if self.deviations and self.method == "parallel":
            raise OneLineError(f"{mention(l1='2sd')} is for {mention(method='newton')}: give a number")


def loss_of(spec: object, method: str = "newton") -> Any:
    """The loss of a SPEC; raises ValueError for one that the method does not minimise."""
    loss = parts.make("loss", spec)
    if not _solves(method, loss):
        names = sorted([*parts.REGISTRY["loss"], *parts.REGISTRY["joint loss"]])
        able = [name for name in names if _solves(method, parts.make("loss", name))]
        given = spec if isinstance(spec, str) else parts.part_name(type(loss))
        raise OneLineError(
            f"boost does not support the loss {given} with {mention(method=method)}; choose"
            f" {' or '.join(able)}, or learn it with {mention_command('train')}, {mention(loss=given)}"
        )
    return loss


def _solves(method: str, loss: Any) -> bool:
    """Whether a method minimises a loss."""
    if method == "parallel":
        return bool(loss.BOOSTABLE)
    if KINDS[type(loss)] == "loss":
        return writes(type(loss), "curvature")
    return loss.ONE is not None and writes(type(loss.ONE), "curvature")


F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

NOISE = 1e-6
"""The certificate's unit is at least this share of a column's mass, in case all gradients vanish at first."""


class Rounds(ABC):
    """Minimises sum_i c_i loss(y_i, w.x_i + b) + l1 |w|_1 + l2 |w|^2 / 2 over w and, if present, b.

    `keys` (d,) are those of the features. `w` holds the weights, followed by the intercept; `gap` is the
    violation of each column when last computed. Subclasses say how columns move.
    """

    examples: int

    def __init__(
        self,
        keys: NDArray[np.uint64],
        intercept: bool,
        lowest_label: float,
        plan: BoostPlan,
        outputs: tuple[int, ...] = (),
    ) -> None:
        self.keys, self.intercept, self.lowest_label, self.plan = keys, intercept, lowest_label, plan
        self.w, self.gap = (np.zeros((len(keys) + intercept, *outputs)) for _ in range(2))
        self.unit = 1.0

    def penalise(self, plan: BoostPlan) -> None:
        """Let the next run have other penalties."""
        self.plan = plan

    @abstractmethod
    def start(self) -> None:
        """Compute the unit of the certificate."""

    @abstractmethod
    def measure_all(self) -> None:
        """Compute the violations of all columns."""

    @abstractmethod
    def objective(self) -> float:
        """The loss plus the penalties."""

    @abstractmethod
    def improve(self) -> int:
        """Move some columns; returns the sweeps over them."""

    @abstractmethod
    def endless(self) -> str | None:
        """Why the objective has no minimum, if that is known; None otherwise."""

    def close(self) -> None:  # noqa: B027
        """Let go of what is held for the work: nothing, unless a subclass holds something."""

    def run(self, callback: Callable[[Round], None] = lambda _: None) -> Round:
        """Solve, calling `callback` with every round; returns the last round, that of the final `w`."""
        started, sweeps = time.perf_counter(), 0
        self.start()
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
                sweeps += self.improve()
        return row

    @property
    def certificate(self) -> float:
        """Largest violation of the optimality conditions when last computed for all columns, in units.

        The unit is the largest gradient of a feature with all weights zero and the intercept fitted: the
        smallest l1 at which no feature is used.
        """
        return float(self.gap.max(initial=0.0)) / self.unit

    def why_endless(self, alike: bool, separated: bool, one_sided: int) -> str | None:
        """Why two classes have no best weights: rows are of one, all on their side, columns are of one."""
        unpenalised = not (self.plan.l1 or self.plan.l2)
        if alike and (self.intercept or unpenalised):
            return "all examples are of one class"
        if unpenalised and separated:
            return "the classes are separable and nothing is penalised"
        if unpenalised and one_sided:
            return f"{one_sided:,} features support one class only and nothing is penalised"
        return None
