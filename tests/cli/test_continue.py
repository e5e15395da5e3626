"""`--continue`: training that goes on with other data."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import NARROW, Thresher
from tests.stopping import stopping
from thresher import load, path
from thresher.learning.files import model_file
from thresher.learning.files.model_file import Contents
from thresher.options.option import UsageError

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


def tensors(path: str, which: str | None = None) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model_file.read(path, which)[1].items()}


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
    (command,) = [line.split(maxsplit=1)[1] for line in shown.splitlines() if line.startswith("command")]
    thresher("train a.svm -m a --passes 1 -q")
    again = command.replace("DATA", "b.svm").replace("MODEL", "again -q").replace("OLD", "a")
    thresher.ok(again.removeprefix("thresher "))
    assert tensors("again") == tensors("m")
    thresher("train b.svm -m m --continue m --passes 1 -q")
    found = thresher("info m --json").json
    assert found["record"]["continued"] == 2
    assert found["record"]["examples"] == len(NARROW[:280])
    assert "continued              2 times\n" in thresher("info m").out


def test_info_says_the_command_that_meets_the_same_new_classes(thresher: Thresher) -> None:
    thresher.ok("train a.csv -m a -q --outputs classes")
    ran = thresher.ok("train new-class.csv -m b --continue a")
    assert re.search(r" +maybe +\w+ +\d+ +", ran.err)  # in the table of progress
    command = thresher("info b --json").json["command"].replace("DATA", "new-class.csv").replace("OLD", "a")
    thresher.ok(command.replace("MODEL", "again -q").removeprefix("thresher "))
    assert Path("again").read_bytes() == Path("b").read_bytes()


def test_a_new_column_is_a_feature_from_now_on(thresher: Thresher) -> None:
    thresher("train a.csv -m a -q")
    thresher.ok("train new-column.csv -m b --continue a -q")
    layout = load("b").layout
    assert dict(zip(layout.columns, layout.kinds, strict=True))["plan"] == "categorical"
    assert thresher("name b new-column.csv").status == 0
    assert "plan" in thresher("weights b").out
    before = load("a").layout
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
        ("--init a", "--init starts anew, --continue goes on: give only one of them"),
        ("--ensemble 3", "a: not an ensemble; leave --ensemble out"),
        ("--by label", "a: not an ensemble; leave --by out"),
        ("--curve a", "a: named twice; it would be overwritten"),
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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("a.svm", "a.svm: not a thresher model"),
        ("light", "contains only weights and cannot keep learning: --init can start a new model from them"),
        ("solved", "made by a batch solver: it contains only weights and cannot keep learning: --init can"),
        ("front", "thresher path --state keeps what learning needs"),
    ],
)
def test_what_cannot_go_on_is_said_in_a_line(thresher: Thresher, given: str, words: str) -> None:
    thresher("train a.svm -m light --weights-only -q")
    thresher("boost a.svm -m solved -q")
    thresher("path a.svm -m front --l1 0.1:1:2 -q")
    ran = thresher(f"train b.svm -m b --continue {given} -q")
    assert ran.status in (1, 2)
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert not Path("b").exists()


def test_figures_of_the_new_data_are_shown_apart(thresher: Thresher) -> None:
    first = thresher("train a.svm -m a --passes 1 -q --json").json
    assert "new_examples" not in first
    ran = thresher("train b.svm -m b --continue a --json --passes 1")
    new, found = ran.json["new_progressive_loss"], ran.json
    total = first["progressive_loss"] * 120 + new * 80
    assert found["new_examples"] == 80
    assert found["progressive_loss"] == pytest.approx(total / 200)
    rows = [int(line.split()[0]) for line in ran.err.splitlines()[1:]]
    assert rows == [121, 122, 124, 128, 136, 152, 184, 200]


def test_it_goes_on_in_one_pass_if_it_was_made_in_one(thresher: Thresher) -> None:
    thresher("train a.svm -m one --passes 1 -q")
    thresher("train a.svm -m many -q")
    assert thresher("train b.svm -m m --continue one -q --json").json["passes"] == 1
    assert thresher("train b.svm -m m --continue one -q --json --passes auto").json["passes"] > 1
    assert thresher("train b.svm -m m --continue many -q --json").json["passes"] > 1


def test_a_checkpoint_is_of_one_old_model(thresher: Thresher) -> None:
    thresher("train a.svm -m a --passes 1 -q")
    thresher("train a.svm -m ab --passes 1 --l1 0.3 -q")
    thresher("train b.svm -m whole --continue a --passes 1 -q")
    with stopping():
        assert thresher("train b.svm -m b --continue a -q").status == 130
    ran = thresher("train b.svm -m b --continue ab --resume -q")
    assert ran.status == 2
    assert "the checkpoint does not go on from this model" in ran.err
    assert thresher("train b.svm -m b --continue a --resume -q").status == 0
    assert tensors("b") == tensors("whole")


def test_a_checkpoint_is_resumed_not_continued(thresher: Thresher, interrupted: None) -> None:
    ran = thresher("train b.svm -m b --continue a.checkpoint -q")
    assert ran.status == 1
    assert (
        "a.checkpoint: a checkpoint: finish the training with --resume of the command that wrote it"
        in ran.err
    )


@pytest.fixture
def interrupted(thresher: Thresher) -> None:
    with stopping():
        assert thresher("train a.svm -m a -q").status == 130
    assert Path("a.checkpoint").exists()


def test_a_frontier_goes_on(thresher: Thresher) -> None:
    thresher("path a.svm -m A --l1 0.1:1:3 --passes 1 -q --state")
    ran = thresher.ok("path b.svm -m B --continue A --passes 1 -q --json")
    thresher("path ab.svm -m AB --l1 0.1:1:3 --passes 1 -q --state")
    for k in range(3):
        assert tensors("B", str(k)) == tensors("AB", str(k))
    assert thresher("choose B 0 -m B0").status == 0
    assert ran.json["command"].startswith("thresher choose A ")
    nowhere = thresher("path b.svm -m C --continue nosuch -q").err
    assert nowhere == "thresher: nosuch: No such file or directory\n"
    ran = thresher("path b.svm -m C --continue A -q --l1 0.2:0.4:2")
    assert ran.status == 2
    assert "the frontier was made with --l1 0.1:1:3; leave --l1 out" in ran.err
    one = thresher("train b.svm -m C --continue A -q --l1 0.2").err
    assert "the model chosen in A (thresher choose takes others out) was made with --rule" in one
    assert "a.svm: not a thresher model" in thresher("path b.svm -m C --continue a.svm -q").err
    assert "B0: not the models of thresher path" in thresher("path b.svm -m C --continue B0 -q").err
    assert not Path("C").exists()


@pytest.mark.parametrize("again", ["", "nnz:4"])
def test_the_commands_of_a_frontier_that_went_on_make_its_model_and_the_choice_stays(
    thresher: Thresher, again: str
) -> None:
    thresher.ok("path a.svm -m A --l1 0.1:9:4 --holdout none --choose nnz:9 --passes 1 -q --state")
    more = f"--choose {again}" if again else ""
    told = thresher.ok(f"path b.svm -m B --continue A --holdout none --passes 1 -q --json {more}").json
    assert told["choice"] == (again or "nnz:9")
    assert Contents.of("A").chosen() != told["chosen"] or not again
    thresher.ok(f"choose B {told['chosen']} -m chosen")
    info = thresher.ok("info B --json").json["command"].replace("DATA", "b.svm").replace("OLD", "A")
    with pytest.raises(UsageError, match="a frontier that was loaded can only predict"):
        path("b.svm", continue_from=load("A"))
    for command in (told["command"], info):
        for one in command.split(" && "):
            words = shlex.split(one.replace("MODEL", "made"))
            thresher.ok(*words[1:], *(["-q"] if words[1] == "train" else []))
        assert tensors("made") == tensors("chosen")
        Path("made").unlink()
    with stopping():
        assert thresher(f"path b.svm -m C --continue A --holdout none --passes 1 {more}").status == 130
    resumed = thresher.ok("path b.svm -m C --resume --holdout none --json -q").json["command"]
    assert "thresher choose OLD " in resumed, "the checkpoint knows that it went on, but not from which file"
    assert any(name.startswith("state.") for name in tensors("C")), "as with --continue"


def test_the_range_that_was_asked_for_may_be_said_again(thresher: Thresher) -> None:
    thresher("path a.svm -m A --l1 0.1:1:3 --passes 1 -q --state")
    ran = thresher("path b.svm -m B --continue A --l1 0.1:1:3 --rule ft-ftrl --passes 1 -q")
    assert ran.status == 0, ran.err
    assert "--l1" not in ran.err
