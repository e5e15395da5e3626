"""``thresher.cv``: cross-validation of many penalties at once, with all folds from one reading."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thresher.lanes import budget, table
from thresher.lanes.estimates import Estimate, Results, estimates_of
from thresher.lanes.folds import Folds
from thresher.lanes.frontier import check_choice, choose, noted
from thresher.learning.frames import frame_of, held, identity
from thresher.learning.model import Model
from thresher.learning.trouble import Trouble

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CrossValidation:
    """Results of cross-validation for each penalty, from the weakest to the strongest."""

    penalty: str | None
    """name of the penalty parameter; None if a single model was evaluated"""
    points: list[Estimate]
    """loss and number of weights for each penalty"""
    folds: Folds
    """the models of the first reading"""
    warnings: list[Trouble] = field(default_factory=list)
    """trouble with the data or the run"""
    choice: str = "best"
    """what is chosen unless you say otherwise"""
    _results: Results | None = field(default=None, repr=False, compare=False)
    _learn: Callable[[list[float]], Results | None] | None = field(default=None, repr=False, compare=False)
    """evaluates further penalties"""
    _tried: set[str] = field(default_factory=set, repr=False, compare=False)
    """budgets for which penalties were added"""

    def __repr__(self) -> str:
        """The table printed by ``thresher cv``, with a star at the chosen one."""
        try:
            chosen: int | None = choose(self.points, self.choice)
        except ValueError:
            chosen = None
        use = None if chosen is None else budget.use_of(self.points, chosen, self.choice)
        lines = table.of_estimates(self.points, self.penalty, chosen)
        return noted([*lines, *([budget.sentence(use)] if use else [])], self.points, chosen)

    def choose(self, which: str | None = None) -> int:
        """Number of the point selected by ``best``, ``1se``, ``within:P%`` or ``nnz:N``; ValueError.

        With `refit`, ``nnz:N`` counts the weights of the models of all rows, else their mean over folds. The
        first ``nnz:N`` whose budget lies between two penalties evaluates further ones between them, which are
        added; numbers of points then change.
        """
        which = check_choice(self.choice if which is None else which)
        self.fill(which)
        return choose(self.points, which)

    def fill(self, which: str) -> None:
        """Evaluate further penalties if `which` is ``nnz:N`` and its budget lies between two of them."""
        budget.fill(self.points, which, self._tried, self._add)

    def _add(self, penalties: list[float]) -> None:
        """Evaluate further penalties."""
        more = None if self._learn is None else self._learn(penalties)
        if more is not None and self._results is not None:
            grown = self._results.joined(more)
            vars(self._results).update(vars(grown))
            self.points[:] = estimates_of(grown, self.penalty is not None)

    def frame(self) -> pd.DataFrame:
        """A row per penalty and fold, counted from 1, under the names that all results share.

        See docs/python.md. ImportError without pandas.
        """
        chosen, found = self.choose(), self._results
        assert found is not None
        return frame_of(
            {
                **identity(recipe),
                "fold": fold + 1,
                "nonzero": None if found.dropped[k] else found.counts[k][fold],
                "chosen": k == chosen,
                "dropped": found.dropped[k],
                **(held(found.judged[k][fold]) if found.judged[k] else {}),
            }
            for k, recipe in enumerate(found.recipes)
            for fold in range(self.folds.count)
        )

    @property
    def model_(self) -> Model:
        """The chosen one, which `thresher.predict`, `evaluate`, `save` and the like take; as `model`."""
        return self._whole[self.choose()]

    def model(self, which: str | None = None) -> Model:
        """The model with that penalty trained on all rows, which can keep learning on its own.

        ValueError unless cross-validation ran with `refit`.
        """
        number = self.choose(which) if self.folds.whole else 0
        return copy(self._whole[number])

    @property
    def _whole(self) -> list[Model]:
        if self._results is None or self._results.whole is None:
            raise ValueError("no final model was trained: use cv(..., refit=True)")
        return self._results.whole
