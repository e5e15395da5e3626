"""What needs a separate process: imports, signals, closed pipes and streams, full disks, terminals."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.conftest import Thresher
from tests.commands import SAMPLE, environment, run, start
from tests.forks import forked

HEAVY = ("numba", "numpy", "pandas", "pyarrow", "pydantic", "scipy", "sklearn")
FULL = Path("/dev/full")
PAD = b" " * 50 + b"\n"
"""Ends lines, a block of which is soon learned"""
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


def test_training_imports_no_other_learner_and_no_frames(folder: Path, thresher: Thresher) -> None:
    (folder / "texts.jsonl").write_text('{"label": 1, "text": "good"}\n{"label": -1, "text": "bad"}\n')
    thresher.ok(command := "train texts.jsonl -m m -q --text text")  # compiled here, where more is known
    Path("m").unlink()
    code = f"sys.argv[1:] = {command.split()}; from thresher.cli.main import _run; _run()"
    found = imported(f"{code}; import thresher.engine.compile.translate", folder)
    assert "numba" in found
    assert not {"pandas", "pydantic", "scipy", "sklearn"} & found
    assert (folder / "m").exists()


def test_training_leaves_no_threads_and_numpy_starts_none(folder: Path) -> None:
    code = f"""
import os, sys
sys.argv[1:] = ["train", {str(SAMPLE)!r}, "-m", "m", "-q"]
from thresher.cli.main import _run
status = _run()
print(status, len(os.listdir("/proc/self/task")))
"""
    variables = {name: value for name, value in environment(folder).items() if "NUM_THREADS" not in name}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=variables, capture_output=True, check=True
    )
    assert ran.stdout.decode().splitlines()[-1] == "0 1"


def test_a_signal_while_input_is_waited_for(folder: Path) -> None:
    with start("train", "-", "-m", "m", folder=folder, stdin=subprocess.PIPE) as process:
        feed(process, (b"1 1:1" + PAD) * 100_000 + b"1 1")  # a block and part of the next
        process.send_signal(signal.SIGHUP)
        assert process.wait(20) == 130
        *_, last = rest(process).splitlines()
    assert last.startswith("thresher: stopped after ")
    assert last.endswith(" examples; checkpoint in m.checkpoint, continue with --resume")
    assert sorted(p.name for p in folder.iterdir()) == ["cache", "m.checkpoint", "test.svm", "train.svm"]


def feed(process: subprocess.Popen[bytes], text: bytes, pipe: IO[bytes] | None = None) -> None:
    """Write `text` to the process and wait until it has learned 65,536 examples."""
    into = pipe or process.stdin
    into.write(text)
    into.flush()
    while b" 65,536 " not in process.stderr.readline():
        assert process.poll() is None


def rest(process: subprocess.Popen[bytes]) -> str:
    return process.stderr.read().decode()


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
def test_a_full_disk(command: str, shown: str, folder: Path, model: Path, thresher: Thresher) -> None:
    (folder / "bad.svm").write_bytes(b"oops\n" + (folder / "train.svm").read_bytes())
    ran = thresher(command)
    assert ran.status == 1
    (line,) = ran.err.splitlines()
    assert line.startswith(f"thresher: {shown}: ")
    assert not FULL.is_file()


def test_full_at_a_checkpoint(folder: Path, thresher: Thresher, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    names = sorted(p.name for p in folder.iterdir())
    monkeypatch.setattr(os, "fsync", full)
    for command, shown in (("--checkpoint-every 100", "m.checkpoint"), ("", "m")):
        ran = thresher(f"train train.svm -m m -q {command}")
        assert ran == (1, "", f"thresher: {shown}: the disk is full\n")
        assert sorted(p.name for p in folder.iterdir()) == names


def on_a_terminal(*arguments: str, folder: Path) -> tuple[int, str]:
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


def test_a_descriptor_that_was_closed_is_given_to_no_file(folder: Path) -> None:
    (folder / "train.svm").write_bytes(b"oops\n" * 9 + (folder / "train.svm").read_bytes())
    status, _, _ = shell("train train.svm -m m --on-error quarantine=bad <&- >&- 2>&-", folder)
    assert status == 0
    assert (folder / "bad").read_bytes() == b"oops\n" * 9
    assert os.listdir(folder).count("m") == 1
