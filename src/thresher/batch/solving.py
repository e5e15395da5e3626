"""Fitting a model with the batch solvers.

The parallel steps, which solver a method needs, a new start after a loss, the result.

Losses with a kink, such as a quantile's, are fitted by Newton's method on smooth ones, to a certificate of
the loss. Such a loss is the largest of u e over the slopes u that it has, e = margin - label. The smooth loss
of width h about slopes v (n,) is the largest of u e - h (u - v)^2 / 2. With any h, if v is the slope of the
last solution, solutions converge to that of the loss itself, in finitely many turns for piecewise linear
losses; so h need not fall to 0, where Newton's method would be slow. Up to a constant, that is the smooth
loss about 0 of e + h v, so v is in the base of the rows.

References: Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm in convex
programming, Mathematics of Operations Research 1 (1976), the proximal method of multipliers; Koenker and
Bassett, Regression quantiles, Econometrica 46 (1978), for the loss.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher.batch import kernels, shards
from thresher.batch.blocks import Blocks
from thresher.batch.newton import SHARE, Newton, settled
from thresher.batch.rounds import F64, I64, NOISE, BoostPlan, Round, Rounds, loss_of
from thresher.batch.shards import FeatureColumns
from thresher.cluster.remote_readers import current_cluster
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.data.formats.tables.column_statistics import ColumnSeen, columns_seen
from thresher.data.layout import has_columns
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.data.sources.reader import prepare_readers
from thresher.engine.kernels import score
from thresher.engine.protocol import writes
from thresher.learning.diagnostics.column_findings import (
    check_namespaces,
    troubles_of_columns,
    troubles_of_reading,
)
from thresher.learning.diagnostics.findings import FEW, Finding
from thresher.learning.diagnostics.run_findings import no_importance, no_weights
from thresher.learning.model.objective import Objective
from thresher.learning.model.prediction import Readout
from thresher.options.messages import mention

_WIDEST, _NARROWER, _NARROWEST = 0.2, 0.5, 1e-6
"""Width at first, over the median distance of labels from theirs; its factor at each turn; and its least"""


class Smoothed(Newton):
    """Minimises a loss that is `smoothed`.

    The slopes u of the smooth loss are a point of the dual problem. `kink` and `slack` are the two parts of
    the duality gap, over the loss without features: sum_i c_i (loss_i - u_i e_i), 0 where each u_i is a slope
    of the loss itself, and the sum of weights times violations. The certificate is at least their sum.
    """

    def __init__(self, columns: FeatureColumns, loss: Any, plan: BoostPlan) -> None:
        left = columns.labels - columns.base
        far = np.abs(left - np.median(left) * columns.intercept) if len(left) else left
        self._widest = _WIDEST * float(np.median(far[far > 0])) if far.any() else 1.0
        self._exact, self._given, self.kink, self.slack = loss, columns.base, 0.0, 0.0
        super().__init__(columns, loss.smoothed(self._widest), plan)
        self._whole = float(self._losses().sum()) or 1.0

    @property
    def certificate(self) -> float:
        """See `Rounds`; of the loss itself."""
        return max(super().certificate, self.kink + self.slack)

    def start(self) -> None:
        """See `Rounds`."""
        super().start()
        self._centre(self._widest)

    def measure_all(self) -> None:
        """See `Rounds`."""
        super().measure_all()
        errors = self.margins() - self.columns.labels
        self.kink = float((self._losses() - self.slopes * errors).sum()) / self._whole
        self.slack = float((np.abs(self.w) * self.gap * self.loadings)[: len(self.keys)].sum()) / self._whole

    def objective(self) -> float:
        """See `Rounds`."""
        return float(self._losses().sum()) + self.penalty()

    def improve(self) -> int:
        """See `Rounds`: with other smooth losses once the solution of these is closer than the kinks."""
        if max(super().certificate, self.slack) <= SHARE * self.kink:
            self._centre(max(_NARROWER * self.loss.width, _NARROWEST * self._widest))
            super().measure_all()
        return super().improve()

    def _centre(self, width: float) -> None:
        """Smooth the loss with this width about the slopes of the rows."""
        c = self.columns.weights
        self.loss = self._exact.smoothed(width)
        self.set_base(self._given + width * np.divide(self.slopes, c, out=np.zeros_like(c), where=c > 0))
        self._enough = 0.0

    def margins(self) -> F64:
        """See `Newton`."""
        return self.z - self.columns.base + self._given

    def _losses(self) -> F64:
        """The loss itself of each row, times its importance."""
        c, out = self.columns, np.empty(self.examples)
        score.for_parts(self._exact)(self._exact, self.margins(), c.labels, c.weights, out)
        return out


ADVANCE, RETREAT = 0.9, 1.5
"""Factors for the widths after a step within its bound, and after one beyond it."""
SWEEPS = 20
"""Maximum number of sweeps between two certificates."""
_OF_INTERCEPT = 5 * SWEEPS
_EASE = 0.1
"""Sweeps end when the largest violation found is at most this share of the certificate before them."""


class Parallel(Rounds):
    """Moves all chosen columns at once, each with a step that allows for the moves of the others.

    The widths of the bound hold for the worst row. `ease` < 1 narrows them, which gives longer steps. While
    the loss stays below the narrower bound, `ease` is reduced further; a step beyond the bound is undone
    and repeated with a larger `ease`. At 1 the bound always holds. `up` and `down` are the masses of each
    column when last computed.

    The rows are in shards; masses and losses are summed in the order of the shards.
    """

    def __init__(self, holder: Any, intercept: bool, loss: Any, plan: BoostPlan) -> None:
        found = holder.build(intercept)
        keys = np.unique(np.concatenate([own for own, _, _ in found]))
        super().__init__(keys, intercept, min(lowest for _, _, lowest in found), plan)
        self._holder, self.examples = holder, sum(rows for _, rows, _ in found)
        self.penalties = (float(plan.l1), float(plan.l2))
        self.up, self.down, self.all = np.zeros(len(self.w)), np.zeros(len(self.w)), np.arange(len(self.w))
        self.ease, self.one_sided, self.chosen = 1.0, 0, self.all
        self._numbers: list[I64] = holder.call("begin", loss, keys)
        self._places: list[I64] = []
        self._widths = np.zeros(0)
        self._shares: list[shards.Contribution] | None = None
        """what the shards add to the chosen columns after the last move; None: not known yet"""
        self._loss = 0.0

    def close(self) -> None:
        """Let the shards go."""
        self._holder.close()

    def start(self) -> None:
        """Fit the intercept alone, and compute the unit of the certificate there."""
        self.measure_all()
        features = len(self.keys)
        sided = (self.up > 0) != (self.down > 0)
        self.one_sided = int(np.count_nonzero(sided[:features]))
        if self.intercept and not sided[-1]:
            self._fit_intercept()
            self.measure_all()
        pulls, sums = np.abs(self.up - self.down)[:features], (self.up + self.down)[:features]
        self.unit = float(max(pulls.max(initial=0.0), NOISE * sums.max(initial=0.0))) or 1.0

    def objective(self) -> float:
        """The loss plus the penalties."""
        (l1, l2), w = self.penalties, self.w[: len(self.keys)]
        return self._loss + l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(np.square(w).sum())

    def improve(self) -> int:
        """Sweep, at most 20 times, over the columns that have a weight or violate their condition."""
        self.choose(np.flatnonzero((self.w != 0) | (self.gap > 0)))
        enough = _EASE * self.certificate * self.unit
        sweeps = 1
        while self.move() > enough and sweeps < SWEEPS:
            sweeps += 1
        return sweeps

    def measure_all(self) -> None:
        """Compute the masses and violations of all columns."""
        self._add_up(self.all, self._numbers, self._holder.call("measure", True))

    def _add_up(self, chosen: I64, places: list[I64], shares: list[shards.Contribution]) -> None:
        up, down = np.zeros(len(chosen)), np.zeros(len(chosen))
        for place, share in zip(places, shares, strict=True):
            up[place] += share.up
            down[place] += share.down
        self.up[chosen], self.down[chosen] = up, down
        self._loss = sum(share.loss for share in shares)
        kernels.violations(chosen, self.penalties, len(self.keys), self.w, self.up, self.down, self.gap)

    def choose(self, chosen: I64) -> None:
        """Set the columns to move, ascending; compute widths from the sum of |x| over them in each row."""
        self.chosen = chosen
        found = self._holder.call("choose", chosen)
        self._places, self._shares = [places for places, _ in found], None
        self._widths = np.zeros(len(chosen))
        for places, widths in found:
            self._widths[places] = np.maximum(self._widths[places], widths)

    def move(self) -> float:
        """Move all chosen columns by one step; returns the largest violation before it."""
        if self._shares is None:
            self._shares = self._holder.call("measure", False)
        self._add_up(self.chosen, self._places, self._shares)
        violation = float(self.gap[self.chosen].max(initial=0.0))
        before, again = self._loss, False
        while not self._step(before, again):
            self.ease, again = min(1.0, self.ease * RETREAT), True
        self.ease *= ADVANCE
        return violation

    def _step(self, before: float, again: bool) -> bool:
        """Move; returns whether the bound held (always true at the proved width)."""
        steps = np.zeros(len(self.chosen))
        held = self._widths, self.ease, self.penalties, len(self.keys)
        bound = kernels.steps_at_once(self.chosen, *held, self.w, self.up, self.down, steps)
        shares: list[shards.Contribution] = self._holder.call("move", steps, again)
        loss = sum(share.loss for share in shares)
        if loss > before + bound and self.ease < 1.0:
            return False
        self.w[self.chosen] += steps
        self._loss, self._shares = loss, shares
        return True

    def _fit_intercept(self) -> None:
        """Move the intercept alone."""
        self.choose(self.all[-1:])
        for _ in range(_OF_INTERCEPT):
            if self.move() <= NOISE * (self.up[-1] + self.down[-1]):
                break
        self.ease = 1.0

    def endless(self) -> str | None:
        """See `Rounds`."""
        positive, negative, separated = zip(*self._holder.call("facts"), strict=True)
        return self.why_endless(not (any(positive) and any(negative)), all(separated), self.one_sided)


def solver_over(columns: shards.FeatureColumns, head: Objective, plan: BoostPlan) -> Newton | Blocks:
    """A solver for the examples in memory."""
    if head.count > 1:
        return Blocks(columns, head, plan)
    return (Newton if writes(type(head.loss), "curvature") else Smoothed)(columns, head.loss, plan)


def solver_of(source: Source, intercept: bool, head: Objective, plan: BoostPlan) -> Rounds:
    """Read a whole pass of `source`; raises its errors."""
    if plan.method == "newton":
        return solver_over(shards.columns_of(source, intercept), head, plan)
    cluster = current_cluster()
    holder: Any = shards.There(cluster) if cluster else shards.Here(plan.threads)
    try:
        rows = 0
        for chunk in source.chunks():
            counting = chunk.counting()
            for number, part in shards.stripes(rows, counting):
                holder.add(number, part)
            rows += len(counting)
        return Parallel(holder, intercept, head.loss, plan)
    except BaseException:
        holder.close()
        raise


STORE = "growing"
TRIES = 3
"""How often the work is begun, if workers are lost."""


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


class Boosted(Readout):
    """A fitted model with float64 weights; `solution` says how good they are."""

    def __init__(self, solver: Rounds, head: Objective, solution: Solution, source: Source) -> None:
        w, features = solver.w, len(solver.keys)
        alive = np.flatnonzero(w[:features].reshape(features, head.count).any(axis=1))
        bias = w[features:].flatten() if solver.intercept else np.zeros(head.count)
        super().__init__(head, STORE, solver.keys[alive], w[alive], bias, solver.lowest_label)
        self.solution = solution
        self.warnings: list[Finding] = []
        """trouble with the data or the model"""
        self.frontier: Any = None
        """the models of all penalties, of which it is the one chosen; None if there is one penalty"""
        self.has_intercept = solver.intercept
        self.layout = source.layout
        named = not features or (self.layout is not None and has_columns(self.layout))
        span = None if named else (int(solver.keys[0]), int(solver.keys[-1]))
        self.note_kind(span, source)
        plan = solution.plan
        settings = {
            **{name: getattr(plan, name) for name in ("method", "l2", "tolerance")},
            "l1": plan.shown_l1,
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


def _boosted(solver: Rounds, head: Objective, last: Round, source: Source, started: float) -> Boosted:
    """The model of a solver after its last round."""
    endless = solver.endless() if solver.examples else None
    done = last.number, last.sweeps, last.objective, last.certificate, endless
    took = time.perf_counter() - started
    solution = Solution(solver.plan, solver.examples, len(solver.keys), *done, took)
    return Boosted(solver, head, solution, source)


def _along(
    columns: shards.FeatureColumns, head: Objective, plan: BoostPlan, penalties: Sequence[float]
) -> Iterator[tuple[int, Newton | Blocks, Round]]:
    """The number of each penalty, from the largest down, and the solver after it; each begins at the last."""
    with closing(solver_over(columns, head, plan)) as solver:
        for k in reversed(range(len(penalties))):
            solver.penalise(replace(plan, l1=penalties[k]))
            yield k, solver, solver.run()


def solved_along(
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
    seen, whole = columns_seen(source), shards.rows_of(source)
    check_namespaces(source, source.report)
    if len(whole) < folds:
        raise DataError(f"{mention(folds=folds)} needs at least as many rows; rows read: {len(whole)}")
    of_rows = fold_of(whole, 0)[whole.weights > 0]
    columns = shards.in_columns(whole.counting(), intercept)
    count, weights = len(columns.labels), columns.weights
    if not count:
        raise DataError(no_importance(len(whole)).message)
    del whole
    with closing(solver_over(columns, head, plan)) as solver:
        solver.start()
        values = penalties(solver.unit)
    rows = Chunk.from_csr(np.zeros(count + 1, np.int64), [], [], columns.labels, weights)
    margins = [np.zeros((count, head.count) if head.count > 1 else count) for _ in values]
    for fold in range(folds):
        say(f"fold {fold + 1} of {folds}: {len(values)} penalties")
        rest = replace(columns, weights=np.where(of_rows == fold, 0.0, weights))
        for k, solver, _ in _along(rest, head, plan, values):
            margins[k][of_rows == fold] = solver.margins()[of_rows == fold]
    say(f"all rows: {len(values)} penalties")
    models = [
        _boosted(solver, head, last, source, started)
        for _, solver, last in _along(columns, head, plan, values)
    ]
    for model in models:
        model.warnings = troubles_of(model, seen, source.report)
    return models[::-1], margins, rows


def solved(
    source: Source,
    intercept: bool,
    head: Objective,
    plan: BoostPlan,
    started: float,
    callback: Callable[[Round], None],
) -> Boosted:
    """Fit a model to all examples of `source`, with its warnings.

    `started` is the start of the work, by `time.perf_counter`.
    If a worker that holds rows is lost, the work begins again, up to `TRIES` times in all.
    """
    columns = columns_seen(source)
    started += prepare_readers()
    for tries_left in reversed(range(TRIES)):
        try:
            with closing(solver_of(source, intercept, head, plan)) as solver:
                check_namespaces(source, source.report)
                if plan.deviations and isinstance(solver, Newton | Blocks):
                    last, _ = settled(solver, callback)
                else:
                    last = solver.run(callback)
                found = _boosted(solver, head, last, source, started)
            found.warnings = troubles_of(found, columns, source.report)
            return found
        except shards.LostWorkerError as error:
            if not tries_left:
                raise
            error.warn(f"{error}; starting again")
    raise AssertionError
