"""Models as ONNX predict what Python does, in float32."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import thresher
from tests.covering import covering
from thresher.data.errors import DataError
from thresher.exporting.onnx import COLUMNS, KEYS

pytestmark = pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
HEAD = "label,a,b,c\n"


def table(path: Path, labels: Any, rows: int = 200) -> Path:
    chance = np.random.default_rng(3)
    cells = (
        ["" if chance.random() < 0.1 else f"{chance.normal(5, 2):.3f}" for _ in range(3)] for _ in range(rows)
    )
    path.write_text(HEAD + "".join(f"{labels(k)},{','.join(row)}\n" for k, row in enumerate(cells)))
    return path


def session(content: Any) -> Any:
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (lambda k: "yes" if k % 3 else "no", {}),
        (lambda k: k % 3, {"loss": "softmax", "scale": "standard"}),
        (lambda k: k % 4, {"loss": "poisson", "scale": "max-abs", "rule": "adagrad-fobos"}),
    ],
)
def test_columns_of_numbers(tmp_path: Path, labels: Any, options: dict[str, Any], plainly: None) -> None:
    data = table(tmp_path / "d.csv", labels)
    model = thresher.train(data, passes=2, **options)
    made = session(thresher.export(model, "onnx", tmp_path / "m.onnx"))
    assert (tmp_path / "m.onnx").read_bytes()
    assert json.loads(made.get_modelmeta().custom_metadata_map[COLUMNS]) == ["a", "b", "c"]
    X = np.genfromtxt(data, np.float32, delimiter=",", skip_header=1)[:, 1:]
    found = made.run(None, {"X": X})
    if model.head.classifies:
        assert found[0].tolist() == named(model, data).tolist()  # numbers where classes are numbers
        np.testing.assert_allclose(found[1], model.predict_proba(data), rtol=2e-5, atol=1e-6)
    else:
        np.testing.assert_allclose(found[0][:, 0], model.predict(data, "label"), rtol=2e-5, atol=1e-6)


def test_a_class_that_was_only_held_out_is_no_class_there(tmp_path: Path, plainly: None) -> None:
    held = table(tmp_path / "h.csv", lambda k: "never" if k % 2 else "ham")
    data = table(tmp_path / "d.csv", lambda k: ["ham", "spam", "eggs"][k % 3])
    first = table(tmp_path / "f.csv", lambda k: ["ham", "eggs"][k % 2])
    begun = thresher.train(first, outputs="classes", loss="softmax", passes=2, holdout=held)
    model = thresher.train(data, continue_from=begun, passes=2)
    assert model.classes == ("ham", "eggs", "never", "spam")
    X = np.genfromtxt(data, np.float32, delimiter=",", skip_header=1)[:, 1:]
    labels, probabilities = session(thresher.export(model, "onnx")).run(None, {"X": X})
    assert labels.tolist() == model.predict(data, "label").tolist()
    known = [k for k, name in enumerate(model.classes) if name != "never"]
    np.testing.assert_allclose(probabilities, model.predict_proba(data)[:, known], rtol=2e-5, atol=1e-6)


def named(model: Any, data: Path) -> Any:
    found = model.predict(data, "label")
    return found if found.dtype == object else found.astype(np.int64)


@pytest.mark.parametrize("rule", ["ftrl", "ft-ftrl"])
def test_ids_are_columns_with_keys(tmp_path: Path, rule: str) -> None:
    data = tmp_path / "d.svm"
    data.write_text("".join(f"{k % 2 * 2 - 1} {3 + k % 2}:1 900:{5 + k % 5}\n" for k in range(80)))
    model = thresher.train(data, passes=1, rule=rule)
    assert (model.predictor().means is not None) == (rule == "ft-ftrl"), "ids are centred"
    made = session(thresher.export(model, "onnx"))
    keys = made.get_modelmeta().custom_metadata_map[KEYS].split()
    assert {*keys} <= {"3", "4", "900"}
    rows = [dict(pair.split(":") for pair in line.split()[1:]) for line in data.read_text().splitlines()]
    X = np.array([[row.get(key, 0) for key in keys] for row in rows], np.float32)
    np.testing.assert_allclose(made.run(None, {"X": X})[1], model.predict_proba(data), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("row", "options", "said"),
    [
        ("{y},{k},a{y}", {}, "column 'c', which is categorical"),
        ("{y},{k},{k}", {"interact": "b,c"}, "cannot express products"),
        ("{y},{k},{k}", {"store": "hashed:9"}, "cannot express a hashed store"),
        ("{y},{k},{k}", {"loss": "exponential"}, "no link function for the loss 'exponential'"),
        ("{y},{k},{k}", {"models": 2}, "cannot express an ensemble"),
    ],
)
def test_what_onnx_cannot_say(tmp_path: Path, row: str, options: dict[str, Any], said: str) -> None:
    data, path = tmp_path / "d.csv", tmp_path / "m.onnx"
    data.write_text("label,b,c\n" + "".join(row.format(y=k % 2, k=k % 7) + "\n" for k in range(60)))
    train: Any = thresher.ensemble if "models" in options else thresher.train
    model = train(data, passes=1, **options)
    with pytest.raises(DataError, match=said):
        thresher.export(model, "onnx", path)
    assert not path.exists()


def test_a_model_of_ids_without_a_weight_has_no_columns(plainly: None) -> None:
    model = thresher.train(np.eye(4), [1.0, -1.0, 1.0, -1.0], l1=1e6, passes=1)
    with pytest.raises(DataError, match="no feature has a weight: there are no columns to export"):
        thresher.export(model, "onnx")


def far(path: Path, mean: float, deviation: float, count: bool) -> Path:
    """A table of a column far from zero, which decides the label, or is near it."""
    z = np.random.default_rng(0).normal(size=(300, 2))
    labels = (z[:, 0] + z[:, 1] / 3).round(3) if count else (z[:, 0] + z[:, 1] / 3 > 0).astype(int)
    rows = zip(labels.tolist(), (mean + deviation * z[:, 0]).round(4).tolist(), strict=True)
    path.write_text("label,x\n" + "".join(f"{y},{x!r}\n" for y, x in rows))
    return path


UNRESOLVED = ((1e7, 1), (-2e9, 100), (1e9, 20))
RESOLVED = ((1.7e9, 1e7), (2e5, 5e4), (6e4, 1))


@pytest.mark.parametrize(
    ("column", "scale", "count"),
    [*covering(UNRESOLVED + RESOLVED, (None, "standard"), (False, True))],
)
def test_columns_that_float32_does_not_resolve(
    tmp_path: Path, column: tuple[float, float], scale: str | None, count: bool, plainly: None
) -> None:
    data = far(tmp_path / "d.csv", *column, count)
    model = thresher.train(data, passes=3, scale=scale, loss="squared" if count else "logistic")
    if column in UNRESOLVED:
        with pytest.raises(DataError, match=r"column x lies near -?[1-9]"):
            thresher.export(model, "onnx")
        return
    X = np.genfromtxt(data, delimiter=",", skip_header=1)[:, 1:].astype(np.float32)
    found = session(thresher.export(model, "onnx")).run(None, {"X": X})
    own = found[0][:, 0] if count else found[1][:, 1]
    np.testing.assert_allclose(own, model.predict(data, "label" if count else "probability"), atol=0.01)


def test_without_the_package_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    model = thresher.train(np.eye(4), [1.0, -1.0, 1.0, -1.0])
    for package, using in (
        ("onnx", lambda: thresher.export(model, "onnx")),
        ("pandas", model.weights_frame),
        ("ray", lambda: thresher.train("no.svm", workers=1)),
    ):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=f"needs {package}: pip install {package}$") as caught:
            using()
        assert isinstance(caught.value, DataError), "one line on the command line, with status 1"
