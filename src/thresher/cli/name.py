"""``thresher name``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thresher.options.arguments import DATA, MODEL
from thresher.options.data import ReadOptions
from thresher.options.judging import NameCommand
from thresher.options.option import given_in

ARGUMENTS, OPTIONS = (MODEL, DATA), NameCommand


def command(model: str, data: list[str], options: NameCommand) -> None:
    """Find the names of a model's features in DATA, and save them in the model.

    DATA is read like the training data, without learning, until every weight has a name. It can be any data
    with these features. Labels are ignored.
    """
    from thresher.cli.output import show_result
    from thresher.cli.saving import check_model, check_model_first, unbroken
    from thresher.data.errors import DataError
    from thresher.data.files.paths import expand
    from thresher.learning.files import model_file
    from thresher.learning.inspection.feature_names import name_features
    from thresher.runs.preparing import quarantine_of

    path = Path(model)
    check_model_first(path, data, "name")
    before = _stamp(path)
    header, tensors = model_file.read(path)
    readout = model_file.readout_of(path, header, tensors)
    target = options["output_file"] or path
    inputs = [*expand(data), *([model] if options["output_file"] else [])]
    check_model(target, [quarantine_of(options["on_error"])], inputs)
    reading: Any = given_in(options, ReadOptions)
    names = name_features(readout, data, **reading)
    tensors = {name: array for name, array in tensors.items() if not name.startswith(model_file.NAMES)}
    figures: dict[str, Any] = {"nonzero": header["nonzero"], "named": len(names), "model": str(target)}
    if target == path and _stamp(path) != before:
        raise DataError(f"{model}: another process has changed it meanwhile: run thresher name again")
    with unbroken(target):
        model_file.write(target, header, tensors | model_file.tensors_of_names(names))
        show_result(figures, options["json"], target)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Values that change when the file is written."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
