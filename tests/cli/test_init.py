"""`--init`: training that begins with the weights of another model."""

import pytest

from tests.cli.conftest import Thresher
from thresher.learning import modelfile

pytestmark = pytest.mark.usefixtures("plainly")


def test_training_begins_with_the_weights_of_a_model(thresher: Thresher) -> None:
    before = thresher("train train.svm -m before --rule sgd -q --json").json
    alone = thresher("train train.svm -m alone --rule fobos -q --json").json
    ran = thresher("train train.svm -m m --rule fobos -q --json --init before")
    assert ran.status == 0, ran.err
    assert ran.json["progressive_loss"] < min(alone["progressive_loss"], before["progressive_loss"])
    assert modelfile.read("m")[0]["recipe"] == modelfile.read("alone")[0]["recipe"]


def test_what_cannot_be_begun_with_is_said_in_a_line(thresher: Thresher) -> None:
    thresher("train train.svm -m before --rule sgd -q")
    for options, words in (
        ("--init before --resume", "--init begins a training, --resume goes on with one"),
        ("--init before --rule rda", "rda cannot start from given weights"),
        ("--init before --no-intercept", "come with an intercept"),
    ):
        ran = thresher(f"train train.svm -m m -q {options}")
        assert ran.status == 2, options
        assert words in ran.err
        assert ran.err.count("\n") == 1
    ran = thresher("train train.svm -m m -q --init none")
    assert (ran.status, ran.err) == (1, "thresher: none: No such file or directory\n")
