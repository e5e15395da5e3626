"""Rules on dense arrays, and ways to merge what several learners made of one state; see `parallel.py`.

A state is an array of rows VALUE (z of FTRL, else w), TRUST (n: the sum of squared gradients; q of AROW),
SUM (of the gradients of this round) and RAW (n before its running maximum), one column per feature; the last
column is the intercept, a feature of value 1 without penalty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
H = tuple[float, ...]
VALUE, TRUST, SUM, RAW = range(4)
jit: Any = numba.njit(error_model="numpy")


class Rows(NamedTuple):
    """Examples with the intercept as their last feature; labels are +1 and -1."""

    indptr: NDArray[np.int64]
    keys: NDArray[np.int64]
    values: F64
    labels: F64


@jit
def ftrl_weight(S, j, h):  # type: ignore[no-untyped-def]
    """FTRL-Proximal, h = (alpha, beta, l1): McMahan et al. (KDD 2013), Algorithm 1."""
    l1 = h[2] if j + 1 < S.shape[1] else 0.0
    return -math.copysign(max(abs(S[0, j]) - l1, 0.0), S[0, j]) * h[0] / (h[1] + math.sqrt(S[1, j]))


@jit
def ftrl_step(S, j, w, x, slope, growth, h):  # type: ignore[no-untyped-def]
    """Add the gradient to z and its square to n."""
    n, g = S[1, j], slope * x
    S[1, j] += g * g
    S[0, j] += g - (math.sqrt(S[1, j]) - math.sqrt(n)) / h[0] * w
    S[2, j] += g


@jit
def own_weight(S, j, h):  # type: ignore[no-untyped-def]
    """The weight itself is in the state."""
    return S[0, j]


@jit
def adagrad_step(S, j, w, x, slope, growth, h):  # type: ignore[no-untyped-def]
    """AdaGrad, h = (eta, delta, 0): Duchi, Hazan and Singer (JMLR 2011), section 5.1, without a penalty."""
    g = slope * x
    S[1, j] += g * g
    S[0, j] -= h[0] * g / (h[1] + math.sqrt(S[1, j]))
    S[2, j] += g


@jit
def logistic(margin, y, size, h):  # type: ignore[no-untyped-def]
    """Slope of the logistic loss."""
    return -y / (1.0 + math.exp(y * margin)), 0.0


@jit
def arow_slope(margin, y, size, h):  # type: ignore[no-untyped-def]
    """AROW, h = (r,): Crammer, Kulesza and Dredze (NIPS 2009), Figure 1, diagonal; -y alpha and 1 / r."""
    gap = 1.0 - y * margin
    return (-y * gap / (size + h[0]), 1.0 / h[0]) if gap > 0 else (0.0, 0.0)


@jit
def arow_step(S, j, w, x, slope, growth, h):  # type: ignore[no-untyped-def]
    """Update the mean, then the precision 1 + q."""
    S[0, j] -= slope * x / (1.0 + S[1, j])
    S[1, j] += growth * x * x


@jit
def learn(weight, aim, step, S, h, rows, order, touched):  # type: ignore[no-untyped-def]
    """Learn the rows in `order`, and mark the features met."""
    indptr, keys, values, labels = rows
    longest = 0
    for i in order:
        longest = max(longest, indptr[i + 1] - indptr[i])
    held = np.empty(longest)  # np.diff and np.max take three seconds to compile
    for i in order:
        margin, size = 0.0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            w = weight(S, keys[p], h)
            held[p - indptr[i]] = w
            margin += w * values[p]
            size += values[p] ** 2 / (1.0 + S[1, keys[p]])
        slope, growth = aim(margin, labels[i], size, h)
        for p in range(indptr[i], indptr[i + 1]):
            touched[keys[p]] = True
            if slope != 0:
                step(S, keys[p], held[p - indptr[i]], values[p], slope, growth, h)


@jit
def settled(weight, S, h):  # type: ignore[no-untyped-def]
    """All weights of a state."""
    w = np.empty(S.shape[1])
    for j in range(len(w)):
        w[j] = weight(S, j, h)
    return w


class Rule(NamedTuple):
    """A rule: its compiled functions, and its parameters h with their defaults."""

    name: str
    weight: Any
    aim: Any
    step: Any
    defaults: dict[str, float]
    """the first one sets the step size"""
    loss: str = "logistic"
    prior: float = 0.0
    """AROW's precision of a weight is 1 + q; FTRL and AdaGrad have no prior"""

    def spec(self, h: H) -> str:
        """The rule of thresher with parameters h."""
        return f"{self.name}:" + ",".join(f"{k}={v!r}" for k, v in zip(self.defaults, h, strict=True))

    def curvature(self, n: F64, h: H) -> F64:
        """The inverse of the step size of FTRL and AdaGrad after squares n."""
        return (h[1] + np.sqrt(n)) / h[0]


FTRL = Rule("ftrl", ftrl_weight, logistic, ftrl_step, {"alpha": 0.5, "beta": 1.0, "l1": 1.0})
ADAGRAD = Rule("adagrad-fobos", own_weight, logistic, adagrad_step, {"eta": 0.5, "delta": 1e-3, "l1": 0.0})
AROW = Rule("arow", own_weight, arow_slope, arow_step, {"r": 1.0}, "hinge", 1.0)
RULES = {rule.name: rule for rule in (FTRL, ADAGRAD, AROW)}


# Merges take the state before the round (4, m), those of all parts after it (P, 4, m), the rule and h.
Merge = Callable[[F64, F64, Rule, H], F64]


def _placed(rule: Rule, h: H, w: F64, trust: F64, otherwise: F64) -> F64:
    """The VALUE that gives weight w; for FTRL with w = 0, `otherwise`."""
    if rule is not FTRL:
        return w
    l1 = np.full(len(w), h[2])
    l1[-1] = 0
    return np.where(w == 0, otherwise.clip(-l1, l1), -w * rule.curvature(trust, h) - np.sign(w) * l1)


def average(before: F64, parts: F64, rule: Rule, h: H, by: str, trust: str) -> F64:
    """A mean of the weights: plain, by TRUST, or by what TRUST has gained in this round.

    TRUST becomes the same mean, or its gains are added up. `by` = ``dual`` averages FTRL's z by TRUST.

    References. Plain: iterative parameter mixing, McDonald, Hall and Mann (NAACL 2010), Figure 3, where a
    round is a pass. By sums of squares: Agarwal, Chapelle, Dudik and Langford, A Reliable Effective Terascale
    Linear Learning System (JMLR 2014), and Vowpal Wabbit's `accumulate_weighted_avg`. By precisions: Dredze,
    Kulesza and Crammer, Multi-domain learning by confidence-weighted parameter combination (2010).
    """
    gains = parts[:, TRUST] - before[TRUST]
    sizes = {"mean": np.ones_like(gains), "gain": gains}.get(by, rule.prior + parts[:, TRUST])
    total = sizes.sum(axis=0)
    share = np.where(total > 0, sizes / np.where(total > 0, total, 1), 1 / len(parts))
    merged = np.zeros_like(before)
    merged[TRUST] = (share * parts[:, TRUST]).sum(axis=0) if trust == "mean" else before[TRUST] + gains.sum(0)
    merged[VALUE] = (share * parts[:, VALUE]).sum(axis=0)
    if by != "dual":
        weights = np.array([settled(rule.weight, part, h) for part in parts])
        w = (share * weights).sum(axis=0)
        merged[VALUE] = _placed(rule, h, w, merged[TRUST], merged[VALUE])
    return merged


def total(before: F64, parts: F64, rule: Rule, h: H) -> F64:
    """Add up what all parts have changed, as if gradients were delayed; for AROW, natural parameters.

    The precision of a weight and precision times mean are the natural parameters of a Gaussian. Adding up
    what each part of the data changes in them: Broderick, Boyd, Wibisono, Wilson and Jordan, Streaming
    Variational Bayes (NIPS 2013).
    """
    gains, merged = parts[:, TRUST] - before[TRUST], np.zeros_like(before)
    merged[TRUST] = before[TRUST] + gains.sum(axis=0)
    if not rule.prior:
        merged[VALUE] = before[VALUE] + (parts[:, VALUE] - before[VALUE]).sum(axis=0)
        return merged
    moved = (rule.prior + parts[:, TRUST]) * parts[:, VALUE] - (rule.prior + before[TRUST]) * before[VALUE]
    merged[VALUE] = (rule.prior + before[TRUST]) * before[VALUE] + moved.sum(axis=0)
    merged[VALUE] /= rule.prior + merged[TRUST]
    return merged


def adapted(before: F64, parts: F64, rule: Rule, h: H) -> F64:
    """Sums with steps adapted to the delay: the algorithm AdaptiveRevision.

    McMahan and Streeter, Delay-Tolerant Algorithms for Asynchronous Distributed Online Learning (NIPS 2014).
    The parts arrive in turn, each as one gradient G that has missed the sum B of those before it: n grows by
    g^2 + 2 G B, the step is that of the largest n so far, and the missed steps are revised to it. For FTRL
    the same, with each proximal term centred at the weights that the gradients were taken at.
    """
    (value, trust, missed, raw), home = before.copy(), rule.curvature(before[TRUST], h)
    for part in parts:
        raw = raw + (part[TRUST] - before[TRUST]) + 2 * part[SUM] * missed
        larger = np.maximum(trust, raw)
        local, old, new = (rule.curvature(n, h) for n in (part[TRUST], trust, larger))
        if rule is FTRL:
            gain, pull = local - home, before[VALUE] + part[SUM] - part[VALUE]
            centre = np.where(gain > 0, pull / np.where(gain > 0, gain, 1), 0)
            value = value + part[SUM] - (new - old) * centre
        else:
            value = value + (part[VALUE] - before[VALUE]) * local / new + (1 / old - 1 / new) * missed
        trust, missed = larger, missed + part[SUM]
    return np.array([value, trust, np.zeros_like(missed), raw])


def merges(rule: Rule) -> Iterator[tuple[str, list[Merge]]]:
    """Every merge of a rule, with its variants, one of which is chosen like the step."""
    names = {"mean": "mean", "trust": "mean by precision" if rule.prior else "mean by squares"}
    names["gain"] = names["trust"] + " of the round"
    for by, name in names.items():
        yield name, [partial(average, by=by, trust=trust) for trust in ("mean", "sum")]
    if rule is FTRL:
        yield "mean by squares, dual", [partial(average, by="dual", trust="mean")]
    yield ("sum of natural parameters" if rule.prior else "sum"), [total]
    if not rule.prior:
        yield "sum, adapted to the delay", [adapted]
