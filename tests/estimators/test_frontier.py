"""Frontier estimators: models equal those trained alone; figures are from rows they have not learned."""

import copy
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold

from tests.plain import not_compiled
from thresher.sklearn import (
    SparseFrontierClassifier,
    SparseFrontierRegressor,
    SparseOnlineClassifier,
    SparseOnlineRegressor,
)
from thresher.sklearn import frontier as module
from thresher.sklearn.frontier import FALLBACK
from thresher.sklearn.row_order import folds, held_out

Array = NDArray[Any]
RNG, N = np.random.default_rng(7), 40
X = RNG.normal(size=(N, 6))
TWO = np.where(X[:, 0] + 0.3 * RNG.normal(size=N) > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] > X[:, 2]]).astype(int)
NUMBER = X @ [1.0, -2.0, 0.0, 0.0, 0.5, 0.0] + RNG.normal(size=N)
TABLE = pd.DataFrame({"kind": np.where(X[:, 0] > 0, "x", "y"), "b": X[:, 1]})
ROWS = [{"kind": kind, f"k{k % 7}": float(b)} for k, (kind, b) in enumerate(TABLE.itertuples(index=False))]
L1S = [3.0, 0.1, 1.0]
RCV1 = "examples/data/rcv1_train2000.dat.gz"
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.0], N)
Case = tuple[type, type, dict[str, Any], Any, Any]
CLASSIFIERS, REGRESSORS = (
    (SparseFrontierClassifier, SparseOnlineClassifier),
    (SparseFrontierRegressor, SparseOnlineRegressor),
)
CASES: dict[str, Case] = {
    "two": (*CLASSIFIERS, {}, X, TWO),
    "sparse, in order": (*CLASSIFIERS, {"shuffle": False, "cv": 2}, csr_matrix(X), TWO),
    "three": (*CLASSIFIERS, {"class_weight": "balanced"}, X, THREE),
    "jointly": (*CLASSIFIERS, {"rule": "adagrad-fobos", "loss": "softmax"}, X, TWO),
    "labels": (*CLASSIFIERS, {"cv": 3}, X, LABELS),
    "batches": (*CLASSIFIERS, {"batch": 7, "rule": "ftrl:l1=9", "average": True}, X, TWO),
    "dictionaries": (*CLASSIFIERS, {}, ROWS, THREE),
    "table": (*CLASSIFIERS, {"scale": "standard"}, TABLE, TWO),
    "number": (*REGRESSORS, {"cv": 4}, X, NUMBER),
    "numbers": (*REGRESSORS, {}, X, np.column_stack([NUMBER, X[:, 0]])),
    "counts": (*REGRESSORS, {"loss": "poisson", "early_stopping": True}, X, np.floor(np.exp(X[:, 0]))),
}


def fitted(kind: type, **options: Any) -> Any:
    return kind(**{"random_state": 3, "l1s": L1S, "passes": 2, **options})


def coef_of(model: Any) -> Array:
    coef = model.coef_
    return np.atleast_2d(coef.toarray() if issparse(coef) else coef)


def alone(kind: type, penalty: float, options: dict[str, Any]) -> Any:
    more = {name: value for name, value in options.items() if name not in ("cv", "early_stopping")}
    return kind(**{"passes": 2, **more, "l1": penalty, "random_state": 3})


@pytest.mark.parametrize(
    ("name", "weights"),
    [*((name, None) for name in CASES), *((name, WEIGHTS) for name in ("two", "three", "labels", "number"))],
)
def test_each_model_is_the_one_learned_alone_from_all_rows(name: str, weights: Any) -> None:
    kind, plain, options, given, y = CASES[name]
    with not_compiled():
        model = fitted(kind, **options).fit(given, y, weights)
        assert model.l1s_.tolist() == sorted(L1S)
        for k, penalty in enumerate(model.l1s_.tolist()):
            model.choose_again(k)
            own = alone(plain, penalty, {**options, "passes": model.n_iter_}).fit(given, y, weights)
            np.testing.assert_array_equal(coef_of(model), coef_of(own))
            np.testing.assert_array_equal(model.intercept_, own.intercept_)
            np.testing.assert_array_equal(model.intercept_path_[k], own.intercept_)
            np.testing.assert_array_equal(model.predict(given), own.predict(given))
            assert model.nnz_path_[k] == np.count_nonzero(coef_of(own))
            assert (model.chosen_, model.l1_) == (k, penalty)
    assert not hasattr(model, "partial_fit")
    assert len(np.unique(model.intercept_path_, axis=0)) == 3


@pytest.mark.parametrize("name", ["two", "three", "labels", "number", "dictionaries"])
def test_weights_of_all_models(name: str) -> None:
    kind, _, _, given, y = CASES[name]
    with not_compiled():
        model = fitted(kind).fit(given, y)
    path = model.coef_path_
    columns = np.arange(6)
    for k in range(3):
        coef = coef_of(model.choose_again(k))
        if name == "dictionaries":
            columns = np.searchsorted(model.feature_keys_path_, model.feature_keys_)
        own = path[k] if len(coef) == 1 else path[k][:, columns]
        np.testing.assert_array_equal(own.toarray(), coef)
        assert own.nnz == model.nnz_path_[k]
    if name in ("two", "number"):
        assert path.format == "csr"
        assert path.shape == (3, 6)


SPLIT = np.arange(N) % 4 == 1
PAIR = [(np.flatnonzero(~SPLIT), np.flatnonzero(SPLIT))]


@pytest.mark.parametrize("name", ["two", "three", "jointly", "labels", "number", "numbers", "counts"])
def test_figures_are_those_of_models_that_have_not_learned_the_rows(name: str) -> None:
    kind, plain, options, given, y = CASES[name]
    options = {**options, "class_weight": None} if "class_weight" in options else options
    options = {k: v for k, v in options.items() if k not in ("cv", "early_stopping")}
    with not_compiled():
        model = fitted(kind, cv=PAIR, **options).fit(given, y, WEIGHTS)
        held = WEIGHTS[SPLIT]
        for k, penalty in enumerate(model.l1s_.tolist()):
            own = alone(plain, penalty, options).fit(given[~SPLIT], y[~SPLIT], WEIGHTS[~SPLIT])
            assert model.score_path_[k] == pytest.approx(own.score(given[SPLIT], y[SPLIT], held), rel=1e-5)
            if name == "two":
                loss = log_loss(y[SPLIT], own.predict_proba(given[SPLIT]), sample_weight=held)
                assert model.loss_path_[k] == pytest.approx(loss, rel=1e-5)
    assert model.chosen_ == np.argmin(model.loss_path_)


def test_folds_are_judged_as_one() -> None:
    with not_compiled():
        groups = list(GroupKFold(3).split(X, TWO, np.arange(N) % 5))
        model = fitted(SparseFrontierClassifier, cv=groups).fit(X, TWO)
        right = [
            alone(SparseOnlineClassifier, 1.0, {}).fit(X[learned], TWO[learned]).predict(X[held]) == TWO[held]
            for learned, held in groups
        ]
    assert model.score_path_[1] == pytest.approx(np.concatenate(right).mean())


def test_class_weights_count_in_losses_and_not_in_scores() -> None:
    factors = {"no": 1.0, "yes": 4.0}
    with not_compiled():
        model = fitted(SparseFrontierClassifier, class_weight=factors, cv=PAIR).fit(X, TWO)
        own = alone(SparseOnlineClassifier, 1.0, {"class_weight": factors}).fit(X[~SPLIT], TWO[~SPLIT])
    assert model.score_path_[1] == pytest.approx(own.score(X[SPLIT], TWO[SPLIT]))
    by = [factors[label] for label in TWO[SPLIT]]
    loss = log_loss(TWO[SPLIT], own.predict_proba(X[SPLIT]), sample_weight=by)
    assert model.loss_path_[1] == pytest.approx(loss, rel=1e-5)


def test_without_refit_the_models_are_those_that_were_judged(monkeypatch: Any) -> None:
    monkeypatch.setattr(
        module, "held_out", lambda labels, rows, fraction, groups: [(rows % 4 != 1, rows % 4 == 1)]
    )
    with not_compiled():
        model = fitted(SparseFrontierClassifier, refit=False).fit(X, TWO)
        own = alone(SparseOnlineClassifier, model.l1_, {}).fit(X[~SPLIT], TWO[~SPLIT])
    np.testing.assert_array_equal(model.coef_, own.coef_)
    assert model.score(X[SPLIT], TWO[SPLIT]) == pytest.approx(model.score_path_[model.chosen_])


def test_held_out_examples_are_a_share_of_each_class() -> None:
    labels = np.array([0.0] * 80 + [1.0] * 20, np.float32)
    ((learned, apart),) = held_out(labels, np.arange(100), 0.1)
    assert (learned != apart).all()
    assert apart[:80].sum() == 8
    assert apart[80:].sum() == 2


def test_every_row_is_in_one_fold_and_of_each_class_there_is_a_share() -> None:
    labels = np.repeat([0.0, 1.0], [80, 20]).astype(np.float32)
    found = folds(labels, np.arange(100), 5)
    assert np.sum([held for _, held in found], axis=0).tolist() == [1] * 100
    assert all((learned != held).all() for learned, held in found)
    assert [(held[:80].sum(), held[80:].sum()) for _, held in found] == [(16, 4)] * 5


def test_rows_in_any_order_are_the_same_folds() -> None:
    order = RNG.permutation(N)
    with not_compiled():
        for cv in (None, 3):
            one, other = (fitted(SparseFrontierClassifier, cv=cv) for _ in range(2))
            one.fit(X, TWO)
            other.fit(X[order], TWO[order])
            np.testing.assert_allclose(one.loss_path_, other.loss_path_, rtol=1e-12)
            np.testing.assert_array_equal(one.coef_, other.coef_)


def test_early_stopping_is_for_each_model(capsys: Any, plainly: None) -> None:
    noise = np.random.default_rng(0).normal(size=(60, 40))
    y = np.random.default_rng(1).integers(0, 2, 60)
    options: dict[str, Any] = {"rule": "ftrl:alpha=1", "passes": 30, "l1s": [1e-6, 0.5, 4.0], "verbose": 1}
    model = fitted(SparseFrontierClassifier, early_stopping=True, patience=2, **options).fit(noise, y)
    passes = [model.choose_again(k).n_iter_ for k in range(3)]
    assert len(set(passes)) > 1
    assert all(1 <= n < 30 for n in passes)
    told = capsys.readouterr().out
    assert "held-out: examples" in told
    for k, penalty in enumerate(model.l1s_.tolist()):
        own = alone(SparseOnlineClassifier, penalty, {"rule": "ftrl:alpha=1", "passes": passes[k]})
        np.testing.assert_array_equal(model.choose_again(k).coef_, own.fit(noise, y).coef_)


@pytest.fixture(scope="module")
def stories() -> Any:
    found = load_svmlight_file(RCV1)
    return SparseFrontierClassifier(random_state=0).fit(*found), found


def test_a_budget_is_used(stories: Any) -> None:
    coarse, found = stories
    model = SparseFrontierClassifier(choose="nnz:200", random_state=0).fit(*found)
    assert len(model.l1s_) == 24
    assert all(a < b for a, b in pairwise(model.l1s_))
    assert coarse.nnz_path_[coarse.nnz_path_ <= 200].max() < 100
    assert 180 <= np.count_nonzero(coef_of(model)) == model.nnz_path_[model.chosen_] <= 200
    shared = np.isin(model.l1s_, coarse.l1s_)
    np.testing.assert_array_equal(model.loss_path_[shared], coarse.loss_path_)


def test_the_range_is_found_and_a_choice_made_again(stories: Any) -> None:
    model, (given, y) = stories
    model = copy.deepcopy(model)
    assert all(a < b for a, b in pairwise(model.l1s_))
    assert len(model.l1s_) == 16
    assert model.nnz_path_[0] > 8000
    assert model.nnz_path_[-1] < 10
    best = int(np.argmin(model.loss_path_))
    assert model.chosen_ == best
    before = model.predict(given)
    assert model.choose_again("nnz:300") is model
    fit = model.nnz_path_ <= 300
    assert model.chosen_ == np.argmin(np.where(fit, model.loss_path_, np.inf))
    assert np.count_nonzero(coef_of(model)) == model.nnz_path_[model.chosen_]
    assert (model.predict(given) != before).any()
    near = model.loss_path_ <= 1.01 * model.loss_path_[best]
    assert model.choose_again("within:1%").nnz_path_[model.chosen_] == model.nnz_path_[near].min()
    for wrong, why in (
        *(("nnz:0", ""), ("least", "a choice must be best, 1se"), (16, "0 to 15"), (-1, "0 to 15")),
    ):
        kept = model.choose_again(3).coef_
        if wrong == "nnz:0" and model.nnz_path_[-1] == 0:
            continue
        with pytest.raises(ValueError, match=why):
            model.choose_again(wrong)
        np.testing.assert_array_equal(model.coef_, kept)
    np.testing.assert_array_equal(model.choose_again("best").predict(given), before)
    assert model.score(given, y) > 0.9


def test_copies_and_pickles_are_what_was_chosen(stories: Any) -> None:
    model, (given, _) = stories
    model = copy.deepcopy(model).choose_again("nnz:300")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.decision_function(given), model.decision_function(given))
        assert abs(other.coef_path_ - model.coef_path_).sum() == 0
        assert other.choose_again("best").chosen_ == np.argmin(model.loss_path_)
    assert model.nnz_path_[model.chosen_] <= 300
    state = pickle.dumps(model).replace(b"weights.values", b"weights.valves")
    with pytest.raises(ValueError, match="a model in the estimator"):
        pickle.loads(state)
    with pytest.raises(NotFittedError):
        clone(model).choose_again("best")
    with pytest.raises(NotFittedError):
        _ = clone(model).coef_path_


@pytest.mark.parametrize("store", [None, "hashed:8", "growing"])
def test_wide_data_are_kept_by_their_weights(store: str | None) -> None:
    wide = csr_matrix(
        (X.ravel(), np.tile([3, 40_000, 70_000, 100_000, 120_000, 139_999], N), 6 * np.arange(N + 1))
    )
    with not_compiled():
        model = fitted(SparseFrontierClassifier, store=store).fit(wide, TWO)
        own = alone(SparseOnlineClassifier, model.l1_, {"store": store}).fit(wide, TWO)
        np.testing.assert_array_equal(coef_of(model), coef_of(own))
        np.testing.assert_array_equal(model.predict_proba(wide), own.predict_proba(wide))
    assert model.model_.store.startswith(store or "growing")
    path = model.coef_path_
    assert path.shape == (3, len(model.feature_keys_path_) if store == "hashed:8" else 140_000)
    np.testing.assert_array_equal(np.diff(path.indptr), model.nnz_path_)


def test_nothing_to_find_a_range_by_gives_the_stated_one() -> None:
    with not_compiled():
        model = fitted(SparseFrontierRegressor, l1s=3).fit(np.zeros((20, 2)), np.arange(20.0))
    low, high = map(float, FALLBACK.split(":"))
    np.testing.assert_allclose(model.l1s_, np.geomspace(low, high, 3))
    assert model.nnz_path_.tolist() == [0, 0, 0]


def test_longer_data_are_asked_for_stronger_penalties(monkeypatch: Any, plainly: None) -> None:
    given, y = load_svmlight_file(RCV1)
    monkeypatch.setattr("thresher.plans.penalties.PILOT_ROWS", 50)
    few, many = (
        fitted(SparseFrontierClassifier, rule="ftrl", l1s=2, passes=1).fit(given[:n, :400], y[:n])
        for n in (50, 400)
    )
    assert many.l1s_[-1] > 2 * few.l1s_[-1]


def test_standard_errors_are_of_differences_on_the_same_rows() -> None:
    with not_compiled():
        model = fitted(SparseFrontierClassifier, cv=PAIR, l1s=[0.1, 1.0, 2.0, 3.0, 4.0, 8.0]).fit(X, TWO)
        own = [alone(SparseOnlineClassifier, l1, {}).fit(X[~SPLIT], TWO[~SPLIT]) for l1 in model.l1s_]
    second = (TWO[SPLIT] == "yes").astype(int)
    losses = np.array([-one.predict_log_proba(X[SPLIT])[np.arange(N // 4), second] for one in own])
    best = int(losses.mean(axis=1).argmin())
    errors = (losses - losses[best]).std(axis=1, ddof=1) / np.sqrt(N // 4)
    np.testing.assert_allclose(model.se_path_, errors, rtol=1e-3, atol=1e-9)
    near = losses.mean(axis=1) <= losses[best].mean() + errors
    assert 1 < near.sum() < 6
    assert model.choose_again("1se").nnz_path_[model.chosen_] == model.nnz_path_[near].min()


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_a_penalty_that_diverges_is_left_out(plainly: None) -> None:
    wild = fitted(SparseFrontierRegressor, rule="fobos", l1s=[0.01, 1e30])
    with pytest.warns(ConvergenceWarning, match="fobos:l1=0.01.*is not finite"):
        wild.fit(10 * X, 30 * X[:, 0])
    assert wild.l1s_.tolist() == [1e30]
    assert wild.loss_path_.shape == wild.score_path_.shape == wild.nnz_path_.shape == (1,)
    before = wild.intercept_
    with pytest.raises(ValueError, match="is not finite"):
        clone(wild).set_params(l1s=[0.01]).fit(10 * X, 30 * X[:, 0])
    assert (wild.intercept_ == before).all()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        *(({"l1s": 1}, "l1s"), ({"l1s": 2.5}, "l1s"), ({"l1s": True}, "l1s"), ({"l1s": "auto:16"}, "l1s")),
        *(({"l1s": 257}, "2 to 256 penalties"), ({"l1s": []}, "l1s must be a number of penalties")),
        *(({"l1s": [1.0, -1.0]}, "finite numbers >= 0"), ({"l1s": [1.0, np.nan]}, "finite")),
        *(({"l1s": ["1"]}, "l1s"), ({"l1s": [[1.0]]}, "l1s")),
        ({"choose": "most"}, "a choice must be best"),
        *(({"choose": "nnz:0", "l1s": [1e-9]}, "no model has at most 0 weights"), ({"cv": 1}, "cv")),
        *(({"cv": "five"}, "cv"), ({"cv": b"a"}, "cv must be a whole number")),
        ({"cv": []}, "each split of cv needs"),
        *(
            ({"cv": given}, "cv must be a number of folds, a splitter, or pairs of row numbers")
            for given in ({1: 2}, [1, 2], [(range(N),)], [(["a"], [1])], [([N], [1])])
        ),
        ({"cv": [(range(N), [])]}, "each split of cv needs"),
        ({"cv": 81}, "cv=81 folds are too many for n_samples=40"),
        ({"cv": 2, "refit": False}, "unless refit=True"),
        ({"refit": "no"}, "refit"),
        ({"validation_fraction": 0.0}, "validation_fraction"),
        ({"rule": "perceptron"}, "perceptron has no penalty"),
        ({"class_weight": {"yes": 0.0, "no": 0.0}}, "weigh nothing|weight"),
    ],
)
def test_what_cannot_be_is_told(options: dict[str, Any], why: str) -> None:
    with not_compiled(), pytest.raises(ValueError, match=why):
        fitted(SparseFrontierClassifier, **options).fit(X, TWO)
