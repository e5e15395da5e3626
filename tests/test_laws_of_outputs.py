"""Laws 1 to 4, 6 and 8 for models with many outputs and for steps on many examples, over the registry."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import many, streams
from tests.covering import covering_for
from tests.plain import not_compiled
from tests.test_laws_of_state import make_small
from thresher import parts
from thresher.data.chunk import Chunk
from thresher.learning.files import model_file
from thresher.learning.model.model import Model

GROUPS = [
    f"{rule},group={group}"
    for group in ("l2", "linf")
    for rule in (
        *("fobos:l1=0.05", "fobos:l1=0.03,l2=0.3", "adagrad-fobos:eta=0.2,l1=0.05"),
        *("adagrad-fobos:eta=0.2,l1=0.05,l2=0.3,delta=0.1", "ft-ftrl:l1=0.3"),
    )
]
STORED = streams.KINDS[::3]
"""Rules that are tried in other stores than the growing one, too"""
JOINT = ["softmax", "softmax:smoothing=0.1", "crammer-singer"]
CLASSES, FEATURES = 3, 8


def grouped(name: str) -> list[str]:
    return [spec for spec in GROUPS if spec.partition(":")[0] == name]


def tried(name: str) -> list[str]:
    return [streams.settings_of(name)[0], *grouped(name)]


class Stream:
    """Random examples of three classes, or of three numbers each; features at very different frequencies."""

    def __init__(self, domain: str, seed: int = 0, rows: int = 40) -> None:
        rng = np.random.default_rng(seed)
        stored = rng.random((rows, FEATURES)) < np.minimum(1.0, 1.0 / np.arange(1, FEATURES + 1) ** 0.7)
        X = np.where(stored, rng.uniform(-1, 1, stored.shape), 0.0).astype(np.float32)
        score = X @ rng.normal(size=(FEATURES, CLASSES)) + 0.3 * rng.normal(size=(rows, CLASSES))
        if domain == "classes":
            labels = score.argmax(axis=1) + 1.0
            self.targets = labels[:, np.newaxis] - 1
        else:
            labels = np.array([streams.labels_of(domain, column, rng) for column in score.T]).T.astype(
                np.float32
            )
            self.targets = labels.astype(np.float64)
        importance = rng.choice([0.5, 0.25, 1.0, 1.0, 1.7], rows)
        row, column = np.nonzero(stored)
        indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
        self.chunk = Chunk.from_csr(indptr, column, X[row, column], labels, importance)
        self.X: streams.Vector = X.astype(np.float64)
        self.importance = self.chunk.weights.astype(np.float64)


def stream_for(loss: str, outputs: str, **options: Any) -> Stream:
    return Stream("classes" if outputs.startswith("classes") else streams.domain_of(loss), **options)


def model_of(spec: str, loss: str, outputs: str, *, rate: str = streams.RATE, **options: Any) -> Model:
    options.setdefault("dtype", "float64")
    options.setdefault("centre", False)
    return Model(spec, loss, outputs=outputs, rate=rate if streams.has_rate(spec) else None, **options)


def check(model: Model, data: Stream, tolerance: float = 1e-10) -> None:
    name = parts.part_name(type(model.rule))
    expected = many.run(
        name,
        model.rule,
        model.head,
        data.X,
        data.targets,
        data.importance,
        intercept=model.recipe.intercept,
        batch=model.recipe.batch,
    )
    model.learn(data.chunk)
    model.finish()
    predictor = model.predictor()
    found = np.tile(predictor.unmet, (FEATURES, 1))
    if len(predictor.keys):
        found[predictor.keys.astype(int)] = predictor.weights.reshape(len(predictor.keys), -1)
    weights, intercepts = expected.weights, expected.intercepts
    scale = max(1.0, np.abs(weights).max(), np.abs(intercepts).max(initial=0.0))
    assert np.abs(found - weights).max() <= tolerance * scale
    assert np.abs(np.asarray(model.intercept) - intercepts).max() <= tolerance * scale
    assert model.tally.loss == pytest.approx(data.importance @ expected.losses, rel=10 * tolerance)
    learned = np.abs(expected.weights).max() > 1e-3 or np.ptp(expected.losses) > 1e-3
    assert learned or not expected.losses.any(), "nothing learned"


# Law 1: all settings of all rules in plain Python, loops of each kind compiled


def pairs_of(name: str) -> list[tuple[str, str]]:
    """Every setting, some rules with every loss, and every group with every joint loss."""
    losses = [*JOINT, *(streams.LOSSES if name in streams.LONG else ["logistic", "squared"])]
    pairs = covering_for(name, [*streams.settings_of(name), *grouped(name)], losses)
    return list(dict.fromkeys([*pairs, *((spec, loss) for spec in grouped(name) for loss in JOINT)]))


@pytest.mark.parametrize("name", streams.RULES)
def test_lazy_is_eager(name: str) -> None:
    for spec, loss in pairs_of(name):
        outputs = f"classes:{CLASSES}" if loss in JOINT else f"values:{CLASSES}"
        with streams.case(spec, loss), not_compiled():
            check(model_of(spec, loss, outputs), stream_for(loss, outputs, seed=1, rows=32))


@pytest.mark.parametrize("name", streams.RULES)
def test_one_versus_the_rest_is_eager(name: str) -> None:
    for spec, loss, intercept in covering_for(name, tried(name), ("logistic", "hinge"), (True, False)):
        with streams.case(spec, loss, intercept), not_compiled():
            check(model_of(spec, loss, "classes:3", intercept=intercept), stream_for(loss, "classes", seed=2))


@pytest.mark.parametrize("name", streams.RULES)
def test_a_batch_is_one_step(name: str) -> None:
    first, *others = streams.settings_of(name)
    data, binary = stream_for("softmax", "classes", seed=3), _first_output(seed=4)
    for spec, batch in [(first, 2), *((spec, 7) for spec in (first, *others, *grouped(name)))]:
        with streams.case(spec, batch), not_compiled():
            check(model_of(spec, "softmax", "classes:3", batch=batch), data)
            if spec == first:
                check(model_of(spec, "logistic", "values:1", batch=batch), binary)


def _first_output(seed: int) -> Stream:
    data = Stream("binary", seed)
    chunk = data.chunk
    data.targets = data.targets[:, :1]
    data.chunk = Chunk.from_csr(chunk.indptr, chunk.keys, chunk.values, data.targets, chunk.weights)
    return data


# rows that measure; steps on one example; groups; each is compiled for other tests, too
@pytest.mark.parametrize(
    ("spec", "loss"),
    [
        ("ft-ftrl:l1=0.3", "logistic"),
        ("adagrad-rda:l1=0.01", "hinge"),
        ("ft-ftrl:l1=0.3,group=l2", "softmax"),
    ],
)
def test_compiled_loops_are_eager(spec: str, loss: str) -> None:
    data = stream_for(loss, "classes", seed=5, rows=300)
    check(model_of(spec, loss, "classes:3", dtype="float32"), data, 1e-4)


@pytest.mark.parametrize("group", ["l2", "linf"])
def test_compiled_groups_are_eager(group: str) -> None:
    """With parts that examples/images.py compiles too."""
    options: dict[str, Any] = {"rate": "constant:0.1", "dtype": "float32", "batch": 4}
    for spec in (f"fobos:l1=0.05,group={group}", f"fobos:l1=0.03,l2=0.3,group={group}"):
        check(model_of(spec, "squared", "values:3", **options), stream_for("squared", "values", seed=5), 1e-4)


@pytest.mark.parametrize("name", streams.RULES)
def test_single_precision_is_near(name: str) -> None:
    data = stream_for("crammer-singer", "classes", seed=6, rows=60)
    with not_compiled():
        check(
            model_of(streams.settings_of(name)[0], "crammer-singer", "classes:3", dtype="float32"), data, 1e-4
        )


def test_compiled_batches_are_eager() -> None:
    data = stream_for("hinge", "labels", seed=6)
    check(model_of("perceptron:eta=0.1", "hinge", "labels:1-3", batch=4), data)


@pytest.mark.parametrize("group", ["l2", "linf"])
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.lists(st.floats(0, 1), max_size=5))
def test_steps_without_gradients_are_one_of_the_summed_strength(group: str, row: Any, strengths: Any) -> None:
    part = parts.make("group", group)
    once = np.array(row)
    part.together(once, float(np.sum(strengths)))
    often = np.array(row)
    for strength in strengths:
        often = {"l2": many.prox_l2, "linf": many.prox_linf}[group](often, strength)
    assert np.allclose(once, often, rtol=0, atol=1e-9)


SQUARABLE = st.floats(-3, 3).filter(lambda v: v == 0 or abs(v) > 1e-150)
"""Numbers whose squares are not rounded to zero"""


@pytest.mark.parametrize("group", ["single", "l2", "linf"])
@given(st.lists(SQUARABLE, min_size=1, max_size=6))
def test_a_penalty_of_the_dual_norm_leaves_nothing_a_smaller_one_does(group: str, row: list[float]) -> None:
    part = parts.make("group", group)
    for share, left in ((1.000001, False), (0.999, True)):
        v, owed = np.array(row), share * part.dual(np.array(row))
        v[:] = [part.alone(w, owed) for w in v]
        part.together(v, owed)
        assert v.any() == (left and max(map(abs, row)) > 0), (v, owed)


@pytest.mark.parametrize("name", streams.RULES)
def test_labels_are_so_many_values_and_so_many_binary_models(name: str, tmp_path: Path) -> None:
    for loss in ("logistic", "squared-hinge") if name in streams.LONG else ("logistic",):
        data = stream_for(loss, "labels", seed=11)
        for spec in tried(name):
            with streams.case(spec, loss), not_compiled():
                margins = _margins_of_labels(spec, loss, data, tmp_path / "model")
                if spec not in GROUPS:
                    _are_those_of_binary_models(margins, spec, loss, data)


def _margins_of_labels(spec: str, loss: str, data: Stream, place: Path) -> streams.Vector:
    """What a model of labels predicts, which is what one of values does."""
    labels, values = (model_of(spec, loss, outputs) for outputs in ("labels:4-6", "values:3"))
    for model in (labels, values):
        model.learn(data.chunk)
    assert fingerprint(labels) == fingerprint(values)
    model_file.save(labels, place)
    predictor, _ = model_file.load_predictor(place)
    assert predictor.head.outputs.spec == "labels:4-6"
    margins = predictor.predict(data.chunk)
    assert margins.tobytes() == values.predict(data.chunk).tobytes()
    assert np.array_equal(predictor.predict(data.chunk, "label") > 0, margins > 0)
    return margins


def _are_those_of_binary_models(margins: streams.Vector, spec: str, loss: str, data: Stream) -> None:
    chunk = data.chunk
    for k in range(CLASSES):
        single, labels = model_of(spec, loss, "one"), data.targets[:, k]
        single.learn(Chunk.from_csr(chunk.indptr, chunk.keys, chunk.values, labels, chunk.weights))
        assert np.allclose(single.predict(chunk), margins[:, k], rtol=0, atol=1e-12)


# Laws 2, 3, 4, 6, 8


def fingerprint(model: Model) -> dict[str, bytes]:
    return {name: np.ascontiguousarray(array).tobytes() for name, array in model.state().items()}


def states_of(name: str) -> list[tuple[str, str, int]]:
    """Settings, stores and batches of a rule in which its state is cut, saved and read."""
    stores = ("growing", "direct", "hashed:4") if name in STORED or grouped(name) else ("growing",)
    return covering_for(name, tried(name), stores, (1, 5))


@pytest.mark.parametrize("name", streams.RULES)
def test_neither_cutting_nor_stopping_nor_looking_changes_anything(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch)
    data = stream_for("softmax", "classes", seed=8, rows=30)
    for spec, store, batch in states_of(name):
        with streams.case(spec, store, batch), not_compiled():
            options: dict[str, Any] = {"store": store, "batch": batch, "dtype": "float32"}
            whole, cut = (model_of(spec, "softmax", "classes:3", **options) for _ in range(2))
            check_cuts(whole, cut, data.chunk, tmp_path / "model")


def check_cuts(whole: Model, cut: Model, chunk: Chunk, place: Path) -> None:
    """Learn the chunk at once, and in pieces between which the model is looked at, saved and loaded."""
    recipe, few = whole.recipe, chunk.rows(10, 20)
    whole.learn(chunk)
    for lo, hi in pairwise([0, 1, 13, len(chunk)]):
        cut.learn(chunk.rows(lo, hi))
        margins = cut.predict(few)
        model_file.save(cut, place)
        assert cut.predictor().predict(few).tobytes() == margins.tobytes()
        cut, _ = model_file.load(place)
    assert fingerprint(cut) == fingerprint(whole)
    assert cut.recipe == recipe
    predictor, header = model_file.load_predictor(place)
    assert predictor.predict(chunk).tobytes() == whole.predict(chunk).tobytes()
    assert header["nonzero"] == whole.nonzero == np.count_nonzero(predictor.weights)
    assert whole.examples == len(chunk)


@pytest.mark.parametrize("name", streams.RULES)
def test_the_store_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = stream_for("softmax", "classes", seed=9)
    make_small(monkeypatch)
    for spec in tried(name):
        with streams.case(spec), not_compiled():
            growing, direct = (
                model_of(spec, "softmax", "classes:3", store=store) for store in ("growing", "direct")
            )
            check_stores(growing, direct, data.chunk)


def check_stores(one: Model, other: Model, chunk: Chunk) -> None:
    found = []
    for model in (one, other):
        model.learn(chunk)
        keys, weights = model.weights()
        found.append((keys.tobytes(), weights.tobytes(), model.tally, model.features_seen))
    assert found[0] == found[1]


def test_a_feature_dies_for_all_outputs_and_frees_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    data = stream_for("softmax", "classes", seed=10, rows=200)
    for group in ("l2", "linf"):
        with not_compiled():
            model = model_of(f"fobos:l1=0.4,group={group}", "softmax", "classes:3")
            model.learn(data.chunk)
            weights = model.weights()[1]
        _, freed, _ = model.state()["counts"]
        assert freed > FEATURES
        assert (np.count_nonzero(weights, axis=1) == CLASSES).all() or group == "linf"
