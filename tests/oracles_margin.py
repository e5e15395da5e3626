"""Dense recursions of the passive-aggressive, perceptron and confidence-weighted rules: see `tests.oracles`.

A loss other than the paper's is replaced by its tangent; f = importance · ℓ and g = importance · dℓ/dp are
its value and slope. The hinge with importance 1 has f = ℓ and g = −y, which gives the papers' formulas.
"""

from statistics import NormalDist
from typing import Any

import numpy as np

from tests.oracle_base import Oracle, Vector


class Pa(Oracle):
    """w − η·τ·∇f, τ = f / ‖∇f‖²: Crammer et al. (JMLR 7, 2006), Figure 1 with η = 1."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        square = np.sum(g * g)
        tau = max(value, 0.0) / square if square > 0 else 0.0
        pull: Vector = self.rule.eta * tau * g
        return w - pull


class PaI(Oracle):
    """w − min(C, τ)·∇f: Crammer et al. (JMLR 7, 2006), PA-I, the C of an example times its importance."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        square = np.sum(g * g)
        tau = min(self.rule.C, max(value, 0.0) / square) if square > 0 else 0.0
        return w - tau * g


class Whole(Oracle):
    """An oracle that sees the example: `x`, and in `seen` margin, slope and importance."""

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.x = np.zeros_like(mask)
        self.seen = np.zeros(3)

    def look(self, x: Vector, margin: float, slope: float, importance: float) -> None:
        self.x[:] = x
        self.seen[0] = margin
        self.seen[1] = slope
        self.seen[2] = importance


class PaIi(Whole):
    """w + τ·y·x, τ = l / (‖x‖² + 1/(2C·|g|)), l = f/|g|: Crammer et al. (JMLR 7, 2006), PA-II."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        weight = abs(self.seen[1]) * self.seen[2]
        if weight == 0:
            return w
        tau = (max(value, 0.0) / weight) / (np.sum(self.x * self.x) + 1 / (2 * self.rule.C * weight))
        pull: Vector = tau * np.sign(self.seen[1]) * self.x
        return w - pull


class Arow(Whole):
    """μ + αΣyx, Σ⁻¹ + xxᵀ/r, the diagonal of the latter: Crammer, Kulesza and Dredze (NIPS 2009), Figure 1.

    α = l·β, β = 1/(xᵀΣx + r), l = f/|g|, the r of an example divided by |g|.
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.sigma = np.ones_like(mask)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        weight = abs(self.seen[1]) * self.seen[2]
        if weight == 0 or value <= 0:
            return w
        r = self.rule.r / weight
        beta = 1 / (np.sum(self.x * self.sigma * self.x) + r)
        w = w - value / weight * beta * np.sign(self.seen[1]) * self.sigma * self.x
        self.sigma[:] = 1 / (1 / self.sigma + self.x * self.x / r)
        return w


class Gaussian(Whole):
    """What CW and SCW share: variances and φ. A margin whose variance is below 2⁻¹⁰⁰ teaches nothing."""

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.sigma = np.ones_like(mask)
        self.phi = NormalDist().inv_cdf(rule.eta)


class Cw(Gaussian):
    """μ + αyΣx, Σ⁻¹ + αφu^(−½)·xxᵀ, the diagonal of the latter: Crammer, Dredze and Pereira (NIPS 2008).

    α = max(0, (−mψ + √(m²φ⁴/4 + vφ²ζ)) / (vζ)), ψ = 1 + φ²/2, ζ = 1 + φ², √u = ½(−αvφ + √(α²v²φ² + 4v)),
    which is 2v / (αvφ + √(α²v²φ² + 4v)) without cancellation.
    """

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        m, v, phi = -self.seen[0] * np.sign(self.seen[1]), np.sum(self.x * self.sigma * self.x), self.phi
        if self.seen[1] * self.seen[2] == 0 or v < 2.0**-100:
            return w
        psi, zeta = 1 + phi**2 / 2, 1 + phi**2
        alpha = max(0.0, (-m * psi + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)) / (v * zeta))
        root = 2 * v / (alpha * v * phi + np.sqrt((alpha * v * phi) ** 2 + 4 * v))
        w = w - alpha * np.sign(self.seen[1]) * self.sigma * self.x
        self.sigma[:] = 1 / (1 / self.sigma + alpha * phi / root * self.x * self.x)
        return w


class Scw(Gaussian):
    """CW with α ≤ C · importance: Wang, Zhao and Hoi (ICML 2012), Proposition 1."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        m, v, phi = -self.seen[0] * np.sign(self.seen[1]), np.sum(self.x * self.sigma * self.x), self.phi
        if self.seen[1] * self.seen[2] == 0 or v < 2.0**-100:
            return w
        psi, zeta = 1 + phi**2 / 2, 1 + phi**2
        alpha = max(0.0, (-m * psi + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)) / (v * zeta))
        alpha = min(alpha, self.rule.C * self.seen[2])
        root = 2 * v / (alpha * v * phi + np.sqrt((alpha * v * phi) ** 2 + 4 * v))
        w = w - alpha * np.sign(self.seen[1]) * self.sigma * self.x
        self.sigma[:] = 1 / (1 / self.sigma + alpha * phi / root * self.x * self.x)
        return w


class ScwIi(Gaussian):
    """α = max(0, (−(2mn + φ²mv) + γ) / (2(n² + nvφ²))): Wang, Zhao and Hoi (ICML 2012), Proposition 2.

    γ = φ√(φ²m²v² + 4nv(n + vφ²)), n = v + 1/(2C · importance); u as in CW.
    """

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        m, v, phi = -self.seen[0] * np.sign(self.seen[1]), np.sum(self.x * self.sigma * self.x), self.phi
        if self.seen[1] * self.seen[2] == 0 or v < 2.0**-100:
            return w
        n = v + 1 / (2 * self.rule.C * self.seen[2])
        gamma = phi * np.sqrt((phi * m * v) ** 2 + 4 * n * v * (n + v * phi**2))
        alpha = max(0.0, (-(2 * m * n + phi**2 * m * v) + gamma) / (2 * (n**2 + n * v * phi**2)))
        root = 2 * v / (alpha * v * phi + np.sqrt((alpha * v * phi) ** 2 + 4 * v))
        w = w - alpha * np.sign(self.seen[1]) * self.sigma * self.x
        self.sigma[:] = 1 / (1 / self.sigma + alpha * phi / root * self.x * self.x)
        return w


class Perceptron(Oracle):
    """w − ηg: Rosenblatt (1958); with the perceptron's loss w + ηyx on a mistake."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        eta: float = self.rule.eta
        return w - eta * g


class AveragedPerceptron(Oracle):
    """The perceptron, read as (w_1 + … + w_T)/T: Freund and Schapire (Machine Learning 37, 1999)."""

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.total = np.zeros_like(mask)
        self.count = np.zeros(1)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        self.total[:] += w
        self.count[:] = t
        eta: float = self.rule.eta
        return w - eta * g

    def read(self, w: Vector) -> Vector:
        return self.total / np.maximum(self.count, 1.0)


MARGIN_ORACLES: list[type[Oracle]] = [Pa, PaI, PaIi, Arow, Cw, Scw, ScwIi, Perceptron, AveragedPerceptron]
