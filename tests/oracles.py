"""The dense, eager recursion of each paper, in float64: what the lazy rules must equal.

Written from the papers and independent of the package: a rule object is only asked for its hyper-parameters
and its rate, a loss for `value_slope`. Every step visits every coordinate.

Common to all: step t = 1, 2, ...; margin p = ⟨w_t, x_t⟩ + b_t; slope s = importance_t · dℓ/dp; gradient
g = s·x_t; value = importance_t · ℓ; step size η = rate.at(t). The intercept b is one more coordinate, whose
x is always 1. It takes the same step with every penalty zero: `mask` is 1 for a feature and 0 for the
intercept, and each penalty is multiplied by it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.oracle_base import Loss, Oracle, Vector, from_origin, named, spread
from tests.oracle_base import soft as _soft
from tests.oracles_default import FtFtrl
from tests.oracles_margin import MARGIN_ORACLES
from tests.oracles_projection import PROJECTION_ORACLES
from tests.oracles_sparse import (
    Coin,
    Cumulative,
    FobosL2norm,
    FtCumulative,
    FtFobos,
    L2Ball,
    Normalized,
    Stabilised,
)


class Sgd(Oracle):
    """w − ηg: Langford, Li and Zhang (JMLR 10, 2009), section 2."""

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        eta: float = self.rule.rate.at(t)
        return w - eta * g


class TruncatedGradient(Oracle):
    """T₁(w − ηg, η·K·gravity, θ) when K divides t, else w − ηg: Langford, Li and Zhang (2009), section 3.3.

    T₁(v, α, θ) moves v towards zero by α, stopping there, where |v| ≤ θ; it leaves larger v alone.
    """

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        w = w - eta * g
        if t % r.every:
            return w
        return np.where(np.abs(w) <= r.theta, _soft(w, eta * r.every * r.gravity * self.mask), w)


class Rounding(Oracle):
    """T₀(w − ηg, θ) when K divides t, else w − ηg: Langford, Li and Zhang (2009), section 3.1.

    T₀(v, θ) is 0 where |v| < θ, as the paper's words have it; its formula has the sign reversed.
    """

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        w = w - eta * g
        return w if t % r.every else np.where(np.abs(w) < r.theta * self.mask, 0.0, w)


class Subgradient(Oracle):
    """w − ηg − ηλ·sign(w), sign(0) = 0; rounded at θ only when read.

    Langford, Li and Zhang (2009), section 3.2; the rounding at the end is section 3.1's.
    """

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        pull: float = eta * r.l1
        return w - eta * g - pull * self.mask * np.sign(w)

    def read(self, w: Vector) -> Vector:
        return np.where(np.abs(w) < self.rule.theta * self.mask, 0.0, w)


class ClippedSubgradient(Oracle):
    """w' = w − η(g + λ·sign(w)), and 0 where that crosses zero.

    Daumé, A Course in Machine Learning (2012), eq. 12.8 by its words. The intercept takes plain
    gradient steps, which nothing stops at zero.
    """

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        moved = w - eta * (g + r.l1 * self.mask * np.sign(w))
        crossed = (np.sign(w) * np.sign(moved) < 0) & (self.mask > 0)
        return np.where(crossed, 0.0, moved)


class Fobos(Oracle):
    """soft(w − ηg, η'λ₁) / (1 + η'λ₂), the prox of η'(λ₁‖·‖₁ + λ₂‖·‖²/2).

    Duchi and Singer (JMLR 10, 2009), eq. 2, 3 and section 5; η' = η_t, or η_{t+1} with `next_rate`.
    """

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        eta: float = r.rate.at(t)
        second: float = r.rate.at(t + 1) if r.next_rate else eta
        pulled = _soft(w - eta * g, second * r.l1 * self.mask)
        stretch: float = second * r.l2
        return pulled / (1 + stretch * self.mask)


class Rda(Oracle):
    """w_{t+1} = −(√t/γ)·soft(ḡ_t, λ + γρ/√t), ḡ_t the mean of the first t gradients, w_1 = 0.

    Xiao (JMLR 11, 2010), Algorithm 2, the enhanced ℓ1-RDA method; ρ = 0 is the plain one.
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.total = np.zeros_like(mask)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        self.total[:] += g
        threshold: float = r.l1 + r.gamma * r.rho / np.sqrt(t)
        scale: float = np.sqrt(t) / r.gamma
        return -scale * _soft(self.total / t, threshold * self.mask)


class Ftrl(Oracle):
    """FTRL-Proximal: McMahan et al., Ad Click Prediction (KDD 2013), Algorithm 1.

    σ = (√(n + g²) − √n)/α; z += g − σw; n += g²; w = −soft(z, λ₁) / ((β + √n)/α + λ₂), 0 before any gradient.
    With a half-life of N, z and n *= 2^(−1/N) after each step, before w is computed.
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.z = np.zeros_like(mask)
        self.n = np.zeros_like(mask)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        sigma = (np.sqrt(self.n + g * g) - np.sqrt(self.n)) / r.alpha
        self.z[:] += g - sigma * w
        self.n[:] += g * g
        self.z[:] *= 0.5 ** (1 / r.half_life)
        self.n[:] *= 0.5 ** (1 / r.half_life)
        top = _soft(self.z, r.l1 * self.mask)
        bottom = (r.beta + np.sqrt(self.n)) / r.alpha + r.l2 * self.mask
        return np.where(top == 0, 0.0, -top / np.where(top == 0, 1.0, bottom))


class AdagradFobos(Oracle):
    """soft(w − ηg/a, ηλ₁/a) / (1 + ηλ₂/a), a = δ + √Σg².

    Duchi, Hazan and Singer (JMLR 12, 2011), section 5.1: the composite mirror descent step
    argmin ⟨g, v⟩ + λ₁‖v‖₁ + λ₂‖v‖²/2 + (v − w)ᵀ diag(a) (v − w)/(2η).
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.squares = np.zeros_like(mask)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        squares = self.squares
        squares += g * g
        a = r.delta + np.sqrt(squares)
        scale = r.eta * (a > 0) / (a + (a == 0))  # 0 where a is
        moved: Vector = _soft(w - scale * g, scale * r.l1 * self.mask)
        out: Vector = moved / (1.0 + scale * r.l2 * self.mask)
        return out


class AdagradRda(Oracle):
    """−ηt · soft(ḡ, λ₁) / (a + ηλ₂t), a = δ + √Σg²: Duchi, Hazan and Singer (JMLR 12, 2011), section 5.1.

    The primal-dual step argmin t⟨ḡ, v⟩ + t(λ₁‖v‖₁ + λ₂‖v‖²/2) + vᵀ diag(a) v/(2η).
    """

    def __init__(self, rule: Any, mask: Vector) -> None:
        super().__init__(rule, mask)
        self.gradients = np.zeros_like(mask)
        self.squares = np.zeros_like(mask)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        self.gradients[:] += g
        self.squares[:] += g * g
        top = t * _soft(self.gradients / t, r.l1 * self.mask)
        bottom = (r.delta + np.sqrt(self.squares)) / r.eta + r.l2 * t * self.mask
        return np.where(top == 0, 0.0, -top / np.where(top == 0, 1.0, bottom))


class Pegasos(Oracle):
    """(1 − 1/t)w − g/(λt), then onto the ball ‖w‖₂ ≤ 1/√λ.

    Shalev-Shwartz, Singer and Srebro (ICML 2007), Figure 1 with one example a step. `skip_correct`: a loss of
    zero leaves the weights alone, though t counts (Reid's reading). The intercept is neither shrunk nor
    projected, and its share of the norm is not counted.
    """

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        r = self.rule
        if r.skip_correct and value == 0:
            return w
        w = (1 - self.mask / t) * w - g / (r.l2 * t)
        norm = np.sqrt(np.sum(w * w * self.mask))
        if r.project and norm * np.sqrt(r.l2) > 1:
            w = w / (1 - self.mask + self.mask * (norm * np.sqrt(r.l2)))  # compiles faster than np.where
        return w


_HERE: list[type[Oracle]] = [
    *(Sgd, TruncatedGradient, Rounding, Subgradient, ClippedSubgradient, Fobos, Rda, AdagradFobos),
    *(AdagradRda, Ftrl, Pegasos, FtFobos, FtFtrl, Cumulative, FtCumulative, L2Ball, FobosL2norm),
    *(Normalized, Coin, Stabilised),
]
ORACLES = named(*_HERE, *PROJECTION_ORACLES, *MARGIN_ORACLES)


@dataclass(frozen=True)
class Trace:
    """One pass of an oracle over n rows of d features."""

    weights: Vector
    """(d,) the weights as they are read after the last row."""
    intercept: float
    losses: Vector
    """(n,) loss of each row before it was learned from, not multiplied by its importance."""
    margins: Vector
    """(n,) margin of each row before it was learned from."""
    path: Vector | None
    """(n + 1, d) w_1, ..., w_{n+1}, not cut by `read`, the intercept's last; only when asked for."""


def run(
    name: str,
    rule: Any,
    loss: Loss,
    X: Vector,
    y: Vector,
    importance: Vector | None = None,
    *,
    intercept: bool = False,
    keep_path: bool = False,
    passes: int = 1,
    offset: Any = None,
) -> Trace:
    """Learn from the rows of X, so many `passes` of equal length, from w_1 = 0; `name` is one of ORACLES.

    Rows of importance 0 are not there; their losses and margins are given as 0. An `offset` is added to each
    margin, and in nothing else.
    """
    offset = np.zeros(len(X)) if offset is None else offset
    importance = np.ones(len(X)) if importance is None else importance
    there = importance > 0
    X, y, importance, offset = X[there], y[there], importance[there], offset[there]
    rows, features = X.shape
    X = np.hstack([X, np.ones((rows, 1))]) if intercept else X
    oracle = ORACLES[name](rule, (np.arange(X.shape[1]) < features).astype(np.float64))
    w = oracle.begin()
    start, y = from_origin(y, intercept and oracle.ORIGIN, loss, offset)
    losses, margins = np.zeros(rows), np.zeros(rows)
    path = np.vstack([w, np.zeros((rows, X.shape[1]))]) if keep_path else None
    for i in range(rows):
        if i % (rows // passes) == 0:
            oracle.begin_pass(i * passes // rows + 1, w, passes)
        w = oracle.meet(w, X[i])
        margins[i] = w @ X[i] + offset[i]
        losses[i], slope = loss.value_slope(float(margins[i]), float(y[i]))
        oracle.look(X[i], float(margins[i]), slope, float(importance[i]))
        w = oracle.step(w, importance[i] * slope * X[i], i + 1, float(importance[i] * losses[i]))
        if path is not None:
            path[i + 1] = w
    read = oracle.read(w)
    if path is not None:
        path[:, features:] += start
    bias = float(start + read[features]) if intercept else 0.0
    return Trace(read[:features], bias, spread(losses, there), spread(margins + start, there), path)


def growth_constants(name: str, radius: float) -> tuple[float, float]:
    """A, B with ‖∇L‖² ≤ A·L + B wherever ‖x‖₂ ≤ radius.

    Langford, Li and Zhang (2009), assumption 3.1 and section 3.4. `name` is logistic, hinge or squared;
    squared is (p − y)², as in the paper. With ½(p − y)² A is half of that.
    """
    square = radius * radius
    return {"squared": (4 * square, 0.0), "logistic": (0.0, square), "hinge": (0.0, square)}[name]


def regret_bound_truncated(
    path: Vector, comparator: Vector, rule: Any, loss: Loss, X: Vector, y: Vector, growth: tuple[float, float]
) -> tuple[float, float]:
    """Left and right side of theorem 3.1 of Langford, Li and Zhang (2009): the left is never the larger.

    (1 − Aη/2)/T · Σ_i L(w_i, z_i)  +  1/T · Σ_i g_i ‖w_{i+1} · I(|w_{i+1}| ≤ θ)‖₁
        ≤  ηB/2 + ‖w̄‖²/(2ηT)  +  1/T · Σ_i [L(w̄, z_i) + g_i ‖w̄ · I(|w_{i+1}| ≤ θ)‖₁]

    for a constant step size η, w_1 = 0, no intercept and every w̄; g_i = K·gravity when K divides i, else 0.
    `path` (T + 1, d) holds w_1, ..., w_{T+1} of truncated gradient on the rows of X; `growth` is (A, B).
    """
    a, b = growth
    rows = y.size
    eta = rule.rate.at(1)
    if rule.rate.at(rows) != eta or np.any(path[0]):
        raise ValueError("theorem 3.1 is about a constant step size and a start at zero")
    gravity = np.where(np.arange(1, rows + 1) % rule.every == 0, rule.every * rule.gravity, 0.0)
    inside = np.abs(path[1:]) <= rule.theta
    pulled = gravity @ (np.abs(path[1:]) * inside).sum(axis=1) / rows
    spared = gravity @ (np.abs(comparator) * inside).sum(axis=1) / rows
    lost = _mean_loss(loss, (path[:-1] * X).sum(axis=1), y)
    left = (1 - 0.5 * a * eta) * lost + pulled
    distance = comparator @ comparator / (2 * eta * rows)
    right = 0.5 * eta * b + distance + _mean_loss(loss, X @ comparator, y) + spared
    return float(left), float(right)


def _mean_loss(loss: Loss, margins: Vector, y: Vector) -> float:
    pairs = zip(margins, y, strict=True)
    return float(np.mean([loss.value_slope(float(p), float(label))[0] for p, label in pairs]))
