"""``thresher.boost``: fitting a model with the batch solver."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from thresher.batch.plan import Plan, Round, loss_of
from thresher.batch.rounds import Rounds
from thresher.batch.shards import LostWorkerError
from thresher.batch.solvers import solver_of
from thresher.cluster.elsewhere import reads_elsewhere
from thresher.data.formats.tables.heads import ColumnSeen, columns_seen
from thresher.data.layout import AnyLayout, has_columns
from thresher.data.report import Report
from thresher.data.sources.pieces import prepare_readers
from thresher.learning import modelfile
from thresher.learning.beginning import classes_in, labels_or_part, opened
from thresher.learning.checks import check_flag
from thresher.learning.given import Data, with_labels
from thresher.learning.head import Head
from thresher.learning.keywords import BoostOptions, check_names, layout_given
from thresher.learning.readout import Readout
from thresher.learning.trouble import FEW, Trouble, no_weights, troubles_of_columns, troubles_of_reading, warn

STORE, LOSS = "growing", "exponential"
_TRIES = 3


@dataclass(frozen=True)
class Solution:
    """The result of the solver."""

    plan: Plan
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

    def note_data(self, source: Any) -> None:
        """Note how the data that the model was fitted to became features, and how these are numbered."""
        self.layout = source.layout
        span = None if self.layout is not None and has_columns(self.layout) else self._span
        self.note_ids(span, getattr(source, "columns", None), self.layout)

    def save(self, path: str | Path) -> None:
        """Write a model file with weights only; raises OSError if writing fails."""
        plan, solution = self.solution.plan, self.solution
        solver = {
            **{name: getattr(plan, name) for name in ("order", "l1", "l2", "tolerance", "seed")},
            **{name: getattr(solution, name) for name in ("rounds", "sweeps", "objective", "certificate")},
        }
        header = {
            **modelfile.header_of_weights(self, self.has_intercept),
            "solver": solver,
            "intercept": self.intercept,
            "examples": solution.examples,
            "progressive_loss": None,
            "nonzero": len(self.keys),
            "features_seen": solution.features_seen,
        }
        modelfile.write(path, header, modelfile.weights_of(self))


@reads_elsewhere
def boost(
    data: Data,
    y: ArrayLike | str | None = None,
    *,
    loss: str | tuple[Any, ...] = LOSS,
    sample_weight: ArrayLike | None = None,
    l1: float = 1.0,
    l2: float = 0.0,
    order: str = "random",
    intercept: bool = True,
    tolerance: float = 1e-4,
    rounds: int = 1000,
    seed: int = 0,
    on_error: str = "fail",
    threads: int | None = None,
    layout: AnyLayout | None = None,
    where: str = "",
    callback: Callable[[Round], None] = lambda _: None,
    **options: Unpack[BoostOptions],
) -> Boosted:
    """Minimise ``sum_i c_i loss(y_i, w.x_i + b) + l1 |w|_1 + l2 |w|^2 / 2`` by coordinate descent.

    The loss is a sum over examples, weighted by importance c_i, not a mean; b is never penalised.

    Args:
        data, sample_weight: as for `train`.
        y: labels, as for `train`. If `data` contain the labels, the loss may be given here.
        loss: ``exponential`` (as in AdaBoost) or ``logistic``.
        l1, l2: strengths of the penalties.
        order: ``random`` (one feature at a time, in an order drawn with `seed`), ``cyclic`` or ``parallel``
            (all at once; with `workers` the rows are in the memory of these processes).
        intercept: whether to learn b.
        tolerance: stop when the largest violation of the optimality conditions is at most this share of the
            smallest l1 that leaves no feature.
        rounds: stop after this many rounds at the latest.
        seed: of the order ``random``.
        threads: number of threads; the result does not depend on it.
        callback: called with every `Round`.
        on_error, layout, where, options: as for `train`.

    Trouble with the data or the model raises a `TroubleWarning` for each problem, also in ``model.warnings``.
    Raises ValueError, `SpecError` and `DataError`; TypeError for unknown options.

    >>> model = boost("examples/data/rcv1_train2000.dat.gz", l1=10.0)
    >>> model.solution.converged, len(model.keys) < 50
    (True, True)
    """
    from thresher.data.sources.reader import default_threads

    check_names(boost, options, BoostOptions)
    check_flag("intercept", intercept)
    started = time.perf_counter()
    labels, loss = labels_or_part(data, y, "loss", loss, LOSS)
    part = loss_of(loss)
    plan = Plan(l1, l2, order, tolerance, rounds, seed, threads or default_threads())
    data = with_labels(data, labels, sample_weight)
    read: dict[str, Any] = {"threads": threads, "layout": layout_given(layout, options), "where": where}
    _, _, read = classes_in(data, loss, "one", on_error, read)
    source = opened(data, part.DOMAIN, on_error=on_error, **read)
    seen = columns_seen(source)
    found = solved(source, bool(intercept), part, plan, started, callback)
    found.warnings = warn(troubles_of(found, seen, source.report))
    return found


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
        remedy = "check the labels" if plan.l1 or plan.l2 else "use a penalty above 0, --l1 or --l2"
        reason = f"the objective has no minimum, because {solution.endless}"
        return [Trouble("no-minimum", f"{reason}; the weights only stopped growing: {remedy}")]
    if solution.converged:
        return []
    rounds = f"{solution.rounds:,} round{'s' if solution.rounds > 1 else ''}"
    reason = f"the solver stopped after {rounds}; its certificate is {solution.certificate:.3g}"
    remedy = f"give it more --rounds (currently {plan.rounds}), or a larger --tolerance"
    return [Trouble("no-certificate", f"{reason}, above the tolerance, {plan.tolerance:g}: {remedy}")]


def solved(
    source: Any, intercept: bool, loss: Any, plan: Plan, started: float, callback: Callable[[Round], None]
) -> Boosted:
    """Fit a model to all examples of `source`; `started` is the start of the work, by `time.perf_counter`.

    If a worker that holds rows is lost, the work begins again, up to `_TRIES` times in all.
    """
    started += prepare_readers()
    for tries_left in reversed(range(_TRIES)):
        try:
            with closing(solver_of(source, intercept, loss, plan)) as solver:
                found = Boosted(solver, loss, _solution(solver, plan, started, callback))
                found.note_data(source)
                return found
        except LostWorkerError as error:
            if not tries_left:
                raise
            error.warn(f"{error}; starting again")
    raise AssertionError


def _solution(solver: Rounds, plan: Plan, started: float, callback: Callable[[Round], None]) -> Solution:
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
