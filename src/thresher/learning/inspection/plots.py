"""Pictures of one model: how it learned, and how well its predictions agree with data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from thresher.drawing import Axis, Panel, Series, chart, panels
from thresher.engine.atomic import whole_file
from thresher.learning.evaluation.curves import Binned, wilson
from thresher.learning.model.objective import Objective
from thresher.learning.training.progress import Curve, Row, Tally

_HALF = 0.5
"""If no share is larger, the axes of the calibration end at the largest: where one class is rare."""


class Stage(NamedTuple):
    """A point of a curve, as a `Row` of the table."""

    examples: int
    loss_since: float
    average: float
    nonzero: int | None
    """None if not counted"""
    features_seen: int
    in_pass: int = 1
    """2: in any later pass"""


def write(path: Path, picture: str) -> None:
    """Write a complete picture, or leave the file unchanged. Raises OSError."""
    with whole_file(path) as file:
        file.write(picture)


def draw(plot: Path | None, picture: Callable[[], str], table: Path | None, rows: Callable[[], str]) -> None:
    """Write a picture and a table to the files that are named. OSError."""
    for path, made in ((plot, picture), (table, rows)):
        if path is not None:
            write(path, made())


def stages_of_curve(curve: Curve, nonzero: int) -> list[Stage]:
    """The points of a model's curve; `nonzero` weights are left at the end.

    A curve has progressive losses only: of the loss in later passes it knows nothing.
    """
    found, before = [], Tally(0.0, 0.0)
    for point in curve:
        since, again = point.tally.since(before).average, point.tally == before and point.weight > 0
        own = point.tally.average, point.nonzero, point.features_seen
        found.append(Stage(point.examples, since, *own, in_pass=1 + again))
        before = point.tally
    return [*found[:-1], *(stage._replace(nonzero=nonzero) for stage in found[-1:])]


def learning(
    stages: Sequence[Row | Stage], loss: str, holdout: dict[str, Any] | None = None, **shape: Any
) -> str:
    """Progressive loss, and non-zero weights beside features seen, over the examples.

    Args:
        stages: the points to draw.
        loss: SPEC of the loss.
        holdout: figures of the model on the hold-out.
        shape: width and height, style and heading, as for `panels`.
    """
    examples, loss = [stage.examples for stage in stages], loss.partition(":")[0]
    # the default table has lines at 1, 2, 4, 8 ... examples, that of --report-every evenly spaced ones
    early = bool(examples) and 5 * examples[len(examples) // 2] < examples[-1]
    axis = Axis("examples", log=early, whole=True, low=None if early else 0)
    first = stages[: next((k for k, stage in enumerate(stages) if stage.in_pass > 1), len(stages))]
    average, since = [stage.average for stage in first], [stage.loss_since for stage in stages]
    shown = [
        Series("since the line before", examples[: len(first)], since[: len(first)], quiet=True),
        Series("average so far", examples[: len(first)], average),
    ]
    later = [stage for stage in stages[len(first) :] if not math.isnan(stage.loss_since)]
    if later:
        places, losses_again = [stage.examples for stage in later], [stage.loss_since for stage in later]
        shown.append(Series("rows seen before", places, losses_again, quiet=True))
    if holdout is not None and holdout["loss"] is not None and examples:
        shown.append(Series("held-out rows", examples[-1:], [holdout["loss"]], "dots", emphasis=True))
    losses_drawn = [loss for loss in (*average, *since) if not math.isnan(loss)]
    steep = bool(average) and max(losses_drawn, default=0.0) > 50 * average[-1] > 0
    losses = Axis(f"{loss} loss", log=steep, low=None if steep else 0)
    counted = [stage for stage in stages if stage.nonzero is not None]
    nonzero, seen = [stage.nonzero or 0 for stage in counted], [stage.features_seen for stage in stages]
    far_apart = bool(nonzero) and seen[-1] > 20 * nonzero[-1]
    features = Axis("features", log=far_apart, whole=True, low=None if far_apart else 0)
    sparsity = [
        Series("features seen", examples, seen, quiet=True),
        Series("non-zero weights", [stage.examples for stage in counted], nonzero, emphasis=True, colour=2),
    ]
    description = "Nothing was learned."
    if stages:
        end, which = stages[-1], ", that of the first pass," if len(first) < len(stages) else ","
        description = (
            f"After {end.examples:,} examples the average progressive {loss} loss is {end.average:.4g}{which}"
            f" and {end.nonzero or 0:,} of {end.features_seen:,} features seen have a weight."
        )
    return panels(
        "Progressive loss and sparsity",
        description,
        [
            Panel(axis, losses, shown, title="Loss of each example before it is learned"),
            Panel(axis, features, sparsity, title="Sparsity"),
        ],
        **shape,
    )


def agreement(head: Objective, found: Binned, figures: dict[str, Any], **shape: Any) -> str:
    """How well predictions agree with data.

    A calibration curve, where the model predicts probabilities; what was observed where so much was
    predicted, where it predicts one number. `found` and `figures` are those of an `Assessment`.
    """
    bins, ends, name = found.bins(), dict[str, Any](), "bins of equal weight"
    if head.classifies:
        intervals = [wilson(one["observed"], found.effective(one["weight"])) for one in bins]
        ends = {"low": [low for low, _ in intervals], "high": [high for _, high in intervals]}
        most = max([one["predicted"] for one in bins] + ends["high"], default=1.0)
        high, error = 1.0 if most > _HALF else max(1.05 * most, 1e-6), figures["calibration_error"]
        several = head.outputs.kind == "classes"
        what = "probability of the predicted class" if several else "predicted probability"
        title, diagonal = "Calibration: predicted probability and observed share", "perfect calibration"
        caption = f"{len(bins)} bins of equal weight with 95 % intervals"
        caption += "." if error is None else f"; the mean distance from the diagonal is {error:.3g}."
        x = Axis(f"{what} (grey: how many)", low=0, high=high, percent=True)
        y = Axis("share that came true", low=0, high=high, percent=True)
        strip, name = found.density(0.0, high), f"{name}, 95 % intervals"
    else:
        title, diagonal, rmse = "Predicted and observed", "observed as predicted", figures["rmse"]
        caption = f"The mean of what was observed in {len(bins)} bins of predictions, of equal weight"
        caption += "." if rmse is None else f"; the root mean squared error is {rmse:.4g}."
        x, y, strip = Axis("mean prediction (grey: how many)"), Axis("mean observation"), found.density()
    places, means = ([one[figure] for one in bins] for figure in ("predicted", "observed"))
    titles = [f"predicted {a:.4g}, observed {b:.4g}" for a, b in zip(places, means, strict=True)]
    series = [Series(name, places, means, "both", titles=titles, **ends)]
    shape = {"height": 480, **shape}
    return chart(title, caption, x, y, series, diagonal=diagonal, strip=strip, **shape)
