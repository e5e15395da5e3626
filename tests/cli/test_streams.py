"""Standard streams that are closed, full, or not read: training finishes all the same."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Thresher
from tests.commands import environment, start
from tests.forks import forked

TRAIN = "train train.svm -m m -q"
STREAMS = ("stdin", "stdout", "stderr")
CLOSED = """
import os, sys
from thresher.cli.main import run
for number, name in enumerate(("stdin", "stdout", "stderr")):
    if name in {names}:  # as Python leaves it if the descriptor is closed at start
        setattr(sys, name, None)
        setattr(sys, f"__{{name}}__", None)
        os.close(number)
run()
"""


def shell(line: str, folder: Path) -> tuple[int, str, str]:
    """Status and output of ``thresher LINE``, run by a shell, so that it may contain redirections."""
    command = ["sh", "-c", f'exec "{sys.executable}" -m thresher {line}']
    ran = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True)
    return ran.returncode, ran.stdout.decode(), ran.stderr.decode()


def redirected(line: str, folder: Path) -> tuple[int, str, str]:
    """The same in a forked process, which does not start Python: far cheaper."""
    words = line.split()
    found = {word: re.fullmatch("([<>]|2>)(.+)", word) for word in words}
    streams: dict[str, Any] = dict(zip(STREAMS, (subprocess.DEVNULL, *[subprocess.PIPE] * 2), strict=True))
    names = []
    with ExitStack() as files:
        for one in filter(None, found.values()):
            name = STREAMS[("<", ">", "2>").index(one[1])]
            if one[2] == "&-":
                names.append(name)
            else:
                streams[name] = files.enter_context(open(one[2], "wb"))
        code = CLOSED.format(names=names)
        command = [word for word in words if found[word] is None]
        with forked(command, code, cwd=folder, env=environment(folder), **streams) as process:
            out, err = process.communicate(timeout=120)
    return process.returncode, (out or b"").decode(), (err or b"").decode()


@pytest.mark.parametrize("command", ["train - -m m -q", "predict model -"])
@pytest.mark.usefixtures("model")
def test_a_closed_standard_input_is_one_line(command: str, folder: Path) -> None:
    assert redirected(f"{command} <&-", folder) == (1, "", "thresher: standard input (-) is closed\n")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("command", ["predict model test.svm", "rules", "--help"])
def test_a_result_for_a_closed_standard_output_is_an_error(command: str, folder: Path) -> None:
    run = shell if command == "rules" else redirected
    status, _, err = run(f"{command} >&-", folder)
    *_, last = err.splitlines()  # it may have been compiling before
    assert (status, last) == (1, "thresher: standard output is closed")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("command", "where", "reason"),
    [
        (TRAIN, ">&-", "standard output is closed"),
        (TRAIN, ">/dev/full", "the disk is full"),
        ("boost train.svm -m m -q --l1 9", ">/dev/full", "the disk is full"),
        ("name model train.svm -o m", ">&-", "standard output is closed"),
    ],
)
def test_figures_that_cannot_be_printed_do_not_fail_what_is_saved(
    command: str, where: str, reason: str, thresher: Thresher, folder: Path
) -> None:
    status, _, err = redirected(f"{command} {where}", folder)
    *_, last = err.splitlines()
    assert (status, last) == (0, f"thresher: m is saved, but its figures cannot be printed: {reason}")
    assert thresher("weights m").status == 0


@pytest.mark.parametrize("where", ["2>/dev/full", "<&- >&- 2>&-"])
def test_no_message_of_a_training_needs_a_reader(where: str, thresher: Thresher, folder: Path) -> None:
    status, _, _ = redirected(f"train train.svm -m m {where}", folder)
    assert status == 0
    assert thresher(TRAIN.replace("-m m", "-m other")).status == 0
    assert (folder / "m").read_bytes() == (folder / "other").read_bytes()


def test_an_error_with_standard_error_closed_keeps_its_status(folder: Path) -> None:
    assert redirected("train none.svm -m m 2>&-", folder) == (1, "", "")
    assert redirected("harvest 2>&-", folder) == (2, "", "")


def test_a_reader_who_leaves_does_not_stop_a_training(thresher: Thresher, folder: Path) -> None:
    with start("train", "-", "-m", "m", folder=folder, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        process.stdin.write((folder / "train.svm").read_bytes())
        process.stdin.close()
        assert process.wait(120) == 0
    assert thresher("weights m").status == 0


def test_a_descriptor_that_was_closed_is_given_to_no_file(folder: Path) -> None:
    (folder / "train.svm").write_bytes(b"oops\n" * 9 + (folder / "train.svm").read_bytes())
    status, _, _ = shell("train train.svm -m m --on-error quarantine=bad <&- >&- 2>&-", folder)
    assert status == 0
    assert (folder / "bad").read_bytes() == b"oops\n" * 9
    assert os.listdir(folder).count("m") == 1
