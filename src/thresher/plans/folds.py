"""Folds: for each fold of the rows, models that learn all other rows and are evaluated on it.

The result for each penalty is a mean over the folds, with a standard error.

Each fold has its own index. The first idea was one index for all folds, with the resolved rows compacted for
each. But looking up the rows of a fold again costs little compared with learning: 10 folds of 16 penalties on
RCV1-CCAT take 0.38 s with `ftrl`, of which the lookup is 0.045 s and leaving out rows 0.027 s (1.5 s with
`ft-ftrl`, with the same overhead). And folds cannot share everything: batches end at different rows, extreme
values and divergence differ, and scales and admission must not count the rows of the fold. An index takes
about 24 bytes per feature and fold; the state of 16 lanes takes 128 or more. One row of each run of K goes to
each fold: this needs no extra pass, works with sorted labels, and makes the folds equally large (to within
one row).

The standard error of a figure is over folds; `1se` uses that of paired differences between penalties on the
same folds, as `path` does on the same rows: a fold that is hard for all penalties says nothing about which to
choose.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from thresher.data.chunk import Chunk, concat
from thresher.data.errors import DataError, first_few
from thresher.data.layout import grouped_by
from thresher.learning.diagnostics.findings import Finding, no_groups
from thresher.learning.files.choice import LOSS, Point, criterion_of
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet, Share
from thresher.learning.model.recipe import Recipe, penalty_field
from thresher.learning.training.holdout import counts_of, difference
from thresher.learning.training.progress import Figures
from thresher.learning.training.scores import Scores
from thresher.learning.training.shares import Rows, folds_of
from thresher.options.messages import mention
from thresher.plans.penalties import penalty_in

_MOST_MODELS = 4096
PIECE = 1 << 17
"""Nonzeros evaluated at a time: each of many models reads them in one call."""


class Folds(Share):
    """For each of `count` folds, a part that learns all rows outside the fold.

    Each run of `count` rows of a pass has one row in each fold; their order is drawn with the `seed`. If rows
    have groups, each group is in one fold, which is drawn. No row of the fold is counted, or used for scaling
    or admission, so each fold has a feed and an index of its own. With `whole`, one more part learns all
    rows.

    >>> models = ModelSet([Recipe("ftrl", l1=0.1)], Folds(2))
    >>> models.learn(Chunk.of_rows([(1.0, {7: 2.0}), (-1.0, {8: 1.0}), (1.0, {9: 2.0})]))
    >>> [model.weights()[0].tolist() for model in models.models]
    [[8], [7, 9]]
    """

    deals = True

    def __init__(self, count: int, seed: int = 0, *, whole: bool = False) -> None:
        self.count, self.seed, self.whole = count, seed, whole
        self.parts, self.recorded = count + whole, slice(count, None)

    def dealt(self, chunk: Chunk, first: int) -> Callable[[int], Chunk]:
        """The rows outside each fold."""
        folds = self.folds_of(chunk, first)
        return lambda part: chunk.take(folds != part) if part < self.count else chunk

    def folds_of(self, chunk: Chunk, first: int) -> Rows:
        """The fold of each row (n,) of `chunk`, whose first row has the number `first`."""
        return folds_of(first, len(chunk), self.count, self.seed, chunk.groups)

    def where(self, part: int) -> str:
        """Which rows a part learns, in words."""
        return f"without fold {part + 1}, " if part < self.count else "on all rows, "


class FoldScores:
    """Figures of each recipe in each fold, on the rows of the fold, from the chunks of one pass.

    `DataError` if there are fewer rows than folds.
    """

    def __init__(self, models: ModelSet, folds: Folds, chunks: Iterable[Chunk], judge: str = LOSS) -> None:
        dropped, head, rows = models.dropped, models.recipe.objective, 0
        self._called = partial(head.named, words=models.lead.classes)
        parts = models.parts[: folds.count]
        scores = [Scores({k: p.models[k] for k in p.alive if k not in dropped}, (), judge) for p in parts]
        waiting, sizes = [list[Chunk]() for _ in parts], np.zeros(folds.count, np.int64)
        self._classes = [Counter[float]() for _ in parts]
        """rows of each class in each fold"""
        self._named, self._in_groups, self._grouped_by = False, False, grouped_by(models.layout)
        for chunk in chunks:
            numbers, rows = folds.folds_of(chunk, rows), rows + len(chunk)
            sizes += np.bincount(numbers, minlength=folds.count)
            self._named = self._named or (chunk.groups is not None and bool(chunk.groups.any()))
            self._in_groups = chunk.groups is not None
            for k in range(folds.count):
                waiting[k].append(part := chunk.take(numbers == k))
                self._classes[k] += counts_of(head, part)
                if sum(one.nnz for one in waiting[k]) >= PIECE:
                    scores[k].add(concat(waiting[k]))
                    waiting[k] = []
        if rows < folds.count:
            raise DataError(f"{folds.count} folds need at least {folds.count} rows; rows read: {rows}")
        if not sizes.all():
            few = f"the groups are too few for {folds.count} folds, {np.count_nonzero(sizes == 0)} of which"
            raise DataError(f"{few} got none: take fewer folds, or try other seeds")
        for one, left in zip(scores, waiting, strict=True):
            if left:
                one.add(concat(left))
        recipes = range(len(models.recipes))
        self.figures = [[one.figures(k) for one in scores if k in one.models] for k in recipes]
        """by recipe and fold; none for recipes that were dropped"""
        firsts = next((one for one in self.figures if one), [])
        self._weightless = next((k for k, one in enumerate(firsts, 1) if not one["examples"]), 0)
        self._without_auc = [k for k, one in enumerate(firsts, 1) if one.get("auc", 0.5) is None]

    def troubles(self) -> list[Finding]:
        """Trouble with the rows of the folds."""
        found = [no_groups(self._grouped_by)] if self._in_groups and not self._named else []
        if self._weightless:
            reason = f"no row of fold {self._weightless} has an importance above 0"
            remedy = f"check the importances, or take fewer {mention('folds')}"
            figures = "so the figures are those of the other folds"
            found.append(Finding("empty-holdout", f"{reason}, {figures}: {remedy}"))
        for k, held in enumerate(self._classes if self._named else []):
            learned = sum((other for other in self._classes if other is not held), Counter[float]())
            if reason := difference(held, learned, f"rows of fold {k + 1}", self._called):
                remedy = f"use another {mention('seed')}, or leave {mention('group')} out"
                return [*found, Finding("unlike-holdout", f"{reason}: {remedy}")]
        if not self._weightless and 0 < len(self._without_auc) < len(self._classes):
            which = first_few([f"fold {k}" for k in self._without_auc], 1)
            reason = f"the rows of {which} have one class only, so the AUC is that of the others"
            remedy = f"take fewer {mention('folds')}, or another {mention('seed')}"
            found.append(Finding("unlike-holdout", f"{reason}: {remedy}"))
        return found


def check_size(recipe: Recipe, count: int, models: int, whole: bool) -> None:
    """Raise ValueError or MemoryError if this many folds and models are too many or too large."""
    what = f"{count} folds of {models} models"
    if count * models > _MOST_MODELS:
        raise ValueError(f"{what} are {count * models:,}: {_MOST_MODELS:,} at most")
    needed = (count + whole) * models * Model(recipe).loop.S.nbytes
    try:
        memory = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # unknown
        memory = math.inf
    if needed > memory:
        begin = f"which begin with {needed / 2**30:,.1f} GB of state"
        raise MemoryError(f"for {what}, {begin}: take fewer folds or penalties, or a smaller store")


@dataclass(frozen=True)
class Estimate(Point):
    """A recipe that was evaluated by cross-validation: its `figures` are means over the folds that have them.

    The AUC needs both classes. The standard error of a mean, with the suffix ``_se``, is the standard
    deviation of these values divided by the square root of their number. That of a difference is over folds.
    """

    folds: list[Figures] = field(default_factory=list)
    """the figures in each fold; none if it was dropped"""
    counts: list[int] = field(default_factory=list)
    """number of nonzero weights in each fold, of which `nonzero` is the mean"""
    model: Model | None = field(default=None, compare=False)
    """the model of all rows, if there is one"""

    @property
    def figures(self) -> Figures:
        """Means of the figures of `Evaluation`, with their standard errors; none if it was dropped."""
        return self.holdout or {}

    @property
    def size(self) -> float:
        """The number of weights to choose by: of the model of all rows, if there is one."""
        return super().size if self.dropped or self.model is None else self.model.nonzero

    def told(self) -> Point:
        """The point of the frontier of all rows, as a file has it."""
        own = {one.name: getattr(self, one.name) for one in fields(Point)}
        held = self.holdout if self.loss < math.inf else None
        return Point(**own | {"penalty": self.penalty or 0.0, "nonzero": round(self.size), "holdout": held})

    def as_dict(self, name: str | None) -> dict[str, Any]:
        """The content in JSON, with the penalty under its `name`."""
        penalty = {} if name is None else {name: self.penalty}
        rest = {"paired_error": self.paired_error, "dropped": self.dropped}
        return {**penalty, "spec": self.spec, "nonzero": self.nonzero, **self.figures, **rest}


def estimates_of(
    models: ModelSet, folds: Folds, figures: list[list[Figures]], judge: str = LOSS
) -> list[Estimate]:
    """An estimate for each recipe, given its figures in each fold.

    They have the standard errors of their differences from the best on the same folds.
    """
    found, means, judged = list[Estimate](), list[Figures](), [[one[judge] for one in own] for own in figures]
    for own in figures:
        # examples have no meaningful mean
        names = [name for name in own[0] if name != "examples"] if own else []
        each = {name: _mean([fold[name] for fold in own]) for name in names}
        means.append({n + end: one[k] for n, one in each.items() for k, end in enumerate(("", "_se"))})
    criteria = [criterion_of(judge, one) if one else math.inf for one in means]
    best = judged[criteria.index(min(criteria))]
    for k, (recipe, own) in enumerate(zip(models.recipes, figures, strict=True)):
        rule, dropped = recipe.rule_part, models.dropped.get(k)
        counts = [part.models[k].nonzero for part in models.parts[: folds.count]]
        pairs = zip(judged[k], best, strict=True) if own else ()
        error = _mean([None if a is None or b is None else a - b for a, b in pairs])[1]
        penalty = None if penalty_field(rule) is None else penalty_in(rule)
        nonzero, held = None if dropped else float(np.mean(counts)), means[k] or None
        model = models.parts[-1].models[k] if folds.whole else None
        point = penalty, str(recipe.rule), nonzero, None, held, error, dropped, judge
        found.append(Estimate(*point, own, counts, model))
    return found


def _mean(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean of those that there are, and its standard error; None if there are too few.

    A fold may lack a figure, and the importance of all its rows may be zero.
    """
    there = np.array([value for value in values if value is not None and math.isfinite(value)])
    if not len(there):
        return None, None
    return float(there.mean()), (float(there.std(ddof=1) / math.sqrt(len(there))) if len(there) > 1 else None)
