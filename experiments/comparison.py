"""Choose the parameters of every rule and peer on training rows: ``experiments.comparison DATA [NAME...]``.

Writes benchmarks/chosen.tsv; ``python -m benchmarks --only comparison --data DATA`` trains and tests these
settings. With names, only the lines of these rules and peers are replaced. Test rows are used only for the
lines whose table ends in `BY_TEST`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks import learners
from benchmarks.choice import Place, climb, filled, ladders, middle, place_of
from benchmarks.chosen import BUDGETS, BY_TEST, CHOSEN, PASSES, Choice, saved, write
from benchmarks.learners import Figures, mean
from benchmarks.tasks import TASKS, Split
from thresher.parts import REGISTRY

RATE = "--rate inverse-sqrt:0.0078|0.031|0.125|0.5|2|8|32|128"
L1 = "l1=1e-8|1e-7|1e-6|3e-6|1e-5|3e-5|1e-4|1e-3"
SMALL = "--rate inverse-sqrt:0.0005|0.002|0.0078|0.031|0.125|0.5"
HINGE, MISTAKES = "--loss hinge", "--loss perceptron"
WIDE = "0.0001|0.0003|0.001|0.003|0.01|0.03|0.1|0.3|1|3|10"
# the options of a rule or peer: a|b|c are alternatives, with similar ones next to each other
GRIDS: dict[str, tuple[str, ...]] = {
    "adagrad-fobos": (f"--rule adagrad-fobos:eta=0.003|0.01|0.03|0.1|0.3|1|3,{L1}",),
    "adagrad-rda": (f"--rule adagrad-rda:eta=0.003|0.01|0.03|0.1|0.3|1|3,{L1}",),
    "arow": (f"--rule arow:r=0.01|0.1|1|10|100|1000 {HINGE}",),
    "averaged-perceptron": (f"--rule averaged-perceptron {MISTAKES}",),
    "clipped-subgradient": (f"--rule clipped-subgradient:{L1} {RATE}",),
    "coin": ("--rule coin:wealth=0.01|0.1|1|10,alpha=1|10|100",),
    "cumulative": (f"--rule cumulative:{L1} {RATE}",),
    "cw": ("--rule cw:eta=0.55|0.6|0.7|0.8|0.9|0.99",),
    "eg": (f"--rule eg:norm=30|100|300|1000|3000 {SMALL}",),
    "fobos": (f"--rule fobos:{L1} {RATE}",),
    "fobos-l2norm": (f"--rule fobos-l2norm:l2norm=1e-6|1e-5|1e-4|1e-3|1e-2 {RATE}",),
    "fobos-linf": (f"--rule fobos-linf:linf=1e-6|1e-5|1e-4|1e-3|1e-2 {RATE}",),
    "ft-cumulative": (f"--rule ft-cumulative:{L1} {RATE}",),
    "ft-fobos": (f"--rule ft-fobos:{L1} {RATE}",),
    "ftrl": ("--rule ftrl:alpha=0.003|0.01|0.03|0.1|0.3|1|3|10,l1=0.003|0.01|0.03|0.1|0.3|1|3",),
    "l1-ball": (f"--rule l1-ball:radius=10|30|100|300|1000|3000 {RATE}",),
    "l2-ball": (f"--rule l2-ball:radius=1|3|10|30|100|300 {RATE}",),
    "normalized": ("--rule normalized:eta=0.003|0.01|0.03|0.1|0.3|1|3",),
    "pa": (f"--rule pa:eta=0.01|0.03|0.1|0.3|1 {HINGE}",),
    "pa-i": (f"--rule pa-i:C={WIDE} {HINGE}",),
    "pa-ii": (f"--rule pa-ii:C={WIDE} {HINGE}",),
    "pegasos": (f"--rule pegasos:l2=1e-6|1e-5|3e-5|1e-4|3e-4|1e-3|1e-2 {HINGE}",),
    "perceptron": (f"--rule perceptron {MISTAKES}",),
    "rda": (f"--rule rda:gamma=0.003|0.01|0.03|0.1|0.3|1|3|10|30|100,{L1}",),
    "rounding": (f"--rule rounding:theta=0.0001|0.001|0.01|0.1,every=1000 {RATE}",),
    "scw": (f"--rule scw:C={WIDE},eta=0.6|0.8|0.9|0.99",),
    "scw-ii": (f"--rule scw-ii:C={WIDE},eta=0.6|0.8|0.9|0.99",),
    "sgd": (f"--rule sgd {RATE}",),
    "stabilised": (
        "--rule stabilised:rejection=0.1|0.3|0.5|0.8,annealing=-9|0|5,purging=0|0.2|0.5|0.85,"
        f"every=300|1000|3000 {RATE}",
    ),
    "subgradient": (f"--rule subgradient:{L1},theta=0.001|0.01 {RATE}",),
    "truncated-gradient": (f"--rule truncated-gradient:gravity={L1.removeprefix('l1=')},every=10 {RATE}",),
    learners.BATCH: ("--C 0.003|0.01|0.03|0.1|0.3|1|3|10|30",),
    learners.SGD: tuple(
        f"--loss log_loss|hinge --penalty {penalty} --alpha 1e-6|1e-5|1e-4|1e-3|1e-2"
        for penalty in ("l1", "l2")
    ),
    learners.VW: (
        "--ftrl --ftrl_alpha 0.003|0.01|0.03|0.1|0.3|1|3|10 --l1 0.01|0.1|1",
        "-l 0.02|0.1|0.5|2|8 --l1 0|1e-8|1e-7|1e-6",
        "--coin",
    ),
}
SLOW = {("news20", name) for name in ("eg", "fobos-linf", "l1-ball", "stabilised")} | {
    ("Criteo", "subgradient")
}
"""too slow to search with ten passes: the choice for one pass is kept"""
OMITTED = {("news20", "subgradient")}
"""replaying its steps for 20 outputs takes minutes per pass"""
OTHER = ("simplex",)
"""not classifiers: weights are positive and add up to 1"""
# the search for few errors with few weights
ORDER = "--passes 1|3|10 --order as-is|every"
LOSSES = "--loss logistic|squared-hinge|hinge --passes 1|2|3|5|10 --order as-is|every"
SHAPES = ("inverse-sqrt:2|4|8|16|32|64", "power:0.25|0.5|1|2|4|8,t0=20000,p=0.5")
FINE = "1e-6|2e-6|3e-6|5e-6|7e-6|1e-5|1.5e-5|2e-5|3e-5|5e-5|7e-5|1e-4|1.5e-4|2e-4|3e-4|5e-4|1e-3"
SPARSE: dict[str, tuple[str, ...]] = {
    "ftrl": (
        "--rule ftrl:alpha=0.1|0.2|0.5|1|2|4|8|16,beta=0|0.1|1|4,"
        f"l1=0.1|0.15|0.2|0.3|0.4|0.5|0.7|1|1.4|2|3|4|5|6|8|10,l2=0|0.01|0.1 {LOSSES}",
    ),
    "adagrad-rda": (
        f"--rule adagrad-rda:eta=0.05|0.1|0.2|0.5|1|2|4|8,l1={FINE},delta=0.0001|0.001|0.01|0.1 {LOSSES}",
    ),
    "adagrad-fobos": (
        f"--rule adagrad-fobos:eta=0.05|0.1|0.2|0.5|1|2|4|8,l1={FINE},delta=0.0001|0.001|0.01|0.1 {ORDER}",
    ),
    "rda": (f"--rule rda:gamma=0.003|0.005|0.01|0.02|0.05|0.1|0.2,l1={FINE},rho=0|0.005|0.02 {ORDER}",),
    "fobos": tuple(f"--rule fobos:l1={FINE} --rate {rate} {ORDER}" for rate in SHAPES),
    "cumulative": tuple(f"--rule cumulative:l1={FINE} --rate {rate} {ORDER}" for rate in SHAPES),
    "l1-ball": tuple(
        f"--rule l1-ball:radius=50|100|150|200|300|400|600|800|1200|1600 --rate {rate} {ORDER}"
        for rate in SHAPES
    ),
    learners.BATCH: ("--C 0.3|0.5|0.7|1|1.4|1.7|2|2.2|2.4|2.6|2.8|3|4|5|7",),
}
BUDGET = (1300, 5000)
PRICES = (0.03, 0.009, 0.0045, 0.002)
"""decrease of the error rate that must pay for e times as many weights"""
RANKED = 30


def tried(name: str, split: Split, passes: int, template: str, known: Tried, place: Place) -> Figures:
    """Return the mean figures of a place of a template on the inner splits, cached in `known`."""
    command, learn = filled(template, place), learners.learner(name)
    assert learn is not None
    if command not in known:
        known[command] = mean([learn(inner, command, passes) for inner in split.inner])
    return known[command]


Tried = dict[str, Figures]


def best(name: str, split: Split, passes: int, before: str = "") -> Choice:
    """Return the command, of all templates, with the fewest errors on held-out training rows.

    The climb starts from the command `before` if that matches the template.
    """
    known: Tried = {}
    judge = split.task.judge
    for template in GRIDS[name]:
        lengths = [len(rungs) for rungs in ladders(template)]
        learned = partial(tried, name, split, passes, template, known)
        try:
            start = place_of(template, before)
        except ValueError:
            start = middle(lengths)
        climb(lengths, start, lambda place, of=learned: (of(place).badness(judge), of(place).nonzero))  # type: ignore[misc]
    command = min(known, key=lambda one: (known[one].badness(judge), known[one].nonzero))
    return Choice(split.task.name, PASSES[passes], name, command, known[command].badness(judge))


def within(name: str, split: Split) -> Iterator[Choice]:
    """Yield, for each budget of weights, the best command on held-out training rows, then on the test rows.

    Climbs with several `PRICES` of a weight collect commands; the `RANKED` best are compared on all folds of
    the training part. Weights are counted after training on all of it. The second choice compares the same
    commands on the test rows.
    """
    known = explored(name, split)
    learn = learners.learner(name)
    assert learn is not None
    for budget in BUDGET:
        ranked = sorted(
            (command for command, found in known.items() if 0 < found.nonzero <= budget),
            key=lambda command: (known[command].error, known[command].nonzero),
        )[:RANKED]
        whole = {command: learn(split, command, 1) for command in ranked}
        fitting = [command for command in ranked if whole[command].nonzero <= budget]
        held = {command: mean([learn(fold, command, 1) for fold in split.folds]).error for command in fitting}
        if fitting:
            by_test = min(fitting, key=lambda command: whole[command].error)
            for table, command in (("", min(fitting, key=held.__getitem__)), (BY_TEST, by_test)):
                yield Choice(split.task.name, f"{BUDGETS}{budget}{table}", name, command, held[command])


def explored(name: str, split: Split) -> Tried:
    """Return all commands tried by climbs with each of `PRICES`, from the middle and from the last result."""
    known: Tried = {}
    for template in SPARSE[name]:
        lengths = [len(rungs) for rungs in ladders(template)]
        learned = partial(tried, name, split, 1, template, known)
        place = middle(lengths)
        for price in PRICES:
            value = partial(_priced, learned, price)
            place = min((climb(lengths, start, value) for start in {place, middle(lengths)}), key=value)
    return known


def _priced(learned: Callable[[Place], Figures], price: float, place: Place) -> tuple[float]:
    """Return the error plus a price for the logarithm of the number of weights."""
    found = learned(place)
    return (found.error + price * math.log(found.nonzero) if found.nonzero else math.inf,)


def choices(folder: Path, names: set[str]) -> Iterator[Choice]:
    """Yield all lines for these names."""
    for task in TASKS:
        split = task.split(folder)
        for name in sorted(name for name in names & set(GRIDS) if (task.name, name) not in OMITTED):
            choice = best(name, split, 1)
            yield choice
            if (task.name, name) in SLOW:
                yield choice._replace(table=PASSES[10])
            else:
                yield best(name, split, 10, choice.command)
        if task is TASKS[0]:
            for name in sorted(names & set(SPARSE)):
                yield from within(name, split)


def main() -> None:
    """Choose settings and write the file after each of them."""
    known = set(REGISTRY["rule"]) | set(learners.PEERS)
    missing = set(REGISTRY["rule"]) - {*GRIDS, *OTHER}
    if missing:
        sys.exit(f"add a line to GRIDS for these rules: {', '.join(sorted(missing))}")
    names = set(sys.argv[2:]) or known
    made = [choice for choice in saved() if choice.name in known - names] if CHOSEN.exists() else []
    for choice in choices(Path(sys.argv[1]), {name for name in names & known if learners.learner(name)}):
        print("\t".join(map(str, choice)), file=sys.stderr, flush=True)
        made.append(choice)
        write(made)


if __name__ == "__main__":
    main()
