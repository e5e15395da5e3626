"""The results of `thresher.path`, `thresher.cv` and `thresher.tune`, and tables that compare their models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from thresher.data.errors import DataError
from thresher.engine.atomic import check_writable
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.files.choice import FrontierTable, choose
from thresher.learning.files.model_file import FRONTIER, Contents, ModelFileError, save_all
from thresher.learning.inspection.formatting import format_figure, tab_separated
from thresher.learning.inspection.plots import write
from thresher.learning.model.model import Model
from thresher.options.messages import flag_of, mention_command
from thresher.options.option import UsageError
from thresher.options.training import BEST, PICTURE
from thresher.plans import budget, frontier
from thresher.plans.folds import Estimate, Folds
from thresher.plans.frontier import picture

_HEADS = {"nonzero": "non-zero", "paired_error": "± paired"}


def lines_of(dicts: Sequence[dict[str, Any]], keys: Sequence[str], chosen: int | None) -> list[str]:
    """A line for each model, with a star at the chosen one, and the reason if one was dropped."""
    heads = [_HEADS.get(key, key.replace("holdout_", "held-out ")).replace("_", " ") for key in keys]
    widths = [max(len(head), 10) for head in heads]
    lines = ["  " + "  ".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))]
    for k, one in enumerate(dicts):
        cells = (f"{format_figure(one.get(key)):>{width}}" for key, width in zip(keys, widths, strict=True))
        why = f"  ({one['dropped']})" if one.get("dropped") else ""
        lines.append(("* " if k == chosen else "  ") + "  ".join(cells) + why)
    return lines


def lane_lines(dicts: Sequence[dict[str, Any]], penalty: str, chosen: int | None) -> list[str]:
    """The table of a frontier whose points are given as in JSON."""
    figures = dict.fromkeys(key for one in dicts for key in one if key.startswith("holdout_"))
    progressive = ["progressive_loss"] if any(one["progressive_loss"] is not None for one in dicts) else []
    keys = [penalty, "nonzero", *progressive, *figures]
    return lines_of(dicts, [key for key in keys if key != "holdout_examples"], chosen)


def of_estimates(estimates: Sequence[Estimate], penalty: str | None, chosen: int | None) -> list[str]:
    """The table of a cross-validation; weights are rounded, and ``1se``'s error follows the loss's error."""
    dicts = [one.as_dict(penalty) for one in estimates]
    keys = list(dict.fromkeys(key for one in dicts for key in one if key not in ("spec", "dropped")))
    keys.remove("paired_error")
    keys.insert(keys.index("loss_se") + 1 if "loss_se" in keys else len(keys), "paired_error")
    rows = [one | {"nonzero": one["nonzero"] and round(one["nonzero"])} for one in dicts]
    return lines_of(rows, keys, chosen)


def of_trials(trials: Sequence[Trial], chosen: int | None) -> list[str]:
    """The table of a tuner's settings."""
    settings = [f"{one.rule} {flag_of('rate')} {one.rate}" if one.rate else one.rule for one in trials]
    rows = [{"setting": own, **asdict(one)} for own, one in zip(settings, trials, strict=True)]
    return lines_of(rows, ["round", "rows", "progressive_loss", "late_loss", "setting"], chosen)


@dataclass
class Trial:
    """A setting and its results."""

    rule: str
    """its SPEC"""
    rate: str | None
    round: int
    """round in which it was drawn, from 1"""
    rows: int = 0
    """number of rows learned"""
    progressive_loss: float | None = None
    """over these rows; None if nothing was learned"""
    late_loss: float | None = None
    """over the last half of the rows used for choosing; the criterion; None if dropped"""
    dropped: str | None = None
    """why it was dropped, or None"""


@dataclass(frozen=True)
class Tuned:
    """The best of many settings."""

    model: Model
    """the best model, trained on all rows; ``model.recipe`` trains it alone"""
    trials: list[Trial]
    """all settings with their results"""
    chosen: int
    """number of the best"""
    report: dict[str, Any]
    """``examples``, ``loss`` ... of the model on rows that were not used for choosing"""
    warnings: list[Finding] = field(default_factory=list)
    """trouble with the data or the run"""

    def __repr__(self) -> str:
        """The table printed by ``thresher tune``, with a star at the chosen setting, and the report."""
        figures = ", ".join(f"{name} {format_figure(value)}" for name, value in self.report.items())
        return "\n".join([*of_trials(self.trials, self.chosen), f"rows not used for choosing: {figures}"])

    @property
    def model_(self) -> Model:
        """The best model, which `thresher.predict`, `evaluate`, `save` and the like take in its place."""
        return self.model


@dataclass(frozen=True)
class Frontier:
    """Models of one rule with different penalties, from the weakest to the strongest, of which one is chosen.

    They have learned side by side. After cross-validation, a point has the figures of each fold.
    """

    penalty: str | None
    """name of the penalty parameter; None if a single model was cross-validated"""
    points: list[Any]
    """loss and number of weights for each penalty"""
    models: list[Any]
    """the model of each point: a lane, of which `choose` makes a model that can keep learning; or, from a
    file, the weights to predict with; none if models were only cross-validated"""
    warnings: list[Finding] = field(default_factory=list)
    """trouble with the data or the run"""
    choice: str = BEST
    """what is chosen unless you say otherwise"""
    folds: Folds | None = None
    """how rows were split for cross-validation"""

    def __reduce__(self) -> Any:
        """Raise TypeError for copies and pickles: models that learned side by side share state."""
        raise TypeError("a Frontier cannot be copied or pickled: save it, or copy one of its models")

    @property
    def model_(self) -> Any:
        """The chosen one, which `thresher.predict`, `evaluate` and the like take in place of all."""
        return self._models[self.number()]

    @property
    def _models(self) -> list[Any]:
        if not self.models:
            raise ValueError("no final model was trained: use cv(..., refit=True)")
        return self.models

    def number(self, which: str | int | None = None) -> int:
        """Number of the point for ``best``, ``1se``, ``within:P%``, ``nnz:N`` or a number; ValueError.

        After cross-validation, ``nnz:N`` counts the weights of the models of all rows if there are any, else
        their mean over folds.
        """
        which = self.choice if which is None else which
        if str(which).isdecimal():
            if not int(which) < len(self.points):
                raise UsageError(f"there is no model {which}: they are 0 to {len(self.points) - 1}")
            return int(which)
        return choose(self.points, str(which))

    def choose(self, which: str | int | None = None) -> Any:
        """The selected model, independent of the others: see `number`."""
        found = self._models[self.number(which)]
        return copy(found) if isinstance(found, Model) else found

    def __repr__(self) -> str:
        """The table printed by ``thresher path`` or ``cv``, with a star at the chosen model."""
        try:
            chosen: int | None = choose(self.points, self.choice)
        except ValueError:
            chosen = None
        if self.folds is None:
            penalty = self.penalty or ""
            lines = lane_lines([point.as_dict(penalty) for point in self.points], penalty, chosen)
        else:
            lines = of_estimates(self.points, self.penalty, chosen)
        if chosen is not None:
            use = budget.use_of(self.points, chosen, self.choice)
            lines += [budget.sentence(use)] if use else []
            lines += filter(None, [frontier.end_of_range(self.points, chosen)])
        return "\n".join(lines)

    @classmethod
    def read(cls, file: Contents, made: Callable[[str, Any, Any], Any]) -> Frontier:
        """The models in a file; `made` makes each of its name, header and tensors. `ModelFileError`."""
        table = file.frontier()
        if table is None:
            raise ModelFileError(f"{file.name}: not the models of {mention_command('path')}")
        there = {k: made(file.name, *file.model(k)) for k in file.there}
        models = [there.get(k) for k in range(len(file))]
        return cls(table.penalty, table.points, models, choice=table.choice)

    def plot(self, path: str | PathLike[str], which: str | None = None) -> None:
        """Draw loss over the number of weights to an SVG file. Raises OSError, ValueError."""
        check_writable(replace(PICTURE, name="path").take(path))
        told = self.summary(which)
        write(Path(path), picture(told.points, told.chosen))

    def table(self, which: str | None = None) -> str:
        """The models as tab-separated values, with a header. Raises ValueError."""
        told = self.summary(which)
        rows = [
            {**one.as_dict(told.penalty), "chosen": k == told.chosen} for k, one in enumerate(told.points)
        ]
        return tab_separated(rows, [*dict.fromkeys(key for one in rows for key in one)])

    def save(self, path: str | PathLike[str], which: str | None = None, *, state: bool = False) -> None:
        """Write the same file as ``thresher path``, replacing an older one. Raises OSError.

        With `state`, also what the models need to keep learning: often a thousand times the weights.
        """
        table = self.summary(which)
        pairs = zip(self.points, self._models, strict=True)
        kept = [None if point.dropped is not None else model for point, model in pairs]
        save_all(kept, fspath(path), {FRONTIER: asdict(table)}, state=state)

    def summary(self, which: str | None = None) -> FrontierTable:
        """What a file and a picture have of the models: of folds, the means. ValueError."""
        points = self.points if self.folds is None else [one.told() for one in self.points]
        choice = self.choice if which is None else str(which)
        return FrontierTable(self.penalty or "", points, self.number(choice), choice)

    def decided(self, say: Callable[[str], object] = lambda line: None) -> Frontier:
        """The same models; if the choice selects none of them, with another, and a warning that says so.

        Calls `say` if the choice is at an end of the range. `DataError` if no model has a loss.
        """
        try:
            number = self.number()
        except ValueError as error:
            if self.choice == BEST:
                raise DataError(str(error)) from error
            sizes = [one.size for one in self.points if one.criterion < math.inf]
            fewest = f"nnz:{math.ceil(min(sizes))}" if self.choice.startswith("nnz:") and sizes else ""
            reason = f"{error}; choosing {'that' if fewest else 'the best'} instead"
            other = replace(self, choice=fewest or BEST, warnings=[*self.warnings, Finding("choice", reason)])
            return other.decided(say)
        if message := frontier.end_of_range(self.points, number):
            say(message)
        return self
