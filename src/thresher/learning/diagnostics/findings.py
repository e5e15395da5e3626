"""Trouble with the data or a run that users must know before they trust the model, each in one line.

Here are those of hold-outs, folds and evaluation; `column_findings` and `run_findings` have the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from thresher.data.errors import printable
from thresher.learning.inspection.formatting import format_figure
from thresher.options.messages import as_shown, mention, warn_user

FEW = 100
"""Minimum number of rows for a warning; with fewer, chance would explain it."""
_RESOLVED = 2e-6
"""Numbers whose range is at most this share of their size take at most 34 values in float32."""
FAR = 1.5
"""A loss this many times that of the best constant is far above it."""
_CHANCE = 8.0
"""A log loss above that of the base rate by this sum over rows is so by two standard errors: if the base rate
is right, the difference of a row has a variance of about twice its mean."""


class Finding(NamedTuple):
    """An observation about the data or the run, with a remedy."""

    name: str
    """a short slug, such as ``scales``"""
    message: str
    """one line"""


class EarlyFinding(Finding):
    """A finding that users were told of while the run went on."""


class TroubleWarning(UserWarning):
    """Warning about trouble with the data or the run."""


def warn(troubles: list[Finding]) -> list[Finding]:
    """Emit a Python warning for each that is not told yet; return them as they are shown."""
    for trouble in untold(troubles):
        warn_user(f"{printable(as_shown(trouble.message))} [{trouble.name}]", TroubleWarning)
    return [trouble._replace(message=as_shown(trouble.message)) for trouble in troubles]


def untold(troubles: Sequence[Finding]) -> list[Finding]:
    """Those that the run has not told of."""
    return [one for one in troubles if not isinstance(one, EarlyFinding)]


WEIGHTLESS = Finding(
    "empty-holdout",
    "no held-out row has an importance above 0, so there is nothing to judge by: check the importances, or"
    f" hold out other rows, such as {mention(holdout=0.1)}",
)


def no_groups(column: str) -> Finding:
    """Rows without groups, which the data, or a `column` of them, ought to give."""
    group = mention(group=column) if column else mention("group")
    reason = "no row has a group, so rows were drawn one by one"
    return Finding("no-groups", f"{reason}: leave {group} out, or name what rows belong to")


def unresolved_labels(head: Any, rows: int, low: float, high: float) -> str | None:
    """Labels that are numbers from `low` to `high`, so far from 0 that float32 hardly tells them apart."""
    size = max(abs(low), abs(high))
    if rows < 2 or head.classifies or head.count > 1:
        return None
    if high - low > _RESOLVED * size or (low == high and size < 2.0**24):
        return None
    step = float(np.spacing(np.float32(size)))
    reason = f"labels around {low:.4g} differ by no more than {max(high - low, step):.3g}"
    unlike = f"which float32 does not resolve (its numbers there are {step:.3g} apart)"
    return f"{reason}, {unlike}: subtract {low:.9g} from the labels"


def worse_than_base(figures: Mapping[str, Any], head: Any) -> list[Finding]:
    """Predictions of other data than those learned that are worse than the best constant for these.

    Of the log loss by more than chance explains; of the deviance of amounts, which have long tails, by far.
    Not of a loss that counts a class more often, whose probabilities are no shares.
    """
    likely = "log_loss" in figures
    name, constant = ("log loss", "the base rate") if likely else ("deviance", "the mean")
    found, base = (figures.get(f"{of}{name.replace(' ', '_')}") for of in ("", "base_"))
    if not base or figures["examples"] <= FEW or getattr(head.loss, "positive", 1.0) != 1.0:
        return []
    chance = base + _CHANCE / figures["examples"] if likely else math.inf
    if found <= min(FAR * base, chance):
        return []
    reason = (
        f"the {name} is {format_figure(found)}, that of {constant}, the best constant, {format_figure(base)}"
    )
    remedy = "check that labels and columns mean the same as in the training data; if so, train on more rows"
    return [Finding("worse-than-constant", f"{reason}: {remedy}")]
