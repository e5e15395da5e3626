"""Fitting a model with the batch solvers: which one a loss needs, and the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher.batch.blocks import Blocks
from thresher.batch.columns import FeatureColumns, in_columns, rows_of
from thresher.batch.newton import Newton, solve_in_deviations
from thresher.batch.parallel import Parallel
from thresher.batch.rounds import F64, I64, BoostPlan, Round, Rounds, loss_of
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.data.formats.tables.column_statistics import ColumnSeen, columns_seen
from thresher.data.layout import has_columns
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.data.sources.reader import prepare_readers
from thresher.learning.diagnostics.column_findings import (
    check_namespaces,
    troubles_of_columns,
    troubles_of_reading,
)
from thresher.learning.diagnostics.findings import FEW, Finding
from thresher.learning.diagnostics.run_findings import no_importance, no_weights
from thresher.learning.model.agreement import note_kind
from thresher.learning.model.objective import Objective
from thresher.learning.model.prediction import LinearPredictor
from thresher.options.kinds import DEVIATIONS
from thresher.options.messages import mention


def solver_over(columns: FeatureColumns, head: Objective, plan: BoostPlan) -> Rounds:
    """A solver for the examples in memory."""
    if head.count > 1:
        return Blocks(columns, head, plan)
    return (Parallel if plan.method == "parallel" else Newton)(columns, head.loss, plan)


STORE = "growing"


def objective_of(loss: object, outputs: str, method: str) -> Objective:
    """A loss and its outputs; ValueError if they do not fit, or the method does not minimise their loss."""
    head = Objective(loss, outputs)
    if head.count > 1:
        loss_of(head.joint, method)
    return head


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


class Boosted(LinearPredictor):
    """A fitted model with float64 weights; `solution` says how good they are."""

    def __init__(self, solver: Rounds, head: Objective, last: Round, source: Source, started: float) -> None:
        """The model of a solver after its last round."""
        w, features, columns = solver.w, solver.features, solver.columns
        alive = np.flatnonzero(w[:features].reshape(features, head.count).any(axis=1))
        bias = w[features:].flatten() if columns.intercept else np.zeros(head.count)
        lowest = float(columns.labels.min(initial=0.0))
        super().__init__(head, STORE, columns.keys[alive], w[alive], bias, lowest)
        plan, endless = solver.plan, solver.endless() if solver.examples else None
        done = last.number, last.sweeps, last.objective, last.certificate, endless
        took = time.perf_counter() - started
        self.solution = solution = Solution(plan, solver.examples, features, *done, took)
        self.warnings: list[Finding] = []
        """trouble with the data or the model"""
        self.frontier: Any = None
        """the models of all penalties, of which it is the one chosen; None if there is one penalty"""
        self.has_intercept = columns.intercept
        self.layout = source.layout
        named = not features or (self.layout is not None and has_columns(self.layout))
        span = None if named else (int(columns.keys[0]), int(columns.keys[-1]))
        note_kind(self, span, source)
        settings = {
            **{name: getattr(plan, name) for name in ("method", "l2", "tolerance")},
            "l1": f"{plan.l1:g}{DEVIATIONS}" if plan.deviations else plan.l1,
            **{name: getattr(solution, name) for name in ("rounds", "sweeps", "objective", "certificate")},
        }
        self.said = {
            "solver": settings,
            "intercept": np.asarray(self.intercept).tolist(),
            "examples": solution.examples,
            "progressive_loss": None,
            "features_seen": solution.features_seen,
        }


def troubles_of(found: Boosted, columns: Sequence[ColumnSeen], report: Report) -> list[Finding]:
    """Trouble with the columns of the data, a model without weights, and one that is not a minimum."""
    solution, plan = found.solution, found.solution.plan
    silent = len(found.keys) or solution.endless or solution.examples <= FEW
    found_so_far = troubles_of_columns(columns, found.layout) + troubles_of_reading(report, found.layout)
    found_so_far += [] if silent else [Finding("no-weights", no_weights({"l1": plan.l1}))]
    if not solution.examples:
        found_so_far.append(no_importance(report.examples))
    elif solution.endless:
        penalty = f"use a penalty above 0, {mention('l1')} or {mention('l2')}"
        remedy = "check the labels" if plan.l1 or plan.l2 else penalty
        reason = f"the objective has no minimum, because {solution.endless}"
        found_so_far.append(Finding("no-minimum", f"{reason}; the weights only stopped growing: {remedy}"))
    elif not solution.converged:
        rounds = f"{solution.rounds:,} round{'s' if solution.rounds > 1 else ''}"
        reason = f"the solver stopped after {rounds}; its certificate is {solution.certificate:.3g}"
        reason += f", above the tolerance, {plan.tolerance:g}"
        remedy = (
            f"give it more {mention('rounds')} (currently {plan.rounds}), or a larger {mention('tolerance')}"
        )
        found_so_far.append(Finding("no-certificate", f"{reason}: {remedy}"))
    return found_so_far


def _along(
    columns: FeatureColumns, head: Objective, plan: BoostPlan, penalties: Sequence[float]
) -> Iterator[tuple[int, Rounds, Round]]:
    """The number of each penalty, from the largest down, and the solver after it; each begins at the last."""
    solver = solver_over(columns, head, plan)
    for k in reversed(range(len(penalties))):
        solver.plan = replace(plan, l1=penalties[k])
        yield k, solver, solver.run()


def solve_along(
    source: Source,
    intercept: bool,
    head: Objective,
    plan: BoostPlan,
    started: float,
    penalties: Callable[[float], Sequence[float]],
    folds: int,
    fold_of: Callable[[Chunk, int], I64],
    say: Callable[[str], None],
) -> tuple[list[Boosted], list[F64], Chunk]:
    """Models for many penalties, ascending; margins of the rows by models without their folds; the rows.

    `penalties` finds them from the smallest that leaves no feature, `fold_of` the folds of rows, the first of
    which has the number 0; rows of importance 0 are numbered too, but neither learned nor returned. The rows
    returned have labels and importances only. Folds share the columns: the rows of one have no importance for
    its models. `DataError` if there are fewer rows than folds, or none has an importance.
    """
    seen, whole = columns_seen(source), rows_of(source)
    check_namespaces(source, source.report)
    if len(whole) < folds:
        raise DataError(f"{mention(folds=folds)} needs at least as many rows; rows read: {len(whole)}")
    of_rows = fold_of(whole, 0)[whole.weights > 0]
    columns = in_columns(whole.counting(), intercept)
    count, weights = len(columns.labels), columns.weights
    if not count:
        raise DataError(no_importance(len(whole)).message)
    del whole
    solver = solver_over(columns, head, plan)
    solver.start()
    values = penalties(solver.unit)
    rows = Chunk.from_csr(np.zeros(count + 1, np.int64), [], [], columns.labels, weights)
    margins = [np.zeros((count, head.count) if head.count > 1 else count) for _ in values]
    for fold in range(folds):
        say(f"fold {fold + 1} of {folds}: {len(values)} penalties")
        rest = replace(columns, weights=np.where(of_rows == fold, 0.0, weights))
        for k, solver, _ in _along(rest, head, plan, values):
            margins[k][of_rows == fold] = solver.z[of_rows == fold]
    say(f"all rows: {len(values)} penalties")
    models = list[Boosted]()
    for _, solver, last in _along(columns, head, plan, values):
        models.append(Boosted(solver, head, last, source, started))
        models[-1].warnings = troubles_of(models[-1], seen, source.report)
    return models[::-1], margins, rows


def solve(
    source: Source,
    intercept: bool,
    head: Objective,
    plan: BoostPlan,
    started: float,
    callback: Callable[[Round], None],
) -> Boosted:
    """Fit a model to all examples of `source`, with its warnings.

    `started` is the start of the work, by `time.perf_counter`.
    """
    seen = columns_seen(source)
    started += prepare_readers()
    solver = solver_over(in_columns(rows_of(source).counting(), intercept), head, plan)
    check_namespaces(source, source.report)
    last = solve_in_deviations(solver, callback)[0] if plan.deviations else solver.run(callback)
    found = Boosted(solver, head, last, source, started)
    found.warnings = troubles_of(found, seen, source.report)
    return found
