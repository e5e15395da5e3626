"""Messages name options as on the command line or as in Python."""

import re
import warnings
from inspect import signature
from pathlib import Path

import pytest

import thresher
from thresher.data import DataError, wording
from thresher.options.training import TrainOptions

SAID = {
    "use --passes 3, or --early-stop 1 to keep it": "use passes=3, or early_stop=1 to keep it",
    "(for others: --classes A,B; or --loss squared)": '(for others: classes="A,B"; or loss="squared")',
    "take --rule ft-ftrl or normalized, which": 'take rule="ft-ftrl" or normalized, which',
    "try --format csv --no-header --label N": 'try format="csv", header=False, label="N"',
    "shuffle by --order once, or --order buffer:N": 'shuffle by order="once", or order="buffer:N"',
    "(--delimiter ';')": '(delimiter=";")',
    "as label (--label a,b,...)": 'as label (label="a,b,...")',
    "'x' is listed in both --categorical and --ignore": "'x' is listed in both categorical and ignore",
    "none left out by --where day < 3 or n > 2": "none left out by where day < 3 or n > 2",
    "a lower --admit (currently 3)": "a lower admit (currently 3)",
    "--interact: no column": "interact: no column",
    "continue with --resume": "continue with resume=True",
    "with --average; leave --average and --l1 out": "with average=True; leave average and l1 out",
    "a--label, ---label": "a--label, ---label",
}


@pytest.mark.parametrize("message", SAID)
def test_options_are_keywords_in_python(message: str) -> None:
    assert wording.as_shown(message) == SAID[message]
    with wording.on_the_command_line():
        assert wording.as_shown(message) == message


def test_what_is_translated_are_keywords() -> None:
    known = {
        *TrainOptions.__annotations__,
        *signature(thresher.train).parameters,
        "folds",
        "rounds",
        "tolerance",
    }
    assert known >= wording.OPTIONS


def test_messages_of_the_package_name_keywords() -> None:
    """No option with another name in Python remains in them."""
    for path in Path(thresher.__file__).parent.rglob("*.py"):
        if path.parts[-2] == "cli" or path.name == "wording.py":
            continue
        for line in path.read_text().splitlines():
            for text in re.findall(r'f?"((?:[^"\\]|\\.)*--[a-z](?:[^"\\]|\\.)*)"', line):
                left = re.findall(r"(?<!`)--([a-z-]+)", wording.in_python(text))
                assert not {one.replace("-", "_").removeprefix("no_") for one in left} & wording.OPTIONS, text


def test_errors_and_warnings_speak_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=re.escape('name the label column (label="COL")')):
        thresher.train(tmp_path / "a.csv")


def test_a_warning_points_at_the_line_of_the_user() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wording.warn_user("take --rule sgd", UserWarning)
    assert str(caught[0].message) == 'take rule="sgd"'
    assert caught[0].filename == __file__
