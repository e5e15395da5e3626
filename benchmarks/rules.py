"""Every rule in memory, beside plain sgd."""

from __future__ import annotations

from benchmarks import report
from benchmarks.learning import in_memory, one_pass, slices
from benchmarks.report import Reach
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
}


def run(setting: Setting) -> list[Reach]:
    """Measure and print; there is no goal to judge."""
    whole = in_memory(setting.rcv1like.train)
    chunks = slices(whole)
    names = [BASE, *sorted(set(REGISTRY["rule"]) - {BASE})]
    contenders = {name: one_pass(chunks, name, LOSSES.get(name, "logistic")) for name in names}
    found = setting.in_turn(contenders, warm=names)
    report.times(
        "every rule in memory: direct store, float32 unless the rule asks for more, defaults, its own loss",
        found,
        BASE,
        {"ns/nnz": whole.nnz},
    )
    return []
