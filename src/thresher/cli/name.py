"""``thresher name``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.cli import options
from thresher.cli.decorators import takes
from thresher.cli.overwriting import check_model
from thresher.cli.saving import unbroken

NAME = "name"
SHORT = "Add the names of features to a model."


@takes(table=options.Writing)
def command(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path | None,
        typer.Option("--output-file", "-o", metavar="FILE", help="Where to write.  [default: MODEL itself]"),
    ] = None,
    table: options.Writing = options.NO_WRITING,
    on_error: options.OnError = "skip",
    as_json: options.Json = False,
) -> None:
    """Find the names of a model's features in DATA, and save them in the model.

    DATA is read like the training data, without learning, until every weight has a name. It can be any data
    with these features. Labels are ignored.
    """
    from thresher.cli.output import show_result
    from thresher.data.errors import DataError
    from thresher.data.files.paths import expand
    from thresher.learning import modelfile
    from thresher.learning.feature_names import name_features

    options.check_model_first(model, data, NAME)
    before = _stamp(model)
    header, tensors = modelfile.read(model)
    readout = modelfile.readout_of(model, header, tensors)
    target = output or model
    inputs = [*expand(data), *([str(model)] if output else [])]
    check_model(target, [options.quarantine_of(on_error)], inputs)
    layout = table.like(readout.layout)
    names = name_features(readout, data, on_error=on_error, where=table.where, layout=layout)
    tensors = {name: array for name, array in tensors.items() if not name.startswith(modelfile.NAMES)}
    figures: dict[str, Any] = {"nonzero": header["nonzero"], "named": len(names), "model": str(target)}
    if target == model and _stamp(model) != before:
        raise DataError(f"{model}: another process has changed it meanwhile: run thresher name again")
    with unbroken(target):
        modelfile.write(target, header, tensors | modelfile.tensors_of_names(names))
        show_result(figures, as_json, target)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Values that change when the file is written."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
