"""``thresher warm``."""

from __future__ import annotations

import time

import click

from thresher.options.judging import WarmCommand
from thresher.options.option import Options

ARGUMENTS, OPTIONS = (), WarmCommand


def command(options: Options) -> None:
    """Compile ahead of time what training and predicting need, so that your later runs need not wait.

    This covers runs with these rules, losses, formats and outputs. Code for --average, --batch, --store,
    --bins and --interact is compiled on first use.
    """
    from thresher.runs.warm import prepare

    for what, compile_it in prepare(options).items():
        started = time.perf_counter()
        compile_it()
        click.echo(f"{what}: {time.perf_counter() - started:.1f} s")
