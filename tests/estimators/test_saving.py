"""From a fitted estimator to a model file, and estimators in place of models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import thresher
from tests.plain import not_compiled
from thresher.learning.files import model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.sklearn import SparseOnlineClassifier, SparseOnlineRegressor
from thresher.sklearn.convert import from_sklearn

RNG = np.random.default_rng(5)
X = RNG.normal(size=(90, 4)).round(3)
Y = np.where(X[:, 0] > 0, "up", "down")


def test_what_goes_on_learning_does_so_from_the_file(tmp_path: Path) -> None:
    with not_compiled():
        model = SparseOnlineClassifier(passes=5, random_state=0).fit(X, Y)
        thresher.save(model, tmp_path / "m")
        loaded, header = model_file.load(tmp_path / "m")
        assert header["examples"] == 450
        before = model.decision_function(X)
        np.testing.assert_array_equal(thresher.load(tmp_path / "m").predict(_chunk(X)), before)
        model.partial_fit(X, Y)
        loaded.learn(_chunk(X, np.where(Y == "up", 1.0, -1.0)))
        np.testing.assert_array_equal(loaded.predict(_chunk(X)), model.decision_function(X))
        assert (before != model.decision_function(X)).any()
        assert model.model_ is model._model


def test_what_is_weights_alone_is_saved_as_such(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    with not_compiled():
        thresher.save(SparseOnlineClassifier(random_state=0).fit(X, Y).model_.predictor(), tmp_path / "m")
        thresher.save(thresher.load(tmp_path / "m"), tmp_path / "again")
        theirs = from_sklearn(LogisticRegression().fit(X, Y))
        thresher.save(theirs, tmp_path / "theirs")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()
    np.testing.assert_array_equal(thresher.load(tmp_path / "theirs").weights, theirs.coef_[0])
    with pytest.raises(ModelFileError, match="only weights"):
        model_file.load(tmp_path / "m")


def test_estimators_are_taken_where_models_are() -> None:
    with not_compiled():
        model = SparseOnlineClassifier(random_state=0).fit(X, Y)
        signs = np.where(Y == "up", 1.0, -1.0)
        assert thresher.evaluate(model, (X, Y))["error"] == pytest.approx(1 - model.score(X, Y))
        started = thresher.train((0.0 * X[:1], signs[:1]), "ftrl", init=model)
        np.testing.assert_allclose(started.weights()[1], model.coef_[model.coef_ != 0], rtol=1e-6)
    for take in (lambda one: thresher.save(one, "nowhere"), lambda one: thresher.evaluate(one, (X, Y))):
        with pytest.raises(NotFittedError):
            take(SparseOnlineRegressor())
        with pytest.raises(TypeError, match="expected a model, not ndarray"):
            take(X)


def _chunk(rows: Any, labels: Any = None) -> Any:
    from thresher.data.inputs.arrays import chunk_of

    return chunk_of(rows) if labels is None else chunk_of(rows, labels)
