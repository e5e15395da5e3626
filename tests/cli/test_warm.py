"""``thresher warm``: what was compiled ahead is not compiled again."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Thresher
from tests.commands import SAMPLE, run


def test_nothing_is_compiled_after_it(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    options: Any = {"folder": tmp_path, "THRESHER_CACHE_DIR": str(tmp_path / "cache")}
    status, out, err = run("warm", "--rules", "sgd,ftrl", **options)
    assert status == 0, err
    assert [line.rsplit(":")[0] for line in out.splitlines()] == [
        *("reading svmlight", "sgd with logistic loss", "ftrl with logistic loss")
    ]
    for rule, more in (("sgd", []), ("ftrl", ["--holdout", "every-5th"])):
        told = ["train", SAMPLE, "-m", "a.model", "-q", "--json", "--no-cache", "--rule", rule, *more]
        status, out, err = run(*told, **options)
        assert status == 0, err
        assert "seconds_compiling" not in json.loads(out)
    before = sorted(path.name for path in (tmp_path / "cache" / "code").iterdir())
    for command in ("predict", "evaluate"):
        assert run(command, "a.model", SAMPLE, **options)[0] == 0
    assert sorted(path.name for path in (tmp_path / "cache" / "code").iterdir()) == before


def test_all_that_reads_a_format_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    options: Any = {"folder": tmp_path, "THRESHER_CACHE_DIR": str(tmp_path / "cache")}
    texts = {
        "narrow.csv": "label,a,b\n1,2,x\n-1,3,y\n",
        "wide.csv": ",".join(["label", *map(str, range(80))]) + "\n1" + ",7" * 80 + "\n",
        "usual.vw": "1 |a b:1 c\n-1 |a c\n",
        "odd.vw": "1 2.5 'tag |a:3 b:1e2 c:text\n-1 | 5 5 7:1.5\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    status, _, err = run("warm", "--formats", "csv,vw", **options)
    assert status == 0, err
    for name in texts:
        status, out, err = run("train", name, "-m", "a.model", "-q", "--json", "--no-cache", **options)
        assert status == 0, err
        assert "seconds_compiling" not in json.loads(out), name


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("--rules sgdd", "no rule is called 'sgdd'; known: all, "),
        ("--formats svmlite", "no format is called 'svmlite'; known: all, svmlight, "),
        ("--losses softmax", "it needs outputs classes:LO-HI"),
        ("--losses all --outputs some", "no loss goes with the outputs some"),
    ],
)
def test_wrong_names_are_said_before_anything_is_done(thresher: Thresher, arguments: str, hint: str) -> None:
    ran = thresher(f"warm {arguments}")
    assert ran.status == 2
    assert hint in ran.err
    assert ran.out == ""
