"""Data-parallel learning, simulated: ``python -m experiments.parallel --data DATA [--sets NAME...]``.

P learners start each round from the same state, learn a part of its rows each, and their states are merged.
Prints, for every merge, the test error and how much it exceeds that of one learner that reads the same rows
in the same number of passes; for Criteo, 1 - AUC instead. Steps are chosen for every line on held-out
training rows; figures are means over random orders of the rows, differences with their standard error.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.choice import Place, climb
from benchmarks.chosen import PASSES, saved
from benchmarks.corpora import renumbered
from benchmarks.learners import FAILED, Figures, figures, mean, options
from benchmarks.loads import TRAIN, rcv1like
from benchmarks.tasks import TASKS, Split, Task
from experiments.merging import F64, RULES, H, Merge, Rows, Rule, learn, merges, settled, total
from thresher.data import Chunk
from thresher.learning.model.model import Model

LEARNERS = 8
FACTORS = tuple(2.0**k for k in range(-6, 7))
"""values tried for alpha, eta or r, relative to the one that experiments/comparison.py chose"""
SCHEDULES = {1: (16.0, 128.0, 1 / 8, 1 / 32), 5: (1.0, 16.0, 1 / 32)}
"""by passes: rounds per pass, or below 1 the length of a round as a share of the rows seen so far"""
SHARES = (1 / 8, 1 / 16, 1 / 32, 1 / 64)
HEAD = "| set | rule | passes | merge | rounds | error | above one learner | non-zeros | factor |"
CLIFF_HEAD = "| set | rule | passes | learners | one learner | 1/8 | 1/16 | 1/32 | 1/64 |"
LARGE, SCALE, LOADS = "RCV1-like", 0.2, Path(__file__).parent.parent / "build" / "loads"
SETS = {task.name: task for task in TASKS if task.name in ("RCV1-CCAT", "Criteo")}
SETS[LARGE] = Task(LARGE, f"rcv1like-{round(TRAIN * SCALE)}.train.svm", "rcv1like.test.svm")
ORDERS = {("RCV1-CCAT", 1): 10, ("Criteo", 1): 10}
"""number of random orders that are tested; else 5"""


class Setting(NamedTuple):
    """How to learn: without `merge`, one learner."""

    rule: Rule
    passes: int = 1
    merge: Merge | None = None
    schedule: float = 1.0
    parts: int = LEARNERS


def rounds(size: int, passes: int, schedule: float, parts: int) -> Iterator[tuple[int, int, int]]:
    """Yield ``(from, to, learners)`` of each round; see `SCHEDULES`. A round ends with its pass.

    One learner begins alone where rounds grow, until each would get a row.
    """
    for number in range(passes):
        lo = 0
        while lo < size:
            seen = number * size + lo
            growing = seen * schedule or parts / schedule
            length = growing if schedule < 1 else size / schedule
            hi = min(size, round(lo + length)) if size - lo >= 1.5 * length else size
            yield lo, hi, 1 if schedule < 1 and seen == 0 else parts
            lo = hi


def train(setting: Setting, h: H, rows: Rows, order: NDArray[np.int64], width: int) -> F64:
    """Learn all rounds; return the weights, with the intercept last."""
    rule, merge, parts = setting.rule, setting.merge, setting.parts if setting.merge else 1
    S = np.zeros((parts + 1, 4, width))  # the last state is the one before the round
    for lo, hi, count in rounds(len(order), setting.passes, setting.schedule, parts):
        touched, cuts = np.zeros(width, np.bool_), np.linspace(lo, hi, count + 1).astype(int)
        for part, first, last in zip(S, cuts, cuts[1:], strict=False):
            learn(rule.weight, rule.aim, rule.step, part, h, rows, order[first:last], touched)
        if merge:
            (met,) = np.nonzero(touched)
            S[:, :, met] = merge(S[-1][:, met], S[:count, :, met], rule, h)
    return np.asarray(settled(rule.weight, S[0], h))


def rows_of(chunk: Chunk, features: int) -> Rows:
    """The rows of a chunk with keys from 1 to `features`, and the intercept last in each row."""
    ends = chunk.indptr[1:]
    keys = np.insert(chunk.keys.astype(np.int64) - 1, ends, features)
    values = np.insert(chunk.values.astype(np.float64), ends, 1.0)
    return Rows(chunk.indptr + np.arange(len(ends) + 1), keys, values, np.where(chunk.labels > 0, 1.0, -1.0))


class Side:
    """A split as `Rows`."""

    def __init__(self, split: Split) -> None:
        self.split = split
        train, test = renumbered((split.train, split.test))
        features = int(max(train.keys.max(), test.keys.max()))
        self.train, self.test, self.width = rows_of(train, features), rows_of(test, features), features + 1

    def margins(self, w: F64) -> F64:
        """Margins of the test rows."""
        return np.add.reduceat(w[self.test.keys] * self.test.values, self.test.indptr[:-1])

    def tested(self, setting: Setting, h: H, number: int) -> Figures:
        """Learn the rows in random order `number`, and test."""
        order = np.random.default_rng(number).permutation(len(self.train.labels))
        with np.errstate(over="ignore", invalid="ignore"):  # sums may diverge
            w = train(setting, h, self.train, order, self.width)
            margins = self.margins(w)
        if not np.isfinite(margins).all():
            return FAILED
        return figures(self.split.test, "one", margins, int(np.count_nonzero(w[:-1])), True)

    def check(self, rule: Rule, h: H) -> None:
        """Compare one pass in file order with thresher's; AssertionError if margins differ."""
        model = Model(rule.spec(h), rule.loss, dtype="float64")
        model.learn(self.split.train)
        w = train(Setting(rule), h, self.train, np.arange(len(self.train.labels)), self.width)
        expected = model.margins(self.split.test)
        assert np.allclose(self.margins(w), expected, rtol=1e-7, atol=1e-9), f"{rule.name} is not thresher's"


def start(rule: Rule, task: str) -> H:
    """The parameters that experiments/comparison.py chose for one pass; AdaGrad without its penalty."""
    like = "RCV1-CCAT" if task == LARGE else task
    (command,) = (c.command for c in saved() if (c.task, c.table, c.name) == (like, PASSES[1], rule.name))
    given = dict(pair.split("=") for pair in options(command)["rule"].partition(":")[2].split(","))
    return tuple(float(given.get(name, value)) if value else value for name, value in rule.defaults.items())


def best(side: Side, settings: list[Setting], h: H) -> tuple[Setting, float]:
    """The variant, and the factor for the first parameter, with the fewest errors on held-out rows."""
    judge, tries, found = side.split.task.judge, range(100, 102), list[tuple[float, int, float]]()
    for number, setting in enumerate(settings):

        def value(place: Place, setting: Setting = setting) -> tuple[float]:
            own = (h[0] * FACTORS[place[0]], *h[1:])
            return (mean([side.tested(setting, own, k) for k in tries]).badness(judge),)

        value = lru_cache(value)
        place = climb([len(FACTORS)], (FACTORS.index(1.0),), value)
        found.append((value(place)[0], number, FACTORS[place[0]]))
    _, number, factor = min(found)
    return settings[number], factor


def lines(split: Split, rule: Rule, passes: int) -> Iterator[str]:
    """Yield the rows of the table for one rule."""
    name, held, whole = split.task.name, Side(split.inner[0]), Side(split)
    h, serial = start(rule, name), np.zeros(0)
    whole.check(rule, h)
    variants: list[tuple[str, list[Merge | None], float]] = [("one learner", [None], 1.0)]
    variants += [(called, [*made], each) for called, made in merges(rule) for each in SCHEDULES[passes]]
    for called, made, schedule in variants:
        setting, factor = best(held, [Setting(rule, passes, merge, schedule) for merge in made], h)
        found = [
            whole.tested(setting, (h[0] * factor, *h[1:]), k) for k in range(ORDERS.get((name, passes), 5))
        ]
        bad = 100 * np.array([one.badness(split.task.judge) for one in found])
        serial = bad if setting.merge is None else serial
        above, count = bad - serial, sum(1 for _ in rounds(len(split.train), passes, schedule, LEARNERS))
        spread = above.std(ddof=1) / math.sqrt(len(above))
        cells = [name, rule.name, passes, called, count if setting.merge else "", f"{bad.mean():.2f}"]
        cells += [f"{above.mean():+.2f} ± {spread:.2f}" if setting.merge else "", f"{mean(found).nonzero:,}"]
        yield "| " + " | ".join(map(str, [*cells, f"{factor:g}"])) + " |"


def cliff(split: Split, rule: Rule, passes: int) -> Iterator[str]:
    """Yield lines that show how short rounds must be for sums, at the step chosen for one learner."""
    name, held, whole = split.task.name, Side(split.inner[0]), Side(split)
    h = start(rule, name)
    _, factor = best(held, [Setting(rule, passes)], h)
    for parts in (LEARNERS, 4 * LEARNERS):
        settings = [Setting(rule, passes), *(Setting(rule, passes, total, each, parts) for each in SHARES)]
        found = [whole.tested(one, (h[0] * factor, *h[1:]), 0) for one in settings]
        bad = (f"{100 * one.badness(split.task.judge):.2f}" for one in found)
        yield "| " + " | ".join([name, rule.name, str(passes), str(parts), *bad]) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure what merging the states of 8 learners costs.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder of the data sets")
    parser.add_argument("--loads", type=Path, default=LOADS, metavar="DIR", help="folder for generated data")
    parser.add_argument("--sets", nargs="+", default=[*SETS], choices=[*SETS])
    parser.add_argument("--rules", nargs="+", default=[*RULES], choices=[*RULES])
    parser.add_argument("--passes", nargs="+", type=int, default=[*SCHEDULES], choices=[*SCHEDULES])
    parser.add_argument("--cliff", action="store_true", help="only how sums depend on the length of rounds")
    given = parser.parse_args()
    if LARGE in given.sets:
        rcv1like(given.loads, SCALE)
    print(CLIFF_HEAD if given.cliff else HEAD, "|---" * 9 + "|", sep="\n")
    for name in given.sets:
        split = SETS[name].split(given.loads if name == LARGE else given.data)
        for rule, passes in product(given.rules, given.passes):
            for line in (cliff if given.cliff else lines)(split, RULES[rule], passes):
                print(line, flush=True)


if __name__ == "__main__":
    main()
