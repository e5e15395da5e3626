"""Held-out examples: a separate source, or a share of the stream, that is never learned.

It is noticed if rows that are held out, or in a fold, differ from those that are learned.

A share of the stream is evaluated at the end of each pass with the model at that point, not as the rows go
by: the progressive loss of the first pass already measures the latter.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk, StreamPosition
from thresher.data.errors import DataError
from thresher.data.inputs.matrices import identify
from thresher.data.layout import grouped_by
from thresher.data.source import Chunks, MemorySource, Source, SourceWrapper
from thresher.learning.diagnostics.findings import WEIGHTLESS, Finding, no_groups
from thresher.learning.inspection.formatting import format_figure
from thresher.learning.model.objective import Objective
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.shares import (
    HeldOutPart,
    LastRows,
    MatchingRows,
    as_text,
    check_ungrouped,
    held_out,
)
from thresher.options.messages import mention

_FEW, _ERRORS, _ROWS = 100, 5.0, 10
"""A difference counts with more rows than these, above so many standard errors, if so many rows differ"""
_POINTS, _TIMES = 0.1, 2.0
"""and if shares differ by more than this, or by such a factor"""

Counts = Mapping[float, int]
"""Rows by class"""


def counts_of(head: Objective, chunk: Chunk) -> Counter[float]:
    """The rows of each class, without those of importance 0; empty if rows have no single class."""
    if not head.classifies or head.outputs.kind not in ("one", "classes"):
        return Counter()
    labels = chunk.labels[chunk.weights > 0]
    if head.outputs.kind == "one":
        positive = int(np.count_nonzero(labels > 0))
        return Counter({1.0: positive, -1.0: len(labels) - positive})
    found, counts = np.unique(labels, return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))


def difference(
    held: Counts,
    learned: Counts,
    which: str = "held-out rows",
    named: Callable[[float], str] = "{:g}".format,
) -> str:
    """How the classes of rows that are held out differ from those of rows that are learned; empty if little.

    `named` tells what a class is called. Chance alone makes a difference that is told with a probability
    below one in ten thousand.

    >>> difference({1.0: 30, -1.0: 0}, {1.0: 40, -1.0: 60})
    'all 30 held-out rows have the label 1, of the rows learned 40 %'
    >>> difference({1.0: 10, -1.0: 90}, {1.0: 500, -1.0: 500})
    '10 % of the held-out rows have the label 1, of the rows learned 50 %'
    """
    n, m = sum(held.values()), sum(learned.values())
    if not n or not m:
        return ""

    of, errors = dict[float, tuple[float, float, float]](), dict[float, float]()
    for label in {*held, *learned, 1.0}:  # its share in both, and together, and how far these are apart
        count, other = held.get(label, 0), learned.get(label, 0)
        a, b, both = of[label] = count / n, other / m, (count + other) / (n + m)
        error = math.sqrt(both * (1 - both) * (1 / n + 1 / m))
        errors[label] = abs(a - b) / error if error else 0.0
    there = [label for label, count in held.items() if count]
    alone = len(there) == 1 and n * (1 - learned.get(there[0], 0) / m) >= _ROWS
    labels = [1.0] if {*held, *learned} <= {1.0, -1.0} else [*{*held, *learned}]
    worst = there[0] if alone and len(labels) > 1 else max(labels, key=lambda k: (errors[k], k))
    a, b, both = of[worst]
    few = n + m <= _FEW or n * abs(a - both) < _ROWS or errors[worst] <= _ERRORS
    if not alone and (few or (abs(a - b) <= _POINTS and max(a, b) < _TIMES * min(a, b))):
        return ""
    held_share, share_learned = (
        f"{format_figure(100 * one) if 0 < one < 0.01 else round(100 * one)} %" for one in (a, b)
    )
    share = f"{held_share} of the {which}"
    if a in (0, 1):
        share = f"all {n:,} {which}" if a else f"none of {n:,} {which}"
    return f"{share} have the label {named(worst)}, of the rows learned {share_learned}"


class Holdout:
    """The rows that are held out."""

    seed = 0
    """seed of the choice of rows"""
    first = 0
    """number of the first row, where the stream goes on with other data"""
    _head: Objective | None = None
    _grouped_by = ""

    def __init__(self, every: HeldOutPart = 0, given: Source | None = None) -> None:
        self.every, self.given = every, None if given is None else identify(given)
        """what of the stream is held out, and a separate source"""
        self._kept: list[Chunk] = []
        self._learned: int | None = None
        """how many rows come before those that are held out, if those are the last; None: not known yet"""
        self._in_groups = self._named = False
        self.weightless = False
        """whether none of its rows counts"""
        self._read = False
        """whether the held-out examples of the stream have been collected"""

    def attach(self, recipe: Recipe, source: Source) -> None:
        """Draw with the seed of `recipe`. `DataError` if rows have groups, but are not drawn."""
        self.seed = recipe.seed
        self._head = recipe.objective
        self._grouped_by = grouped_by(source.layout)
        check_ungrouped(self.every, self._grouped_by)

    def rest(self, source: Source) -> Source:
        """`source` without its held-out rows."""
        return _Rest(source, self) if self.every else source

    def remaining(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The rows to learn of each of the `chunks` of a pass; `DataError` if there are none."""
        rows = learned = 0
        for chunk, held in self.split(chunks):
            out = chunk.take(held) if held.any() else None
            rest = chunk if out is None else chunk.take(~held).at(chunk.place, chunk.after)
            rows, learned = rows + len(chunk), learned + len(rest)
            if not self._read:
                self._kept += [] if out is None else [out]
            yield rest
        if not learned:
            reason = f"the hold-out, {as_text(self.every)}, leaves none of {rows:,} rows to learn from"
            raise DataError(f"{reason}: hold out others, such as {mention(holdout=0.1)}")
        self._read = True

    def split(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, NDArray[np.bool_]]]:
        """Each chunk of a pass, with which of its rows are held out.

        Of the last rows it is only known at the end of the stream which these are. Until then, as many rows
        wait as would be held out if the stream ended here: no more than are held out at last.
        """
        last, offered = self.every, self.first
        if not isinstance(last, LastRows):
            for chunk in chunks:
                if isinstance(last, MatchingRows):
                    assert chunk.groups is not None
                    held = np.asarray(chunk.groups != 0)
                else:
                    held = held_out(offered, len(chunk), last, self.seed, chunk.groups)
                    if chunk.groups is not None:
                        self._in_groups, self._named = True, self._named or bool(chunk.groups.any())
                offered += len(chunk)
                yield chunk, held
            return
        waiting, read, passed = deque[Chunk](), 0, 0
        for chunk in chunks:
            waiting.append(chunk)
            read += len(chunk)
            certain = last.learned(read) if self._learned is None else self._learned
            while waiting and passed + len(waiting[0]) <= certain:
                first = waiting.popleft()
                passed += len(first)
                yield first, np.zeros(len(first), bool)
        self._learned = last.learned(read)
        for chunk in waiting:
            yield chunk, np.arange(passed, passed + len(chunk)) >= self._learned
            passed += len(chunk)

    def troubles(self, words: Sequence[str], learned: Counts) -> list[Finding]:
        """Trouble with the rows, and with their choice, where `learned` are the classes of the others.

        `words` are the names of the classes, if any.
        """
        if self.weightless:
            return [WEIGHTLESS]
        if not self._read:
            return []
        drawn = not isinstance(self.every, LastRows | MatchingRows)
        if not self._kept and (self._in_groups or isinstance(self.every, MatchingRows)):
            reason = "there are few groups"
            if isinstance(self.every, MatchingRows):
                reason = f"none meets {self.every.condition}"
            remedy = f"hold out others, such as {mention(holdout=0.5)}"
            return [Finding("empty-holdout", f"no row was held out, because {reason}: {remedy}")]
        if drawn and not self._named:  # what differs then differs by chance
            return [no_groups(self._grouped_by)] if self._in_groups else []
        assert self._head is not None
        held = sum((counts_of(self._head, chunk) for chunk in self._kept), Counter[float]())
        reason = difference(held, learned, named=partial(self._head.named, words=words))
        remedy = f"use another {mention('seed')}, or leave {mention('group')} out"
        if not drawn:
            remedy = f"if rows are not in the order of time, draw those held out, {mention(holdout=0.1)}"
        return [Finding("unlike-holdout", f"{reason}: {remedy}")] if reason else []

    def source(self) -> Source | None:
        """The source to evaluate on, or None."""
        if self.given is not None:
            return self.given
        return MemorySource(self._kept) if self._kept else None


class _Rest(SourceWrapper[Source]):
    """A source without its held-out rows, which are collected on the first reading."""

    def __init__(self, source: Source, holdout: Holdout) -> None:
        super().__init__(source)
        self._holdout = holdout

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """One pass. It reads from the beginning even if `start` is given, to count rows."""
        with closing(self._source.chunks()) as chunks:
            for chunk in self._holdout.remaining(chunks):
                if start is None or (chunk.place is not None and chunk.place >= start):
                    yield chunk
