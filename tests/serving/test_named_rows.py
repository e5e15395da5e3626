"""JSON objects for models of dictionaries: the same rows, in bodies of requests and in files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.serving.test_service import check_law, learned, serving
from tests.waiting import until
from thresher.data.layout import SettledLayout
from thresher.serving.bodies import Bodies
from thresher.serving.errors import RefusedError
from thresher.serving.openapi import JSON

ROWS: list[dict[str, Any]] = [
    {"a": 1.5, "b": "x", "large": 123456789.25, "whole": 1 << 60, "yes": True, "some": ["p", 3, None, ""]},
    {"a": -2e-3, "c": "ü", "": 1, "zero": 0, "none": None},
    {},
    {"b": "y", "a": 7, "some": []},
]
WORDS = ["cat", "dog", "cat", "dog"]
CASES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "default": ({}, [0, 1, 1, 0]),
    "words": ({"layout": SettledLayout(classes=("cat", "dog"))}, WORDS),
    "numbers": ({"loss": "squared"}, [0.5, -2, 1e3, 1]),
    "several": ({"outputs": "values:2", "loss": "squared"}, [[1, 2], [3, 4], [5, 6], [0, 0]]),
    "hashed": ({"rule": "ftrl", "store": "hashed:10"}, [0, 1, 1, 0]),
}
pytestmark = pytest.mark.usefixtures("plainly")


def lines(rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def with_labels(rows: list[dict[str, Any]], labels: list[Any]) -> list[dict[str, Any]]:
    return [{**row, "label": label} for row, label in zip(rows, labels, strict=True)]


def model_of(name: str) -> Any:
    options, labels = CASES[name]
    model = thresher.Model(**options)
    model.learn(ROWS * 5, labels * 5)
    return model


@pytest.mark.parametrize("name", CASES)
def test_objects_are_dictionaries(name: str, tmp_path: Path) -> None:
    model, other = model_of(name), model_of(name)
    bodies, expected = Bodies(model, 100), model.predict(ROWS, "margin")
    for body, media in ((lines(ROWS), JSON), (json.dumps(ROWS).encode(), ""), (lines(ROWS), "text/plain")):
        found = bodies.read(body, media, labelled=False)
        assert not found.bad
        np.testing.assert_array_equal(model.margins(found.chunk), expected)
    (tmp_path / "rows.jsonl").write_bytes(lines(ROWS))
    np.testing.assert_array_equal(model.predict(tmp_path / "rows.jsonl", "margin"), expected)
    labelled = bodies.read(lines(with_labels(ROWS, CASES[name][1])), JSON, labelled=True)
    model.learn(labelled.chunk)
    other.learn(ROWS, CASES[name][1])
    np.testing.assert_array_equal(model.predict(ROWS, "margin"), other.predict(ROWS, "margin"))


def test_the_label_is_a_feature_where_none_is_wanted() -> None:
    model = thresher.Model()
    for k in range(20):
        model.learn_one({"label": "red" if k % 2 else "blue"}, k % 2)
    bodies, row = Bodies(model, 10), {"label": "red"}
    assert model.margins(bodies.read(lines([row]), JSON, labelled=False).chunk)[0] == model.score_one(row)
    kept = bodies.read(b'{"id": "u", "a": 1, "label": 1}', JSON, labelled=False, ids="id")
    assert (kept.ids, kept.chunk.nnz) == (["u"], 1)


def test_wrong_rows_have_their_errors_in_their_places() -> None:
    label = "expected a label -1, 0 or 1 (new classes need a new model: train it on all data)"
    label += " in the field 'label'"
    bad = {
        '{"a": {"b": 1}, "c": 1, "label": 1}': "expected a number, a text or a list of texts in feature 'a', "
        "found {'b': 1} (dict): give its values names of their own, such as 'a.b'",
        '{"c": 1, "a": [1.5], "label": 1}': "expected named features, "
        "found feature 'a': a list must hold texts or whole numbers, found 1.5 (float)",
        '{"a": 1' + "0" * 5000 + ', "label": 1}': "expected a finite number in feature 'a', found inf",
        '{"a": 1}': f"{label}, found none",
        '{"label": [1]}': f"{label}, found '[1]'",
        "[1]": "expected a JSON object, found '[1]'",
    }
    body = "\n".join(f'{line}\n\n{{"a": 1, "label": 1}}' for line in bad).encode()
    found = Bodies(model_of("default"), 100).read(body, "application/x-ndjson", labelled=True)
    assert [one.error for one in found.bad] == [*bad.values()]
    assert [one.line for one in found.bad] == [1 + 3 * k for k in range(len(bad))]
    assert found.gaps == [*range(len(bad))]
    assert found.chunk.nnz == found.good == len(bad)


def test_names_of_features() -> None:
    bodies, body = Bodies(model_of("default"), 10), b'{"a": 1, "b": "x"}'
    keys = bodies.read(body, JSON, labelled=False).chunk.keys
    assert sorted(bodies.names(body, JSON, keys).values()) == ["a", "b=x"]


def test_serving_is_training(tmp_path: Path) -> None:
    model = model_of("default")
    model.save(tmp_path / "begin.model")
    with serving(tmp_path / "begin.model", tmp_path / "log") as service:
        bodies = Bodies(service.model, 100)
        for row in with_labels(ROWS, [1, 1, 0, True]):
            service.learn(bodies.read(lines([row]), JSON, labelled=True).chunk).result()
        until(lambda: learned(service))
    check_law(tmp_path / "begin.model", tmp_path / "log", tmp_path / "expected")
    for row, label in zip(ROWS, [1, 1, 0, True], strict=True):
        model.learn_one(row, label)
    served = thresher.load(tmp_path / "log" / "model")
    np.testing.assert_array_equal(served.predict(ROWS, "margin"), model.predict(ROWS, "margin"))


def test_models_of_other_rows_refuse_objects() -> None:
    matrix: Any = thresher.train((np.eye(4), [1, 0, 1, 0]))
    with pytest.raises(RefusedError, match="whose features are ids; the features of JSON lines are columns"):
        Bodies(matrix, 10).read(b'{"a": 1}', JSON, labelled=False)
    named = thresher.Model()
    named.learn([{"a": 1.0}, {"b": 2.0}] * 5, [0, 1] * 5)
    with pytest.raises(RefusedError, match="give JSON lines, not CSV, or let it learn a table"):
        Bodies(named, 10).read(b"a,b\n1,x\n", "text/csv", labelled=False)
