"""``--help``: its parts; its examples run as they stand, and completion works in bash."""

import gzip
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import NARROW, Thresher
from tests.commands import environment
from tests.data.logs import write_log
from tests.served import program, served
from thresher.cli import main
from thresher.cli.app import EXAMPLES, NAMES, command_of
from thresher.cli.parser import EVERY_DAY, HEADINGS, MANY
from thresher.data.chunk import Chunk


def flags_in(text: str) -> set[str]:
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
    assert flags_in(page) == {
        *("--passes", "--replay", "--order", "--holdout", "--early-stop", "--judge", "--cache")
    }
    thresher.fails("train --help nothing", 2, "no heading is called 'nothing': learning, sparsity")
    assert thresher("train train.svm --help").status == 0


COMMANDS = list(NAMES)
ALL = [(name, example) for name in COMMANDS for example in EXAMPLES[name]]
NOT_RUN = ("serve",)
"""Commands that do not end"""


def test_every_command_has_three_that_differ() -> None:
    assert list(EXAMPLES) == COMMANDS
    assert all(len(set(three)) == 3 for three in EXAMPLES.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_them(thresher: Thresher, name: str) -> None:
    assert thresher(f"{name} --help").out.splitlines()[-4:] == [
        "  Examples:",
        *(f"    {example}" for example in EXAMPLES[name]),
    ]


@pytest.mark.parametrize(("name", "example"), [one for one in ALL if one[0] in NOT_RUN])
def test_they_are_understood(name: str, example: str) -> None:
    words = shlex.split(re.sub(r" > \S+$", "", example.rpartition("| ")[2]))
    place = words.index("thresher")
    assert words[place + 1] == name
    assert command_of(name).make_context(name, words[place + 2 :]).params


def test_they_run(folder: Path, plainly: None) -> None:
    """In their order: later ones read what earlier ones wrote."""
    for name, rows in (("train", NARROW[:30]), ("test", NARROW[200:])):
        (folder / f"{name}.svm").write_bytes(b"".join(rows))
    (folder / "train.svm.gz").write_bytes(gzip.compress(b"".join(NARROW[:30])))
    clicks = [f"{k % 3 == 0:d},{k % 7},{'red' if k % 2 else 'blue'}\n" for k in range(200)]
    (folder / "clicks.csv").write_text("click,hour,colour\n" + "".join(clicks))
    write_log(folder / "clicks.log", [Chunk.of_rows([(1.0, {k: 1.0})]) for k in range(200)])
    with served() as shell:
        variables = environment(folder)
        variables["PATH"] = f"{shell.folder}:{variables['PATH']}"
        for name, example in ALL:
            if name not in NOT_RUN:
                ran = shell.run(f"set -o pipefail; {example}", cwd=folder, env=variables)
                assert ran.returncode == 0, (example, ran.stderr)
    written = {path.name for path in folder.iterdir()}
    assert {"small.model", "best.model", "tuned.model", "named.model", "predictions.txt"} < written


COMPLETE = """
source <(_THRESHER_COMPLETE=bash_source thresher)
COMP_WORDS=({words}) COMP_CWORD={last}
_thresher_completion thresher $2 $1
printf '%s\n' "${{COMPREPLY[@]}}"
"""


def test_completion_of_commands_in_bash(folder: Path) -> None:
    program(folder / "thresher", "-m", "thresher")
    variables = environment(folder)
    variables["PATH"] = f"{folder}:{variables['PATH']}"
    script = COMPLETE.format(words="thresher tr", last=1)
    ran = subprocess.run(["bash", "-c", script], env=variables, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["train"]


def exiting(status_of: Callable[[list[str]], int]) -> Callable[[list[str]], int]:
    """The status with which a process that runs `status_of` would end: completion exits at once."""

    def status(arguments: list[str]) -> int:
        try:
            return status_of(arguments)
        except SystemExit as end:
            return int(end.code or 0)

    return status


@pytest.mark.parametrize(
    ("words", "found"), [("thresher train --hold", {"--holdout"}), ("thresher tune --ru", {"--rules"})]
)
def test_completion_of_options_in_bash(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, found: set[str]
) -> None:
    """In the process of the tests, which has imported what the commands need."""
    monkeypatch.setattr(main, "status_of", exiting(main.status_of))
    script = COMPLETE.format(words=words, last=len(words.split()) - 1)
    with served() as shell:
        variables = environment(folder)
        variables["PATH"] = f"{shell.folder}:{variables['PATH']}"
        ran = shell.run(script, env=variables)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert set(ran.stdout.split()) == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "csh"])
def test_completion_is_printed(thresher: Thresher, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    if shell == "csh":
        thresher.fails("--show-completion", 2, "completion is for bash, zsh and fish; SHELL is 'csh'")
    else:
        assert "_THRESHER_COMPLETE" in thresher.ok("--show-completion").out
