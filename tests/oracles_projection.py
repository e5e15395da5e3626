"""Dense oracles of the rules that project, by elimination or bisection over all coordinates."""

from typing import Any

import numpy as np

from tests.oracle_base import Oracle, Vector


def threshold_of(v: Vector, total: float) -> float:
    """θ with Σ(v − θ)₊ = total, by leaving out what is below the mean excess (Michelot, 1986)."""
    theta, before = -np.inf, 0
    for _ in range(len(v)):
        k, rest = 0, -total
        for one in v:
            if one >= theta:
                k += 1
                rest += one
        if k in (0, before):
            break
        theta, before = rest / k, k
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
        return self.mask * kept + (1 - self.mask) * moved  # compiles faster than np.where


class FobosLinf(Oracle):
    """w' − proj(w'), w' = w − ηg, onto ‖·‖₁ ≤ η·linf: Duchi and Singer (JMLR 2009), section 5.4."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        eta: float = self.rule.rate.at(t)
        moved = w - eta * g
        cut: float = eta * self.rule.linf
        sizes = np.abs(moved) * self.mask
        cap = threshold_of(sizes, cut) if np.sum(sizes) > cut else 0.0
        kept = np.maximum(-cap, np.minimum(moved, cap))
        return np.where((self.mask > 0) & (cut > 0), kept, moved)


class Eg(Oracle):
    """EG±, EG: Kivinen and Warmuth (1997), Figures 2 and 3, `features` coordinates in all."""

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.a = np.zeros_like(mask)

    def begin(self) -> Vector:
        share: float = 0.0 if self.rule.signed else self.rule.norm / self.rule.features
        return share * self.mask

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        self.a[:] -= eta * r.norm * g * self.mask
        missing = r.features - np.sum(self.mask)
        up, down = np.exp(self.a), np.exp(-self.a)
        if r.signed:
            shares = (up - down) / (np.sum((up + down) * self.mask) + 2 * missing)
        else:
            shares = up / (np.sum(up * self.mask) + missing)
        return np.where(self.mask > 0, r.norm * shares, w - eta * g)


class Simplex(Oracle):
    """Projection of w − ηg onto {w ≥ 0, Σw = 1}, w_1 = 1/features: Duchi et al. (ICML 2008), Figure 1."""

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.missing = np.full(int(rule.features - mask.sum()), 1.0 / rule.features)

    def begin(self) -> Vector:
        share: float = 1.0 / self.rule.features
        return share * self.mask

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        eta: float = self.rule.rate.at(t)
        moved = w - eta * g
        if not np.any(g * self.mask != 0):
            return moved
        theta = threshold_of(np.concatenate((moved[self.mask > 0], self.missing)), 1.0)
        self.missing[:] = np.maximum(self.missing - theta, 0.0)
        return np.where(self.mask > 0, np.maximum(moved - theta, 0.0), moved)


PROJECTION_ORACLES: list[type[Oracle]] = [L1Ball, FobosLinf, Eg, Simplex]
