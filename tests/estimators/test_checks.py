"""scikit-learn's own checks, all of them: none is expected to fail."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from tests.plain import compiled_if
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor

# in as few passes as the checks of what was learned allow
ESTIMATORS: list[Any] = [
    SparseOnlineClassifier(),
    SparseOnlineClassifier("adagrad-fobos", "softmax", passes=3),
    SparseOnlineRegressor(),
]
DEFAULT = SparseOnlineClassifier().rule
SKIPPED = {"check_array_api_input"}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_check_estimator(estimator: Any) -> None:
    with compiled_if(estimator.rule == DEFAULT):  # other rules would be compiled for this alone
        results = check_estimator(estimator, on_skip=None, on_fail=None)
    for result in results:
        if result["status"] not in ("passed", "skipped"):
            raise AssertionError(result["check_name"]) from result["exception"]
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= SKIPPED
    assert len(results) > 50


def test_the_checks_are_those_of_a_classifier_of_several_labels() -> None:
    names = {check.func.__name__ for _, check in estimator_checks_generator(ESTIMATORS[0])}
    assert "check_classifiers_multilabel_output_format_predict" in names
    assert "check_sample_weight_equivalence_on_sparse_data" in names
