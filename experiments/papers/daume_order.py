"""Order of the rows, step size and batch size for SGD (Daumé, chapter 12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Parts, Sets
from thresher.data import Chunk, concat
from thresher.data.order import make_order
from thresher.data.source import MemorySource
from thresher.drawing import Axis, Panel, Series, panels
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe

ORDERS = {"sorted": "as-is", "permuted once": "once", "permuted every pass": "every"}
STEPS, BATCHES, PASSES, SEEDS = (0.01, 0.1, 1.0, 10.0), (1, 10), 5, range(10)
A_POINT = 0.01
SLOWER = 0.01
"""share by which a training loss is higher where learning is said to be slower"""


class Case(NamedTuple):
    """Figures of one data set with one order and one batch size: means over `SEEDS`."""

    data: str
    order: str
    batch: int
    errors: NDArray[np.float64]
    """(steps, passes): of the test rows, after each pass"""
    losses: NDArray[np.float64]
    """the same, mean loss of the training rows"""
    doubts: NDArray[np.float64]
    """the standard errors of `errors`; 0 if there is one seed"""
    constant: float
    """the test error if all rows are said to be of the larger class"""


def sorted_by_label(rows: Chunk) -> Chunk:
    """All negative rows, then all positive ones."""
    return concat([rows.take(rows.labels < 0), rows.take(rows.labels > 0)])


def by_pass(
    parts: Parts, order: str, batch: int, steps: Sequence[float], passes: int, seed: int
) -> NDArray[np.float64]:
    """Test error and training loss of SGD for each step size, after each pass: (2, steps, passes)."""
    lanes = ModelSet([Recipe("sgd", "logistic", f"inverse-sqrt:{step}", batch=batch) for step in steps])
    shuffled, found = make_order(order, seed), []
    for number in range(1, passes + 1):
        lanes.begin_pass(number)
        for chunk in shuffled.over(MemorySource([parts.train]), number).chunks():
            lanes.learn(chunk, again=number > 1)
        found.append([(_error(model, parts.test), _loss(model, parts.train)) for model in lanes.models])
    return np.transpose(found)


def _error(model: Any, test: Chunk) -> float:
    return float(np.mean((model.predict(test, "margin") > 0) != (test.labels > 0)))


def _loss(model: Any, train: Chunk) -> float:
    return float(np.logaddexp(0, -train.labels * model.predict(train, "margin")).mean())


def _cases(name: str, parts: Parts, steps: Sequence[float], passes: int, seeds: Sequence[int]) -> list[Case]:
    by_label = Parts(sorted_by_label(parts.train), parts.test)
    positive, cases = float(np.mean(parts.test.labels > 0)), []
    for batch in BATCHES:
        for label, order in ORDERS.items():
            tried = seeds if order != "as-is" else seeds[:1]
            found = [by_pass(by_label, order, batch, steps, passes, seed) for seed in tried]
            errors, losses = np.mean(found, axis=0)
            doubts = np.std(found, axis=0, ddof=min(1, len(found) - 1))[0] / np.sqrt(len(found))
            cases.append(Case(name, label, batch, errors, losses, doubts, min(positive, 1 - positive)))
    return cases


def page(sets: Sets) -> Page:
    """Three orders, each step size, two batch sizes."""
    if sets.quick:
        steps: tuple[float, ...] = STEPS[-1:]
        data = {"RCV1-CCAT": sets.rcv1()}
        cases = _cases("RCV1-CCAT", data["RCV1-CCAT"], steps, 1, [0])
    else:
        steps, acq = STEPS, (sets.read(f"reuters/acq_{part}.dat.gz") for part in ("train", "test"))
        data = {"acq": Parts(*acq), "RCV1-CCAT": sets.rcv1(), "books": sets.reviews("books")}
        cases = [case for name, parts in data.items() for case in _cases(name, parts, steps, PASSES, SEEDS)]
    sizes = [
        f"{len(train):,} rows of {name} to train and {len(test):,} to test"
        for name, (train, test) in data.items()
    ]
    return Page(
        title="Order of the rows and size of the steps",
        source="Daumé, *A Course in Machine Learning* (2012), chapter 12",
        claim="SGD needs its rows in random order. If they are sorted by label, it sees one class for a "
        "long time, forgets the other, and ends with weights that favour the class it saw last. The book "
        "warns of very bad things. One permutation for all passes converges, but more slowly than a new "
        "one in each; and SGD is sensitive to its step size, for which 0.01, 0.1 and 1 are typical.",
        method="SGD with logistic loss, steps of η₀/√k for step k with η₀ = 0.01, 0.1 and 1 as in the book, "
        "and 10, because rows of RCV1 have length 1. Each step takes "
        f"the summed gradient of 1 or 10 rows; {PASSES} passes. *Sorted* is all negative rows, then all "
        "positive ones, in every pass. *Permuted once* and *permuted every pass* are `--order once` and "
        f"`--order every`; their figures are means over {len(SEEDS)} seeds, ± a standard error. How far they "
        "have converged is judged by the logistic loss of the training rows, which SGD minimises; *more "
        f"slowly* means a loss that is more than {SLOWER:.0%} higher. The picture shows batches of "
        f"{BATCHES[0]}. There are {', '.join(sizes)}.",
        verdicts=_verdicts(cases, steps),
        pictures=[_picture(cases, steps)],
        tables=[_table(cases, steps)],
        notes="A sum of ten gradients is one step, so a batch of ten takes a tenth of the steps, each up to "
        "ten times as long.\n\n"
        "The loss measured while learning shows none of this: on sorted rows it is lower, since the next "
        "label is easy to guess ([the order of rows](../order.md)).",
    )


def _of(cases: Sequence[Case], order: str) -> list[Case]:
    return [case for case in cases if case.order == order]


def _verdicts(cases: Sequence[Case], steps: Sequence[float]) -> list[Verdict]:
    by_label, once, every = (np.array([case.errors for case in _of(cases, order)]) for order in ORDERS)
    best = by_label.min(axis=1) - np.minimum(once, every).min(axis=1)  # (sets x batches, passes)
    found = [
        Verdict(
            f"sorted rows give more errors than permuted ones, each with its best step size: after {after}",
            "very bad",
            f"in {(gaps > 0).sum()} of {gaps.size} pairs of data set and batch size, "
            f"by {100 * gaps.min():.1f} to {100 * gaps.max():.1f} points",
            bool((gaps > 0).all()),
        )
        for after, gaps in (("1 pass", best[:, 0]), (f"{best.shape[1]} passes", best[:, -1]))
    ]
    return found[:1] if best.shape[1] == 1 else [*found, _everywhere(cases, steps), _again(cases, steps)]


def _everywhere(cases: Sequence[Case], steps: Sequence[float]) -> Verdict:
    """Whether sorted rows are worse with each step size, good or bad, after the first pass and the last."""
    by_label, once, every = (
        np.array([case.errors[:, [0, -1]] for case in _of(cases, order)]) for order in ORDERS
    )
    constant = np.array([case.constant for case in _of(cases, "sorted")])[:, np.newaxis, np.newaxis]
    permuted = np.maximum(once, every)
    counts, worse = permuted < constant - A_POINT, by_label > permuted
    few = _named(cases, steps, counts & ~worse)
    better = [
        f"η₀ = {steps[k]:g} on {case.data} (batch {case.batch}) sorted rows reach {by_label[n, k, -1]:.2%}, "
        f"permuted ones {permuted[n, k, -1]:.2%} after the last pass"
        for n, case in enumerate(_of(cases, "sorted"))
        for k in range(len(steps))
        if by_label[n, k, -1] < permuted[n, k, -1] - A_POINT
    ]
    return Verdict(
        "the same with every step size with which permuted rows are better than a constant prediction, by "
        "more than a point",
        "very bad",
        f"in {(counts & worse).sum()} of {counts.sum()} settings. In {(~counts).sum()} others, the steps are "
        f"too small for permuted rows{''.join(f'; with {one}' for one in better)}",
        not few,
        f"not with {few}" if few else "",
    )


def _named(cases: Sequence[Case], steps: Sequence[float], chosen: NDArray[np.bool_]) -> str:
    """The settings of a mask (sets x batches, steps, ...)."""
    of = _of(cases, "sorted")
    places = dict.fromkeys((int(n), int(k)) for n, k, *_ in np.argwhere(chosen))
    return ", ".join(f"η₀ = {steps[k]:g} on {of[n].data} (batch {of[n].batch})" for n, k in places)


def _again(cases: Sequence[Case], steps: Sequence[float]) -> Verdict:
    """Whether permuting in every pass converges faster, after the last pass."""
    pairs = list(zip(_of(cases, "permuted once"), _of(cases, "permuted every pass"), strict=True))
    once, every = (np.array([pair[k].losses[:, -1] for pair in pairs]) for k in (0, 1))
    more, slower = once / every - 1, once > (1 + SLOWER) * every
    errors = np.array([one.errors[:, -1] - other.errors[:, -1] for one, other in pairs])
    holds = bool(np.mean(slower) >= 0.9)
    lower = {}
    for name in dict.fromkeys(one.data for one, _ in pairs):
        of = errors[[one.data == name for one, _ in pairs]]
        lower[name] = f"{(of < 0).sum()} of {of.size} on {name}"
    of_test = f"Permuted once, the test error is {100 * errors.mean():+.2f} points on average, but lower in "
    of_test += ", ".join(lower.values())
    return Verdict(
        "permuting once converges more slowly than permuting in every pass, in nine of ten settings",
        "more slowly",
        f"in {slower.sum()} of {slower.size}: the training loss is higher in {(more > 0).sum()}, by "
        f"{np.median(more):.2%} in the median and {np.max(more):.0%} at most",
        holds,
        "" if holds else f"{(~slower).sum()} losses are no more than {SLOWER:.0%} higher. {of_test}",
    )


def _picture(cases: Sequence[Case], steps: Sequence[float]) -> Picture:
    name = cases[0].data
    shown = []
    for k, step in enumerate(steps):
        series = [
            Series(
                case.order,
                list(range(1, case.errors.shape[1] + 1)),
                case.errors[k].tolist(),
                "both",
                low=(case.errors - case.doubts)[k].tolist(),
                high=(case.errors + case.doubts)[k].tolist(),
            )
            for case in cases
            if case.data == name and case.batch == BATCHES[0]
        ]
        x = Axis("passes" if step == steps[-1] else "", whole=True)
        shown.append(Panel(x, Axis("test error", percent=True, low=0, high=0.6), series, f"η₀ = {step:g}"))
    svg = panels(
        f"{name}: three orders of the rows, steps of η₀/√k on batches of {BATCHES[0]}",
        f"Test error of SGD on {name} after each pass for each step size, with rows sorted by label, "
        "permuted once and permuted in every pass, in batches of one row.",
        shown,
        height=210,
    )
    return Picture(svg, f"Test error against passes on {name}, for three orders and each step size")


def _table(cases: Sequence[Case], steps: Sequence[float]) -> str:
    rows = []
    for batch in BATCHES:
        for case in (one for one in cases if one.batch == batch):
            cells = [
                f"{100 * case.errors[k, n]:.2f}"
                + (f" ± {100 * case.doubts[k, n]:.2f}" if case.order != "sorted" else "")
                for n in (0, -1)
                for k in range(len(steps))
            ]
            rows.append((f"{case.data}, {case.order}", str(batch), *cells))
    passes = cases[0].errors.shape[1]
    heads = [f"η₀ = {step:g}, {after}" for after in ("1 pass", f"{passes} passes") for step in steps]
    return table(("test error in %", "batch", *heads), rows)
