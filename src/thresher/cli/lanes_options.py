"""Options shared by commands that train many models at once: the penalties and which model to choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from thresher.cli.reading import Reading
    from thresher.data.order import Order
    from thresher.lanes.frontier import Judged
    from thresher.learning.ahead import Ahead
    from thresher.learning.recipe import Recipe

AUTO, BEST = "auto:16", "best"


def check_choice(text: str | None) -> str | None:
    """Return the choice; typer.BadParameter if it is invalid."""
    from thresher.lanes import frontier

    try:
        return text if text is None else frontier.check_choice(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def budget_of(which: str) -> int | None:
    """N of ``nnz:N``; None for other choices."""
    from thresher.lanes import budget

    return budget.budget_of(which)


def choice(default: str) -> Any:
    """The option for which model to choose."""
    return typer.Option(
        metavar="WHICH",
        callback=check_choice,
        show_default=False,
        help="best, the lowest loss; 1se, the sparsest within one standard error of it; within:P%, the "
        "sparsest whose loss is at most P % higher; nnz:N, the best with at most N weights.  [default: "
        f"{default}]",
    )


def _check_range(text: str | None) -> str | None:
    from thresher.lanes.penalties import Range

    try:
        Range(text or AUTO)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return text


Penalties = Annotated[
    str | None,
    typer.Option(
        "--l1",
        metavar="LO:HI:N|auto:N",
        callback=_check_range,
        help="Penalties: N at even ratios from LO to HI, or in a range found in the first 4,096 rows. A rule "
        "without l1 uses its own penalty.  [default: auto:16]",
    ),
]


def compile_penalties_ahead(base: Recipe, predicts: bool) -> Ahead:
    """Start compiling what models with different penalties need."""
    from thresher.lanes.lanes import Lanes
    from thresher.lanes.penalties import with_penalty
    from thresher.learning.ahead import compile_ahead
    from thresher.learning.octet import FEW

    lanes = Lanes([with_penalty(base, 0.001 * (1 + k)) for k in range(FEW)])
    return compile_ahead(lanes.models[0], predicts, [lanes], lanes.parts)


def recipes_of(
    base: Recipe, l1: str, reading: Reading, source: Any, order: Order, ready: Callable[[], None]
) -> list[Recipe]:
    """One recipe per penalty.

    A range is found on the first rows in this order. `ready` returns once the kernels are compiled.

    Raises UsageError if a range cannot be found or the rule has no penalty, and DataError.
    """
    from dataclasses import replace

    from thresher.data.errors import DataError
    from thresher.data.order import make_order
    from thresher.lanes.penalties import Range, with_penalty

    wanted = Range(l1)
    try:
        if wanted.values:
            return [with_penalty(base, value) for value in wanted.values]
        if not source.rereadable:
            raise UsageError("a stream can be read only once: give the range of penalties, --l1 LO:HI:N")
        again = make_order(order.spec, base.seed).over(reading.again(source.layout, base.head().domain), 1)
        values = wanted.found_in(again, replace(base, layout=source.layout), ready=ready)
    except DataError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error
    return [with_penalty(base, value) for value in values]


def check_varied(rule: str, l1: str | None, base: Recipe) -> None:
    """UsageError if the rule has no penalty to vary, or fixes its penalty and no range is given."""
    from thresher.lanes.penalties import leaves_penalty_open, penalty_name

    try:
        name = penalty_name(base.rule)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if rule and l1 is None and not leaves_penalty_open(rule):
        raise UsageError(
            f"{name} differs between the models: leave it out of --rule, or give its range, --l1 LO:HI:N"
        )


def chosen_of(points: Sequence[Judged], which: str, say: Callable[[str], None]) -> tuple[int, str]:
    """The index of the point that `which` selects, and the criterion used: another if none satisfies it.

    Calls `say` in that case, and when the choice is at an end of the range. DataError if no model has a loss.
    """
    from thresher.data.errors import DataError
    from thresher.lanes.frontier import choose, end_of_range, instead_of

    try:
        number = choose(points, which)
    except ValueError as error:
        if which == BEST:
            raise DataError(str(error)) from error
        instead = instead_of(points, which)
        say(f"{error}; choosing {'the best' if instead == BEST else 'that'} instead")
        return chosen_of(points, instead, say)
    if message := end_of_range(points, number):
        say(message)
    return number, which
