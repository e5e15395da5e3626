"""`--continue`: training that goes on with other data."""

from pathlib import Path

import pytest

from tests.cli.conftest import NARROW, Thresher
from tests.stopping import stopping
from thresher import load
from thresher.learning.files import model_file

pytestmark = pytest.mark.usefixtures("narrow")

FIRST = "label,size,city\n" + "".join(
    f"{'yes' if k % 3 else 'no'},{k % 7},{'uk'[k % 2]}\n" for k in range(60)
)


@pytest.fixture(autouse=True)
def days(narrow: None) -> None:
    Path("a.svm").write_bytes(b"".join(NARROW[:120]))
    Path("b.svm").write_bytes(b"".join(NARROW[120:200]))
    Path("ab.svm").write_bytes(b"".join(NARROW[:200]))
    Path("a.csv").write_text(FIRST)
    Path("new-column.csv").write_text(
        "label,size,city,plan\n"
        + "".join(f"{'no' if k % 2 else 'yes'},{k % 5},u,{'xy'[k % 2]}\n" for k in range(80))
    )
    Path("new-class.csv").write_text("label,size,city\nyes,3,u\nmaybe,4,u\nno,1,k\n")


def tensors(path: str) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model_file.read(path)[1].items()}


def test_the_model_is_that_of_one_stream(thresher: Thresher) -> None:
    for options in ("--passes 1", "--passes 1 --rule fobos --batch 7 --holdout 0.2 --names"):
        run = "--passes 1" + " --holdout 0.2 --names" * ("--holdout" in options)
        assert thresher(f"train ab.svm -m ab {options} -q").status == 0
        assert thresher(f"train a.svm -m a {options} -q").status == 0
        ran = thresher(f"train b.svm -m b --continue a {run} -q --json")
        assert ran.status == 0, ran.err
        assert ran.json["examples"] == len(NARROW[:200]) or "holdout" in run
        assert tensors("b") == tensors("ab")
        assert model_file.read("b")[0]["recipe"] == model_file.read("ab")[0]["recipe"]


def test_a_file_may_be_replaced_by_what_it_becomes(thresher: Thresher) -> None:
    thresher("train a.svm -m m --passes 1 -q")
    assert thresher("train b.svm -m m --continue m --passes 1 -q").status == 0
    thresher("train ab.svm -m ab --passes 1 -q")
    assert tensors("m") == tensors("ab")


def test_info_says_how_often_a_model_was_continued(thresher: Thresher) -> None:
    thresher("train a.svm -m m --passes 1 -q")
    assert "continued" not in thresher("info m").out
    thresher("train b.svm -m m --continue m --passes 2 -q")
    shown = thresher("info m").out
    assert "continued              1 time\n" in shown
    assert "thresher train DATA -m MODEL --passes 2 --continue OLD" in shown
    thresher("train b.svm -m m --continue m --passes 1 -q")
    found = thresher("info m --json").json
    assert found["record"]["continued"] == 2
    assert found["record"]["examples"] == len(NARROW[:280])
    assert "continued              2 times\n" in thresher("info m").out


def test_a_new_column_is_a_feature_from_now_on(thresher: Thresher) -> None:
    thresher("train a.csv -m a -q")
    ran = thresher("train new-column.csv -m b --continue a -q")
    assert ran.status == 0, ran.err
    layout = load("b").layout
    assert layout is not None
    assert dict(zip(layout.columns, layout.kinds, strict=True))["plan"] == "categorical"
    assert thresher("name b new-column.csv").status == 0
    assert "plan" in thresher("weights b").out
    before = load("a").layout
    assert before is not None
    assert before.columns == ("label", "size", "city")
    ran = thresher("train a.csv -m c --continue b -q")  # which lacks it
    assert ran.status == 0, ran.err
    assert load("c").layout == layout


def test_a_new_class_is_an_error(thresher: Thresher) -> None:
    thresher("train a.csv -m a -q")
    ran = thresher("train new-class.csv -m b --continue a -q")
    assert ran.status == 1
    assert ran.err == (
        "thresher: new-class.csv:3:1: expected one of the classes no, yes as label"
        " (new classes need a new model: train it on all data) in column 'label', found 'maybe'\n"
    )
    assert not Path("b").exists()
    ran = thresher("train new-class.csv -m b --continue a -q --on-error skip --json")
    assert ran.json["skipped"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--rule ftrl", "the model was made with --rule fobos:"),
        ("--l1 3", "leave --l1 out"),
        ("--rate constant:1", "leave --rate out"),
        ("--seed 3", "the model was made with --seed 0; leave --seed out"),
        ("--batch 3", "leave --batch out"),
        ("--bits 20", "the model was trained without --bits; leave --bits out"),
        ("--loss hinge", "leave --loss out"),
        ("--outputs classes:0-1", "leave --outputs out"),
        ("--text 1", "leave --text out"),
        ("--init a", "--init starts a new model, --continue goes on with one: give only one of them"),
        ("--ensemble 3", "a: not the folder of an ensemble"),
        ("--curve a", "a: named twice; it would be overwritten"),
        ("--rule auto", "the model was made with --rule fobos:"),
    ],
)
def test_options_that_contradict_the_model_are_refused(thresher: Thresher, options: str, words: str) -> None:
    thresher("train a.svm -m a --rule fobos -q")
    whole = Path("a").read_bytes()
    ran = thresher(f"train b.svm -m b --continue a -q {options}")
    assert ran.status in (1, 2)
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert Path("a").read_bytes() == whole
    assert not Path("b").exists()


def test_options_that_agree_with_the_model_are_taken(thresher: Thresher) -> None:
    thresher("train a.svm -m a --rule fobos:l1=0.01 --seed 3 --passes 1 -q")
    same = "--rule fobos:l1=0.01 --seed 3 --format svmlight --loss logistic --passes 1"
    assert thresher(f"train b.svm -m b --continue a -q {same}").status == 0
    thresher(f"train ab.svm -m ab -q {same}")
    assert tensors("b") == tensors("ab")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nothing", "nothing: No such file or directory"),
        ("a.svm", "a.svm: not a thresher model"),
        (".", ".: a directory, not a model"),
        ("light", "contains only weights and cannot keep learning: --init starts a new model from these"),
        ("solved", "made by a batch solver: it contains only weights and cannot keep learning"),
        ("many", "many is an ensemble: add --ensemble poisson:2"),
        ("folder", "thresher path folder --choose best -m MODEL extracts one of its models"),
    ],
)
def test_what_cannot_go_on_is_said_in_a_line(thresher: Thresher, given: str, words: str) -> None:
    thresher("train a.svm -m light --weights-only -q")
    thresher("boost a.svm -m solved -q")
    thresher("train a.svm -m many --ensemble 2 -q")
    thresher("path a.svm -m folder --l1 0.1:1:2 -q")
    ran = thresher(f"train b.svm -m b --continue {given} -q")
    assert ran.status in (1, 2)
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert not Path("b").exists()


def test_a_checkpoint_is_resumed_not_continued(thresher: Thresher, interrupted: None) -> None:
    ran = thresher("train b.svm -m b --continue a.checkpoint -q")
    assert ran.status == 1
    assert (
        "a.checkpoint: a checkpoint: finish the training with --resume of the command that wrote it"
        in ran.err
    )


@pytest.fixture
def interrupted(thresher: Thresher) -> None:
    """Training of ``a`` that was stopped, and left a checkpoint."""
    with stopping():
        assert thresher("train a.svm -m a -q").status == 130
    assert Path("a.checkpoint").exists()


def test_a_frontier_goes_on(thresher: Thresher) -> None:
    thresher("path a.svm -m A --l1 0.1:1:3 --passes 1 -q")
    ran = thresher("path b.svm -m B --continue A --passes 1 -q --json")
    assert ran.status == 0, ran.err
    thresher("path ab.svm -m AB --l1 0.1:1:3 --passes 1 -q")
    for k in range(3):
        assert tensors(f"B/lane-00{k}.model") == tensors(f"AB/lane-00{k}.model")
    assert f"--continue A/lane-00{ran.json['chosen']}.model" in ran.json["command"]
    assert "--rule" not in ran.json["command"]
    for options, words in (
        ("--l1 0.2:0.4:2", "the folder has 3 penalties from 0.1 to 1; leave --l1 out"),
        ("--rule fobos", "leave --rule out"),
        ("--seed 1", "leave --seed out"),
    ):
        ran = thresher(f"path b.svm -m C --continue A -q {options}")
        assert ran.status == 2
        assert words in ran.err
    assert "a.svm: not the folder of thresher path" in thresher("path b.svm -m C --continue a.svm -q").err
    assert not Path("C").exists()


def test_the_range_that_was_asked_for_may_be_said_again(thresher: Thresher) -> None:
    thresher("path a.svm -m A --l1 0.1:1:3 --passes 1 -q")
    ran = thresher("path b.svm -m B --continue A --l1 0.1:1:3 --rule ft-ftrl --passes 1 -q --choose nnz:2")
    assert ran.status == 0, ran.err


def test_an_ensemble_goes_on(thresher: Thresher) -> None:
    thresher("train a.svm -m A --ensemble 2 --passes 1 -q")
    assert thresher("train b.svm -m B --ensemble 2 --continue A --passes 1 -q").status == 0
    thresher("train ab.svm -m AB --ensemble 2 --passes 1 -q")
    for k in range(2):
        assert tensors(f"B/model-00{k}.model") == tensors(f"AB/model-00{k}.model")
    ran = thresher("train b.svm -m C --ensemble disjoint:2 --continue A -q")
    assert "the ensemble was made with --ensemble poisson:2" in ran.err
