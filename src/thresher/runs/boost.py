"""Fitting a model to data in memory, with a certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from thresher.batch.rounds import BoostPlan, Round, loss_of
from thresher.batch.solving import Boosted, objective_of, solve, solve_along
from thresher.data.labels import list_words
from thresher.data.source import Source
from thresher.data.sources.reader import default_threads
from thresher.learning.training.progress import Ui
from thresher.options.kinds import DEVIATIONS
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import mention, mention_command
from thresher.options.option import Options, UsageError
from thresher.options.training import is_range
from thresher.plans import run_setup
from thresher.plans.folds import Folds
from thresher.plans.frontier import points_held_out
from thresher.plans.models import Frontier
from thresher.plans.penalties import PenaltyRange

Run = Callable[[Callable[[Round], None]], Boosted]
"""Fits the model, with its warnings, and calls back with every round. Raises `DataError`"""


def prepare(
    data: run_setup.Data, options: Options, ui: Ui, *, outputs: Sequence[Path | None] = ()
) -> tuple[Source, Run]:
    """Data for a fit, and what fits the model; `outputs` are files that will be written.

    `UsageError`, `DataError`, OSError.
    """
    started, names = time.perf_counter(), ("l2", "method", "tolerance", "rounds")
    l1, wanted = options["l1"], None
    if is_range(l1):
        l1, wanted = 1.0, PenaltyRange(l1)
        if options["method"] == "parallel":
            raise UsageError(f"several penalties are for {mention(method='newton')}: give one")
    elif unused := [name for name in ("folds", "choose") if name in options.given]:
        raise UsageError(f"{mention(*unused)} is for several penalties: give {mention(l1='auto:16')}")
    strength, deviations = str(l1).removesuffix(DEVIATIONS), isinstance(l1, str)
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
    read = run_setup.reading_of(options, layout)
    two = loss.DOMAIN == "binary" and options["outputs"] is None
    _, found, read, note = run_setup.classes_in(
        data, None if two else options["loss"], options["outputs"], read, beforehand=True
    )
    words = read["layout"].classes if read["layout"] else ()
    if two and len(words) > 2:
        two_named = f"name two, {mention(classes='WORD,WORD')}, and {mention(on_error='skip')}"
        reason = f"labels are {len(words):,} words ({list_words(words)}), but the loss is for two classes"
        raise UsageError(f"{reason}: use {mention(loss='softmax')}, or {two_named}")
    with of_options():
        head = objective_of(loss, found, options["method"])
    if note:
        ui.say(note)
    source = run_setup.open_data(data, head.domain, **read)
    run_setup.check_written(outputs, options, (), data, source)
    solving = source, options["intercept"], head, plan, started
    if wanted is None:
        return source, partial(solve, *solving)

    def along(_: Callable[[Round], None]) -> Boosted:
        """The chosen model, with those of all penalties."""
        folds = Folds(options["folds"])
        made = wanted.down_from, folds.count, folds.folds_of, ui.say
        models, margins, rows = solve_along(*solving, *made)
        points = points_held_out(models, rows, margins)
        chosen = Frontier("l1", points, models, choice=options["choose"]).decided(ui.warn)
        found = models[chosen.number()]
        found.frontier = chosen
        found.warnings += chosen.warnings
        return found

    return source, along
