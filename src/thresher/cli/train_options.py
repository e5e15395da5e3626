"""The options of ``thresher train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_SPEC = "NAME:FIELD=VALUE,..."

ModelFile = Annotated[
    Path, typer.Option("--model", "-m", metavar="MODEL", show_default=False, help="Where to write the model.")
]
Rule = Annotated[
    str | None, typer.Option(metavar=_SPEC, help="Algorithm: see thresher rules.  [default: ft-ftrl]")
]
L1 = Annotated[
    float | None,
    typer.Option(
        "--l1",
        metavar="L",
        help="How sparse, in units of the rule (ft-ftrl: standard deviations of noise); higher leaves fewer"
        " weights.  [default of ft-ftrl: 1]",
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(metavar="A", help="Overall step size, instead of the rule's own.  [default of ft-ftrl: 3]"),
]
Loss = Annotated[str | None, typer.Option(metavar=_SPEC, help="See thresher losses.  [default: logistic]")]
Rate = Annotated[
    str | None,
    typer.Option(metavar=_SPEC, help="Step sizes, for rules that have them: see thresher rates."),
]
Outputs = Annotated[
    str | None,
    typer.Option(
        metavar="OUTPUTS",
        help="What is predicted: one number; classes:LO-HI, one of several, or classes, found by reading the"
        " labels first; labels:LO-HI, which of several hold (lists: 3,17); values:K, a number for each of K"
        " (lists: 0.5,-2).  [default: one; classes for a loss of them]",
    ),
]
Batch = Annotated[
    int | None,
    typer.Option(metavar="S", min=1, help="Examples whose summed gradient is one step.  [default: 1]"),
]
Average = Annotated[
    bool | None,
    typer.Option(
        "--average/--no-average",
        help="Predict, count and save with the mean of the weights of all steps; learn with the last."
        "  [default: no-average]",
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        metavar="max-abs|standard",
        help="Divide numeric columns by the largest magnitude, or by the standard deviation, that they have"
        " shown so far in the first pass; zeros stay zeros.  [default: none]",
    ),
]
Admit = Annotated[
    str | None,
    typer.Option(
        metavar="N|poisson:P",
        help="Learn a feature from the N-th example on that has it; or let each of its examples in the first"
        " pass admit it with probability P. They are counted in a filter of 2^B bytes: N,bits=B.  [default:"
        " learn it from the first, without a filter; bits=24]",
    ),
]
Passes = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Passes over the data.  [default: 1; with --resume, as many as before]"
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
        " pass (both hold all rows in memory: 12 bytes a non-zero, 24 a row); or buffer:N, a shuffling buffer"
        " of N rows for streams of any length.  [default: as-is]",
    ),
]
Holdout = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|every-Nth",
        help="Evaluate after each pass on a file, or on every Nth example, which is then not learned from.",
    ),
]
EarlyStop = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Stop after N passes without a better hold-out loss, and keep the best pass."
    ),
]
ReportEvery = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Examples between lines of the table.  [default: 1, 2, 4, 8 and so on]"
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="STORE",
        help="Where weights lie: growing; direct, the id is the row; hashed:BITS, a fixed 2^BITS rows; or"
        " hashed:BITS,signed, where features that meet in a row do not add up in the mean."
        "  [default: growing]",
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(metavar="float32|float64", help="Numbers of the state.  [default: float32]"),
]
Intercept = Annotated[
    bool | None,
    typer.Option("--intercept/--no-intercept", help="Learn an intercept.  [default: intercept]"),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="Seed of --order, --admit and the hashed store.  [default: 0]")
]
CheckpointEvery = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Examples between checkpoints, written to MODEL.checkpoint.  [default: only when stopped]",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from MODEL.checkpoint, with the same data.")]
Cache = Annotated[bool, typer.Option(help="Let later passes read a binary cache made in the first.")]
Curve = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write the table to a file, tab-separated.")
]
Names = Annotated[
    bool,
    typer.Option(
        "--names",
        help="Keep the names of the features that weigh something, for which the data are read once more.",
    ),
]
WeightsOnly = Annotated[
    bool, typer.Option("--weights-only", help="Leave out of the model what learning could go on from.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No table, no bar.")]
