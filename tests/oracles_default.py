"""The dense recursion of the default rule. See `tests.oracles`."""

from typing import Any

import numpy as np

from tests.oracle_base import Oracle, Vector, soft


class FtFtrl(Oracle):
    """FTRL-Proximal on x/s at the step sizes ρ = αL and κ = √(t/N)e^h/f, with the threshold λf(√n + G).

    (a) where |x| > s: w, z, a and √n *= s/|x|, s = |x|; (b) predict; (c) t += 1, N += Σx²/s², L² the mean of
    (loss/slope)² (slope² where the loss is not above 0); (d) γ = slope·x/s, v = max(γ², −½Qγx/s) with
    Q = |m|Σslope³/Σslope², σ = (√(n + v) − √n)/ρ, z += γ − σsw/κ, a += σ, n += v,
    w = −soft(z, λf(√n + G))·κ/(sa), G² the mean of slope²; (e) U += u, V += u² for u = slope·⟨w, x⟩,
    h = −adapt·U/√V. Pass p multiplies f by (p/(p − 1))^(q/2), q = min(1, 5·features met/t′), and (e) ends,
    unless t′ ≥ 30(p − 1)·features met, where t′ = t·min(1, 2(1 − m²)) and m is the mean sign of slopes.
    With taper, ρ is divided by (1 + (T/taper)²)^¼, T = t²/(Np), and in the first pass λ² = l1² +
    min(1, l1²) log(1 + T/(20 taper)).
    An example without a gradient leaves all of this as it was. The intercept: s = 1, λ = h = 0.
    In the last ⌊relax·passes⌋ of several passes, at least one if relax > 0, a weight of zero stays zero, and
    v = sw of every other becomes v − γκ/(3a).
    In a batch (c) and (e) are of each example; x in (a) and (d) is that of the largest |x| that has a slope,
    γ = g/s with g the sum.
    With a half-life of N, after each step z, n and the sums (t, N, L, G, U, V) *= 2^(−1/N), a *= 2^(−1/2N),
    and w is read as w·(|z|r − l1√n)₊/(|z| − l1√n) of the feature's last step, k steps ago, r = 2^(−k/2N).
    What the group of a feature needs of each output: `pull` = -zκ, `held` = λf(√n + G)κ, `unit` = 1/(sa).
    """

    ORIGIN = EACH = True

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.before, self.x, self.signed = (np.zeros_like(mask) for _ in range(3))
        self.s, self.z, self.n, self.a, self.met = (np.zeros_like(mask) for _ in range(5))
        self.last = np.zeros(1)
        self.passes, self.slope = np.ones(1), np.zeros(1)
        self.relaxed = np.zeros(1, bool)
        self.sums, self.growth, self.factor = np.zeros(6), np.zeros(3), np.ones(2)
        self.rho, self.kappa, self.l1 = np.ones(1), np.ones_like(mask), np.full(1, rule.l1)
        self.pull, self.held, self.unit = np.zeros_like(mask), np.zeros_like(mask), np.ones_like(mask)
        self.fades, self.r = rule.half_life < np.inf, np.ones_like(mask)
        self.last_w, self.size, self.least = (np.zeros_like(mask) for _ in range(3))

    def begin_pass(self, number: int, w: Vector, passes: int) -> None:
        share = self.rule.relax if number > 1 and not self.fades else 0.0
        self.relaxed[0] = share > 0 and number > passes - max(1, int(share * passes))
        if number > 1:
            age, forget = self.last[0] + 1 - self.met, self.rule.forget
            forgotten = (w == 0) & (age > forget) & (forget > 0) & (self.mask > 0)
            met = np.array([self.mask, 1 - self.mask]) @ ((self.s > 0) & ~forgotten)
            t = self.sums[0] * min(1.0, 2 * (1 - (self.sums[5] / max(self.sums[0], 1e-300)) ** 2))
            crowded = t < 30 * (number - 1) * met
            share = np.where(crowded, np.minimum(1.0, 5 * met / t), 0.0)
            self.factor *= (number / (number - 1)) ** (share / 2)
            self.growth[:2] *= not crowded[0]
        self.passes[0] = number

    def meet(self, w: Vector, x: Vector) -> Vector:
        self.before[:], self.x[:], self.signed[:] = w, np.abs(x), x
        larger = (self.mask > 0) & (self.x > self.s)
        return w * np.where(larger, self.s / np.where(larger, self.x, 1.0), 1.0)

    def look(self, x: Vector, margin: float, slope: float, importance: float) -> None:
        self.slope[0] = importance * slope

    def scales(self, x: Vector) -> Vector:
        """S before, where |x| is met: 0 for what is forgotten."""
        age, forget = self.last[0] + 1 - self.met, self.rule.forget
        old = (self.before == 0) & (age > forget) & (self.mask > 0) & (x > 0)
        return np.where(old & (forget > 0), 0.0, self.s)

    def measure(self, w: Vector, x: Vector, slope: float, value: float) -> None:
        """(c) and (e), where w are the weights that x has met; slope and value are times the importance."""
        r, size = self.rule, np.abs(x)
        if not np.any(slope * x != 0):
            return
        s = np.maximum(self.scales(size), size)
        reach = abs(value / slope) if value > 0 else abs(slope)
        squares = np.sum((size / np.where(s > 0, s, 1.0)) ** 2)
        self.sums[:] += np.array([1.0, squares, reach**2, slope**2, slope**3, np.sign(slope)])
        self.rho[0], plain = (
            r.alpha * np.sqrt(self.sums[2] / self.sums[0]),
            np.sqrt(self.sums[0] / self.sums[1]),
        )
        if r.taper > 0:
            met = self.sums[0] ** 2 / (self.sums[1] * self.passes[0])
            self.rho /= (1 + (met / r.taper) ** 2) ** 0.25
            if self.passes[0] == 1:
                self.l1[:] = np.sqrt(r.l1**2 + min(1, r.l1**2) * np.log(1 + met / (20 * r.taper)))
        grown = np.exp(self.growth[2]) / self.factor[0]
        self.kappa[:] = plain * np.where(self.mask > 0, grown, 1 / self.factor[1])
        u = np.sum(self.mask * w * (slope * x))
        if r.adapt > 0 and (self.passes[0] == 1 or self.growth[1] > 0) and u != 0:
            self.growth[0] += u
            self.growth[1] += u * u
            self.growth[2] = min(max(-r.adapt * self.growth[0] / np.sqrt(self.growth[1]), -4.0), 4.0)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        self.measure(w, self.signed, float(self.slope[0]), value)
        return self.move(g, t)

    def move(self, g: Vector, t: int) -> Vector:
        """(a) and (d), then what is left of all of it."""
        w = self.moved(g, t)
        if not self.fades:
            return w
        f = 0.5 ** (1 / self.rule.half_life)
        for array, left in ((self.z, f), (self.n, f), (self.a, f**0.5), (self.r, f**0.5)):
            array *= left
        self.sums *= f
        self.growth[:2] *= f
        above = np.maximum(self.size * self.r - self.least, 0.0)
        return self.last_w * above / np.where(above > 0, self.size - self.least, 1.0)

    def moved(self, g: Vector, t: int) -> Vector:
        """(a) and (d)."""
        before_s = self.scales(self.x)
        self.last[0] = t
        if not np.any(g != 0):
            return self.before.copy()
        self.s[:] = before_s
        s = np.maximum(self.s, self.x)
        safe = np.where(s > 0, s, 1.0)
        ratio, gamma = self.s / safe, g / safe
        n = self.n * ratio**2
        skew = self.sums[4] / self.sums[3] if self.sums[3] > 0 else 0.0
        skew *= abs(self.sums[5]) / max(self.sums[0], 1e-300)
        root = np.sqrt(n + np.maximum(gamma**2, -0.5 * skew * gamma * self.signed / safe))
        sigma, kappa = (root - np.sqrt(n)) / self.rho[0], self.kappa
        z, a = self.z * ratio + gamma - sigma / kappa * self.s * self.before, self.a * ratio + sigma
        floor = np.sqrt(self.sums[3] / self.sums[0])
        threshold = self.l1[0] * self.factor[0] * self.mask * (root + floor)
        unit = 1 / (safe * np.where(a > 0, a, 1.0))
        w = -soft(z, threshold) * kappa * unit
        if self.relaxed[0]:
            free = self.s * self.before / safe - gamma * kappa * unit / 3
            w = np.where(self.mask > 0, np.where(self.before == 0, 0.0, free), w)
        out = np.where(g != 0, w, self.before)
        for mine, now in ((self.pull, -z * kappa), (self.held, threshold * kappa), (self.unit, unit)):
            mine[:] = np.where(g != 0, now, mine)
        self.a[:] = np.where(g != 0, a, self.a)
        self.s[:] = np.where(g != 0, s, self.s)
        self.n[:] = np.where(g != 0, root**2, self.n)
        self.z[:] = np.where(g != 0, z, self.z)
        self.met[:] = np.where(g != 0, t, self.met)
        for mine, now in ((self.size, abs(z)), (self.least, self.rule.l1 * self.mask * root), (self.r, 1.0)):
            mine[:] = np.where(g != 0, now, mine)
        self.last_w[:] = np.where(g != 0, w, self.last_w)
        return out
