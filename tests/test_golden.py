"""Files that earlier versions wrote are read as they were meant."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import thresher
from thresher.sklearn import SparseOnlineClassifier

FILES = Path(__file__).parent / "golden"
ROWS = FILES / "rows.svm"


@pytest.fixture(scope="module")
def today() -> thresher.Model:
    """What is learned from the same rows today."""
    return thresher.train(ROWS, rule="ftrl")


def test_a_model_predicts_and_goes_on(today: thresher.Model) -> None:
    expected = today.predict(ROWS)
    for name in ("one.model", "weights.model"):
        assert np.array_equal(thresher.load(FILES / name).predict(ROWS), expected)
    model = thresher.Model.load(FILES / "one.model")
    model.learn(ROWS)
    again = thresher.Model(today.recipe)
    for _ in range(2):
        again.learn(ROWS)
    assert np.array_equal(model.predict(ROWS), again.predict(ROWS))


def test_a_pickle_is_the_model(today: thresher.Model) -> None:
    model = pickle.loads((FILES / "model.pickle").read_bytes())
    assert model.recipe == today.recipe
    assert np.array_equal(model.predict(ROWS), today.predict(ROWS))


def test_training_resumes(today: thresher.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FILES, tmp_path / "files")
    monkeypatch.chdir(tmp_path / "files")
    model = thresher.train("rows.svm", rule="ftrl", checkpoint="checkpoint", resume=True)
    assert model.examples == 200
    assert np.array_equal(model.predict(ROWS), today.predict(ROWS))


def test_a_frontier_has_its_models() -> None:
    found = thresher.info(FILES / "frontier")
    assert [lane["l1"] for lane in found["lanes"]] == [0.3, 3.0]
    assert (
        thresher.load(found["files"][found["chosen"]]).nonzero == found["lanes"][found["chosen"]]["nonzero"]
    )


def test_the_names_in_pickles_of_estimators_exist() -> None:
    for home in ("classifier", "regressor", "frontier_classifier", "frontier_regressor"):
        assert any(
            f"thresher.sklearn.{home}" == getattr(thresher.sklearn, name).__module__
            for name in thresher.sklearn.__all__
            if isinstance(getattr(thresher.sklearn, name), type)
        ), home
    assert SparseOnlineClassifier.__module__ == "thresher.sklearn.classifier"
