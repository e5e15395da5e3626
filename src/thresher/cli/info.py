"""``thresher info``."""

from __future__ import annotations

from pathlib import Path

from thresher.options.arguments import Argument
from thresher.options.judging import InfoCommand

_MODEL = Argument(
    "MODEL", "A model, a checkpoint, an ensemble, or the folder that thresher path has written."
)
ARGUMENTS, OPTIONS = (_MODEL,), InfoCommand


def command(model: str, options: InfoCommand) -> None:
    """Show a model: rule, options, data, columns, sparsity by column, sizes, and the command that trains it.

    Columns and namespaces are known only if the model has names; thresher name adds them.
    """
    from thresher.cli.output import show
    from thresher.runs.inspecting import describe

    show(describe(Path(model)), options["json"])
