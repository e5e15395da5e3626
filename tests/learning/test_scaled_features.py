"""Data without columns: every feature is scaled like the column of a table."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import thresher
from tests.intakes import FEATURES, LAYOUT, table
from tests.streams import fingerprint
from thresher.data.chunk import Chunk
from thresher.data.layout import SettledLayout
from thresher.learning.files import model_file
from thresher.learning.model import scaling
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe

ALL = SettledLayout("csv", bits=LAYOUT.bits, columns=LAYOUT.columns, kinds=("numeric",) * FEATURES)
scales = pytest.mark.parametrize("scale", scaling.SCALES)
chance = np.random.default_rng(5)
X = (chance.normal(size=(80, 5)) * 10.0 ** np.arange(-4, 6, 2)).round(6) * (chance.random((80, 5)) < 0.7)
Y = np.where((X / X.std(axis=0)).sum(axis=1) + chance.normal(size=80) / 4 > 0, 1, -1)


pytestmark = pytest.mark.usefixtures("plainly")


def weights(model: Any) -> list[bytes]:
    return [array.tobytes() for array in model.weights()]


@scales
@pytest.mark.parametrize("store", ["growing", "direct", "hashed:9"])
def test_a_feature_is_scaled_as_a_numeric_column_is(scale: str, store: str) -> None:
    data = table().chunk
    by_column, by_feature = (Model("sgd", scale=scale, store=store) for _ in range(2))
    by_column.layout = ALL
    for model in (by_column, by_feature):
        model.learn(data)
    assert weights(by_feature) == weights(by_column)
    assert by_feature.predict(data).tobytes() == by_column.predict(data).tobytes()
    assert by_feature.readout().predict(data).tobytes() == by_column.predict(data).tobytes()


@scales
def test_room_for_features_leaves_no_trace(scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for room in (1, 7, 1 << 12):
        monkeypatch.setattr(scaling, "FIRST_ROOM", room)
        model = Model("ftrl", scale=scale)
        for piece in range(0, 150, 10):
            model.learn(table().chunk, piece, piece + 10)
        found.append(fingerprint(model))
    assert found[0] == found[1] == found[2]


@scales
def test_what_waits_is_measured_too(scale: str) -> None:
    """Statistics cover all examples, including those before the feature was admitted."""
    rows = [{1: 4.0, 2: 1.0}, {1: -2.0}, {1: 1.0}]
    model = Model("sgd", scale=scale, centre=False, admit=3)
    model.learn(Chunk.of_rows([(1.0, row) for row in rows]))
    divisors = model.readout().divisors
    assert model.weights()[0].tolist() == [1]
    expected = {"max-abs": 4.0, "standard": np.std([4.0, -2.0, 1.0])}[scale]
    assert divisors.by.tolist() == pytest.approx([expected])


@scales
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_file_has_the_divisors_of_the_weights_there_are(scale: str, dtype: str, tmp_path: Path) -> None:
    model = Model("ftrl:alpha=1,l1=2", scale=scale, dtype=dtype)
    model.learn(table().chunk)
    model.save(tmp_path / "m")
    tensors = model_file.read(tmp_path / "m")[1]
    assert 0 < model.nonzero < len(tensors["state.scale.keys"]) == len(np.unique(table().chunk.keys))
    assert tensors["scale.keys"].tolist() == model.weights()[0].tolist()
    new = table(33).chunk
    assert thresher.load(tmp_path / "m").predict(new).tobytes() == model.predict(new).tobytes()
    again = Model.load(tmp_path / "m")
    model.learn(new)
    again.learn(new)
    assert fingerprint(again) == fingerprint(model)


def test_features_that_weigh_elsewhere_keep_all_divisors() -> None:
    model = Model(f"simplex:features={FEATURES}", "squared", scale="max-abs", intercept=False)
    model.learn(table().chunk)
    new = table(33).chunk
    assert model.readout().predict(new).tobytes() == model.predict(new).tobytes()


@scales
def test_lanes_are_runs(scale: str) -> None:
    recipes = [Recipe("ftrl", l1=l1, scale=scale) for l1 in (0.1, 1.0)]
    lanes = ModelSet(recipes)
    lanes.learn(table().chunk)
    for recipe, lane in zip(recipes, lanes.models, strict=True):
        alone = Model(recipe)
        alone.learn(table().chunk)
        assert weights(lane) == weights(alone)


@scales
def test_files_matrices_and_tables_of_numbers_agree(scale: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"rule": "sgd", "scale": scale, "passes": 3}
    lines = [
        f"{y} " + " ".join(f"{k}:{np.float32(x)!s}" for k, x in enumerate(row) if x)
        for y, row in zip(Y, X, strict=True)
    ]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    of_matrix = thresher.train(X, Y, **options)
    for data in ((csr_matrix(X), Y), (tmp_path / "a.svm",)):
        assert weights(thresher.train(*data, **options)) == weights(of_matrix)
    vw = [line.replace(" ", " | ", 1) for line in lines]
    (tmp_path / "a.vw").write_text("\n".join(vw) + "\n")
    assert weights(thresher.train(tmp_path / "a.vw", **options)) == weights(of_matrix)
    frame = pd.DataFrame(X, columns=[*"abcde"])
    of_frame = thresher.train(frame, Y, **options)
    assert sorted(of_frame.weights()[1]) == sorted(of_matrix.weights()[1])
    assert (
        thresher.evaluate(of_frame, frame, Y)["error"]
        < thresher.evaluate(thresher.train(X, Y, rule="sgd", passes=3), X, Y)["error"]
    )


@scales
def test_estimators_scale_matrices_and_frames_of_numbers(scale: str) -> None:
    from thresher.sklearn import SparseOnlineClassifier

    plain = SparseOnlineClassifier("sgd", passes=3, random_state=0).fit(X, Y)
    for data in (X, csr_matrix(X), pd.DataFrame(X, columns=[*"abcde"])):
        model = SparseOnlineClassifier("sgd", scale=scale, passes=3, random_state=0).fit(data, Y)
        assert model.score(data, Y) > max(0.8, plain.score(X, Y))
        margins = np.asarray(data @ model.coef_.T).ravel() + model.intercept_
        assert margins == pytest.approx(model.decision_function(data), rel=1e-4, abs=1e-4)


def test_what_is_exported_predicts_the_same() -> None:
    runtime = pytest.importorskip("onnxruntime")
    from thresher.sklearn import SparseOnlineClassifier

    model = SparseOnlineClassifier("sgd", scale="standard", random_state=0).fit(X, Y)
    session = runtime.InferenceSession(thresher.export(model, "onnx"))
    found = session.run(["probabilities"], {"X": X.astype(np.float32)})[0]
    assert found == pytest.approx(model.predict_proba(X), abs=1e-4)


@scales
def test_few_rows_are_scaled_as_many_are(scale: str) -> None:
    model, new = Model("sgd", scale=scale), table(33).chunk
    model.learn(table().chunk)
    ones = [model.predict(new.rows(i, i + 1)) for i in range(len(new))]
    assert np.concatenate(ones).tobytes() == model.predict(new).tobytes()
    model.learn(new)
    assert model.predict(new).tobytes() == model.readout().predict(new).tobytes()
