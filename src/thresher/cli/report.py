"""``thresher report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli import options
from thresher.cli.decorators import reads_elsewhere, takes
from thresher.cli.errors import UsageError
from thresher.cli.evaluate import Slices, Threshold

if TYPE_CHECKING:
    from thresher.reporting.facts import Facts

SHORT = "Write an HTML page about a model: its training, quality and weights."
_ENDINGS = (".html", ".htm")
_Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL|DIR",
        show_default=False,
        help="A model, or the folder that thresher path has written.",
    ),
]
_Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="TEST",
        show_default=False,
        help="Labelled data that the model has not seen, to measure it on; repeat for more files.",
    ),
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output-file",
        "-o",
        metavar="FILE.html",
        help="The page to write. An existing file is replaced only if it is a report.  [default: MODEL.html]",
    ),
]


@reads_elsewhere
@takes(table=options.Judging)
def command(
    model: _Model,
    data: _Data = None,
    output: _Output = None,
    slices: Slices = None,
    threshold: Threshold = None,
    table: options.Judging = options.NO_JUDGING,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Write one HTML page about a model, for anyone to read: it needs no network and no script.

    It shows how training went, the heaviest weights, the settings and warnings. With --data it also shows
    how well the model predicts the test data, and how well its probabilities are calibrated.
    """
    from thresher.cli.output import show_result, tell_reading
    from thresher.learning import modelfile
    from thresher.reporting import api, facts

    if not data and (slices or threshold is not None or table != options.NO_JUDGING):
        raise UsageError("--slice, --threshold and the options for reading need data: give --data TEST")
    target = _target(model, output)
    found = facts.facts_of(model)
    if data:
        _measure(found, model, data, target, threshold, slices or [], table, on_error, threads)
    if found.model is not None:
        from thresher.cli.remaking import remaking

        with modelfile.naming_file(model):
            found.command = remaking(Path(found.name), found.model.header, found.model.info)
    size = api.write(target, found)
    if found.test is not None:
        tell_reading(found.test.lines)
    show_result(_figures(found, target, size, as_json), as_json, target)


def _target(model: Path, output: Path | None) -> Path:
    """The path of the page. UsageError, OSError."""
    from thresher.reporting import api

    target = output or Path(f"{model}.html")
    if target.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{target}: a report is an HTML page: name a file that ends in .html")
    return api.check_target(target)


def _measure(
    found: Facts,
    model: Path,
    data: list[str],
    target: Path,
    threshold: float | None,
    slices: list[str],
    table: options.Judging,
    on_error: str,
    threads: int | None,
) -> None:
    """Measure the model on test data. UsageError, and the errors of reading."""
    from thresher.data.files.paths import expand
    from thresher.data.listed import unquoted
    from thresher.reporting.facts import measure

    options.check_outputs([target, options.quarantine_of(on_error)], [model, *expand(data)])
    trained = None if found.model is None else found.model.readout.layout
    reading: dict[str, Any] = {"on_error": on_error, "threads": threads, "where": table.where}
    if layout := table.like(trained):
        reading["layout"] = layout
    try:
        measure(found, data, threshold, [*map(unquoted, slices)], **reading)
    except ValueError as error:
        if type(error) is ValueError:  # of options
            raise UsageError(str(error)) from error
        raise


def _figures(found: Facts, target: Path, size: int, everything: bool) -> dict[str, Any]:
    """The figures to print; with --json, all figures of the page."""
    test = {} if found.test is None else found.test.figures
    shown: dict[str, Any] = {"report": str(target), "bytes": size}
    if not everything:
        return shown | {name: value for name, value in test.items() if not isinstance(value, list)}
    shown["model"] = None if found.model is None else found.model.info
    shown["frontier"] = None if found.frontier is None else found.frontier.as_dict()
    if found.test is not None:
        shown["test"] = test
        shown["slices"] = found.test.slices
        shown["roc"] = {name: one.roc() for name, one in found.test.rankings}
        shown["precision_recall"] = {name: one.precision_recall() for name, one in found.test.rankings}
    return shown | {"command": found.command}
