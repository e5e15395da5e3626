"""Estimators in pipelines, searches and other compositions of scikit-learn."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn
import skops.io
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.plain import compiled_if, not_compiled
from thresher.data.layout import SettledLayout
from thresher.parts import make
from thresher.parts.rules.ftrl import Ftrl
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor

IRIS = load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def wide() -> tuple[Any, Any]:
    X, y = make_classification(300, 40, n_informative=5, n_redundant=0, shuffle=False, random_state=0)
    return X, y


def test_a_group_is_set_by_its_name() -> None:
    for rule in ("ft-ftrl", "ft-ftrl:group=linf", make("rule", "ft-ftrl")):
        named = SparseOnlineClassifier(rule).set_params(rule__group="l2").rule
        assert make("rule", named) == make("rule", "ft-ftrl:group=l2")
    for wrong in ("l3", 3, None):
        with pytest.raises(ValueError, match="group"):
            SparseOnlineClassifier().set_params(rule__group=wrong)


def test_pipelines_and_grids() -> None:
    model = make_pipeline(StandardScaler(), SparseOnlineClassifier(random_state=0))
    grid = {"sparseonlineclassifier__l1": [0.1, 1e4], "sparseonlineclassifier__rule__alpha": [0.1, 1.0]}
    search = GridSearchCV(model, grid, cv=3).fit(*IRIS)
    assert search.best_params_["sparseonlineclassifier__l1"] == 0.1
    assert search.best_score_ > 0.85
    rules = {"sparseonlineclassifier__rule": ["ft-ftrl:l1=1e4", "ft-ftrl:l1=0.1"]}
    halving = HalvingGridSearchCV(model, rules, cv=3, random_state=0).fit(*IRIS)
    assert halving.best_params_["sparseonlineclassifier__rule"] == "ft-ftrl:l1=0.1"
    assert halving.score(*IRIS) > 0.85


def test_parallel_search_pickles_what_is_fitted() -> None:
    model = SparseOnlineClassifier(random_state=0).fit(*IRIS)  # compiled here, for both processes
    scores = cross_validate(model, *IRIS, n_jobs=2, return_estimator=True)
    assert scores["test_score"].mean() > 0.7
    assert scores["estimator"][0].predict(IRIS[0]).shape == (150,)


def test_skops_finds_nothing_to_trust_but_the_classes() -> None:
    X, y = IRIS
    table = pa.table({"length": X[:, 0], "kind": np.array(["a", "b", "c"])[y]})
    cases: list[tuple[Any, Any, set[type]]] = [
        (SparseOnlineClassifier(random_state=0), X, set()),
        (SparseOnlineClassifier(make("rule", "ftrl:alpha=0.2"), random_state=0), X, {Ftrl}),
        (SparseOnlineClassifier(random_state=0), table, {SettledLayout}),
        (
            SparseOnlineClassifier("ft-ftrl:alpha=0.3,l1=0.0", centre=False, random_state=0),
            ["some words", "and others"] * 75,
            set(),
        ),
    ]
    for model, given, parts in cases:
        with compiled_if(Ftrl not in parts):
            saved = skops.io.dumps(model.set_params(passes=1).fit(given, y))
        types = {f"{kind.__module__}.{kind.__qualname__}" for kind in {SparseOnlineClassifier, *parts}}
        assert set(skops.io.get_untrusted_types(data=saved)) == types
        with compiled_if(Ftrl not in parts):
            again = skops.io.loads(saved, trusted=sorted(types))
            np.testing.assert_array_equal(again.decision_function(given), model.decision_function(given))
            more = [estimator.partial_fit(given, y).coef_ for estimator in (again, model)]
        np.testing.assert_array_equal(*more)


def test_calibration_and_wrappers(wide: tuple[Any, Any]) -> None:
    X, y = wide
    base = SparseOnlineClassifier(loss="hinge", passes=1, random_state=0)
    with not_compiled():
        assert CalibratedClassifierCV(base, cv=3).fit(X[::5], y[::5]).predict_proba(X[:9]).shape == (9, 2)
    assert OneVsRestClassifier(SparseOnlineClassifier(random_state=0)).fit(*IRIS).score(*IRIS) > 0.7
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    chain = ClassifierChain(SparseOnlineClassifier(random_state=0)).fit(X, labels)
    assert chain.predict(X).shape == (300, 2)


def test_select_from_model(wide: tuple[Any, Any]) -> None:
    X, y = wide
    select = (
        SelectFromModel(SparseOnlineClassifier(l1=2.0, random_state=0), threshold=1e-9)
        .set_output(transform="pandas")
        .fit(X, y)
    )
    kept = select.transform(X)
    model = select.estimator_
    assert 0 < kept.shape[1] < 40
    assert list(kept.columns) == list(select.get_feature_names_out()) == list(model.get_feature_names_out())
    assert list(model.get_feature_names_out()) == [f"x{k}" for k in np.flatnonzero(model.coef_[0])]
    assert list(model.sparsify().get_feature_names_out()) == list(kept.columns)


def test_sample_weights_are_routed() -> None:
    X, y = IRIS
    weights = np.where(y == 0, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SparseOnlineClassifier(random_state=0).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"l1": [0.1]}, cv=3).fit(X, y, sample_weight=weights)
    assert search.best_estimator_.classes_.tolist() == [1, 2]


def test_vectorizers_before() -> None:
    texts, y = ["good day", "bad day", "good", "bad"] * 10, [1, 0, 1, 0] * 10
    words = make_pipeline(HashingVectorizer(n_features=2**24), SparseOnlineClassifier(l1=0.1, random_state=0))
    assert words.fit(texts, y).score(texts, y) == 1.0
    rows = [{"word": text} for text in texts]
    both = make_pipeline(DictVectorizer(), SparseOnlineClassifier(l1=0.1, random_state=0)).fit(rows, y)
    assert both.score(rows, y) == SparseOnlineClassifier(l1=0.1, random_state=0).fit(rows, y).score(rows, y)


def test_shown_as_text_and_html() -> None:
    model = SparseOnlineClassifier(l1=0.5)
    assert repr(model) == "SparseOnlineClassifier(l1=0.5)"
    assert "SparseOnlineClassifier" in model._repr_html_()
    assert clone(model).l1 == 0.5


def test_tags() -> None:
    tags = sklearn.utils.get_tags(SparseOnlineClassifier())
    assert tags.input_tags.sparse
    assert tags.classifier_tags.multi_label
    assert not sklearn.utils.get_tags(SparseOnlineClassifier(loss="softmax")).classifier_tags.multi_label
    assert sklearn.utils.get_tags(SparseOnlineRegressor()).target_tags.multi_output
