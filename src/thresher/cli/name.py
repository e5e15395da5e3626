"""``thresher name``."""

from __future__ import annotations

from pathlib import Path

from thresher.options.arguments import DATA, MODEL
from thresher.options.judging import NameCommand
from thresher.options.option import Options

ARGUMENTS, OPTIONS = (MODEL, DATA), NameCommand


def command(model: str, data: list[str], options: Options) -> None:
    """Find the names of a model's features in DATA, and save them in the model.

    DATA is read like the training data, without learning, until every weight has a name. It can be any data
    with these features. Labels are ignored.
    """
    from thresher.cli.output import show_result
    from thresher.cli.saving import check_model_first, check_targets, unbroken
    from thresher.data.files.paths import expand
    from thresher.plans.run_setup import check_outputs, extra_outputs
    from thresher.runs.name import find

    path = Path(model)
    check_model_first(path, data, "name")
    target = options["output_file"] or path
    inputs = [*expand(data), *([model] if options["output_file"] else [])]
    if options["output_file"]:
        check_targets(target, options, inputs)
    else:  # the model that is read: if it is none, reading it says why
        check_outputs([target, *extra_outputs(options)], inputs)
    found = find(path, data, options, target)
    figures = {"nonzero": found.nonzero, "named": len(found.names), "model": str(target)}
    with unbroken(target):
        found.write(target)
        show_result(figures, options["json"], target)
