"""`load`, `predict` and `evaluate`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.cluster.elsewhere import reads_elsewhere
from thresher.data.inputs.any_data import Data, with_labels
from thresher.learning.diagnostics.findings import troubles_of_reading, warn
from thresher.learning.evaluation.figures import assessed
from thresher.learning.evaluation.slices import figures_of_slices, names_of_columns, slices_of
from thresher.learning.files import model_file
from thresher.learning.inspection import plots
from thresher.learning.inspection.frames import Evaluated
from thresher.learning.model import ensemble
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.model import Model, as_model
from thresher.learning.model.objective import Output
from thresher.learning.model.prediction import ModelOrFile, codes_of, source_for, with_codes, with_columns
from thresher.learning.model.weights import Readout
from thresher.options.data import ReadOptions
from thresher.options.option import settled


def load(path: str | os.PathLike[str]) -> Readout:
    """Load a saved model to predict with; to go on learning, load it with `Model.load`.

    Args:
        path: the model file. `Ensemble.load` loads the folder of an ensemble.

    Raises `ModelFileError`; TypeError if `path` is not a path.
    """
    return model_file.load_readout(os.fspath(path))[0]


def _ready(model: ModelOrFile) -> Model | Readout | Ensemble[Any]:
    """The model or ensemble itself, or the one in a file, a folder or an estimator."""
    found = ensemble.load(model) if isinstance(model, str | os.PathLike) else model
    return found if isinstance(found, Ensemble) else as_model(found)


def readout_of(model: ModelOrFile) -> Readout:
    """The weights of a model, a file or an estimator. `ModelFileError`; TypeError for anything else."""
    ready = as_model(load(model) if isinstance(model, str | os.PathLike) else model)
    return ready.readout() if isinstance(ready, Model) else ready


@reads_elsewhere
def predict(
    model: ModelOrFile, data: Data, output: Output = "margin", **reading: Unpack[ReadOptions]
) -> NDArray[Any]:
    """Predict ``(n,)``, or ``(n, outputs)`` for many outputs, as ``model.predict`` does.

    Args:
        model: a Model, a Readout, an Ensemble, the path of a saved model or ensemble, a fitted estimator,
            or a result of `thresher.path`, `thresher.cv` or `thresher.tune`: its best model.
        data: examples; labels are optional and ignored. See `Model.predict`.
        output: ``margin``, ``probability`` or ``label``: see `Model.predict`. Probabilities of an estimator
            with several classes are those of its ``predict_proba``.
        reading: how to read `data`, where that differs from the training data: the options of
            `thresher.open_source` and the fields of a `Layout`.

    Raises `ModelFileError`, `DataError`, ValueError for an output that this loss does not have, TypeError if
    `model` is not a model.

    >>> import thresher
    >>> model = thresher.train([{"size": 3.0}, {"size": -2.0}] * 50, ["big", "small"] * 50, passes=3)
    >>> predict(model, [{"size": 5.0}], "label").tolist()
    ['big']
    """
    settled(ReadOptions, reading, predict)
    ready, given = _ready(model), with_columns(model, data)
    if output == "probability" and hasattr(model, "classes_") and ready.head.outputs.kind == "classes":
        return ready.predict_proba(given, **reading)  # of an estimator, whose probabilities add up to 1
    found = ready.predict(given, output, **reading)
    return _as_classes(model, found) if output == "label" else found


def _as_classes(model: Any, labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as the classes of `model`, if it is a fitted estimator; words are classes already."""
    classes = getattr(model, "classes_", None)
    if classes is None or labels.ndim != 1 or labels.dtype.kind != "f":
        return labels
    places = (labels > 0).astype(np.intp) if len(classes) == 2 else labels.astype(np.intp)
    found: NDArray[Any] = np.asarray(classes)[places]
    return found


@reads_elsewhere
def evaluate(
    model: ModelOrFile,
    data: Data,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    threshold: float | None = None,
    slices: str | Sequence[str] = (),
    plot: str | os.PathLike[str] | None = None,
    **reading: Unpack[ReadOptions],
) -> Evaluated:
    """Evaluate a model on data. Returns the figures of ``thresher evaluate --json``, see docs/evaluate.md.

    Args:
        model: a Model, a Readout, an Ensemble, the path of a saved model or ensemble, a fitted estimator,
            or a result of `thresher.path`, `thresher.cv` or `thresher.tune`: its best model.
        data: anything that `thresher.train` accepts.
        y: labels of the rows of `data`, ``(n,)`` or ``(n, outputs)``, if `data` does not contain them.
        sample_weight: importances ``(n,)``, together with `y`.
        threshold: predict the positive class above this probability (default 0.5), or above this margin
            (default 0) if the loss has no probabilities.
        slices: columns of a table, by name, position from 1 or pattern: ``slices`` of the result has figures
            for each of their values (docs/evaluate.md). Text is one column, or one pattern.
        plot: an SVG file to draw, as ``thresher evaluate --plot`` does.
        reading: how to read `data`, where that differs from the training data: the options of
            `thresher.open_source` and the fields of a `Layout`.

    The result has ``.frame()``: its figures as a row of a table.

    Raises `ModelFileError`, `DataError`, ValueError for wrong options, TypeError if `model` is not a model.
    """
    ready = _ready(model)
    settled(ReadOptions, reading, evaluate)
    target = None if plot is None else plots.checked(plot)
    labels = y if y is None else codes_of(model, y)
    data = with_labels(with_columns(model, with_codes(model, data)), labels, sample_weight)
    source = source_for(ready, data, ready.head.domain, **reading)
    beside = slices_of(ready, source, data, names_of_columns(slices), threshold, reading)
    found = assessed(ready, source, threshold, *beside)
    warn(troubles_of_reading(source.report))
    figures = {**found.figures(), **figures_of_slices(beside, found.examples)}
    if target is not None:
        plots.write(target, plots.agreement(ready.head, found.binned, figures))
    return Evaluated.of(figures, ready)
