"""The default rule, programmed from "Step by step" of docs/default.md and nothing else."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.plain import not_compiled
from tests.streams import case
from thresher.data.chunk import Chunk
from thresher.data.offsets import with_offsets
from thresher.learning.model.model import Model
from thresher.learning.model.warm_start import start_from

ROWS, FEATURES = 60, 12
SHIFTED = ("squared", "absolute", "huber", "quantile")
Rows = list[tuple[float, dict[int, float], float, float]]
"""Label, features, importance and offset of each"""


def loss_of(name: str, p: float, y: float) -> tuple[float, float]:
    """ℓ and ℓ′ at the margin p."""
    if name == "logistic":
        return math.log1p(math.exp(-y * p)), -y / (1.0 + math.exp(y * p))
    if name == "hinge":
        return (1.0 - y * p, -y) if y * p < 1.0 else (0.0, 0.0)
    if name == "absolute":
        return abs(p - y), float(np.sign(p - y))
    return 0.5 * (p - y) ** 2, p - y


class FromThePage:
    """The state of "Step by step"; dictionaries have an entry for each feature with s > 0."""

    def __init__(
        self,
        loss: str,
        alpha: float,
        l1: float,
        adapt: float,
        forget: float,
        relax: float,
        taper: float,
        half_life: float,
        intercept: bool,
    ) -> None:
        self.loss, self.alpha, self.l1, self.adapt, self.forget = loss, alpha, l1, adapt, forget
        self.relax, self.relaxed, self.taper, self.lifted = relax, False, taper, l1
        self.half_life, self.left_by_step = half_life, dict[Any, tuple[float, float, float, int]]()
        self.intercept, self.number, self.T = intercept, 1, 0
        self.first: float | None = None
        self.given, self.given_b = dict[int, float](), 0.0
        self.s: dict[int, float] = {}
        self.z, self.r, self.a, self.w, self.last = ({**self.s} for _ in range(5))
        self.t = self.N = self.D = self.Q = self.U = self.V = self.h = 0.0
        self.f = self.f_b = 1.0
        self.b = self.z_b = self.r_b = self.a_b = 0.0
        self.rho = self.kappa = self.kappa_b = self.G = 0.0

    def begin_pass(self, p: int, passes: int) -> None:
        self.number = p
        last = max(1, int(self.relax * passes)) if self.relax else 0
        self.relaxed = p > 1 and p > passes - last
        if p > 1:
            self.drop_forgotten(self.s, self.T + 1)
            if self.t < 30 * (p - 1) * len(self.s):
                self.f *= (p / (p - 1)) ** (min(1.0, 5 * len(self.s) / self.t) / 2)
                self.U = self.V = 0.0
            if self.t < 30 * (p - 1):
                self.f_b *= (p / (p - 1)) ** (min(1.0, 5 / self.t) / 2)

    def drop_forgotten(self, features: Any, T: int) -> None:
        for j in [*features]:
            if self.forget and j in self.s and self.w[j] == 0 and T - self.last[j] > self.forget:
                for kept in (self.s, self.z, self.r, self.a, self.w):
                    del kept[j]

    def start(self, weights: dict[int, float], b: float) -> None:
        """With `--init`: a given weight predicts as it is, whatever |x|."""
        self.given, self.b, self.given_b, self.first = {**weights}, b, b, 0.0
        self.w.update(weights)

    def widths(self, x: dict[int, float]) -> dict[int, float]:
        """S' of each feature."""
        return {j: max(self.s.get(j, 0.0), abs(v)) for j, v in x.items()}

    def met(self, j: int, wide: float) -> float:
        """W' of a feature."""
        return self.given[j] if j in self.given else self.w.get(j, 0.0) * self.s.get(j, 0.0) / wide

    def margin(self, x: dict[int, float]) -> float:
        """Step 1: m."""
        wide = self.widths(x)
        return sum(self.met(j, wide[j]) * v for j, v in x.items())

    def measure(self, x: dict[int, float], y: float, c: float, offset: float) -> float:
        """Steps 1 to 4; returns the slope."""
        if self.first is None:
            shifted = self.loss in SHIFTED and self.intercept
            self.first = float(np.float32(y - offset)) if shifted else 0.0
        y, m = float(np.float32(y - self.first)), self.margin(x)
        value, slope = loss_of(self.loss, m + self.b + offset, y)
        return self.look(x, m, c * value, c * slope)

    def look(self, x: dict[int, float], m: float, value: float, slope: float) -> float:
        """Steps 3 and 4; returns the slope."""
        wide = self.widths(x)
        size = sum((v / wide[j]) ** 2 for j, v in x.items()) + self.intercept
        if slope == 0 or size == 0:
            return 0.0
        self.t += 1
        self.N += size
        self.D += (value / slope if value > 0 else slope) ** 2
        self.Q += slope**2
        self.rho, self.G = self.alpha * math.sqrt(self.D / self.t), math.sqrt(self.Q / self.t)
        if self.taper:
            seen = self.t**2 / (self.N * self.number)
            self.rho /= (1 + (seen / self.taper) ** 2) ** 0.25
            if self.number == 1:
                rise = math.log(1 + seen / (20 * self.taper))
                self.lifted = math.sqrt(self.l1**2 + min(1, self.l1**2) * rise)
        self.kappa = math.sqrt(self.t / self.N) * math.exp(self.h) / self.f
        self.kappa_b = math.sqrt(self.t / self.N) / self.f_b
        u = slope * m
        if (self.number == 1 or self.V > 0) and self.adapt and u:
            self.U += u
            self.V += u * u
            self.h = min(max(-self.adapt * self.U / math.sqrt(self.V), -4.0), 4.0)
        return slope

    def step(self, j: int, largest: float, pull: float) -> None:
        """Step 5, on the sum of slope · x."""
        if pull == 0:
            return
        s = self.s.get(j, 0.0)
        wide = max(s, largest)
        w = self.met(j, wide)
        z, r, a = (kept.get(j, 0.0) * s / wide for kept in (self.z, self.r, self.a))
        if self.given.pop(j, 0.0):
            z, r, a = self.history(w * wide, self.f * self.lifted, self.kappa)
        g = pull / wide
        new = math.sqrt(r * r + g * g)
        sigma = (new - r) / self.rho
        z += g - sigma * wide * w / self.kappa
        a += sigma
        threshold = self.f * self.lifted * (new + self.G)
        soft = math.copysign(max(abs(z) - threshold, 0.0), z)
        self.w[j] = -soft * self.kappa / (wide * a)
        if self.relaxed:
            self.w[j] = w - g * self.kappa / (3 * wide * a) if w else 0.0
        self.s[j], self.z[j], self.r[j], self.a[j], self.last[j] = wide, z, new, a, self.T
        self.left_by_step[j] = self.w[j], abs(z), new, self.T

    def fade(self) -> None:
        """With `half_life`, after each batch; the intercept is called "b" here."""
        f = 0.5 ** (1 / self.half_life)
        self.t, self.N, self.D, self.Q, self.U, self.V = (
            f * old for old in (self.t, self.N, self.D, self.Q, self.U, self.V)
        )
        for j in self.s:
            self.z[j], self.r[j], self.a[j] = self.z[j] * f, self.r[j] * f**0.5, self.a[j] * f**0.5
            self.w[j] = self.read(j, self.l1)
        self.z_b, self.r_b, self.a_b = self.z_b * f, self.r_b * f**0.5, self.a_b * f**0.5
        self.b = self.read("b", 0.0) if "b" in self.left_by_step else 0.0

    def read(self, j: Any, l1: float) -> float:
        w, size, r, last = self.left_by_step[j]
        zeta = size * 0.5 ** ((self.T + 1 - last) / (2 * self.half_life))
        return 0.0 if zeta <= l1 * r else w * (zeta - l1 * r) / (size - l1 * r)

    def end_passes(self) -> None:
        for j, w in self.w.items() if self.relaxed else ():
            threshold = self.f * self.lifted * (self.r[j] + self.G)
            limited = min(max(self.z[j], -threshold), threshold)
            chosen = -self.s[j] * w * self.a[j] / self.kappa - math.copysign(threshold, w)
            self.z[j] = chosen if w else limited
        self.relaxed = False

    def history(self, v: float, threshold: float, kappa: float) -> tuple[float, float, float]:
        """Z, r and a of a given weight: q by bisection."""
        low, high = 0.0, 1e9
        for _ in range(200):
            q = (low + high) / 2
            short = q == 0 or q - threshold * (1 + 1 / q) < abs(v) / (self.rho * kappa)
            low, high = (q, high) if short else (low, q)
        return -math.copysign(q * q * self.G, v), q * self.G, q * self.G / self.rho

    def step_intercept(self, pull: float) -> None:
        """Step 6."""
        if self.given_b:
            self.z_b, self.r_b, self.a_b = self.history(self.given_b, 0.0, self.kappa_b)
            self.given_b = 0.0
        new = math.sqrt(self.r_b**2 + pull**2)
        sigma = (new - self.r_b) / self.rho
        self.z_b += pull - sigma * self.b / self.kappa_b
        self.a_b += sigma
        self.r_b = new
        self.b = -self.z_b * self.kappa_b / self.a_b
        self.left_by_step["b"] = self.b, abs(self.z_b), self.r_b, self.T

    def learn(self, rows: Rows, batch: int) -> None:
        for first in range(0, len(rows), batch):
            self.T += 1
            together = rows[first : first + batch]
            self.drop_forgotten({j for _, x, *_ in together for j in x}, self.T)
            pulls: dict[int, float] = {}
            largest: dict[int, float] = {}
            slopes = [self.measure(x, y, c, offset) for y, x, c, offset in together]
            for slope, (_, x, *_) in zip(slopes, together, strict=True):
                for j, v in x.items() if slope else ():
                    pulls[j] = pulls.get(j, 0.0) + slope * v
                    largest[j] = max(largest.get(j, 0.0), abs(v))
            for j, pull in pulls.items():
                self.step(j, largest[j], pull)
            if self.intercept and sum(slopes) != 0:
                self.step_intercept(sum(slopes))
            if self.half_life < math.inf:
                self.fade()


def rows_of(loss: str, features: int) -> Rows:
    rng = np.random.default_rng(len(loss))
    found: Rows = []
    for _ in range(ROWS):
        there = np.flatnonzero(rng.random(features) < 0.3)
        x = {int(j): float(np.float32(rng.normal() * 10.0 ** (j % 4))) for j in there}
        y = rng.choice([-1.0, 1.0]) if loss in ("logistic", "hinge") else float(np.float32(7 + rng.normal()))
        found.append((y, x, float(rng.choice([0.5, 1.0, 2.0])), 0.0))
    return found


def chunk_of(rows: Rows) -> Chunk:
    return Chunk.of_rows([(y, x) for y, x, *_ in rows], [c for _, _, c, _ in rows])


def weights_of(model: Model) -> dict[int, float]:
    return dict(zip(*(array.tolist() for array in model.weights()), strict=True))


def settings() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from ((loss, {}) for loss in ("logistic", "hinge", "absolute", "squared"))
    yield from (("logistic", {"l1": 0.1, "features": features}) for features in (2, 3))
    yield from (
        ("logistic", {"l1": l1, "adapt": adapt}) for l1, adapt in ((0.0, 0.3), (0.5, 0.0), (2.0, 3.0))
    )
    yield from ((loss, {"l1": 0.5, "intercept": False}) for loss in ("hinge", "squared"))
    yield from (("logistic", {"l1": l1, "forget": 4.0, "alpha": 0.5}) for l1 in (0.3, 1.5))
    yield from (("logistic", {"l1": 0.5, "relax": relax}) for relax in (0.1, 0.7))
    yield "squared", {"l1": 0.3, "relax": 1.0, "forget": 4.0}
    yield from ((loss, {"l1": l1, "taper": 1.5}) for loss, l1 in (("logistic", 0.5), ("squared", 1.2)))
    yield "logistic", {"l1": 0.5, "taper": 1.5, "relax": 0.5}
    yield from ((loss, {"l1": 0.4, "half_life": 9.0}) for loss in ("hinge", "squared"))
    yield "logistic", {"l1": 0.3, "taper": 1.5, "forget": 4.0, "half_life": 15.0}


@pytest.mark.parametrize("batch", [1, 4, 7])
def test_the_page_is_the_code(batch: int) -> None:
    for loss, given in settings():
        with case(loss, given), not_compiled():
            rule = dict[str, Any](
                {"alpha": 3.0, "l1": 1.0, "adapt": 0.3, "forget": 0.0, "relax": 0.0, "taper": 0.0}
                | {"half_life": math.inf, **given}
            )
            rows, intercept = rows_of(loss, rule.pop("features", FEATURES)), rule.pop("intercept", True)
            copy = FromThePage(loss, intercept=intercept, **rule)
            spec = "ft-ftrl:" + ",".join(f"{name}={value}" for name, value in rule.items())
            told = {"intercept": intercept, "batch": batch, "dtype": "float64", "centre": False}
            model = Model(spec, loss, **told)
            for number in (1, 2, 3, 0):
                if number == 1:  # the last batch is incomplete only where the stream ends
                    rows, rest = rows[: len(rows) // batch * batch], rows[len(rows) // batch * batch :]
                elif not number:
                    rows = rows + rest
                chunk = chunk_of(rows)
                if number:
                    copy.begin_pass(number, 3)
                    model.begin_pass(number, 3)
                else:
                    copy.end_passes()
                    model.end_passes()
                copy.learn(rows, batch)
                model.learn(chunk, again=number > 1)
                model.finish()
                found = weights_of(model)
                expected = {j: w for j, w in copy.w.items() if w}
                assert found == pytest.approx(expected, rel=1e-10, abs=1e-12)
                assert found or rule["l1"] >= 1, "no weight: nothing tested"
                assert model.intercept == pytest.approx(copy.b + (copy.first or 0.0), rel=1e-10, abs=1e-12)


DEFAULTS: dict[str, Any] = {"alpha": 3.0, "l1": 0.3, "adapt": 0.3, "forget": 0.0, "relax": 0.0, "taper": 1.5}
DEFAULTS["half_life"] = math.inf


def copy_and_model(loss: str, **options: Any) -> tuple[FromThePage, Model]:
    spec = "ft-ftrl:" + ",".join(f"{name}={value}" for name, value in DEFAULTS.items())
    told = {"dtype": "float64", "centre": False, **options}
    return FromThePage(loss, intercept=True, **DEFAULTS), Model(spec, loss, **told)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_base_is_the_first_label_less_its_offset(loss: str) -> None:
    rng = np.random.default_rng(1)
    rows = [(*row[:3], float(np.float32(rng.normal()))) for row in rows_of(loss, FEATURES)]
    copy, model = copy_and_model(loss, offset=True)
    with not_compiled():
        model.learn(with_offsets(chunk_of(rows), np.array([offset for *_, offset in rows])))
        found = weights_of(model), model.intercept
    copy.learn(rows, 1)
    assert found[0] == pytest.approx({j: w for j, w in copy.w.items() if w}, rel=1e-10)
    assert found[1] == pytest.approx(copy.b + (copy.first or 0.0), rel=1e-10)
    assert (copy.first != 0.0) == (loss == "squared")


def test_given_weights() -> None:
    rows = rows_of("squared", FEATURES)
    first, (copy, model) = Model("sgd", "squared", dtype="float64", centre=False), copy_and_model("squared")
    with not_compiled():
        first.learn(chunk_of(rows[:20]))
        start_from(model, first.readout())
        copy.start(weights_of(first), first.intercept)
        model.learn(chunk_of(rows[20:]))
        found = weights_of(model), model.intercept
    copy.learn(rows[20:], 1)
    assert found[0] == pytest.approx({j: w for j, w in copy.w.items() if w}, rel=1e-9)
    assert found[1] == pytest.approx(copy.b, rel=1e-9)


def of_outputs(loss: str, margins: Any, y: int) -> tuple[Any, Any]:
    """The value and slope of each output."""
    if loss == "softmax":
        p = np.exp(margins) / np.exp(margins).sum()
        slopes = p - (np.arange(len(p)) == y)
        return -np.log(p[y]) * slopes**2 / (slopes @ slopes), slopes
    each = [loss_of(loss, margin, 1.0 if k == y else -1.0) for k, margin in enumerate(margins)]
    return tuple(np.array(each).T)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_many_outputs(loss: str) -> None:
    rows, rng = rows_of("logistic", FEATURES), np.random.default_rng(2)
    rows = [(float(rng.integers(3)), x, c, offset) for _, x, c, offset in rows]
    copies = [copy_and_model("logistic")[0] for _ in range(3)]
    model = copy_and_model(loss, outputs="classes:0-2")[1]
    with not_compiled():
        model.learn(chunk_of(rows))
        (keys, weights), intercepts = model.weights(), model.intercept
    for y, x, c, _ in rows:
        margins = [copy.margin(x) for copy in copies]
        values, slopes = of_outputs(loss, np.add(margins, [copy.b for copy in copies]), int(y))
        for copy, m, value, slope in zip(copies, margins, values, slopes, strict=True):
            copy.T += 1
            copy.look(x, m, c * value, c * slope)
            for j, v in x.items():
                copy.step(j, abs(v), c * slope * v)
            copy.step_intercept(c * slope)
    expected = np.array([[copy.w.get(j, 0.0) for copy in copies] for j in keys.tolist()])
    assert weights == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert intercepts == pytest.approx([copy.b for copy in copies], rel=1e-9)
