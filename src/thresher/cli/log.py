"""``thresher log``."""

from __future__ import annotations

from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import click

from thresher.options.arguments import Argument
from thresher.options.judging import LogCommand
from thresher.options.option import Options

_LOG = Argument("LOG", "The folder of a log, as thresher serve writes it.")
ARGUMENTS, OPTIONS = (_LOG,), LogCommand
DAMAGED = 1
"""Exit status"""


def command(log: str, options: Options) -> None:
    """Show what is in the log of a server, check all of it, and cut it.

    A log is data: thresher train --continue MODEL LOG learns what the server has learned. The exit status is
    1 if the log is damaged; what a write that was cut short has left at its end is no damage.
    """
    from thresher.cli.output import show
    from thresher.data.log.writer import cut_after, cut_before
    from thresher.runs.log import contents_of

    found = dict[str, Any]()
    if options["cut"] is not None:
        from thresher.serving.learning import newer_than

        to, beside = options["cut"], partial(newer_than, Path(log))
        off = cut_after(Path(log), to, beside) if isinstance(to, int) else cut_before(Path(log), to, beside)
        at = off.at and f"{off.at.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
        found = {"cut_at": at, "rows_cut_off": off.rows}
        found |= {"cut_off_bytes": off.bytes, "cut_off_to": off.folder and str(off.folder)}
    told = contents_of(log, options["last"])
    told.update(found)
    if found and found["cut_off_to"] is None:
        end = told["last_time"] and f": the last record was written at {told['last_time']}"
        click.echo(f"warning: nothing is cut off{end or ''}", err=True)
    show(told, options["json"])
    if told["damage"]:
        raise click.exceptions.Exit(DAMAGED)
