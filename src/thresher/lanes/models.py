"""The models of a frontier: the result of `thresher.path`, of which one is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from thresher.lanes import budget, folder, table
from thresher.lanes.frontier import Learned, Point, check_choice, choose, instead_of, noted
from thresher.lanes.lanes import alone
from thresher.lanes.picture import picture
from thresher.learning.frames import frame_of, held, identity
from thresher.learning.model import Model
from thresher.learning.pictures import checked, write
from thresher.learning.trouble import Trouble, warn

if TYPE_CHECKING:
    import pandas as pd

    from thresher.lanes.validation import CrossValidation


@dataclass(frozen=True)
class Frontier:
    """Models of one rule with different penalties, from the weakest to the strongest."""

    penalty: str
    """name of the penalty parameter"""
    points: list[Point]
    """loss and number of weights of each model"""
    models: list[Model]
    """the model of each point. These are lanes: a `copy` can keep learning on its own"""
    warnings: list[Trouble] = field(default_factory=list)
    """trouble with the data or the run"""
    choice: str = "best"
    """what is chosen unless you say otherwise"""
    _learn: Callable[[Learned, list[float]], Learned] | None = field(default=None, repr=False, compare=False)
    """adds models with further penalties; None if the data cannot be read again"""
    _tried: set[str] = field(default_factory=set, repr=False, compare=False)
    """budgets for which penalties were added"""

    def __repr__(self) -> str:
        """The table printed by ``thresher path``, with a star at the chosen model."""
        try:
            chosen: int | None = choose(self.points, self.choice)
        except ValueError:
            chosen = None
        lines = table.of_points(self.points, self.penalty, chosen)
        use = None if chosen is None else budget.use_of(self.points, chosen, self.choice)
        return noted([*lines, *([budget.sentence(use)] if use else [])], self.points, chosen)

    @property
    def model_(self) -> Model:
        """The chosen one, which `thresher.predict`, `evaluate`, `save` and the like take in place of all."""
        return self.models[self.choose()]

    def choose(self, which: str | None = None) -> int:
        """Number of the point selected by ``best``, ``1se``, ``within:P%`` or ``nnz:N``; ValueError.

        The first ``nnz:N`` whose budget lies between two models reads the data once more: models with
        penalties between theirs are added, and numbers of points change. If the data can be read only once, a
        warning says so.
        """
        which = check_choice(self.choice if which is None else which)
        budget.fill(self.points, which, self._tried, None if self._learn is None else self._add)
        return choose(self.points, which)

    def _add(self, penalties: list[float]) -> None:
        """Learn models with further penalties."""
        assert self._learn is not None
        grown = self._learn(Learned(self.points, self.models), penalties)
        self.points[:], self.models[:] = grown

    def model(self, which: str | None = None) -> Model:
        """The model of the selected point, independent of the other lanes."""
        return alone(self.models[self.choose(which)])

    def frame(self) -> pd.DataFrame:
        """A row per model, under the names that all results share. ImportError without pandas.

        See docs/python.md.
        """
        chosen = self.choose()
        return frame_of(
            {
                **identity(model.recipe),
                "examples": model.examples,
                "nonzero": point.nonzero,
                "progressive_loss": point.progressive_loss,
                "chosen": k == chosen,
                "dropped": point.dropped,
                **held(point.holdout),
            }
            for k, (point, model) in enumerate(zip(self.points, self.models, strict=True))
        )

    def plot(self, path: str | PathLike[str], which: str | None = None) -> None:
        """Draw loss over the number of weights to an SVG file. Raises OSError, ValueError."""
        target = checked(path)
        chosen = self.choose(which)
        write(target, picture(self.points, chosen))

    def save(self, path: str | PathLike[str], which: str | None = None) -> None:
        """Write the same folder as ``thresher path``, replacing an older one. Raises OSError."""
        folder.check_folder(Path(path))
        chosen = self.choose(which)
        found = folder.Table(self.penalty, self.points, chosen, self.choice if which is None else which)
        folder.save(Path(path), found, self.models)


F = TypeVar("F", "Frontier", "CrossValidation")


def with_choice(found: F) -> F:
    """The models, of which one is chosen: `instead_of` it, with a warning, if the criterion selects none."""
    try:
        found.choose()
    except ValueError as error:
        if found.choice == "best":
            return found  # choosing explains it
        instead = instead_of(found.points, found.choice)
        which = "the best" if instead == "best" else "that"
        warnings = found.warnings + warn([Trouble("choice", f"{error}; choosing {which} instead")])
        return with_choice(replace(found, choice=instead, warnings=warnings))
    return found
