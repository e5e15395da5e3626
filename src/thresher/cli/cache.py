"""``thresher cache``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

NAME = "cache"
SHORT = "Show or remove what is kept in the cache folder."


def command(
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove it all; it is made again when needed.")
    ] = False,
) -> None:
    """Show or remove what is kept in the cache folder: parsed data and compiled code."""
    from thresher.engine.folders import cache_folder

    for name in ("data", "code"):
        folder = cache_folder() / name
        files = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(_size(path) for path in files)
        if clear:
            shutil.rmtree(folder, ignore_errors=True)
        done = "removed " if clear else ""
        typer.echo(f"{done}{name}: {len(files):,} files, {size / 1e6:,.1f} MB in {folder}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # gone meanwhile
        return 0
