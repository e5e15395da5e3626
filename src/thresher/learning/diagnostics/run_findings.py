"""Trouble with labels, importances, features, losses and weights, at the end of a run.

A finder looks at a `Run`, and returns a message or nothing; `troubles_of` calls them in the order in which
they report. What they need to know of the stream is counted in `stream_statistics`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.columns import NUMERIC, WEIGHT, as_option_value
from thresher.data.errors import DataError, first_few
from thresher.data.features.names import numeric_keys
from thresher.data.formats.tables.column_statistics import ColumnSeen
from thresher.data.labels import is_number, list_words
from thresher.data.report import Report
from thresher.learning.diagnostics.advice import (
    feature_names,
    magnitude,
    measures_scales,
    scale_remedy,
    step_size,
)
from thresher.learning.diagnostics.column_findings import (
    troubles_of_columns,
    troubles_of_reading,
)
from thresher.learning.diagnostics.findings import FAR, FEW, Finding, unresolved_labels
from thresher.learning.diagnostics.leaks import LEAST, telling
from thresher.learning.diagnostics.stream_statistics import (
    StreamStatistics,
    base_rate_loss,
    worst_constant_loss,
)
from thresher.learning.inspection.formatting import format_figure
from thresher.learning.model.sampling import Sample, can_correct
from thresher.options.messages import mention, mention_command

if TYPE_CHECKING:
    from thresher.data.source import Source
    from thresher.learning.training.holdout import Holdout

_SUSPICIOUS = 0.25
"""A loss below this share of that of the best constant may come from a column that holds the label."""
_LITTLE = 0.02
"""Share of the loss of a constant at the edge of the labels that counts as small."""
_GROUPED = 0.08
"""Labels are sorted if they change less than this share of the changes expected in random order."""
_FAR_FROM_ONE = 100.0
"""Amounts of so many or more, or of so small a part, are told to be divided."""
_UNEQUAL = 10.0
"""Importances this many times as large, on average, as those of another class, or as 1, do harm."""
_SHIFT = 0.8
"""Labels are sorted, but for some noise, if the share of one differs this much before and after some row."""
_UNLIKE = 20.0
"""A feature whose values are so many times as large as is typical (root mean square) is on another scale."""
NO_WEIGHT = "no feature has a weight"
_LONE = 2
"""Most rows of a class that may be a misspelling of another."""
_NOTICED = 0.001
"""A rise of the held-out loss by less than this share of the best constant's is not worth a word."""
_SLIGHTLY, _CLEARLY = 1.02, 1.1
"""Rises of the held-out loss over passes that are worth a word, if the user chose them and if not."""


@dataclass
class Run:
    """What the finders look at, at the end of a run."""

    seen: StreamStatistics
    model: Any
    columns: Sequence[ColumnSeen] = ()
    report: Report = field(default_factory=Report)
    """what reading the data has shown"""
    source: Source | None = None
    holdout: Holdout | None = None
    figures: Mapping[str, float | int | None] = field(default_factory=dict)
    """those of the held-out rows"""
    patience: int = 0
    replays: bool = False
    """whether the number of passes was left open"""
    models: Sequence[Any] = ()
    """all that were trained, if the model stands for several"""
    solved: bool = False
    """whether the model was solved in memory: progressive losses are not its own"""
    ended: tuple[int, int] | None = None
    """the pass in which Ctrl-C ended training, and how many there were to be"""

    @cached_property
    def classes(self) -> Sequence[str]:
        """Names of the classes; empty if labels are numbers."""
        layout = self.model.recipe.layout
        return (layout.classes if layout else ()) or (self.source.class_names if self.source else ())

    @property
    def tells_classes(self) -> bool:
        """Whether a label is a class."""
        head = self.model.head
        return head.classifies and head.outputs.kind in ("one", "classes")

    @property
    def counts(self) -> dict[float, int]:
        """The rows of each class that were learned, where a label is one of two or more classes."""
        low, seen = self.model.head.outputs.low, self.seen
        if self.model.head.outputs.kind == "one":
            return {1.0: seen.positives, -1.0: seen.rows - seen.positives}
        return {float(k): rows for k, rows in enumerate(seen.classes, low)}

    @cached_property
    def base(self) -> float | None:
        """The loss of the best constant prediction; None if there is no such prediction.

        It is that of all rows, which is nothing to compare the loss on a sample with.
        """
        sampled = self.model.recipe.sample
        if sampled is not None and Sample.of(sampled).correct and self.heldout is None:
            return None
        return base_rate_loss(self.model.head, self.seen)

    @cached_property
    def heldout(self) -> float | None:
        """Mean loss on the hold-out after the last pass, or after the best one if that model is kept.

        None if too few examples are held out to judge by: then that on learned rows is used.
        """
        held = self.seen.heldout_losses
        if not held or int(self.figures.get("examples") or 0) <= FEW:
            return None
        return float(self.figures["loss"] or 0.0)

    @cached_property
    def late_loss(self) -> float:
        """The held-out loss; of learned rows the lower one of the last pass and of those learned last."""
        return min(self.seen.pass_losses[-1], self.seen.late) if self.heldout is None else self.heldout

    @cached_property
    def fails(self) -> bool:
        """Whether the model does far worse than the best constant, which may have next to no loss itself."""
        if self.seen.rows <= FEW or self.base is None or (self.solved and self.heldout is None):
            return False
        return self.late_loss > FAR * self.base + _LITTLE * worst_constant_loss(self.model.head, self.seen)

    @property
    def against_base(self) -> str:
        """The loss next to that of the best constant, as text."""
        which = "progressive loss" if len(self.seen.passes) == 1 else "loss on rows seen before"
        loss = self.seen.pass_losses[-1]
        if self.heldout is not None:
            which, loss = "held-out loss", self.heldout
        known, base = format_figure(loss), format_figure(self.base)
        return f"the {which} is {known}, that of the best constant prediction {base}"


def no_importance(count: int) -> Finding:
    """All rows, `count` of them, have importance 0."""
    rows = f"all {count:,} rows have importance 0"
    return Finding("no-importance", f"{rows}, so nothing was learned: check the importances")


def _of_labels(run: Run) -> Iterator[Finding]:
    seen = run.seen
    if seen.weightless and not seen.rows:
        yield no_importance(seen.weightless)
    alike = seen.rows > FEW and seen.low == seen.high
    meets = run.source is not None and run.source.words is not None
    if alike and run.tells_classes and not seen.start.examples:
        message = f"all {seen.rows:,} labels are the same, so there is nothing to learn"
        later = f": if others come later, go on with {mention('continue_from')}" if meets else ""
        yield Finding("one-label", message + later)
    new = [*zip(run.classes, seen.classes, strict=False)][seen.start.classes :] if meets else []
    if (lone := [f"{one}: {rows}" for one, rows in new if 0 < rows <= _LONE]) and seen.rows > FEW:
        reason = f"{len(lone):,} of {len(run.classes):,} classes have a row or two ({list_words(lone)})"
        remedy = (
            f"if these labels are misspelt, correct them, or name the classes: {mention(classes='A,B,...')}"
        )
        yield Finding("lone-class", f"{reason}, and may take many predictions: {remedy}")
    odd = [word for word in run.classes if is_number(word.encode()) and not any(map(str.isdigit, word))]
    if odd and run.tells_classes and not alike:
        remedy = "if it means that the label is missing, remove these rows"
        yield Finding("missing-labels", f"the label {' and '.join(odd)} is a class of its own: {remedy}")
    if order := _sorted_labels(run):
        remedy = f"shuffle the rows with {mention(order='once')}, or {mention(order='buffer:N')} for a stream"
        yield Finding("sorted-labels", f"the labels are sorted ({order}): {remedy}")


def _sorted_labels(run: Run) -> str | None:
    """How the order of the labels shows that they are sorted; None if it does not."""
    seen, counts, n = run.seen, Counter(run.seen.labels), len(run.seen.labels)
    if seen.rows <= FEW:
        return None
    expected, shift, changes = None, 0.0, seen.rises + seen.falls
    if len(counts) <= n / 4:  # not too many values: so many changes are expected in random order
        shares = [count / n for count in counts.values()]
        if seen.low < seen.high <= 1 and {seen.low, seen.high} >= set(counts):
            share = seen.positives / seen.rows  # of rows, as changes are counted, whatever their importances
            shares = [share, 1 - share]  # of all labels, not of the sample: one class may be rare
        expected = seen.rows * (1 - sum(share * share for share in shares))
    if len(counts) == 2:  # how far the share of one differs before and after a row, of a tenth or more each
        ones, k = np.cumsum(np.array(seen.labels) == max(counts)), np.arange(max(1, n // 10), n - n // 10)
        shift = float(np.abs(ones[k - 1] / k - (ones[-1] - ones[k - 1]) / (n - k)).max(initial=0.0))
    if expected is not None and expected >= 20 and changes <= _GROUPED * expected:
        times = "once" if changes == 1 else f"{changes:,} times"
        random = f"where a random order would have about {round(expected):,}"
        return f"the label changes {times} in {seen.rows:,} rows, {random}"
    if (
        expected is None
        and not run.tells_classes
        and changes >= 50
        and min(seen.rises, seen.falls) <= 0.01 * changes
    ):
        return f"the label {'rises' if seen.rises else 'falls'} from row to row"
    both = "up to some row nearly all labels are the same, and from there on nearly all are the other"
    return both if shift >= _SHIFT else None


def _importances(run: Run) -> str | None:
    """Importances that differ much between classes, as after sampling one of them, or far above 1."""
    seen, recipe, head = run.seen, run.model.recipe, run.model.head
    if seen.rows <= FEW:
        return None
    if recipe.sample is not None:
        sample = Sample.of(recipe.sample)
        largest = 1 / min(sample.shares.values())
        if sample.correct or largest <= _UNEQUAL or not can_correct(head):
            return None
        reason = f"the importances of sampled rows are up to {largest:.3g}, so that few rows decide"
        return f"{reason}: use {mention(sample=sample._replace(correct=True).spec)}"
    sums = dict[float, tuple[int, float]]()  # rows and importances: of two classes all, of others a sample
    if run.tells_classes and head.domain.name == "binary":
        sums[-1.0] = seen.rows - seen.positives, seen.weight - seen.positive
        sums[1.0] = seen.positives, seen.positive
    elif run.tells_classes:
        for label, weight in zip(seen.labels, seen.weights, strict=True):
            count, total = sums.get(label, (0, 0.0))
            sums[label] = count + 1, total + weight
    means = {label: total / count for label, (count, total) in sorted(sums.items()) if count >= 10}
    if len(means) < 2 or max(means.values()) < _UNEQUAL * min(means.values()):
        mean = seen.weight / seen.rows
        if mean < _UNEQUAL or type(recipe.rule_part).RELATIVE_IMPORTANCE:
            return None
        reason = f"the importances are {mean:.3g} on average, and each makes a step longer"
        rule = f"take {mention(rule='ft-ftrl')} or normalized, which need no such scale"
        return f"{reason}: divide them by their mean, or {rule}"
    layout = None if run.source is not None and run.source.weighed_beside else run.model.recipe.layout
    least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    two = ("negatives", "positives") if head.is_of_two and not run.classes else ()
    heavy, light = (
        two[label > 0] if two else f"class {head.named(label, run.classes)}" for label in (most, least)
    )
    times = f"are {means[most] / means[least]:.3g} times those of {light}"
    reason = f"the importances of {heavy} {times}, so that few rows decide"
    remedy = "learn without importances"
    if layout and WEIGHT in layout.kinds:
        column = as_option_value([layout.columns[layout.kinds.index(WEIGHT)]], layout.columns)
        remedy = f"use {mention(ignore=column)} in place of {mention(weight=column)}"
    if not head.has_probabilities:
        more = "choose another threshold"
    elif len(means) > 2 or head.outputs.kind != "one":
        more = "multiply the probability of each class by its importance, then divide by their sum"
    else:
        more = f"turn each probability p into p / (p + {means[-1.0] / means[1.0]:.4g} (1 - p))"
    return f"{reason}: {remedy}, and {more}"


def _scales(run: Run) -> str | None:
    recipe = run.model.recipe
    if not run.fails or recipe.scale is not None:
        return None
    rows = run.seen.drawn.rows
    keys, places = np.unique(rows.keys, return_inverse=True)
    sizes = np.sqrt(np.bincount(places, rows.values.astype(np.float64) ** 2) / np.bincount(places))
    largest = np.zeros(len(keys))
    np.maximum.at(largest, places, np.abs(rows.values))
    typical = np.quantile([1.0, *sizes[sizes > 0]], 0.5, method="lower")  # 1: the intercept
    large = np.flatnonzero(sizes > _UNLIKE * typical)
    large = large[np.argsort(-largest[large], kind="stable")]
    if not len(large) or (measures_scales(recipe) and _sorted_labels(run) is not None):
        return None
    names = feature_names(keys[large].tolist(), recipe.layout)
    each = [f"{name} up to {magnitude(size)}" for name, size in zip(names, largest[large], strict=True)]
    reason = f"features of very different scale ({first_few(each)}): {run.against_base}"
    return f"{reason}; {scale_remedy(recipe)}"


def _nothing_left(run: Run) -> str | None:
    models, recipe = run.models or [run.model], run.model.recipe
    if any(model.nonzero for model in models) or run.seen.rows <= FEW:
        return None
    if recipe.admit is None and not any(model.features_seen for model in models):
        varies = "none varies: give columns whose values differ"
        if not run.seen.drawn.rows.nnz and not numeric_keys(recipe.layout):
            varies = "no row has a feature: check how the data are read"
        return f"{NO_WEIGHT}, because {varies}"
    rule = recipe.rule_part
    penalties = {name: getattr(rule, name) for name in type(rule).PENALTIES if getattr(rule, name, 0)}
    more = "" if recipe.admit is None else f", or a lower {mention('admit')} (currently {recipe.admit})"
    return no_weights(penalties, more)


def no_weights(penalties: Mapping[str, float], more: str = "") -> str:
    """The trouble with a model whose weights are all zero, under these penalties."""
    smaller = " ".join(f"{name} (currently {value:g})" for name, value in penalties.items() if value)
    few = "there may be too few examples, or too small a step size"
    remedy = f"use a smaller {smaller}" if smaller else few
    return f"{NO_WEIGHT}; the model predicts the same for every row: {remedy}{more}"


def _overfits(run: Run) -> str | None:
    """Held-out loss that rises with each pass while the loss on the rows learned falls."""
    held, learned = run.seen.heldout_losses, run.seen.pass_losses
    if run.patience or len(held) < 2 or len(held) < len(learned):
        return None
    best = min(range(len(held)), key=held.__getitem__)
    least, last = held[best], held[-1]
    slight = last <= least + _NOTICED * (run.base or 0.0) or last <= least * (
        _CLEARLY if run.replays else _SLIGHTLY
    )
    if slight or any(b < a for a, b in pairwise(held[best:])) or learned[-1] >= learned[best]:
        return None
    reason = (
        f"from {format_figure(least)} after pass {best + 1} to {format_figure(last)} after pass {len(held)}"
    )
    remedy = f"use {mention(passes=best + 1)}, or {mention(early_stop=1)} to keep the best pass"
    return f"the held-out loss rises {reason}, while that on the rows learned falls: {remedy}"


def troubles_at_end(run: Run) -> Iterator[Finding]:
    """Trouble with how the model was trained, which is told at the end and stored nowhere."""
    given, seen = run.holdout.given if run.holdout is not None else None, run.seen
    if given is not None and run.source is not None:
        learned = {os.path.realpath(name) for name in run.source.names if os.path.isfile(name)}
        if files := [name for name in given.names if os.path.realpath(name) in learned]:
            reason = f"the hold-out, {first_few(files)}, is among the data, so it is learned before it judges"
            remedy = f"leave it out of the data, or use {mention(holdout=0.1)}"
            yield Finding("learned-holdout", f"{reason}: {remedy}")
    if given is not None and run.figures.get("auc", 0.5) is None and seen.weight:
        share = seen.positive / seen.weight
        if int(run.figures.get("examples") or 0) * min(share, 1 - share) >= 10:  # not by chance
            reason = "the hold-out has rows of one class only, and the rows learned have both"
            yield Finding("unlike-holdout", f"{reason}: use {mention(holdout=0.1)}, or other data")
    if run.ended is not None:
        number, passes = run.ended
        reason = f"interrupted in pass {number} of {passes}: the model has learned all rows, but not as often"
        yield Finding("ended-early", f"{reason}; train again for the other passes")
    if leak := _leak(run):
        yield leak


def _leak(run: Run) -> Finding | None:
    """Columns, or features, that tell the label alone; or why that is not known.

    They are looked for if the model is so good that one may hold the label, if columns lack numbers in the
    first rows, which tells a model nothing, or if the mean is exp(margin), which cannot follow a copy.
    """
    rows = max((one.rows for one in run.columns), default=0)
    lacking = any(one.kind == NUMERIC and one.rows < rows for one in run.columns)
    good = run.base is not None and run.late_loss < _SUSPICIOUS * run.base
    suspicious = good or lacking or run.model.head.is_exponential
    if run.source is None or run.seen.rows < LEAST or not suspicious:
        return None
    try:
        names = telling(run.source, run.model.head, run.model.layout)
    except (DataError, OSError, MemoryError) as error:  # the model is whole, and not saved yet
        reason = "memory is short" if isinstance(error, MemoryError) else str(error)
        return Finding("unknown-leak", f"not known whether a column alone tells the label: {reason}")
    if not names:
        return None
    alone = f"{first_few(names)} {'alone tells' if len(names) == 1 else 'each tell'} the label"
    known, layout = "if it is filled in with the label or after it, leave it out", run.source.layout
    if layout and layout.columns:
        columns = [name.removeprefix("column ") for name in names[:3]]
        known += f", {mention(ignore=as_option_value(columns, layout.columns))}"
    good_too = f"{run.against_base}, and " if good else ""
    return Finding("leak", f"{good_too}{alone} in the first rows: {known}")


_EXPLAINS_LOSS = {
    *("sorted-labels", "importances", "scales", "overfitting", "unresolved-labels"),
}


def troubles_of(run: Run) -> list[Finding]:
    """All trouble with the data and the model, at most one per finder."""
    recipe = run.model.recipe
    found = troubles_of_columns(run.columns, recipe.layout)
    if run.source is not None:  # a record does not tell how rows were read
        found += troubles_of_reading(run.report, recipe.layout, run.seen.start.examples > 0)
    found += _of_labels(run)
    seen, unmet = run.seen, ""
    if seen.unmet:
        named = first_few(recipe.signs().named(seen.unmet, recipe.layout))
        unmet = f"no row has a number other than 0 for {named}: check the name, or leave it out"
    messages = {
        "importances": _importances(run),
        "scales": _scales(run),
        "unresolved-labels": unresolved_labels(run.model.head, seen.rows, seen.low, seen.high),
        "no-weights": _nothing_left(run),
        "no-such-column": unmet,
        "overfitting": _overfits(run),
    }
    found += [Finding(name, message) for name, message in messages.items() if message]
    names = {one.name for one in found}
    if "unresolved-labels" in names:  # which no smaller penalty would mend
        found = [one for one in found if one.name != "no-weights"]
    if run.fails and not names & _EXPLAINS_LOSS:
        smaller, remedy = step_size(recipe), f"let {mention_command('tune')} find a better setting"
        remedy = f"use a smaller step size{smaller}, or {remedy}" if smaller else remedy
        if recipe.offset:
            remedy = f"check the offsets (of an exposure, give the logarithm), {remedy}"
        head = run.model.head
        if head.is_exponential and seen.low == 0 and not head.loss.SCALES:
            # the first zeros drive an intercept that begins at a mean of 1 far down, where the slope of an
            # amount that follows is so large that no later one counts
            usual = float(f"{np.median([one for one in seen.labels if one > 0] or [seen.high]):.1g}")
            if not 1 / _FAR_FROM_ONE < usual < _FAR_FROM_ONE:
                remedy = f"divide the labels by {usual:,.15g}, multiply predictions by it, and {remedy}"
        found.append(Finding("worse-than-constant", f"{run.against_base}: {remedy}"))
    return found
