"""``thresher.ensemble``: models of one recipe on different rows, from one reading of the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from numpy.typing import ArrayLike

from thresher.cluster.elsewhere import reads_elsewhere
from thresher.data.layout import AnyLayout
from thresher.data.order import make_order
from thresher.lanes.api import printing, trainer_of
from thresher.lanes.bagging import Bagging
from thresher.lanes.bags import Bags
from thresher.lanes.validation import check_order
from thresher.learning.api import groups_given, held_of, planned, read_as
from thresher.learning.beginning import labels_or_part, prepared_for_lanes
from thresher.learning.ensemble import Ensemble
from thresher.learning.given import Data, with_groups, with_labels
from thresher.learning.keywords import TrainOptions, check_names
from thresher.learning.model import Model
from thresher.learning.recipe import Recipe, Spec
from thresher.learning.trouble import warn


@reads_elsewhere
def ensemble(
    data: Data,
    y: ArrayLike | Spec | None = None,
    loss: Spec | None = None,
    *,
    models: int | str = 8,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rule: Spec = "ft-ftrl",
    outputs: str | None = None,
    passes: int | str = "auto",
    replay: int | str = "64MB",
    order: str = "as-is",
    holdout: Data | float | None = None,
    holdout_every: int = 0,
    early_stop: int | None = None,
    patience: int = 0,
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: AnyLayout | None = None,
    where: str = "",
    report_every: int | None = None,
    **options: Unpack[TrainOptions],
) -> Ensemble[Model]:
    """Train several models on different rows of `data`; together they predict with the mean of their margins.

    Args:
        data, y, loss, sample_weight, groups, rule: as for `train`; but not the rule ``auto``.
        models: ``N`` or ``poisson:N``: N models that learn each row with a Poisson(1) importance (bagging);
            or ``disjoint:N``: each row is learned by one of N models. The draws depend on `seed`.
        order: as for `train`, but in several passes not one that is drawn anew in each; with such an order
            ``passes="auto"`` makes one pass.
        holdout, holdout_every, early_stop, patience: as for `train`; the ensemble is evaluated as a whole.
        outputs, passes, replay, on_error, threads, cache, layout, where, report_every, options: as for
            `train`.

    Raises the errors of `train`.

    >>> found = ensemble("examples/data/rcv1_train2000.dat.gz", models=4)
    >>> len(found.models), found.spread([{140: 0.5}]).shape
    (4, (1,))
    """
    check_names(ensemble, {"rule": rule, **options}, TrainOptions)
    labels, rule = labels_or_part(data, y, "rule", rule, Recipe.rule)
    plan, holdout = planned(passes, replay, patience, early_stop, holdout, holdout_every, report_every)
    of = plan.holdout_every, groups_given(groups, layout, options)
    read = read_as(*of, on_error=on_error, threads=threads, layout=layout, where=where)
    data = with_labels(data, labels, sample_weight)
    recipe, source = with_groups(prepared_for_lanes(data, rule, loss, outputs, options, **read), groups)
    held = held_of(holdout, recipe.head().domain, source, threads, on_error)
    check_order(shuffling := make_order(str(order), recipe.seed), plan.passes, "go to different models")
    bagging = Bagging(replace(recipe, layout=None), Bags.of(models, recipe.seed))
    bagging.layout = source.layout
    watcher = printing(plan, bagging.head, source.layout)
    outcome = trainer_of(bagging, source, plan, shuffling, held, cache, watcher=watcher).run()
    bagging.warnings = warn(outcome.warnings)
    return bagging
