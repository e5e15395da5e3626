"""``thresher warm``: what was compiled ahead is not compiled again."""

from pathlib import Path

import pytest

from tests.cli.conftest import Thresher
from tests.commands import SAMPLE, run

NOTING = """
from thresher.cli.main import run
from thresher.engine.compile import codecache

def noting(function):
    def noted(path, *others):
        with open("looked-up", "a") as file:
            file.write(path.name + "\\n")
        return function(path, *others)
    return noted

codecache.read_code = noting(codecache.read_code)
codecache.write_code = noting(codecache.write_code)
run()
"""


def looked_up(command: str, folder: Path) -> set[str]:
    """The files of compiled code that a command needs; those of other tests are reused."""
    status, _, err = run(*command.split(), folder=folder, code=NOTING)
    assert status == 0, err
    noted = folder / "looked-up"
    found = set(noted.read_text().split())
    noted.unlink()
    return found


def test_all_that_learning_and_predicting_need_is_compiled(tmp_path: Path) -> None:
    warm = looked_up("warm --rules sgd,ftrl", tmp_path)
    train = f"train {SAMPLE} -m a.model -q --no-cache"
    for command in (
        f"{train} --rule ftrl --holdout every-5th",
        f"predict a.model {SAMPLE}",
        f"evaluate a.model {SAMPLE}",
    ):
        needed = looked_up(command, tmp_path)
        assert any("kernels" in name for name in needed)
        assert needed <= warm, command


def test_all_that_reads_a_format_is_compiled(tmp_path: Path) -> None:
    texts = {
        "wide.csv": ",".join(["label", *map(str, range(80))]) + "\n1" + ",7" * 80 + "\n",
        "odd.vw": "1 2.5 'tag |a:3 b:1e2 c:text\n-1 | 5 5 7:1.5\n",
    }
    warm = looked_up("warm --formats csv,vw", tmp_path)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        needed = looked_up(f"train {name} -m a.model -q --no-cache", tmp_path)
        assert any("_rows" in one for one in needed)
        assert needed <= warm, name


def test_it_says_what_it_compiles(thresher: Thresher) -> None:
    ran = thresher.ok("warm --rules sgd,ftrl")
    assert [line.rsplit(":")[0] for line in ran.out.splitlines()] == [
        *("reading svmlight", "sgd with logistic loss", "ftrl with logistic loss")
    ]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("--rules sgdd", "no rule is called 'sgdd'; did you mean sgd?"),
        ("--formats svmlite", "no format is called 'svmlite'; known: all, svmlight, "),
        ("--losses softmax", "it needs outputs classes:LO-HI"),
        ("--losses all --outputs some", "no loss supports the outputs some"),
    ],
)
def test_wrong_names_are_said_before_anything_is_done(thresher: Thresher, arguments: str, hint: str) -> None:
    ran = thresher.fails(f"warm {arguments}", 2, hint)
    assert ran.out == ""
