"""FOBOS, the subgradient and an interior point method on one objective (Singer, slides 56 and 57)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from experiments.papers.generated import few_words
from experiments.papers.interior import interior_point, operations
from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from thresher import Model, boost
from thresher.data import Chunk
from thresher.drawing import Axis, Series, chart

F64 = NDArray[np.float64]
ROWS, FEATURES, PASSES, TENS = 5_000, 1_000, 150, 50
LAMBDAS = (0.5, 2.0, 8.0)
SMOOTH = 4.0
LEVELS = (1e-2, 1e-3, 1e-4)
CLOSE = LEVELS[1]
"""f - f* at which the interior point method is compared with FOBOS"""
FOBOS, SUBGRADIENT, INTERIOR = "FOBOS", "subgradient", "interior point"
BY_ROW = "FOBOS, a row a step", "subgradient, a row a step"


class Plan(NamedTuple):
    """What is tried."""

    passes: int
    tens: int
    all_rows: Sequence[tuple[str, float]]
    """schedules and constants of the rate, over the curvature, for steps on all rows"""
    one_row: Sequence[tuple[str, float]]
    """rates for steps on one row"""


FULL = Plan(
    PASSES,
    TENS,
    [("constant", c) for c in (1.0, 4.0, 10.0)] + [("inverse-sqrt", c) for c in (4.0, 10.0, 30.0)],
    [("inverse-sqrt", c) for c in (10.0, 30.0, 100.0)],
)
QUICK = Plan(20, 10, [("constant", 2.0), ("inverse-sqrt", 4.0)], [])


class Problem:
    """Mean logistic loss plus a penalty, on a matrix whose features are numbered from 0."""

    def __init__(self, rows: Chunk, features: int) -> None:
        keys, counts = np.unique(rows.keys, return_counts=True)
        frequent = np.sort(keys[np.argsort(-counts, kind="stable")[:features]]).astype(int)
        columns = int(keys.max()) + 1
        self.X: Any = peers.csr(rows, np.float64, columns)[:, frequent].tocsr()
        self.y = rows.labels.astype(np.float64)
        self.rows = Chunk.from_csr(self.X.indptr, self.X.indices, self.X.data, rows.labels)
        self.curvature = float(np.linalg.norm((self.X.T @ self.X).toarray(), 2)) / 4

    def value(self, w: F64, l1: float) -> float:
        """The objective: a mean over the rows; l1 is the strength in the sum."""
        losses = np.logaddexp(0, -self.y * (self.X @ w))
        return float(losses.sum() + l1 * np.abs(w).sum()) / len(self.y)

    def least(self, l1: float) -> float:
        """Its minimum."""
        best = boost(self.rows, "logistic", l1=l1, intercept=False, tolerance=1e-9)
        return best.solution.objective / len(self.y)


class Course(NamedTuple):
    """A method after each pass or step."""

    gaps: list[float]
    """objective above its minimum"""
    nonzero: list[int]
    cost: float
    """operations of one of them"""
    rate: str = ""

    def operations(self) -> list[float]:
        """All operations so far."""
        return [self.cost * (k + 1) for k in range(len(self.gaps))]

    def until(self, level: float) -> int | None:
        """Number of passes or steps until the gap is below a level."""
        return next((k + 1 for k, gap in enumerate(self.gaps) if gap <= level), None)


def online(problem: Problem, rule: str, l1: float, rate: str, batch: int, passes: int) -> Course:
    """Run a rule; a step on `batch` rows."""
    strength = l1 * batch / len(problem.y)
    model = Model(f"{rule}:l1={strength!r}", rate=rate, batch=batch, intercept=False, dtype="float64")
    least, gaps, nonzero = problem.least(l1), [], []
    for number in range(1, passes + 1):
        model.begin_pass(number)
        model.learn(problem.rows, again=number > 1)
        keys, values = model.weights()
        w = np.zeros(problem.X.shape[1])
        w[keys.astype(int)] = values
        gaps.append(problem.value(w, l1) - least)
        nonzero.append(len(keys))
    return Course(gaps, nonzero, 4.0 * problem.X.nnz, rate)


def best_of(problem: Problem, rule: str, plan: Plan, l1: float, batch: int) -> Course:
    """The course with the rate whose last objective is lowest."""
    rates = plan.one_row if batch == 1 else plan.all_rows
    scale = 1.0 if batch == 1 else problem.curvature
    tried = [
        online(problem, rule, l1, f"{schedule}:{constant / scale!r}", batch, plan.passes)
        for schedule, constant in rates
    ]
    return min(tried, key=lambda course: course.gaps[-1])


def newton(problem: Problem, l1: float) -> Course:
    """The interior point method, whose weights are never zero."""
    least, course = problem.least(l1), interior_point(problem.X, problem.y, l1, 1e-8)
    gaps = [problem.value(w, l1) - least for w in course]
    return Course(gaps, [problem.X.shape[1]] * len(gaps), operations(problem.X))


def _courses(problem: Problem, l1: float, plan: Plan, by_row: bool) -> dict[str, Course]:
    everything = len(problem.y)
    found = {
        FOBOS: best_of(problem, "fobos", plan, l1, everything),
        SUBGRADIENT: best_of(problem, "subgradient", plan, l1, everything),
        INTERIOR: newton(problem, l1),
    }
    if by_row:
        found |= {
            name: best_of(problem, rule, plan, l1, 1)
            for name, rule in zip(BY_ROW, ("fobos", "subgradient"), strict=True)
        }
    return found


def page(sets: Sets) -> Page:
    """Minimise one objective with every method, and follow the sparsity of FOBOS for three penalties."""
    plan = QUICK if sets.quick else FULL
    if sets.quick:
        problem, l1 = Problem(few_words(100, 0).train, 40), 2.0
    else:
        problem, l1 = Problem(sets.rcv1().train.rows(0, ROWS), FEATURES), LAMBDAS[1]
    found = _courses(problem, l1, plan, by_row=not sets.quick)
    rate = f"constant:{SMOOTH / problem.curvature!r}"
    sparse = {
        strength: online(problem, "fobos", strength, rate, len(problem.y), plan.passes)
        for strength in LAMBDAS
    }
    return Page(
        title="FOBOS, subgradients and an interior point method",
        source="Singer (MLSS 2012), slides 56 and 57; Duchi and Singer (JMLR 2009)",
        claim="On logistic regression with L1, FOBOS with full-gradient steps gets closer to the optimum in "
        "tens of passes than the subgradient method ever does, and has zeros on the way. An interior "
        "point method needs few steps, but each costs as much as many passes.",
        method=f"The first {len(problem.y):,} rows of RCV1-CCAT, the {problem.X.shape[1]:,} most frequent "
        f"features, no intercept; f = mean logistic loss + lambda/n |w|_1 with lambda = {l1:g} and n the "
        "rows. f* is found by `thresher boost` to a certificate of 1e-9. FOBOS and the subgradient method "
        f"take a step a pass (`--batch {len(problem.y)}`) or a row. Each has the rate with the lowest "
        f"objective after {plan.passes} passes: of {_listed(plan.all_rows)}, divided by the curvature of "
        f"the loss at zero, for steps on all rows; of {_listed(plan.one_row)} for steps on one. "
        "There are no test rows: the question is who minimises f. The interior point "
        "method is a primal-dual one (`experiments/papers/interior.py`). A pass costs 4 operations per "
        "non-zero value; a step of the interior point method also makes and factorises the Hessian. The "
        f"second picture has the rate {SMOOTH:g} over the curvature, which suits all three lambdas.",
        verdicts=_verdicts(found, sparse, plan),
        pictures=[_objective(found), _sparsity(sparse)],
        tables=[_table(found)],
        notes="With a step a row, FOBOS and the subgradient method minimise f equally fast, so the picture "
        "shows one of them: the noise of single rows hides what the penalty step does. What remains is that "
        "FOBOS has zeros. They are few, because a row's gradient gives each of its features a weight again; "
        "rules that sum gradients, such as RDA and FTRL, keep more zeros "
        "([sparsity on the fly](singer-on-the-fly.md)).",
    )


def _listed(rates: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"`{schedule}:{constant:g}`" for schedule, constant in rates)


def _interior(found: dict[str, Course]) -> Verdict:
    """Fewer steps than FOBOS needs passes, but more operations."""
    courses = found[INTERIOR], found[FOBOS]
    counts = [course.until(CLOSE) for course in courses]
    (steps, work), (passes, others) = (
        (count, float("inf") if count is None else count * course.cost)
        for count, course in zip(counts, courses, strict=True)
    )
    each = courses[0].cost / courses[1].cost
    holds = steps is not None and (passes is None or steps < passes) and work > others
    return Verdict(
        "an interior point method needs fewer steps than FOBOS needs passes, but more operations",
        "few steps, each as costly as many passes",
        f"until f - f* is below {CLOSE:g}: {steps} steps and {work:.1e} operations; FOBOS: {passes} passes "
        f"and {others:.1e} operations. A step costs as much as {each:,.0f} passes",
        holds,
        "" if holds else "see the table",
    )


def _verdicts(found: dict[str, Course], sparse: dict[float, Course], plan: Plan) -> list[Verdict]:
    ours, theirs = found[FOBOS].gaps[plan.tens - 1], min(found[SUBGRADIENT].gaps)
    left = [sparse[strength].nonzero[-1] for strength in LAMBDAS]
    fell = all(course.nonzero[-1] < course.nonzero[0] for course in sparse.values())
    first = found[FOBOS].until(theirs)
    return [
        Verdict(
            "FOBOS reaches in tens of passes what the subgradient method never does",
            "as drawn there",
            f"f - f* is {ours:.1e} after {plan.tens} passes of FOBOS; subgradient: never below {theirs:.1e} "
            f"in {plan.passes} passes, which FOBOS needs {first} for",
            ours < theirs,
            "" if ours < theirs else "see the picture",
        ),
        Verdict(
            "FOBOS is sparse on the way, and sparser with a larger lambda",
            "as drawn there, for three lambdas",
            "; ".join(
                f"lambda {strength:g}: {sparse[strength].nonzero[0]:,} weights after one pass, "
                f"{sparse[strength].nonzero[-1]:,} at the end"
                for strength in LAMBDAS
            ),
            fell and left == sorted(left, reverse=True),
            "" if fell and left == sorted(left, reverse=True) else "see the picture",
        ),
        _interior(found),
    ]


def _objective(found: dict[str, Course]) -> Picture:
    series = [
        Series(name, course.operations(), [max(gap, 1e-9) for gap in course.gaps])
        for name, course in found.items()
        if name != BY_ROW[1]  # it would hide the one before
    ]
    text = "Objective above its minimum against the number of operations, by method."
    svg = chart(
        "Objective above its minimum",
        text,
        Axis("operations", log=True),
        Axis("f - f*", log=True),
        series,
        height=440,
    )
    return Picture(svg, text[:-1])


def _sparsity(sparse: dict[float, Course]) -> Picture:
    series = [
        Series(f"lambda = {strength:g}", list(range(1, len(course.nonzero) + 1)), course.nonzero)
        for strength, course in sparse.items()
    ]
    text = "Non-zero weights of FOBOS after each step on all rows, for three penalties."
    svg = chart(
        "Non-zero weights of FOBOS, by step",
        text,
        Axis("steps, each on all rows", log=True, whole=True),
        Axis("non-zero weights", whole=True, low=0),
        series,
    )
    return Picture(svg, text[:-1])


def _shown(rate: str) -> str:
    name, _, size = rate.partition(":")
    return f"`{name}:{float(size):.3g}`" if rate else ""


def _table(found: dict[str, Course]) -> str:
    def needed(course: Course, level: float) -> str:
        count = course.until(level)
        return "never" if count is None else f"{count:,} ({course.cost * count:.1e})"

    rows = [
        (
            name,
            _shown(course.rate),
            *(needed(course, level) for level in LEVELS),
            f"{course.gaps[-1]:.1e}",
            f"{course.nonzero[-1]:,}",
        )
        for name, course in found.items()
    ]
    heads = ("passes or steps (operations) until f - f* is below", "rate", *(f"{x:g}" for x in LEVELS))
    return table((*heads, "f - f* at the end", "non-zero weights"), rows)
