"""Dense recursions, continued. See `tests.oracles`."""

from typing import Any

import numpy as np

from tests.oracle_base import Oracle, Vector, soft


class FtFobos(Oracle):
    """soft(w − ηg, ηλh), h = min((Σ|ηg|^p)^(1/p), cap) with this step's gradient; p = ∞: the largest.

    Oiwa, Matsushima and Nakagawa (ECML PKDD 2011), FT-FOBOS.
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.powers = np.zeros_like(mask)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        if r.p == np.inf:
            self.powers[:] = np.maximum(self.powers, np.abs(eta * g))
            h = np.minimum(self.powers, r.cap)
        else:
            self.powers[:] += np.abs(eta * g) ** r.p
            h = np.minimum(self.powers ** (1 / r.p), r.cap)
        return soft(w - eta * g, eta * r.l1 * h * self.mask)


class Cumulative(Oracle):
    """Tsuruoka, Tsujii and Ananiadou (ACL 2009), Figure 2: u += ηλ; where g ≠ 0, w −= ηg and a penalty.

    w > 0: max(0, w − (u + q)); w < 0: min(0, w + (u − q)); q += the change. When read, all get it.
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.u = np.zeros(1)
        self.q = np.zeros_like(mask)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        self.u[0] += eta * r.l1
        u = self.u[0] * self.mask
        moved = w - eta * g
        low = np.minimum(0.0, moved + (u - self.q))
        high = np.maximum(0.0, moved - (u + self.q))
        out = np.where(g == 0, w, np.where(moved > 0, high, np.where(moved < 0, low, moved)))
        self.q[:] += np.where(g == 0, 0.0, out - moved)
        return out

    def read(self, w: Vector) -> Vector:
        u = self.u[0] * self.mask
        low, high = np.minimum(0.0, w + (u - self.q)), np.maximum(0.0, w - (u + self.q))
        return np.where(w > 0, high, np.where(w < 0, low, w))


class FtCumulative(Oracle):
    """`Cumulative` with h·u for u, h as in `FtFobos`: Oiwa, Matsushima and Nakagawa (ECML PKDD 2011)."""

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.u = np.zeros(1)
        self.q = np.zeros_like(mask)
        self.h = np.zeros_like(mask)
        self.powers = np.zeros_like(mask)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        if r.p == np.inf:
            self.h[:] = np.minimum(np.maximum(self.h, np.abs(eta * g)), r.cap)
        else:
            self.powers[:] += np.abs(eta * g) ** r.p
            self.h[:] = np.minimum(self.powers ** (1 / r.p), r.cap)
        self.u[0] += eta * r.l1
        u = self.h * self.u[0] * self.mask
        moved = w - eta * g
        low = np.minimum(0.0, moved + (u - self.q))
        high = np.maximum(0.0, moved - (u + self.q))
        out = np.where(g == 0, w, np.where(moved > 0, high, np.where(moved < 0, low, moved)))
        self.q[:] += np.where(g == 0, 0.0, out - moved)
        return out

    def read(self, w: Vector) -> Vector:
        u = self.h * self.u[0] * self.mask
        low, high = np.minimum(0.0, w + (u - self.q)), np.maximum(0.0, w - (u + self.q))
        return np.where(w > 0, high, np.where(w < 0, low, w))


class L2Ball(Oracle):
    """w − ηg, then onto ‖w‖₂ ≤ radius: Zinkevich (ICML 2003), Algorithm 1. The intercept is not projected."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        w = w - eta * g
        norm = np.linalg.norm(w * self.mask)
        if norm > r.radius:
            w = np.where(self.mask > 0, w * (r.radius / norm), w)
        return w


class FobosL2norm(Oracle):
    """w' = w − ηg; max(0, 1 − ηλ/‖w'‖₂)·w', the prox of ηλ‖·‖₂: Duchi and Singer (JMLR 2009), section 5."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        w = w - eta * g
        norm = np.linalg.norm(w * self.mask)
        if norm <= eta * r.l2norm:
            return np.where(self.mask > 0, 0.0, w)
        return np.where(self.mask > 0, w * (1.0 - eta * r.l2norm / norm), w)


class Normalized(Oracle):
    """Ross, Mineiro and Langford (UAI 2013), Algorithm 1, or 2 with `adaptive`.

    (a) where |x| > s: w *= (s/|x|)², s = |x|; (b) predict; (c) N += Σx²/s²; (d) w −= η(t/N)g/s². Adaptive:
    (a) w *= s/|x|; (d) w −= η√(t/N)·g/(s√Σg²). An example without a gradient in the features leaves all of
    this as it was. The intercept: s = 1, t/N = 1.
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.before, self.x = np.zeros_like(mask), np.zeros_like(mask)
        self.s, self.squares = 1.0 - mask, np.zeros_like(mask)
        self.t, self.n = np.zeros(1), np.zeros(1)

    def meet(self, w: Vector, x: Vector) -> Vector:
        self.before[:] = w
        self.x[:] = np.where(self.mask > 0, np.abs(x), 1.0)
        larger = self.x > self.s
        ratio = np.where(larger, self.s / np.where(larger, self.x, 1.0), 1.0)
        return w * ratio if self.rule.adaptive else w * ratio * ratio

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        self.squares[:] += g * g
        root = np.sqrt(self.squares)
        factor = 1.0 - self.mask
        if np.any(g * self.mask != 0):
            self.s[:] = np.maximum(self.s, self.x)
            self.t[0] += 1
            self.n[0] += np.sum(self.mask * (self.x / np.where(self.s > 0, self.s, 1.0)) ** 2)
            ratio = self.t[0] / self.n[0]
            factor = factor + self.mask * (np.sqrt(ratio) if r.adaptive else ratio)
        else:
            w = self.before
        bottom = self.s * root if r.adaptive else self.s * self.s
        out: Vector = w - r.eta * factor * np.where(g != 0, g / np.where(bottom > 0, bottom, 1.0), 0.0)
        return out


class Coin(Oracle):
    """Orabona and Tommasi (NIPS 2017), Algorithm 2, for the features x/s, s the largest |x| where g ≠ 0.

    L = max(L, |g|); G += |g|; R = max(R − gw, 0); θ −= g; w = θ/(L·max(G + L, αL))·(wealth·L/s + R).
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.theta, self.total = np.zeros_like(mask), np.zeros_like(mask)
        self.reward, self.largest = np.zeros_like(mask), np.zeros_like(mask)
        self.x, self.s = np.zeros_like(mask), np.zeros_like(mask)

    def meet(self, w: Vector, x: Vector) -> Vector:
        self.x[:] = x
        return w

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        self.largest[:] = np.maximum(self.largest, np.abs(g))
        self.total[:] += np.abs(g)
        self.reward[:] = np.maximum(self.reward - g * w, 0.0)
        self.theta[:] -= g
        bottom = self.largest * np.maximum(self.total + self.largest, r.alpha * self.largest)
        self.s[:] = np.maximum(self.s, np.where(g != 0, np.abs(self.x), 0.0))
        wealth = r.wealth * self.largest / np.where(self.s > 0, self.s, 1.0)
        out: Vector = self.theta / np.where(bottom > 0, bottom, 1.0) * (wealth + self.reward)
        return out


class Stabilised(Oracle):
    """w − ηg; when K divides t: soft(w, G·k), G such that β of the active set are zero; stages purge that.

    k is 1, or with `informative` the steps of the last K with g ≠ 0. Ma and Zheng (JMLR 18, 2017), and the
    code they published. `counts`: bursts of this stage, β, p.
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.k, self.active, self.selected = (np.zeros_like(mask) for _ in range(3))
        self.counts = np.array([0.0, rule.rejection, 0.0])

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        if self.counts[2] == 0:
            self.active[:] = np.maximum(self.active, self.mask * (g != 0))
        w = np.where((self.active > 0) | (self.mask == 0), w - eta * g, w)
        self.k[:] += self.active * (g != 0)
        d = np.sum(self.active)
        if t % r.every or d == 0:
            return w
        k = self.k if r.informative else self.active
        ratio = np.where(w == 0, 0.0, np.where(k > 0, np.abs(w) / np.maximum(k, 1.0), np.inf))
        gravity = eta * r.gravity * (1.0 if r.informative else r.every)
        if r.rejection > 0:
            reachable = np.sort(ratio[(self.active > 0) & (ratio < np.inf)])
            wanted = min(int(np.floor(self.counts[1] * d + 0.5)), reachable.size)
            gravity = reachable[wanted - 1] if wanted > 0 else 0.0
        gone = (self.active > 0) & (ratio <= gravity)
        w = np.where(gone, 0.0, soft(w, gravity * k))
        self.k[:] = 0.0
        self.selected[:] += self.active * (w != 0)
        self.counts[0] += 1
        if r.purging > 0 and self.counts[0] == r.stage:
            self.active[:] *= self.selected / r.stage >= r.purging
            w = np.where((self.active > 0) | (self.mask == 0), w, 0.0)
            self.selected[:] = 0.0
            self.counts[0] = 0.0
            self.counts[2] = max(self.counts[2], d)
            u, c = np.sum(self.active) / self.counts[2], r.annealing
            share = u
            if c > 0:
                share = np.exp(-c * (1 - u)) - (1 - u) * np.exp(-c)
            if c < 0:
                share = np.log(1 - c * u) / np.log(1 - c)
            self.counts[1] = r.rejection * share
        return w
