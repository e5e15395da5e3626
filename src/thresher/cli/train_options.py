"""The options of ``thresher train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.cli.plain_values import Bounds
from thresher.cli.plotting import plot

MOST_PASSES = 10**9
ModelFile = Annotated[
    Path, typer.Option("--model", "-m", metavar="MODEL", show_default=False, help="Where to write the model.")
]


def _check_passes(text: str | None) -> str | None:
    if text is not None and text != "auto":
        whole = text.isdecimal() and text.isascii()
        if not whole or not 1 <= int(text) <= MOST_PASSES:
            raise typer.BadParameter(
                f"expected auto or a whole number from 1 to {MOST_PASSES:,}, not '{text}'"
            )
    return text


def _check_replay(text: str | None) -> str | None:
    from thresher.learning.repeating import bytes_of

    try:
        return text if text is None else f"{bytes_of(text)}B"
    except ValueError as error:
        raise typer.BadParameter(str(error).removeprefix("replay ")) from error


def _passes(default: str) -> Any:
    return typer.Option(
        "--passes",
        metavar="N|auto",
        callback=_check_passes,
        help="Passes over the data. auto: with the default rule 3 to 40 over data that fit in --replay, the "
        "most if there are many rows for each feature; with other rules, and over longer data, one."
        f"  [default: {default}]",
    )


AutoPasses = Annotated[str | None, _passes("auto; with --resume, as before")]
PassesAtOnce = Annotated[str | None, _passes("auto")]
"""For commands without --resume."""
Replay = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        callback=_check_replay,
        help="Memory for the rows that --passes auto keeps for further passes; 0: always one pass. 64MB holds"
        " 129,000 rows of 40 features (12 bytes per non-zero, 16 per row). Data that do not fit are passed"
        " over once.  [default: 64MB]",
    ),
]


def _check_order(text: str | None) -> str | None:
    from thresher.data.errors import DataError
    from thresher.data.order import make_order

    try:
        return text if text is None else make_order(text).spec
    except DataError as error:
        raise typer.BadParameter(str(error)) from error


Order = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER",
        callback=_check_order,
        help="Order of the rows: as-is; once, one random permutation for all passes; every, a new one each"
        " pass (both hold all rows in memory: 12 bytes per non-zero, 24 per row); or buffer:N, a "
        "shuffling buffer"
        " of N rows for streams of any length.  [default: as-is]",
    ),
]
Holdout = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|SHARE|every-Nth|last:SHARE|FILTER",
        help="Evaluate after each pass on a file, or on rows that are then not learned: a share (0.2 or "
        "every-5th: one of every 5, drawn with --seed), the last (last:0.1 or last:1000, for rows in the "
        "order of time), or those that meet a condition ('day >= 20', as in --where). They are the same in "
        "every order and every pass.",
    ),
]
EarlyStop = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Stop after N passes without a better hold-out loss, and keep the best pass."
    ),
    Bounds(1),
]
ReportEvery = Annotated[
    int | None,
    typer.Option(metavar="N", help="Examples between lines of the table.  [default: 1, 2, 4, 8 and so on]"),
    Bounds(1),
]
CheckpointEvery = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Examples between checkpoints, written to MODEL.checkpoint.  [default: only when stopped]",
    ),
    Bounds(1),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from MODEL.checkpoint, with the same data.")]
Init = Annotated[
    Path | None,
    typer.Option(
        "--init", metavar="MODEL", help="Start from the weights of this model; its rule may differ."
    ),
]
Cache = Annotated[bool, typer.Option(help="Write a binary cache in the first pass, which later passes read.")]
Curve = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write the table to a file, tab-separated.")
]
Plot = Annotated[Path | None, plot("progressive loss and sparsity over the examples")]
Names = Annotated[
    bool,
    typer.Option(
        "--names",
        help="Keep the names of features with non-zero weights; this reads the data once more.",
    ),
]
WeightsOnly = Annotated[
    bool,
    typer.Option(
        "--weights-only", help="Save only the weights, without the state that training would continue from."
    ),
]


def _check_ensemble(text: str | None) -> str | None:
    if text is None:
        return None
    from thresher.lanes.bags import Bags

    try:
        return Bags.of(text).spec
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


Ensemble = Annotated[
    str | None,
    typer.Option(
        metavar="N|disjoint:N",
        callback=_check_ensemble,
        help="Train N models that predict together, and write them to the folder MODEL. Each learns each row "
        "with an importance drawn from Poisson(1), which may be 0 (bagging); with disjoint:N, each row is "
        "learned by one of them.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="No table, progress bar or messages while compiling; warnings and errors are still printed.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Exit with status 1 if there was a warning; the result is saved all the same."
    ),
]
