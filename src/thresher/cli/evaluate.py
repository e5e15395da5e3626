"""``thresher evaluate``."""

from __future__ import annotations

from thresher.cli import options

NAME = "evaluate"
SHORT = "Measure a model on labelled data."


@options.takes(table=options.Writing)
def command(
    model: options.Model,
    data: options.Data,
    table: options.Writing = options.NO_WRITING,
    on_error: options.OnError = "fail",
    threads: options.Threads = None,
    as_json: options.Json = False,
) -> None:
    """Measure a model on labelled data: loss, and error and AUC (regression: RMSE)."""
    from thresher.cli.output import show_figures, tell_skipped
    from thresher.data import open_source
    from thresher.learning import metrics, modelfile

    readout, header = modelfile.load_readout(model)
    layout = table.like(readout.layout)
    source = open_source(
        data, layout=layout, domain=readout.head.domain, on_error=on_error, threads=threads, where=table.where
    )
    options.check_outputs([options.quarantine_of(on_error)], [model, *source.names])
    figures = {**metrics.evaluate(readout, source).figures(), "nonzero": header["nonzero"]}
    tell_skipped(source.report)
    show_figures(figures, as_json)
