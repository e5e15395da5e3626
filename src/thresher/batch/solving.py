"""Fitting a model with the batch solvers: which one an order needs, a new start after a loss, the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thresher.batch.parallel import Parallel
from thresher.batch.rounds import BoostPlan, Round, Rounds
from thresher.batch.shards import Here, Holder, LostWorkerError, columns_of, stripes
from thresher.batch.solve import Solver
from thresher.cluster.elsewhere import current_cluster
from thresher.data.formats.tables.column_statistics import ColumnSeen
from thresher.data.layout import has_columns
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.data.sources.pieces import prepare_readers
from thresher.learning.diagnostics.column_findings import (
    check_namespaces,
    troubles_of_columns,
    troubles_of_reading,
)
from thresher.learning.diagnostics.findings import FEW, Trouble
from thresher.learning.diagnostics.run_findings import no_weights
from thresher.learning.files import model_file
from thresher.learning.model.objective import Head
from thresher.learning.model.weights import Readout
from thresher.options.messages import mention


def solver_of(source: Source, intercept: bool, loss: Any, plan: BoostPlan) -> Rounds:
    """Read a whole pass of `source`, whose labels are +1 and either -1 or 0; raises its errors."""
    return _SOLVERS[plan.order](source, intercept, loss, plan)


def _one_by_one(source: Source, intercept: bool, loss: Any, plan: BoostPlan) -> Rounds:
    return Solver(columns_of(source, intercept), loss, plan)


def _at_once(source: Source, intercept: bool, loss: Any, plan: BoostPlan) -> Rounds:
    holder = _holder(plan.threads)
    try:
        rows = 0
        for chunk in source.chunks():
            counting = chunk.counting()
            for number, part in stripes(rows, counting):
                holder.add(number, part)
            rows += len(counting)
        return Parallel(holder, intercept, loss, plan)
    except BaseException:
        holder.close()
        raise


def _holder(threads: int) -> Holder:
    cluster = current_cluster()
    if cluster is None or cluster.connection.lost:
        return Here(threads)
    from thresher.batch.remote import There

    return There(cluster)


_SOLVERS: dict[str, Callable[[Any, bool, Any, BoostPlan], Rounds]] = {
    "cyclic": _one_by_one,
    "random": _one_by_one,
    "parallel": _at_once,
}


STORE = "growing"
TRIES = 3
"""How often the work is begun, if workers are lost."""


@dataclass(frozen=True)
class Solution:
    """The result of the solver."""

    plan: BoostPlan
    examples: int
    features_seen: int
    rounds: int
    sweeps: int
    objective: float
    certificate: float
    endless: str | None
    """why the objective has no minimum, if that is known"""
    seconds: float
    """total time, including reading, but not the start of readers"""

    @property
    def converged(self) -> bool:
        """Whether the certificate is within the tolerance."""
        return self.certificate <= self.plan.tolerance


class Boosted(Readout):
    """A fitted model with float64 weights; `solution` says how good they are."""

    def __init__(self, solver: Rounds, loss: Any, solution: Solution) -> None:
        w, features = solver.w, len(solver.keys)
        (alive,) = np.nonzero(w[:features])
        bias = w[features:] if solver.intercept else np.zeros(1)
        super().__init__(Head(loss), STORE, solver.keys[alive], w[alive], bias, solver.lowest_label)
        self.solution = solution
        self.warnings: list[Trouble] = []
        """trouble with the data or the model"""
        self.has_intercept = solver.intercept
        self._span = (int(solver.keys[0]), int(solver.keys[-1])) if features else None

    def note_data(self, source: Source) -> None:
        """Note how the data that the model was fitted to became features, and how these are numbered."""
        self.layout = source.layout
        span = None if self.layout is not None and has_columns(self.layout) else self._span
        self.note_ids(span, source.columns, self.layout)

    def save(self, path: str | Path) -> None:
        """Write a model file with weights only; raises OSError if writing fails."""
        plan, solution = self.solution.plan, self.solution
        solver = {
            **{name: getattr(plan, name) for name in ("order", "l1", "l2", "tolerance", "seed")},
            **{name: getattr(solution, name) for name in ("rounds", "sweeps", "objective", "certificate")},
        }
        header = {
            **model_file.header_of_weights(self, self.has_intercept),
            "solver": solver,
            "intercept": self.intercept,
            "examples": solution.examples,
            "progressive_loss": None,
            "nonzero": len(self.keys),
            "features_seen": solution.features_seen,
        }
        model_file.write(path, header, model_file.weights_of(self))


def troubles_of(found: Boosted, columns: Sequence[ColumnSeen], report: Report) -> list[Trouble]:
    """Trouble with the columns of the data, a model without weights, and one that is not a minimum."""
    solution = found.solution
    silent = len(found.keys) or solution.endless or solution.examples <= FEW
    nothing = [] if silent else [no_weights({"l1": solution.plan.l1})]
    of_columns = troubles_of_columns(columns, found.layout) + troubles_of_reading(report, found.layout)
    return [*of_columns, *nothing, *_no_minimum(solution)]


def _no_minimum(solution: Solution) -> list[Trouble]:
    """Trouble with an objective that has no minimum, or whose minimum was not reached."""
    plan = solution.plan
    if solution.endless:
        remedy = (
            "check the labels"
            if plan.l1 or plan.l2
            else f"use a penalty above 0, {mention('l1')} or {mention('l2')}"
        )
        reason = f"the objective has no minimum, because {solution.endless}"
        return [Trouble("no-minimum", f"{reason}; the weights only stopped growing: {remedy}")]
    if solution.converged:
        return []
    rounds = f"{solution.rounds:,} round{'s' if solution.rounds > 1 else ''}"
    reason = f"the solver stopped after {rounds}; its certificate is {solution.certificate:.3g}"
    remedy = f"give it more {mention('rounds')} (currently {plan.rounds}), or a larger {mention('tolerance')}"
    return [Trouble("no-certificate", f"{reason}, above the tolerance, {plan.tolerance:g}: {remedy}")]


def solved(
    source: Source,
    intercept: bool,
    loss: Any,
    plan: BoostPlan,
    started: float,
    callback: Callable[[Round], None],
) -> Boosted:
    """Fit a model to all examples of `source`; `started` is the start of the work, by `time.perf_counter`.

    If a worker that holds rows is lost, the work begins again, up to `TRIES` times in all.
    """
    started += prepare_readers()
    for tries_left in reversed(range(TRIES)):
        try:
            with closing(solver_of(source, intercept, loss, plan)) as solver:
                check_namespaces(source, source.report)
                found = Boosted(solver, loss, _solution(solver, plan, started, callback))
                found.note_data(source)
                return found
        except LostWorkerError as error:
            if not tries_left:
                raise
            error.warn(f"{error}; starting again")
    raise AssertionError


def _solution(solver: Rounds, plan: BoostPlan, started: float, callback: Callable[[Round], None]) -> Solution:
    last = solver.run(callback)
    return Solution(
        plan,
        solver.examples,
        len(solver.keys),
        last.number,
        last.sweeps,
        last.objective,
        last.certificate,
        solver.endless(),
        time.perf_counter() - started,
    )
