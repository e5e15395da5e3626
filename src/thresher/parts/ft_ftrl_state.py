"""Step sizes that adapt to the scales of features and targets, and when a row is forgotten.

The formulas are in `rules.ft_ftrl`. Its clock begins with `PLACES`.

Why the default is what it is (variants were compared on 26 unscaled sets; docs/benchmarks.md says which set
was used for what):

* Without h, one pass has a loss 16 % above LIBLINEAR's on average (22 sets), with h 8 % below.
* L as the largest slope breaks on one outlier (error times 240 on IMDB ratings) and is useless for absolute
  and quantile loss. As the mean of |loss / slope| it is a tenth of what softmax needs. As the root mean
  square it works for all.
* If the threshold does not grow with the passes, the model fills up again when there are few examples per
  feature (IMDB, five passes: 42,988 weights at a loss of .384; with sqrt(p) 8,948 at .315). If it always
  grows, small tables are not solved (wdbc .189 instead of .161, krvskp .109 instead of .098). So it grows
  with the ratio of features to examples. With the ratio of weights to examples, a high `l1`, which leaves few
  weights, let noise in (2,000 rows of 3,000 columns of noise, `l1=4`, 20 passes: 620 weights, a loss of
  .845).
* Giving less weight to new gradients in later passes (1/p, 1/sqrt(p)), or to old ones (.5, .7), is no better.
* rho is fixed for each step and kappa applies to all steps. If both apply to all steps, quantiles at 0.0001
  end at 1e8 times the loss of `ftrl`, and one outlier of 1e6 multiplies the median error of absolute loss by
  177, because errors lengthen steps and steps cause errors. If both are fixed for each step, h acts too late
  (mean loss 1.012 times LIBLINEAR's instead of .927). The price is one more number per row.
* If n is the sum of squares alone, features without a positive row get large weights where positives are
  rare: their slopes are p, so that after k rows z = k p is sqrt(k) of such deviations. On made sets of 1 and
  2 % positives normalised entropy was up to 1.23. With all of p (1 - p) instead of a half, rare events are as
  good, but MNIST loses 1 % and a table of 159 rows 2 %; slope^2 - Q slope for both signs loses 20 % on
  shrooms, where Q is chance; the mean of slope^2 / |slope|, times |slope|, 13 % on Reuters acq, which is
  balanced.
* Without the share m of signs in Q, one outlier of squared loss, a label times 1,000, makes everything noise.
* With all examples for t in q, 20,000 rows of 250 features with 1 % positives end at 1.02 after 40 passes;
  with 8 p (1 - p) t at .96. With 4 p (1 - p) it is .93, but MNIST loses 3 %. With the skewness of slopes in
  place of their signs, separable data have fewer and fewer examples (shrooms: 22 times the loss).
* h is not adapted in later passes of streams with few rows per feature: margins of rows already learned would
  make it diverge.

Storing v = s w and 1 / s in the row, for one division per step instead of four, took `ft-ftrl` from 12.0 to
11.4 ns per non-zero.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thresher.engine.compile.jit import scalar
from thresher.engine.verbs import dual, grouped, step_within, together
from thresher.parts.groups import Single
from thresher.parts.registry import SpecError
from thresher.parts.series import fades, left

PLACES = (
    *("t", "squares", "lengths", "slopes", "signs", "drift", "spread", "h", "per rho", "kappa", "inverse"),
    *("threshold", "floor", "tilt", "skew", "pass", "time"),
)
COUNT, SQUARES, LENGTHS, SLOPES, SIGNS, DRIFT, SPREAD, GROWTH, PER_LENGTH, FACTOR = range(10)
INVERSE, THRESHOLD, FLOOR, TILT, SKEW, PASS, TIME = range(10, 17)
V, Z, ROOT, A, INVERSE_SCALE, MET = range(6)  # columns of S
_FEW = 5.0
"""With fewer examples per feature than this, a model is likely to overfit in later passes."""
CALM = 1.0 / 3.0
"""Steps that do not shrink are shorter by this factor, so that the noise of the last rows averages out."""
_SURE = 0.5
"""The share of the variance of a slope's label that counts where its square is less: see `rules.ft_ftrl`."""
_ROOMY = 30.0
"""With at least this many examples per feature, a margin of a row that comes again is nearly a prediction."""
_WIDEST = 1e38
"""Keeps 1 / s within float32: a feature never above 1e-38 is treated as if it had been that once."""
_LATE = 20.0
"""The threshold begins to rise after this many times as many examples as steps take to taper off."""
_SOLVED = 40.0
"""A solution counts as so many passes, the most that are made by themselves."""
_MOST = 4.0
"""Keeps the step size within a factor of e^-4 and e^4 of the one set by `alpha`."""


@scalar
def settled(self, S, j, now):
    """The weight of row j times s: v, or what is left of it: v (|z| r - l1 root) / (|z| - l1 root)."""
    if fades(self.half_life) and S[j, INVERSE_SCALE] > 0.0:
        size, least = abs(S[j, Z]), self.l1 * S[j, ROOT]
        above = left(self.half_life, size, 0.5 * (now[TIME] - S[j, MET])) - least
        return S.dtype.type(S[j, V] * above / (size - least) if above > 0.0 else 0.0)
    return S[j, V]


def _relax(share, number, passes, S, clock):
    """In the last passes, a `share` of all, PASS is negative. After them, let z follow v again."""
    last = max(1, math.floor(share * passes)) if share > 0.0 and passes > 1 else 0
    begun, before = abs(clock[PASS]), clock[PASS]
    clock[PASS] = -begun if last and number > max(1, passes - last) else begun
    if before < 0.0 < clock[PASS]:
        _follow(S, clock)


def _follow(S, clock):
    """Let z be what the threshold turns into v, or within the threshold where v is zero."""
    if clock[FACTOR] > 0.0:
        v, z, root, a, *_ = np.ascontiguousarray(S).T  # the columns of one of eight lanes are far apart
        held = clock[THRESHOLD] * root + clock[FLOOR]
        chosen = -v * a / clock[FACTOR] - np.copysign(held, v)
        S[:, Z] = np.where(v != 0.0, np.where(a > 0.0, chosen, z), z.clip(-held, held))


@scalar
def forgotten(self, S, j, now):
    """Whether row j, (v, z, root, a, inverse, met), is zero and had no gradient in `forget` examples."""
    old = self.forget > 0.0 and now[TIME] - S[j, MET] > self.forget
    return old and settled(self, S, j, now) == 0.0


@scalar
def rescale(self, S, j, x, now):
    """Rescale row j to |x| if that is its first value, or larger than all before."""
    if forgotten(self, S, j, now):
        S[j, INVERSE_SCALE] = 0.0
    if S[j, INVERSE_SCALE] <= 0.0 or abs(x) * S[j, INVERSE_SCALE] > S.dtype.type(1):
        inverse = min(1.0 / float(abs(x)), _WIDEST)
        if S[j, INVERSE_SCALE] < 0.0:
            give_evidence(S, j, S[j, V] * S[j, INVERSE_SCALE] / inverse, now)
            S[j, INVERSE_SCALE] = inverse
        else:
            ratio = inverse / S[j, INVERSE_SCALE] if S[j, INVERSE_SCALE] > 0.0 else 0.0
            S[j, Z], S[j, ROOT], S[j, A], S[j, INVERSE_SCALE] = (
                S[j, Z] * ratio,
                S[j, ROOT] * ratio,
                S[j, A] * ratio,
                inverse,
            )


@scalar
def give_evidence(S, j, v, now):
    """Set row j, v = s w, to the state after the fewest gradients that lead to v: q^2 of one sign and size G.

    q solves q - l1 (1 + 1 / q) = |v| / (rho kappa). Without such a history, the first gradient of a given
    weight would be as large a step as that of a new feature.

    A given weight is stored as v = -w with the scale -1, which reads as w and marks that no value has been
    seen; the first gradient sets the scale to that value. Before, the scale was 1 and the sums were zero:
    values below 1 were never measured. On RCV1 (10,000 examples, then 7,189 others; held-out error and loss
    of a model that starts without weights: .0734 and .1995) weights of the first half gave .1577 and .356
    with values divided by 64, .0785 and .208 with the original values, .0730 and .199 with values times
    4,096. Now they give .0709 and .192 at every scale, weights of `adagrad-fobos` .0709 and .190, and the
    progressive loss is .209 instead of .234. Assuming twice or eight times as many gradients is no better
    (.191 and .192 on halves of equal size).
    """
    l1, usual = now[THRESHOLD], math.sqrt(now[SLOPES] / now[COUNT])
    wanted = abs(v) * now[INVERSE] + l1
    q = (wanted + math.sqrt(wanted * wanted + 4.0 * l1)) / 2.0
    S[j, V], S[j, Z] = v, -math.copysign(q * q * usual, v)
    S[j, ROOT], S[j, A], S[j, MET] = q * usual, q * usual * now[PER_LENGTH], now[TIME]


class Statistics(NamedTuple):
    """The parameters of `ft-ftrl`, and its verbs but for the weight and its step: see there."""

    alpha: float = 3.0
    l1: float = 1.0
    adapt: float = 0.3
    forget: float = 0.0
    group: Any = Single()
    relax: float = 0.25
    taper: float = 1500.0
    half_life: float = math.inf
    CLOCK = (*PLACES, "begun", "origin")

    def clock0(self):
        """The clock at the first example. SpecError if a group is given with `forget` or `half_life`."""
        for field, on in (("forget", self.forget > 0.0), ("half_life", fades(self.half_life))):
            if on and grouped(self.group):
                raise SpecError(f"ft-ftrl: {field} does not work with a group; leave out one of them")
        clock = np.zeros(len(self.CLOCK))
        clock[THRESHOLD], clock[PASS], clock[TIME] = self.l1, 1.0, 1.0
        return clock

    def tick(self, clock):
        """Advance to the next example; statistics fade like the sums of a row."""
        clock[TIME] += 1.0
        if fades(self.half_life):
            for place in range(COUNT, SPREAD + 1):
                clock[place] = left(self.half_life, clock[place], 1.0)

    def note_after_margin(self, margin, importance, value, slope, size, clock):
        """Count an example with a gradient, then set 1 / rho, kappa (with the last h), 1 / both, G and Q.

        With `taper`, the threshold of the first pass too.
        """
        if slope != 0.0 and size > 0.0:
            length = value / slope if value > 0.0 else slope
            clock[COUNT] += 1.0
            clock[SQUARES] += size
            clock[LENGTHS] += length * length
            clock[SLOPES] += slope * slope
            clock[SIGNS] += math.copysign(1.0, slope)
            if clock[SLOPES] > 0.0:  # a mean, for cubes of slopes may be too large for float32
                clock[TILT] += (slope - clock[TILT]) * (slope * slope / clock[SLOPES])
                clock[SKEW] = -_SURE * abs(clock[SIGNS]) / clock[COUNT] * clock[TILT]
            taper = 1.0
            if self.taper > 0.0:
                met = clock[COUNT] * clock[COUNT] / (clock[SQUARES] * abs(clock[PASS])) / self.taper
                taper = math.sqrt(math.sqrt(1.0 + met * met))  # (1 + (T / taper)^2)^(1/4)
                if clock[PASS] == 1.0:
                    late, most = math.log(1.0 + met / _LATE), min(1.0, self.l1 * self.l1)
                    clock[THRESHOLD] = math.sqrt(self.l1 * self.l1 + most * late)
            clock[PER_LENGTH] = taper / (self.alpha * math.sqrt(clock[LENGTHS] / clock[COUNT]))
            clock[FACTOR] = math.sqrt(clock[COUNT] / clock[SQUARES]) * math.exp(clock[GROWTH])
            clock[INVERSE] = clock[PER_LENGTH] / clock[FACTOR]
            clock[FLOOR] = clock[THRESHOLD] * math.sqrt(clock[SLOPES] / clock[COUNT])

    def slope_after_margin(self, margin, value, slope, size, clock):
        """Set h from slope times margin, which shows whether longer steps would pay.

        In later passes only if sums were kept: see `begin_pass`.
        """
        moved = slope * margin
        if self.adapt > 0.0 and moved * moved > 0.0 and (clock[PASS] == 1.0 or clock[SPREAD] > 0.0):
            clock[DRIFT] += moved
            clock[SPREAD] += moved * moved
            growth = -self.adapt * clock[DRIFT] / math.sqrt(clock[SPREAD])
            clock[GROWTH] = min(max(growth, -_MOST), _MOST)
        return slope

    def place(self, S, rows, w, now):
        """Features not measured yet: v = -w, at a scale of -1. Not supported with a group."""
        if grouped(self.group):
            raise SpecError("ft-ftrl: initial weights do not work with a group")
        S[rows, V], S[rows, INVERSE_SCALE] = 0.0 - w, 0.0 - (w != 0.0)

    def place_measured(self, S, rows, scale, w, gradient, noise, examples, size, clock):
        """The state that passes would leave: sqrt(n) is the noise, and all of a was added at the weights.

        So z is the gradient where w = 0, and what the threshold turns into v elsewhere. t, N, L and G are
        those of the examples at these weights. A solution is where passes lead, so further ones raise no
        threshold.
        """
        if len(examples):
            clock[COUNT : SIGNS + 1] = clock[TILT] = 0.0
        for value, slope in examples.tolist():
            self.note_after_margin(0.0, 1.0, value, slope, size, clock)
        inverse = np.minimum(np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0.0), _WIDEST)
        S[rows, V], S[rows, INVERSE_SCALE], S[rows, MET] = w * scale, inverse, clock[TIME]
        S[rows, Z], S[rows, ROOT], S[rows, A] = gradient * inverse, noise * inverse, 0.0
        S[rows, A] = S[rows, ROOT] * clock[PER_LENGTH]
        _follow(S, clock)
        clock[PASS] = _SOLVED

    def begin_pass(self, clock, number, S, passes):
        """Set the threshold and the step size of a pass, and whether it shrinks weights.

        In a single pass h adapts, also after a run of several, whose last h would suit no new rows.
        """
        if passes == 1:
            clock[PASS] = math.copysign(1.0, clock[PASS])
        if number > abs(clock[PASS]):
            # In pass p, multiply the threshold and divide kappa by (p / old)^(q / 2), q = min(1, 5 met / t).
            # Not with 30 examples of each pass per feature met: then h goes on adapting.
            had_gradient = S[:, INVERSE_SCALE] > 0.0
            if self.forget > 0.0:  # without those that are forgotten
                age, zero = S.dtype.type(clock[TIME]) - S[:, MET], S[:, V] == 0.0
                if fades(self.half_life):
                    root = np.exp2(-0.5 * age.astype(np.float64) / self.half_life)
                    zero |= abs(S[:, Z]) * root <= self.l1 * S[:, ROOT]
                had_gradient &= ~(zero & (age > self.forget))
            met, t, before = np.count_nonzero(had_gradient), clock[COUNT], abs(clock[PASS])
            if (
                t > 0.0
            ):  # examples that tell something: 8 p (1 - p), at most all, p the share of positive slopes
                t *= min(1.0, 2.0 * (1.0 - (clock[SIGNS] / t) ** 2))
            if t < _ROOMY * met * before:
                factor = math.sqrt(number / before) ** min(1.0, _FEW * met / t if t > 0.0 else 1.0)
                clock[GROWTH] -= math.log(factor)
                clock[THRESHOLD] *= factor
                clock[DRIFT] = clock[SPREAD] = 0.0
            clock[PASS] = math.copysign(number, clock[PASS])
        without = grouped(self.group) or fades(self.half_life)
        _relax(0.0 if without else self.relax, number, passes, S, clock)

    def end_passes(self, clock, S):
        """Shrink weights again."""
        _relax(0.0, 1, 1, S, clock)

    def couple(self, T, out, now):
        """Apply the prox of a group norm to z of the outputs, its strength the dual norm of their thresholds.

        Outputs are weighted by their sums of gradients, so one whose slopes are tiny has next to no
        influence. Writes the weights to `out`.
        """
        group = self.group
        if not grouped(group):
            return
        held = np.empty(out.size, out.dtype)
        for k in range(out.size):
            out[k], held[k] = T[k, V] * T[k, A], T[k, MET] * T[k, A]
        together(group, out, dual(group, held))
        for k in range(out.size):
            if T[k, A] > 0.0:
                out[k] *= T[k, INVERSE_SCALE] / T[k, A]

    def sound(self, S, clock, steps):
        """What is wrong with the statistics of `steps` examples, in words; "" if nothing. Plain Python."""
        measured = np.delete(clock[: len(PLACES)], (SIGNS, DRIFT, GROWTH, TILT, SKEW, PASS))
        if not (measured >= 0.0).all():
            return "measured sizes must not be negative"
        if not (abs(clock[PASS]) >= 1.0 and clock[COUNT] <= steps and 1.0 <= clock[TIME] <= steps + 1):
            return f"passes are counted from 1, and examples up to {steps}"
        return "" if (S[:, [ROOT, A]] >= 0.0).all() else "sums of squares must not be negative"

    def size_before_margin(self, S, j, x, now):
        """(x / s)^2, with s at least |x|, for N."""
        ratio, one = x * S[j, INVERSE_SCALE], S.dtype.type(1)
        if S[j, INVERSE_SCALE] <= 0.0 or forgotten(self, S, j, now):
            return one if x != 0.0 else ratio
        return min(ratio * ratio, one)

    def outgrown(self, S, j, x, now):
        """Whether |x| is the first or largest of row j so far; without branches for the others."""
        over = (
            (S[j, INVERSE_SCALE] <= 0.0)
            | (abs(x) * S[j, INVERSE_SCALE] > S.dtype.type(1))
            | forgotten(self, S, j, now)
        )
        return over & (x != 0.0) & (now[INVERSE] != 0.0)

    def step(self, S, j, w, x, slope, now):
        """Rescale row j if it is outgrown, then step it."""
        if slope == 0.0 or x == 0.0 or now[INVERSE] == 0.0:
            return
        rescale(self, S, j, x, now)
        step_within(self, S, j, w, x, slope, now)

    def step_on_sum(self, S, j, w, x, gradient, now):
        """Rescale row j if an example of the batch has outgrown it, then step it."""
        if gradient == 0.0 or x == 0.0 or now[INVERSE] == 0.0:
            return
        rescale(self, S, j, x, now)
        step_within(self, S, j, w, x, gradient / x, now)
