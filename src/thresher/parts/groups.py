"""What a penalty holds together: each output's weight of a feature by itself, or all of them as a group.

With a group norm the penalty is the sum over the features of ||W_j|| (mixed norms l1/l2 and l1/linf): a
feature lives or dies for all outputs at once. By the lemma of Duchi and Singer (JMLR 2009, section 6),
steps of strengths a_1, ..., a_T without a gradient between them equal one of strength a_1 + ... + a_T.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from thresher.engine.jit import helper, scalar
from thresher.engine.verbs import together
from thresher.parts.prox import soft
from thresher.parts.registry import part
from thresher.parts.series import decays


@scalar
def length(v):
    """||v||_2."""
    squares = 0.0
    for k in range(v.size):
        squares += np.float64(v[k]) * np.float64(v[k])  # compiled, float() leaves a float32 as it is
    return math.sqrt(squares)


@helper
def adapt(group, T, out, n, middle, eta, delta, l1, l2):
    """Weights of a feature whose outputs share the step size eta / a, a = delta + ||G||_2, after penalties.

    Added up over n consecutive numbers of penalties, of mean `middle`: the prox commutes with scaling, and is
    linear while the same outputs are largest. Columns of `T`: weights before the last step, roots of sums of
    squared gradients, the last gradient.
    """
    root = length(T[:, 1])
    for k in range(out.size):
        out[k] = T[k, 0]
    if root == 0.0:
        return
    scale = eta / (delta + root)
    for k in range(out.size):
        out[k] -= scale * T[k, 2]
    decay = 0.0 if l2 == 0.0 else decays(middle, n, math.log1p(l2 * scale))
    for k in range(out.size):
        out[k] *= n + decay
    together(group, out, n * middle * l1 * scale if l2 == 0.0 else -decay * l1 / l2)


@part("group")
class Single(NamedTuple):
    """soft(v, owed): the l1 norm of all weights, each output by itself.

    >>> Single().alone(0.5, 0.2)
    0.3
    """

    unused: float = 0.0

    def alone(self, v, owed):
        """The soft threshold."""
        return soft(v, owed)

    def together(self, out, owed):
        """Done already."""

    def dual(self, v):
        """The largest magnitude."""
        return np.abs(v).max()


@part("group")
class L2(NamedTuple):
    """v max(0, 1 - owed / ||v||_2), v the weights of one feature for all outputs.

    Reference: Duchi and Singer (JMLR 2009), section 5.3; Yuan and Lin (2006).

    >>> out = np.array([3.0, 4.0])
    >>> L2().together(out, 1.0)
    >>> out
    array([2.4, 3.2])
    """

    unused: float = 0.0

    def alone(self, v, owed):
        """Left to `together`."""
        return v

    def dual(self, v):
        """The same norm."""
        return length(v)

    def together(self, out, owed):
        """Scale the group."""
        norm = length(out)
        factor = out.dtype.type(1.0 - owed / norm if norm > owed else 0.0)
        for k in range(out.size):
            out[k] *= factor

    def grouped(self):
        """Outputs settle together."""
        return True


@part("group")
class Linf(NamedTuple):
    """v less its projection onto the l1 ball of radius `owed`: a cap above which |v| adds up to `owed`.

    Reference: Duchi and Singer (JMLR 2009), section 5.4.

    >>> out = np.array([3.0, -2.5, 1.0])
    >>> Linf().together(out, 1.5)
    >>> out
    array([ 2., -2.,  1.])
    """

    unused: float = 0.0

    def alone(self, v, owed):
        """Left to `together`."""
        return v

    def dual(self, v):
        """Sum of the magnitudes."""
        return np.abs(v).sum()

    def together(self, out, owed):
        """Cap the group; all of it goes where its l1 norm is no more than `owed`."""
        if owed <= 0.0:
            return
        sizes = np.sort(np.abs(out))
        above, cap = 0.0, 0.0
        for n in range(1, sizes.size + 1):
            above += float(sizes[sizes.size - n])
            level = (above - owed) / n
            if n == sizes.size or level >= sizes[sizes.size - n - 1]:
                cap = max(level, 0.0)
                break
        for k in range(out.size):
            out[k] = max(-cap, min(out[k], cap))

    def grouped(self):
        """Outputs settle together."""
        return True
