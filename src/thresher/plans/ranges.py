"""What runs with many penalties share: finding the penalties, compiling ahead, choosing a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from thresher.data.errors import DataError
from thresher.data.order import make_order
from thresher.learning.diagnostics.findings import Finding
from thresher.learning.files.choice import Rated, choose, instead_of
from thresher.learning.model.eight_lanes import FEW
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.options.lanes import AUTO, BEST
from thresher.options.layouts import of_options
from thresher.options.messages import mention
from thresher.options.option import Options, UsageError
from thresher.plans.frontier import end_of_range
from thresher.plans.penalties import PenaltyRange, leaves_penalty_open, penalty_name, with_penalty
from thresher.plans.run import Opened


def check_varied(options: Options, base: Recipe) -> str:
    """The name of the penalty. `UsageError` if the rule has none, or fixes it and no range is given."""
    with of_options():
        name = penalty_name(base.rule)
        fixed = not _leaves_open(options["rule"])
    if fixed and options["l1"] is None and isinstance(options["rule"], str):
        raise UsageError(
            f"{name} differs between the models: leave it out of {mention('rule')}, or give its range,"
            f" {mention(l1='LO:HI:N')}"
        )
    return name


def is_varied(options: Options, base: Recipe) -> bool:
    """Whether to vary the penalty; `UsageError` if a range is given and the rule cannot use it."""
    if options["l1"] is not None:
        check_varied(options, base)
        return True
    with of_options():
        return _leaves_open(options["rule"])


def _leaves_open(rule: Any) -> bool:
    """Whether a rule leaves its penalty open; a recipe does not."""
    return not isinstance(rule, Recipe) and leaves_penalty_open(rule)


def any_penalties(base: Recipe) -> ModelSet:
    """Models with different penalties, to compile for."""
    return ModelSet([with_penalty(base, 0.001 * (1 + k)) for k in range(FEW)])


def recipes_of(base: Recipe, options: Options, data: Opened) -> list[Recipe]:
    """One recipe per penalty.

    A range is found on the first rows in the order of the run. `UsageError` if it cannot be found, as in data
    that can be read only once; `DataError`.
    """
    wanted = PenaltyRange(AUTO if options["l1"] is None else options["l1"])
    with of_options():
        if wanted.values:
            return [with_penalty(base, value) for value in wanted.values]
        if not data.source.rereadable:
            raise UsageError(
                f"the data can be read only once: give the range of penalties, {mention(l1='LO:HI:N')}"
            )
        source = data.again()
        first = make_order(data.order.spec, base.seed).over(source, 1)
        values = wanted.found_in(first, replace(base, layout=source.layout), ready=data.ready)
        return [with_penalty(base, value) for value in values]


def chosen_of(
    points: Sequence[Rated], which: str, say: Callable[[str], None]
) -> tuple[int, str, list[Finding]]:
    """The index of the point that `which` selects, and the criterion used: another if none satisfies it.

    Then a warning says so. Calls `say` if the choice is at an end of the range. `DataError` if no model has a
    loss.
    """
    try:
        number = choose(points, which)
    except ValueError as error:
        if which == BEST:
            raise DataError(str(error)) from error
        instead = instead_of(points, which)
        reason = f"{error}; choosing {'the best' if instead == BEST else 'that'} instead"
        return *chosen_of(points, instead, say)[:2], [Finding("choice", reason)]
    if message := end_of_range(points, number):
        say(message)
    return number, which, []
