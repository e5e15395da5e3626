"""Messages of ``thresher path`` and about its folder."""

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from thresher.lanes import folder
from thresher.learning.files import model_file

FRONTIER = "path train.svm -m f --rule ft-ftrl --l1 0.05:2:5"


@pytest.mark.parametrize(
    ("options", "examples"),
    [
        ("", 400),
        ("--passes 3 --order once --holdout test.svm", 400),
        ("--passes 6 --holdout test.svm --early-stop 1 --alpha 5 --on-error skip", None),
    ],
)
def test_the_command_trains_the_choice_on_all_rows(
    options: str, examples: int | None, thresher: Thresher
) -> None:
    found = thresher(f"{FRONTIER} {options} --state --json").json
    words = shlex.split(found["command"])
    assert words[:3] == ["thresher", "train", "train.svm"]
    assert not {"--holdout", "--early-stop"} & set(words)
    learned = thresher(*words[1:], "--json", "-q").json
    recipe = model_file.read("MODEL")[0]["recipe"]
    chosen = model_file.read(f"f/{folder.file_of(found['chosen'])}")[0]["recipe"]
    assert recipe == chosen
    if examples is None:  # as many passes as the best model needed
        assert Path("MODEL").read_bytes() == Path(f"f/{folder.file_of(found['chosen'])}").read_bytes()
    else:
        assert learned["examples"] == examples * learned["passes"]
        assert "--passes 3" not in options or learned["passes"] == 3


def test_quiet_is_without_the_table(thresher: Thresher) -> None:
    whole, quiet = thresher(FRONTIER).out.splitlines(), thresher(f"{FRONTIER} -q").out.splitlines()
    assert [line.split()[0] for line in quiet] == [line.split()[0] for line in whole[6:]]
    assert quiet[-1].startswith("command ")
    cv = "cv train.svm --rule ft-ftrl --l1 0.05:2:3 --folds 2"
    whole, quiet = thresher(cv).out.splitlines(), thresher(f"{cv} -q").out.splitlines()
    assert [line.split()[0] for line in quiet] == [line.split()[0] for line in whole[4:]]


def test_the_table_of_a_folder(thresher: Thresher) -> None:
    table = thresher(FRONTIER).out.splitlines()[:6]
    assert thresher("path f").out.splitlines() == table
    sparse = thresher("path f --choose within:9999%").out.splitlines()
    assert [line[0] for line in sparse] == [" "] * 5 + ["*"]
    told = thresher("path f --choose within:9999% --json").json
    assert (told["chosen"], told["choice"], len(told["lanes"])) == (4, "within:9999%", 5)
    ran = thresher("path train.svm")
    assert (ran.status, ran.err) == (2, "thresher: missing option --model DIR: the folder to write\n")


@pytest.mark.parametrize("command", ["weights f", "evaluate f test.svm", "predict f test.svm"])
def test_a_folder_is_no_model(command: str, thresher: Thresher) -> None:
    assert thresher(f"{FRONTIER} -q").status == 0
    hint = "a directory, not a model; thresher path f --choose best -m MODEL extracts one of its models"
    assert thresher(command).err == f"thresher: f: {hint}\n"
    Path("f/frontier.json").unlink()
    assert thresher(command).err == "thresher: f: a directory, not a model\n"


def test_help_of_cv(thresher: Thresher) -> None:
    """The command names the default choice once, and no option that cv does not have."""
    out = " ".join(thresher("cv --help").out.split())
    assert out.count("[default: best]") == 1
    assert "--passes" in out
    assert "--resume" not in out
