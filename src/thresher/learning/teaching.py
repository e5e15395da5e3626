"""Train an existing model on data in any accepted form."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.cluster.elsewhere import reads_elsewhere
from thresher.learning.centring import alone
from thresher.learning.given import opened, with_labels
from thresher.learning.predicting import source_for
from thresher.learning.recipe import with_gaps
from thresher.learning.trouble import troubles_of_reading, warn
from thresher.options.data import ReadOptions
from thresher.options.layouts import layout_asked
from thresher.options.option import settled

if TYPE_CHECKING:
    from thresher.learning.model import Model


@reads_elsewhere
def teach(
    model: Model, data: Any, y: Any = None, sample_weight: Any = None, *, again: bool = False, **reading: Any
) -> None:
    """Let `model` learn `data` once: see `Model.learn`. The first data determine how later data are read."""
    from thresher.learning.feature_names import names_follow

    data = with_labels(data, y, sample_weight)
    options = settled(ReadOptions, reading, model.learn)
    first = not model.examples and model.layout is None
    if not first:
        source = source_for(model, data, model.head.domain, **reading)
    else:
        read: dict[str, Any] = {"on_error": options["on_error"], "threads": options["threads"]}
        read |= {"where": options["where"], "layout": with_gaps(layout_asked(options), model.recipe.centre)}
        source = opened(data, model.head.domain, **read)
        if source.layout is not None:
            model.layout = source.layout
    columns, named, new = getattr(source, "columns", None), model.names, False
    with closing(source.chunks()) as chunks:
        for chunk in chunks:
            model.learn(chunk, again=again)
            model.note_ids(alone(chunk, model.layout).span(), columns, model.layout)
            new = new or (named is not None and not np.isin(chunk.keys, named.features).all())
    unnamed = names_follow(model, source) if new else []
    warn(troubles_of_reading(source.report, source.layout if first else None) + unnamed)
