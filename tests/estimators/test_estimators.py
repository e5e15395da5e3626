"""Fitting: cuts, order, weights, classes, outputs, stopping, parameters, pickles."""

import copy
import doctest
import pickle
import re
from importlib import import_module, reload
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file

from tests.plain import not_compiled
from thresher.data.chunk import Chunk
from thresher.data.inputs.arrays import chunk_of
from thresher.data.inputs.matrices import as_copies, by_content, in_order
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model.model import Model
from thresher.parts import make
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor, available
from thresher.sklearn.row_order import MatrixSource

Array = NDArray[Any]


@pytest.fixture(scope="module")
def stories() -> tuple[Any, Array]:
    X, y = load_svmlight_file("examples/data/rcv1_train2000.dat.gz")
    return csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape), y


@pytest.fixture
def three() -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 6))
    return X, np.array(["a", "b", "c"])[(X[:, :3] + [0.1, 0, 0]).argmax(axis=1)]


def state(model: Any) -> dict[str, Array]:
    found: dict[str, Array] = model._model.state()
    return found


def assert_same_bits(one: Any, other: Any) -> None:
    ours, theirs = state(one), state(other)
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert array.tobytes() == theirs[name].tobytes(), name


def cut(model: Any, X: Any, y: Array, ends: list[int]) -> Any:
    for lo, hi in zip([0, *ends], [*ends, len(y)], strict=True):
        model.partial_fit(X[lo:hi], y[lo:hi], classes=[-1, 1])
    return model


def test_partial_fit_cut_anywhere_is_fit(stories: tuple[Any, Array]) -> None:
    X, y = stories
    whole = SparseOnlineClassifier(passes=1, shuffle=False).fit(X, y)
    ends: list[int]
    for ends in ([], [1, 2, 3, 700], list(range(10, 2000, 10)), list(range(1, 2000))):
        assert_same_bits(cut(SparseOnlineClassifier(), X, y, ends), whole)


@pytest.mark.parametrize("seed", [None, 0])
def test_partial_fit_after_a_shuffled_fit_is_cut_anywhere(
    three: tuple[Array, Array], seed: int | None
) -> None:
    X = three[0]
    y = X[:, 0] - X[:, 1]
    with not_compiled():
        fitted = SparseOnlineRegressor(random_state=seed).fit(X[:40], y[:40])
        whole = copy.deepcopy(fitted).partial_fit(X[40:73], y[40:73])
        for size in (1, 7, 20):
            pieces = copy.deepcopy(fitted)
            for lo in range(40, 73, size):
                pieces.partial_fit(X[lo : min(lo + size, 73)], y[lo : min(lo + size, 73)])
            assert_same_bits(pieces, whole)
    assert not np.array_equal(whole.coef_, fitted.coef_)


def test_one_row_at_a_time_takes_the_short_way(monkeypatch: Any) -> None:
    X, y = np.array([[0.0, 2.0], [1.0, 0.0], [3.0, 0.5]]), ["b", "a", "b"]
    expected = SparseOnlineClassifier(passes=1, shuffle=False).fit(X, y)
    model = SparseOnlineClassifier().partial_fit(X[:1], y[:1], classes=["a", "b"])
    numbers = SparseOnlineRegressor().partial_fit(X[:1], [0.5])
    with monkeypatch.context() as patched:
        patched.setattr("thresher.sklearn.inputs.read", None)  # used by the general path
        model.partial_fit(csr_array(X[1:2]), np.array(["a"])).partial_fit(X[2:], ["b"])
        numbers.partial_fit(csr_array(X[1:2]), np.array([2.5])).partial_fit(X[2:], [1.0])
    assert_same_bits(model, expected)
    assert_same_bits(numbers, SparseOnlineRegressor(passes=1, shuffle=False).fit(X, [0.5, 2.5, 1.0]))
    for bad, label in (
        *(([[1.0, np.nan]], "a"), ([[1.0, 2.0, 3.0]], "a"), ([[1e300, 1.0]], "a"), ([[1.0, 0.0]], "c")),
    ):
        with pytest.raises(ValueError, match=r"NaN|3 features|float32|class c"):
            model.partial_fit(np.array(bad), [label])
    with pytest.raises(ValueError, match="NaN"):
        numbers.partial_fit(X[:1], [np.nan])
    assert_same_bits(model, expected)


def test_nothing_is_learned_of_examples_one_of_which_is_bad() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((2000, 100)), rng.integers(0, 2, 2000)
    model = SparseOnlineClassifier(passes=1, warm_start=True, random_state=0).fit(X, y)
    before = pickle.dumps(model)
    X[1900, 3] = np.nan
    for learn in (model.partial_fit, model.fit):
        with pytest.raises(
            ValueError, match="row 1901, column 3: NaN is not allowed; fill in missing values"
        ):
            learn(X, y)
        assert pickle.dumps(model) == before


def test_pieces_of_later_passes_are_permuted() -> None:
    X = np.random.default_rng(0).random((3000, 100)).astype(np.float32)
    matrix = chunk_of(X, np.arange(3000))
    rows, seen = MatrixSource(matrix, in_order(np.ones(3000)), seed=7), []
    for number in (1, 2, 3, 2):
        chunks = [*rows.over(rows, number).chunks()]
        assert len(chunks) == 3
        seen.append(np.concatenate([chunk.labels for chunk in chunks]))
        values = np.concatenate([chunk.values for chunk in chunks])
        assert (values == X[seen[-1].astype(int)].ravel()).all()
        assert (np.sort(seen[-1]) == np.arange(3000)).all()
    assert (seen[0] == np.arange(3000)).all()
    assert any((a != b).any() for a, b in pairwise(seen[:3]))
    assert (seen[1] == seen[3]).all()
    assert not rows.held


def test_fit_in_order_is_the_model_itself(stories: tuple[Any, Array]) -> None:
    X, y = stories
    model = Model("ft-ftrl:l1=0.5", "logistic", store="direct")
    model.learn(chunk_of(X, y))
    fitted = SparseOnlineClassifier(l1=0.5, passes=1, shuffle=False).fit(X, y)
    np.testing.assert_array_equal(fitted.decision_function(X), model.predict(chunk_of(X)))
    assert fitted.t_ == 2001


@pytest.mark.usefixtures("plainly")
def test_shuffled_fit_asks_what_there_is_not_where_it_lies(three: tuple[Array, Array]) -> None:
    X, y = three
    rng = np.random.default_rng(0)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0, 2.5], len(y))
    model = SparseOnlineClassifier(random_state=0, passes=2).fit(X, y, weights)
    order = rng.permutation(len(y))
    assert_same_bits(model, clone(model).fit(X[order], y[order], weights[order]))
    whole = np.floor(weights).astype(int)
    half = weights > whole
    repeated = np.concatenate([X.repeat(whole, axis=0), X[half]])
    again = np.concatenate([y.repeat(whole), y[half]])
    split = np.concatenate([np.ones(whole.sum()), np.full(half.sum(), 0.5)])
    assert_same_bits(model, clone(model).fit(repeated, again, split))
    other = clone(model).set_params(random_state=1).fit(X, y, weights)
    assert not np.array_equal(other.coef_, model.coef_)


def test_importances_are_copies_in_one_step() -> None:
    draw = as_copies(np.array([0.0, 0.25, 1.0, 2.5, 16.0, 40.0]))
    assert np.bincount(draw.rows, draw.weights).tolist() == [0.0, 0.25, 1.0, 2.5, 16.0, 40.0]
    assert np.bincount(draw.rows).tolist() == [0, 1, 1, 3, 16, 16]
    assert draw.weights[1:5].tolist() == [1.0, 1.0, 1.0, 0.5]
    assert set(draw.weights[-16:].tolist()) == {2.5}
    X, y = np.eye(2), np.array([0.0, 1.0])
    model = SparseOnlineRegressor("sgd", rate="constant:0.1", fit_intercept=False)
    with not_compiled():
        model.partial_fit(X, y, sample_weight=[1.0, 2.0])
        np.testing.assert_allclose(model.coef_, [0.0, 0.4], rtol=1e-6)


def test_equal_examples_do_not_come_in_a_row() -> None:
    X = csr_array(np.repeat([[1.0, 0.0], [0.0, 1.0]], 100, axis=0))
    draw = as_copies(np.ones(200))
    labels = np.zeros(200, np.float32)
    order = by_content(Chunk(X.indptr, X.indices, X.data, labels, labels), draw, 1)
    first = draw.rows[order] < 100
    assert np.count_nonzero(first[1:] == first[:-1]) < 140


@pytest.mark.usefixtures("plainly")
def test_two_classes_by_softmax_are_one_margin(three: tuple[Array, Array]) -> None:
    X, y = three
    two = y != "c"
    model = SparseOnlineClassifier("adagrad-fobos", "softmax", random_state=0).fit(X[two], y[two])
    margins = model.decision_function(X)
    assert margins.shape == (150,)
    assert model.coef_.shape == (1, 6)
    np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_[0], margins, rtol=1e-5, atol=1e-6)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-margins)), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])


def test_several_classes(three: tuple[Array, Array]) -> None:
    X, y = three
    model = SparseOnlineClassifier(l1=0.1, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert list(model.classes_) == ["a", "b", "c"]
    np.testing.assert_allclose(
        X @ model.coef_.T + model.intercept_, model.decision_function(X), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


@pytest.mark.usefixtures("plainly")
def test_several_labels_and_values(three: tuple[Array, Array]) -> None:
    X, _ = three
    Y = (X[:, :3] > 0).astype(int)
    model = SparseOnlineClassifier(l1=0.1, random_state=0).fit(X, Y)
    assert model.predict(X).shape == (150, 3)
    assert model.score(X, Y) > 0.8
    assert ((model.predict_proba(X) > 0.5) == (model.predict(X) > 0)).all()
    pieces = SparseOnlineClassifier(l1=0.1).partial_fit(X[:9], Y[:9]).partial_fit(X[9:], Y[9:])
    assert_same_bits(pieces, SparseOnlineClassifier(l1=0.1, passes=1, shuffle=False).fit(X, Y))
    numbers = SparseOnlineRegressor(l1=0.0, passes=20, random_state=0).fit(X, X @ np.ones((6, 2)))
    assert numbers.score(X, X @ np.ones((6, 2))) > 0.9
    with pytest.raises(ValueError, match="zeros and ones"):
        model.fit(X, Y * 2 + Y[:, ::-1])


def test_probabilities_only_where_the_loss_has_them() -> None:
    assert hasattr(SparseOnlineClassifier(), "predict_proba")
    assert not hasattr(SparseOnlineClassifier(loss="hinge"), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        _ = SparseOnlineClassifier(loss="hinge").predict_proba


def test_class_weight(three: tuple[Array, Array]) -> None:
    X, y = three
    heavy = SparseOnlineClassifier(class_weight={"a": 50.0}, random_state=0).fit(X, y)
    assert (heavy.predict(X) == "a").mean() > (y == "a").mean() + 0.1
    few = (y == "b") | (np.arange(len(y)) % 7 == 0)
    balanced = SparseOnlineClassifier(class_weight="balanced", random_state=0).fit(X[few], y[few])
    counts = {name: few.sum() / 3 / (y[few] == name).sum() for name in "abc"}
    assert_same_bits(
        balanced, SparseOnlineClassifier(class_weight=counts, random_state=0).fit(X[few], y[few])
    )
    threefold = np.where(y == "a", 3.0, 1.0)
    for shuffle in (False, True):  # shuffled, an example of weight 3 is learned as three
        by_class = SparseOnlineClassifier(class_weight={"a": 3.0}, shuffle=shuffle, random_state=0).fit(X, y)
        by_row = SparseOnlineClassifier(shuffle=shuffle, random_state=0).fit(X, y, sample_weight=threefold)
        assert (by_class.coef_ != by_row.coef_).any() == shuffle
    with pytest.raises(ValueError, match=r"class_weight must be .* for classes of .*'d'"):
        SparseOnlineClassifier(class_weight={"d": 2}).fit(X, y)
    with pytest.raises(ValueError, match="balanced"):
        SparseOnlineClassifier(class_weight="balanced").partial_fit(X, y, classes=["a", "b", "c"])


def test_warm_start_goes_on(stories: tuple[Any, Array]) -> None:
    X, y = stories
    twice = SparseOnlineClassifier(passes=1, shuffle=False, warm_start=True).fit(X[:900], y[:900])
    twice.fit(X[900:], y[900:])
    assert_same_bits(twice, SparseOnlineClassifier(passes=1, shuffle=False).fit(X, y))
    assert twice.set_params(warm_start=False).fit(X, y).t_ == 2001


@pytest.mark.usefixtures("plainly")
def test_early_stopping_keeps_the_best_pass(capsys: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 40)), rng.integers(0, 2, 60)
    options: dict[str, Any] = {"l1": 0.0, "random_state": 0, "validation_fraction": 0.25}
    model = SparseOnlineClassifier(
        "ftrl:alpha=1", passes=50, early_stopping=True, patience=2, verbose=1, **options
    ).fit(X, y)
    assert 3 <= model.n_iter_ < 50
    told = capsys.readouterr().out.splitlines()
    losses = [float(re.findall("held-out: .*loss ([^,]+)", line)[0]) for line in told if "held-out" in line]
    assert len(losses) == model.n_iter_
    assert int(np.argmin(losses)) == model.n_iter_ - 3
    assert model.t_ == 1 + 45 * (model.n_iter_ - 2)
    with pytest.raises(ValueError, match="validation_fraction"):
        model.set_params(validation_fraction=1.0).fit(X, y)


@pytest.mark.usefixtures("plainly")
def test_partial_fit_tells_of_the_loss(capsys: Any) -> None:
    X, y = np.random.default_rng(0).normal(size=(61, 3)), np.arange(61) % 2
    model = SparseOnlineClassifier(verbose=1)
    for begin, end in pairwise([0, 1, 2, 3, 4, 7, 40, 60, 61]):
        model.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
    told = capsys.readouterr().out.splitlines()
    assert [int(line.split()[0]) for line in told] == [1, 2, 4, 40]
    quiet = SparseOnlineClassifier().partial_fit(X[:40], y[:40], classes=[0, 1])._model
    assert told[-1] == f"40 examples: progressive loss {quiet.tally.average:.6f}, {quiet.nonzero} weights"
    assert capsys.readouterr().out == ""


def test_flat_and_nested_parameters() -> None:
    model = SparseOnlineClassifier("fobos:l1=0.5", rate="power:eta0=2", l1=0.25, eta0=0.125)
    with not_compiled():
        model.fit(np.eye(2), [0, 1])
    assert (model._model.rule.l1, model._model.rule.rate.eta0) == (0.25, 0.125)
    model.set_params(rule__l2=0.5, loss__positive=2.0, rate__t0=10)
    assert model.get_params()["rule__l2"] == 0.5
    assert model.rate == "power:eta0=2.0,t0=10.0,p=0.5"
    assert clone(model).get_params() == model.get_params()
    assert SparseOnlineClassifier(make("rule", "ftrl:l1=0.5")).set_params(rule__alpha=2.0).rule == make(
        "rule", "ftrl:2,l1=0.5"
    )
    for wrong in ({"rule__nothing": 1}, {"passes__x": 1}, {"nothing": 1}):
        with pytest.raises(ValueError, match=r"nothing|passes__x"):
            model.set_params(**wrong)
    with pytest.raises(ValueError, match="pegasos has no parameter l1"):
        SparseOnlineClassifier("pegasos", l1=0.1).fit(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="ftrl has no parameter eta0"):
        SparseOnlineClassifier(eta0=0.1).fit(np.eye(2), [0, 1])


def test_pickles_hold_a_model_file(three: tuple[Array, Array]) -> None:
    X, y = three
    model = SparseOnlineClassifier(random_state=0).fit(X[:100], y[:100])
    held = model.__getstate__()
    assert isinstance(held["_model"], bytes)
    plain = {bytes, str, int, float, bool, tuple, dict, type(None), np.ndarray}
    assert {type(value) for value in held.values()} <= plain
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_same_bits(again, model)
        before = state(model)["S"].copy()
        again.partial_fit(X[100:], y[100:])
        assert before.tobytes() == state(model)["S"].tobytes()
    model.partial_fit(X[100:], y[100:])
    assert_same_bits(again, model)
    data = bytearray(held["_model"])
    data[-1] ^= 1
    with pytest.raises(ModelFileError, match="damaged"):
        SparseOnlineClassifier().__setstate__({**held, "_model": bytes(data)})
    with pytest.raises(ModelFileError, match="damaged"):
        SparseOnlineClassifier().__setstate__({**held, "_model": bytes(data[:40])})


def test_coef_is_sparse_over_a_size_and_when_asked() -> None:
    wide = csr_array(([1.0, 2.0, 3.0], [3, 9_999_999, 5], [0, 1, 2, 3]), shape=(3, 10_000_000))
    model = SparseOnlineClassifier(l1=0.0).fit(wide, [0, 1, 1])
    assert issparse(model.coef_)
    assert model.coef_.shape == (1, 10_000_000)
    assert model.feature_keys_.tolist() == [3, 5, 9_999_999]
    assert model._model.nbytes < 2_000_000
    small = SparseOnlineClassifier(l1=0.0).fit(np.eye(3), [0, 1, 1])
    dense = small.coef_
    assert not issparse(dense)
    assert (small.sparsify().coef_.toarray() == dense).all()
    assert not issparse(small.densify().coef_)


def test_weights_that_begin_elsewhere_are_shown() -> None:
    model = SparseOnlineRegressor("simplex:features=4", "wealth", eta0=0.01, fit_intercept=False)
    with not_compiled():
        coef = model.partial_fit([[1.0, 1.1, 0, 0]], [0.0]).coef_
    assert coef.shape == (4,)
    assert coef[2] == coef[3] > 0
    np.testing.assert_allclose(coef.sum(), 1, rtol=1e-5)


def test_average_and_batches_are_those_of_the_model(three: tuple[Array, Array]) -> None:
    X, y = three
    signs = np.where(y == "a", 1, -1)
    options: dict[str, Any]
    for options in ({"average": True}, {"batch": 4}):
        with not_compiled():
            fitted = SparseOnlineClassifier(passes=1, shuffle=False, **options).fit(X, signs)
            model = Model(store="direct", **options)
            model.learn(chunk_of(X, signs))
            model.finish()
            np.testing.assert_array_equal(fitted.decision_function(X), model.predict(chunk_of(X)))


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_the_examples_of_the_docstrings_hold(name: str) -> None:
    done = doctest.testmod(import_module(f"thresher.sklearn.{name}"))
    assert done.attempted >= 3
    assert done.failed == 0


def test_a_version_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("1.6.0", "1.10.dev0"):
        monkeypatch.setattr(sklearn, "__version__", version)
        reload(available)
    monkeypatch.setattr(sklearn, "__version__", "1.5.2")
    with pytest.raises(ImportError, match=r"1\.6 or newer, not 1\.5\.2"):
        reload(available)
