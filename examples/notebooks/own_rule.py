"""
A rule of one's own
===================

An online learner is a rule: what happens to the weight of a feature when an example has it. Here we write one
that is not built in, have it checked by the laws that all rules obey, and compare it with others.
"""

# %%
# The update
# ----------
#
# AdaGrad with *momentum* on each coordinate:
#
# .. math::
#
#    m' = \beta m + g, \qquad n' = n + g^2, \qquad w' = w - \frac{\eta\, m'}{\epsilon + \sqrt{n'}}
#
# where :math:`g` is the gradient of the example with respect to the weight. A feature that is not in the
# example is not touched, so a step costs as much as the example has features.
#
# A rule is a ``NamedTuple``. Fields are its hyper-parameters, ``SLOTS`` names what it keeps for each
# feature; the methods are compiled into the loop of the learner.

import math
from pathlib import Path
from typing import NamedTuple

import thresher
from thresher.testing import check_rule

W, M, N = range(3)


@thresher.part("rule", SLOTS=("w", "m", "n"), LIMITS={"beta": "in [0, 1]", "epsilon": "> 0"})
class Momentum(NamedTuple):
    """m' = beta m + g, n' = n + g^2, w' = w - eta m' / (epsilon + sqrt(n'))."""

    eta: float = 0.3
    beta: float = 0.5
    epsilon: float = 0.01

    def weight(self, S, j, now):
        """The weight; no penalty is owed."""
        return S[j, W]

    def step(self, S, j, w, x, slope, now):
        """One update of coordinate j."""
        g = slope * x
        S[j, M] = self.beta * S[j, M] + g
        S[j, N] += g * g
        S[j, W] = w - self.eta * S[j, M] / (self.epsilon + math.sqrt(S[j, N]))


# %%
# The laws
# --------
#
# ``check_rule`` runs the laws over it: cut the stream anywhere, stop and go on, change the store, save in
# the middle, learn several models side by side: the same model, bit for bit. It raises ``LawError`` if one
# is broken.

check_rule(Momentum())

# %%
# A broken rule does not get far. This one counts its steps in the row of another feature:


@thresher.part("rule", SLOTS=("w", "uses"))
class Broken(NamedTuple):
    """w' = w - eta g / (1 + how often row 0 was used)."""

    eta: float = 0.3

    def weight(self, S, j, now):
        """The weight."""
        return S[j, 0]

    def step(self, S, j, w, x, slope, now):
        """One update of coordinate j; counts in the wrong row."""
        S[0, 1] += 1.0
        S[j, 0] = w - self.eta * slope * x / (1.0 + S[0, 1])


try:
    check_rule(Broken())
except thresher.testing.LawError as error:
    print(error)

# %%
# On real data
# ------------
#
# 2,000 stories of RCV1, each predicted before it is learned.

DATA = next(p / "examples" / "data" for p in (Path.cwd(), *Path.cwd().parents) if (p / "examples").is_dir())
stories = DATA / "rcv1_train2000.dat.gz"

for rule in ("momentum", "momentum:beta=0", "sgd", "adagrad-fobos", "ft-ftrl"):
    model = thresher.train(stories, rule, passes=1)
    print(f"{rule:16} progressive loss {model.tally.average:.4f}, {model.nonzero:6,} weights")

# %%
# ``sgd`` is at its default step size, which is no fair match. And does momentum help, or only its longer
# steps, in the long run 1 / (1 - beta) times as long? Cross-validation judges, with eta reduced as beta
# grows. Every difference should be seen beside the standard error of the loss over the folds.

for beta in (0, 0.25, 0.5, 0.75, 0.9):
    for step in (0.3, 1.2):
        spec = f"momentum:beta={beta},eta={step * (1 - beta):g}"
        (judged,) = thresher.cv(stories, spec, folds=5, passes=1).points
        print(f"{spec:28} loss {judged.loss:.4f} ± {judged.figures['loss_se']:.4f}")

# %%
# Longer steps help; momentum, if at all, less than these data can tell.

# %%
# In a file of its own, the rule works on the command line, with ``--module FILE``; in a package, with an
# entry point of the group ``thresher.parts``. ``examples/own_package`` is a template for one.
