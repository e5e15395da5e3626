"""The record in a model file of how the model was made."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

import thresher as package
from tests.cli.conftest import Thresher
from tests.learning.test_crafted import learned
from thresher.learning.diagnostics.stream_statistics import StreamStatistics
from thresher.learning.files import model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.training.record import Record


def record(path: str) -> Record:
    found = model_file.record_of(model_file.read(path)[0])
    assert found is not None
    return found


def test_lines_are_counted_as_they_are_told(thresher: Thresher) -> None:
    lines = ["1 1:1\n", "\n", "oops\n", "0 2:1 1:1\n", "# nothing\n", "1 3:1\n", "0 3:1 3:1\n"]
    Path("some.svm").write_text("".join(lines))
    thresher("train some.svm -m m -q --on-error skip --passes 3 --order once --holdout every-2nd")
    assert record("m") == Record(
        3, "once", "every-2th", "", lines=7, examples=4, blank=2, skipped=1, merged=2
    )


def test_the_pass_that_was_kept_is_the_one_noted(thresher: Thresher) -> None:
    over = "--rule sgd --loss hinge --rate constant:9 --holdout test.svm --passes 9 --early-stop 2"
    told = thresher(f"train train.svm -m m -q --json {over}").json
    assert 1 < told["passes"] < 9
    assert record("m").passes == told["passes"]


def test_lanes_are_noted_and_taken_out_with_it(thresher: Thresher) -> None:
    assert thresher("path train.svm -m f --rule ft-ftrl --l1 0.1:2:3 --passes 1 -q").status == 0
    for k in range(2):
        assert thresher(f"choose f {k} -m lane{k}").status == 0
    lane = replace(record("lane1"), content=0)
    assert lane == Record(1, "as-is", "every-10th", "", lines=400, examples=400)
    found = package.path("train.svm", "ft-ftrl", l1="0.1:2:3", passes=1)
    assert found.choose("best").record == record("lane0")


def test_lanes_that_stopped_early_are_noted_with_their_own_passes(folder: Path) -> None:
    over: dict[str, object] = {"passes": 9, "holdout_every": 4, "patience": 1}
    found = package.path("train.svm", "ft-ftrl:alpha=20", l1="0.3:3:5", **over)  # type: ignore[arg-type]
    passes = [model.record.passes for model in found.models if model.record]
    assert [300 * number for number in passes] == [model.examples for model in found.models]
    assert len(set(passes)) > 1


def test_learning_on_makes_it_untrue(thresher: Thresher, model: Path) -> None:
    revived, _ = model_file.load(model)
    assert revived.record == record(str(model))
    revived.learn(next(package.open_source("test.svm").chunks()))
    assert revived.record is None
    model_file.save(revived, "on")
    assert model_file.record_of(model_file.read("on")[0]) is None


@pytest.mark.parametrize("name", [one.name for one in fields(Record)])
def test_a_record_that_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    model = learned("ftrl:l1=0.01")
    model.keep_record(Record(), StreamStatistics())
    whole, tensors = model_file.header_of(model), model_file.tensors_of(model)
    for value in (None, -1, 1.5, {"": ""}, [1]):
        whole["record"][name] = value
        model_file.write(tmp_path / "m", whole, tensors)
        with pytest.raises(ModelFileError, match=f"record: {name} must be"):
            model_file.load_readout(tmp_path / "m")
    del whole["record"][name]
    model_file.write(tmp_path / "m", whole, tensors)
    with pytest.raises(ModelFileError, match=f"record: {name} is missing"):
        model_file.load(tmp_path / "m")
