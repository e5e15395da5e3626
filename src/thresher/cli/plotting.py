"""The option ``--plot FILE.svg`` of commands that draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer


def _checked(path: Path | None) -> Path | None:
    if path is None:
        return None
    from thresher.cli.overwriting import check_picture
    from thresher.learning.pictures import check_ending

    try:
        check_ending(str(path))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    check_picture(path)
    return path


def plot(what: str) -> Any:
    """The option for a command that draws `what`."""
    return typer.Option(metavar="FILE.svg", callback=_checked, help=f"An SVG file to draw: {what}.")
