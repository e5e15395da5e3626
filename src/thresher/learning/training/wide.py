"""Few rows of many columns: the default's model, solved in memory from the rows of the first pass.

Row by row, a threshold in standard deviations of noise is too low at first: with 20,000 columns that are
always there, a third of those that say nothing get a weight within 150 rows, and later passes build on it.
The idea is right, though: weights minimise

    sum_i c_i loss_i(x_i.w + b) + k sum_j psi_j |w_j|,

with the importances c, the standard deviations psi of the derivatives, measured again at the solution until
they stand (`batch.newton.solve_in_deviations`), and k = 2 times `l1`. docs/default.md has the figures that
decided this.

A count of columns is not enough. In real tables they are correlated: 30 measurements of a cell, or their
products, point in few directions, and there the passes of the default are as good as cross-validation, and
better than any penalty that is not chosen. So directions are counted: p^2 over the sum of the squared
correlations of p columns, about p n / (p + n) for n rows of independent ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.engine.index import HashedIndex
from thresher.engine.protocol import writes
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.rule_state import Minimum
from thresher.learning.training.record import Optimum

if TYPE_CHECKING:
    from thresher.batch.columns import FeatureColumns
    from thresher.learning.model.model import Model

DEVIATIONS = 2.0
"""Standard deviations of noise that a column has to exceed, times `l1`."""
LEAST_ROWS = 20
"""With fewer rows there is no telling what is noise."""
_THERE = 0.5
"""Share of the rows in which a column is that counts as always there."""
_DIRECTIONS = 0.4
"""Directions of columns over the number of rows; as many independent columns as rows have 0.5."""
_SAMPLE = 512
"""Columns of which correlations are computed."""
_TOLERANCE = 1e-5


def can_solve(recipe: Recipe) -> bool:
    """Whether models of this recipe can be solved in memory: those of the default rule, with any `l1`."""
    rule, loss = recipe.rule_part, recipe.objective.loss
    plain = type(rule).AUTOMATIC and rule.l1 > 0 and rule == type(rule)(l1=rule.l1) and recipe.batch == 1
    asked = recipe.average or recipe.calibrate or recipe.signs() or recipe.sample or recipe.admit is not None
    smooth = not hasattr(loss, "values_slopes") and writes(type(loss), "curvature")
    smooth = smooth and writes(type(rule), "place_measured")
    hashed = recipe.store.startswith(HashedIndex.NAME)
    return bool(plain and smooth and not asked and not hashed and recipe.centre)


def may_be_wide(rows: int, nonzeros: int) -> bool:
    """Whether so many columns can be in half of the rows that they outnumber them: `is_wide` tells."""
    return rows >= LEAST_ROWS and nonzeros >= _THERE * rows * rows


def is_wide(rows: Chunk, gaps: bool) -> bool:
    """Whether columns that are always there outnumber the `rows`, and point in enough directions.

    With `gaps`, a stored 0 is a missing number, which counts as the mean of its column.
    """
    n = len(rows)
    if not may_be_wide(n, rows.nnz):
        return False
    from thresher.batch.columns import in_columns

    columns = in_columns(rows, intercept=False)
    (there,) = np.nonzero(np.diff(columns.starts) >= _THERE * n)
    return len(there) >= n and directions(columns, there, gaps) >= _DIRECTIONS * n


def directions(columns: FeatureColumns, chosen: NDArray[np.int64], gaps: bool) -> float:
    """p^2 over the sum of all squared correlations of the p `chosen` columns, estimated from some of them."""
    drawn = chosen
    if len(chosen) > _SAMPLE:
        drawn = np.sort(np.random.default_rng(0).choice(chosen, _SAMPLE, replace=False))
    sample = np.zeros((len(drawn), len(columns.labels)))
    for k, j in enumerate(drawn.tolist()):
        here = slice(columns.starts[j], columns.starts[j + 1])
        values = columns.values[here].astype(np.float64)
        if gaps:
            known = values != 0.0
            values[~known] = values[known].mean() if known.any() else 0.0
        sample[k, columns.rows[here]] = values
    sample -= sample.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.square(sample).sum(axis=1))
    sample = sample[norms > 0] / norms[norms > 0, np.newaxis]
    count, p = len(sample), len(chosen)
    if count < 2:
        return float(count)
    between = (float(np.square(sample @ sample.T).sum()) - count) / (count * (count - 1))
    return p / (1.0 + (p - 1) * between)


def solve(models: Sequence[Model], rows: Chunk, deviations: float = DEVIATIONS) -> list[Optimum]:
    """Give models with one feed the weights that minimise the penalised loss of `rows`, which they learned.

    An `l1` of 1 is a penalty of so many `deviations` of noise. A model keeps its means of columns, counts
    and progressive losses, and goes on as if passes had led to these weights. An output whose labels are all
    alike keeps its intercept, and gets no weights.
    """
    from thresher.batch.columns import in_columns

    prepared = models[0].feed.intake.transform(rows.counting(), again=True)
    columns = {kind: in_columns(prepared, kind) for kind in {model.recipe.intercept for model in models}}
    return [_solve(model, prepared, columns[model.recipe.intercept], deviations) for model in models]


def _solve(model: Model, prepared: Chunk, columns: FeatureColumns, deviations: float) -> Optimum:
    """Give one model its weights."""
    from thresher.batch.newton import Newton, solve_in_deviations
    from thresher.batch.rounds import BoostPlan
    from thresher.learning.model.batch_feeder import processors

    head, bias = model.head, model.loop.bias().astype(np.float64)
    l1, count = float(model.rule.l1), len(columns.keys)
    solutions, found, unknown = list[Minimum](), list[Optimum](), np.zeros(count + 1)
    plan = BoostPlan(l1=deviations * l1, tolerance=_TOLERANCE, threads=processors())
    loss, targets = getattr(head.joint, "loss", head.loss), head.targets(prepared)
    if head.outputs.kind == "classes":
        targets = np.where(targets == np.arange(head.count), 1.0, -1.0)
    for k, labels in enumerate(targets.T):
        if np.ptp(labels) == 0.0:
            solutions.append(Minimum(np.append(unknown[1:], bias[k]), unknown, unknown, np.zeros((0, 2))))
            continue
        own = replace(columns, labels=labels.astype(np.float64))
        solver = Newton(own, loss, plan)
        last, turns = solve_in_deviations(solver)
        each = zip(solver.z, own.labels, own.weights, strict=True)
        slopes = np.array([c * np.array(loss.value_slope(z, y)) for z, y, c in each])
        solutions.append(Minimum(solver.w, solver.gradient, solver.loadings * deviations, slopes))
        found.append(Optimum(deviations * l1, last.objective, last.certificate, turns))
    values = np.abs(columns.values).astype(np.float64)
    scales = np.maximum.reduceat(values, columns.starts[:-1])
    squares = np.add.reduceat(np.square(values), columns.starts[:-1])[scales > 0]
    size = float((squares / np.square(scales[scales > 0])).sum()) / len(columns.labels)
    model.loop.place_measured(columns.keys, scales[:count], size, solutions)
    return together(found) or Optimum(deviations * l1, 0.0, 0.0, 0)


def together(found: Sequence[Optimum]) -> Optimum | None:
    """The solutions of several outputs or models as one; None if there is none."""
    if not found:
        return None
    objective, certificate = sum(one.objective for one in found), max(one.certificate for one in found)
    return Optimum(found[0].deviations, objective, certificate, max(one.rounds for one in found))
