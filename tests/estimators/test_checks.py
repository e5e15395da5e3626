"""scikit-learn's own checks, all of them: none is expected to fail."""

import warnings
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from tests.plain import compiled_if
from thresher.sklearn import (
    SparseFrontierClassifier,
    SparseFrontierRegressor,
    SparseOnlineClassifier,
    SparseOnlineRegressor,
    SparseStabilitySelector,
)

# in as few passes as the checks of what was learned allow; one frontier finds its penalties, one is told
CLASSIFIERS = [
    SparseOnlineClassifier(),
    SparseOnlineClassifier("adagrad-fobos", "softmax", passes=3),
    SparseFrontierClassifier(l1s=[0.1, 1.0], cv=2, passes=1),
]
REGRESSORS = [
    SparseOnlineRegressor(),
    SparseFrontierRegressor(l1s=2, cv=2, passes=1, choose="1se"),
]
SELECTORS = [SparseStabilitySelector(bags=4)]
DEFAULT = SparseOnlineClassifier().rule
SKIPPED = {"check_array_api_input"}


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *REGRESSORS, *SELECTORS], ids=repr)
def test_check_estimator(estimator: Any) -> None:
    default = getattr(estimator, "rule", DEFAULT) == DEFAULT
    with compiled_if(default), warnings.catch_warnings():  # other rules would be compiled for this alone
        if estimator in SELECTORS:  # of random data, no feature is real
            warnings.filterwarnings("ignore", "No features were selected|of the .* kept features|no share")
        results = check_estimator(estimator, on_skip=None, on_fail=None)
    for result in results:
        if result["status"] not in ("passed", "skipped"):
            raise AssertionError(result["check_name"]) from result["exception"]
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= SKIPPED
    assert len(results) > (40 if estimator in SELECTORS else 50)


def test_the_checks_are_those_of_a_classifier_of_several_labels() -> None:
    names = {check.func.__name__ for _, check in estimator_checks_generator(CLASSIFIERS[0])}
    assert "check_classifiers_multilabel_output_format_predict" in names
    assert "check_sample_weight_equivalence_on_sparse_data" in names
