"""The model file: loading is the inverse of saving, and damage is detected."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialise

from thresher import Chunk
from thresher.learning.files import model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model.model import Model


def small_model() -> Model:
    model = Model("ftrl:l1=0.01", "logistic")
    model.learn(Chunk.of_rows([(1.0, {3: 1.0, 2**63: 0.5}), (-1.0, {3: 0.25, 9: 2.0})] * 4))
    return model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    model_file.save(small_model(), tmp_path / "model")
    return tmp_path / "model"


def test_saving_twice_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    for _ in range(5):
        model_file.save(small_model(), tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_the_file_is_plain_safetensors_with_a_json_header(path: Path) -> None:
    raw = path.read_bytes()
    tensors = parse(raw)
    assert {"0.weights.keys", "0.weights.values", "0.weights.intercept"} <= set(tensors)
    assert np.all(tensors["0.weights.values"] != 0)
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(json.loads(raw[8 : 8 + length])["__metadata__"]["thresher"])
    (own,) = header["models"]
    assert own["recipe"]["rule"] == "ftrl:alpha=0.5,beta=1.0,l1=0.01,l2=0.0,half_life=inf"
    assert own["nonzero"] == len(tensors["0.weights.keys"])


def test_any_array_is_written_as_it_is_and_none_copied(tmp_path: Path) -> None:
    kinds = (np.bool_, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64)
    tensors: dict[str, Any] = {str(k): np.arange(5 + k).astype(kind) for k, kind in enumerate(kinds)}
    tensors |= {"empty": np.zeros((0, 3)), "two": np.arange(6.0).reshape(2, 3), "turned": np.ones((3, 2)).T}
    model_file.write(tmp_path / "file", {}, tensors)
    found = parse((tmp_path / "file").read_bytes())
    assert found.keys() == {f"0.{name}" for name in tensors}
    for name, array in tensors.items():
        assert found[f"0.{name}"].dtype == array.dtype
        assert np.array_equal(found[f"0.{name}"], array)
    large: dict[str, Any] = {"a": np.ones(1_000_000), "b": np.ones(1_000_000, np.float32)}
    tracemalloc.start()
    try:
        model_file.write(tmp_path / "file", {}, large)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20  # copies would take 24 MB
    finally:
        tracemalloc.stop()


def test_a_changed_byte_is_found(path: Path) -> None:
    """A changed byte may mean the same (a blank in the header), but never other numbers."""
    raw = path.read_bytes()
    header, tensors = model_file.read(path)
    for at in range(0, len(raw), 11):
        damaged = bytearray(raw)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        try:
            other, found = model_file.read(path)
        except ModelFileError:
            continue
        assert other == header
        assert all(np.array_equal(found[name], tensors[name]) for name in tensors)


def test_every_truncation_is_found(path: Path) -> None:
    raw = path.read_bytes()
    for length in range(0, len(raw), 11):
        path.write_bytes(raw[:length])
        with pytest.raises(ModelFileError, match=r"a damaged or truncated model|not a thresher model"):
            model_file.read(path)
    path.write_bytes(raw + b"\0")
    with pytest.raises(ModelFileError):
        model_file.read(path)


def rewritten(path: Path, **changes: Any) -> None:
    header, tensors = model_file.read(path)
    model_file.write(path, {**header, **changes}, tensors)


def test_another_format_is_named(path: Path) -> None:
    whole = path.read_bytes()
    for version, remedy in (("7.0", r"pip install 'thresher>=7\.0'"), ("0.0.1", "train the model again")):
        rewritten(path, format=99, version=version)
        with pytest.raises(ModelFileError, match=rf"format 99, .* thresher {version}; .* format 1: {remedy}"):
            model_file.load_readout(path)
        path.write_bytes(whole)


def test_an_unknown_part_is_named(path: Path) -> None:
    recipe = model_file.read(path)[0]["recipe"]
    rewritten(path, recipe={**recipe, "rule": "homemade:a=1.0"})
    with pytest.raises(ModelFileError, match=r"'homemade'.*import the module that defines it"):
        model_file.load(path)


def test_other_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(serialise({"a": np.zeros(2)}))
    with pytest.raises(ModelFileError, match="not a thresher model"):
        model_file.read(tmp_path / "other")
    with pytest.raises(ModelFileError, match="a directory, not a model"):
        model_file.read(tmp_path)
    with pytest.raises(ModelFileError, match="No such file"):
        model_file.read(tmp_path / "none")


def test_weights_only_cannot_go_on(tmp_path: Path) -> None:
    model = small_model()
    model_file.save(model, tmp_path / "model", state=False)
    readout, _ = model_file.load_readout(tmp_path / "model")
    keys, weights = model.weights()
    assert readout.keys.tolist() == keys.tolist()
    assert readout.weights.tolist() == weights.tolist()
    with pytest.raises(ModelFileError, match="only weights"):
        model_file.load(tmp_path / "model")
