"""Racing settings of several rules, and training the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from thresher.lanes.models import Search
from thresher.lanes.tuning import RULES, Tuner, are_centred
from thresher.options.lanes import VARIED
from thresher.options.layouts import layout_asked, of_options
from thresher.options.messages import mention
from thresher.options.option import DEFAULT_RULE, UsageError, given_in
from thresher.runs.preparing import (
    Inputs,
    check_written,
    held_apart,
    holdout_of,
    order_of,
    passes_asked,
    ready,
    source_of,
)
from thresher.runs.ui import Ui


def prepare(inputs: Inputs, options: Any, ui: Ui, *, outputs: Sequence[Path | None] = ()) -> Search:
    """Prepare a search over settings; `outputs` are files that will be written. `UsageError`, `DataError`."""
    for name in VARIED:
        if name in given_in(options):
            raise UsageError(
                f"{mention(name)} is varied by tune: leave it out; {mention('rules')} names the rules to try"
            )
    every, judge = held_apart(options)
    made, kept = passes_asked(options)
    rules = options["rules"] or RULES
    with of_options():
        centre = are_centred(rules, options["scale"], options["centre"])
    base, read = ready(
        inputs, options.but(rule=DEFAULT_RULE, centre=centre), layout_asked(options), every, ui
    )
    source = source_of(inputs, base.head().domain, read)
    held = holdout_of(judge, base.head().domain, source, read, once=True)
    check_written(outputs, options, inputs.data, source, held)
    with of_options():
        tuner = Tuner(replace(base, layout=source.layout), rules, options["budget"])
    order, tell = order_of(options, None, base.seed), _teller(tuner, ui)
    return Search(tuner, source, order, held, options["cache"], ui.watcher, tell, every, made, kept)


def _teller(tuner: Tuner, ui: Ui) -> Callable[[int], None]:
    def tell(number: int) -> None:
        if tuner.chosen is not None:
            best, rounds = tuner.trials[tuner.chosen], len(tuner.rounds)
            ui.say(f"round {number + 1} of {rounds}, {len(tuner.trials)} settings: {best.rule}")

    return tell
