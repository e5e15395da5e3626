"""A rule of your own, in your own file: AdaGrad steps with an L1 penalty.

Run it: ``python examples/own_rule.py``.

A rule is a NamedTuple. Its fields are hyper-parameters; its methods update one coordinate. They are compiled
into the learner's loop and cached on disk, like those of the built-in rules. Compiled code does not check
indices: run a new rule once with NUMBA_BOUNDSCHECK=1 in the environment, where a wrong one is an IndexError.

The method is composite mirror descent with a diagonal matrix (Duchi, Hazan and Singer, 2011). With G the sum
of the squared gradients of a coordinate and a = delta + sqrt(G),

    w' = soft(w - eta g / a, eta l1 / a).

The update is lazy. In a step whose example lacks the feature, the gradient is 0: `a` stays the same and |w|
shrinks by eta l1 / a. A coordinate last updated at step tau therefore owes (t - tau) eta l1 / a. Its row of
state stores tau as `paid`, and `weight` applies the missing shrinkage.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thresher import Model, open_source, part
from thresher.parts.prox import soft

W, SQUARES, PAID = range(3)  # columns of S
STEPS = 0  # the place in the clock
DATA = Path(__file__).parent / "data" / "rcv1_train2000.dat.gz"


@part(
    "rule",
    SLOTS=("w", "squares", "paid"),  # state of a coordinate, initially all zeros
    CLOCK=("steps",),  # scalars shared by all coordinates
    PENALTIES=("l1",),  # not applied to the intercept
    DTYPE="float64",  # `paid` counts steps, which must be exact
)
class AdagradL1(NamedTuple):
    """w' = soft(w - eta g / a, eta l1 / a), a = delta + sqrt(sum of g^2), for each coordinate."""

    eta: float = 0.5
    l1: float = 3e-4
    delta: float = 0.01

    def clock0(self) -> Any:
        return np.zeros(1)

    def weight(self, S: Any, j: int, now: Any) -> Any:
        a = self.delta + math.sqrt(S[j, SQUARES])
        return soft(S[j, W], (now[STEPS] - S[j, PAID]) * self.eta * self.l1 / a)

    def step(self, S: Any, j: int, w: float, x: float, slope: float, now: Any) -> None:
        g = slope * x
        S[j, SQUARES] += g * g
        S[j, W] = w - self.eta * g / (self.delta + math.sqrt(S[j, SQUARES]))
        S[j, PAID] = now[STEPS]  # the penalty is owed from this step on

    def tick(self, clock: Any) -> None:
        clock[STEPS] += 1.0


def main() -> None:
    model = Model("adagrad-l1:eta=0.5,l1=3e-4", "logistic")
    for chunk in open_source(DATA).chunks():
        model.learn(chunk)
    print(f"progressive loss {model.tally.average:.4f}")
    print(f"non-zeros        {model.nonzero} of {model.features_seen} features seen")


if __name__ == "__main__":
    main()
