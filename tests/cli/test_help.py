"""``--help``: the options of every day, those of a heading, and all of them."""

import re

import pytest

from tests.cli.conftest import Thresher
from thresher.cli.app import NAMES, command_of
from thresher.cli.parser import EVERY_DAY, HEADINGS, MANY


def flags_in(text: str) -> set[str]:
    """The options that are explained: those at the beginning of a line."""
    return set(re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", text, re.MULTILINE))


def test_an_option_has_one_heading() -> None:
    names = [name for _, under in HEADINGS.values() for name in under.split()]
    assert len(names) == len({*names})
    assert {*EVERY_DAY} <= {*names}


@pytest.mark.parametrize("name", NAMES)
def test_all_has_every_option(name: str, thresher: Thresher) -> None:
    known = command_of(name).known
    shown = {one.flag for one in known.values() if one.name not in ("help",)}
    hidden = {one.opts[-1] for one in command_of(name).params if getattr(one, "hidden", False)}
    whole = thresher(f"{name} --help all").out
    assert shown - hidden <= flags_in(whole) | set(re.findall(r"/ (--[a-z0-9-]+)", whole))


@pytest.mark.parametrize("name", [name for name in NAMES if len(command_of(name).known) > MANY])
def test_the_first_page_names_what_it_does_not_show(name: str, thresher: Thresher) -> None:
    known, page = command_of(name).known, thresher(f"{name} --help").out
    hidden = {one.opts[-1] for one in command_of(name).params if getattr(one, "hidden", False)}
    assert page.count("\n") <= 100
    assert {one.flag for one in known.values()} - hidden <= set(re.findall(r"--[a-z0-9-]+", page))
    assert all(
        f"\n  {word} " in page for word in HEADINGS if {*HEADINGS[word][1].split()} - {*EVERY_DAY} & {*known}
    )


def test_a_heading_shows_its_options(thresher: Thresher) -> None:
    page = thresher("train --help passes").out
    assert "Passes and hold-outs:" in page
    assert flags_in(page) == {*("--passes", "--replay", "--order", "--holdout", "--early-stop", "--cache")}
    ran = thresher("train --help nothing")
    assert (ran.status, "no heading is called 'nothing': learning, sparsity" in ran.err) == (2, True)
    assert thresher("train train.svm --help").status == 0
