"""The commands for files: ``thresher info``, ``choose``, ``name`` and ``log``."""

from __future__ import annotations

from pathlib import Path

import click

from thresher.cli import output, saving
from thresher.cli.parser import DATA, MODEL, Argument, command
from thresher.options import judging
from thresher.options.option import Options

_FILE = Argument("MODEL", "A file that thresher has written: of one model or of many, or a checkpoint.")
_MODELS = Argument("MODELS", "A file that thresher path, or train --ensemble or --by, has written.")
_WHICH = Argument(
    "WHICH",
    "best, the lowest loss; 1se, the sparsest within one standard error of it; within:P%, the sparsest whose "
    "loss is at most P % higher; nnz:N, the best with at most N weights; or the number of a model, from 0. "
    "Of models by column: a value, or all.",
)
DAMAGED = 1
"""Exit status"""


@command(judging.InfoCommand, _FILE)
def info(model: str, options: Options) -> None:
    """Show a model: rule, options, data, columns, sparsity by column, sizes, and the command that trains it.

    Columns and namespaces are known only if the model has names; thresher name adds them.
    """
    from thresher.plans.run_setup import check_written
    from thresher.runs.files import describe, draw

    path, drawn = Path(model), (options["plot"], options["table"])
    found = describe(path)
    if drawn != (None, None):
        check_written([], options, [model])
        saving.check_drawn(options)
        draw(path, *drawn)
    output.show(found, options["json"])


@command(judging.ChooseCommand, _MODELS, _WHICH)
def choose(models: str, which: str, options: Options) -> None:
    """Take one of many models out of their file, with the state to go on if that is there."""
    from thresher.runs import files

    target = options["model"]
    saving.check_targets(target, options, [models])
    figures, use, write = files.choose(Path(models), which)
    with saving.defer_signals(target):
        write(target)
        used = output.budget_figures(use, options["json"])
        output.show_result({**figures, **used, "model": str(target)}, options["json"], target)


@command(judging.NameCommand, MODEL, DATA)
def name(model: str, data: list[str], options: Options) -> None:
    """Find the names of a model's features in DATA, and save them in the model.

    DATA is read like the training data, without learning, until every weight has a name. It can be any data
    with these features. Labels are ignored.
    """
    from thresher.data.files.paths import expand
    from thresher.plans.run_setup import check_written
    from thresher.runs import files

    path = Path(model)
    saving.check_model_first(path, data, "name")
    target = options["output_file"] or path
    inputs = [*expand(data), *([model] if options["output_file"] else [])]
    if options["output_file"]:
        saving.check_targets(target, options, inputs)
    else:  # the model that is read: if it is none, reading it says why
        check_written([target], options, inputs)
    figures, write = files.name(path, data, options, target)
    with saving.defer_signals(target):
        write()
        output.show_result({**figures, "model": str(target)}, options["json"], target)


@command(judging.LogCommand, Argument("LOG", "The folder of a log, as thresher serve writes it."))
def log(log: str, options: Options) -> None:
    """Show what is in the log of a server, and check all of it.

    A log is data: thresher train --continue MODEL LOG learns what the server has learned. The exit status is
    1 if the log is damaged; what a write that was cut short has left at its end is no damage.
    """
    from thresher.data.log.source import contents_of
    from thresher.runs.files import LogInfo

    told = LogInfo(contents_of(log, options["last"]))
    output.show(told, options["json"])
    if told["damage"]:
        raise click.exceptions.Exit(DAMAGED)
