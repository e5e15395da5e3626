"""``thresher choose``."""

from __future__ import annotations

from pathlib import Path

from thresher.options.arguments import Argument
from thresher.options.judging import ChooseCommand
from thresher.options.option import Options

_MODELS = Argument("MODELS", "A file that thresher path, or train --ensemble, has written.")
_WHICH = Argument(
    "WHICH",
    "best, the lowest loss; 1se, the sparsest within one standard error of it; within:P%, the sparsest whose "
    "loss is at most P % higher; nnz:N, the best with at most N weights; or the number of a model, from 0.",
)
ARGUMENTS, OPTIONS = (_MODELS, _WHICH), ChooseCommand


def command(models: str, which: str, options: Options) -> None:
    """Take one of many models out of their file, with the state to go on if that is there."""
    from thresher.cli.output import show_result, shown_use
    from thresher.cli.saving import check_targets, unbroken
    from thresher.runs.choose import prepare

    target = options["model"]
    check_targets(target, options, [models])
    found = prepare(Path(models), which)
    with unbroken(target):
        found.write(target)
        used = shown_use(found.use, options["json"])
        show_result({**found.figures, **used, "model": str(target)}, options["json"], target)
