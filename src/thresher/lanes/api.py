"""``thresher.path``: a model for each of many penalties, from one reading."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from thresher.data.errors import DataError
from thresher.data.layout import AnyLayout
from thresher.data.order import make_order
from thresher.lanes import folder
from thresher.lanes.frontier import Point, choose, points_of
from thresher.lanes.judging import LanesHoldout
from thresher.lanes.lanes import Lanes
from thresher.lanes.penalties import Range, penalty_name, with_penalty
from thresher.learning.api import Data, as_source, check_names, held_of, outputs_of, planned
from thresher.learning.model import Model
from thresher.learning.passes import Passes
from thresher.learning.recipe import Recipe, Spec
from thresher.learning.training import Trainer


@dataclass(frozen=True)
class Frontier:
    """Models of one rule that differ in its penalty, from the weakest to the strongest."""

    penalty: str
    """name of the parameter that they differ in"""
    points: list[Point]
    """what each costs and saves"""
    lanes: Lanes

    @property
    def models(self) -> list[Model]:
        """One for each point. Each is a lane: `copy` of it goes on learning by itself."""
        return self.lanes.models

    def choose(self, which: str = "best") -> int:
        """Number of the point that ``best``, ``1se``, ``within:P%`` or ``nnz:N`` means; ValueError."""
        return choose(self.points, which)

    def model(self, which: str = "best") -> Model:
        """The model of that point, by itself."""
        lane = self.models[self.choose(which)]
        alone = Model(lane.recipe)
        alone.restore(lane.state())
        alone.names = lane.names
        return alone

    def save(self, path: str | PathLike[str], which: str = "best") -> None:
        """Write what ``thresher path`` does. Raises OSError."""
        folder.check_folder(Path(path))
        table = folder.Table(self.penalty, self.points, self.choose(which), which)
        folder.save(Path(path), table, self.lanes)


def path(
    data: Data,
    rule: Spec = "ft-ftrl",
    loss: Spec = "logistic",
    *,
    l1: str = "auto:16",
    outputs: str | None = None,
    passes: int = 1,
    order: str = "as-is",
    holdout: Data | None = None,
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
    every = (0 if holdout is not None else 10) if holdout_every is None else holdout_every
    plan = planned(passes, patience, every, holdout is not None)
    outputs = outputs_of(loss, outputs, data, threads=threads, layout=layout, where=where)
    base = Recipe(rule, loss, outputs=outputs, **options)
    domain = base.head().domain
    source = as_source(data, domain, on_error=on_error, threads=threads, layout=layout, where=where)
    held, shuffling = held_of(holdout, domain, source, threads), make_order(str(order), base.seed)
    base = replace(base, layout=source.layout)
    lanes = Lanes([with_penalty(base, value) for value in _penalties(Range(l1), source, base)])
    reads = Passes(source, shuffling.reads(passes), cached=cache and hasattr(source, "identity"))
    judging = LanesHoldout(every, held)
    Trainer(
        *(lanes, reads.first, plan),
        reread=reads.later,
        order=shuffling,
        holdout=held,
        judging=lambda *given: judging,
    ).run()
    return Frontier(penalty_name(base.rule), points_of(lanes, judging), lanes)


def _penalties(wanted: Range, source: Any, base: Recipe) -> list[float]:
    penalty_name(base.rule)
    if wanted.values:
        return wanted.values
    if not source.rereadable:
        raise DataError("data that can be read only once: say the range of penalties, l1='LO:HI:N'")
    return wanted.found_in(source, base)
