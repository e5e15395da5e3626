"""Exports of calibrated models, and of models of random recipes, predict what they do."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import thresher
from tests.exporting.engines import c_program, js_answers
from tests.exporting.recipes import tried
from tests.exporting.test_c import check
from tests.exporting.test_js import near
from tests.plain import not_compiled

pytestmark = pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
ROWS = 400
CLASSES = ["ale", "gin", "rum"]


def of_several(path: Path, loss: str) -> tuple[Any, Any, dict[str, Any]]:
    """A model of three classes, its data and what it predicts with a temperature far from 1."""
    chance = np.random.default_rng(0)
    X = chance.normal(size=(ROWS, 2)).round(3)
    z = X @ [[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]] + chance.gumbel(size=(ROWS, 3))
    lines = (f"{CLASSES[k]},{a},{b}\n" for k, (a, b) in zip(z.argmax(1), X, strict=True))
    path.write_text("label,x,y\n" + "".join(lines))
    options: dict[str, Any] = {"outputs": "classes", "rule": "sgd", "rate": "constant:2", "passes": 1}
    with not_compiled():
        trained = thresher.train(path, loss=loss, calibrate=True, **options)
        model, fitted = trained.predictor(), trained.head.calibrated()
    assert abs(np.log(fitted.slope)) > 0.3
    margins, found = model.predict(path, "margin"), model.predict(path, "probability")
    raised = np.exp(fitted.slope * (margins - margins.max(1, keepdims=True)))
    np.testing.assert_allclose(found, raised / raised.sum(1, keepdims=True))
    return model, X, {"margin": margins, "probability": found, "label": model.predict(path, "label")}


def of_two(path: Path, loss: str) -> tuple[Any, Any, dict[str, Any]]:
    """The same of two classes; the signs of many margins are not those of the log odds."""
    chance = np.random.default_rng(0)
    X = chance.normal(size=(ROWS, 2)).round(3)
    y = (X @ [1.0, -1.0] + chance.normal(0, 1, ROWS) > 0).astype(int)
    lines = (f"{'no' if not k else 'yes'},{a},{b}\n" for k, (a, b) in zip(y, X, strict=True))
    path.write_text("label,x,y\n" + "".join(lines))
    with not_compiled():
        model = thresher.train(path, rule="ftrl", loss=loss, calibrate=True, passes=1).predictor()
    found: dict[str, Any] = {name: model.predict(path, name) for name in ("margin", "probability", "label")}
    assert ((found["margin"] > 0) != (found["probability"] > 0.5)).sum() > 20
    return model, X, found


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        *((of_several, loss) for loss in ("softmax", "crammer-singer", "logistic")),
        *((of_two, loss) for loss in ("logistic:positive=10", "perceptron:positive=4")),
    ],
)
def test_probabilities_and_labels_in_each_language(made: Any, loss: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    model, X, expected = made(path, loss)
    program, labels = c_program(str(thresher.export(model, "c")), tmp_path / "model"), [*expected["label"]]
    check(model, program, path, "margin")
    check(model, program, path, "probability")
    assert program("label", path.read_bytes())[1].decode().split() == labels
    told = js_answers(str(thresher.export(model, "js")), tmp_path / "model.js", X.tolist())
    by_class = expected["probability"].reshape(ROWS, -1)
    assert near(np.array([one[1] for one in told]), by_class)
    assert [one[2] for one in told] == labels
    content: Any = thresher.export(model, "onnx")
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    named, probabilities = session.run(None, {"X": X.astype(np.float32)})
    assert [*named] == labels
    np.testing.assert_allclose(probabilities[:, -by_class.shape[1] :], by_class, rtol=2e-5, atol=1e-6)


SEEDS = (0, 2, 5, 7, 9)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_export_predicts_what_the_model_does(seed: int, tmp_path: Path) -> None:
    assert tried(seed, tmp_path)
