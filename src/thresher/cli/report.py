"""``thresher report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.options.arguments import Argument
from thresher.options.data import JudgingOptions
from thresher.options.judging import ReportCommand
from thresher.options.option import Options, UsageError, given_in

if TYPE_CHECKING:
    from thresher.reporting.facts import Facts

_MODEL = Argument("MODEL|DIR", "A model, or the folder that thresher path or select has written.")
ARGUMENTS, OPTIONS = (_MODEL,), ReportCommand
_ENDINGS = (".html", ".htm")


def command(model: str, options: Options) -> None:
    """Write one HTML page about a model, for anyone to read: it needs no network and no script.

    It shows how training went, the heaviest weights, the settings and warnings. With --data it also shows
    how well the model predicts the test data, and how well its probabilities are calibrated.
    """
    from thresher.cli.output import show_result, tell_reading
    from thresher.runs.report import prepare

    data = [*options["data"]] or None
    if data is None and (
        options["slices"] or options["threshold"] is not None or given_in(options, JudgingOptions)
    ):
        raise UsageError("--slice, --threshold and the options for reading need data: give --data TEST")
    target = options["output_file"] or Path(f"{model}.html")
    if target.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{target}: a report is an HTML page: name a file that ends in .html")
    run = prepare(Path(model), data, target, options, inputs=[Path(model)])
    size = run.write()
    if run.facts.test is not None:
        tell_reading(run.facts.test.lines)
    show_result(_figures(run.facts, target, size, options["json"]), options["json"], target)


def _figures(found: Facts, target: Path, size: int, everything: bool) -> dict[str, Any]:
    """The figures to print; with --json, all figures of the page."""
    test = {} if found.test is None else found.test.figures
    shown: dict[str, Any] = {"report": str(target), "bytes": size}
    if not everything:
        return shown | {name: value for name, value in test.items() if not isinstance(value, list)}
    shown["model"] = None if found.model is None else found.model.info
    shown["frontier"] = None if found.frontier is None else found.frontier.as_dict()
    if found.selection is not None:
        shown["selection"] = {**found.selection.figures(), "each": found.selection.rows()}
    if found.test is not None:
        shown["test"] = test
        shown["slices"] = found.test.slices
        shown["roc"] = {name: one.roc() for name, one in found.test.rankings}
        shown["precision_recall"] = {name: one.precision_recall() for name, one in found.test.rankings}
    return shown | {"command": found.command}
