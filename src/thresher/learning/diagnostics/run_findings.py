"""Trouble with labels, importances, features, losses and weights, at the end of a run.

A finder looks at a `Run`, and returns a message or nothing. `of_run` has them in the order in which they
report. What they need to know of the stream is counted in `stream_statistics`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from thresher.data.columns import LABEL, NUMERIC, OFFSET, WEIGHT, as_option_value
from thresher.data.errors import first_few
from thresher.data.formats.tables.column_statistics import ColumnSeen
from thresher.data.labels import is_number
from thresher.data.report import Report
from thresher.learning.diagnostics.advice import (
    feature_names,
    magnitude,
    measures_scales,
    scale_remedy,
    step_size,
)
from thresher.learning.diagnostics.column_findings import (
    is_id,
    is_text,
    troubles_of_columns,
    troubles_of_reading,
)
from thresher.learning.diagnostics.findings import FAR, FEW, Finders, Finding, unresolved_labels
from thresher.learning.diagnostics.leaks import LEAST
from thresher.learning.diagnostics.stream_statistics import (
    StreamStatistics,
    base_rate_loss,
    worst_constant_loss,
)
from thresher.learning.inspection.formatting import shown
from thresher.learning.model.preprocessing import LISTED
from thresher.learning.model.sampling import Sample, can_correct
from thresher.learning.training.record import Record
from thresher.options.messages import as_stored, mention, mention_command

_SUSPICIOUS = 0.25
"""A loss below this share of that of the best constant may come from a column that holds the label."""
_LITTLE = 0.02
"""Share of the loss of a constant at the edge of the labels that counts as small."""
_GROUPED = 0.08
"""Labels are sorted if they change less than this share of the changes expected in random order."""
_UNEQUAL = 10.0
"""Importances this many times as large, on average, as those of another class, or as 1, do harm."""
_WEIGHED = 3.0
"""A class that the loss counts so often, or as seldom, makes probabilities wrong."""
_SHIFT = 0.8
"""Labels are sorted, but for some noise, if the share of one differs this much before and after some row."""
_UNLIKE = 20.0
"""A feature this many times the typical size is on another scale."""
_BETTER, _BETTER_SHARE, _OFF = 10.0, 0.05, 0.3
"""Raw exposures must explain the labels better by this log likelihood, counting each label as 1 or less,
and by this share of it. A power of them must not do so by more than this share."""
NO_WEIGHT = "no feature has a weight"
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
    patience: int = 0
    heldout_rows: int = 0
    weighed_beside: bool = False
    """whether importances were given beside a table"""
    replays: bool = False
    """whether the number of passes was left open"""
    class_names: Sequence[str] = ()
    """names of the classes, if the layout has none"""
    models: Sequence[Any] = ()
    """all that were trained, if the model stands for several"""

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes; empty if labels are numbers."""
        layout = self.model.recipe.layout
        return (layout.classes if layout else ()) or self.class_names

    @property
    def goes_on(self) -> bool:
        """Whether the model had learned other data before."""
        return self.seen.start.examples > 0

    @cached_property
    def base(self) -> float | None:
        """The loss of the best constant prediction; None if there is no such prediction.

        It is that of all rows, which is nothing to compare the loss on a sample with.
        """
        sampled = self.model.recipe.sample
        if sampled is not None and Sample.of(sampled).correct and not self.is_held_out:
            return None
        return base_rate_loss(self.model.head, self.seen)

    @property
    def heldout(self) -> float | None:
        """Mean loss on the hold-out after the last pass, or after the best pass if that model is kept."""
        held = self.seen.heldout_losses
        return (min(held) if self.patience else held[-1]) if held else None

    @property
    def is_held_out(self) -> bool:
        """Whether enough examples are held out to judge by; otherwise that on learned rows is used."""
        return self.heldout is not None and self.heldout_rows > FEW

    @property
    def loss(self) -> float:
        """The held-out loss; without a hold-out of some size, that of the last pass."""
        held = self.heldout
        return held if held is not None and self.is_held_out else self.seen.pass_losses[-1]

    @property
    def late_loss(self) -> float:
        """The same, but of learned rows the lower one of all and of those learned last."""
        return self.loss if self.is_held_out else min(self.loss, self.seen.late)

    @property
    def fails(self) -> bool:
        """Whether the model does far worse than the best constant, which may have next to no loss itself."""
        if self.seen.rows <= FEW or self.base is None:
            return False
        return self.late_loss > FAR * self.base + _LITTLE * worst_constant_loss(self.model.head, self.seen)

    @property
    def is_suspicious(self) -> bool:
        """Whether the model is so good that a column may hold the label."""
        good = self.base is not None and self.late_loss < _SUSPICIOUS * self.base
        return self.seen.rows >= LEAST and good

    @property
    def lacks_numbers(self) -> bool:
        """Whether columns lack numbers in the first rows, which tells a model nothing."""
        rows = max((one.rows for one in self.columns), default=0)
        lacking = any(one.kind == NUMERIC and one.rows < rows for one in self.columns)
        return lacking and self.seen.rows >= LEAST

    @property
    def against_base(self) -> str:
        """The loss next to that of the best constant, as text."""
        which = "progressive loss" if len(self.seen.passes) == 1 else "loss on rows seen before"
        which = "held-out loss" if self.is_held_out else which
        return f"the {which} is {shown(self.loss)}, that of the best constant prediction {shown(self.base)}"


of_run = Finders[Run]()


@of_run("no-importance")
def _no_importance(run: Run) -> str | None:
    """No row has an importance above 0."""
    if run.seen.rows or not run.seen.weightless:
        return None
    rows = f"all {run.seen.weightless:,} rows have importance 0"
    return f"{rows}, so nothing was learned: check the importances"


def _has_one_label(run: Run) -> bool:
    return run.seen.rows > FEW and run.seen.low == run.seen.high


def _tells_classes(head: Any) -> bool:
    return head.classifies and head.outputs.kind in ("one", "classes")


@of_run("one-label")
def _one_label(run: Run) -> str | None:
    """Labels that are all the same."""
    if not (_tells_classes(run.model.head) and _has_one_label(run)) or run.goes_on:
        return None
    return f"all {run.seen.rows:,} labels are the same, so there is nothing to learn"


@of_run("missing-labels")
def _missing_labels(run: Run) -> str | None:
    """A class that may stand for missing or misspelt labels."""
    odd = [word for word in run.classes if is_number(word.encode()) and not any(map(str.isdigit, word))]
    if not odd or _has_one_label(run) or not _tells_classes(run.model.head):
        return None
    reason = f"the label {' and the label '.join(odd)} is a class of its own"
    return f"{reason}: if it means that the label is missing, remove these rows"


@of_run("mixed-labels")
def _mixed_labels(run: Run) -> str | None:
    """Labels -1 and 0 in the same data: perhaps one class each, but a model of two takes both as negative."""
    seen = run.seen
    if run.model.head.domain.name != "binary" or not seen.zeros or seen.low == 0:
        return None
    zeros = "1 row has 0" if seen.zeros == 1 else f"{seen.zeros:,} rows have 0"
    reason = f"the labels -1 and 0 both occur ({zeros}), and both mean the negative class"
    return f"{reason}: if they are two classes, use {mention(outputs='classes')}"


@of_run("sorted-labels")
def _sorted_labels(run: Run) -> str | None:
    """Labels in a few long runs, or that only rise or fall."""
    seen = run.seen
    if seen.rows <= FEW:
        return None
    times = "once" if seen.changes == 1 else f"{seen.changes:,} times"
    reason, expected = f"the label changes {times} in {seen.rows:,} rows", seen.expected_changes
    if expected is not None and expected >= 20 and seen.changes <= _GROUPED * expected:
        reason += f", where a random order would have about {round(expected):,}"
    elif expected is None and seen.changes >= 50 and min(seen.rises, seen.falls) <= 0.01 * seen.changes:
        reason = f"the label {'rises' if seen.rises else 'falls'} from row to row"
    elif seen.largest_shift >= _SHIFT:
        reason = "up to some row nearly all labels are the same, and from there on nearly all are the other"
    else:
        return None
    remedy = f"shuffle the rows with {mention(order='once')}, or {mention(order='buffer:N')} for a stream"
    return f"the labels are sorted ({reason}): {remedy}"


@of_run("importances")
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
    means = seen.importances(head.domain.name == "binary") if _tells_classes(head) else {}
    if len(means) > 1 and max(means.values()) >= _UNEQUAL * min(means.values()):
        least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        times = f"{means[most] / means[least]:.3g}"
        which, other = (_class_of(run, label) for label in (most, least))
        reason = f"the importances of {which} are {times} times those of {other}, so that few rows decide"
        return f"{reason}: {_without_importances(run, means)}"
    if seen.importance < _UNEQUAL or type(recipe.make_rule()).RELATIVE_IMPORTANCE:
        return None
    reason = f"the importances are {seen.importance:.3g} on average, and each makes a step longer"
    rule = f"take {mention(rule='ft-ftrl')} or normalized, which need no such scale"
    return f"{reason}: divide them by their mean, or {rule}"


def _class_of(run: Run, label: float) -> str:
    """A class in a message."""
    outputs = run.model.head.outputs
    if outputs.kind != "classes" and not run.classes:
        return "positives" if label > 0 else "negatives"
    place = int(label) - outputs.low if outputs.kind == "classes" else int(label > 0)
    return f"class {run.classes[place] if 0 <= place < len(run.classes) else f'{label:g}'}"


def _without_importances(run: Run, means: Mapping[float, float]) -> str:
    """What helps if importances, perhaps given beside a table, differ between classes, with these means."""
    layout, head = None if run.weighed_beside else run.model.recipe.layout, run.model.head
    remedy = "learn without importances"
    if layout and WEIGHT in layout.kinds:
        column = as_option_value([layout.columns[layout.kinds.index(WEIGHT)]], layout.columns)
        remedy = f"use {mention(ignore=column)} in place of {mention(weight=column)}"
    if not head.has_probabilities:
        return f"{remedy}, and choose another threshold"
    if len(means) > 2 or head.outputs.kind != "one":
        factors = "multiply the probability of each class by its importance"
        return f"{remedy}, and {factors}, then divide by their sum"
    times = f"{means[-1.0] / means[1.0]:.4g}"
    return f"{remedy}, and turn each probability p into p / (p + {times} (1 - p))"


@of_run("class-weight")
def _class_weight(run: Run) -> str | None:
    """A loss that counts one of two classes more often, so that probabilities are not those of the rows."""
    head = run.model.head
    times = getattr(head.loss, "positive", 1.0)
    told = run.model.recipe.calibrate or not head.joint.PROBABILITY or head.outputs.kind != "one"
    if told or run.seen.rows <= FEW or 1 / _WEIGHED < times < _WEIGHED:
        return None
    reason = f"the loss counts positives {times:g} times, so that the odds of probabilities are {times:g}"
    return f"{reason} times those of the rows: for these, use {mention(calibrate=True)}"


@of_run("scales")
def _scales(run: Run) -> str | None:
    """Features of very different scales, if the loss shows that it matters."""
    recipe = run.model.recipe
    if not run.fails or recipe.scale is not None:
        return None
    sizes = sorted([1.0, *(size for size in run.seen.features.values() if size)])  # 1: the intercept
    typical = sizes[(len(sizes) - 1) // 2]
    large = [(key, size) for key, size in run.seen.features.items() if size > _UNLIKE * typical]
    if not large or (measures_scales(recipe) and _sorted_labels(run) is not None):
        return None
    large.sort(key=lambda one: -one[1])
    names = feature_names([key for key, _ in large], recipe.layout)
    each = [f"{name} up to {magnitude(size)}" for name, (_, size) in zip(names, large, strict=True)]
    reason = f"features of very different scale ({first_few(each)}): {run.against_base}"
    return f"{reason}; {scale_remedy(recipe)}"


@of_run("raw-exposure")
def _raw_exposure(run: Run) -> str | None:
    """Offsets that the mean is proportional to, where it is exp(offset) times what is learned.

    The log likelihood of counts, per label, is that of a constant times o; it is compared with that of a
    constant times exp(b o), with b = 0, 1/4, 1/2, 3/4 or 1: labels may grow more slowly than exposures. They
    must not grow faster or more slowly than o, as they may if o is log(days).
    """
    seen, head = run.seen, run.model.head
    if not (run.model.recipe.offset and seen.offset_sums and seen.rows > FEW and head.is_exponential):
        return None
    *powers, offsets, o_logs, labels, y_offsets, y_logs, squares = seen.offset_sums
    if min(labels, squares, seen.weight) <= 0:
        return None
    raw = y_logs / labels - math.log(offsets / seen.weight)
    as_logs = [
        k / 4 * y_offsets / labels - math.log(power / seen.weight) for k, power in enumerate(powers, 1)
    ]
    gain, faster = raw - max(0.0, *as_logs), y_logs / labels - o_logs / offsets
    if gain * labels**2 / squares < _BETTER or gain < _BETTER_SHARE * raw or abs(faster) > _OFF * raw:
        return None
    layout = run.model.recipe.layout
    named = (
        [name for name, kind in zip(layout.columns, layout.kinds, strict=True) if kind == OFFSET]
        if layout
        else []
    )
    which = f"column {named[0]}, the offset" if named else "the offset"
    reason = f"the labels grow in proportion to {which}, but 1 more in an offset multiplies the mean by e"
    return f"{reason}: if it is an exposure, give its logarithm"


@of_run("unresolved-labels")
def _unresolved_labels(run: Run) -> str | None:
    """Numbers to predict that float32 does not tell apart."""
    one = not run.model.head.classifies and run.model.head.count == 1 and run.seen.rows > 1
    found = unresolved_labels(run.seen.low, run.seen.high) if one else None
    return found and found.message


@of_run("no-weights")
def _nothing_left(run: Run) -> str | None:
    """All weights except the intercept are zero, in every one of several models."""
    models, recipe = run.models or [run.model], run.model.recipe
    if any(model.nonzero for model in models) or run.seen.rows <= FEW:
        return None
    if recipe.admit is None and not any(model.features_seen for model in models):
        if run.seen.features:
            reason = f"{NO_WEIGHT}, because none varies: each has one value, or none, in all rows"
            return f"{reason}: give columns whose values differ"
        return f"{NO_WEIGHT}, because no row has a feature: check how the data are read"
    own = [column for column in run.columns if column.kind != LABEL]
    if own and all(is_text(column) or is_id(column) for column in own):
        reason = f"{NO_WEIGHT}, because nearly every cell is a category of its own"
        return f"{reason}: read texts as words, and give columns whose values come again"
    rule = recipe.make_rule()
    penalties = {name: getattr(rule, name) for name in type(rule).PENALTIES if getattr(rule, name, 0)}
    admits = recipe.admit in (None, LISTED)
    more = "" if admits else f", or a lower {mention('admit')} (currently {recipe.admit})"
    return no_weights(penalties, more).message


def no_weights(penalties: Mapping[str, float], more: str = "") -> Finding:
    """The trouble with a model whose weights are all zero, under these penalties."""
    smaller = " ".join(f"{name} (currently {value:g})" for name, value in penalties.items() if value)
    few = "there may be too few examples, or too small a step size"
    remedy = f"use a smaller {smaller}" if smaller else few
    return Finding("no-weights", f"{NO_WEIGHT}; the model predicts the same for every row: {remedy}{more}")


@of_run("no-such-column")
def _unmet(run: Run) -> str | None:
    """Features whose weights were to keep a sign, and that no row has."""
    if not run.seen.unmet:
        return None
    named = first_few(run.model.recipe.signs().named(run.seen.unmet, run.model.recipe.layout))
    return f"no row has a number other than 0 for {named}: check the name, or leave it out"


@of_run("overfitting")
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
    reason = f"from {shown(least)} after pass {best + 1} to {shown(last)} after pass {len(held)}"
    remedy = f"use {mention(passes=best + 1)}, or {mention(early_stop=1)} to keep the best pass"
    return f"the held-out loss rises {reason}, while that on the rows learned falls: {remedy}"


def _loss(run: Run) -> list[Finding]:
    """A loss above that of a constant, if nothing else explains it."""
    if not run.fails:
        return []
    smaller, tune = step_size(run.model.recipe), f"let {mention_command('tune')} find a better setting"
    remedy = f"use a smaller step size{smaller}, or {tune}" if smaller else tune
    if run.model.recipe.offset:
        remedy = f"check the offsets (of an exposure, give the logarithm), {remedy}"
    return [Finding("worse-than-constant", f"{run.against_base}: {remedy}")]


_EXPLAINS_LOSS = {
    "raw-exposure",
    "sorted-labels",
    "importances",
    "scales",
    "overfitting",
    "unresolved-labels",
}


def troubles_of(run: Run) -> list[Finding]:
    """All trouble with a run, at most one per finder."""
    found = troubles_of_columns(run.columns, run.model.recipe.layout)
    found += troubles_of_reading(run.report, run.model.recipe.layout, run.goes_on)
    found += of_run.found(run)
    if any(one.name == "unresolved-labels" for one in found):  # which no smaller penalty would mend
        found = [one for one in found if one.name != "no-weights"]
    return found if any(one.name in _EXPLAINS_LOSS for one in found) else found + _loss(run)


def with_warnings(record: Record, model: Any, seen: StreamStatistics) -> Record:
    """The record with the messages that the model file keeps.

    They depend on the rows, their order and the recipe alone: not on hold-outs, on how the rows are split
    into files, or on other models trained on the same reading.
    """
    own = seen.of_model(getattr(model, "curve", ()), model.tally, model.repeated)
    found = troubles_of(Run(own, model))
    return replace(record, warnings=tuple(as_stored(one.message) for one in found))
