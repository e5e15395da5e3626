"""The default rule: no features to scale, no step size to tune."""

from __future__ import annotations

import math

from thresher.engine.verbs import alone, grouped
from thresher.parts import ft_ftrl_state
from thresher.parts.ft_ftrl_state import (
    CALM,
    FACTOR,
    FLOOR,
    INVERSE,
    INVERSE_SCALE,
    MET,
    PASS,
    PER_LENGTH,
    ROOT,
    SKEW,
    THRESHOLD,
    TIME,
    A,
    V,
    Z,
)
from thresher.parts.registry import part
from thresher.parts.rules.fobos import Fobos
from thresher.parts.series import fades, left


@part("rule")
class FtFtrl(ft_ftrl_state.Statistics):
    """FTRL-Proximal with a frequency-aware threshold, for features and targets of any scale.

    With s the largest |x| of the feature so far (z, sqrt(n) and a *= s / |x| when |x| is larger) and
    u = x / s, g = slope u: n += max(g^2, -Q g u / 2), sigma = (sqrt(n) - sqrt(n_old)) / rho, a += sigma,
    z += g - sigma s w / kappa, and w = -soft(z, l1 (sqrt(n) + G)) kappa / (s a), where G is the root mean
    square of the slopes so far, and Q the sum of their cubes over that of their squares, times |m|, with m
    the mean of their signs.

    For an uninformative feature, z is a sum of noise with standard deviation sqrt(n): `l1` counts standard
    deviations, so it means the same for two hundred rows and for two billion. G raises the threshold for
    features seen only a few times: with l1 = 1 three equal gradients are needed, not two. Squares say little
    of the noise of a feature whose few rows all have the frequent label. If labels are 1 with probability p,
    slope = p - y, then slope^2 - Q slope with Q = 2 p - 1 is p (1 - p) for both labels, whereas slope^2 of
    the frequent one is p^2. So -Q slope / 2 counts where it is larger; without skew, squares alone do. The
    factor |m|, nearly 1 for rare events, leaves out the skew of an outlier, beside which signs are balanced.

    The step size has two factors, rho = alpha L and kappa = sqrt(t / N) exp(h). L is the root mean square of
    loss / slope over the examples: the distance of a margin from where the tangent of its loss reaches zero,
    which is about 1 for logistic loss, half the error for squared loss, the error for absolute loss (the
    slope itself if the loss is not positive). So targets may be in thousandths or in millions. t counts the
    examples with a gradient, N is the sum of their (x / s)^2, plus 1 for the intercept. During the first pass
    h = -adapt U / sqrt(V), limited to -4..4, with U the sum of u = slope times margin (without the intercept)
    over the examples before this one, and V the sum of u^2: if longer steps would have been better overall,
    steps become longer. Each step adds sigma with its own rho, but multiplies all of z by its kappa, so h
    scales all that a weight has accumulated; until its next step a weight keeps this kappa and G.

    With `taper` above 0, long streams are learned differently. T = t^2 / (N p), with p the number of the
    pass, is the number of examples per feature of an example. rho is divided by (1 + (T / taper)^2)^(1/4):
    from `taper` examples per feature on, steps shrink like 1 / t instead of 1 / sqrt(t). In the first pass
    sqrt(l1^2 + min(1, l1^2) log(1 + T / (20 taper))) replaces `l1`, since a useless feature is the more
    likely to pass the more often it is tested; later passes keep the last value.

    A later pass brings no new evidence, but in p passes z grows by p and sqrt(n) only by sqrt(p); and a model
    with few examples per feature overfits. So at the start of pass p the threshold is multiplied, and kappa
    divided, by (p / (p - 1))^(q / 2), q = min(1, 5 features / t): in full if there are fewer than five
    examples per feature met. The intercept has a factor of its own, with the q of one feature. If there are
    at least 30 examples of each pass per feature met, nothing is multiplied, and h goes on adapting. Where
    the slopes of few examples have one of the signs, the others tell little: t, here, is the number of
    examples times 2 (1 - m^2), but at most 1, with m the mean of the signs.

    With `relax` above 0, the last passes, a share `relax` of them but at least one of several, do not shrink:
    a weight that is zero stays zero, and every other one takes plain steps, v -= g kappa / (3 a) with
    v = s w. So features are chosen with the threshold, then their weights are learned without it. After the
    last pass, z becomes what the threshold turns into this v: -v a / kappa - sign(v) l1 (sqrt(n) + G), or z
    limited to plus or minus l1 (sqrt(n) + G) if v is zero. So later examples go on from there. For a group of
    many outputs, `relax` has no effect.

    An example without a gradient changes none of this. The intercept is a feature that is always 1, with
    l1 = adapt = 0; for squared, absolute, Huber and quantile loss it starts at the first label, less its
    offset. In learning, w becomes w s / |x| before the margin is computed, where |x| is larger than s.
    Prediction alone uses the weights as they are, and changes no s.

    In a mini-batch, each example updates these statistics by itself, with s of N the larger of |x| and s
    before the batch; all are predicted with the weights before the batch; then each weight takes one step,
    with g the sum over the batch and s the largest |x|. docs/default.md has all of this step by step.

    With `forget` above 0, a coordinate that is zero and had no gradient in the last `forget` examples is
    forgotten: its row is free, and it is new when it occurs again.

    With a finite `half_life` = H the world may drift: z, n and all sums over the examples are multiplied by
    2^(-1/H) after each example (or batch), a and sqrt(n) by r = 2^(-1/(2H)). So T stops growing, and steps
    stop shrinking. A weight is read, k examples after its last step, as w (|z| r^k - l1 sqrt(n)) /
    (|z| - l1 sqrt(n)) with the w, z and n of that step, and as zero from where this changes its sign: the
    older the evidence, the less of it exceeds the noise. With `forget` such a row is free. `relax` has no
    effect, and a given weight fades only from its first gradient on.

    With many outputs, `group` = ``l2`` or ``linf`` keeps or drops a feature for all of them: the prox of that
    norm is applied to the vector z kappa of its outputs, with the dual norm of l1 (sqrt(n) + G) kappa as
    strength, and the result replaces z kappa in w = -z kappa / (s a). If all a are equal, this is FTRL with
    the mixed norm. `forget` must then be 0 and `half_life` infinite.

    Lazy update: none needed, since w depends only on its own z, n, a and s at its last step; if sums fade,
    one power for the examples since, as `met` holds the time of that step. The row holds v = s w (with a
    group v = -z kappa / a) and 1 / s: a larger |x| leaves v unchanged, and a step takes one square root and
    one division.

    Reference: McMahan et al., Ad Click Prediction (KDD 2013), Algorithm 1; the threshold by Oiwa, Matsushima
    and Nakagawa, Frequency-aware Truncated Methods (ECML PKDD 2011), equation 9 with p = 2; s, t and N by
    Ross, Mineiro and Langford, Normalized Online Learning (UAI 2013), Algorithm 2. Their combination, L and h
    are this project's: docs/default.md. `relax` is the relaxed Lasso with phi = 0 (Meinshausen, Computational
    Statistics and Data Analysis 52, 2007), whose second fit is by AdaGrad's steps.

    >>> FtFtrl(alpha=0.5).SLOTS
    ('v', 'z', 'root', 'a', 'inverse', 'met or held')
    """

    SLOTS = ("v", "z", "root", "a", "inverse", "met or held")
    DRIFTS, PENALTIES, RELATIVE_IMPORTANCE, AUTOMATIC = (), ("l1",), True, True
    CLAMPS = ("step_within",)
    LIMITS = {"alpha": "> 0", "forget": "0, or >= 1", "relax": "in [0, 1]", "half_life": ">= 1, or inf"}
    TUNED = {"alpha": (0.1, 10.0), "l1": (0.25, 3.0)}
    grouped = Fobos.grouped

    def intercept(self):
        """A copy without a threshold and without `adapt`."""
        return FtFtrl(self.alpha, 0.0, adapt=0.0, relax=0.0, taper=self.taper, half_life=self.half_life)

    def weight(self, S, j, now):
        return ft_ftrl_state.settled(self, S, j, now) * S[j, INVERSE_SCALE]

    def meet(self, S, j, w, x, now):
        """The weight after rescaling to x."""
        size = abs(x) * S[j, INVERSE_SCALE]
        return w / size if size > S.dtype.type(1) else w

    def step_within(self, S, j, w, x, slope, now):
        """Add the gradient, relative to the feature's scale, then recompute w."""
        if slope == 0.0 or x == 0.0 or now[INVERSE] == 0.0:
            return
        life, half = self.half_life, 0.5 * (now[TIME] - S[j, MET])
        old = left(life, S[j, ROOT], half)
        u = x * S[j, INVERSE_SCALE]
        g = slope * u
        root = math.sqrt(old * old + max(g * g, now[SKEW] * g * u))
        v = w / S[j, INVERSE_SCALE] if grouped(self.group) or fades(life) else S[j, V]
        z = left(life, left(life, S[j, Z], half), half) + g - (root - old) * v * now[INVERSE]
        a = left(life, S[j, A], half) + (root - old) * now[PER_LENGTH]
        if a > 0.0:
            held = now[THRESHOLD] * root + now[FLOOR]
            pull = alone(self.group, z, held) * now[FACTOR]
            if now[PASS] < 0.0:
                pull = g * now[FACTOR] * S.dtype.type(CALM) - v * a if v != 0.0 else v
            S[j, V] = -pull / a
            S[j, MET] = held * now[FACTOR] / a if grouped(self.group) else now[TIME]
            S[j, Z], S[j, ROOT], S[j, A] = z, root, a

    def idle(self, S, j, w, now):
        """Whether there was no gradient yet, or the row is forgotten."""
        return S[j, INVERSE_SCALE] == 0.0 or ft_ftrl_state.forgotten(self, S, j, now)
