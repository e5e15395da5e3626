"""Compile what a model needs before its examples come: a server before it learns, and the wheel with code."""

from __future__ import annotations

import numpy as np

from thresher.data.chunk import Chunk
from thresher.learning.evaluation.evaluate import score
from thresher.learning.model.model import Model

FEATURES = 1 << 13
"""More than a new table has room for, so that the code that grows it is compiled too."""


def learn_anything(model: Model) -> None:
    """Run everything that training and predicting do with `model` on made-up examples."""
    keys, begins = np.arange(FEATURES, dtype=np.uint64), np.array([0, FEATURES, FEATURES + 1])
    values, (kind, low, *_) = np.full(FEATURES + 1, 1e-6, np.float32), model.head.outputs
    each = (2, model.head.count) if kind in ("labels", "values") else 2  # the outputs have their own labels
    labels = np.full(each, low if kind == "classes" else 1, np.float32)
    chunk = Chunk.from_csr(begins, np.append(keys, keys[:1]), values, labels)
    chunk = chunk.with_offsets(np.zeros(len(chunk))) if model.shifted else chunk
    model.learn(chunk)
    model.finish()
    model.check_finite()
    for reader in (model, model.predictor()):
        score(reader, [chunk])
        reader.predict(chunk, "probability" if model.head.has_probabilities else "margin")
    model.nonzero  # noqa: B018
    model.last_prediction  # noqa: B018
