"""Which of many models to use: of a frontier, best, 1se, within:P% or nnz:N; of models by column, a value."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from thresher.learning.training.progress import Figures
from thresher.options.kinds import WrongValueError
from thresher.options.messages import mention, shell_or_python
from thresher.options.option import UsageError
from thresher.options.synonyms import did_you_mean

LOSS = "loss"
_FALLING = (
    *(LOSS, "error", "rmse", "mae", "deviance", "log_loss", "normalised_entropy", "brier"),
    "calibration_error",
)
_RISING = (
    *("auc", "average_precision", "precision", "recall", "f1", "r2", "d2"),
    *(f"{mean}_{name}" for mean in ("micro", "macro") for name in ("precision", "recall", "f1")),
)
JUDGES = (*_FALLING, *_RISING)
"""Figures of `evaluate` that models may be judged by, beside those of the largest margins"""
_FIGURES = ("examples", "loss", "error", "rmse", "micro_f1", "auc")
"""Figures of `Evaluation`, in the order in which they are shown."""
CHOICES = "best, 1se, within:P% or nnz:N"
BY = "by"
"""The rows of models each of which learns those with one value of a column"""
ALL = "all"
"""What the model of all rows is called beside these"""


@dataclass(frozen=True)
class Point:
    """A model on the frontier."""

    penalty: float | None
    """None if its rule has no penalty"""
    spec: str
    """SPEC of its rule; training with it alone gives the same model"""
    nonzero: int | float | None
    """None if it was dropped from cross-validation"""
    progressive_loss: float | None
    """None if nothing was learned"""
    holdout: Figures | None
    """figures of `Evaluation` on the hold-out; None without a hold-out"""
    paired_error: float | None
    """standard error of the difference between its held-out loss and the best one"""
    dropped: str | None = None
    """why it was dropped, or None"""
    judge: str = LOSS
    """the figure of the hold-out to choose by"""

    @property
    def loss(self) -> float:
        """The held-out loss; without a hold-out the progressive loss; infinite for a dropped lane."""
        found = self.progressive_loss if self.holdout is None else self.holdout["loss"]
        return float("inf") if self.dropped is not None or found is None else float(found)

    @property
    def figure(self) -> float:
        """The figure that it is chosen by, as it is; infinite if there is none."""
        if self.dropped is not None or self.holdout is None:
            return self.loss
        found = self.holdout[self.judge]
        return float("inf") if found is None else float(found)

    @property
    def criterion(self) -> float:
        """The figure, with its sign changed if the largest is best; infinite if there is none."""
        if self.dropped is not None or self.holdout is None:
            return self.loss
        return criterion_of(self.judge, self.holdout)

    @property
    def size(self) -> float:
        """The number of nonzero weights to choose by."""
        return self.nonzero or 0

    def as_dict(self, name: str) -> dict[str, Any]:
        """The content in JSON, with the penalty under its `name`."""
        found = self.holdout or {}
        held = {f"holdout_{key}": found[key] for key in (*_FIGURES, self.judge) if key in found}
        own = asdict(self)
        apart = {k: v for k, v in own.items() if k not in ("penalty", "holdout", "judge")}
        return {name: own["penalty"], **apart, **held}


@dataclass(frozen=True)
class FrontierTable:
    """What a file knows of the models of a frontier, from the weakest penalty to the strongest."""

    penalty: str
    """name of the penalty parameter"""
    points: list[Point]
    chosen: int
    choice: str

    def as_dict(self) -> dict[str, Any]:
        """The content in JSON, as users read it."""
        own = {"chosen": self.chosen, "choice": self.choice, "penalty": self.penalty}
        lanes = [point.as_dict(self.penalty) for point in self.points]
        return {"lanes": lanes, **own, "judge": self.points[0].judge}


def check_choice(text: object, choices: str = CHOICES) -> str:
    """Validate a choice; ValueError, which names the `choices`."""
    if not isinstance(text, str) or not re.fullmatch(r"best|1se|within:\d+(\.\d+)?%|nnz:\d+", text):
        raise ValueError(f"a choice must be {choices}, not {text!r}")
    return text


def check_judge(text: object) -> str:
    """The name of a figure to judge by, with ``_`` for ``-``. `WrongValueError`."""
    name = str(text).replace("-", "_")
    if name not in JUDGES and not re.fullmatch(r"(precision|recall|lift)@([1-9]\d*|\d*\.?\d+%)", name):
        most = "precision@, recall@ or lift@ with a number of examples or a share, such as lift@1%"
        raise WrongValueError(f"one of {', '.join(JUDGES)}, or {most}", did_you_mean(str(text), JUDGES))
    return name


def criterion_of(judge: str, figures: Figures) -> float:
    """What is lowest for the best model: the figure, or minus it if the largest is best; infinite if None."""
    found = figures[judge]
    if found is None or math.isnan(found):
        return math.inf
    return float(found) if judge in _FALLING else -float(found)


def choose(points: Sequence[Point], text: str) -> int:
    """Number of the point selected by `text`.

    ``best``: the lowest loss, or the best figure of another judge. ``1se``: the sparsest model whose loss is
    at most one standard error of the paired difference above the lowest (after Breiman et al.,
    Classification and Regression Trees (1984), section 3.4.3). ``within:1%``: the sparsest whose loss is at
    most 1 % higher (Langford, Li and Zhang (JMLR 2009), section 5). ``nnz:N``: the best with at most N
    weights. ValueError if there is no such model.
    """
    check_choice(text, f"{CHOICES}, or the number of a model, from 0")
    able = {k: (one.criterion, one.size) for k, one in enumerate(points) if one.criterion < float("inf")}
    if not able:
        raise ValueError("no model has a finite loss: learning diverged, or all importance weights are zero")
    kind, _, given = text.partition(":")
    if kind == "nnz":
        fewest = min(size for _, size in able.values())
        able = {k: one for k, one in able.items() if one[1] <= int(given)}
        if not able:
            strongest = max(one.penalty or 0.0 for one in points)
            wider = mention(l1=f"{strongest:.6g}:{100 * strongest:.6g}:16")
            fewer = f"; stronger penalties leave fewer, such as {wider}" if strongest else ""
            sparsest = f"the sparsest has {fewest:,.12g}{fewer}"
            raise UsageError(f"no model has at most {int(given):,} weights: {sparsest}")
    best = min(able, key=lambda k: able[k])
    if kind in ("best", "nnz"):
        return best
    least = points[best].criterion
    if kind == "1se":
        if points[best].paired_error is None:
            if points[best].judge != LOSS:
                raise UsageError(no_standard_error(points[best].judge))
            raise UsageError(f"1se needs the losses of held-out rows, two or more: give {mention('holdout')}")
        close = [k for k in able if able[k][0] - least <= float(points[k].paired_error or 0.0)]
    else:
        close = [k for k in able if able[k][0] - least <= abs(least) * float(given[:-1]) / 100]
    return min(close, key=lambda k: able[k][::-1])


def no_standard_error(judge: str) -> str:
    """Why ``1se`` chooses none of models judged by a figure that is no mean over rows, and what to do."""
    instead = f"leave {mention(judge=judge)} out, or use {mention(choose='within:1%')}"
    return f"1se needs the standard errors of losses: {instead}"


def by_spec(column: str) -> str:
    """How rows are dealt to models by a column, as files and options spell it."""
    return f"{BY}:{column}"


def column_of(spec: str) -> str | None:
    """The column of a `by_spec`; None if rows are dealt in another way."""
    kind, _, column = spec.partition(":")
    return column if kind == BY else None


def not_one(column: str, path: str | None = None) -> str:
    """That models by a column, perhaps of a file, are not one, and how to take one out."""
    command, models = ("MODELS", "models") if path is None else (path, "thresher.load(path)")
    one = shell_or_python(f"thresher choose {command} VALUE -m MODEL takes out", f"{models}.of(value) is")
    return f"models by {column}, not one: {one} the model of a value"


def by_option(column: str) -> str:
    """The option for models by a column, in a message."""
    return shell_or_python(f"--by {shlex.quote(column)}", f"models={by_spec(column)!r}")
