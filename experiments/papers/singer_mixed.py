"""Mixed norms: recovered patterns, and error against group sparsity on images (Singer, slides 58 and 59)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from thresher import Model
from thresher.data import Chunk
from thresher.drawing import Axis, Panel, Series, panels

F64 = NDArray[np.float64]
NORMS = {"l1": "single", "l1/l2": "l2", "l1/linf": "linf"}
MIXED = tuple(NORMS)[1:]
NOISE, HELD_OUT, SEEDS = 1.0, 200, 5
DIGITS, IMAGES, FRAMES, IMAGE_PENALTIES = (0, 1, 3, 8), 20, 5, 30
SHOWN = 3
"""sequences in the picture, from the last"""
BUDGETS = (50, 100, 200)
"""numbers of elements"""


class Size(NamedTuple):
    """Of the generated regressions, and how they are solved."""

    rows: int
    features: int
    tasks: int
    shared: int
    """features with weights"""
    penalties: int
    passes: int


FULL, QUICK = Size(40, 60, 8, 8, 16, 60), Size(24, 24, 4, 4, 4, 8)


class Shared(NamedTuple):
    """Several regressions whose weights are in the same few rows."""

    X: F64
    Y: F64
    held_x: F64
    held_y: F64
    weights: F64
    """(features, tasks)"""


class Pattern(NamedTuple):
    """What a norm recovers."""

    weights: F64
    error: float
    """squared error of the refitted weights, as a share of their squares"""
    wrong_rows: int
    """rows with a weight that have none in truth"""
    missing: int
    """weights that are zero but not in truth"""


class Images(NamedTuple):
    """Similar images, and for each norm and penalty the number of elements and the mean squared error."""

    name: str
    curves: dict[str, list[tuple[int, float]]]
    refitted: dict[str, list[tuple[int, float]]]
    """the error with the same elements and no penalty"""


def shared(size: Size, seed: int) -> Shared:
    """Generate regressions."""
    draw = np.random.default_rng(seed)
    weights = np.zeros((size.features, size.tasks))
    chosen, each = draw.choice(size.features, size.shared, replace=False), (size.shared, size.tasks)
    weights[chosen] = draw.uniform(0.5, 1.5, each) * draw.choice([-1, 1], each)
    X, held_x = (draw.normal(size=(rows, size.features)) for rows in (size.rows, HELD_OUT))
    Y, held_y = (x @ weights + draw.normal(0, NOISE, (len(x), size.tasks)) for x in (X, held_x))
    return Shared(X, Y, held_x, held_y, weights)


def fitted(data: Chunk, features: int, norm: str, l1: float, rate: float, passes: int) -> F64:
    """The weights of FOBOS with a step on all rows in each pass."""
    assert data.targets is not None
    outputs = data.targets.shape[1]
    model = Model(
        f"fobos:l1={l1!r},group={NORMS[norm]}",
        "squared",
        rate=f"constant:{rate!r}",
        outputs=f"values:{outputs}",
        batch=len(data),
        intercept=False,
        store="direct",
    )
    for _ in range(passes):
        model.learn(data)
    keys, values = model.weights()
    weights = np.zeros((features, outputs))
    weights[keys.astype(int)] = values
    return weights


def penalties(X: F64, Y: F64, norm: str, count: int, least: float) -> list[float]:
    """From just below the one that leaves no weight down to `least` times it."""
    pull = 2 * np.abs(X.T @ Y)
    most = {
        "l1": pull.max(),
        "l1/l2": np.sqrt((pull**2).sum(axis=1)).max(),
        "l1/linf": pull.sum(axis=1).max(),
    }
    found: list[float] = (most[norm] * np.geomspace(0.9, least, count)).tolist()
    return found


def chunk_of(X: F64, Y: F64) -> Chunk:
    """Rows without their zeros."""
    row, column = np.nonzero(X)
    return Chunk.from_csr(np.searchsorted(row, np.arange(len(X) + 1)), column, X[row, column], Y)


def recovered(of: Shared, norm: str, size: Size) -> Pattern:
    """The pattern of the penalty that is best after a refit without one, judged on held-out rows."""
    data, rate = chunk_of(of.X, of.Y), 0.5 / float(np.linalg.norm(of.X, 2)) ** 2
    found = []
    for l1 in penalties(of.X, of.Y, norm, size.penalties, 0.03):
        weights = fitted(data, size.features, norm, l1, rate, size.passes)
        again = _refitted(of, weights != 0)
        found.append((float(((of.held_x @ again - of.held_y) ** 2).mean()), weights, again))
    _, weights, again = min(found, key=lambda one: one[0])
    there, true = weights != 0, of.weights != 0
    wrong = int(np.count_nonzero(there.any(axis=1) & ~true.any(axis=1)))
    error = float(((again - of.weights) ** 2).sum() / (of.weights**2).sum())
    return Pattern(weights, error, wrong, int(np.count_nonzero(true & ~there)))


def _refitted(of: Shared, there: NDArray[np.bool_]) -> F64:
    """Least squares with the chosen weights only."""
    found = np.zeros(there.shape)
    for task, chosen in enumerate(there.T):
        found[chosen, task] = np.linalg.lstsq(of.X[:, chosen], of.Y[:, task], rcond=None)[0]
    return found


def haar(side: int) -> F64:
    """Orthonormal Haar wavelets of a line of `side` pixels, a power of two; one in each row."""
    found = np.ones((1, 1))
    while len(found) < side:
        found = np.vstack([np.kron(found, [1, 1]), np.kron(np.eye(len(found)), [1, -1])]) / np.sqrt(2)
    return found


def compressed(name: str, images: F64, count: int) -> Images:
    """Compress images (n, side, side) with each norm and many penalties."""
    side, Y = images.shape[1], images.reshape(len(images), -1).T
    wavelets: F64 = np.kron(haar(side), haar(side)).T.astype(np.float64)
    data, exact = chunk_of(wavelets, Y), wavelets.T @ Y
    curves: dict[str, list[tuple[int, float]]] = {norm: [] for norm in NORMS}
    refitted: dict[str, list[tuple[int, float]]] = {norm: [] for norm in NORMS}
    for norm in NORMS:
        for l1 in penalties(wavelets, Y, norm, count, 0.001):
            weights = fitted(data, side * side, norm, l1, 0.5, 1)  # orthonormal: one step is exact
            there = (weights != 0).any(axis=1)
            elements = int(np.count_nonzero(there))
            curves[norm].append((elements, float(((exact - weights) ** 2).mean())))
            refitted[norm].append((elements, float((exact[~there] ** 2).sum()) / exact.size))
    return Images(name, curves, refitted)


def lowest(curve: Sequence[tuple[int, float]], budget: int) -> float:
    """The lowest error with at most this many elements."""
    return min(error for elements, error in curve if elements <= budget)


def sequences(sets: Sets) -> dict[str, F64]:
    """Similar images: digits of one class, and one digit that moves; quick: a moving square."""
    if sets.quick:
        square = np.zeros((8, 8))
        square[2:5, 1:5] = [[1.0, 0.5, 0.2, 0.9]] * 3
        return {"a moving square": np.stack([np.roll(square, k, axis=1) for k in range(4)])}
    pixels, labels = sets.mnist()
    padded = np.pad(pixels[:2000] / 255.0, ((0, 0), (2, 2), (2, 2)))
    found = {f"{IMAGES} images of {digit}": padded[labels[:2000] == digit][:IMAGES] for digit in DIGITS}
    one = padded[labels[:2000] == DIGITS[2]][0]
    found["a moving 3"] = np.stack([np.roll(one, k - FRAMES // 2, axis=1) for k in range(FRAMES)])
    return found


def page(sets: Sets) -> Page:
    """Patterns of generated regressions, and wavelets of images."""
    size, seeds = (QUICK, 1) if sets.quick else (FULL, SEEDS)
    problems = [shared(size, seed) for seed in range(seeds)]
    patterns = {norm: [recovered(of, norm, size) for of in problems] for norm in NORMS}
    images = [
        compressed(name, found, 12 if sets.quick else IMAGE_PENALTIES)
        for name, found in sequences(sets).items()
    ]
    budgets = (8, 16) if sets.quick else BUDGETS
    return Page(
        title="Mixed norms",
        source="Singer (MLSS 2012), slides 58 and 59; Duchi and Singer (JMLR 2009)",
        claim="A mixed norm takes the weights of a feature for all outputs together. If outputs share "
        "features, l1/l2 and l1/linf recover the shared rows where l1 finds a scattered pattern, and similar "
        "images need fewer elements for the same error.",
        method="FOBOS (`group=single`, `l2` and `linf`), squared loss, a step on all rows in each pass. "
        f"Patterns: {FULL.tasks} regressions of {FULL.rows} rows and {FULL.features} features, of which "
        f"{FULL.shared} have weights, the same for all; noise of standard deviation {NOISE:g}; {FULL.passes} "
        f"passes. Of {FULL.penalties} penalties, the one is taken whose weights, refitted without a penalty, "
        f"have the lowest error on {HELD_OUT} held-out rows; means of {SEEDS} generated sets. "
        f"Images: MNIST, {IMAGES} training images of one class, or {FRAMES} frames of one digit that moves a "
        "pixel at a time, 32 x 32 pixels with a margin, in Haar wavelets; "
        f"{IMAGE_PENALTIES} penalties. An element counts if any image uses it. The wavelets are "
        "orthonormal, so one step finds the optimum.",
        verdicts=_verdicts(patterns, images, budgets),
        pictures=[_patterns(problems[0], patterns), _curves(images)],
        tables=[_found(patterns), _errors(images, budgets)],
        notes="The errors of the images include the shrinkage of the weights. With the same elements and no "
        "penalty on them (*refitted*), the norms are close to each other: what a mixed norm saves on these "
        "images is mostly shrinkage, not elements.",
    )


def _verdicts(
    patterns: dict[str, list[Pattern]], images: Sequence[Images], budgets: Sequence[int]
) -> list[Verdict]:
    def mean(norm: str, field: str) -> float:
        return float(np.mean([getattr(one, field) for one in patterns[norm]]))

    verdicts = []
    for norm in MIXED:
        wrong, plain = mean(norm, "wrong_rows"), mean("l1", "wrong_rows")
        holds = wrong < plain and mean(norm, "missing") < mean("l1", "missing")
        verdicts.append(
            Verdict(
                f"{norm} recovers the shared rows better than l1",
                "recovers them",
                f"{mean(norm, 'missing'):.1f} weights missing and {wrong:.1f} wrong rows; l1: "
                f"{mean('l1', 'missing'):.1f} and {plain:.1f}",
                holds,
                "" if holds else "see the table",
            )
        )
    for norm in MIXED:
        pairs = [
            (lowest(one.curves[norm], budget), lowest(one.curves["l1"], budget))
            for one in images
            for budget in budgets
        ]
        better = sum(ours < plain for ours, plain in pairs)
        shares = [ours / plain for ours, plain in pairs]
        verdicts.append(
            Verdict(
                f"{norm} has a lower MSE than l1 with as many elements",
                "lower",
                f"in {better} of {len(pairs)} cases: {min(shares):.0%} to {max(shares):.0%} of that of l1",
                better == len(pairs),
                "" if better == len(pairs) else "see the table",
            )
        )
    return verdicts


def _patterns(of: Shared, patterns: dict[str, list[Pattern]]) -> Picture:
    shown = {"truth": of.weights, **{norm: found[0].weights for norm, found in patterns.items()}}
    drawn = []
    for name, weights in shown.items():
        feature, task = np.nonzero(weights)
        dots = Series("", (feature + 1).tolist(), (task + 1).tolist(), "dots", colour=1)
        x = Axis("feature" if name == MIXED[-1] else "", low=0, high=len(of.weights), whole=True)
        drawn.append(Panel(x, Axis("regression", low=0, high=of.weights.shape[1], whole=True), [dots], name))
    text = "Weights that are not zero in truth and with each norm, one dot for each."
    return Picture(panels("Recovered patterns", text, drawn, height=200), text[:-1])


def _curves(images: Sequence[Images]) -> Picture:
    drawn = [
        Panel(
            Axis("elements used by any image", whole=True, low=0),
            Axis("MSE of a pixel", low=0),
            [
                Series(norm, [elements for elements, _ in curve], [error for _, error in curve])
                for norm, curve in one.curves.items()
            ],
            one.name,
        )
        for one in images[-SHOWN:]
    ]
    text = "Mean squared error against the number of elements, by norm."
    return Picture(panels("Error against group sparsity", text, drawn, height=270), text[:-1])


def _found(patterns: dict[str, list[Pattern]]) -> str:
    def mean(values: Sequence[Any], digits: int) -> str:
        return f"{np.mean(values):.{digits}f}"

    rows = [
        (
            norm,
            mean([one.missing for one in found], 1),
            mean([one.wrong_rows for one in found], 1),
            mean([np.count_nonzero(one.weights) for one in found], 0),
            mean([one.error for one in found], 3),
        )
        for norm, found in patterns.items()
    ]
    return table(("pattern", "weights missing", "wrong rows", "weights", "squared error, refitted"), rows)


def _errors(images: Sequence[Images], budgets: Sequence[int]) -> str:
    rows = [
        (
            f"{one.name}, at most {budget} elements",
            *(f"{lowest(one.curves[norm], budget):.4f}" for norm in NORMS),
            *(f"{lowest(one.refitted[norm], budget):.4f}" for norm in NORMS),
        )
        for one in images
        for budget in budgets
    ]
    return table(("MSE of a pixel", *NORMS, *(f"{norm}, refitted" for norm in NORMS)), rows)
