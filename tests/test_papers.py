"""Results printed or proved in the papers, checked with the learner itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from experiments.papers.reid_transcript import PUBLISHED, followed
from tests.oracle_base import Vector
from tests.oracles import growth_constants, regret_bound_truncated
from tests.plain import not_compiled
from tests.streams import Stream, model_of, read_weights, stream, stream_of
from thresher.data import open_source
from thresher.data.chunk import Chunk, concat
from thresher.learning.model.model import Model

RCV1 = Path(__file__).parent.parent / "examples" / "data" / "rcv1_train2000.dat.gz"


@pytest.fixture(scope="module")
def rcv1() -> Chunk:
    return concat(list(open_source(RCV1).chunks()))


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(("dtype", "store"), [("float64", "growing"), ("float32", "direct")])
def test_reids_transcript_line_by_line(dtype: str, store: str, rcv1: Chunk) -> None:
    model = Model("pegasos:l2=1e-4,skip_correct=true", "hinge", intercept=False, dtype=dtype, store=store)
    found, features = followed(model, rcv1)
    assert len(PUBLISHED) == 20
    assert found == PUBLISHED
    assert set(model.weights()[0].tolist()) <= features


# Theorem 3.1 of Langford, Li and Zhang (JMLR 2009)

PAPER_LOSSES = {"logistic": "binary", "hinge": "binary", "squared": "real"}


def path_of(model: Model, data: Stream) -> Vector:
    """w_1, ..., w_{T+1}, read between the steps."""
    path = np.zeros((len(data.y) + 1, data.X.shape[1]))
    for i in range(len(data.y)):
        model.learn(data.chunk, i, i + 1)
        path[i + 1] = read_weights(model, data.X.shape[1])
    return path


def holds(spec: str, loss: str, eta: float, data: Stream, comparators: list[Vector]) -> None:
    with not_compiled():
        model = model_of(spec, loss, rate=f"constant:{eta}", intercept=False)
        path = path_of(model, data)
    radius = float(np.sqrt((data.X**2).sum(axis=1).max(initial=0.0)))
    growth = growth_constants(loss, radius)
    for comparator in [*comparators, path[-1], path.mean(axis=0)]:
        left, right = regret_bound_truncated(path, comparator, model.rule, model.loss, data.X, data.y, growth)
        assert left <= right + 1e-12


GRAVITIES = [
    *("truncated-gradient:gravity=0.02", "truncated-gradient:gravity=0.1,theta=0.2"),
    *("truncated-gradient:gravity=0.05,every=5", "truncated-gradient:gravity=0.05,theta=0.3,every=3"),
    "truncated-gradient:gravity=0.1,theta=gravity",
]


@pytest.mark.parametrize("loss", PAPER_LOSSES)
@given(st.data())
def test_theorem_3_1_on_any_stream(loss: str, data: st.DataObject) -> None:
    values = st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0])
    rows = data.draw(st.lists(st.tuples(values, values, values), min_size=1, max_size=30))
    labels = st.sampled_from([-1.0, 1.0] if loss != "squared" else [-3.0, 0.0, 0.5, 2.0])
    y = data.draw(st.lists(labels, min_size=len(rows), max_size=len(rows)))
    X = np.array(rows)
    examples = stream_of(X, X != 0, np.array(y), np.ones(len(y)))
    comparator = np.array(data.draw(st.tuples(*[st.floats(-4, 4)] * 3)))
    holds(
        data.draw(st.sampled_from(GRAVITIES)), loss, data.draw(st.floats(0.01, 0.6)), examples, [comparator]
    )


class Spiteful:
    """Answers each weight vector with the example that it gets most wrong."""

    def __init__(self, loss: Any, choices: Vector, labels: list[float]) -> None:
        self.loss, self.choices, self.labels = loss, choices, labels

    def answer(self, w: Vector) -> tuple[Vector, float]:
        worst = max(
            ((x, y) for x in self.choices for y in self.labels),
            key=lambda pair: self.loss.value_slope(float(w @ pair[0]), pair[1])[0],
        )
        return worst[0], worst[1]


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("eta", [0.45])
@pytest.mark.parametrize("loss", PAPER_LOSSES)
@pytest.mark.parametrize("spec", GRAVITIES[1::2])
def test_theorem_3_1_against_an_adversary(spec: str, loss: str, eta: float) -> None:
    labels = [-1.0, 1.0] if loss != "squared" else [-2.0, 1.0]
    model = model_of(spec, loss, rate=f"constant:{eta}", intercept=False)
    foe = Spiteful(model.loss, np.array([[1.0, 0, 0], [0.5, 0.5, 0], [0, -0.5, 0.75], [0, 0, 1.0]]), labels)
    met = []
    for _ in range(150):
        x, y = foe.answer(read_weights(model, 3))
        met.append((x, y))
        model.learn(Chunk.of_rows([(y, {j: v for j, v in enumerate(x) if v})]))
    X = np.array([x for x, _ in met])
    data = stream_of(X, X != 0, np.array([y for _, y in met]), np.ones(len(met)))
    holds(spec, loss, eta, data, [np.zeros(3), np.ones(3), np.array([-2.0, 0.0, 1.0])])


def test_theorem_3_1_is_close_to_an_equality_where_nothing_is_learned() -> None:
    """The bound that the tests above hold must be the theorem's, not some number that is always larger."""
    X, y = np.ones((1, 1)), np.array([1.0])
    model = model_of("truncated-gradient:gravity=0", "hinge", rate="constant:0.01")
    path = np.array([[0.0], [0.01]])
    best = np.array([0.01])
    left, right = regret_bound_truncated(
        path, best, model.rule, model.loss, X, y, growth_constants("hinge", 1.0)
    )
    assert left == 1.0
    assert right == pytest.approx(0.005 + 0.0001 / 0.02 + 0.99)  # = 1: the bound is tight here


# What the papers say about each other's methods


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_truncated_gradient_without_theta_is_fobos_with_l1(loss: str) -> None:
    data = stream(31, 300, domain="real" if loss == "squared" else "binary")
    ours, theirs = model_of("truncated-gradient:gravity=0.06", loss), model_of("fobos:l1=0.06", loss)
    for model in (ours, theirs):
        model.learn(data.chunk)
    assert np.abs(read_weights(ours, 12) - read_weights(theirs, 12)).max() <= 1e-14
    assert ours.intercept == pytest.approx(theirs.intercept, abs=1e-14)
    assert 0 < ours.nonzero < 12


def test_fobos_with_the_next_rate_converges_on_a_batch() -> None:
    """Section 3 of Duchi and Singer (2009): |Xw - y|^2 / n + l1 |w|_1, minimised in many passes."""
    data, l1, rows = stream(36, 20, 4, "real", weighted=False), 0.05, 20

    def objective(halves: Vector) -> tuple[float, Vector]:
        rest = data.X @ (halves[:4] - halves[4:]) - data.y
        gradient = 2.0 * data.X.T @ rest / rows
        return rest @ rest / rows + l1 * halves.sum(), np.concatenate([l1 + gradient, l1 - gradient])

    options = {"ftol": 1e-15, "gtol": 1e-12}
    found = minimize(
        objective, np.zeros(8), jac=True, bounds=[(0, None)] * 8, method="L-BFGS-B", options=options
    )
    model = model_of(f"fobos:l1={l1},next_rate=true", "squared", rate="inverse:2", intercept=False)
    gaps = []
    for passes in (10, 90, 900):
        for _ in range(passes):
            model.learn(data.chunk)
        w = read_weights(model, 4)
        gaps.append(objective(np.concatenate([np.maximum(w, 0), np.maximum(-w, 0)]))[0] - found.fun)
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2] > 0
    assert gaps[2] < 2e-5
    assert np.abs(w - (found.x[:4] - found.x[4:])).max() < 0.02


@pytest.mark.usefixtures("plainly")
def test_rda_without_penalty_is_dual_averaging() -> None:
    """w_{t+1} minimises <sum of gradients, w> + gamma sqrt(t) |w|^2 / 2 (Nesterov 2009)."""
    data, gamma = stream(32, 200, domain="real"), 3.0
    model = model_of(f"rda:gamma={gamma},l1=0", "squared", intercept=False)
    w, total = np.zeros(12), np.zeros(12)
    for t in range(1, len(data.y) + 1):
        x = data.X[t - 1]
        total += data.importance[t - 1] * 2.0 * (w @ x - data.y[t - 1]) * x
        w = -total / (gamma * np.sqrt(t))
    model.learn(data.chunk)
    assert np.abs(read_weights(model, 12) - w).max() <= 1e-12


@pytest.mark.usefixtures("plainly")
def test_pegasos_stays_in_its_ball() -> None:
    data = stream(34, 200, domain="real", scale=3.0)
    model = model_of("pegasos:l2=0.25", "squared", intercept=False)
    norms = np.sqrt((path_of(model, data) ** 2).sum(axis=1))
    assert norms.max() <= 2.0 + 1e-9
    assert (np.abs(norms - 2.0) < 1e-9).sum() > 3, "the projection was never needed"
