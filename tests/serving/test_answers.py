"""Predictions as JSON lines, as Arrow streams and in the Open Inference Protocol."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import thresher
from thresher.data.bodies import Rows
from thresher.learning.inspection.explanation import explain
from thresher.serving.answers import Answers, lines_of
from thresher.serving.bodies import Bodies
from thresher.serving.errors import RefusedError

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
    with pytest.raises(RefusedError, match="output must be probability, label"):
        answers.check("odds")
    with pytest.raises(RefusedError, match="top is for output=explain"):
        answers.check("margin", "2")
    for wrong in ("0", "-1", "1.5", "many", "9" * 5000):
        with pytest.raises(RefusedError, match="top must be a whole number of at least 1"):
            answers.check("explain", wrong)
    answers.check("explain", "2")
    answers.check("")
    assert answers.usual == "margin"


TABLE = "label,size,colour,rows\n" + "ham,1,red,a\nspam,-2,blue,b\nham,0.5,red,c\n" * 5
TEXT = "1 |a size:0.5 red\n-1 |a blue\n" * 5


def trained(folder: Path, text: str, ending: str, **options: Any) -> Any:
    path = folder / f"train.{ending}"
    path.write_text(text)
    return thresher.train(path, **options)


def inquiry(model: Any, body: bytes) -> Any:
    return Answers(model).inquiry(body, Bodies(model, 10))


def asked(model: Any, request: dict[str, Any]) -> Any:
    read, rows = inquiry(model, json.dumps(request).encode())
    return json.loads(Answers(model, "mine").inferred(read, model.margins(rows.chunk)))


def tensor(name: str, datatype: str, data: list[Any], shape: list[int] | None = None) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape or [len(data)], "data": data}


def test_columns(tmp_path: Path) -> None:
    model = trained(tmp_path, TABLE, "csv", ignore="rows")
    inputs = [
        tensor("size", "FP32", [1.5, None, -3]),
        tensor("colour", "BYTES", [["red"], ["blue"], [None]], [3, 1]),
    ]
    rows = [{"size": 1.5, "colour": "red"}, {"colour": "blue"}, {"size": -3}]
    chunk = Bodies(model, 10).read(json.dumps(rows).encode(), "application/json", labelled=False).chunk
    outputs = [{"name": "label"}, {"name": "probability"}, {"name": "margin"}]
    found = asked(model, {"id": "7", "inputs": inputs, "outputs": outputs})
    assert (found["model_name"], found["id"]) == ("mine", "7")
    for name, kind, one in zip(
        ("label", "probability", "margin"), ("BYTES", "FP64", "FP64"), found["outputs"], strict=True
    ):
        assert one == tensor(name, kind, model.predict(chunk, name).tolist())
    (usual,) = asked(model, {"inputs": inputs})["outputs"]
    assert usual["name"] == "probability"
    (one,) = asked(model, {"inputs": [tensor("rows", "BYTES", ['{"size": 1.5, "colour": "red"}'])]})[
        "outputs"
    ]
    assert one["data"] == usual["data"][:1]


def test_lines(tmp_path: Path) -> None:
    model = trained(tmp_path, TEXT, "vw")
    lines = ["|a size:2 red", "|a blue", "|"]
    chunk = Bodies(model, 10).read("\n".join(lines).encode(), "", labelled=False).chunk
    request = {"inputs": [tensor("rows", "BYTES", lines)], "outputs": [{"name": "label"}]}
    assert asked(model, request)["outputs"] == [
        tensor("label", "INT64", [int(one) for one in model.predict(chunk, "label")])
    ]
    assert msgspec.to_builtins(Answers(model, "mine").described())["inputs"] == [
        {"name": "rows", "datatype": "BYTES", "shape": [-1]}
    ]


def test_a_column_called_rows(tmp_path: Path) -> None:
    model = trained(tmp_path, TABLE, "csv")
    (found,) = asked(model, {"inputs": [tensor("rows", "BYTES", ["a"])]})["outputs"]
    chunk = Bodies(model, 10).read(b'{"rows": "a"}', "application/json", labelled=False).chunk
    assert found["data"] == model.predict(chunk, "probability").tolist()


@pytest.mark.parametrize(
    ("outputs", "labels", "label"),
    [("classes", "123", ("INT64", [-1])), ("labels:3", ["1", "2,3", ""], ("BOOL", [-1, 3]))],
)
def test_several_outputs(tmp_path: Path, outputs: str, labels: Any, label: Any) -> None:
    text = "".join(f"{labels[k % 3]} {k % 3 + 1}:1\n" for k in range(30))
    model = trained(tmp_path, text, "svm", outputs=outputs)
    wanted = {"outputs": [{"name": "label"}, {"name": "probability"}]}
    found = asked(model, {"inputs": [tensor("rows", "BYTES", ["1:1", "2:1"])], **wanted})["outputs"]
    chunk = Bodies(model, 10).read(b"1:1\n2:1\n", "", labelled=False).chunk
    probabilities = model.predict(chunk, "probability")
    assert found[1] == tensor("probability", "FP64", probabilities.ravel().tolist(), [2, 3])
    assert found[0]["datatype"] == label[0]
    described = {
        one["name"]: one for one in msgspec.to_builtins(Answers(model, "mine").described())["outputs"]
    }
    assert described["label"] == {"name": "label", "datatype": label[0], "shape": label[1]}
    assert described["probability"]["shape"] == [-1, 3]


def test_described(tmp_path: Path) -> None:
    model = trained(tmp_path, TABLE, "csv", ignore="rows")
    assert msgspec.to_builtins(Answers(model, "mine").described()) == {
        "name": "mine",
        "platform": "thresher",
        "inputs": [
            {"name": "size", "datatype": "FP64", "shape": [-1]},
            {"name": "colour", "datatype": "BYTES", "shape": [-1]},
        ],
        "outputs": [
            {"name": "probability", "datatype": "FP64", "shape": [-1]},
            {"name": "label", "datatype": "BYTES", "shape": [-1]},
            {"name": "margin", "datatype": "FP64", "shape": [-1]},
        ],
    }


SIZE = tensor("size", "FP64", [1, 2])


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"inputs": []}, "the same number of rows"),
        ({}, "not a request for inference: Object missing required field `inputs`"),
        ({"inputs": [SIZE, SIZE]}, "tensors of different names"),
        ({"inputs": [SIZE, tensor("colour", "BYTES", ["red"])]}, "the same number of rows"),
        ({"inputs": [tensor("size", "FP64", [1, 2], [1, 2])]}, r"'size' has the shape \[1, 2\]"),
        ({"inputs": [tensor("size", "FP64", [1, 2], [3])]}, "'size' has 2 elements, not 3"),
        ({"inputs": [tensor("size", "FP4", [1])]}, "'size' has the type FP4, not one of BOOL"),
        ({"inputs": [tensor("size", "INT64", [1.5])]}, "'size' has elements that are not of its type"),
        ({"inputs": [tensor("size", "UINT64", [None, -1])]}, "'size' has elements beyond the range of its"),
        ({"inputs": [tensor("size", "INT8", [300])]}, "beyond the range of its type, INT8"),
        ({"inputs": [tensor("size", "INT8", [-129])]}, "beyond the range of its type, INT8"),
        ({"inputs": [tensor("size", "INT64", [2**63])]}, "beyond the range of its type, INT64"),
        ({"inputs": [tensor("size", "FP16", [1, 65505])]}, "beyond the range of its type, FP16"),
        ({"inputs": [tensor("size", "FP32", [-1e39])]}, "beyond the range of its type, FP32"),
        ({"inputs": [tensor("size", "BYTES", ["x"])]}, "row 1: expected a number in column 'size'"),
        ({"inputs": [tensor("rows", "BYTES", ["{}\n{}"])]}, "'rows' must be a line of text"),
        ({"inputs": [tensor("rows", "BYTES", ["[1, 2]"])]}, "row 1|must be a row"),
        ({"inputs": [tensor("rows", "BYTES", ["{}"] * 11)]}, "more than 10 rows"),
        ({"inputs": [SIZE], "outputs": [{"name": "odds"}]}, "output must be probability"),
        ({"inputs": [SIZE], "outputs": [{"name": "explain"}]}, "explanations are no tensors"),
    ],
)
def test_refused(tmp_path: Path, request_: Any, message: str) -> None:
    model = trained(tmp_path, TABLE, "csv", ignore="rows")
    with pytest.raises(RefusedError, match=message) as caught:
        inquiry(model, json.dumps(request_).encode())
    assert caught.value.status in (400, 413)


@pytest.mark.parametrize(
    ("datatype", "data"),
    [("INT8", [-128, 127]), ("UINT64", [0, None]), ("FP16", [-65504, 65504]), ("FP64", [1, 2.5])],
)
def test_all_of_the_range_of_a_type_is_taken(datatype: str, data: list[Any], tmp_path: Path) -> None:
    model = trained(tmp_path, TABLE, "csv")
    assert inquiry(model, json.dumps({"inputs": [tensor("size", datatype, data)]}).encode())[1].good == 2


def test_a_request_that_is_nested_too_deeply(tmp_path: Path) -> None:
    model = trained(tmp_path, TABLE, "csv")
    with pytest.raises(RefusedError, match="this is not a request for inference: it is nested too deeply"):
        inquiry(model, b'{"a": ' + b"[" * 100_000)


def test_a_model_without_columns_takes_lines(tmp_path: Path) -> None:
    model = trained(tmp_path, TEXT, "vw")
    with pytest.raises(RefusedError, match="this model has no columns: give one tensor of lines of text,"):
        inquiry(model, json.dumps({"inputs": [SIZE]}).encode())
    with pytest.raises(RefusedError, match="not a request for inference"):
        inquiry(model, b"\xff")
