"""Messages of ``thresher path`` and about its file."""

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from tests.models import one_of
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
    chosen = model_file.read("f")[0]["recipe"]
    assert recipe == chosen
    if examples is None:  # as many passes as the best model needed
        assert Path("MODEL").read_bytes() == one_of("f", found["chosen"])
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


def test_the_table_of_a_file(thresher: Thresher) -> None:
    table = thresher(FRONTIER).out.splitlines()[:6]
    assert thresher("info f").out.splitlines()[:6] == table
    told = thresher("info f --json").json
    assert (told["kind"], told["choice"], len(told["lanes"])) == ("frontier", "best", 5)
    ran = thresher("path train.svm")
    assert (ran.status, ran.out) == (2, "")
    assert "missing option --model" in ran.err


def test_where_one_model_is_needed_it_is_the_chosen_one(thresher: Thresher) -> None:
    """Others are chosen by `--choose`, and for an ensemble by number."""
    assert thresher(f"{FRONTIER} -q --choose within:20%").status == 0
    chosen = thresher("info f --json").json["chosen"]
    for k in range(5):
        assert thresher(f"choose f {k} -m m{k}").status == 0
    for command in ("weights {}", "evaluate {} test.svm", "predict {} test.svm", "export {} --to json"):
        assert thresher(command.format("f")).out == thresher(command.format(f"m{chosen}")).out
    for which, number in (("best", None), ("within:9999%", 4), ("3", 3), ("0", 0)):
        own = thresher(f"predict f test.svm --choose {which}").out
        if number is not None:
            assert own == thresher(f"predict m{number} test.svm").out
    assert thresher("predict f test.svm --choose 7").err == (
        "thresher: f has no model 7: its models are 0 to 4\n"
    )
    assert "no model has at most 0 weights" in thresher("predict f test.svm --choose nnz:0").err
    assert "a choice must be" in thresher("predict f test.svm --choose most").err
    assert (
        "it holds one model, so there is nothing to choose"
        in thresher("predict m1 test.svm --choose best").err
    )
