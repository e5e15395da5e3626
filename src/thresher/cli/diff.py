"""``thresher diff``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from thresher.options.arguments import Argument
from thresher.options.judging import DiffCommand
from thresher.options.option import UsageError

_A, _B = (Argument(name, "A model or a checkpoint.") for name in ("A", "B"))
ARGUMENTS, OPTIONS = (_A, _B), DiffCommand
DIFFERENT = 1
"""Exit status, as for diff(1)"""


def command(first: str, second: str, options: DiffCommand) -> None:
    """Show what changed from model A to model B: weights added, removed or moved, and options that differ.

    The exit status is 0 if both predict with the same weights, 1 if not, 2 if they cannot be compared.
    """
    from thresher.cli.output import show_figures
    from thresher.data.errors import DataError, OneLineError
    from thresher.runs.inspecting import difference

    try:
        found = difference(Path(first), Path(second), options["top"])
    except DataError as error:
        raise UsageError(f"{first} and {second} cannot be compared: {error}") from error
    except (OneLineError, OSError) as error:
        raise UsageError(str(error)) from error
    if options["json"]:
        show_figures(found, True)
    else:
        shown = {name: value for name, value in found.items() if not isinstance(value, list | dict)}
        if len(found["intercept"][0]) == 1:
            shown |= dict(
                zip(("intercept_A", "intercept_B"), (one for (one,) in found["intercept"]), strict=True)
            )
        show_figures(shown, False)
        click.echo("\n".join(_tables(found)), nl=False)
    if not found["equal"]:
        raise click.exceptions.Exit(DIFFERENT)


def _tables(found: dict[str, Any]) -> list[str]:
    """The options that differ and the weights that moved most, as text."""
    from thresher.cli.output import table_of

    lines = list[str]()
    if found["options"]:
        rows = [[name.replace("_", " "), *pair] for name, pair in found["options"].items()]
        lines += ["", *table_of(["option", "A", "B"], rows)]
    if moved := found["moved"]:
        heads = [name for name in moved[0] if any(one[name] is not None for one in moved)]
        rows = [[one[name] if name != "feature" else str(one[name]) for name in heads] for one in moved]
        lines += ["", *table_of(heads, rows)]
    return [*lines, ""]
