"""Predictions as JSON lines and as Arrow streams."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import thresher
from thresher.data.bodies import Rows
from thresher.learning.inspection.explanation import explain
from thresher.serving.answers import Answers, lines_of
from thresher.serving.bodies import Bodies
from thresher.serving.errors import RefusedError

pytestmark = pytest.mark.usefixtures("plainly")
LINES = b"""{"label": "spam", "x": 1, "c": "a", "id": "p"}
{"x": "no number"}
{"x": -2, "c": "b", "id": 7}
[]
"""


def model_of(folder: Path, labels: list[Any], **options: Any) -> Any:
    path = folder / "train.jsonl"
    rows = [{"label": label, "x": k - 3, "c": "abc"[k % 3]} for k, label in enumerate(labels * 8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return thresher.train(path, centre=False, **options)


def answers_of(model: Any, output: str, ids: str = "") -> list[Any]:
    rows = Bodies(model, 100).read(LINES, "application/json", labelled=False, ids=ids)
    written = Answers(model).write(rows, model.margins(rows.chunk), output)
    return [json.loads(line) for line in written.splitlines()]


def predicted(model: Any, output: str) -> Any:
    rows = Bodies(model, 100).read(LINES, "", labelled=False)
    return model.predict(rows.chunk, output).tolist()


def test_one_output(tmp_path: Path) -> None:
    model = model_of(tmp_path, ["ham", "spam"])
    first, bad, second, worse = answers_of(model, "")
    assert [first, second] == [{"probability": one} for one in predicted(model, "probability")]
    assert bad == {"error": "expected a number in column 'x', found '\"no number\"'", "line": 2, "column": 1}
    assert (worse["line"], worse["column"]) == (4, 1)
    labels = answers_of(model, "label")
    assert [labels[0], labels[2]] == [{"label": one} for one in predicted(model, "label")]
    assert labels[0]["label"] in ("ham", "spam")
    margins = answers_of(model, "margin", ids="id")
    assert [one["id"] for one in margins] == ["p", "", "7", ""]
    assert [margins[0]["margin"], margins[2]["margin"]] == predicted(model, "margin")
    assert "error" in margins[1]


def test_numbers_as_labels_and_null(tmp_path: Path) -> None:
    assert answers_of(model_of(tmp_path, [0, 1]), "label")[0]["label"] in (0, 1)
    regression = model_of(tmp_path, [0.5, 2.5, 3], loss="squared")
    means = predicted(regression, "label")
    assert [one.get("label") for one in answers_of(regression, "label")] == [means[0], None, means[1], None]
    assert answers_of(regression, "")[0].keys() == {"margin"}
    model = model_of(tmp_path, [0, 1])
    rows = Bodies(model, 100).read(LINES, "", labelled=False)
    written = Answers(model).write(rows, np.array([np.nan, np.inf]), "margin").splitlines()
    assert [json.loads(written[0]), json.loads(written[2])] == [{"margin": None}, {"margin": None}]


def test_together(tmp_path: Path) -> None:
    model = model_of(tmp_path, ["ham", "spam"])
    bodies, answers = Bodies(model, 100), Answers(model)
    given = [line + b"\n" for line in LINES.splitlines()[:3]]
    parts = bodies.read_together(given, "")
    assert parts is not None
    written = answers.together(parts, model.margins(parts[0].whole), "")
    alone = [bodies.read(one, "", labelled=False) for one in given]
    assert written == [answers.write(one, model.margins(one.chunk), "") for one in alone]


def test_explained(tmp_path: Path) -> None:
    model = model_of(tmp_path, ["ham", "spam"], names=True)
    rows = Bodies(model, 100).read(LINES, "", labelled=False, ids="id")
    written = lines_of(rows, explain(model, rows.chunk).told()).splitlines()
    first, bad = json.loads(written[0]), json.loads(written[1])
    assert [*first] == ["id", "label", "probability", "margin", "intercept", "features", "rest"]
    assert first["probability"] == predicted(model, "probability")[0]
    assert {one["feature"] for one in first["features"]} <= {"x", "c=a"}
    total = first["intercept"] + sum(one["contribution"] for one in first["features"])
    assert total == pytest.approx(first["margin"], rel=1e-12)
    assert [*bad] == ["id", "error", "line", "column"]


def test_the_command_and_python_say_the_same(tmp_path: Path) -> None:
    """Of good rows; of bad ones the service also says why."""
    model = model_of(tmp_path, ["ham", "spam"], names=True)
    (tmp_path / "rows.jsonl").write_bytes(LINES)
    rows = Bodies(model, 100).read(LINES, "", labelled=False)
    written = lines_of(rows, explain(model, rows.chunk).told(1)).splitlines()
    found = model.explain(tmp_path / "rows.jsonl", top=1, on_error="skip", ignore="id")
    assert [json.loads(written[k]) for k in (0, 2)] == [found[k] for k in (0, 2)]
    assert [found[k] for k in (1, 3)] == [{"error": "skipped"}] * 2


def test_explained_by_class(tmp_path: Path) -> None:
    model = model_of(tmp_path, ["a", "b", "c"], outputs="classes")
    rows = Bodies(model, 100).read(LINES, "", labelled=False)
    first = json.loads(lines_of(rows, explain(model, rows.chunk).told()).splitlines()[0])
    for name in "abc":
        parts = [one["contribution"][name] for one in first["features"]]
        assert first["intercept"][name] + sum(parts) == pytest.approx(first["margin"][name], rel=1e-12)


@pytest.mark.parametrize("output", ["probability", "label", "margin"])
@pytest.mark.parametrize(
    ("labels", "outputs"),
    [
        *((["ham", "spam"], "one"), ([0, 1], "one"), (["a", "b", "c"], "classes"), ([2, 3, 4], "classes")),
        ([[1], [2, 3], []], "labels:3"),
    ],
)
def test_lines_say_what_the_model_does_and_a_stream_has_what_lines_have(
    tmp_path: Path, labels: Any, outputs: str, output: str
) -> None:
    model = model_of(tmp_path, labels, outputs=outputs)
    lines, found = answers_of(model, output, ids="id"), predicted(model, output)
    names = labels if outputs == "classes" else [1, 2, 3]
    for line, one in zip((lines[0], lines[2]), found, strict=True):
        if outputs.startswith("labels") and output == "label":
            one = [k + 1 for k, positive in enumerate(one) if positive > 0]
        elif isinstance(one, list):
            one = dict(zip(map(str, names), one, strict=True))
        assert line[output] == one
    rows: Rows = Bodies(model, 100).read(LINES, "", labelled=False, ids="id")
    table = pa.ipc.open_stream(Answers(model).write(rows, model.margins(rows.chunk), output, True)).read_all()
    assert table.column_names == ["id", output, "error"]
    expected = [{"id": one["id"], output: one.get(output), "error": one.get("error")} for one in lines]
    assert table.to_pylist() == expected


def test_what_the_model_does_not_have(tmp_path: Path) -> None:
    answers = Answers(model_of(tmp_path, [0, 1], loss="hinge"))
    with pytest.raises(RefusedError, match="gives no probabilities") as caught:
        answers.check("probability")
    assert caught.value.status == 400
    counts = Answers(model_of(tmp_path, [0, 1], loss="poisson"))
    with pytest.raises(RefusedError, match=r"use output=margin or label \(the predicted mean"):
        counts.check("probability")
    with pytest.raises(RefusedError, match="top is for output=explain"):
        answers.check("margin", "2")
    for wrong in ("0", "-1", "1.5", "many", "9" * 5000):
        with pytest.raises(RefusedError, match="top must be a whole number of at least 1"):
            answers.check("explain", wrong)
    answers.check("explain", "2")
    answers.check("")
    assert answers.usual == "margin"
