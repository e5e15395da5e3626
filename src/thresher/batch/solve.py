"""The rounds: a certificate over all columns, then sweeps over the active ones, until it is small."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.batch import kernels
from thresher.batch.csc import Columns

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

BLOCKS = 16
"""Work is split into this many pieces for any number of threads, so that sums do not depend on it."""
SWEEPS = 20
"""Maximum number of sweeps between two certificates."""
_EASE = 0.1
"""Sweeps end when the largest violation found is at most this share of the certificate before them."""
_ADVANCE, _RETREAT = 0.9, 1.5
"""Factors for the widths of the parallel update after a step within its bound, and after one beyond it."""
_NOISE = 1e-6
"""The certificate's unit is at least this share of a column's mass, in case all gradients vanish at first."""


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
class Plan:
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
        for name in ("l1", "l2", "tolerance", "rounds", "threads", "seed"):
            value, real = getattr(self, name), name in ("l1", "l2", "tolerance")
            if not isinstance(value, Real if real else Integral) or isinstance(value, bool):
                raise ValueError(f"{name} must be a {'' if real else 'whole '}number, not {value!r}")
        for name in ("l1", "l2", "tolerance"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be >= 0, not {getattr(self, name):g}")
        for name, least in (("rounds", 1), ("threads", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
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


class Solver:
    """Minimises sum_i c_i loss(y_i, w.x_i + b) + l1 |w|_1 + l2 |w|^2 / 2 over w and, if present, b.

    `w` holds the weights, followed by the intercept. `z`, `q` and `value` (n,) are y times the margin, the
    mass, and loss times importance of each example. `up`, `down` and `gap` are the masses and the violation
    of each column when last computed; `ease` is the share of its proved width that each column now uses.
    """

    def __init__(self, columns: Columns, loss: Any, plan: Plan) -> None:
        self.columns, self.loss, self.plan = columns, loss, plan
        self.penalties = (float(plan.l1), float(plan.l2))
        count, examples = len(columns.starts) - 1, len(columns.labels)
        self.w, self.up, self.down, self.gap = (np.zeros(count) for _ in range(4))
        self.z, self.q, self.value = (np.zeros(examples) for _ in range(3))
        self.all = np.arange(count)
        self.widths = np.maximum.reduceat(np.abs(columns.values), columns.starts[:-1]).astype(np.float64)
        self.ease = np.ones(count)
        self.unit, self.one_sided = 1.0, 0
        self._pool: ThreadPoolExecutor | None = None
        self._order = ORDERS[plan.order](self)

    def run(self, callback: Callable[[Round], None] = lambda _: None) -> Round:
        """Solve, calling `callback` with every round; returns the last round, that of the final `w`."""
        with ThreadPoolExecutor(self.plan.threads) as pool:
            self._pool = pool if self.plan.threads > 1 else None
            return self._rounds(callback)

    def _rounds(self, callback: Callable[[Round], None]) -> Round:
        started, sweeps = time.perf_counter(), 0
        self._start()
        for number in range(self.plan.rounds + 1):
            self.measure(self.all)
            row = Round(
                number,
                sweeps,
                self.objective(),
                self.certificate,
                int(np.count_nonzero(self.w[: self.columns.features])),
                time.perf_counter() - started,
            )
            callback(row)
            if row.certificate <= self.plan.tolerance:
                break
            if number < self.plan.rounds:
                sweeps += self._sweeps()
        return row

    def _start(self) -> None:
        """Fit the intercept alone, and compute the unit of the certificate there."""
        self.weigh()
        self.measure(self.all)
        sided = (self.up > 0) != (self.down > 0)
        self.one_sided = int(np.count_nonzero(sided[: self.columns.features]))
        if self.columns.intercept and not sided[-1]:
            for _ in range(SWEEPS):
                if self.sweep(self.all[-1:]) <= _NOISE * self.q.sum():
                    break
            self.measure(self.all)
        pulls, sums = np.abs(self.up - self.down), self.up + self.down
        pulls = pulls[: self.columns.features]
        self.unit = float(max(pulls.max(initial=0.0), _NOISE * sums.max(initial=0.0))) or 1.0

    def _sweeps(self) -> int:
        """Sweep over the columns with a nonzero weight or a violation; returns the number of sweeps."""
        chosen = np.flatnonzero((self.w != 0) | (self.gap > 0))
        self._order.choose(chosen)
        enough = _EASE * self.certificate * self.unit
        for done in range(1, SWEEPS + 1):
            if self._order.sweep() <= enough:
                return done
        return SWEEPS

    @property
    def certificate(self) -> float:
        """Largest violation of the optimality conditions when last computed for all columns, in units.

        The unit is the largest gradient of a feature with all weights zero and the intercept fitted: the
        smallest l1 at which no feature is used.
        """
        return float(self.gap.max(initial=0.0)) / self.unit

    def objective(self) -> float:
        """The loss plus the penalties."""
        (l1, l2), w = self.penalties, self.w[: self.columns.features]
        return self.weigh() + l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(np.square(w).sum())

    def endless(self) -> str | None:
        """Why the objective has no minimum, if that is known; None otherwise."""
        alike = len(np.unique(self.columns.labels[self.columns.weights > 0])) < 2
        unpenalised = not any(self.penalties)
        if alike and (self.columns.intercept or unpenalised):
            return "all examples are of one class"
        if unpenalised and (self.z > 0)[self.columns.weights > 0].all():
            return "the classes are separable and nothing is penalised"
        if unpenalised and self.one_sided:
            return f"{self.one_sided:,} features support one class only and nothing is penalised"
        return None

    def measure(self, chosen: I64) -> None:
        """Compute the masses and violations of the chosen columns."""
        c, w = self.columns, self.w

        def work(block: int, lo: int, hi: int) -> None:
            masses = self.up, self.down, self.gap
            kernels.measure(
                chosen, lo, hi, c.starts, c.rows, c.values, self.penalties, c.features, w, self.q, *masses
            )

        self.spread(work, self.cuts(chosen))

    def sweep(self, chosen: I64) -> float:
        """Move one column after the other; returns the largest violation found."""
        c = self.columns
        compiled = kernels.sweep.for_parts(self.loss)
        held = self.widths, self.ease, self.penalties, c.features
        examples = c.labels, c.weights, self.w, self.z, self.q, self.value
        return float(compiled(self.loss, chosen, c.starts, c.rows, c.values, *held, *examples))

    def weigh(self) -> float:
        """Compute the mass of every example; returns the sum of losses."""
        c, compiled = self.columns, kernels.weigh.for_parts(self.loss)

        def work(block: int, lo: int, hi: int) -> float:
            return float(compiled(self.loss, lo, hi, c.labels, c.weights, self.z, self.q, self.value))

        return float(sum(self.spread(work, self.row_cuts())))

    def spread(self, work: Callable[[int, int, int], Any], cuts: I64) -> list[Any]:
        """Call ``work(block, lo, hi)`` for all pieces between cuts, in threads; results are in order."""
        spans = list(zip(range(BLOCKS), cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
        if self._pool is None:
            return [work(*span) for span in spans]
        strands = self.plan.threads
        done = self._pool.map(lambda first: [work(*span) for span in spans[first::strands]], range(strands))
        results: list[Any] = [None] * BLOCKS
        for first, found in enumerate(done):
            results[first::strands] = found
        return results

    def row_cuts(self) -> I64:
        """Cuts of the examples into `BLOCKS` pieces."""
        return np.linspace(0, len(self.z), BLOCKS + 1).astype(np.int64)

    def cuts(self, chosen: I64) -> I64:
        """Cuts of the chosen columns into `BLOCKS` pieces with about the same number of stored values."""
        ends = np.cumsum(self.columns.starts[chosen + 1] - self.columns.starts[chosen])
        wanted = np.linspace(0, ends[-1] if len(ends) else 0, BLOCKS + 1)
        cuts = np.searchsorted(ends, wanted[1:-1])
        return np.concatenate([[0], cuts, [len(chosen)]]).astype(np.int64)


class Cyclic:
    """One column after the other, in the order of their keys."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.chosen: I64 = np.empty(0, np.int64)

    def choose(self, chosen: I64) -> None:
        """Set the columns to sweep over."""
        self.chosen = chosen

    def sweep(self) -> float:
        """Move every chosen column once; returns the largest violation found."""
        return self.solver.sweep(self.chosen)


class Random(Cyclic):
    """One column after the other, in a new random order for each sweep."""

    def __init__(self, solver: Solver) -> None:
        super().__init__(solver)
        self._rng = np.random.default_rng(solver.plan.seed)

    def sweep(self) -> float:
        """Move every chosen column once; returns the largest violation found."""
        return self.solver.sweep(self._rng.permutation(self.chosen))


class Parallel:
    """All chosen columns at once, each with a step that allows for the moves of the others.

    The widths of the bound hold for the worst row. `ease` < 1 narrows them, which gives longer steps. While
    the loss stays below the narrower bound, `ease` is reduced further; a step beyond the bound is undone
    and repeated with a larger `ease`. At 1 the bound always holds.
    """

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.ease = 1.0
        self._parts = np.zeros((BLOCKS, len(solver.z)))
        self._widths = np.zeros(len(solver.w))
        self._before = np.zeros_like(solver.w), np.zeros_like(solver.z)
        self._chosen: I64 = np.empty(0, np.int64)
        self._cuts = solver.cuts(self._chosen)

    def choose(self, chosen: I64) -> None:
        """Set the columns to move, and compute widths from the sum of |x| over them in each row."""
        self._chosen, self._cuts = chosen, self.solver.cuts(chosen)
        c, sums = self.solver.columns, np.zeros(len(self.solver.z))

        def widen(block: int, lo: int, hi: int) -> None:
            kernels.widen(chosen, lo, hi, c.starts, c.rows, c.values, self._parts[block])

        def widest(block: int, lo: int, hi: int) -> None:
            kernels.widest(chosen, lo, hi, c.starts, c.rows, c.values, sums, self._widths)

        self.solver.spread(widen, self._cuts)
        self._gather(sums)
        self.solver.spread(widest, self._cuts)

    def sweep(self) -> float:
        """Move all chosen columns by one step; returns the largest violation before it."""
        s = self.solver
        loss = s.weigh()
        s.measure(self._chosen)
        for kept, array in zip(self._before, (s.w, s.z), strict=True):
            kept[:] = array
        while not self._step(loss):
            self.ease = min(1.0, self.ease * _RETREAT)
            s.w[:], s.z[:] = self._before
        self.ease *= _ADVANCE
        return float(s.gap[self._chosen].max(initial=0.0))

    def _step(self, loss: float) -> bool:
        """Move; returns whether the bound held (always true at the proved width)."""
        s, c, chosen = self.solver, self.solver.columns, self._chosen

        def move(block: int, lo: int, hi: int) -> float:
            held = self._widths, self.ease, s.penalties, c.features
            out = s.w, s.up, s.down, self._parts[block]
            return float(kernels.move(chosen, lo, hi, c.starts, c.rows, c.values, *held, *out))

        bound = sum(s.spread(move, self._cuts))
        self._gather(s.z)
        return s.weigh() <= loss + bound or self.ease == 1.0

    def _gather(self, out: F64) -> None:
        cuts = self.solver.row_cuts()
        self.solver.spread(lambda block, lo, hi: kernels.gather(self._parts, lo, hi, out), cuts)


ORDERS: dict[str, Any] = {"cyclic": Cyclic, "random": Random, "parallel": Parallel}
