"""Error, RMSE, loss and AUC against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher import Chunk
from thresher.learning.evaluation.evaluate import Evaluation, auc
from thresher.learning.model.objective import Objective

EXAMPLES = st.lists(
    st.tuples(st.integers(-3, 3), st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])),
    min_size=1,
    max_size=30,
)


@given(EXAMPLES)
def test_auc_is_the_chance_that_a_positive_one_is_above(examples: list[tuple[int, bool, float]]) -> None:
    above = pairs = 0.0
    for up, positive, w in examples:
        for down, other, v in examples:
            if positive and not other:
                pairs += w * v
                above += w * v * (1.0 if up > down else 0.5 if up == down else 0.0)
    margins, labels, weights = (np.array(column) for column in zip(*examples, strict=True))
    found = auc(margins.astype(float), labels, weights)
    assert found is None if pairs == 0 else found == pytest.approx(above / pairs, abs=1e-12)


def chunk(labels: list[float], weights: list[float]) -> Chunk:
    return Chunk.of_rows([(label, {1: 1.0}) for label in labels], weights)


def test_classes_are_weighted_by_importance() -> None:
    found = Evaluation(Objective("logistic"))
    margins = np.array([2.0, -1.0, 0.0])
    found.add(chunk([1, 1, 0], [1, 2, 5]), margins)
    figures = found.figures()
    losses = np.log1p(np.exp(np.array([-2.0, 1.0, 0.0]))) @ [1, 2, 5]
    assert list(figures) == ["examples", "loss", "error", "auc"]
    assert figures["examples"] == 3
    assert figures["loss"] == pytest.approx(losses / 8)
    assert figures["error"] == pytest.approx(2 / 8)
    assert figures["auc"] == pytest.approx(1 / 3)


def test_numbers_are_weighted_by_importance() -> None:
    found = Evaluation(Objective("squared"))
    margins = np.array([1.0, 4.0])
    found.add(chunk([2, 2], [1, 3]), margins)
    figures = found.figures()
    assert list(figures) == ["examples", "loss", "rmse"]
    assert figures["rmse"] == pytest.approx(math.sqrt((1 + 3 * 4) / 4))


def test_one_class_has_no_auc_and_nothing_has_no_loss() -> None:
    found = Evaluation(Objective("hinge"))
    assert found.figures()["auc"] is None
    assert math.isnan(found.average_loss)
    found.add(chunk([1, 1], [1, 1]), np.array([0.5, -0.5]))
    assert found.figures()["auc"] is None
    assert found.figures()["error"] == 0.5
