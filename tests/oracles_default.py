"""The dense recursion of the default rule. See `tests.oracles`."""

from typing import Any

import numpy as np

from tests.oracle_base import Oracle, Vector, soft


class FtFtrl(Oracle):
    """FTRL-Proximal on x/s at the step sizes ρ = αL and κ = √(t/N)e^h/f, with the threshold λf(√n + G).

    (a) where |x| > s: w, z, a and √n *= s/|x|, s = |x|; (b) predict; (c) t += 1, N += Σx²/s², L² the mean of
    (loss/slope)² (slope² where the loss is not above 0); (d) γ = slope·x/s, σ = (√(n + γ²) − √n)/ρ,
    z += γ − σsw/κ, a += σ, n += γ², w = −soft(z, λf(√n + G))·κ/(sa), G² the mean of
    slope²; (e) U += u, V += u² for u = slope·⟨w, x⟩, h = −adapt·U/√V. Pass p
    multiplies f by (p/(p − 1))^(q/2), q = min(1, 5·features met/t).
    An example without a gradient leaves all of this as it was. The intercept: s = 1, λ = h = 0.
    What the group of a feature needs of each output: `pull` = -zκ, `held` = λf(√n + G)κ, `unit` = 1/(sa).
    """

    ORIGIN = True

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.before, self.x = np.zeros_like(mask), np.zeros_like(mask)
        self.s, self.z, self.n, self.a, self.met = (np.zeros_like(mask) for _ in range(5))
        self.last = np.zeros(1)
        self.passes, self.slope = np.ones(1), np.zeros(1)
        self.sums, self.growth, self.factor = np.zeros(4), np.zeros(3), np.ones(2)
        self.pull, self.held, self.unit = np.zeros_like(mask), np.zeros_like(mask), np.ones_like(mask)

    def begin_pass(self, number: int, w: Vector) -> None:
        if number > 1:
            age, forget = self.last[0] + 1 - self.met, self.rule.forget
            forgotten = (w == 0) & (age > forget) & (forget > 0) & (self.mask > 0)
            met = np.array([self.mask, 1 - self.mask]) @ ((self.s > 0) & ~forgotten)
            self.factor *= (number / (number - 1)) ** (np.minimum(1.0, 5 * met / self.sums[0]) / 2)
        self.passes[0] = number

    def meet(self, w: Vector, x: Vector) -> Vector:
        self.before[:], self.x[:] = w, np.abs(x)
        larger = (self.mask > 0) & (self.x > self.s)
        return w * np.where(larger, self.s / np.where(larger, self.x, 1.0), 1.0)

    def look(self, x: Vector, margin: float, slope: float, importance: float) -> None:
        self.slope[0] = importance * slope

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r, self.last[0] = self.rule, t
        if not np.any(g != 0):
            return self.before.copy()
        old = (self.before == 0) & (t - self.met > r.forget) & (self.mask > 0) & (self.x > 0)
        self.s[:] = np.where(old & (r.forget > 0), 0.0, self.s)
        s = np.maximum(self.s, self.x)
        safe = np.where(s > 0, s, 1.0)
        reach = abs(value / self.slope[0]) if value > 0 else abs(self.slope[0])
        self.sums[:] += np.array([1.0, np.sum((self.x / safe) ** 2), reach**2, self.slope[0] ** 2])
        rho, plain = r.alpha * np.sqrt(self.sums[2] / self.sums[0]), np.sqrt(self.sums[0] / self.sums[1])
        kappa = plain * np.where(self.mask > 0, np.exp(self.growth[2]) / self.factor[0], 1 / self.factor[1])
        ratio, gamma = self.s / safe, g / safe
        n = self.n * ratio**2
        root = np.sqrt(n + gamma**2)
        sigma = (root - np.sqrt(n)) / rho
        z, a = self.z * ratio + gamma - sigma / kappa * self.s * self.before, self.a * ratio + sigma
        floor = np.sqrt(self.sums[3] / self.sums[0])
        threshold = r.l1 * self.factor[0] * self.mask * (root + floor)
        unit = 1 / (safe * np.where(a > 0, a, 1.0))
        out = np.where(g != 0, -soft(z, threshold) * kappa * unit, self.before)
        for mine, now in ((self.pull, -z * kappa), (self.held, threshold * kappa), (self.unit, unit)):
            mine[:] = np.where(g != 0, now, mine)
        self.a[:] = np.where(g != 0, a, self.a)
        self.s[:] = np.where(g != 0, s, self.s)
        self.n[:] = np.where(g != 0, root**2, self.n)
        self.z[:] = np.where(g != 0, z, self.z)
        self.met[:] = np.where(g != 0, t, self.met)
        u = np.sum(self.mask * w * g)
        if r.adapt > 0 and self.passes[0] == 1 and u != 0:
            self.growth[0] += u
            self.growth[1] += u * u
            self.growth[2] = min(max(-r.adapt * self.growth[0] / np.sqrt(self.growth[1]), -4.0), 4.0)
        return out
