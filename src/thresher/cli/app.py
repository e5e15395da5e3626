"""The subcommands of ``thresher``."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Annotated, Any

import typer

from thresher._version import __version__
from thresher.cli import (
    boost,
    cache,
    catalogue,
    cv,
    diff,
    evaluate,
    info,
    name,
    path,
    predict,
    report,
    train,
    tune,
    warm,
    weights,
)
from thresher.cli.errors import Cancelled, OutputClosedError
from thresher.cli.examples import epilog
from thresher.cli.plain_values import Command, Commands
from thresher.cli.usage import unknown_command

app = typer.Typer(
    name="thresher",
    cls=Commands,
    help="Sparse linear models, learned from streams of any length.",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command to raise our own exceptions where typer would exit by itself."""

    @functools.wraps(command)
    def guarded(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt as error:
            raise Cancelled from error
        except BrokenPipeError as error:
            raise OutputClosedError from error

    return guarded


for _module in (
    train,
    path,
    cv,
    tune,
    boost,
    predict,
    evaluate,
    report,
    weights,
    info,
    diff,
    name,
    warm,
    cache,
):
    _shown: Any = {"short_help": _module.SHORT, "epilog": epilog(_module.NAME), "cls": Command}
    app.command(_module.NAME, **_shown)(_guarded(_module.command))
for _kind, _plural in catalogue.PLURALS.items():
    _short = f"List the {_plural} and their parameters."
    _shown = {"short_help": _short, "epilog": epilog(_plural), "cls": Command}
    app.command(_plural, **_shown)(_guarded(catalogue.lister(_kind)))


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


def run(arguments: list[str]) -> Any:
    """Run one command with its arguments; without arguments, print the help."""
    chosen = copy.copy(app)
    named = [one for one in app.registered_commands if arguments and one.name == arguments[0]]
    if arguments and not named and not arguments[0].startswith("-"):
        raise unknown_command(arguments[0], [str(one.name) for one in app.registered_commands])
    chosen.registered_commands = named or app.registered_commands  # typer builds all of those: 20 ms
    return chosen(arguments or ["--help"], prog_name="thresher", standalone_mode=False)
