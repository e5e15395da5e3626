"""Sparsity while learning: shares of features with a weight along the stream (Singer, slide 33)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.loads import FEATURES, TRAIN, rcv1like_chunks
from benchmarks.tasks import split_rows
from experiments.papers.generated import few_words
from experiments.papers.page import Page, Picture, Verdict, table
from experiments.papers.sets import Parts, Sets
from experiments.papers.sweeps import side_by_side
from thresher.data import Chunk, concat
from thresher.drawing import Axis, Panel, Series, panels
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe

POINTS, FEW, MORE, GIVEN_UP, BATCHES = 40, 0.05, 0.1, 0.01, (10, 100)
CHOSEN_ON = 100_000
"""rows of the generated load on which parameters are chosen"""
BALL, RDA, FTRL = "projection onto the L1 ball", "AdaGrad-RDA", "FTRL-Proximal"
Grid = dict[str, Sequence[float]]
"""What is tried of each parameter"""
GRIDS: dict[str, Grid] = {
    BALL: {"radius": (100, 300, 1000, 2000, 4000, 8000), "eta0": (8, 32, 128, 512, 2048, 8192)},
    RDA: {
        "eta": (0.3, 1.0, 3.0, 10.0, 30.0),
        "l1": (1e-6, 3e-6, 1e-5, 2e-5, 3e-5, 5e-5, 7e-5, 1e-4, 2e-4, 4e-4),
    },
    FTRL: {"alpha": (1.0, 3.0, 10.0, 30.0, 100.0), "l1": (0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0)},
}
RULES = {
    BALL: [
        Recipe(f"l1-ball:radius={radius}", rate=f"inverse-sqrt:{eta}")
        for radius, eta in product(*GRIDS[BALL].values())
    ],
    RDA: [Recipe(f"adagrad-rda:eta={eta},l1={l1}") for eta, l1 in product(*GRIDS[RDA].values())],
    FTRL: [Recipe(f"ftrl:alpha={a},l1={l1}") for a, l1 in product(*GRIDS[FTRL].values())],
}
QUICK = {"AdaGrad-RDA": [Recipe(f"adagrad-rda:eta=1.0,l1={l1}") for l1 in (1e-3, 1e-2)]}


class Stream(NamedTuple):
    """A data set read once."""

    name: str
    rows: int
    features: int
    sample: Chunk
    """the rows that parameters are chosen on"""
    chunks: Callable[[], Iterable[Chunk]]


class Choice(NamedTuple):
    """The parameters of a rule: the sparsest that give up at most `GIVEN_UP` of the accuracy."""

    recipe: Recipe
    error: float
    """on held-out rows, and the lowest error of the rule there"""
    lowest: float
    with_few: float
    """the lowest error with weights for at most `FEW` of the features; NaN if there is no such model"""
    kept: int
    """weights of the chosen model"""
    number: int
    """its place in the list of recipes"""

    def edges(self, grid: Grid) -> list[str]:
        """The parameters of which the smallest or largest tried value was chosen."""
        values = list(product(*grid.values()))[self.number]
        return [
            name
            for (name, tried), value in zip(grid.items(), values, strict=True)
            if value in (tried[0], tried[-1])
        ]


class Point(NamedTuple):
    """A model after some rows."""

    rows: int
    of_seen: float
    """features with a weight, as a share of those seen so far"""
    of_all: float
    """the same, as a share of all features of the data"""


class Followed(NamedTuple):
    """What became of a rule along a stream."""

    choice: Choice
    points: list[Point]

    def late(self) -> list[Point]:
        """The points from the middle of the stream to its end."""
        return [point for point in self.points if 2 * point.rows >= self.points[-1].rows]

    def small(self) -> bool:
        """Whether both shares are at most `FEW` from the middle of the stream to its end."""
        return max(max(point.of_seen, point.of_all) for point in self.late()) <= FEW

    def rises(self) -> bool:
        """Whether the share of the seen features grows by more than `MORE` from the middle to the end."""
        late = self.late()
        return late[-1].of_seen > (1 + MORE) * late[0].of_seen


def choose(recipes: Sequence[Recipe], parts: Parts) -> Choice:
    """Choose on the test part of `parts`."""
    found = side_by_side(recipes, parts)
    lowest = min(one.error for one in found)
    fitting = [k for k, one in enumerate(found) if one.error <= lowest + GIVEN_UP]
    k = min(fitting, key=lambda k: found[k].nonzero)
    most = FEW * len(np.unique(parts.train.keys))
    with_few = min((one.error for one in found if one.nonzero <= most), default=float("nan"))
    return Choice(recipes[k], found[k].error, lowest, with_few, found[k].nonzero, k)


def followed(stream: Stream, choices: Sequence[Choice]) -> list[Followed]:
    """One pass, stopped at `POINTS` places in geometric progression."""
    lanes = ModelSet([choice.recipe for choice in choices])
    points: list[list[Point]] = [[] for _ in choices]
    stops = np.unique(np.geomspace(10, stream.rows, POINTS).astype(int)).tolist()
    for chunk in _cut(stream.chunks(), stops):
        lanes.learn(chunk)
        if lanes.examples in stops:
            for found, model in zip(points, lanes.models, strict=True):
                share = model.nonzero / lanes.lead.features_seen
                found.append(Point(lanes.examples, share, model.nonzero / stream.features))
    return [Followed(choice, found) for choice, found in zip(choices, points, strict=True)]


def _cut(chunks: Iterable[Chunk], stops: Sequence[int]) -> Iterator[Chunk]:
    """The same rows, with a new chunk after each of the `stops`."""
    before = 0
    for chunk in chunks:
        ends = [stop - before for stop in stops if before < stop < before + len(chunk)]
        for lo, hi in zip([0, *ends], [*ends, len(chunk)], strict=True):
            yield chunk.rows(lo, hi)
        before += len(chunk)


def streams(sets: Sets) -> list[Stream]:
    """RCV1 and a generated load of its published shape; quick: a small one of a few informative words."""

    def whole(name: str, rows: Chunk) -> Stream:
        return Stream(name, len(rows), len(np.unique(rows.keys)), rows, lambda: [rows])

    if sets.quick:
        return [whole("generated words", few_words(400, 0).train)]
    sample = concat(list(rcv1like_chunks(CHOSEN_ON)))
    return [
        whole("RCV1-CCAT", sets.rcv1().train),
        Stream("the generated load", TRAIN, FEATURES, sample, rcv1like_chunks),
    ]


def page(sets: Sets) -> Page:
    """Follow the shares on RCV1 and on a load of the published shape."""
    rules, given = QUICK if sets.quick else RULES, streams(sets)
    found = {}
    for stream in given:
        parts = Parts(*split_rows(stream.sample))
        choices = [choose(recipes, parts) for recipes in rules.values()]
        found[stream.name] = dict(zip(rules, followed(stream, choices), strict=True))
    notes = "" if sets.quick else NOTES + _batches(sets.rcv1().train) + _edges(found)
    return Page(
        title="Sparsity on the fly",
        source="Singer, *Efficient Algorithms for Learning Sparse Models from High Dimensional Data* "
        "(MLSS 2012), slide 33",
        claim="A model that is sparse while it learns needs memory for a few per cent of the features only: "
        "along the stream, the share of features with a weight falls to a few per cent and stays there, "
        "both of all features and of those seen so far. This is what is known here of the slide; which data, "
        "rule and settings it shows, and its exact numbers, were not at hand.",
        method="One pass, logistic loss, over "
        + " and over ".join(f"{one.name} ({one.rows:,} rows, {one.features:,} features)" for one in given)
        + ". The generated load has RCV1's published shape (`benchmarks/loads.py`). "
        "For each rule and stream, of the settings below the sparsest is taken whose error on held-out "
        "training rows is at most one percentage point above the rule's lowest. Every fifth training row is "
        f"held out; of the generated load, every fifth of the first {CHOSEN_ON:,}. "
        "Tried: "
        + "; ".join(f"{rule}: {_tried(grid)}" for rule, grid in GRIDS.items())
        + f". The rate of the projection is `inverse-sqrt`. *A few per cent* is at most {FEW:.0%} in the "
        "second half of the stream; *to stay there* is to grow by at most a tenth in this half, as a share "
        "of the features seen.",
        verdicts=[_verdict(rule, [found[stream.name][rule] for stream in given], given) for rule in rules],
        pictures=[_drawn(name, rules) for name, rules in found.items()],
        tables=[_table(name, rules) for name, rules in found.items()],
        notes=notes,
    )


NOTES = (
    "AdaGrad-RDA starts with all weights and drops them as its threshold, l1 times the number of rows, "
    "overtakes the sums of gradients. FTRL-Proximal compares these sums with a fixed l1: it starts with none "
    "and adds weights slowly for as long as it learns.\n\n"
    "The projection subtracts the same amount from all weights after each step, and each row moves all of "
    "its features again. A ball small enough to keep few weights also keeps them from growing. "
)


def _batches(rows: Chunk) -> str:
    """What steps on several rows change for the L1 ball."""
    parts, told = Parts(*split_rows(rows)), []
    features = len(np.unique(parts.train.keys))
    for batch in BATCHES:
        balls = [replace(one, batch=batch) for one in next(iter(RULES.values()))]
        choice = choose(balls, parts)
        told.append(
            f"{choice.kept / features:.0%} of the features for {choice.error:.1%} errors ({batch} rows)"
        )
    both = ", ".join(told)
    return f"Steps on several rows do not help: chosen in the same way on RCV1-CCAT, they keep {both}."


def _tried(grid: Grid) -> str:
    return ", ".join(f"{name} {', '.join(f'{value:g}' for value in tried)}" for name, tried in grid.items())


def _edges(found: dict[str, dict[str, Followed]]) -> str:
    """Which choices are at the edge of what was tried."""
    told = [
        f"{name}, {rule}: {' and '.join(edges)}"
        for name, rules in found.items()
        for rule, one in rules.items()
        if (edges := one.choice.edges(GRIDS[rule]))
    ]
    return f"\n\nChosen at the edge of what was tried: {'; '.join(told)}." if told else ""


def _verdict(rule: str, found: Sequence[Followed], given: Sequence[Stream]) -> Verdict:
    ours = []
    for stream, one in zip(given, found, strict=True):
        middle, last = one.late()[0], one.points[-1]
        ours.append(
            f"{stream.name}: {last.of_seen:.1%} of seen and {last.of_all:.1%} of all features "
            f"({middle.of_seen:.1%} of seen half-way)"
        )
    large, lost, growing = [], [], []
    for stream, one in zip(given, found, strict=True):
        if not one.small():
            large.append(stream.name)
            lost.append(f"{one.choice.with_few:.1%}")
        elif one.rises():
            growing.append(stream.name)
    why = []
    if large:
        why.append(
            f"not few on {' and '.join(large)}: of the settings tried, those with weights for at most "
            f"{FEW:.0%} of the features make at least {' and '.join(lost)} errors; see the notes"
        )
    if growing:
        why.append(f"few, but still growing at the end on {' and '.join(growing)}; see the notes")
    return Verdict(
        f"{rule}: both shares fall to a few per cent and stay there",
        "a few per cent of each",
        "; ".join(ours),
        not why,
        "; ".join(why),
    )


def _drawn(name: str, rules: dict[str, Followed]) -> Picture:
    def panel(title: str, share: Callable[[Point], float]) -> Panel:
        series = [
            Series(rule, [point.rows for point in one.points], [share(point) for point in one.points])
            for rule, one in rules.items()
        ]
        y = Axis("features with a weight", log=True, percent=True)
        return Panel(Axis("rows learned", log=True, whole=True), y, series, title)

    svg = panels(
        f"Features with a weight, along the stream: {name}",
        "Shares of the features with a weight, of those seen so far and of all.",
        [
            panel("share of the features seen so far", lambda point: point.of_seen),
            panel("share of all features", lambda point: point.of_all),
        ],
    )
    return Picture(svg, f"Shares of features with a weight against rows learned, {name}")


def _table(name: str, rules: dict[str, Followed]) -> str:
    """One stream; its places are the same for all rules."""
    places = [round(k) for k in np.linspace(0, len(next(iter(rules.values())).points) - 1, 4)][1:]
    rows: list[tuple[str, ...]] = []
    for rule, one in rules.items():
        shares = [f"{one.points[k].of_seen:.1%} / {one.points[k].of_all:.1%}" for k in places]
        errors = [f"{e:.2%}" for e in (one.choice.error, one.choice.lowest, one.choice.with_few)]
        made = one.choice.recipe
        chosen = f"`{made.rule}`" + (f", `{made.rate}`" if made.rate else "")
        rows.append((rule, chosen, *errors, *shares))
    after = [next(iter(rules.values())).points[k].rows for k in places]
    few = f"lowest with {FEW:.0%} of the weights"
    heads = (name, "chosen", "held-out error", "lowest", few, *(f"after {rows:,} rows" for rows in after))
    return table(heads, rows) + "\n\nThe last columns are shares of the seen and of all features."
