"""``thresher info``."""

from __future__ import annotations

from pathlib import Path

from thresher.options.arguments import Argument
from thresher.options.judging import InfoCommand
from thresher.options.option import Options

_MODEL = Argument("MODEL", "A file that thresher has written: of one model or of many, or a checkpoint.")
ARGUMENTS, OPTIONS = (_MODEL,), InfoCommand


def command(model: str, options: Options) -> None:
    """Show a model: rule, options, data, columns, sparsity by column, sizes, and the command that trains it.

    Columns and namespaces are known only if the model has names; thresher name adds them.
    """
    from thresher.cli.output import show
    from thresher.cli.saving import check_drawn
    from thresher.plans.run_setup import check_outputs
    from thresher.runs.inspecting import describe, draw

    path, drawn = Path(model), (options["plot"], options["table"])
    found = describe(path)
    if drawn != (None, None):
        check_outputs(drawn, [model])
        check_drawn(options)
        draw(path, *drawn)
    show(found, options["json"])
