"""Dense oracles of the rules that project, by sorting or bisection over all coordinates."""

import numpy as np

from tests.oracle_base import Oracle, Vector


def threshold_of(v: Vector, total: float) -> float:
    """θ with Σ(v − θ)₊ = total, by sorting: Duchi et al. (ICML 2008), Figure 1."""
    u = np.sort(v)[::-1]
    sums = np.cumsum(u)
    theta = 0.0
    for k in range(len(u)):
        if u[k] * (k + 1) > sums[k] - total:
            theta = (sums[k] - total) / (k + 1)
    return theta


class L1Ball(Oracle):
    """Projection of w − ηg onto ‖w‖₁ ≤ radius: Duchi et al. (ICML 2008), Figure 1 and section 4."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        eta: float = self.rule.rate.at(t)
        moved = w - eta * g
        sizes = np.abs(moved) * self.mask
        if np.sum(sizes) <= self.rule.radius:
            return moved
        theta = threshold_of(sizes, self.rule.radius)
        kept: Vector = np.sign(moved) * np.maximum(np.abs(moved) - theta, 0.0)
        return np.where(self.mask > 0, kept, moved)
