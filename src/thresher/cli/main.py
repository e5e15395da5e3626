"""The command ``thresher``: its subcommands, and what becomes of an error."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

from thresher._version import __version__
from thresher.cli import boost, cache, catalogue, evaluate, name, predict, train, weights
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


for _module in (train, boost, predict, evaluate, weights, name, cache):
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


def run() -> NoReturn:
    """Run the command line of this process and exit with its status."""
    gc.set_threshold(200_000)  # imports make objects by the hundred thousand, and hardly any garbage
    # Numba looks for BLAS in scipy, at a fifth of a second; no kernel here calls it.
    sys.modules.setdefault("scipy", None)  # type: ignore[arg-type]
    # What pyarrow frees goes back: its own allocator keeps 100 MB of a Parquet file, and is no faster.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # files half written are put away
    warnings.showwarning = _show_warning
    status = status_of(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        _let_go(stream)
    # Python's own way out takes modules and machine code apart, a fifth of a second, and a thread that
    # waits for input would hold it up. All files are closed and synced by now.
    os._exit(status)


def status_of(arguments: list[str]) -> int:
    """Run with these arguments: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    try:
        result = app(arguments or ["--help"], prog_name="thresher", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt as error:
        return _explain(Cancelled(error))
    except Exception as error:  # noqa: BLE001  (raised again unless a user can cause it)
        return _explain(error)
    return result if isinstance(result, int) else 0


def _explain(error: Exception) -> int:
    """Print one line about an error that a user can cause; raise any other."""
    from thresher.cli.errors import status_and_line

    if os.environ.get("THRESHER_DEBUG"):
        raise error
    status, line = status_and_line(error)
    if line:
        with contextlib.suppress(OSError):
            typer.echo(line, err=True)
    return status


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"thresher: {message}", err=True)


def _let_go(stream: Any) -> None:
    """Drop what a closed pipe or a full disk did not take: Python would try again, and complain."""
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
