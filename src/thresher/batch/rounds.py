"""The objective and the settings of the batch solvers, and their rounds, each with a certificate.

A loss says how it can be minimised, so the solvers name none: by Newton's method if it defines `curvature`,
by parallel steps if it is `BOOSTABLE`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.batch.columns import FeatureColumns
from thresher.data.errors import OneLineError
from thresher.engine.protocol import KINDS, writes
from thresher.options.messages import mention, mention_command


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
    """whether penalties are in standard deviations of noise, see `newton.solve_in_deviations`"""
    method: str = "newton"
    tolerance: float = 1e-4
    rounds: int = 1000
    threads: int = 1

    def __post_init__(self) -> None:
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

    `w` holds the weights of the features, followed by the intercept, and `z` the margins of the rows (n,);
    `gap` is the violation of each column when last computed, and `all` are the numbers of the columns.
    Subclasses say how columns move. `plan` may be replaced between two runs; a run begins at `w`.
    """

    z: F64

    def __init__(self, columns: FeatureColumns, loss: Any, plan: BoostPlan, *outputs: int) -> None:
        self.columns, self.loss, self.plan = columns, loss, plan
        self.examples, self.features = len(columns.labels), len(columns.keys)
        self.w, self.gap = (np.zeros((len(columns.starts) - 1, *outputs)) for _ in range(2))
        self.unit, self.all = 1.0, np.arange(len(self.w))

    @abstractmethod
    def start(self) -> None:
        """Compute the unit of the certificate."""

    @abstractmethod
    def measure(self, chosen: I64) -> None:
        """Compute the violations of the chosen columns."""

    @abstractmethod
    def objective(self) -> float:
        """The loss plus the penalties."""

    @abstractmethod
    def improve(self) -> int:
        """Move some columns; returns the sweeps over them."""

    def run(self, callback: Callable[[Round], None] = lambda _: None) -> Round:
        """Solve, calling `callback` with every round; returns the last round, that of the final `w`."""
        started, sweeps = time.perf_counter(), 0
        self.start()
        for number in range(self.plan.rounds + 1):
            self.measure(self.all)
            nonzero = int(np.count_nonzero(self.w[: self.features]))
            found = sweeps, self.objective(), self.certificate, nonzero, time.perf_counter() - started
            row = Round(number, *found)
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

    def alike(self) -> bool:
        """Whether the labels of the rows that count let the intercept grow without end."""
        labels = self.columns.labels[self.columns.weights > 0]
        if self.loss.DOMAIN == "binary":
            return len(np.unique(labels > 0)) < 2
        return self.loss.DOMAIN == "nonnegative" and not labels.any()

    def endless(self) -> str | None:
        """Why the objective has no minimum, if that is known; None otherwise."""
        c, free = self.columns, not (self.plan.l1 or self.plan.l2)
        if self.loss.DOMAIN != "binary":
            return "all labels are 0" if c.intercept and self.alike() else None
        if self.alike() and (c.intercept or free):
            return "all examples are of one class"
        sides, counts, sided = np.where(c.labels > 0, 1.0, -1.0), c.weights > 0, 0
        if free and (self.z * sides > 0)[counts].all():
            return "the classes are separable and nothing is penalised"
        if free and self.features:
            signed = c.values * (sides * counts)[c.rows]
            one, other = (np.logical_or.reduceat(part > 0, c.starts[:-1]) for part in (signed, -signed))
            sided = int(np.count_nonzero((one != other)[: self.features]))
        return f"{sided:,} features support one class only and nothing is penalised" if sided else None
