"""What calls of the package share: plans, what is held out; load, evaluate."""

from __future__ import annotations

import os
from typing import Any, Unpack

from numpy.typing import ArrayLike

from thresher.data.labels import Domain
from thresher.data.layout import SettledLayout
from thresher.learning import modelfile
from thresher.learning.assessment import assess
from thresher.learning.given import Data, as_source, with_labels
from thresher.learning.keywords import SourceOptions, check_names
from thresher.learning.model import Model, as_model
from thresher.learning.predicting import ModelOrFile, source_for
from thresher.learning.readout import Readout
from thresher.learning.shares import Every, every_of
from thresher.learning.training import Plan


def held_apart(holdout: Any, holdout_every: int | None, default: int = 0) -> tuple[Every, Data | None]:
    """What is held out: every N-th example (0: none), and data of their own or None. ValueError.

    `holdout` may be a share of the examples; `default` holds where nothing is said.
    """
    every = every_of(holdout)
    if every is None:
        unsaid = default if holdout is None else 0
        return unsaid if holdout_every is None else holdout_every, holdout
    if holdout_every:
        raise ValueError(f"holdout={holdout!r} and holdout_every={holdout_every!r}: give one of them")
    return every, None


def planned(
    passes: int, patience: int, holdout: Any = None, holdout_every: int | None = None, default: int = 0
) -> tuple[Plan, Data | None]:
    """The plan, and data of their own to evaluate on. ValueError for patience with nothing to judge by."""
    every, given = held_apart(holdout, holdout_every, default)
    plan = Plan(passes, None, holdout_every=every, patience=patience)
    if patience and not plan.judges(given):
        raise ValueError("patience needs examples that are held out: give holdout or holdout_every")
    return plan, given


def held_of(holdout: Data | None, domain: str | Domain, source: Any, threads: int | None) -> Any:
    """The source of what is held out, which lines set aside may not overwrite; None for none."""
    if holdout is None:
        return None
    held = as_source(holdout, domain, threads=threads, layout=source.layout or SettledLayout())
    if hasattr(source, "on_error"):
        source.on_error.check_spares(held.names)
    return held


def load(path: str | os.PathLike[str]) -> Readout:
    """The weights of a saved model, ready to predict. `Model.load` gives one that can go on learning.

    Args:
        path: of a model file.

    Raises `ModelFileError`; TypeError for what is no path.
    """
    return modelfile.load_readout(os.fspath(path))[0]


def _ready(model: ModelOrFile) -> Model | Readout:
    """A model itself, or that of a file or an estimator."""
    return as_model(load(os.fspath(model)) if isinstance(model, str | os.PathLike) else model)


def readout_of(model: ModelOrFile) -> Readout:
    """The weights of a model itself, or that of a file or an estimator. As `load`; TypeError for others."""
    ready = _ready(model)
    return ready.readout() if isinstance(ready, Model) else ready


def evaluate(
    model: ModelOrFile,
    data: Data,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = None,
    **reading: Unpack[SourceOptions],
) -> dict[str, Any]:
    """What a model is worth on data: the figures of ``thresher evaluate --json``, see docs/evaluate.md.

    Args:
        model: a Model, a Readout, the path of a saved one, or a fitted estimator.
        data: whatever `thresher.train` takes.
        y: labels of the rows of `data` ``(n,)`` or ``(n, outputs)``, where they stand beside them.
        sample_weight: importances ``(n,)``, beside `y`.
        threshold: the positive class is predicted above it: a probability (0.5 by default), or a margin (0 by
            default) where the loss gives no probabilities.
        reading: how `data` are read, where it is not as the training data were: the options of
            `thresher.open_source` and the fields of a `Layout`.

    Raises `ModelFileError`, `DataError`, ValueError for wrong options, TypeError for what is no model.
    """
    ready = _ready(model)
    check_names(evaluate, reading, SourceOptions)
    source = source_for(ready, with_labels(data, y, sample_weight), ready.head.domain, **reading)
    return assess(ready, source, threshold)
