"""Agreement with SGDClassifier and SGDRegressor, and differences, as stated in docs/sklearn.md."""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file, make_classification
from sklearn.linear_model import LinearRegression, Ridge, SGDClassifier, SGDRegressor

from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor
from thresher.sklearn.convert import from_sklearn, to_sklearn

pytestmark = pytest.mark.usefixtures("plainly")

X, Y = make_classification(120, 8, n_informative=4, random_state=0)
X /= 4
Z = X @ np.arange(8.0)
IN_ORDER: dict[str, Any] = {"shuffle": False, "passes": 1, "dtype": "float64"}
THEIRS: dict[str, Any] = {"shuffle": False, "max_iter": 1, "tol": None}


def theirs_of(kind: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one pass does not converge
        return kind(**THEIRS, **options).fit(X, Z if kind is SGDRegressor else Y)


def ours_of(kind: Any, *parts: str, **options: Any) -> Any:
    return kind(*parts, **IN_ORDER, **options).fit(X, Z if kind is SparseOnlineRegressor else Y)


def distance(one: Any, other: Any) -> float:
    ours, theirs = np.ravel(one.coef_), np.ravel(other.coef_)
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


@pytest.mark.parametrize("alpha", [1e-3, 1e-2, 5e-2])
def test_penalty_l1_is_cumulative(alpha: float) -> None:
    theirs = theirs_of(
        SGDClassifier, loss="log_loss", penalty="l1", alpha=alpha, learning_rate="constant", eta0=0.1
    )
    rate = {"l1": alpha, "rate": "constant:0.1"}
    assert distance(ours_of(SparseOnlineClassifier, "cumulative", **rate), theirs) < 1e-6
    assert distance(ours_of(SparseOnlineClassifier, "fobos", **rate), theirs) > 1e-2


def test_penalty_l1_on_sparse_data_is_nearer_to_cumulative() -> None:
    given, y = load_svmlight_file("examples/data/rcv1_train2000.dat.gz")
    given = csr_matrix(
        (given.data, given.indices.astype(np.int32), given.indptr.astype(np.int32)), given.shape
    )
    given, y = given[:500], y[:500]
    penalty: dict[str, Any] = {"penalty": "l1", "alpha": 1e-3, "fit_intercept": False}
    theirs = SGDClassifier("log_loss", learning_rate="constant", eta0=0.1, **penalty, **THEIRS).fit(given, y)
    options: dict[str, Any] = {"rate": "constant:0.1", "fit_intercept": False}
    found = []
    for rule in ("cumulative", "fobos"):
        model = SparseOnlineClassifier(rule, l1=1e-3, store="growing", **options, **IN_ORDER)
        found.append(model.fit(given, y).coef_)
    gaps = [np.linalg.norm(coef - theirs.coef_) for coef in found]
    assert gaps[0] < gaps[1] / 1.5
    assert np.count_nonzero(found[0]) < np.count_nonzero(theirs.coef_) < np.count_nonzero(found[1])


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0])
def test_invscaling_is_a_power(power: float) -> None:
    rate = {"learning_rate": "invscaling", "eta0": 0.02, "power_t": power}
    theirs = theirs_of(SGDRegressor, penalty="l1", alpha=1e-3, **rate)
    ours = ours_of(
        SparseOnlineRegressor,
        "cumulative:l1=1e-3",
        "squared:scale=0.5",
        rate=f"power:eta0=0.02,t0=1,p={power}",
    )
    assert distance(ours, theirs) < 1e-6
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:the progressive loss is")  # of steps as long as scikit-learn's
@pytest.mark.parametrize("loss", ["log_loss", "hinge", "modified_huber", "squared_hinge"])
def test_optimal_is_a_power(loss: str) -> None:
    alpha = 0.1
    first = alpha**-0.25
    rate = f"power:eta0={first},t0={1 / (first * alpha)},p=1"
    name = {"log_loss": "logistic"}.get(loss, loss.replace("_", "-"))
    theirs = theirs_of(SGDClassifier, loss=loss, penalty=None, alpha=alpha, learning_rate="optimal")
    ours = ours_of(SparseOnlineClassifier, "sgd", name, rate=rate)
    assert distance(ours, theirs) < 1e-5
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-4, atol=1e-5)


def test_probabilities_of_modified_huber() -> None:
    several = np.digitize(Z, [-1, 1])
    for y in (Y, several):
        theirs = SGDClassifier(loss="modified_huber", random_state=0).fit(X, y)
        ours = from_sklearn(theirs)
        assert ours.loss == "modified-huber"
        proba = theirs.predict_proba(X)
        assert ((proba == 0) | (proba == 1)).any(), "some margins lie beyond -1 and 1"
        np.testing.assert_allclose(ours.predict_proba(X), proba, rtol=1e-5, atol=1e-6)
        assert to_sklearn(ours, SGDClassifier(loss="modified_huber")).score(X, y) == ours.score(X, y)


def averaged(steps: int, eta: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """The means of the weights before and after each step on squared error."""
    w, started, ended = np.zeros(8), np.zeros(8), np.zeros(8)
    for x, z in zip(X[:steps], Z[:steps], strict=True):
        started += w / steps
        w = w - eta * (x @ w - z) * x
        ended += w / steps
    return started, ended


def test_average_is_one_step_behind() -> None:
    started, ended = averaged(20, 0.1)
    options: dict[str, Any] = {"average": True, "fit_intercept": False}
    model = SparseOnlineRegressor("sgd", "squared:scale=0.5", rate="constant:0.1", **options, **IN_ORDER)
    model.fit(X[:20], Z[:20])
    theirs = SGDRegressor(penalty=None, learning_rate="constant", eta0=0.1, **options, **THEIRS).fit(
        X[:20], Z[:20]
    )
    np.testing.assert_allclose(model.coef_, started, rtol=1e-6)
    np.testing.assert_allclose(theirs.coef_, ended, rtol=1e-6)
    assert 0.02 < np.linalg.norm(ended - started) / np.linalg.norm(ended) < 0.2


def test_partial_fit_refuses_early_stopping() -> None:
    for model in (SparseOnlineRegressor(), SparseOnlineClassifier(), SGDRegressor(), SGDClassifier()):
        named = {} if isinstance(model, SparseOnlineRegressor | SGDRegressor) else {"classes": [0, 1]}
        with pytest.raises(ValueError, match="early_stopping should be False with partial_fit"):
            model.set_params(early_stopping=True).partial_fit(X, Y, **named)
        assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("columns", [0, 1, 2])
@pytest.mark.parametrize("rate", ["constant:0.1", None])
def test_shapes_of_a_regressor(columns: int, rate: str | None) -> None:
    y = Z if not columns else np.column_stack([Z] * columns)
    model = SparseOnlineRegressor("sgd", rate=rate).fit(X, y)
    theirs = Ridge().fit(X, y)
    assert model.coef_.shape == ((8,) if not columns else (columns, 8))
    assert model.intercept_.shape == (columns or 1,)
    np.testing.assert_allclose(
        X @ model.coef_.T + (model.intercept_ if columns else model.intercept_[0]),
        model.predict(X),
        rtol=1e-5,
        atol=1e-5,
    )
    assert model.predict(X).shape == y.shape
    if not columns:
        assert model.coef_.shape == theirs.coef_.shape == SGDRegressor().fit(X, y).coef_.shape
        assert model.intercept_.shape == SGDRegressor().fit(X, y).intercept_.shape
        assert model.sparsify().coef_.shape == (1, 8)


def test_linear_models_without_an_intercept_and_of_one_column_are_taken_as_they_are() -> None:
    for estimator, y in (
        (LinearRegression(fit_intercept=False), np.column_stack([Z, -Z])),
        (LinearRegression(), Z[:, np.newaxis]),
        (SGDRegressor(random_state=0), Z),
    ):
        theirs = estimator.fit(X, y)
        theirs = theirs.sparsify() if isinstance(theirs, SGDRegressor) else theirs
        ours = from_sklearn(theirs)
        assert ours.predict(X).shape == theirs.predict(X).shape
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5, atol=1e-5)
        back = to_sklearn(ours.sparsify(), LinearRegression())
        np.testing.assert_allclose(back.predict(X), theirs.predict(X), rtol=1e-5, atol=1e-5)
