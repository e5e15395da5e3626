"""``thresher.cv``: cross-validation of many penalties at once, with all folds from one reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from numpy.typing import ArrayLike

from thresher.cluster.elsewhere import reads_elsewhere
from thresher.data.byrows import identified
from thresher.data.errors import DataError
from thresher.data.formats.tables.heads import columns_seen
from thresher.data.layout import AnyLayout
from thresher.data.order import Order, make_order
from thresher.lanes import budget, table
from thresher.lanes.api import penalties_of, with_choice
from thresher.lanes.estimates import Estimate, Results, estimates_of
from thresher.lanes.folds import Folds, Split, check_size
from thresher.lanes.frontier import check_choice, choose, noted
from thresher.lanes.penalties import Range, leaves_penalty_open, penalty_name, with_penalty
from thresher.learning.api import groups_given
from thresher.learning.beginning import labels_or_part, prepared_for_lanes
from thresher.learning.checks import check_flag
from thresher.learning.finite import DivergedError
from thresher.learning.frames import frame_of, held, identity
from thresher.learning.given import Data, with_groups, with_labels
from thresher.learning.keywords import ModelOptions, check_names
from thresher.learning.model import Model
from thresher.learning.passes import Passes
from thresher.learning.recipe import Recipe, Spec
from thresher.learning.repeating import agreed_passes
from thresher.learning.training import Plan, Trainer
from thresher.learning.trouble import Trouble, warn

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


@reads_elsewhere
def cv(
    data: Data,
    y: ArrayLike | Spec | None = None,
    loss: Spec | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rule: Spec = "ft-ftrl",
    folds: int | str = 10,
    l1: str | Sequence[float] | None = None,
    refit: bool = False,
    outputs: str | None = None,
    passes: int | str = "auto",
    replay: int | str = "64MB",
    order: str = "as-is",
    choose: str = "best",
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: AnyLayout | None = None,
    where: str = "",
    **options: Unpack[ModelOptions],
) -> CrossValidation:
    """Evaluate penalties by cross-validation: each fold by models that have not learned its rows.

    All models learn side by side from one reading of `data`; a second one, of the cache if there is one,
    evaluates them.

    Args:
        data, y, loss, sample_weight, groups: as for `train`; rows of a group are in one fold.
        rule: as for `train`. A rule given with its penalty, or without any, is evaluated as it is.
        folds: number of folds, from 2 on. Of every `folds` rows, one is in each, drawn with `seed`. Or
            ``forward:K``, for rows that are ordered by time: K + 1 consecutive blocks, of which each but the
            first is predicted by models of all rows before it, as with ``TimeSeriesSplit``.
        l1: an ascending list of penalties; ``LO:HI:N``, a geometric progression; or ``auto:N``, which chooses
            one from the first rows (default ``auto:16``).
        refit: train models of all rows, too.
        passes, replay: as for `train`. ``auto`` goes by all rows, and every fold makes the same passes.
        order: as for `train`, but in several passes not one that is drawn anew in each; with such an order
            ``passes="auto"`` makes one pass.
        choose: as for `path`.
        outputs, on_error, threads, cache, layout, where, options: as for `train`.

    Raises the errors of `train`; `DataError` for fewer rows than folds.

    >>> found = cv("examples/data/rcv1_train2000.dat.gz", l1="0.5:4:4", folds=5, refit=True)
    >>> found.choose() < 2, found.points[1].figures["error"] < 0.13
    (True, True)
    >>> 800 < found.model("nnz:900").nonzero < 1000
    True
    """
    check_names(cv, {"rule": rule, **options}, ModelOptions)
    labels, rule = labels_or_part(data, y, "rule", rule, Recipe.rule)
    split = Split.of(folds).checked(str(order), groups_given(groups, layout, options))
    check_flag("refit", refit)
    check_choice(choose)
    plan = _planned(passes, replay)
    read: dict[str, Any] = {"on_error": on_error, "threads": threads, "layout": layout, "where": where}
    data = with_labels(data, labels, sample_weight)
    base, source = with_groups(prepared_for_lanes(data, rule, loss, outputs, options, **read), groups)
    check_order(steady := make_order(str(order), base.seed), plan.passes)
    name = None if l1 is None and not leaves_penalty_open(rule) else penalty_name(base.rule)
    wanted = Range("auto:16" if l1 is None else l1)
    check_size(base, split.count, wanted.count if name else 1, refit)
    values = penalties_of(wanted, steady, source, base) if name else []
    recipes = [with_penalty(base, value) for value in values] or [base]
    learning = Folds(recipes, split.count, forward=split.forward, whole=refit)
    return _chosen(_trainer(learning, source, steady, plan, cache), name, choose)


def _planned(passes: int | str, replay: int | str) -> Plan:
    made, kept = agreed_passes(passes, replay)
    return Plan(made, None, folds=True, replay=kept)


def _trainer(folds: Folds, source: Any, order: Order, plan: Plan, cache: bool) -> Trainer[Folds]:
    """What trains the folds, and reads the data once more to evaluate them."""
    readings = order.reads(plan.passes + 1 + folds.forward)
    reads = Passes(source, readings, cached=cache and hasattr(source, "identity"))
    beside: dict[str, Any] = {"reread": reads.later, "order": order, "columns": columns_seen(source)}
    return counted(Trainer(folds, reads.first, plan, **beside))


def _chosen(trainer: Trainer[Folds], penalty: str | None, choice: str) -> CrossValidation:
    """Train and evaluate the folds; errors come before warnings."""
    outcome = trainer.run()
    found = judged_by(trainer, penalty)
    troubles = [*outcome.warnings, *found.folds.troubles()]
    return with_choice(replace(found, warnings=warn(troubles), choice=choice))


def counted(trainer: Trainer[Folds]) -> Trainer[Folds]:
    """The trainer. If folds go forward, the rows are counted first: their number tells where blocks begin.

    `DataError` for fewer rows than blocks.
    """
    folds = trainer.model
    if not folds.forward:
        return trainer
    with closing(trainer.source.chunks()) as chunks:
        folds.total = sum(len(chunk) for chunk in chunks)
    if folds.total <= folds.count:
        needed = f"forward:{folds.count} needs at least {folds.count + 1} rows"
        raise DataError(f"--folds {needed}; rows read: {folds.total}")
    trainer.source = identified(trainer.reread())
    return trainer


def check_order(order: Order, passes: int, otherwise: str = "be in a different fold") -> None:
    """ValueError if a row would have different numbers in different passes, and so `otherwise`."""
    if passes > 1 and not order.steady:
        raise ValueError(
            f"with the order {order.spec}, a row would {otherwise} in each pass: use once or as-is"
        )


def judged_by(trainer: Trainer[Folds], penalty: str | None) -> CrossValidation:
    """Evaluate the folds that a trainer has trained, by reading its data once more."""
    results, learn = _results_of(trainer), partial(_further, trainer)
    points = estimates_of(results, penalty is not None)
    return CrossValidation(penalty, points, trainer.model, _results=results, _learn=learn)


def _results_of(trainer: Trainer[Folds]) -> Results:
    again = trainer.order.over(trainer.reread(), 1)
    with closing(again.chunks()) as chunks:
        return Results.of(trainer.model, trainer.model.judge(chunks))


def _further(trainer: Trainer[Folds], penalties: list[float]) -> Results | None:
    """Results for further penalties, in the same folds of the same data; None if learning diverges."""
    before = trainer.model
    recipes = [with_penalty(before.recipes[0], value) for value in penalties]
    like: dict[str, Any] = {"forward": before.forward, "total": before.total, "say": trainer.watcher.say}
    folds = Folds(recipes, before.count, whole=before.whole is not None, **like)
    beside: dict[str, Any] = {"watcher": trainer.watcher, "stopper": trainer.stopper}
    again = Trainer(
        folds, trainer.reread(), trainer.plan, reread=trainer.reread, order=trainer.order, **beside
    )
    try:
        again.run()
    except DivergedError:
        return None
    return _results_of(again)
