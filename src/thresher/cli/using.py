"""The commands that use a model: ``thresher predict``, ``evaluate``, ``report``, ``weights``, ``export``."""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from thresher.cli import output, saving
from thresher.cli.parser import DATA, MODEL, Argument, command
from thresher.options import judging
from thresher.options.option import Options, UsageError

_ENDINGS = (".html", ".htm")
_EXPORTS = (b"written by thresher", b'"thresher_export"', b"\x12\x08thresher")
"""Each export has one of them at its beginning"""


@command(judging.PredictCommand, MODEL, DATA)
def predict(model: str, data: list[str], options: Options) -> None:
    """Print one prediction per row; several outputs are separated by tabs.

    A row from standard input or a pipe is answered as soon as it has arrived. Labels are ignored and may be
    missing. A row skipped by --on-error gets nan, so that lines match rows.
    Class names are written unchanged; on a terminal, control characters are escaped.
    """
    from thresher.engine.atomic import whole_file
    from thresher.learning.model.ensemble import load
    from thresher.runs import using

    path, target = Path(model), options["output_file"]
    saving.check_model_first(path, data, "predict")
    predictor = load(path, options["choose"])
    run = using.predict(predictor, data, options, inputs=[path], outputs=[target])
    saving.check_predictions(target, predictor.classes or (), identified=bool(options["id"]))
    with nullcontext(sys.stdout) if target is None else whole_file(target) as file:
        for lines in run.lines(escaped=target is None and sys.stdout.isatty()):
            file.write("".join(line + "\n" for line in lines))
            file.flush()
    output.tell_reading(run.source.report)
    if run.broken:
        what = "1 prediction is" if run.broken == 1 else f"{run.broken:,} predictions are"
        click.echo(f"warning: {what} not finite: the values in these rows are too large", err=True)


@command(judging.EvaluateCommand, MODEL, DATA)
def evaluate(model: str, data: list[str], options: Options) -> None:
    """Measure a model on labelled data: loss, error, AUC and more, beside those of the base rate."""
    from thresher.learning.evaluation.figures import figure_tables
    from thresher.learning.evaluation.slices import slice_lines
    from thresher.learning.inspection.formatting import table_of_rows
    from thresher.learning.model.ensemble import load
    from thresher.runs.using import measure

    path = Path(model)
    saving.check_drawn(options)
    saving.check_model_first(path, data, "evaluate")
    figures, lines_read, troubles = measure(load(path, options["choose"]), data, options, inputs=[path])
    output.tell_skipped(lines_read)
    output.tell_warnings(troubles)
    if options["json"]:
        output.show_figures(figures, True)
        return
    output.show_figures(
        {name: value for name, value in figures.items() if not isinstance(value, list | dict)}, False
    )
    lines = ["", *table_of_rows(rows)] if (rows := figures.get("top")) else []
    lines += [
        line for column, rows in figures.get("slices", {}).items() for line in slice_lines(column, rows)
    ]
    if lines := [*lines, *(figure_tables(figures) if options["detail"] else [])]:
        click.echo("\n".join(lines))


@command(
    judging.ReportCommand,
    Argument("MODEL", "A model, or what thresher path or select has written."),
    Argument(
        "DATA...", "Labelled data that the model has not seen, to measure it on.", many=True, required=False
    ),
)
def report(model: str, data: list[str], options: Options) -> None:
    """Write one HTML page about a model, for anyone to read: it needs no network and no script.

    It shows how training went, the heaviest weights, the settings and warnings. With DATA it also shows
    how well the model predicts them, and how well its probabilities are calibrated.
    """
    from thresher.runs import using

    target = options["output_file"] or Path(f"{model}.html")
    if target.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{target}: a report is an HTML page: name a file that ends in .html")
    saving.check_model_first(Path(model), data, "report")
    found, write = using.report(Path(model), data or None, target, options, inputs=[Path(model)])
    size = write()
    if found.test is not None:
        output.tell_reading(found.test.lines)
    test = {} if found.test is None else found.test.figures
    shown: dict[str, Any] = {"report": str(target), "bytes": size}
    if not options["json"]:
        shown |= {name: value for name, value in test.items() if not isinstance(value, list)}
    else:  # all figures of the page
        shown["model"] = None if found.model is None else found.model.info
        shown["frontier"] = None if found.frontier is None else found.frontier.as_dict()
        if found.selection is not None:
            one = found.selection
            shown["selection"] = {**one.figures(), "each": one.rows()}
        if found.test is not None:
            shown["test"] = test
            shown["slices"] = found.test.slices
            if found.test.assessment.head.is_of_two:
                ranking = found.test.assessment.plain.ranking()
                shown |= {"roc": ranking.roc(), "precision_recall": ranking.precision_recall()}
        shown["command"] = found.command
    output.show_result(shown, options["json"], target)


@command(judging.WeightsCommand, MODEL)
def weights(model: str, options: Options) -> None:
    """Print feature, name if known, and weight, tab-separated, largest first; the intercept last.

    Names come from thresher train --names and thresher name; those of numeric columns are always known. Tabs
    and non-printable characters in them are escaped.

    With many outputs, the class (or the number of the output) comes before the weight. With --interval, which
    is for an ensemble, the weight is followed by the ends of its interval and by the share of the models in
    which it is not zero.
    """
    from thresher.data.errors import printable
    from thresher.learning.files import model_file
    from thresher.learning.inspection.feature_names import is_nameable, known_names
    from thresher.options.layouts import of_options

    top, level = options["top"], options["interval"]
    most = top if options["output_class"] is None else None  # those of a class are found among all
    if level is not None:
        from thresher.learning.model.ensemble import load
        from thresher.runs.using import check_ensemble

        ensemble: Any = load(Path(model))
        check_ensemble(ensemble, "an interval")
        predictor, header = model_file.load_predictor(model, None if ensemble.values else "0")
        named, found = ensemble.models, ensemble.weights(level)
        heaviest, biases = found.heaviest(most), found.biases()
    else:
        predictor, header = model_file.load_predictor(model)
        named = [predictor]
        biases = [(one,) for one in predictor.bias]
        heaviest = [(key, output, (weight,)) for key, output, weight in predictor.heaviest(most)]

    def shown(name: str | None) -> str:
        return "" if name is None else printable(name.replace("\\", r"\\"))

    shown_outputs = range(len(biases))
    if options["output_class"] is not None:
        with of_options():
            one = predictor.head.output_of(options["output_class"], predictor.classes or ())
        heaviest, shown_outputs = [row for row in heaviest if row[1] == one][:top], range(one, one + 1)
    called = {key: name for one in named for key, name in known_names(one).items()}.get
    rows = [(str(key), shown(called(key)), output, numbers) for key, output, numbers in heaviest]
    if header["recipe"]["intercept"]:
        met = [output for output in shown_outputs if biases[output][0] > -math.inf]
        rows += [("intercept", "", output, biases[output]) for output in met]
    names = predictor.head.names(predictor.classes) if predictor.head.outputs.kind != "one" else []
    for key, name, number, numbers in rows:
        of = [shown(names[number])] if names else []
        written = [f"{one:.9g}" if type(one) is float else str(one) for one in numbers]
        click.echo("\t".join((key, name, *of, *written)))
    if is_nameable(predictor) and not all(name for _, name, *_ in rows[: len(heaviest)]):
        click.echo(f"some features have no names: thresher name {model} DATA finds them", err=True)
    if predictor.unmet.any():
        each = ", ".join(map(str, predictor.unmet.tolist()))
        click.echo(f"features that were never seen have the weight {each}", err=True)


@command(judging.ExportCommand, MODEL)
def export(model: str, options: Options) -> None:
    """Write a model as one file without dependencies, which predicts from raw values in another language.

    What a target cannot express is refused before anything is written.
    """
    from thresher.plans.run_setup import check_written
    from thresher.runs import using

    target = options["output_file"]
    check_written([target], options, [model])
    saving.check_kind(target, "an export", lambda head: any(mark in head for mark in _EXPORTS))
    made = using.export(Path(model), options["to"], target)
    if target is None:
        click.echo(made, nl=False)
