"""What needs a separate process: imports, signals, closed pipes, full disks, terminals."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.conftest import Thresher
from tests.commands import SAMPLE, environment, run, start
from tests.forks import forked

HEAVY = ("numba", "numpy", "pandas", "pyarrow", "pydantic", "scipy", "sklearn")
FULL = Path("/dev/full")
full_disk = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")


def imported(code: str, folder: Path) -> set[str]:
    """The modules of HEAVY that `code` imports, whether scipy is installed or not."""
    probe = f"""
import os, sys
os._exit = sys.exit  # so that there is something left to look at
try:
    {code}
except SystemExit:
    pass
print(*(name for name in {HEAVY} if sys.modules.get(name)), file=sys.stderr)
"""
    command = [sys.executable, "-c", probe]
    ran = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, check=True)
    return set(ran.stderr.decode().splitlines()[-1].split())


@pytest.mark.parametrize(
    "code", ["import thresher", "sys.argv = ['thresher', 'train', '--help']; import thresher.__main__"]
)
def test_help_imports_nothing_heavy(code: str, tmp_path: Path) -> None:
    assert imported(code, tmp_path) == set()


def test_training_imports_no_other_learner_and_no_frames(folder: Path) -> None:
    (folder / "texts.jsonl").write_text('{"label": 1, "text": "good"}\n{"label": -1, "text": "bad"}\n')
    code = "sys.argv = 'thresher train texts.jsonl -m m -q --text text'.split(); import thresher.__main__"
    assert not {"pandas", "pydantic", "scipy", "sklearn"} & imported(code, folder)
    assert (folder / "m").exists()


def test_a_signal_while_input_is_waited_for(folder: Path) -> None:
    with start("train", "-", "-m", "m", folder=folder, stdin=subprocess.PIPE) as process:
        feed(process, b"1 1:1\n" * 1_000_000 + b"1 1")  # a block and part of the next
        process.send_signal(signal.SIGHUP)
        assert process.wait(20) == 130
        *_, last = rest(process).splitlines()
    assert last.startswith("thresher: stopped after ")
    assert last.endswith(" examples; checkpoint in m.checkpoint, continue with --resume")
    assert sorted(p.name for p in folder.iterdir()) == ["cache", "m.checkpoint", "test.svm", "train.svm"]


def test_a_signal_while_a_named_pipe_is_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with start("train", "pipe", "-m", "m", folder=folder) as process, open(folder / "pipe", "wb") as pipe:
        feed(process, b"1 1:1\n" * 1_000_000, pipe)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert (folder / "m.checkpoint").exists()


def feed(process: subprocess.Popen[bytes], text: bytes, pipe: IO[bytes] | None = None) -> None:
    """Write `text` to the process and wait until it has learned 131,072 examples."""
    into = pipe or process.stdin
    assert into is not None
    assert process.stderr is not None
    into.write(text)
    into.flush()
    while b" 131,072 " not in process.stderr.readline():
        assert process.poll() is None


def rest(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    return process.stderr.read().decode()


def test_what_came_by_standard_input_can_be_gone_on_with(folder: Path, thresher: Thresher) -> None:
    text = b"".join(b"%d %d:1 %d:0.5\n" % (k % 3 == 0, k % 50, k % 7 + 60) for k in range(400_000))
    (folder / "all.svm").write_bytes(text)
    assert thresher("train all.svm -m whole -q").status == 0
    with start("train", "-", "-m", "m", folder=folder, stdin=subprocess.PIPE) as process:
        feed(process, text[:-500_000])
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130
    with open(folder / "all.svm", "rb") as stdin:
        status, _, err = run("train", "-", "-m", "m", "--resume", "-q", folder=folder, stdin=stdin)
    assert status == 0
    assert re.fullmatch("warning: no feature has a weight.*\n", err)
    assert (folder / "m").read_bytes() == (folder / "whole").read_bytes()


def test_an_interrupted_prediction_leaves_nothing(folder: Path, model: Path) -> None:
    with start("predict", model, "-", "-o", "file", folder=folder, stdin=subprocess.PIPE) as process:
        while not list(folder.glob(".file.*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130
        assert rest(process) == "thresher: interrupted\n"
    assert not [*folder.glob("*file*"), *folder.glob(".file*")]


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_conversation_that_ends(folder: Path, model: Path, interrupted: bool) -> None:
    """By Ctrl-C, or as the reader of the answers leaves."""
    with start("predict", model, "-", folder=folder, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"1 1:1\n")
        process.stdin.flush()
        assert float(process.stdout.readline())
        process.stdout.close()
        if interrupted:
            process.send_signal(signal.SIGINT)
        else:
            process.stdin.write(b"1 2:1\n")
            process.stdin.flush()
        assert process.wait(20) == (130 if interrupted else 1)
        assert rest(process).removeprefix("thresher: interrupted\n") == ""


def test_a_reader_who_has_enough(folder: Path, model: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with start("weights", model, folder=folder, stdout=writer) as process:
        os.close(writer)
        assert process.wait(20) == 1
        assert rest(process) == ""


@full_disk
@pytest.mark.parametrize("command", ["predict model test.svm", "--help"])
def test_a_full_disk_behind_standard_output(command: str, folder: Path, model: Path) -> None:
    with open(FULL, "wb") as out:
        status, _, err = run(*command.split(), folder=folder, stdout=out)
    assert (status, err) == (1, "thresher: the disk is full\n")


@full_disk
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("train train.svm -m /dev/full -q", "/dev/full"),
        ("train train.svm -m m -q --curve /dev/full", "/dev/full"),
        ("predict model test.svm -o /dev/full", "/dev/full"),
        ("train bad.svm -m m -q --on-error quarantine=/dev/full", "/dev/full"),
    ],
)
def test_a_full_disk_behind_a_file(
    command: str, shown: str, folder: Path, model: Path, thresher: Thresher
) -> None:
    (folder / "bad.svm").write_bytes(b"oops\n" + (folder / "train.svm").read_bytes())
    ran = thresher(command)
    assert ran.status == 1
    (line,) = ran.err.splitlines()
    assert line.startswith(f"thresher: {shown}: ")
    assert not FULL.is_file()


def test_a_full_disk_at_a_checkpoint(
    folder: Path, thresher: Thresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    names = sorted(p.name for p in folder.iterdir())
    monkeypatch.setattr(os, "fsync", full)
    for command, shown in (("--checkpoint-every 100", "m.checkpoint"), ("", "m")):
        ran = thresher(f"train train.svm -m m -q {command}")
        assert ran == (1, "", f"thresher: {shown}: the disk is full\n")
        assert sorted(p.name for p in folder.iterdir()) == names


def on_a_terminal(*arguments: str, folder: Path) -> tuple[int, str]:
    """Exit status, and everything sent to the terminal."""
    ours, theirs = pty.openpty()
    xterm = environment(folder, TERM="xterm", COLUMNS="100")
    streams: Any = {"stdin": subprocess.DEVNULL, "stdout": theirs, "stderr": theirs}
    process = forked([*arguments], cwd=folder, env=xterm, **streams)
    os.close(theirs)
    seen = b""
    while True:
        try:
            more = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        seen += more
    os.close(ours)
    return process.wait(20), seen.decode()


def test_a_terminal_gets_a_bar_that_goes_away(folder: Path) -> None:
    status, seen = on_a_terminal("train", str(SAMPLE), "-m", "m", "--passes", "4", folder=folder)
    assert status == 0
    bar, _, result = seen.rpartition("\x1b[2K")  # the bar's line is wiped before the result
    assert "examples \x1b" in bar
    assert "%" in bar
    assert "0:00:0" in bar  # remaining time
    assert "     1,024 " in bar  # the table is above it
    assert result.startswith("examples               8,000")


def test_a_pipe_gets_no_bar(folder: Path) -> None:
    _, out, err = run("train", str(SAMPLE), "-m", "m", folder=folder)
    assert "\x1b" not in out + err
    assert "\r" not in out + err
