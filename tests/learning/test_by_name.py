"""Weights by name: frames, mappings of names, models that are saved and continue."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import thresher
from thresher.data.errors import DataError
from thresher.data.features.names import Names
from thresher.learning.files.model_file import ModelFileError
from thresher.sklearn import SparseOnlineClassifier

FRAME = pd.DataFrame({"age": np.arange(30) - 14.5, "city": ["Rome", "Bonn", "Ulm"] * 10})
Y = np.where((FRAME.age > 3) ^ (FRAME.city == "Ulm"), 1, -1)


pytestmark = pytest.mark.usefixtures("plainly")


@pytest.fixture
def model() -> thresher.Model:
    return thresher.train(FRAME, Y, rule="sgd", names=True)


def test_names_are_a_mapping(model: thresher.Model) -> None:
    names = model.names
    assert isinstance(names, Mapping)
    assert set(names.values()) == {"age", "city=Rome", "city=Bonn", "city=Ulm"}
    assert [*names] == model.weights()[0].tolist()
    assert dict(names.items()) == names
    assert all(key in names and names[key] == name == names.get(key) for key, name in names.items())
    for missing in (0, -1, 1 << 70):
        assert missing not in names
        assert names.get(missing) is None
        with pytest.raises(KeyError):
            names[missing]
    assert repr(names).startswith("<Names of 4 features: {")
    assert "and 2 more" in repr(Names.of(dict.fromkeys(range(6), b"a")))


def test_names_are_the_same_whenever_they_are_found(model: thresher.Model) -> None:
    without = thresher.train(FRAME, Y, rule="sgd")
    assert without.names is None
    assert thresher.name_features(without, FRAME) == model.names
    assert thresher.name_features(without.readout(), FRAME.assign(y=1), ignore="y") == model.names


def test_a_frame_has_every_weight_heaviest_first(model: thresher.Model) -> None:
    frame = model.weights_frame()
    keys, weights = model.weights()
    assert frame.columns.tolist() == ["feature", "key", "weight"]
    assert dict(zip(frame.key, frame.weight, strict=True)) == dict(zip(keys, weights, strict=True))
    assert frame.weight.dtype == weights.dtype
    assert (np.diff(frame.weight.abs()) <= 0).all()
    assert model.names is not None
    assert [model.names[key] for key in frame.key] == frame.feature.tolist()
    pd.testing.assert_frame_equal(model.weights_frame(2), frame[:2])
    pd.testing.assert_frame_equal(model.readout().weights_frame(), frame)


def test_numeric_columns_have_names_without_asking() -> None:
    frame = thresher.train(FRAME, Y, rule="sgd").weights_frame()
    assert sorted(frame.feature) == sorted(["age", *frame.key[frame.feature != "age"].astype(str)])
    hashed = thresher.train(FRAME, Y, rule="sgd", store="hashed:8").weights_frame()
    assert "age" not in set(hashed.feature)


def test_a_frame_of_classes_says_which() -> None:
    labels = np.arange(30) % 3 + 5
    model = thresher.train(FRAME, labels, rule="sgd", outputs="classes", names=True)
    frame = model.weights_frame()
    assert set(frame.output) <= {5, 6, 7}
    keys, weights = model.weights()
    for one in frame.itertuples():
        assert weights[np.searchsorted(keys, np.uint64(one.key)), one.output - 5] == one.weight
    assert len(frame) == np.count_nonzero(weights)


def test_a_model_is_saved_loaded_and_goes_on(model: thresher.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    again, weights = thresher.Model.load(tmp_path / "m"), thresher.load(str(tmp_path / "m"))
    pd.testing.assert_frame_equal(weights.weights_frame(), model.weights_frame())
    model.learn(FRAME, Y)
    again.learn(FRAME, Y)
    assert again.weights()[1].tobytes() == model.weights()[1].tobytes()
    model.save(tmp_path / "w", state=False)
    with pytest.raises(ModelFileError, match="only weights"):
        thresher.Model.load(tmp_path / "w")


def test_rows_and_texts_have_names() -> None:
    rows = [{"size": float(k % 3), "town": "xyz"[k % 3]} for k in range(60)]
    labels = [1 if k % 3 else -1 for k in range(60)]
    texts = ["a good book" if k % 3 else "a bad film" for k in range(60)]
    for data, some in ((rows, {"size", "town=x"}), (texts, {"good", "bad"}), (iter(texts), {"film"})):
        model = thresher.train(data, labels, names=True, l1=0.1)
        assert some <= {*model.names.values()}
    for data, some in ((rows, {"size", "town=x"}), (texts, {"good", "bad"})):
        model = thresher.train(data, labels, l1=0.1)
        assert some <= {*thresher.name_features(model, data).values()}


def test_a_fitted_classifier_is_measured_on_a_pair(tmp_path: Path) -> None:
    words = np.where(Y > 0, "yes", "no")
    fitted = SparseOnlineClassifier().fit(FRAME, words)
    expected = thresher.evaluate(fitted, FRAME, words)
    assert thresher.evaluate(fitted, (FRAME, words)) == expected
    weights = np.arange(len(Y)) % 3 + 1
    heavy = thresher.evaluate(fitted, FRAME, words, sample_weight=weights)
    assert thresher.evaluate(fitted, (FRAME, words, weights)) == heavy != expected
    thresher.report(fitted, (FRAME, words), tmp_path / "r.html")
    with pytest.raises(DataError, match="label 'maybe' is not among the classes"):
        thresher.evaluate(fitted, (FRAME, ["maybe"] * len(Y)))


def test_names_that_cannot_be_had_are_refused_before_learning() -> None:
    with pytest.raises(DataError, match="hashed store"):
        thresher.train(FRAME, Y, names=True, store="hashed:8")
    with pytest.raises(DataError, match="a matrix or a log has no feature names"):
        thresher.train(np.eye(3), [1, -1, 1], names=True)
    with pytest.raises(ValueError, match="names must be True or False"):
        thresher.train(FRAME, Y, names="yes")  # type: ignore[arg-type]
