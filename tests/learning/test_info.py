"""`thresher.info` of models in memory and in files."""

from pathlib import Path

import pytest

import thresher


@pytest.mark.usefixtures("plainly")
def test_it_takes_models_and_files(tmp_path: Path) -> None:
    rows, labels = [{"size": 3.0}, {"size": -2.0}] * 20, [1, -1] * 20
    model = thresher.train(rows, labels, rule="ftrl", l1=0.5)
    model.save(tmp_path / "m")
    told, of_file = thresher.info(model), thresher.info(tmp_path / "m")
    assert of_file["model"] == str(tmp_path / "m")
    assert told == {**of_file, "model": None}
    assert told["examples"] == 40
    assert "examples learned       40\n" in repr(told)


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="expected a model, not int"):
        thresher.info(7)  # type: ignore[arg-type]
    with pytest.raises(thresher.ModelFileError, match="nowhere"):
        thresher.info(tmp_path / "nowhere")
