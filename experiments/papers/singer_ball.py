"""Projected and exponentiated gradient on MNIST with products of pixels (Singer, slide 32)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds
from scipy.special import logsumexp, softmax

from benchmarks.corpora import digits
from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from thresher import Model
from thresher.data import Chunk
from thresher.drawing import Axis, Series, chart

F64 = NDArray[np.float64]
IMAGES, FEATURES, RADII = 400, 25_000, (10.0, 30.0, 100.0)
SIDE, REACH = 28, 3
FACTOR = 3.0
RULES = {
    "projected gradient": "l1-ball:radius={0.radius}",
    "exponentiated gradient": "eg:norm={0.radius},features={0.features}",
}


class Problem(NamedTuple):
    """Minimise the mean softmax loss over weights with an L1 norm of at most `radius` for each class."""

    rows: Chunk
    classes: int
    features: int
    radius: float
    lowest: float
    """the minimum f*"""

    def gap(self, model: Model) -> float:
        """How far the loss f of a model is above f*."""
        margins = model.margins(self.rows)
        own = margins[np.arange(len(self.rows)), self.rows.labels.astype(int)]
        return float(np.mean(logsumexp(margins, axis=1) - own)) - self.lowest


class Run(NamedTuple):
    """The best step size of a rule, and how it came near the minimum."""

    eta: float
    steps: list[int]
    gaps: list[float]
    """f - f* after so many steps"""
    nonzero: float
    """share of the weights"""


class Kind(NamedTuple):
    """Gradients of `batch` rows, `count` of them, and how often to look."""

    name: str
    batch: int
    count: int
    every: int

    @property
    def rows(self) -> str:
        """How many rows a gradient has."""
        return self.name.partition(" of ")[2]


WHOLE, FEW = Kind("20 gradients of all rows", IMAGES, 20, 1), Kind("400 gradients of 5 rows", 5, 400, 20)


def products(images: Chunk, reach: int, buckets: int) -> Chunk:
    """Images as products of neighbouring pixels, hashed to `buckets` features.

    A pixel counts as 1 if it is brighter than half. Each pair of pixels at most `reach` apart has a random
    bucket; a feature is 1 if both pixels of one of its pairs are bright.
    """
    draw = np.random.default_rng(0)
    offsets = [SIDE * a + b for a in range(reach + 1) for b in range(-reach, reach + 1) if a or b > 0]
    bucket = draw.integers(0, buckets, (SIDE * SIDE, len(offsets)))
    indptr, keys = [0], []
    for k in range(len(images)):
        span = slice(images.indptr[k], images.indptr[k + 1])
        bright = np.zeros(SIDE * SIDE + reach * SIDE + reach + 1, bool)
        bright[images.keys[span][images.values[span] > 127].astype(int)] = True
        pixels = np.flatnonzero(bright)
        keys.append(np.unique(bucket[pixels][bright[pixels[:, None] + offsets]]))
        indptr.append(indptr[-1] + len(keys[-1]))
    found, n = np.concatenate(keys), len(images)
    return Chunk.from_csr(np.array(indptr), found, np.ones(len(found)), images.labels - 1, np.ones(n))


def problem(rows: Chunk, classes: int, features: int, radius: float) -> Problem:
    """With the minimum, found by accelerated projected gradient."""
    shape, y = (len(rows), features), rows.labels.astype(int)
    X = sparse.csr_matrix((rows.values.astype(float), rows.keys.astype(int), rows.indptr), shape)
    return Problem(rows, classes, features, radius, lowest(X, y, classes, radius))


def lowest(X: Any, y: NDArray[np.int64], classes: int, radius: float, steps: int = 300) -> float:
    """The minimum by FISTA (Beck and Teboulle 2009), restarted when the loss rises."""
    n, own = len(y), np.eye(classes)[y]
    eta = 2.0 * n / svds(X, k=1, return_singular_vectors=False)[0] ** 2
    W = V = np.zeros((X.shape[1], classes))
    momentum, best = 1.0, np.inf
    for _ in range(steps):
        margins = X @ V
        new = projected(V - eta / n * (X.T @ (softmax(margins, axis=1) - own)), radius)
        at = X @ new
        loss = float(np.mean(logsumexp(at, axis=1) - at[np.arange(n), y]))
        if loss > best:
            momentum, V = 1.0, W
            continue
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        V, W = new + (momentum - 1) / following * (new - W), new
        momentum, best = following, loss
    return best


def projected(W: F64, radius: float) -> F64:
    """Each column projected onto the L1 ball (Duchi, Shalev-Shwartz, Singer and Chandra 2008, Figure 1)."""
    sizes = -np.sort(-np.abs(W), axis=0)
    excess = np.cumsum(sizes, axis=0) - radius
    ranks = np.arange(1, len(W) + 1)[:, None]
    last = np.count_nonzero(sizes * ranks > excess, axis=0) - 1
    theta = np.maximum(excess[last, np.arange(W.shape[1])] / (last + 1), 0)
    inside = excess[-1] <= 0
    return np.where(inside, W, np.sign(W) * np.maximum(np.abs(W) - theta, 0))


def run(task: Problem, rule: str, eta: float, kind: Kind) -> Run:
    """Take `kind.count` steps, the k-th of size eta / sqrt(k) along the mean gradient of the next rows."""
    outputs = f"classes:0-{task.classes - 1}"
    rate = f"inverse-sqrt:{eta / kind.batch:g}"
    spec = RULES[rule].format(task)
    model = Model(spec, "softmax", rate=rate, outputs=outputs, batch=kind.batch, intercept=False)
    gaps, steps, n = list[float](), list[int](), len(task.rows)
    for step in range(kind.count):
        start = step * kind.batch % n
        model.learn(task.rows, start, start + kind.batch, again=step * kind.batch >= n)
        if (step + 1) % kind.every == 0:
            steps.append(step + 1)
            gaps.append(task.gap(model))
    return Run(eta, steps, gaps, model.nonzero / (task.classes * task.features))


def best(task: Problem, rule: str, kind: Kind) -> Run:
    """The run with the lowest loss at its end: η goes up or down by `FACTOR` from 1 while that helps."""
    first = run(task, rule, 1.0, kind)
    up, down = (run(task, rule, eta, kind) for eta in (FACTOR, 1 / FACTOR))
    factor = FACTOR if up.gaps[-1] < down.gaps[-1] else 1 / FACTOR
    found, following = first, up if factor > 1 else down
    while following.gaps[-1] < found.gaps[-1]:
        found, following = following, run(task, rule, following.eta * factor, kind)
    return found


Found = dict[tuple[float, str, str], Run]
"""By radius, kind and rule."""


def page(sets: Sets) -> Page:
    """Both rules, with all rows and with a few, for each radius."""
    if sets.quick:
        rows, classes, features, radii = generated(), 3, 30, (3.0,)
        kinds = [WHOLE._replace(batch=len(rows))]
    else:
        rows, classes, features, radii = products(images(sets), REACH, FEATURES), 10, FEATURES, RADII
        kinds = [WHOLE, FEW]
    tasks = [problem(rows, classes, features, radius) for radius in radii]
    found = {
        (task.radius, kind.name, rule): best(task, rule, kind)
        for task in tasks
        for kind in kinds
        for rule in RULES
    }
    return Page(
        title="Projections against exponentiated gradient",
        source="Singer (MLSS 2012), slide 32; experiments of Duchi, Shalev-Shwartz, Singer and Chandra "
        "(ICML 2008)",
        claim="Both methods keep the L1 norm of the weights below a radius. Gradient steps that are "
        "projected onto the L1 ball come nearer to the minimum than exponentiated gradient after as many "
        "gradients, of all rows or of a few, and their weights are sparse.",
        method=f"{len(rows):,} images of MNIST. Products of bright pixels at most {REACH} apart are hashed "
        f"to {features:,} features; {100 * rows.nnz / len(rows) / features:.0f} % of them are 1 in an image. "
        "Softmax loss, no intercept, an L1 ball for each of the ten classes. The k-th step is η/√k times the "
        f"mean gradient; η goes up or down from 1 by factors of {FACTOR:g} as long as that lowers the loss "
        "at the end. The minimum f* is that of 300 steps of accelerated projected gradient in NumPy.",
        verdicts=_verdicts(found, radii, kinds),
        pictures=[_picture(found, radius, kinds) for radius in (radii[0], radii[-1])[-len(radii) :]],
        tables=[_table(found)],
    )


def images(sets: Sets) -> Chunk:
    """The first images of MNIST."""
    folder = sets.path("mnist/train-images-idx3-ubyte.gz").parents[1]
    return digits(folder, IMAGES, 1)[0]


def generated(rows: int = 30, features: int = 30, on: int = 8, classes: int = 3) -> Chunk:
    """Rows that a dense linear model tells apart."""
    draw = np.random.default_rng(0)
    truth = draw.normal(size=(features, classes))
    chosen = [draw.permutation(features)[:on] for _ in range(rows)]
    labels = [float(np.argmax(truth[one].sum(axis=0))) for one in chosen]
    found = [(label, {int(j): 1.0 for j in one}) for label, one in zip(labels, chosen, strict=True)]
    return Chunk.of_rows(found)


def _verdicts(found: Found, radii: Sequence[float], kinds: Sequence[Kind]) -> list[Verdict]:
    verdicts = []
    for kind in kinds:
        ends = [[found[radius, kind.name, rule].gaps[-1] for rule in RULES] for radius in radii]
        ahead = [radius for radius, (one, other) in zip(radii, ends, strict=True) if one < other]
        shown = "; ".join(f"radius {r:g}: {a:.3f} and {b:.3f}" for r, (a, b) in zip(radii, ends, strict=True))
        behind = " and ".join(f"{radius:g}" for radius in radii if radius not in ahead)
        why = f"exponentiated gradient is ahead at radius {behind}, where the solution has fewer weights"
        claim = f"f − f* is smaller for the projection after {kind.name}"
        verdicts.append(Verdict(claim, "smaller", shown, not behind, why if behind else ""))
    shares = [found[radius, kinds[0].name, rule].nonzero for rule in RULES for radius in radii[:1]]
    verdicts.append(
        Verdict(
            "the projection leaves fewer weights",
            "sparse against dense",
            f"{100 * shares[0]:.1f} % and {100 * shares[1]:.1f} % of all weights at radius {radii[0]:g}",
            shares[0] < shares[1],
        )
    )
    return verdicts


def _picture(found: Found, radius: float, kinds: Sequence[Kind]) -> Picture:
    series = [
        Series(f"{rule.split()[0]}, {kind.rows}", one.steps, one.gaps)
        for kind in kinds
        for rule in RULES
        for one in [found[radius, kind.name, rule]]
    ]
    svg = chart(
        f"Distance from the minimum, radius {radius:g}",
        "f - f* after each gradient, for both rules.",
        Axis("gradients", log=True, whole=True),
        Axis("f − f*", log=True),
        series,
    )
    return Picture(svg, f"f − f* against the number of gradients, in a ball of radius {radius:g}")


def _table(found: Found) -> str:
    heads = ("radius", "gradients", "rule", "best η", "f − f*", "weights in %")
    rows = [
        (f"{radius:g}", kind, rule, f"{one.eta:g}", f"{one.gaps[-1]:.4f}", f"{100 * one.nonzero:.1f}")
        for (radius, kind, rule), one in found.items()
    ]
    return table(heads, rows)
