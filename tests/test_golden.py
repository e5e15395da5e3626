"""Files that earlier versions wrote are read as they were meant."""

import hashlib
import json
import pickle
import struct
import tarfile
import time
import warnings
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from sklearn.exceptions import InconsistentVersionWarning

import thresher
from thresher.data.log.segments import read_segment, segments_of
from thresher.plans.stability import Selection
from thresher.serving.service import LearningService
from thresher.sklearn import SparseOnlineClassifier

FILES = Path(__file__).parent / "golden"


def test_the_names_in_pickles_of_estimators_exist() -> None:
    for home in ("classifier", "regressor"):
        assert any(
            f"thresher.sklearn.{home}" == getattr(thresher.sklearn, name).__module__
            for name in thresher.sklearn.__all__
            if isinstance(getattr(thresher.sklearn, name), type)
        ), home
    assert SparseOnlineClassifier.__module__ == "thresher.sklearn.classifier"


ARCHIVES = sorted(path.name for path in FILES.glob("*.tar.xz"))
WRITTEN = ("README.md", "SHA256SUMS", "make.py")


def test_files_are_added_and_never_written_anew() -> None:
    there = [path for path in FILES.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    sums = {str(path.relative_to(FILES)): hashlib.sha256(path.read_bytes()).hexdigest() for path in there}
    listed = [line.split("  ") for line in (FILES / "SHA256SUMS").read_text().splitlines()]
    assert {name: sums[name] for name in sums if name not in WRITTEN} == {name: own for own, name in listed}
    assert all(path.stat().st_size < 100_000 for path in there), "each clone of the project has them"


def check_margins(given: Any, data: str, expected: list[list[float]]) -> None:
    """The first rows have the margins that they had, in each model."""
    some = given if isinstance(given, list) else getattr(given, "models", [given])
    for one, own in zip(some, expected, strict=True):
        found = np.asarray(thresher.predict(one, data, output="margin")).ravel()
        assert found[: len(own)].tolist() == pytest.approx(own, rel=1e-4, abs=1e-5)


def check_told(found: Any, expected: Any) -> None:
    """What was told is told; fields may have been added."""
    if isinstance(expected, dict):
        for name, one in expected.items():
            check_told(found[name], one)
    elif isinstance(expected, list):
        for own, one in zip(found, expected, strict=True):
            check_told(own, one)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected)
    else:
        assert found == expected


def check_model(file: str, data: str, margins: Any, continued: Any, told: Any) -> None:
    check_margins(file, data, margins)
    check_margins(thresher.train(data, continue_from=file, passes=1), data, continued)
    check_told(thresher.info(file), told)


def check_weights(file: str, data: str, margins: Any) -> None:
    check_margins(file, data, margins)


def check_many(file: str, data: str, function: str, margins: Any, continued: Any) -> None:
    again = getattr(thresher, function)(data, continue_from=file, passes=1)
    check_margins(again, data, continued)
    check_margins(thresher.load(file), data, margins)


def check_checkpoint(file: str, data: str, function: str, options: dict[str, Any], margins: Any) -> None:
    found = getattr(thresher, function)(data, **options, checkpoint=file, resume=True)
    check_margins(found, data, margins)


def check_selection(file: str, share: list[float], kept: list[bool]) -> None:
    found = Selection.load(file)
    assert (found.share.tolist(), found.kept.tolist()) == (share, kept)


def check_log(file: str, model: str, rows: int, data: str, margins: Any) -> None:
    """It is data, a server goes on with it, and the model beside it is the one that has learned it."""
    check_margins(thresher.train(file, continue_from=model), data, margins)
    check_margins(f"{file}/model", data, margins)
    with closing(LearningService(Path(model), Path(file))) as service:
        service.start()
        while not (status := service.status()).ready:
            time.sleep(0.005)
        assert status.sequence == rows


def check_pickle(file: str, data: str, margins: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # the one of scikit-learn may differ
        model = pickle.loads(Path(file).read_bytes())
    found = model.predict(np.loadtxt(data))[: len(margins)]
    assert np.asarray(found, float).tolist() == pytest.approx(margins, rel=1e-4, abs=1e-5)


CHECKS: dict[str, Callable[..., None]] = {
    "model": check_model,
    "weights": check_weights,
    "many": check_many,
    "checkpoint": check_checkpoint,
    "selection": check_selection,
    "log": check_log,
    "pickle": check_pickle,
}


def unpack(archive: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(FILES / archive) as packed:
        packed.extractall(place, filter="data")
    monkeypatch.chdir(place)


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.usefixtures("plainly")
@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_archives_mean_what_they_did(archive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(archive, tmp_path, monkeypatch)
    for one in json.loads(Path("expected.json").read_text()):
        kind, file = one.pop("kind"), one["file"]
        try:
            CHECKS[kind](**one)
        except Exception as error:
            raise AssertionError(f"{file} of {archive}") from error


def written(file: str, place: tuple[str | int, ...], changes: dict[str, Any]) -> None:
    """Change an object in the header of a file of models, or of the log of a server."""
    path = Path(file)
    raw = path.read_bytes()
    if path.suffix == ".log":
        header = json.loads(raw[20 : read_segment(path).header - 8])
    else:
        end = 8 + int.from_bytes(raw[:8], "little")
        tensors = json.loads(raw[8:end])
        header = json.loads(tensors["__metadata__"]["thresher"])
    inner = header
    for name in place:
        inner = inner[name]
    inner |= changes
    header["version"] = "12.3"
    if path.suffix == ".log":
        text = json.dumps(header).encode()
        whole = b"thresher log 1\n\0" + struct.pack("<I", len(text)) + text
        path.write_bytes(whole + struct.pack("<Q", xxhash.xxh64_intdigest(whole)))
        return
    del header["crc32"]["header"]
    header["crc32"]["header"] = zlib.crc32(json.dumps(header, sort_keys=True).encode())
    tensors["__metadata__"]["thresher"] = json.dumps(header, sort_keys=True)
    head = json.dumps(tensors).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(len(head).to_bytes(8, "little") + head + raw[end:])


def resume(name: str) -> Callable[[str], Any]:
    return lambda file: getattr(thresher, name)(
        "rows.svm", passes=2, rule="ftrl", checkpoint=file, resume=True, **MORE.get(name, {})
    )


MORE: dict[str, dict[str, Any]] = {"path": {"l1": [0.1, 1.0]}, "ensemble": {"models": 2}}
LATER: list[tuple[str, tuple[str | int, ...], Callable[[str], Any]]] = [
    ("names.model", (), thresher.load),
    ("names.model", ("models", 0), thresher.load),
    ("names.model", ("models", 0, "recipe"), thresher.load),
    ("names.model", ("models", 0, "recipe", "layout"), thresher.load),
    ("names.model", ("models", 0, "record"), thresher.Model.load),
    ("boost.model", ("models", 0, "recipe"), thresher.load),
    ("path.checkpoint", ("run", "lanes"), resume("path")),
    ("path.checkpoint", ("run", "training"), resume("path")),
    ("ensemble.checkpoint", ("run", "lanes"), resume("ensemble")),
    ("path.model", ("run", "frontier"), thresher.info),
    ("path.model", ("shared",), thresher.load),
    ("ensemble.model", ("run", "ensemble"), thresher.load),
    ("selection.model", ("run", "selection"), thresher.load),
    ("log/00000000000000000000.log", (), lambda file: segments_of(Path(file).parent)),
]


@pytest.mark.usefixtures("plainly")
def test_what_a_later_version_added_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(ARCHIVES[0], tmp_path, monkeypatch)
    for file, place, read in LATER:
        whole = Path(file).read_bytes()
        written(file, place, {"colour": "red"})
        with pytest.raises(ValueError, match=r"colour.*; thresher 12\.3 wrote it, .* pip install"):
            read(file)
        Path(file).write_bytes(whole)
        if Path(file).suffix != ".log":
            written(file, (), {"format": 7})
            with pytest.raises(ValueError, match=r"format 7, .* thresher 12\.3; .*: pip install"):
                read(file)
        Path(file).write_bytes(whole)
    Path(file).write_bytes(whole.replace(b"log 1", b"log 7"))
    with pytest.raises(ValueError, match=r"format 7; .* reads format 1: install the version that wrote it"):
        read(file)
