"""Names of features follow a model: into one that starts from its weights, and when it goes on learning."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import thresher
from thresher import Model
from thresher.learning.model.prediction import LinearPredictor

OLD = [{"town": "Ulm", "n": 1.0, "label": 1}, {"town": "Kiel", "n": 2.0, "label": 0}] * 10
NEW = [{"town": "Bonn", "n": 1.0, "label": 1}, {"town": "Kiel", "n": 2.0, "label": 0}] * 10
FOUND = {"town=Ulm", "town=Kiel", "town=Bonn", "n"}


pytestmark = pytest.mark.usefixtures("plainly")


def trained(**options: Any) -> Model:
    return thresher.train(OLD, label="label", names=True, rule="ftrl", l1=0.0, **options)


def named(model: Model | LinearPredictor) -> set[str]:
    return set(model.weights_frame()["feature"])


def test_a_model_that_starts_from_another_has_the_names_of_both(tmp_path: Path) -> None:
    trained().save(tmp_path / "m")
    for init in (trained(), tmp_path / "m"):
        model = thresher.train(NEW, label="label", init=init, rule="ftrl", l1=0.0)
        assert named(model) == FOUND
    bare = thresher.train(OLD, label="label", rule="ftrl", l1=0.0)
    assert thresher.train(NEW, label="label", init=bare, rule="ftrl", l1=0.0).names is None


def test_new_features_of_data_that_can_be_read_once_are_named_later() -> None:
    table = pa.Table.from_pylist(NEW)
    model = thresher.train(table.to_reader(), init=trained(), rule="ftrl", l1=0.0)
    assert {"town=Ulm", "town=Kiel"} < named(model) != FOUND
    thresher.name_features(model, table)
    assert named(model) == FOUND


def test_new_features_have_names_when_a_model_goes_on_learning(tmp_path: Path) -> None:
    model = trained()
    model.learn(NEW)
    assert named(model) == FOUND
    model.save(tmp_path / "m")
    assert named(thresher.load(tmp_path / "m")) == FOUND
    model = trained()
    model.learn(pa.Table.from_pylist(NEW).to_reader())
    assert named(model) != FOUND


def test_what_is_loaded_to_predict_says_how_to_learn(tmp_path: Path) -> None:
    trained().save(tmp_path / "m")
    model: Any = thresher.load(tmp_path / "m")
    assert not hasattr(model, "learn")
    with pytest.raises(AttributeError, match=r"load the model with Model\.load to go on learning"):
        model.learn(NEW)
    with pytest.raises(AttributeError, match=r"'LinearPredictor' object has no attribute 'nothing'$"):
        model.nothing  # noqa: B018
    assert named(copy.copy(model)) == named(pickle.loads(pickle.dumps(model))) == named(model)
    Model.load(tmp_path / "m").learn(NEW)
