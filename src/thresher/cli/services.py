"""The command of the server, ``serve``, and lists of parts: ``rules``, ``losses``, ``rates``."""

from __future__ import annotations

from pathlib import Path

import click

from thresher.cli.parser import MODEL, Argument, command
from thresher.options.model import ModulesOption
from thresher.options.option import Options
from thresher.options.serving import ServeCommand


@command(ServeCommand, MODEL)
def serve(model: str, options: Options) -> None:
    """Answer requests over HTTP with a model, which may learn from them.

    POST /predict takes rows in any format that the model can read; POST /learn takes labelled ones. GET
    /openapi.json lists all paths. SIGTERM and Ctrl-C answer what has been asked, and end.
    """
    from thresher.cli.console import tell
    from thresher.data.errors import NoPackageError

    if Path(model).exists():
        tell(f"starting to serve {model}")  # what is imported and compiled takes seconds
    try:
        from thresher.serving import server
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        raise NoPackageError("thresher serve", "prometheus-client") from error
    server.serve(Path(model), options)


def _list(kind: str, plural: str) -> None:
    """The command that lists all parts of a kind, or describes one of them."""

    def listed(name: str | None, options: Options) -> None:
        from thresher import parts

        found = [parts.describe(kind, one).summary for one in parts.names(kind)] if name is None else None
        click.echo("\n".join(found or [parts.describe(kind, str(name)).page]))

    listed.__name__ = plural
    listed.__doc__ = f"List the {plural}: parameters with defaults, what each does, its reference."
    command(ModulesOption, Argument("NAME", "Show everything about this one.", required=False))(listed)


for _kind, _plural in (("rule", "rules"), ("loss", "losses"), ("rate", "rates")):
    _list(_kind, _plural)
