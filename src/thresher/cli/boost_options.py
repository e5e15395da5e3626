"""The options of ``thresher boost``."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher.cli.options import MOST_THREADS
from thresher.cli.plain_values import Bounds

L1 = Annotated[float, typer.Option("--l1", metavar="L", help="Penalty on |w|_1.")]
L2 = Annotated[float, typer.Option("--l2", metavar="L", help="Penalty on |w|^2 / 2.")]
Loss = Annotated[str, typer.Option(metavar="SPEC", help="exponential (AdaBoost's) or logistic.")]
Order = Annotated[
    str,
    typer.Option(
        metavar="random|cyclic|parallel",
        help="Update one feature at a time, in a new order each round or as they come, or all at once with "
        "smaller steps; --workers then also hold the rows.",
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        metavar="T",
        help="Stop when the largest violation of the optimality conditions is this share of the l1 that "
        "would leave no feature.",
    ),
]
Rounds = Annotated[int, typer.Option(metavar="N", help="Stop after N rounds over all features."), Bounds(1)]
Intercept = Annotated[
    bool, typer.Option("--intercept/--no-intercept", help="Learn an intercept; it is not penalised.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the random order."), Bounds(0)]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Threads; they change no result.  [default: one per processor, at most 4]"
    ),
    Bounds(1, MOST_THREADS),
]
