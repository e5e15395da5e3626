"""``thresher diff``."""

from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from thresher import load


def test_equal_models_and_the_status(thresher: Thresher, model: Path) -> None:
    ran = thresher("diff model model")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[0].split() == ["equal", "yes"]
    told = thresher("diff model model --json").json
    assert (told["equal"], told["moved"], told["options"]) == (True, [], {})
    assert told["same"] == len(load("model").keys)


def test_what_moved(thresher: Thresher, model: Path) -> None:
    assert thresher("train train.svm -m other -q --l1 2 --seed 1").status == 0
    ran = thresher("diff model other --top 3 --json")
    assert ran.status == 1
    told, before, after = ran.json, load("model"), load("other")
    assert told["options"].keys() == {"rule", "seed"}
    assert told["removed"] == len(set(before.keys.tolist()) - set(after.keys.tolist())) > 0
    assert len(told["moved"]) == 3
    first = told["moved"][0]
    assert first["before"] == before.weights[before.keys.tolist().index(first["feature"])]
    people = thresher("diff model other --top 3").out.splitlines()
    assert people[0].split() == ["equal", "no"]
    assert people[-4].split() == ["feature", "before", "after"]
    assert people[-3].split()[0] == str(first["feature"])
    assert any(line.startswith("seed") for line in people)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nowhere model", "nowhere: No such file or directory"),
        ("model train.svm", "train.svm: not a thresher model"),
        ("model many", "model and many cannot be compared: their outputs differ: one and classes:1-2"),
    ],
)
def test_trouble_is_two(arguments: str, said: str, thresher: Thresher, model: Path) -> None:
    Path("many.svm").write_text("1 1:1\n2 2:1\n")
    thresher("train many.svm -m many -q --loss softmax --rule ftrl")
    ran = thresher(f"diff {arguments}")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"thresher: {said}")
    assert ran.err.count("\n") == 1
