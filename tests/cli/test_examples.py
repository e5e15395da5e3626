"""The examples in help run as they stand, and completion works in bash."""

import gzip
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import typer.main

from tests.cli.conftest import ROWS, Thresher
from tests.commands import environment
from tests.served import program, served
from thresher.cli.app import NAMES, build
from thresher.cli.examples import EXAMPLES

COMMANDS = list(NAMES)
ALL = [(name, example) for name in COMMANDS for example in EXAMPLES[name]]


def test_every_command_has_three_that_differ() -> None:
    assert list(EXAMPLES) == COMMANDS
    assert all(len(set(three)) == 3 for three in EXAMPLES.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_them(thresher: Thresher, name: str) -> None:
    assert thresher(f"{name} --help").out.splitlines()[-4:] == [
        "  Examples:",
        *(f"    {example}" for example in EXAMPLES[name]),
    ]


@pytest.mark.parametrize(("name", "example"), ALL)
def test_they_are_understood(name: str, example: str) -> None:
    words = shlex.split(re.sub(r" > \S+$", "", example.rpartition("| ")[2]))
    place = words.index("thresher")
    assert words[place + 1] == name
    commands: dict[str, typer.core.TyperCommand] = typer.main.get_command(build()).commands  # type: ignore[attr-defined]
    assert commands[name].make_context(name, words[place + 2 :]).params


def test_they_run(folder: Path) -> None:
    """In their order: later ones read what earlier ones wrote. Not those of warm, which only compile."""
    (folder / "train.svm.gz").write_bytes(gzip.compress(b"".join(ROWS[:400])))
    rows = [f"{k % 3 == 0:d},{k % 7},{'red' if k % 2 else 'blue'}\n" for k in range(200)]
    (folder / "clicks.csv").write_text("click,hour,colour\n" + "".join(rows))
    with served() as shell:
        variables = environment(folder)
        variables["PATH"] = f"{shell.folder}:{variables['PATH']}"
        for name, example in ALL:
            if name != "warm":
                ran = shell.run(f"set -o pipefail; {example}", cwd=folder, env=variables)
                assert ran.returncode == (name == "diff"), (example, ran.stderr)  # the models differ
    written = {path.name for path in folder.iterdir()}
    assert {"small.model", "best.model", "tuned.model", "named.model", "predictions.txt"} < written


COMPLETE = """
source <(_THRESHER_COMPLETE=source_bash thresher)
COMP_WORDS=({words}) COMP_CWORD={last}
_thresher_completion thresher
printf '%s\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("thresher tr", {"train"}),
        ("thresher train --hold", {"--holdout"}),
        ("thresher tune --ru", {"--rules"}),
    ],
)
def test_completion_in_bash(folder: Path, words: str, found: set[str]) -> None:
    program(folder / "thresher", "-m", "thresher")
    variables = environment(folder)
    variables["PATH"] = f"{folder}:{variables['PATH']}"
    script = COMPLETE.format(words=words, last=len(words.split()) - 1)
    ran = subprocess.run(["bash", "-c", script], env=variables, capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == found
