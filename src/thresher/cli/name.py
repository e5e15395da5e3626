"""``thresher name``."""

from __future__ import annotations

from pathlib import Path

from thresher.options.arguments import DATA, MODEL
from thresher.options.judging import NameCommand

ARGUMENTS, OPTIONS = (MODEL, DATA), NameCommand


def command(model: str, data: list[str], options: NameCommand) -> None:
    """Find the names of a model's features in DATA, and save them in the model.

    DATA is read like the training data, without learning, until every weight has a name. It can be any data
    with these features. Labels are ignored.
    """
    from thresher.cli.output import show_result
    from thresher.cli.saving import check_model, check_model_first, unbroken
    from thresher.data.files.paths import expand
    from thresher.runs.name import find
    from thresher.runs.preparing import check_outputs, quarantine_of

    path = Path(model)
    check_model_first(path, data, "name")
    target = options["output_file"] or path
    inputs = [*expand(data), *([model] if options["output_file"] else [])]
    spare = quarantine_of(options["on_error"])
    if options["output_file"]:
        check_model(target, [spare], inputs)
    else:  # the model that is read: if it is none, reading it says why
        check_outputs([target, spare], inputs)
    found = find(path, data, options, target)
    figures = {"nonzero": found.header["nonzero"], "named": len(found.names), "model": str(target)}
    with unbroken(target):
        found.write(target)
        show_result(figures, options["json"], target)
