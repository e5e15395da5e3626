"""Malicious models and checkpoints: every command prints one line."""

from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from tests.learning.test_crafted import learned
from tests.learning.test_crafted_headers import nested
from tests.plain import not_compiled
from thresher.cli.errors import FAILED
from thresher.learning.files import model_file

COMMANDS = (
    "predict m test.svm",
    "evaluate m test.svm",
    "weights m",
    "info m",
    "name m train.svm",
    "train train.svm -m m --resume",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_one_line(command: str, folder: Path, thresher: Thresher) -> None:
    with not_compiled():
        model = learned("ftrl:l1=0.01")
    head, tensors = model_file.header_of(model), model_file.tensors_of(model)
    short = {name: array[:0] for name, array in tensors.items()}
    for crafted, arrays in (
        ({**head, "recipe": {**head["recipe"], "loss": 7}}, tensors),
        (head, short),
        ({**head, "training": {}}, {}),
    ):
        for name in ("m", "m.checkpoint"):
            model_file.write(folder / name, crafted, arrays)
        ran = thresher(*command.split())
        assert ran.status == FAILED
        assert len(ran.err.splitlines()) == 1
        assert ran.err.startswith("thresher: m")
    for name in ("m", "m.checkpoint"):
        nested(folder / name, 10**5)
    if "--resume" in command:
        (folder / "m").unlink()  # or it would be refused as a file that is not a model
    assert "the header is nested too deeply" in thresher(*command.split()).err
