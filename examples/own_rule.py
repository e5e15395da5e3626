"""A rule of your own, in your own file: AdaGrad steps with an L1 penalty.

Run it: ``python examples/own_rule.py``.

A rule is a NamedTuple. Its fields are hyper-parameters; its verbs say what one coordinate does. They are
compiled into the learner's loop and cached on disk, as those of the built-in rules are.

The method (Duchi, Hazan and Singer 2011, their composite mirror descent with a diagonal matrix): with G the
sum of the squared gradients of a coordinate and a = delta + sqrt(G),

    w' = soft(w - eta g / a, eta l1 / a).

An example that does not mention a coordinate gives it gradient 0: its `a` stands still and eta l1 / a comes
off |w|. A coordinate untouched since step tau therefore owes (t - tau) eta l1 / a: its row of state
remembers how many steps are paid, and `weight` pays the rest. Nothing else is ever done to it.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from thresher import Model, open_source, part
from thresher.parts.prox import soft

DATA = Path(__file__).parent / "data" / "rcv1_train2000.dat.gz"


@part("rule")
class AdagradL1(NamedTuple):
    """w' = soft(w - eta g / a, eta l1 / a), a = delta + sqrt(sum of g^2), for each coordinate."""

    eta: float = 0.5
    l1: float = 3e-4
    delta: float = 0.01
    SLOTS = ("w", "squares", "paid")  # the state of a coordinate; a new one is all zeros
    CLOCK = ("steps",)  # the scalars that all coordinates share
    PENALTIES = ("l1",)  # what the intercept is spared
    DTYPE = "float64"  # `paid` counts steps: it must be exact

    def clock0(self):
        return np.zeros(1)

    def weight(self, S, j, now):
        a = self.delta + math.sqrt(S[j, 1])
        return soft(S[j, 0], (now[0] - S[j, 2]) * self.eta * self.l1 / a)

    def step(self, S, j, w, x, slope, now):
        g = slope * x
        S[j, 1] += g * g
        S[j, 0] = w - self.eta * g / (self.delta + math.sqrt(S[j, 1]))
        S[j, 2] = now[0]  # this step's penalty is owed from here on

    def tick(self, clock):
        clock[0] += 1.0


def main() -> None:
    model = Model("adagrad-l1:eta=0.5,l1=3e-4", "logistic")
    for chunk in open_source(DATA).chunks():
        model.learn(chunk)
    print(f"progressive loss {model.tally.average:.4f}")
    print(f"non-zeros        {model.nonzero} of {model.features_seen} features seen")


if __name__ == "__main__":
    main()
