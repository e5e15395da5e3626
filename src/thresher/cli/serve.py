"""``thresher serve``."""

from __future__ import annotations

from pathlib import Path

from thresher.cli.console import tell
from thresher.options.arguments import MODEL
from thresher.options.option import Options
from thresher.options.serving import ServeCommand

ARGUMENTS, OPTIONS = (MODEL,), ServeCommand


def command(model: str, options: Options) -> None:
    """Answer requests over HTTP with a model, which may learn from them.

    POST /predict takes rows in any format that the model can read; POST /learn takes labelled ones. GET
    /openapi.json lists all paths. SIGTERM and Ctrl-C answer what has been asked, and end.
    """
    if Path(model).exists():
        tell(f"starting to serve {model}")  # what is imported and compiled takes seconds
    try:
        from thresher.serving import server
    except ModuleNotFoundError as error:
        from thresher.options.option import UsageError

        if str(error.name).startswith("thresher"):
            raise
        raise UsageError(
            f"thresher serve needs {error.name}, which is not installed: pip install 'thresher[serve]'"
        ) from error
    server.serve(Path(model), options)
