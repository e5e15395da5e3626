"""Moving one column after the other, over all examples in the memory of this process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from thresher.batch import kernels
from thresher.batch.rounds import I64, NOISE, SWEEPS, BoostPlan, Round, Rounds
from thresher.batch.shards import FeatureColumns

BLOCKS = 16
"""Work is split into this many pieces for any number of threads, so that sums do not depend on it."""


class Solver(Rounds):
    """Moves one column at a time, in the order of the plan.

    `z`, `q` and `value` (n,) are y times the margin, the mass, and loss times importance of each example.
    `ease` is the share of its proved width that each column now uses.
    """

    def __init__(self, columns: FeatureColumns, loss: Any, plan: BoostPlan) -> None:
        super().__init__(columns.keys, columns.intercept, columns.lowest_label, plan)
        self.columns, self.loss = columns, loss
        self.z, self.q, self.value = (np.zeros(len(columns.labels)) for _ in range(3))
        self.widths = np.maximum.reduceat(np.abs(columns.values), columns.starts[:-1]).astype(np.float64)
        self.ease = np.ones(len(self.w))
        self._pool: ThreadPoolExecutor | None = None
        self._rng = np.random.default_rng(plan.seed)
        self._chosen: I64 = np.empty(0, np.int64)

    @property
    def examples(self) -> int:
        """Number of examples."""
        return len(self.z)

    def run(self, callback: Callable[[Round], None] = lambda _: None) -> Round:
        """Solve; see `Rounds.run`."""
        with ThreadPoolExecutor(self.plan.threads) as pool:
            self._pool = pool if self.plan.threads > 1 else None
            return super().run(callback)

    def close(self) -> None:
        """Nothing is held but memory."""

    def choose(self, chosen: I64) -> None:
        """Set the columns to sweep over."""
        self._chosen = chosen

    def move_chosen(self) -> float:
        """Move every chosen column once, in the order of keys or in a new random order."""
        chosen = self._chosen
        return self.sweep(self._rng.permutation(chosen) if self.plan.order == "random" else chosen)

    def fit_intercept(self) -> None:
        """Move the intercept alone."""
        for _ in range(SWEEPS):
            if self.sweep(self.all[-1:]) <= NOISE * self.q.sum():
                break

    def labels_and_sides(self) -> tuple[bool, bool]:
        """See `Rounds`."""
        counts = self.columns.weights > 0
        return len(np.unique(self.columns.labels[counts])) < 2, bool((self.z > 0)[counts].all())

    def measure_all(self) -> None:
        """Compute the masses and violations of all columns."""
        self.measure(self.all)

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

        return float(sum(self.spread(work, np.linspace(0, len(self.z), BLOCKS + 1).astype(np.int64))))

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

    def cuts(self, chosen: I64) -> I64:
        """Cuts of the chosen columns into `BLOCKS` pieces with about the same number of stored values."""
        ends = np.cumsum(self.columns.starts[chosen + 1] - self.columns.starts[chosen])
        wanted = np.linspace(0, ends[-1] if len(ends) else 0, BLOCKS + 1)
        cuts = np.searchsorted(ends, wanted[1:-1])
        return np.concatenate([[0], cuts, [len(chosen)]]).astype(np.int64)
