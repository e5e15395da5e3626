"""``thresher report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.options.arguments import Argument
from thresher.options.data import JudgingOptions, ReadOptions
from thresher.options.judging import ReportCommand
from thresher.options.option import UsageError, given_in

if TYPE_CHECKING:
    from thresher.reporting.facts import Facts

_MODEL = Argument("MODEL|DIR", "A model, or the folder that thresher path has written.")
ARGUMENTS, OPTIONS = (_MODEL,), ReportCommand
_ENDINGS = (".html", ".htm")


def command(model: str, options: ReportCommand) -> None:
    """Write one HTML page about a model, for anyone to read: it needs no network and no script.

    It shows how training went, the heaviest weights, the settings and warnings. With --data it also shows
    how well the model predicts the test data, and how well its probabilities are calibrated.
    """
    from thresher.cli.output import show_result, tell_reading
    from thresher.learning.files import model_file
    from thresher.reporting import facts, page
    from thresher.runs.repeat import remaking

    path = Path(model)
    if not options["data"] and (
        options["slices"] or options["threshold"] is not None or given_in(options, JudgingOptions)
    ):
        raise UsageError("--slice, --threshold and the options for reading need data: give --data TEST")
    target = _target(path, options["output_file"])
    found = facts.facts_of(path)
    if options["data"]:
        reading = given_in(options, ReadOptions)
        _measure(found, path, target, options, reading)
    if found.model is not None:
        with model_file.naming_file(path):
            found.command = remaking(Path(found.name), found.model.header, found.model.info)
    size = page.write(target, found)
    if found.test is not None:
        tell_reading(found.test.lines)
    show_result(_figures(found, target, size, options["json"]), options["json"], target)


def _measure(
    found: Facts, model: Path, target: Path, options: ReportCommand, reading: dict[str, Any]
) -> None:
    """Measure the model on test data. `UsageError`, and the errors of reading."""
    from thresher.data.files.paths import expand
    from thresher.options.layouts import of_options
    from thresher.reporting.facts import measure
    from thresher.runs.preparing import check_outputs, quarantine_of

    data = [*options["data"]]
    check_outputs([target, quarantine_of(options["on_error"])], [model, *expand(data)])
    with of_options():
        measure(found, data, options["threshold"], options["slices"], **reading)


def _target(model: Path, output: Path | None) -> Path:
    """The path of the page. UsageError, OSError."""
    from thresher.reporting import page

    target = output or Path(f"{model}.html")
    if target.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{target}: a report is an HTML page: name a file that ends in .html")
    return page.check_target(target)


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
