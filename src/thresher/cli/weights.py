"""``thresher weights``."""

from __future__ import annotations

from typing import Annotated

import typer

from thresher.cli import options

NAME = "weights"
SHORT = "Print the weights, largest first."


def command(
    model: options.Model,
    top: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the N heaviest.  [default: all]")
    ] = None,
) -> None:
    """Print feature, name where known, and weight, tab-separated, largest first; the intercept last."""
    from thresher.learning import modelfile

    readout, header = modelfile.load_readout(model)
    keys, weights = readout.heaviest(top)
    lines = [f"{key}\t\t{weight}\n" for key, weight in zip(keys.tolist(), map(str, weights), strict=True)]
    if header["has_intercept"]:
        lines.append(f"intercept\t\t{readout.bias[0]!s}\n")
    typer.echo("".join(lines), nl=False)
