"""``thresher.train``; ``thresher.path``, a model for each of many penalties from one reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from numpy.typing import ArrayLike

from thresher.data.errors import DataError
from thresher.data.formats.tables.heads import columns_seen
from thresher.data.layout import AnyLayout
from thresher.data.order import Order, make_order
from thresher.lanes import auto, folder, table
from thresher.lanes.frontier import Point, choose, points_of
from thresher.lanes.judging import LanesHoldout
from thresher.lanes.lanes import Lanes
from thresher.lanes.penalties import Range, penalty_name, with_penalty
from thresher.learning.api import held_of, planned, readout_of
from thresher.learning.beginning import classes_in, labels_or_rule, opened, prepared
from thresher.learning.checks import check_flag
from thresher.learning.feature_names import check_namer_again, keep_names
from thresher.learning.given import Data, with_labels
from thresher.learning.keywords import ModelOptions, TrainOptions, check_names, layout_said, parted
from thresher.learning.model import Model
from thresher.learning.passes import Passes
from thresher.learning.predicting import ModelOrFile
from thresher.learning.readout import Readout
from thresher.learning.recipe import Recipe, Spec
from thresher.learning.training import Plan, Trainer
from thresher.learning.trouble import Trouble, warn
from thresher.learning.warmstart import check_data, layout_from, start_from
from thresher.parts import AUTO


@dataclass(frozen=True)
class Frontier:
    """Models of one rule that differ in its penalty, from the weakest to the strongest."""

    penalty: str
    """name of the parameter that they differ in"""
    points: list[Point]
    """what each costs and saves"""
    lanes: Lanes
    warnings: list[Trouble] = field(default_factory=list)
    """trouble with the data or the run"""

    def __repr__(self) -> str:
        """The table that ``thresher path`` prints, the best starred."""
        return "\n".join(table.of_points(self.points, self.penalty, table.best_of(self.points)))

    @property
    def models(self) -> list[Model]:
        """One for each point. Each is a lane: `copy` of it goes on learning by itself."""
        return self.lanes.models

    @property
    def model_(self) -> Model:
        """The best one, which `thresher.predict`, `evaluate`, `save` and the like take in place of all."""
        return self.models[self.choose()]

    def choose(self, which: str = "best") -> int:
        """Number of the point that ``best``, ``1se``, ``within:P%`` or ``nnz:N`` means; ValueError."""
        return choose(self.points, which)

    def model(self, which: str = "best") -> Model:
        """The model of that point, by itself."""
        return self.lanes.alone(self.choose(which))

    def save(self, path: str | PathLike[str], which: str = "best") -> None:
        """Write the folder that ``thresher path`` does, in place of an older one. Raises OSError."""
        folder.check_folder(Path(path))
        found = folder.Table(self.penalty, self.points, self.choose(which), which)
        folder.save(Path(path), found, self.lanes)


def train(
    data: Data,
    y: ArrayLike | Recipe | Spec | None = None,
    loss: Spec | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    rule: Recipe | Spec = "ft-ftrl",
    outputs: str | None = None,
    passes: int = 1,
    order: str = "as-is",
    holdout: Data | float | None = None,
    holdout_every: int = 0,
    early_stop: int | None = None,
    patience: int = 0,
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: AnyLayout | None = None,
    where: str = "",
    init: ModelOrFile | None = None,
    names: bool = False,
    **options: Unpack[TrainOptions],
) -> Model:
    """Train a model on `data`, one pass or more.

    Every option of ``thresher train`` is an argument of the same name, but for those of its files and its
    table.

    Args:
        data: a path, a glob, ``-``, or a list of them; a table (pandas, polars, pyarrow, a query's result),
            one column of which is the `label`; X, a table or a matrix (numpy, scipy) or a list of
            dictionaries, beside `y`; ``(X, y)`` or ``(X, y, weights)``; pairs of a dictionary and a label;
            a Chunk, or Chunks.
        y: labels of the rows of X, ``(n,)`` or ``(n, outputs)``. Where `data` hold their labels, the rule may
            stand here.
        loss: SPEC or part, by default ``logistic``.
        sample_weight: importances ``(n,)``, beside `y`.
        rule: SPEC or part; a `Recipe`, which says all that the model is; or ``auto``, a choice among some
            rules near the default one, made on the first rows (docs/default.md).
        outputs: what is predicted: ``one`` number, ``classes:LO-HI``, ``labels:LO-HI`` or ``values:K``.
            Classes that are left open are found in the data, and so are labels that are words: sorted, in
            ``model.classes``.
        passes: over the data. Later ones read a binary `cache` written by the first. `scale` and `admit`
            count in the first pass only.
        order: ``as-is``, ``once`` or ``every`` (one permutation for all passes, or one each; all rows are
            then held in memory), or ``buffer:N``, by chance from `seed`. Hold-out rows are chosen before
            it.
        holdout: what to evaluate on after each pass: data, or a share of the examples such as 0.2, which are
            then not learned from. Row i, from 0, is held out where floor((i + 1) p) > floor(i p): the same
            rows in any order and every pass.
        holdout_every: N, for the share 1 / N.
        early_stop: stop after so many passes that were no better on what is held out; the model is then
            that of the best. `patience` is another name for it.
        on_error: what to do about a bad line: ``fail``, ``skip`` or ``quarantine=FILE``.
        threads: that read and parse; None means one for each processor, at most four.
        layout: how files and tables are read: the fields below in one object.
        where: which rows of Parquet, Arrow and tables are read: ``"day < 20 and city in ('Ulm', 'Kiel')"``.
        init: a model, the file of one, or an estimator, with whose weights to begin, whatever its rule: see
            `start_from`. Files and tables are then read as its were, but for what is said here.
        names: keep the names of the features that weigh something, for which the data are read once more.
        options: of what the model is: fields of a `Recipe` (``rate``, ``batch``, ``average``, ``scale``,
            ``admit``, ``store``, ``intercept``, ``dtype``, ``seed``), and ``alpha``, ``l1``, ``l2`` and
            ``eta0`` of its rule; of how files and tables become features: fields of a `Layout` (``format``,
            ``header``, ``delimiter``, ``missing``, ``label``, ``weight``, ``numeric``, ``bins``,
            ``categorical``, ``text``, ``ngrams``, ``interact``, ``ignore``, ``classes``, ``bits``, ``hash``
            ...). Columns are names, positions from 1 on, ranges or patterns: ``label=1, bins="2-14"``.

    Trouble with the data or the run is a `TroubleWarning`, once each, and in ``model.warnings``. Raises
    `SpecError`, `DataError` (ValueErrors both), ValueError for other arguments, TypeError for unknown ones,
    `DivergedError`.

    >>> import numpy as np
    >>> train(np.eye(4), [1, 1, -1, -1], l1=0.01, passes=3).nonzero
    4
    """
    check_names(train, options, TrainOptions)
    labels, rule = labels_or_rule(y, rule)
    patience = patience if early_stop is None else early_stop
    plan, holdout = planned(passes, patience, holdout, holdout_every)
    of_layout, of_model = parted(options)
    begun = None if init is None else readout_of(init)
    layout = _layout(layout_said(layout, of_layout), rule, begun)
    read: dict[str, Any] = {"threads": threads, "layout": layout, "where": where}
    data = with_labels(data, labels, sample_weight)
    recipe, source = _begun(data, rule, loss, outputs, of_model, on_error, read)
    domain = recipe.head().domain
    held, shuffling = held_of(holdout, domain, source, threads), make_order(str(order), recipe.seed)
    raced = of_model if _is_auto(rule) else None
    return _trained(recipe, raced, begun, source, names, plan, shuffling, held, cache)


def _trained(
    recipe: Recipe, raced: Any, begun: Readout | None, source: Any, names: bool, plan: Plan, *beside: Any
) -> Model:
    """The model of a recipe, which has learned the source; with `raced` options, the winner of a race."""
    check_flag("names", names)
    if names:
        check_namer_again(source, recipe.store)
    model = Model(recipe) if raced is None else auto.start(recipe, given=raced)
    _begin(model, begun, source.layout)
    model.layout = source.layout
    trainer = _trainer(model, source, plan, *beside, heir=auto.heir)
    del model  # lanes that race, and their memory, go when one of them is left
    trainer.model.warnings = warn(trainer.run().warnings)  # of the model that is left
    trained: Model = trainer.model
    if names:
        keep_names(trained, source)
    return trained


def _layout(given: AnyLayout | None, rule: Recipe | Spec, begun: Readout | None) -> AnyLayout | None:
    """How to read: as is said, or as a recipe says, or like the data of the weights to begin with."""
    found = given or (rule.layout if isinstance(rule, Recipe) else None)
    return found if begun is None else layout_from(begun, found)


def _is_auto(rule: Recipe | Spec) -> bool:
    return isinstance(rule, str) and rule == AUTO


def _begin(model: Model | Lanes, begun: Readout | None, layout: Any) -> None:
    """Give a model, which learns data of this layout, the weights to begin with. ValueError for lanes."""
    if begun is None:
        return
    if not isinstance(model, Model):
        raise ValueError("init gives weights to one model: name a rule other than auto")
    start_from(model, begun)
    check_data(begun, layout)


def _trainer(
    model: Any, source: Any, plan: Plan, order: Order, held: Any, cache: bool, **more: Any
) -> Trainer[Any]:
    """What trains the model on all passes of the source."""
    reads = Passes(source, order.reads(plan.passes), cached=cache and hasattr(source, "identity"))
    beside = {"reread": reads.later, "order": order, "holdout": held, "columns": columns_seen(source)}
    return Trainer(model, reads.first, plan, **beside, **more)


def _begun(
    data: Data,
    rule: Recipe | Spec,
    loss: Spec | None,
    outputs: str | None,
    of_model: Mapping[str, Any],
    on_error: str,
    read: dict[str, Any],
) -> tuple[Recipe, Any]:
    """What is said of a model, without its layout, which is that of its data; and their source.

    ValueError for what is said beside a recipe and would be dropped.
    """
    if not isinstance(rule, Recipe):
        spec = Recipe.rule if _is_auto(rule) else rule
        return prepared(data, spec, loss, outputs, of_model, on_error, read)
    if loss is not None or outputs is not None:
        raise ValueError("a recipe says its loss and outputs: change them in it, by dataclasses.replace")
    _, _, read = classes_in(data, rule.loss, rule.outputs, on_error, read)
    recipe = replace(rule, layout=None, **of_model)
    return recipe, opened(data, recipe.head().domain, on_error=on_error, **read)


def path(
    data: Data,
    rule: Spec = "ft-ftrl",
    loss: Spec | None = None,
    *,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    l1: str = "auto:16",
    outputs: str | None = None,
    passes: int = 1,
    order: str = "as-is",
    holdout: Data | float | None = None,
    holdout_every: int | None = None,
    early_stop: int | None = None,
    patience: int = 0,
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: AnyLayout | None = None,
    where: str = "",
    **options: Unpack[ModelOptions],
) -> Frontier:
    """Train a model for each of many penalties side by side, from one reading of `data`.

    Args:
        data, rule, loss, y, sample_weight: as for `train`.
        l1: ``LO:HI:N``, or ``auto:N`` for a range found by the first rows, which takes data that can be read
            again.
        holdout, holdout_every: what to choose by; every tenth row unless they say else (0: none).
        outputs, passes, order, early_stop, patience, on_error, threads, cache, layout, where, options: as for
            `train`.

    Raises what `train` does.

    >>> frontier = path("examples/data/rcv1_train2000.dat.gz", l1="0.5:4:4")
    >>> [point.nonzero for point in frontier.points]
    [4539, 899, 166, 35]
    >>> frontier.model("nnz:1000").nonzero
    899
    """
    check_names(path, options, ModelOptions)
    patience = patience if early_stop is None else early_stop
    plan, holdout = planned(passes, patience, holdout, holdout_every, 10)
    of_layout, of_model = parted(options)
    read: dict[str, Any] = {"threads": threads, "layout": layout_said(layout, of_layout), "where": where}
    data = with_labels(data, y, sample_weight)
    base, source = prepared(data, rule, loss, outputs, of_model, on_error, read)
    domain = base.head().domain
    held, shuffling = held_of(holdout, domain, source, threads), make_order(str(order), base.seed)
    base = replace(base, layout=source.layout)
    lanes = Lanes([with_penalty(base, value) for value in penalties_of(Range(l1), shuffling, source, base)])
    judging = LanesHoldout(plan.holdout_every, held)
    outcome = _trainer(lanes, source, plan, shuffling, held, cache, judging=lambda *given: judging).run()
    return Frontier(penalty_name(base.rule), points_of(lanes, judging), lanes, warn(outcome.warnings))


def penalties_of(wanted: Range, order: Order, source: Any, base: Recipe) -> list[float]:
    """The values of a range, found in the data where it is ``auto``; DataError for a stream."""
    penalty_name(base.rule)
    if wanted.values:
        return wanted.values
    if not source.rereadable:
        raise DataError("data that can be read only once: say the range of penalties, l1='LO:HI:N'")
    return wanted.found_in(make_order(order.spec, base.seed).over(source, 1), base)
