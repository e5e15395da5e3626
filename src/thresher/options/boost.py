"""Options of the solver for data in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from thresher.options.data import ElsewhereOptions, OnErrorOption, TableOptions, threads
from thresher.options.kinds import Flag, Kind, Number, Whole
from thresher.options.option import Option
from thresher.options.output import ModelFile, TalkOptions

if TYPE_CHECKING:
    from thresher.learning.model.recipe import Spec
else:
    Spec = Any


BOOSTED = "exponential"
"""The loss that AdaBoost minimises"""


class SolverOptions(TypedDict, total=False):
    """The objective, and how its minimum is found."""

    l1: Annotated[float, Option(Number(), "Penalty on |w|_1.", "L", default=1.0)]
    l2: Annotated[float, Option(Number(), "Penalty on |w|^2 / 2.", "L", default=0.0, unset="0.0")]
    loss: Annotated[Spec, Option(Kind(), "exponential (AdaBoost's) or logistic.", "SPEC", default=BOOSTED)]
    order: Annotated[
        str,
        Option(
            Kind(),
            "Update one feature at a time, in a new order each round or as they come, or all at once with "
            "smaller steps; --workers then also hold the rows.",
            "random|cyclic|parallel",
            default="random",
        ),
    ]
    tolerance: Annotated[
        float,
        Option(
            Number(),
            "Stop when the largest violation of the optimality conditions is this share of the l1 that "
            "would leave no feature.",
            "T",
            default=1e-4,
        ),
    ]
    rounds: Annotated[int, Option(Whole(1), "Stop after N rounds over all features.", "N", default=1000)]
    intercept: Annotated[
        bool,
        Option(Flag(), "Learn an intercept; it is not penalised.", default=True, unset="intercept"),
    ]
    seed: Annotated[int, Option(Whole(0), "Seed of the random order.", "N", default=0)]


class SolverThreads(TypedDict, total=False):
    """How many threads read and solve."""

    threads: Annotated[int | None, threads("Threads; they change no result.")]


class BoostOptions(SolverOptions, TableOptions, OnErrorOption, SolverThreads, ElsewhereOptions, total=False):
    """The options of `thresher.boost`."""


class BoostCommand(ModelFile, BoostOptions, TalkOptions, total=False):
    """The options of ``thresher boost``."""
