"""Boosting with L1 and exponential loss: one feature at a time, and all at once (Singer, slides 69 to 73)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.loads import rcv1like_chunks
from experiments.papers.generated import few_words
from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from thresher import boost
from thresher.batch.rounds import Round
from thresher.data import Chunk, concat
from thresher.drawing import Axis, Panel, Series, panels

LOAD_ROWS, TOLERANCE, REPEATS = 50_000, 1e-4, 3
ONE_BY_ONE = "newton"
"""The method that moves one feature at a time, on quadratic models of the loss"""


class Problem(NamedTuple):
    """A data set and a penalty."""

    name: str
    rows: Chunk
    l1: float


class Solved(NamedTuple):
    """A run of the solver to the certificate."""

    rounds: list[Round]
    """as reported: before the first sweep and after every few"""
    processor: list[float]
    """seconds of all threads since the first report, at each report"""

    @property
    def sweeps(self) -> int:
        """Sweeps over the features, the rounds of the slides."""
        return self.rounds[-1].sweeps

    @property
    def seconds(self) -> float:
        """Processor time, which other load on the machine adds little to."""
        return self.processor[-1]

    @property
    def elapsed(self) -> float:
        """Time by the clock, without reading."""
        return self.rounds[-1].seconds


Runs = dict[str, Solved]
"""By method"""
METHODS = (ONE_BY_ONE, "parallel")


def solve(problem: Problem, method: str, tolerance: float = TOLERANCE) -> Solved:
    """Minimise the exponential loss with L1."""
    rounds: list[Round] = []
    clock: list[float] = []

    def report(one: Round) -> None:
        rounds.append(one)
        clock.append(time.process_time())

    options: Any = {"l1": problem.l1, "intercept": False, "tolerance": tolerance, "rounds": 5000}
    boost(problem.rows, "exponential", method=method, threads=1, callback=report, **options)
    return Solved(rounds, [at - clock[0] for at in clock])


def runs_of(problem: Problem, repeats: int) -> tuple[Runs, float]:
    """Each method, the quickest of `repeats` runs of each; and the objective at the optimum."""
    best = solve(problem, ONE_BY_ONE, tolerance=TOLERANCE / 1000)  # also compiles
    tried = [{method: solve(problem, method) for method in METHODS} for _ in range(repeats)]
    found = {method: min((one[method] for one in tried), key=lambda one: one.seconds) for method in METHODS}
    return found, best.rounds[-1].objective


def problems(sets: Sets) -> list[Problem]:
    """RCV1 and a generated load of its shape."""
    if sets.quick:
        return [Problem("generated words", few_words(300, 0).train, 2.0)]
    load = concat(list(rcv1like_chunks(LOAD_ROWS)))
    return [Problem("RCV1-CCAT", sets.rcv1().train, 2.0), Problem("the generated load", load, 5.0)]


def page(sets: Sets) -> Page:
    """Solve each problem by each method."""
    given = problems(sets)
    found = [runs_of(problem, 1 if sets.quick else REPEATS) for problem in given]
    runs = {problem.name: one for problem, (one, _) in zip(given, found, strict=True)}
    return Page(
        title="Boosting with L1, one feature at a time and all at once",
        source="Singer (MLSS 2012), slides 69 to 73; Duchi and Singer, *Boosting with structural sparsity* "
        "(ICML 2009)",
        claim="The exponential loss with an L1 penalty is minimised one feature at a time, or all "
        "features at once. Steps that allow for each other are shorter, so parallel "
        "updates need more rounds; but a round can be spread over many machines, and takes less time.",
        method="`thresher boost` without intercept to a certificate of 1e-4, on "
        + " and on ".join(f"{one.name} ({len(one.rows):,} rows, l1 = {one.l1:g})" for one in given)
        + "; the generated load is that of `benchmarks/loads.py`, from its beginning. "
        "A round is one sweep over the features that have a weight or violate their condition; each of "
        "these moves once; one at a time, they move on a quadratic model of the loss (`--method newton`), "
        "which is renewed every few rounds. The solver reports every few rounds; each point is a report. "
        "F* is the objective at a certificate a thousand times smaller. Seconds are without reading, of the "
        f"least of {REPEATS} runs in processor time. They depend on the machine, and so do the verdicts "
        "about time; rounds do not.",
        verdicts=_verdicts(runs, sets.quick),
        pictures=[_drawn(problem.name, one, best) for problem, (one, best) in zip(given, found, strict=True)],
        tables=[_table(runs)],
        notes="" if sets.quick else _notes(runs),
    )


def _verdicts(runs: dict[str, Runs], quick: bool) -> list[Verdict]:
    def rounds(one: Runs) -> str:
        return ", ".join(f"{method} {one[method].sweeps:,}" for method in ("parallel", ONE_BY_ONE))

    def seconds(one: Runs) -> str:
        ours, theirs = one["parallel"].seconds, one[ONE_BY_ONE].seconds
        more = f" (less if more than {ours / theirs:.1f} machines share it)" if ours > theirs else ""
        return f"parallel {ours:.2f} s{more}, {ONE_BY_ONE} {theirs:.2f} s"

    def verdict(
        claim: str, published: str, shown: Callable[[Runs], str], true: Callable[[Runs], bool]
    ) -> Verdict:
        holds = all(true(one) for one in runs.values())
        ours = "; ".join(f"{name}: {shown(one)}" for name, one in runs.items())
        where = [name for name, one in runs.items() if true(one)]
        why = f"it holds on {' and '.join(where) or 'neither set'}; see the notes"
        return Verdict(claim, published, ours, holds, "" if holds else why)

    more = verdict(
        "parallel updates need more rounds",
        "more",
        rounds,
        lambda one: one["parallel"].sweeps > one[ONE_BY_ONE].sweeps,
    )
    if quick:
        return [more]
    return [
        more,
        verdict(
            "parallel updates need less processor time",
            "less, with many machines",
            seconds,
            lambda one: one["parallel"].seconds < one[ONE_BY_ONE].seconds,
        ),
    ]


def _drawn(name: str, runs: Runs, best: float) -> Picture:
    def series(given: Runs, x: Callable[[Solved], list[float]], y: Callable[[Round], float]) -> list[Series]:
        return [
            Series(name, x(solved), [y(one) for one in solved.rounds], "both")
            for name, solved in given.items()
        ]

    def above(one: Round) -> float:
        return max(one.objective / best - 1, 1e-9)

    rounds, gap = Axis("rounds", log=True), Axis("F / F* - 1", log=True)
    weights = Axis("non-zero weights", log=True, whole=True)
    shown = [
        Panel(rounds, gap, series(runs, _sweeps, above), "objective by round"),
        Panel(
            Axis("seconds", log=True),
            gap,
            series(runs, lambda one: one.processor, above),
            "objective by processor time",
        ),
        Panel(
            rounds,
            Axis("certificate", log=True),
            series(runs, _sweeps, lambda one: one.certificate),
            "certificate",
        ),
        Panel(rounds, weights, series(runs, _sweeps, lambda one: one.nonzero), "non-zero weights"),
    ]
    text = "Objective above the optimum by round and by time, the certificate and the non-zero weights."
    svg = panels(f"Exponential loss with L1: {name}", text, shown, height=270)
    return Picture(svg, f"{name}: {text[0].lower()}{text[1:-1]} of Newton steps and parallel updates")


def _sweeps(one: Solved) -> list[float]:
    return [each.sweeps for each in one.rounds]


def _table(runs: dict[str, Runs]) -> str:
    rows = [
        (
            f"{name}, {method}",
            f"{one.sweeps:,}",
            f"{one.seconds:.2f}",
            f"{one.elapsed:.2f}",
            f"{1000 * _a_round(one):.1f}",
            f"{one.rounds[-1].objective:.3f}",
            f"{one.rounds[-1].nonzero:,}",
        )
        for name, found in runs.items()
        for method, one in found.items()
    ]
    heads = ("", "rounds", "processor seconds", "seconds by the clock", "ms a round")
    return table((*heads, "objective", "non-zero weights"), rows)


def _notes(runs: dict[str, Runs]) -> str:
    ratios = [one["parallel"].seconds / one[ONE_BY_ONE].seconds for one in runs.values()]
    rounds = [one["parallel"].sweeps / one[ONE_BY_ONE].sweeps for one in runs.values()]
    return (
        f"One feature at a time needs {min(rounds):.0f} to {max(rounds):.0f} times fewer rounds: parallel "
        f"updates cost {min(ratios):.1f} to {max(ratios):.1f} times its processor time, and would need more "
        "machines than that to be faster."
    )


def _a_round(one: Solved) -> float:
    return one.seconds / one.sweeps
