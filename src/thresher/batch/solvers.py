"""The solver of an order, with the data of a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thresher.batch.csc import columns_of
from thresher.batch.parallel import Parallel
from thresher.batch.plan import Plan
from thresher.batch.rounds import Rounds
from thresher.batch.shards import Here, Holder, stripes
from thresher.batch.solve import Solver
from thresher.cluster.elsewhere import current_cluster


def solver_of(source: Any, intercept: bool, loss: Any, plan: Plan) -> Rounds:
    """Read a whole pass of `source`, whose labels are +1 and either -1 or 0; raises its errors."""
    return _SOLVERS[plan.order](source, intercept, loss, plan)


def _one_by_one(source: Any, intercept: bool, loss: Any, plan: Plan) -> Rounds:
    return Solver(columns_of(source, intercept), loss, plan)


def _at_once(source: Any, intercept: bool, loss: Any, plan: Plan) -> Rounds:
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


_SOLVERS: dict[str, Callable[[Any, bool, Any, Plan], Rounds]] = {
    "cyclic": _one_by_one,
    "random": _one_by_one,
    "parallel": _at_once,
}
