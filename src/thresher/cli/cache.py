"""``thresher cache``."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import click

from thresher.options.judging import CacheCommand
from thresher.options.option import Options

ARGUMENTS, OPTIONS = (), CacheCommand
_CODE = re.compile(r"\S+-[0-9a-f]{32}\.nbc|\S+(\.[0-9a-f]{8}){2}\.partial|\S+\.py\d+\.(nbi|\d+\.nbc)")
"""File names that thresher creates: THRESHER_CACHE_DIR may be a folder with other files too."""


def command(options: Options) -> None:
    """Show or remove the contents of the cache folder: parsed data and compiled code."""
    from thresher.data.cache import cache_entries
    from thresher.engine.folders import cache_folder

    kept = {name: cache_folder() / name for name in ("data", "code")}
    code = [path for path in kept["code"].rglob("*.*") if _CODE.fullmatch(path.name)]
    data = [*(entry.path for entry in cache_entries()), *kept["data"].glob("contents.json")]
    for (name, folder), files in zip(kept.items(), (data, code), strict=True):
        size = sum(_size(path) for path in files)
        done = ""
        if options["clear"] and folder.is_symlink():
            done = "left as it is, since it is a link, "
        elif options["clear"]:
            for path in files:
                path.unlink(missing_ok=True)
            for path in sorted({folder, *(path.parent for path in files)}, reverse=True):
                with contextlib.suppress(OSError):  # not empty
                    path.rmdir()
            done = "removed "
        click.echo(f"{done}{name}: {len(files):,} files, {size / 1e6:,.1f} MB in {folder}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # removed by another process
        return 0
