"""The subcommands of ``thresher``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from thresher._version import __version__
from thresher.cli import catalogue
from thresher.cli.errors import Cancelled, OutputClosedError
from thresher.cli.examples import epilog
from thresher.cli.plain_values import Command, Commands
from thresher.cli.usage import unknown_command

MODULES = (
    *("train", "path", "cv", "tune", "boost", "predict", "evaluate"),
    *("report", "weights", "info", "diff", "name", "warm", "cache"),
)
"""The commands that have a module each, of the same name."""
KINDS = {plural: kind for kind, plural in catalogue.PLURALS.items()}
NAMES = (*MODULES, *KINDS)


@functools.cache
def command_of(*names: str) -> Any:
    """What parses and runs these commands, or all of them, which takes some 40 ms longer the first time."""
    return get_command(_application(names or NAMES))


def _application(names: Iterable[str]) -> typer.Typer:
    app = typer.Typer(
        name="thresher",
        cls=Commands,
        help="Sparse linear models, learned from streams of any length.",
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name in names:
        if name in KINDS:
            short, command = f"List the {name} and their parameters.", catalogue.lister(KINDS[name])
        else:
            module: Any = import_module(f"thresher.cli.{name}")
            short, command = module.SHORT, module.command
        shown: Any = {"short_help": short, "epilog": epilog(name), "cls": Command}
        app.command(name, **shown)(_guarded(command))
    return app


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


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thresher {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def run(arguments: list[str]) -> Any:
    """Run one command with its arguments; without arguments, print the help."""
    named = [name for name in NAMES if arguments and name == arguments[0]]
    if arguments and not named and not arguments[0].startswith("-"):
        raise unknown_command(arguments[0], list(NAMES))
    command = command_of(*named)
    return command(arguments or ["--help"], prog_name="thresher", standalone_mode=False)
