"""Fitting a model to data in memory, with a certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from thresher.batch.rounds import BoostPlan, Round, loss_of
from thresher.batch.solving import Boosted, domain_of, objective_of, solved
from thresher.data.labels import listed_words
from thresher.data.source import Source
from thresher.data.sources.reader import default_threads
from thresher.learning.training.progress import Ui
from thresher.options.kinds import DEVIATIONS
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import mention, mention_command
from thresher.options.option import Options, UsageError
from thresher.plans import run_setup

Run = Callable[[Callable[[Round], None]], Boosted]
"""Fits the model, with its warnings, and calls back with every round. Raises `DataError`"""


def prepare(
    data: run_setup.Data, options: Options, ui: Ui, *, outputs: Sequence[Path | None] = ()
) -> tuple[Source, Run]:
    """Data for a fit, and what fits the model; `outputs` are files that will be written.

    `UsageError`, `DataError`, OSError.
    """
    started, names = time.perf_counter(), ("l2", "method", "tolerance", "rounds")
    strength, deviations = str(options["l1"]).removesuffix(DEVIATIONS), isinstance(options["l1"], str)
    with of_options():
        loss = loss_of(options["loss"], options["method"])
        plan = BoostPlan(
            float(strength),
            deviations=deviations,
            threads=options["threads"] or default_threads(),
            **{name: options[name] for name in names},
        )
    layout = layout_asked(options)
    if run_setup.has_offsets(layout, options):
        raise UsageError(f"{mention('offset')} is for {mention_command('train')}; boost adds none to margins")
    read = run_setup.reading_of(options) | {"layout": layout}
    two = loss.DOMAIN == "binary" and options["outputs"] is None
    _, found, read, note = run_setup.classes_in(
        data, None if two else options["loss"], options["outputs"], read
    )
    words = read["layout"].classes if read["layout"] else ()
    if two and len(words) > 2:
        raise UsageError(
            f"labels are {len(words):,} words ({listed_words(words)}), but the loss is for two classes: use"
            f" {mention(loss='softmax')}, or name two, {mention(classes='WORD,WORD')}, and leave out other"
            f" rows, {mention(on_error='skip')}"
        )
    with of_options():
        head = objective_of(loss, found, options["method"])
    if note:
        ui.say(note)
    source = run_setup.open_data(data, domain_of(head), **read)
    run_setup.check_written(outputs, options, data, source)
    return source, partial(solved, source, options["intercept"], head, plan, started)
