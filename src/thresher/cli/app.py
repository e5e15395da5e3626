"""The subcommands of ``thresher``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import typer

from thresher._version import __version__
from thresher.cli import boost, cache, catalogue, evaluate, name, path, predict, train, warm, weights
from thresher.cli.errors import Cancelled, OutputClosedError

app = typer.Typer(
    name="thresher",
    help="Sparse linear models, learned from streams of any length.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command; what typer would exit on by itself is told by errors of ours."""

    @functools.wraps(command)
    def guarded(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt as error:
            raise Cancelled from error
        except BrokenPipeError as error:
            raise OutputClosedError from error

    return guarded


for _module in (train, path, boost, predict, evaluate, weights, name, warm, cache):
    app.command(_module.NAME, short_help=_module.SHORT)(_guarded(_module.command))
for _kind, _plural in catalogue.PLURALS.items():
    app.command(_plural, short_help=f"List the {_plural} and their parameters.")(
        _guarded(catalogue.lister(_kind))
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thresher {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
