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
        help="One feature after the other, in a new order each time or as they come, or all at once by"
        " smaller steps.",
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        metavar="T",
        help="Stop when the largest violation of the conditions of optimality is this share of the l1"
        " that would leave no feature.",
    ),
]
Rounds = Annotated[
    int, typer.Option(metavar="N", help="Stop after so many looks at all features."), Bounds(1)
]
Intercept = Annotated[
    bool, typer.Option("--intercept/--no-intercept", help="Learn an intercept, never penalised.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the random order."), Bounds(0)]
Threads = Annotated[
    int | None,
    typer.Option(metavar="N", help="Threads; they change no result.  [default: one a processor, at most 4]"),
    Bounds(1, MOST_THREADS),
]
