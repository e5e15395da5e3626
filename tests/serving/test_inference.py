"""The Open Inference Protocol: tensors of columns in, tensors of predictions out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import thresher
from thresher.serving.answers import Answers
from thresher.serving.bodies import Bodies
from thresher.serving.errors import RefusedError
from thresher.serving.inference import Inference

TABLE = "label,size,colour,rows\n" + "ham,1,red,a\nspam,-2,blue,b\nham,0.5,red,c\n" * 5
TEXT = "1 |a size:0.5 red\n-1 |a blue\n" * 5


def inference_of(folder: Path, text: str, ending: str, **options: Any) -> tuple[Any, Inference]:
    path = folder / f"train.{ending}"
    path.write_text(text)
    model = thresher.train(path, **options)
    return model, Inference(model, "mine", Bodies(model, 10), Answers(model))


def asked(inference: Inference, model: Any, request: dict[str, Any]) -> Any:
    read, rows = inference.read(json.dumps(request).encode())
    return json.loads(inference.answer(read, model.margins(rows.chunk)))


def tensor(name: str, datatype: str, data: list[Any], shape: list[int] | None = None) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape or [len(data)], "data": data}


def test_columns(tmp_path: Path) -> None:
    model, inference = inference_of(tmp_path, TABLE, "csv", ignore="rows")
    inputs = [
        tensor("size", "FP32", [1.5, None, -3]),
        tensor("colour", "BYTES", [["red"], ["blue"], [None]], [3, 1]),
    ]
    rows = [{"size": 1.5, "colour": "red"}, {"colour": "blue"}, {"size": -3}]
    chunk = Bodies(model, 10).read(json.dumps(rows).encode(), "application/json", labelled=False).chunk
    outputs = [{"name": "label"}, {"name": "probability"}, {"name": "margin"}]
    found = asked(inference, model, {"id": "7", "inputs": inputs, "outputs": outputs})
    assert (found["model_name"], found["id"]) == ("mine", "7")
    for name, kind, one in zip(
        ("label", "probability", "margin"), ("BYTES", "FP64", "FP64"), found["outputs"], strict=True
    ):
        assert one == tensor(name, kind, model.predict(chunk, name).tolist())
    (usual,) = asked(inference, model, {"inputs": inputs})["outputs"]
    assert usual["name"] == "probability"
    (one,) = asked(
        inference, model, {"inputs": [tensor("rows", "BYTES", ['{"size": 1.5, "colour": "red"}'])]}
    )["outputs"]
    assert one["data"] == usual["data"][:1]


def test_lines(tmp_path: Path) -> None:
    model, inference = inference_of(tmp_path, TEXT, "vw")
    lines = ["|a size:2 red", "|a blue", "|"]
    chunk = Bodies(model, 10).read("\n".join(lines).encode(), "", labelled=False).chunk
    request = {"inputs": [tensor("rows", "BYTES", lines)], "outputs": [{"name": "label"}]}
    assert asked(inference, model, request)["outputs"] == [
        tensor("label", "INT64", [int(one) for one in model.predict(chunk, "label")])
    ]
    assert msgspec.to_builtins(inference.described())["inputs"] == [
        {"name": "rows", "datatype": "BYTES", "shape": [-1]}
    ]


def test_a_column_called_rows(tmp_path: Path) -> None:
    model, inference = inference_of(tmp_path, TABLE, "csv")
    (found,) = asked(inference, model, {"inputs": [tensor("rows", "BYTES", ["a"])]})["outputs"]
    chunk = Bodies(model, 10).read(b'{"rows": "a"}', "application/json", labelled=False).chunk
    assert found["data"] == model.predict(chunk, "probability").tolist()


@pytest.mark.parametrize(
    ("outputs", "labels", "label"),
    [("classes", "123", ("INT64", [-1])), ("labels:3", ["1", "2,3", ""], ("BOOL", [-1, 3]))],
)
def test_several_outputs(tmp_path: Path, outputs: str, labels: Any, label: Any) -> None:
    text = "".join(f"{labels[k % 3]} {k % 3 + 1}:1\n" for k in range(30))
    model, inference = inference_of(tmp_path, text, "svm", outputs=outputs)
    wanted = {"outputs": [{"name": "label"}, {"name": "probability"}]}
    found = asked(inference, model, {"inputs": [tensor("rows", "BYTES", ["1:1", "2:1"])], **wanted})[
        "outputs"
    ]
    chunk = Bodies(model, 10).read(b"1:1\n2:1\n", "", labelled=False).chunk
    probabilities = model.predict(chunk, "probability")
    assert found[1] == tensor("probability", "FP64", probabilities.ravel().tolist(), [2, 3])
    assert found[0]["datatype"] == label[0]
    described = {one["name"]: one for one in msgspec.to_builtins(inference.described())["outputs"]}
    assert described["label"] == {"name": "label", "datatype": label[0], "shape": label[1]}
    assert described["probability"]["shape"] == [-1, 3]


def test_described(tmp_path: Path) -> None:
    _, inference = inference_of(tmp_path, TABLE, "csv", ignore="rows")
    assert msgspec.to_builtins(inference.described()) == {
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
        (
            {"inputs": [tensor("size", "UINT64", [None, -1])]},
            "'size' has elements beyond the range of its",
        ),
        (
            {"inputs": [tensor("size", "INT8", [300])]},
            "beyond the range of its type, INT8",
        ),
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
    _, inference = inference_of(tmp_path, TABLE, "csv", ignore="rows")
    with pytest.raises(RefusedError, match=message) as caught:
        inference.read(json.dumps(request_).encode())
    assert caught.value.status in (400, 413)


@pytest.mark.parametrize(
    ("datatype", "data"),
    [("INT8", [-128, 127]), ("UINT64", [0, None]), ("FP16", [-65504, 65504]), ("FP64", [1, 2.5])],
)
def test_all_of_the_range_of_a_type_is_taken(datatype: str, data: list[Any], tmp_path: Path) -> None:
    _, inference = inference_of(tmp_path, TABLE, "csv")
    assert inference.read(json.dumps({"inputs": [tensor("size", datatype, data)]}).encode())[1].good == 2


def test_a_request_that_is_nested_too_deeply(tmp_path: Path) -> None:
    _, inference = inference_of(tmp_path, TABLE, "csv")
    with pytest.raises(RefusedError, match="this is not a request for inference: it is nested too deeply"):
        inference.read(b'{"a": ' + b"[" * 100_000)


def test_a_model_without_columns_takes_lines(tmp_path: Path) -> None:
    _, inference = inference_of(tmp_path, TEXT, "vw")
    with pytest.raises(
        RefusedError, match="this model has no columns: give one tensor of lines of text, 'rows'"
    ):
        inference.read(json.dumps({"inputs": [SIZE]}).encode())
    with pytest.raises(RefusedError, match="not a request for inference"):
        inference.read(b"\xff")
