"""``thresher diff``."""

from __future__ import annotations

from pathlib import Path

import click

from thresher.options.arguments import Argument
from thresher.options.judging import DiffCommand
from thresher.options.option import Options, UsageError

_A, _B = (Argument(name, "A model or a checkpoint.") for name in ("A", "B"))
ARGUMENTS, OPTIONS = (_A, _B), DiffCommand
DIFFERENT = 1
"""Exit status, as for diff(1)"""


def command(first: str, second: str, options: Options) -> None:
    """Show what changed from model A to model B: weights added, removed or moved, and options that differ.

    The exit status is 0 if both predict with the same weights, 1 if not, 2 if they cannot be compared.
    """
    from thresher.cli.output import show
    from thresher.data.errors import DataError, OneLineError
    from thresher.runs.inspecting import difference

    try:
        found = difference(Path(first), Path(second), options["top"])
    except DataError as error:
        raise UsageError(f"{first} and {second} cannot be compared: {error}") from error
    except (OneLineError, OSError) as error:
        raise UsageError(str(error)) from error
    show(found, options["json"])
    if not found["equal"]:
        raise click.exceptions.Exit(DIFFERENT)
