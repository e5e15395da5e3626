"""``--rule auto``: the result is the model of the chosen rule."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import thresher as package
from tests.cli.conftest import Ran, Thresher
from tests.stopping import checkpoints_kept, once_learned, stopping
from thresher.learning.files import model_file
from thresher.learning.model.recipe import Recipe
from thresher.plans import race as auto

DEFAULT = Recipe().rule
BY_ITSELF = ("seconds", "examples_per_second", "rule", "model")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The race is decided within 400 rows, for the lane with the lowest loss."""
    monkeypatch.setattr(auto, "FIRST", 64)
    monkeypatch.setattr(auto, "UNTIL", 300)
    for name in ("BETTER", "SURE"):
        monkeypatch.setattr(auto, name, 0.0)
    monkeypatch.setattr(auto, "WEAK", 9.0)


@pytest.fixture
def narrow(narrow: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The race is decided within half as many rows, too."""
    monkeypatch.setattr(auto, "FIRST", 32)
    monkeypatch.setattr(auto, "UNTIL", 150)


def compared(thresher: Thresher, options: str, data: str = "train.svm") -> str:
    """The chosen rule; training it alone gives the same bytes and figures."""
    ran = thresher.ok(f"train {data} -m a --rule auto --json --curve a.tsv -q {options}")
    rule = str(ran.json["rule"])
    words = re.sub("--(l1|alpha) [0-9]", "", options)
    alone = thresher.ok(f"train {data} -m b --rule {rule} --json --curve b.tsv -q {words}")
    assert Path("a").read_bytes() == Path("b").read_bytes()
    assert {k: v for k, v in ran.json.items() if k not in BY_ITSELF} == {
        k: v for k, v in alone.json.items() if k not in BY_ITSELF
    }
    return rule


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "options",
    [
        *("", "--passes 3 --order every --holdout test.svm"),
        *("--passes 4 --holdout test.svm --early-stop 1", "--l1 2 --alpha 5"),
    ],
)
def test_the_model_is_that_of_the_rule(options: str, thresher: Thresher) -> None:
    assert compared(thresher, options) != DEFAULT


@pytest.mark.usefixtures("eager", "narrow")
@pytest.mark.parametrize("options", ["--batch 7 --admit 2,bits=12 --store hashed:10 --loss squared-hinge"])
def test_whatever_it_learns_with(options: str, thresher: Thresher) -> None:
    assert compared(thresher, options) != DEFAULT


def test_without_reason_it_is_the_default(thresher: Thresher) -> None:
    """Few rows, or no good ones."""
    Path("five.svm").write_text("".join(Path("train.svm").read_text().splitlines(keepends=True)[:5]))
    assert compared(thresher, "", "five.svm") == DEFAULT
    Path("one.svm").write_text("1 3:1\n" * 300)
    compared(thresher, "", "one.svm")
    Path("bad.svm").write_text("nonsense\n" * 3)
    given = thresher("train bad.svm -m a --on-error skip -q")
    ran = thresher("train bad.svm -m a --rule auto --on-error skip -q")
    assert (ran.status, ran.err) == (given.status, given.err)


def test_another_needs_to_be_clearly_better(thresher: Thresher) -> None:
    """On these rows the best lane has lost 10 % less, four errors: with 256 rows it is chosen."""
    rule = compared(thresher, "")
    assert rule != DEFAULT
    Path("short.svm").write_text("".join(Path("train.svm").read_text().splitlines(keepends=True)[:250]))
    assert compared(thresher, "", "short.svm") == DEFAULT


@pytest.mark.usefixtures("eager")
def test_the_table_goes_on_across_the_choice(thresher: Thresher) -> None:
    """Each line shows the loss since the line before, of the model to which it belongs."""
    rows = table(thresher("train train.svm -m a --rule auto --report-every 40 --curve c -q"))
    before = rows[:7]
    default = table(thresher("train train.svm -m b --report-every 40 --curve c -q"))
    assert [row[:3] for row in before] == [row[:3] for row in default[:7]]
    rule = model_file.read("a")[0]["recipe"]["rule"]
    chosen = table(thresher(f"train train.svm -m b --rule {rule} --report-every 40 --curve c -q"))
    assert np.allclose([row[:3] for row in rows[8:]], [row[:3] for row in chosen[8:]], rtol=1e-8)
    assert rows[7][0] == 320
    assert rows[7][2] == chosen[7][2]
    mixed = sorted([default[7][1], chosen[7][1]])
    assert mixed[0] - 0.05 < rows[7][1] < mixed[1] + 0.05  # 20 of its rows by each of the two models


def table(ran: Ran) -> list[list[float]]:
    assert ran.status == 0, ran.err
    return [[float(cell) for cell in line.split()] for line in Path("c").read_text().splitlines()[1:]]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("options", ["", "--batch 7", "--holdout test.svm --early-stop 1"])
def test_stopping_changes_nothing(options: str, thresher: Thresher, request: pytest.FixtureRequest) -> None:
    """Checkpoints of the race, and of its winner, which is not the default."""
    every = 70
    if "--batch" in options:
        request.getfixturevalue("narrow")
        every = 35
    command = f"train train.svm -m a --rule auto --passes 2 --checkpoint-every {every} -q --json {options}"
    with checkpoints_kept() as kept:
        whole = thresher.ok(command)
    content = Path("a").read_bytes()
    for number in (1, 3, 4, 5, 8):
        Path("a").unlink()
        Path("a.checkpoint").write_bytes(kept[number - 1])
        racing = model_file.LANES in model_file.Contents.of("a.checkpoint").run
        assert racing == (number <= 4), number
        ran = thresher.ok(f"{command} --resume")
        assert Path("a").read_bytes() == content, number
        assert ran.json["rule"] == whole.json["rule"] != DEFAULT
        assert not Path("a.checkpoint").exists()


@pytest.mark.parametrize(
    ("kept", "options", "words"),
    [
        ("--rule auto", "--rule ftrl", "its models race: resume with --rule auto"),
        ("--rule auto", "", "its models race: resume with --rule auto"),
        ("--rule auto", "--rule auto --l1 2", "leave --l1 out"),
        ("--rule auto", "--rule auto --loss hinge", "leave --loss out"),
        ("--rule ftrl", "--rule auto", "leave --rule out"),
        ("--rule ft-ftrl:l1=7", "--rule auto", "leave --rule out"),
    ],
    ids=["another", "default", "more given", "another loss", "as another", "as the default"],
)
def test_resuming_otherwise(kept: str, options: str, words: str, thresher: Thresher) -> None:
    with stopping(once_learned(100)):
        assert thresher(f"train train.svm -m a --passes 1 -q {kept}").status == 130
    ran = thresher(f"train train.svm -m a --resume --passes 1 -q {options}")
    assert ran.status != 0
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--rule auto --rate constant", "ft-ftrl has no parameter rate"),
        ("--rule auto --init m", "give a rule other than auto"),
        ("--rule auto:l1=3", "rule 'auto' is for thresher train only, and takes no parameters"),
    ],
)
def test_wrong_usage(options: str, words: str, thresher: Thresher, model: Path) -> None:
    thresher.fails(f"train train.svm -m a {options.replace('--init m', f'--init {model}')}", 2, words)
    assert not Path("a").exists()


@pytest.mark.parametrize(
    "command", ["path train.svm -m f --rule auto", "cv train.svm --rule auto", "rules auto"]
)
def test_it_is_for_train_only(command: str, thresher: Thresher) -> None:
    thresher.fails(command, 2, "is for thresher train only")


@pytest.mark.usefixtures("eager")
def test_in_python(thresher: Thresher) -> None:
    rule = thresher("train train.svm -m a --rule auto --passes 2 -q --json").json["rule"]
    model = package.train("train.svm", "auto", passes=2)
    assert model.recipe.rule == rule
    package.save(model, "b")
    assert Path("a").read_bytes() == Path("b").read_bytes()
    with pytest.raises(ValueError, match="give a rule other than auto"):
        package.train("train.svm", "auto", init="a")
    assert json.loads(json.dumps(model.recipe.as_dict()))["rule"] == rule


@pytest.mark.usefixtures("eager", "narrow")
def test_what_is_given_stays_and_what_goes_on_is_told(thresher: Thresher) -> None:
    ran = thresher("train train.svm -m a --rule auto --l1 8 --json")
    assert ",l1=8.0," in ran.json["rule"]
    assert re.search(rf"after \d+ examples: continuing with {ran.json['rule']}", ran.err)
    assert ran.json["rule"] != str(DEFAULT).replace("l1=1.0", "l1=8.0")
    both = thresher("train train.svm -m b --rule auto --l1 8 --alpha 2 --json -q")
    assert both.json["rule"].startswith("ft-ftrl:alpha=2.0,l1=8.0,")
    assert both.err.startswith("warning: no feature has a weight")
