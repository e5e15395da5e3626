"""Every rule in memory, compared with plain sgd."""

from __future__ import annotations

from benchmarks import report
from benchmarks.learning import in_memory, one_pass, slices
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.parts import REGISTRY

BASE = "sgd"
LOSSES = {
    "pegasos": "hinge",
    "pa": "hinge",
    "pa-i": "hinge",
    "pa-ii": "hinge",
    "arow": "hinge",
    "perceptron": "perceptron",
    "averaged-perceptron": "perceptron",
    "simplex": "wealth",
}
SPECS = {"simplex": "simplex:features=50000"}
FIRST_ORDER = 2.5
# rule -> largest allowed ratio to the time of sgd
GOALS = {
    "truncated-gradient": FIRST_ORDER,
    "rounding": FIRST_ORDER,
    "subgradient": FIRST_ORDER,
    "clipped-subgradient": FIRST_ORDER,
    "stabilised": FIRST_ORDER,
    "fobos": FIRST_ORDER,
    "fobos-l2norm": FIRST_ORDER,
    "ft-fobos": FIRST_ORDER,
    "cumulative": FIRST_ORDER,
    "ft-cumulative": FIRST_ORDER,
    "rda": FIRST_ORDER,
    "l2-ball": FIRST_ORDER,
    "pegasos": FIRST_ORDER,
    "pa": FIRST_ORDER,
    "pa-i": FIRST_ORDER,
    "pa-ii": FIRST_ORDER,
    "perceptron": FIRST_ORDER,
    "averaged-perceptron": FIRST_ORDER,
    "adagrad-fobos": 3.0,
    "adagrad-rda": 3.0,
    "ftrl": 3.0,
    "arow": 3.0,
    "l1-ball": 15.0,
    "fobos-linf": 15.0,
}


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check the goals."""
    whole = in_memory(setting.rcv1like.train)
    chunks = slices(whole)
    names = [BASE, *sorted(set(REGISTRY["rule"]) - {BASE})]
    contenders = {
        name: one_pass(chunks, SPECS.get(name, name), LOSSES.get(name, "logistic")) for name in names
    }
    found = setting.in_turn(contenders, warm=names)
    report.times(
        "every rule in memory: direct store, float32 unless the rule needs more, defaults, its own loss",
        found,
        BASE,
        {"ns/nnz": whole.nnz},
    )
    judged = []
    for name in sorted(set(GOALS) & set(found)):
        value, text = report.ratio(found, name, BASE)
        judged.append(Goal(f"{name} : {BASE}", f"<= {GOALS[name]:g}", text, value <= GOALS[name]))
    return judged
