"""``thresher.train``; ``thresher.path``, a model for each of many penalties from one reading."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from thresher.data.errors import DataError
from thresher.data.layout import AnyLayout
from thresher.data.order import Order, make_order
from thresher.lanes import auto, folder, table
from thresher.lanes.frontier import Point, choose, points_of
from thresher.lanes.judging import LanesHoldout
from thresher.lanes.lanes import Lanes
from thresher.lanes.penalties import Range, penalty_name, with_penalty
from thresher.learning.api import (
    Data,
    as_source,
    check_names,
    held_of,
    outputs_of,
    planned,
    readout_of,
)
from thresher.learning.model import Model
from thresher.learning.passes import Passes
from thresher.learning.readout import Readout
from thresher.learning.recipe import Recipe, Spec
from thresher.learning.training import Plan, Trainer
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

    def __repr__(self) -> str:
        """The table that ``thresher path`` prints, the best starred."""
        return "\n".join(table.of_points(self.points, self.penalty, table.best_of(self.points)))

    @property
    def models(self) -> list[Model]:
        """One for each point. Each is a lane: `copy` of it goes on learning by itself."""
        return self.lanes.models

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
    rule: Recipe | Spec = "ft-ftrl",
    loss: Spec | None = None,
    *,
    outputs: str | None = None,
    passes: int = 1,
    order: str = "as-is",
    holdout: Data | float | None = None,
    holdout_every: int = 0,
    patience: int = 0,
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: AnyLayout | None = None,
    where: str = "",
    init: Any = None,
    **options: Any,
) -> Model:
    """Train a model on `data`, one pass or more.

    `rule`, `loss`, `outputs` and whatever else is given by name (``l1=1.0``, ``batch=10``, ``average=True``,
    ``seed=1`` ...) say what the model is: see `Recipe`, which may be given in place of the rule. Outputs that
    are left open are found in the data. The rule ``auto`` is a choice among some near the default one, made
    on the first rows (see docs/default.md); what was chosen is in ``model.recipe``.

    `data` is a path, a glob, ``-``, a list of them, a Chunk, Chunks, ``(X, y)``, ``(X, y, weights)``,
    pairs of a mapping and a label, or an Arrow table: see `as_source`. `holdout` is what to evaluate on after
    each pass: data, or a share of the examples such as 0.2, which are then not learned from. Row i, from 0,
    is held out where floor((i + 1) p) > floor(i p), the same rows in any order and every pass;
    `holdout_every` N is the share 1 / N. `patience` stops after so many passes
    that were no better, and the model is then that of the best. `order`
    is ``as-is``, ``once`` or ``every`` (one permutation for all passes, or one each; all rows are then
    held in memory), or ``buffer:N``, by chance from `seed`; hold-out rows are chosen before it. Later
    passes read a binary `cache` of the first, and so does the next run over the same content. `layout` says
    how files and tables are read; by default the endings of names and the types of columns do; `where`, which
    rows of `data` are, of Parquet, Arrow and tables: ``"day < 20 and city in ('Ulm', 'Kiel')"``; `on_error`
    and `threads` are those of `open_source`. `init` is a model, the file of one, or an estimator, with whose
    weights to begin, whatever its rule: see `start_from`; files and tables are then read as its were, but for
    what `layout` says, and have its features. `scale` and `admit` count in the first pass only.
    Raises `SpecError`, `DataError` (ValueErrors both), ValueError for other arguments, `DivergedError`.
    """
    plan, holdout = planned(passes, patience, holdout, holdout_every)
    check_names(train, options)
    racing = isinstance(rule, str) and rule == AUTO
    begun = None if init is None else readout_of(init)
    layout = layout or (rule.layout if isinstance(rule, Recipe) else None)
    layout = layout if begun is None else layout_from(begun, layout)
    read: dict[str, Any] = {"threads": threads, "layout": layout, "where": where}
    said = Recipe.rule if racing else rule
    recipe = replace(_recipe(said, loss, outputs, options, data, read), layout=None)
    model = auto.start(recipe, given=options) if racing else Model(recipe)
    domain = model.head.domain
    source = as_source(data, domain, on_error=on_error, **read)
    if begun is not None:
        _begin(model, begun, source.layout)
    held, shuffling = held_of(holdout, domain, source, threads), make_order(str(order), recipe.seed)
    model.layout = source.layout
    trainer = _trainer(model, source, plan, shuffling, held, cache, heir=auto.heir)
    del model  # lanes that race, and their memory, go when one of them is left
    trainer.run()
    trained: Model = trainer.model
    return trained


def _begin(model: Model | Lanes, begun: Readout, layout: Any) -> None:
    """Give a model, which learns data of this layout, the weights to begin with. ValueError for lanes."""
    if not isinstance(model, Model):
        raise ValueError("init gives weights to one model: name a rule other than auto")
    start_from(model, begun)
    check_data(begun, layout)


def _trainer(
    model: Any, source: Any, plan: Plan, order: Order, held: Any, cache: bool, **more: Any
) -> Trainer[Any]:
    """What trains the model on all passes of the source."""
    reads = Passes(source, order.reads(plan.passes), cached=cache and hasattr(source, "identity"))
    beside = {"reread": reads.later, "order": order, "holdout": held, **more}
    return Trainer(model, reads.first, plan, **beside)


def _recipe(
    rule: Recipe | Spec, loss: Spec | None, outputs: str | None, options: Any, data: Data, read: Any
) -> Recipe:
    """What is said of a model. ValueError for what is said beside a recipe and would be dropped."""
    if not isinstance(rule, Recipe):
        loss = Recipe.loss if loss is None else loss
        return Recipe(rule, loss, outputs=outputs_of(loss, outputs, data, **read), **options)
    if loss is not None or outputs is not None:
        raise ValueError("a recipe says its loss and outputs: change them in it, by dataclasses.replace")
    return replace(rule, **options)


def path(
    data: Data,
    rule: Spec = "ft-ftrl",
    loss: Spec = "logistic",
    *,
    l1: str = "auto:16",
    outputs: str | None = None,
    passes: int = 1,
    order: str = "as-is",
    holdout: Data | float | None = None,
    holdout_every: int | None = None,
    patience: int = 0,
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: AnyLayout | None = None,
    where: str = "",
    **options: Any,
) -> Frontier:
    """Train a model for each of many penalties side by side, from one reading of `data`.

    `l1` is ``LO:HI:N``, or ``auto:N`` for a range found by the first rows, which takes data that can be read
    again. Every tenth row is held out to choose by, unless `holdout` or `holdout_every` (0: none) say else.
    All other arguments are those of `train`, and so are the errors; TypeError for unknown options.

    >>> frontier = path("examples/data/rcv1_train2000.dat.gz", l1="0.5:4:4")
    >>> [point.nonzero for point in frontier.points]
    [4539, 899, 166, 35]
    >>> frontier.model("nnz:1000").nonzero
    899
    """
    check_names(path, options)
    plan, holdout = planned(passes, patience, holdout, holdout_every, 10)
    outputs = outputs_of(loss, outputs, data, threads=threads, layout=layout, where=where)
    base = Recipe(rule, loss, outputs=outputs, **options)
    domain = base.head().domain
    source = as_source(data, domain, on_error=on_error, threads=threads, layout=layout, where=where)
    held, shuffling = held_of(holdout, domain, source, threads), make_order(str(order), base.seed)
    base = replace(base, layout=source.layout)
    lanes = Lanes([with_penalty(base, value) for value in penalties_of(Range(l1), shuffling, source, base)])
    judging = LanesHoldout(plan.holdout_every, held)
    _trainer(lanes, source, plan, shuffling, held, cache, judging=lambda *given: judging).run()
    return Frontier(penalty_name(base.rule), points_of(lanes, judging), lanes)


def penalties_of(wanted: Range, order: Order, source: Any, base: Recipe) -> list[float]:
    """The values of a range, found in the data where it is ``auto``; DataError for a stream."""
    penalty_name(base.rule)
    if wanted.values:
        return wanted.values
    if not source.rereadable:
        raise DataError("data that can be read only once: say the range of penalties, l1='LO:HI:N'")
    return wanted.found_in(make_order(order.spec, base.seed).over(source, 1), base)
