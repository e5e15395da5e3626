"""Trouble with labels, importances, features, losses and weights, at the end of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from thresher.data.columns import LABEL, NUMERIC, OFFSET
from thresher.data.errors import first_few, shortened
from thresher.data.formats.tables.column_statistics import ColumnSeen
from thresher.data.labels import is_number
from thresher.data.report import Report
from thresher.learning.diagnostics.advice import (
    feature_names,
    magnitude,
    measures_scales,
    scale_remedy,
    step_size,
    without_importances,
)
from thresher.learning.diagnostics.column_findings import (
    is_id,
    is_text,
    troubles_of_columns,
    troubles_of_reading,
)
from thresher.learning.diagnostics.findings import FAR, FEW, Trouble, unresolved_labels
from thresher.learning.diagnostics.leaks import LEAST
from thresher.learning.diagnostics.stream_statistics import Seen, base_rate_loss, worst_constant_loss
from thresher.learning.inspection.formatting import shown
from thresher.learning.model.preparation import LISTED
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
_MANY = 20
"""Rows of a class that is not rare."""
_LONE = 3
"""If more classes have a single row, rare classes are normal in these data."""
_LONGEST = 40
"""Characters of a label in a message."""
_UNLIKE = 20.0
"""A feature this many times the typical size is on another scale."""
_NARROW = 0.1
"""Values whose range is at most this share of their size are far from 0."""
_OFTEN, _ABSENT = 20, 0.1
"""A feature that has values in fewer rows does not matter; one that lacks them in fewer is centred."""
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

    seen: Seen
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

    @cached_property
    def far(self) -> float:
        """A loss far above `base`, also in absolute terms, since `base` may be close to zero."""
        return FAR * (self.base or 0.0) + _LITTLE * worst_constant_loss(self.model.head, self.seen)

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
    def fails(self) -> bool:
        """Whether the model does far worse than the best constant prediction."""
        if self.seen.rows <= FEW or self.base is None:
            return False
        late = self.loss if self.is_held_out else min(self.loss, self.seen.late)
        return late > self.far

    @property
    def is_suspicious(self) -> bool:
        """Whether the model is so good that a column may hold the label."""
        late = self.loss if self.is_held_out else min(self.loss, self.seen.late)
        return self.seen.rows >= LEAST and self.base is not None and late < _SUSPICIOUS * self.base

    @property
    def lacks_numbers(self) -> bool:
        """Whether columns lack numbers in the first rows, which tells a model nothing."""
        rows = max((one.rows for one in self.columns), default=0)
        lacking = any(one.kind == NUMERIC and one.rows < rows for one in self.columns)
        return lacking and self.seen.rows >= LEAST

    @property
    def loss(self) -> float:
        """The held-out loss; without a hold-out of some size, that of the last pass."""
        held = self.heldout
        return held if held is not None and self.is_held_out else self.seen.pass_losses[-1]

    @property
    def against_base(self) -> str:
        """The loss next to that of the best constant, as text."""
        which = "progressive loss" if len(self.seen.passes) == 1 else "loss on rows seen before"
        which = "held-out loss" if self.is_held_out else which
        return f"the {which} is {shown(self.loss)}, that of the best constant prediction {shown(self.base)}"


def _sorted_labels(run: Run) -> Trouble | None:
    """Labels in a few long runs, or that only rise or fall."""
    seen = run.seen
    if seen.rows <= FEW:
        return None
    times = "once" if seen.changes == 1 else f"{seen.changes:,} times"
    reason = f"the label changes {times} in {seen.rows:,} rows"
    expected = seen.expected_changes
    if expected is not None and expected >= 20 and seen.changes <= _GROUPED * expected:
        reason += f", where a random order would have about {round(expected):,}"
    elif expected is None and seen.changes >= 50 and min(seen.rises, seen.falls) <= 0.01 * seen.changes:
        reason = f"the label {'rises' if seen.rises else 'falls'} from row to row"
    elif seen.largest_shift >= _SHIFT:
        reason = "up to some row nearly all labels are the same, and from there on nearly all are the other"
    else:
        return None
    remedy = f"shuffle the rows with {mention(order='once')}, or {mention(order='buffer:N')} for a stream"
    return Trouble("sorted-labels", f"the labels are sorted ({reason}): {remedy}")


def _no_importance(run: Run) -> Trouble | None:
    """No row has an importance above 0."""
    if run.seen.rows or not run.seen.weightless:
        return None
    reason = f"all {run.seen.weightless:,} rows have importance 0, so nothing was learned"
    return Trouble("no-importance", f"{reason}: check the importances")


def _importances(run: Run) -> Trouble | None:
    """Importances that differ much between classes, as after sampling one of them, or far above 1."""
    seen, recipe = run.seen, run.model.recipe
    if seen.rows <= FEW:
        return None
    head = run.model.head
    classes = head.classifies and head.outputs.kind in ("one", "classes")
    means = seen.importances(head.domain.name == "binary") if classes else {}
    if recipe.sample is not None:
        return _sampled(run, Sample.of(recipe.sample))
    if len(means) > 1 and max(means.values()) >= _UNEQUAL * min(means.values()):
        least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        which, other = (_class_of(run, label) for label in (most, least))
        times = f"{means[most] / means[least]:.3g}"
        reason = f"the importances of {which} are {times} times those of {other}, so that few rows decide"
        return Trouble(
            "importances", f"{reason}: {without_importances(run.weighed_beside, recipe, head, means)}"
        )
    if seen.importance >= _UNEQUAL and not type(recipe.make_rule()).RELATIVE_IMPORTANCE:
        reason = f"the importances are {seen.importance:.3g} on average, and each makes a step longer"
        remedy = (
            f"divide them by their mean, or take {mention(rule='ft-ftrl')} or normalized, which need no such"
            " scale"
        )
        return Trouble("importances", f"{reason}: {remedy}")
    return None


def _sampled(run: Run, sample: Sample) -> Trouble | None:
    """Importances of a sample that are large, where there is another way."""
    times = 1 / min(sample.shares.values())
    if sample.correct or times <= _UNEQUAL or not can_correct(run.model.head):
        return None
    reason = f"the importances of sampled rows are up to {times:.3g}, so that few rows decide"
    return Trouble("importances", f"{reason}: use {mention(sample=sample._replace(correct=True).spec)}")


def _class_weight(run: Run) -> Trouble | None:
    """A loss that counts one of two classes more often, so that probabilities are not those of the rows."""
    recipe, head = run.model.recipe, run.model.head
    times = getattr(head.loss, "positive", 1.0)
    if run.seen.rows <= FEW or recipe.calibrate or not head.joint.PROBABILITY or head.outputs.kind != "one":
        return None
    if 1 / _WEIGHED < times < _WEIGHED:
        return None
    reason = (
        f"the loss counts positives {times:g} times, so that the odds of probabilities are {times:g} times"
    )
    return Trouble("class-weight", f"{reason} those of the rows: for these, use {mention(calibrate=True)}")


def _class_of(run: Run, label: float) -> str:
    """A class in a message."""
    if run.model.head.outputs.kind == "classes" or run.classes:
        return f"class {_label_of(run, label)}"
    return "positives" if label > 0 else "negatives"


def _label_of(run: Run, label: float) -> str:
    """A label as the data have it."""
    outputs = run.model.head.outputs
    place = int(label) - outputs.low if outputs.kind == "classes" else int(label > 0)
    return run.classes[place] if 0 <= place < len(run.classes) else f"{label:g}"


def _mixed_labels(run: Run) -> Trouble | None:
    """Labels -1 and 0 in the same data: perhaps one class each, but a model of two takes both as negative."""
    seen = run.seen
    if run.model.head.domain.name != "binary" or not seen.zeros or seen.low == 0:
        return None
    zeros = "1 row has 0" if seen.zeros == 1 else f"{seen.zeros:,} rows have 0"
    reason = f"the labels -1 and 0 both occur ({zeros}), and both mean the negative class"
    return Trouble("mixed-labels", f"{reason}: if they are two classes, use {mention(outputs='classes')}")


def _labels(run: Run) -> Trouble | None:
    """Labels that are all the same, or a class that may stand for missing or misspelt labels."""
    head, seen = run.model.head, run.seen
    if not head.classifies or head.outputs.kind not in ("one", "classes"):
        return None
    if seen.rows > FEW and seen.low == seen.high:
        if run.goes_on:
            return None
        return Trouble("one-label", f"all {seen.rows:,} labels are the same, so there is nothing to learn")
    odd = [word for word in run.classes if is_number(word.encode()) and not any(map(str.isdigit, word))]
    if not odd:
        return _lone_class(run)
    reason = f"the label {' and the label '.join(odd)} is a class of its own"
    return Trouble("missing-labels", f"{reason}: if it means that the label is missing, remove these rows")


def _lone_class(run: Run) -> Trouble | None:
    """Classes of which at most one row is learned, where every other class has many."""
    counts = dict.fromkeys(run.classes, 0)
    for label, count in run.seen.counts.items():
        name = _label_of(run, label)
        counts[name] = counts.get(name, 0) + count
    lone = [name for name, count in counts.items() if count <= 1]
    called = [shortened(name, _LONGEST) for name in lone]
    least = min((count for count in counts.values() if count > 1), default=0)
    if not 0 < len(lone) <= _LONE or least < _MANY or run.seen.rows <= FEW or run.goes_on:
        return None
    if len(lone) > 1:
        reason = f"at most one of the rows learned has each of the labels {', '.join(called)}"
    else:
        reason = f"{'only one' if counts[lone[0]] else 'none'} of the rows learned has the label {called[0]}"
    reason = f"{reason}, and other labels have {least:,} or more"
    return Trouble("lone-class", f"{reason}: if it is a mistake, correct it; if not, add more such rows")


def _large(run: Run) -> list[tuple[str, float]]:
    """Names and largest values of features on another scale than the rest, largest first."""
    sizes = sorted([1.0, *(size for size in run.seen.largest if size)])  # 1: the intercept
    typical = sizes[(len(sizes) - 1) // 2]
    found = [(key, size) for key, size in run.seen.features.items() if size > _UNLIKE * typical]
    found.sort(key=lambda one: -one[1])
    names = feature_names([key for key, _ in found], run.model.recipe.layout)
    return [(name, size) for name, (_, size) in zip(names, found, strict=True)]


def _scales(run: Run) -> Trouble | None:
    """Features of very different scales, if the loss shows that it matters."""
    recipe = run.model.recipe
    large = _large(run) if run.fails and recipe.scale is None else []
    if not large or (measures_scales(recipe) and _sorted_labels(run) is not None):
        return None
    listed = first_few([f"{name} up to {magnitude(size)}" for name, size in large])
    remedy = scale_remedy(recipe)
    return Trouble("scales", f"features of very different scale ({listed}): {run.against_base}; {remedy}")


def _off_centre(run: Run) -> Trouble | None:
    """A feature that is often 0, so that it is not centred, and whose other values are far from 0."""
    seen, layout = run.seen, run.model.recipe.layout
    if not run.model.recipe.centre or seen.measured < FEW:
        return None
    found = [
        (key, low, high, 1 - count / seen.measured)
        for key, (low, high, count) in seen.spans.items()
        if _OFTEN <= count <= (1 - _ABSENT) * seen.measured and low * high > 0 and low < high
        if high - low <= _NARROW * max(abs(low), abs(high))
    ]
    if not found:
        return None
    key, low, high, share = max(found, key=lambda one: one[3])
    (name,) = feature_names([key], layout)
    seldom = f"{name} is 0 in {share:.0%} of the first rows, and from {low:.6g} to {high:.6g} in the others"
    remedy = f"subtract {(low + high) / 2:.6g} from these"
    gap = ", or leave its cell empty where 0 means missing" if layout is not None and layout.columns else ""
    return Trouble("off-centre", f"{seldom}, which hides how they differ: {remedy}{gap}")


def _raw_exposure(run: Run) -> Trouble | None:
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
    return Trouble("raw-exposure", f"{reason}: if it is an exposure, give its logarithm")


def _loss(run: Run) -> Trouble | None:
    """A loss above that of a constant, or a rising one."""
    smaller, tune = step_size(run.model.recipe), f"let {mention_command('tune')} find a better setting"
    remedy = f"use a smaller step size{smaller}, or {tune}" if smaller else tune
    if run.fails:
        offsets = (
            "check the offsets (of an exposure, give the logarithm), " if run.model.recipe.offset else ""
        )
        remedy = f"{offsets}{remedy}"
        return Trouble("worse-than-constant", f"{run.against_base}: {remedy}")
    if run.seen.rows < 10 * FEW or len(run.seen.passes) > 1 or run.is_held_out or run.base is None:
        return None
    best, late = run.seen.best_stretch, run.seen.late
    if not late > max(2 * best, run.far):  # NaN if nothing was learned late, as after a race
        return None
    reason = f"the progressive loss rises along the stream, from {shown(best)} to {shown(late)}"
    return Trouble("loss-rises", f"{reason}, above that of the best constant, {shown(run.base)}: {remedy}")


def _unresolved_labels(run: Run) -> Trouble | None:
    """Numbers to predict that float32 does not tell apart."""
    one = not run.model.head.classifies and run.model.head.count == 1 and run.seen.rows > 1
    return unresolved_labels(run.seen.low, run.seen.high) if one else None


def _nothing_left(run: Run) -> Trouble | None:
    """All weights except the intercept are zero, in every one of several models."""
    models = getattr(run.model, "models", [run.model])
    if any(model.nonzero for model in models) or run.seen.rows <= FEW:
        return None
    nothing_seen = run.model.recipe.admit is None and not any(model.features_seen for model in models)
    if run.seen.alike or (nothing_seen and run.seen.features):
        reason = f"{NO_WEIGHT}, because none varies: each has one value, or none, in all rows"
        return Trouble("no-weights", f"{reason}: give columns whose values differ")
    if nothing_seen:
        return Trouble(
            "no-weights", f"{NO_WEIGHT}, because no row has a feature: check how the data are read"
        )
    own = [column for column in run.columns if column.kind != LABEL]
    if own and all(is_text(column) or is_id(column) for column in own):
        reason = f"{NO_WEIGHT}, because nearly every cell is a category of its own"
        return Trouble(
            "no-weights", f"{reason}: read texts as words, and give columns whose values come again"
        )
    rule = run.model.recipe.make_rule()
    penalties = {name: getattr(rule, name) for name in type(rule).PENALTIES if getattr(rule, name, 0)}
    if run.model.recipe.admit in (None, LISTED):
        return no_weights(penalties)
    return no_weights(penalties, f", or a lower {mention('admit')} (currently {run.model.recipe.admit})")


def no_weights(penalties: Mapping[str, float], more: str = "") -> Trouble:
    """The trouble with a model whose weights are all zero, under these penalties."""
    smaller = " ".join(f"{name} (currently {value:g})" for name, value in penalties.items() if value)
    remedy = (
        f"use a smaller {smaller}" if smaller else "there may be too few examples, or too small a step size"
    )
    return Trouble("no-weights", f"{NO_WEIGHT}; the model predicts the same for every row: {remedy}{more}")


def _overfits(run: Run) -> Trouble | None:
    """Held-out loss that rises with each pass while the loss on the rows learned falls."""
    held, learned = run.seen.heldout_losses, run.seen.pass_losses
    if run.patience or len(held) < 2 or len(held) < len(learned):
        return None
    best = min(range(len(held)), key=held.__getitem__)
    after = held[best:]
    rises = (
        all(b >= a for a, b in pairwise(after))
        and after[-1] > after[0] + _NOTICED * (run.base or 0.0)
        and after[-1] > (_CLEARLY if run.replays else _SLIGHTLY) * after[0]
    )
    if not rises or learned[-1] >= learned[best]:
        return None
    reason = f"from {shown(held[best])} after pass {best + 1} to {shown(held[-1])} after pass {len(held)}"
    remedy = f"use {mention(passes=best + 1)}, or {mention(early_stop=1)} to keep the best pass"
    return Trouble(
        "overfitting", f"the held-out loss rises {reason}, while that on the rows learned falls: {remedy}"
    )


def _unmet(run: Run) -> Trouble | None:
    """Features whose weights were to keep a sign, and that no row has."""
    if not run.seen.unmet:
        return None
    named = first_few(run.model.recipe.signs().named(run.seen.unmet, run.model.recipe.layout))
    reason = f"no row has a number other than 0 for {named}"
    return Trouble("no-such-column", f"{reason}: check the name, or leave it out")


FINDERS: tuple[Callable[[Run], Trouble | None], ...] = (
    _no_importance,
    _labels,
    _mixed_labels,
    _sorted_labels,
    _importances,
    _class_weight,
    _scales,
    _off_centre,
    _raw_exposure,
    _unresolved_labels,
    _nothing_left,
    _unmet,
    _overfits,
)
"""Finders of trouble with a run, except `_loss`, in the order in which they report."""
_EXPLAINS_LOSS = {
    "sorted-labels",
    "importances",
    "scales",
    "overfitting",
    "raw-exposure",
    "unresolved-labels",
}


def troubles_of(run: Run) -> list[Trouble]:
    """All trouble with a run, at most one per finder."""
    found = troubles_of_columns(run.columns, run.model.recipe.layout)
    found += troubles_of_reading(run.report, run.model.recipe.layout, run.goes_on)
    found += [trouble for find in FINDERS if (trouble := find(run)) is not None]
    if any(one.name == "unresolved-labels" for one in found):  # which no smaller penalty would mend
        found = [one for one in found if one.name != "no-weights"]
    loss = None if any(one.name in _EXPLAINS_LOSS for one in found) else _loss(run)
    return found if loss is None else [*found, loss]


def with_warnings(record: Record, model: Any, seen: Seen) -> Record:
    """The record with the messages that the model file keeps.

    They depend on the rows, their order and the recipe alone: not on hold-outs, on how the rows are split
    into files, or on other models trained on the same reading.
    """
    own = seen.of_model(getattr(model, "curve", ()), model.tally, model.repeated)
    found = troubles_of(Run(own, model))
    return replace(record, warnings=tuple(as_stored(one.message) for one in found))
