"""Descent in the L1 ball against exponentiated gradients on MNIST (Singer, slide 32)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Sets
from experiments.papers.softmax_ball import Optimum, Problem
from thresher import Model
from thresher.data import Chunk
from thresher.drawing import Axis, Panel, Series, panels

PIXELS, CLASSES, PAIRS, HASHED = 784, 10, 40_000, 25_000
BALL, EG = "L1 ball", "EG"
FEW = 0.1
RADII = (5.0, 10.0, 20.0, 40.0)
ALL, SOME = "deterministic", "stochastic"


class Plan(NamedTuple):
    """Sizes and what is tried."""

    rows: int
    gradients: int
    steps: int
    batch: int
    """rows of a stochastic step"""
    ball: Sequence[float]
    eg: Sequence[float]
    certain: float
    """duality gap at which the optimum is found"""


FULL = Plan(800, 20, 400, 10, (8, 16, 32, 64, 128, 256), (3, 6, 12, 25, 50, 100), 2e-4)
QUICK = Plan(60, 4, 12, 10, (8,), (6,), 1e-3)
MOST = 3000
"""steps to the optimum"""


class Course(NamedTuple):
    """A run: objective above its minimum after each gradient, or after each pass of stochastic steps."""

    steps: list[int]
    gaps: list[float]
    nonzero: int
    rate: str
    at_edge: bool = False
    """whether its constant is the smallest or the largest of those tried"""


class Compared(NamedTuple):
    """Both rules on one problem."""

    name: str
    radius: float
    optimum: Optimum
    held_out: float
    """error on held-out images at the optimum"""
    weights: int
    length: float
    """mean number of features of an image"""
    courses: dict[str, dict[str, Course]]
    """by setting and rule"""

    def ahead(self, setting: str) -> bool:
        """Whether the L1 ball comes closer."""
        return self.leads(setting)[-1]

    def leads(self, setting: str) -> list[bool]:
        """The same after each gradient or pass."""
        found = self.courses[setting]
        return [ours < theirs for ours, theirs in zip(found[BALL].gaps, found[EG].gaps, strict=True)]

    def changes(self, setting: str) -> list[int]:
        """Numbers of steps at which the other rule is ahead for the first time since the last change."""
        leads, steps = self.leads(setting), self.courses[setting][BALL].steps
        return [steps[k] for k in range(1, len(leads)) if leads[k] != leads[k - 1]]

    def shares(self, rule: str) -> dict[str, float]:
        """By setting, the share of the weights that are not zero."""
        return {setting: found[rule].nonzero / self.weights for setting, found in self.courses.items()}


def engineered(images: NDArray[np.uint8], digits: NDArray[np.uint8], seed: int = 0) -> Chunk:
    """Products of random pairs of pixels, black or white, hashed to `HASHED` features."""
    draw = np.random.default_rng(seed)
    pairs, keys = draw.integers(0, PIXELS, (2, PAIRS)), draw.integers(0, HASHED, PAIRS)
    on = images.reshape(len(images), -1) > 127
    row, pair = np.nonzero(on[:, pairs[0]] & on[:, pairs[1]])
    starts = np.searchsorted(row, np.arange(len(images) + 1))
    return Chunk.from_csr(starts, keys[pair], np.ones(len(pair)), digits + 1.0)


def pixels(images: NDArray[np.uint8], digits: NDArray[np.uint8]) -> Chunk:
    """Pixels, black or white."""
    row, column = np.nonzero(images.reshape(len(images), -1) > 127)
    starts = np.searchsorted(row, np.arange(len(images) + 1))
    return Chunk.from_csr(starts, column, np.ones(len(row)), digits + 1.0)


def run(problem: Problem, optimum: Optimum, rule: str, rate: str, batch: int, steps: int) -> Course:
    """Learn for this many steps; look after each gradient, or after each pass."""
    model = Model(
        rule, "softmax", rate=rate, outputs=f"classes:{problem.classes}", batch=batch, intercept=False
    )
    rows = len(problem.rows)
    a_pass = max(rows // batch, 1)
    taken, gaps = [], []
    for done in range(a_pass, steps + 1, a_pass):
        model.learn(problem.rows, 0, rows)
        keys, values = model.weights()
        W = np.zeros((problem.features, problem.classes))
        W[keys.astype(int)] = values
        taken.append(done)
        gaps.append(problem.value(W) - optimum.value)
    return Course(taken, gaps, int(np.count_nonzero(W)), rate)


def compared(name: str, parts: tuple[Problem, Problem], radii: Sequence[float], plan: Plan) -> Compared:
    """Choose the radius by the loss of its optimum on held-out images, and run both rules."""
    problem, held = parts
    optima = {radius: problem.minimised(radius, MOST, plan.certain) for radius in radii}
    radius = min(radii, key=lambda one: held.value(optima[one].weights))
    optimum = optima[radius]
    rules = {
        BALL: (f"l1-ball:radius={radius!r}", 1 / problem.curvature, plan.ball),
        EG: (f"eg:norm={radius!r},features={problem.features}", 1 / radius, plan.eg),
    }
    settings = ((ALL, plan.rows, plan.gradients), (SOME, plan.batch, plan.steps))
    courses = {
        setting: {
            rule: best_of(problem, optimum, given, setting, (batch, steps)) for rule, given in rules.items()
        }
        for setting, batch, steps in settings
    }
    wrong = held.probabilities(optimum.weights).argmax(axis=1) != held.rows.labels.astype(int) - 1
    weights = problem.classes * len(np.unique(problem.rows.keys))
    length = len(problem.rows.keys) / len(problem.rows)
    return Compared(name, radius, optimum, float(wrong.mean()), weights, length, courses)


def best_of(
    problem: Problem,
    optimum: Optimum,
    given: tuple[str, float, Sequence[float]],
    setting: str,
    size: tuple[int, int],
) -> Course:
    """The run with the lowest end, of all rates; `given` is a rule, a unit and the constants of its rates.

    `size` are the rows of a step, and the number of steps.
    """
    (spec, unit, constants), (batch, steps) = given, size
    schedules = ("constant",) if setting == ALL else ("constant", "inverse-sqrt")
    share = 1.0 if setting == ALL else 0.25
    tried = []
    for schedule, c in product(schedules, constants):
        rate = f"{schedule}:{c * unit / batch * (share if schedule == 'constant' else 1.0)!r}"
        course = run(problem, optimum, spec, rate, batch, steps)
        tried.append(course._replace(at_edge=c in (constants[0], constants[-1])))
    return min(tried, key=lambda one: one.gaps[-1])


def _compared(sets: Sets) -> list[Compared]:
    plan = QUICK if sets.quick else FULL
    if sets.quick:
        draw = np.random.default_rng(0)
        digits = np.arange(2 * plan.rows, dtype=np.uint8) % 3
        images = np.zeros((len(digits), PIXELS), np.uint8)
        for image, digit in zip(images, digits, strict=True):
            image[draw.choice(12, 3, replace=False)] = image[12 + digit * 4 + draw.integers(0, 4)] = 255
        given, classes = {"generated": (pixels, 24)}, 3
    else:
        images, digits = sets.mnist()
        given, classes = {"pixels": (pixels, PIXELS), "products": (engineered, HASHED)}, CLASSES
    cuts = slice(0, plan.rows), slice(plan.rows, 2 * plan.rows)
    found = []
    for name, (made, features) in given.items():
        parts = [Problem(made(images[cut], digits[cut]), features, classes) for cut in cuts]
        found.append(compared(name, (parts[0], parts[1]), RADII[:1] if sets.quick else RADII, plan))
    return found


def page(sets: Sets) -> Page:
    """Pixels, and products of pixels."""
    found = _compared(sets)
    return Page(
        title="Descent in the L1 ball against exponentiated gradients",
        source="Singer (MLSS 2012), slide 32; Duchi, Shalev-Shwartz, Singer and Chandra (ICML 2008)",
        claim="Two ways to keep the L1 norm of the weights below a radius: gradient steps with a projection "
        "onto the L1 ball, and exponentiated gradients (EG), whose regret grows with the logarithm of the "
        "number of features. The ICML paper reports that projections do better online, with sparse weights.",
        method=f"Softmax regression on {FULL.rows} training images of MNIST, black or white; each class has "
        f"its own ball. *Pixels* are the {PIXELS} pixels; *products* are {PAIRS:,} products of random pairs "
        f"of pixels, hashed to {HASHED:,} features. f* is the lowest loss in the ball, found by accelerated "
        f"projected gradients to a duality gap of at most {FULL.certain:g}, so it is certain to within that. "
        f"The radius is the one of {', '.join(f'{radius:g}' for radius in RADII)} whose optimum has the "
        f"lowest loss on the next {FULL.rows} images. "
        f"*Deterministic*: `l1-ball` and `eg` with {FULL.gradients} gradients of all rows; *stochastic*: "
        f"{FULL.steps} steps on {FULL.batch} rows each, in file order. Each has the rate with the lowest f "
        f"at the end: `constant` for all rows, `constant` and `inverse-sqrt` for few, {len(FULL.ball)} rates "
        f"each, spread over a factor of {FULL.ball[-1] / FULL.ball[0]:g}.",
        verdicts=_verdicts(found, sets.quick),
        pictures=[_drawn(found)],
        tables=[_table(found)],
        notes="The bounds say when to expect what: that of gradient descent grows with the length of a row, "
        "that of EG with its largest value and the logarithm of the number of features. An image has "
        + ", but ".join(f"{one.length:.0f} {one.name}" for one in found)
        + ", on average. The steps leave more weights than the optimum has, because each of "
        "them moves all features of its rows.",
    )


def _verdicts(found: Sequence[Compared], quick: bool) -> list[Verdict]:
    closer = [] if quick else [_closer(found, setting) for setting in (ALL, SOME)]
    told = "; ".join(
        f"{one.name}, {setting}: {share:.0%} of the weights, EG {one.shares(EG)[setting]:.0%}"
        for one in found
        for setting, share in one.shares(BALL).items()
    )
    return [*closer, _zeros(found, told), *([] if quick else [_few(found, told)])]


def _closer(found: Sequence[Compared], setting: str) -> Verdict:
    def gaps(one: Compared) -> str:
        ours, theirs = (one.courses[setting][rule].gaps[-1] for rule in (BALL, EG))
        changes = " and ".join(map(str, one.changes(setting)))
        what = f"{'gradient' if setting == ALL else 'step'} {changes} of {one.courses[setting][EG].steps[-1]}"
        return f"{one.name}: f - f* {ours:.3f}, EG {theirs:.3f}" + (
            f" (the lead changes at {what})" if changes else ""
        )

    ahead = [one.name for one in found if one.ahead(setting)]
    holds = len(ahead) == len(found)
    return Verdict(
        f"{setting}: projections onto the L1 ball get closer to the optimum than EG",
        "drawn for both; projections do better online",
        "; ".join(gaps(one) for one in found),
        holds,
        ""
        if holds
        else f"holds on {' and '.join(ahead) or 'neither'}, with the best rate of each; see the notes",
    )


def _zeros(found: Sequence[Compared], told: str) -> Verdict:
    """Over all runs, those with all rows and those with few."""
    none = [
        f"{one.name}, {setting}" for one in found for setting, share in one.shares(BALL).items() if share == 1
    ]
    some = [
        f"{one.name}, {setting}" for one in found for setting, share in one.shares(EG).items() if share < 1
    ]
    why = [
        *([f"no zeros in the L1 ball: {' and '.join(none)}"] if none else []),
        *([f"zeros of EG: {' and '.join(some)}"] if some else []),
    ]
    return Verdict(
        "projections onto the L1 ball leave zeros, EG leaves none",
        "sparse against dense",
        told,
        not why,
        "; ".join(why),
    )


def _few(found: Sequence[Compared], told: str) -> Verdict:
    few = all(share <= FEW for one in found for share in one.shares(BALL).values())
    least = ", ".join(f"{one.name} {_share(one):.1%}" for one in found)
    why = f"the optimum itself has {least}; the steps have not come that far"
    claim = f"at most {FEW:.0%} of the weights in the L1 ball are not zero"
    return Verdict(claim, "a high degree of sparsity", told, few, "" if few else why)


def _share(one: Compared) -> float:
    """Share of the weights that the optimum has."""
    return int(np.count_nonzero(one.optimum.weights)) / one.weights


def _drawn(found: Sequence[Compared]) -> Picture:
    def panel(one: Compared, setting: str) -> Panel:
        series = [
            Series(rule, course.steps, course.gaps, "both") for rule, course in one.courses[setting].items()
        ]
        x = Axis("gradients of all rows" if setting == ALL else "steps", whole=True, low=0)
        return Panel(x, Axis("f - f*", log=True), series, f"{one.name}, {setting}")

    text = "Loss above the optimum of descent in the L1 ball and of EG, deterministic and stochastic."
    shown = [panel(one, setting) for one in found for setting in (ALL, SOME)]
    return Picture(panels("Loss above the optimum on MNIST", text, shown, height=270), text[:-1])


def _table(found: Sequence[Compared]) -> str:
    rows = [
        (
            f"{one.name}, {setting}, {rule}",
            f"{one.radius:g}",
            f"{course.gaps[-1]:.3f}",
            f"`{course.rate.partition(':')[0]}`" + (" (edge)" if course.at_edge else ""),
            f"{course.nonzero:,} of {one.weights:,}",
            f"{one.optimum.value:.4f}",
            f"{one.optimum.gap:.4f}",
            f"{one.held_out:.1%}",
        )
        for one in found
        for setting, rules in one.courses.items()
        for rule, course in rules.items()
    ]
    heads = ("", "radius", "f - f* at the end", "rate", "non-zero weights", "f*", "duality gap")
    edge = "\n\n(edge): the smallest or the largest rate tried." if _at_edge(found) else ""
    return table((*heads, "held-out error at f*"), rows) + edge


def _at_edge(found: Sequence[Compared]) -> bool:
    return any(course.at_edge for one in found for rules in one.courses.values() for course in rules.values())
