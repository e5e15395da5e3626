"""`--init`: training that starts from the weights of another model, on data read in the same way."""

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from tests.data.tables import write_jsonl, write_parquet
from tests.stopping import stopping
from thresher import load, train
from thresher.data import DataError
from thresher.data.layout import Layout
from thresher.learning.files import model_file

pytestmark = pytest.mark.usefixtures("narrow")


def test_training_begins_with_the_weights_of_a_model(thresher: Thresher) -> None:
    before = thresher("train train.svm -m before --rule sgd -q --json").json
    alone = thresher("train train.svm -m alone --rule fobos -q --json").json
    ran = thresher.ok("train train.svm -m m --rule fobos -q --json --init before")
    assert ran.json["progressive_loss"] < min(alone["progressive_loss"], before["progressive_loss"])
    assert model_file.read("m")[0]["recipe"] == model_file.read("alone")[0]["recipe"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--init before --resume", "--init starts anew, --resume goes on"),
        ("--init before --rule rda", "rda cannot start from given weights"),
        ("--init before --no-intercept", "have an intercept"),
        ("--init before --outputs values:2 --loss squared", "weights are for outputs one, not values:2"),
        ("--init before --curve before", "before: named twice; it would be overwritten"),
        ("--init before --on-error quarantine=before", "before: named twice; it would be overwritten"),
        ("--init m.checkpoint", "m.checkpoint: named twice; it would be overwritten"),
        ("--init before --text 1", "the model was trained with no columns; leave --text out"),
    ],
)
def test_what_cannot_be_begun_with_is_said_in_a_line(thresher: Thresher, options: str, words: str) -> None:
    thresher("train train.svm -m before --rule sgd -q")
    if "m.checkpoint" in options:
        shutil.copy("before", "m.checkpoint")
    whole = Path("before").read_bytes()
    ran = thresher.fails(f"train train.svm -m m -q {options}", 2, words)
    assert ran.err.count("\n") == 1
    assert Path("before").read_bytes() == whole


def test_what_is_no_file_is_said_at_once(thresher: Thresher) -> None:
    assert (
        thresher("train train.svm -m m -q --init none").err == "thresher: none: No such file or directory\n"
    )
    ran = thresher("train", "train.svm", "-m", "m", "--init", "")
    assert (ran.status, ran.err) == (
        2,
        "thresher: --init: name the file of a model (see thresher train --help)\n",
    )
    os.mkfifo("pipe")
    for command in ("train train.svm -m m --init pipe", "predict pipe test.svm"):
        assert thresher(command).err == "thresher: pipe: a directory, pipe or device, not a model\n"


@pytest.fixture
def shop(thresher: Thresher, folder: Path) -> Path:
    rows = [{"bought": k % 2, "city": ["Ulm", "Kiel", "Bonn"][k % 3], "n": str(k % 7)} for k in range(60)]
    lines = [";".join(map(str, row.values())) for row in rows]
    (folder / "shop.csv").write_text("\n".join([";".join(rows[0]), *lines]) + "\n")
    write_jsonl(rows, folder / "shop.jsonl")
    write_parquet(rows, folder / "shop.parquet")
    read = "--delimiter ; --label bought --categorical n --interact city,n"
    assert thresher(f"train shop.csv -m before --rule sgd -q {read}").status == 0
    return folder


@pytest.mark.parametrize("form", ["", "--format jsonl", "--format parquet", "--label bought"])
def test_data_are_read_as_those_of_the_model_were(thresher: Thresher, shop: Path, form: str) -> None:
    file = f"shop.{form.split()[1]}" if form.startswith("--format") else "shop.csv"
    ran = thresher.ok(f"train {file} -m m --rule sgd -q --json --init before {form}")
    assert ran.json["features_seen"] == 3 + 7 + 21
    found, before = load("m").layout, load("before").layout
    assert (found.interact, found.kinds) == (before.interact, before.kinds)
    assert thresher("predict m shop.csv --format csv --delimiter ;").out.count("\n") == 60


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--bits 20", "the model was trained without --bits; leave --bits out"),
        ("--interact city,city", "the model was trained with --interact city,n; leave --interact out"),
        ("--ignore city", "the model was trained with other columns; leave --ignore out"),
        ("--label n", "the model was trained with other columns; leave --label out"),
    ],
)
def test_what_makes_other_features_is_wrong(thresher: Thresher, shop: Path, option: str, words: str) -> None:
    ran = thresher(f"train shop.csv -m m -q --init before {option}")
    assert (ran.status, ran.err) == (2, f"thresher: {words}\n")


def test_features_of_another_kind_are_refused(thresher: Thresher, shop: Path) -> None:
    """Ids mean the same in svmlight and VW text; hashes of names are not ids."""
    (shop / "a.svm").write_text("1 1:1 2:1\n-1 2:1\n" * 9)
    (shop / "ids.vw").write_text("1 | 1 2\n-1 | 2\n" * 9)
    (shop / "names.vw").write_text("1 |a red |b blue\n-1 |a red\n" * 9)
    files = {"svmlight": "a.svm", "vw": "ids.vw"}
    for form, file in files.items():
        assert thresher(f"train {file} -m {form} --rule sgd -q").status == 0
        for other, data in files.items():
            ran = thresher(f"train {data} --format {other} -m m -q --json --init {form}")
            assert (ran.status, ran.json["features_seen"]) == (0, 2), ran.err
    assert thresher("train names.vw -m names --rule sgd -q").status == 0
    told = "the initial weights were learned from {}, whose features are {}; the features of {} are {}"
    for model, form, words in (
        ("names", "svmlight", ("VW text", "names", "svmlight", "ids")),
        ("before", "svmlight", ("CSV", "columns", "svmlight", "ids")),
    ):
        ran = thresher(f"train a.svm -m m -q --init {model} --format {form}")
        assert (ran.status, ran.err) == (1, f"thresher: {told.format(*words)}\n")
    with pytest.raises(DataError, match="whose features are names"):
        train("a.svm", init="names", layout=Layout("svmlight"))


def test_words_for_weights_of_numbers_are_refused(thresher: Thresher, shop: Path) -> None:
    first, *rows = Path("shop.csv").read_text().splitlines()
    kinds = {"1": "click", "0": "skip"}
    words = "".join(f"{kinds[row[0]]}{row[1:]}\n" for row in rows)
    Path("words.csv").write_text(f"{first}\n{words}")
    told = (
        "from labels that are numbers, and these are words (click, skip): write numbers in place of the words"
    )
    ran = thresher("train words.csv -m m -q --init before")
    assert (ran.status, ran.err) == (1, f"thresher: the initial weights were learned {told}\n")
    with pytest.raises(DataError, match="labels that are numbers, and these are words"):
        train("words.csv", init="before")


def test_what_means_the_same_may_be_said_again(thresher: Thresher, shop: Path) -> None:
    (shop / "few.csv").write_text("label,n\n1,2\n0,3\n1,4\n")
    with stopping():
        assert thresher("train few.csv -m m -q").status == 130
    assert thresher("train few.csv -m m -q --resume --delimiter ,").status == 0


def test_names_are_kept_and_new_features_get_names(
    thresher: Thresher, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "old.csv").write_text("label,town\n" + "1,Ulm\n0,Kiel\n" * 5)
    (folder / "new.csv").write_text("label,town\n" + "1,Bonn\n0,Kiel\n" * 5)
    assert thresher("train old.csv -m before --names --rule ftrl -q").status == 0
    ran = thresher("train new.csv -m m --init before --rule ftrl -q --json")
    assert (ran.status, ran.json["named"], ran.err) == (0, 3, "")
    names = model_file.load("m")[0].names
    assert {*names.values()} == {"town=Ulm", "town=Kiel", "town=Bonn"}
    with open("new.csv") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        ran = thresher("train - --format csv -m s --init before --rule ftrl -q")
    assert (ran.status, ran.err) == (0, "")
    assert thresher("name s new.csv").status == 0
    named = model_file.load("s")[0].names
    assert named is not None
    assert len(named) == 3
