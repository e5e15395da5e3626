"""Signals: a learned model is never lost, and there is always one line and status 130."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Thresher
from tests.commands import RUN, environment, run
from thresher.data.errors import DataError
from thresher.learning.inspection import feature_names
from thresher.learning.model.model import Model
from thresher.learning.training.interruption import Stopper

TABLE = "label,a,b\n1,2.5,x\n0,3,y\n1,4,x\n0,1,y\n"
STOPPING = "thresher: stopping after the current step\n"


@pytest.fixture
def table(folder: Path) -> Path:
    (folder / "a.csv").write_text(TABLE)
    return folder


def before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, how: signal.Signals) -> None:
    """Raise a signal just before a function is called for the first time."""
    real: Callable[..., Any] = getattr(owner, name)
    left = [how]

    def raising(*args: Any, **options: Any) -> Any:
        if left:
            signal.raise_signal(left.pop())
        return real(*args, **options)

    monkeypatch.setattr(owner, name, raising)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize(
    ("command", "how"),
    [
        *(("train a.csv -m m -q --no-cache", "SIGINT"), ("train a.csv -m m -q --no-cache", "SIGHUP")),
        *(("train a.csv -m m -q --no-cache --names", "SIGTERM"), ("boost a.csv -m m -q", "SIGTERM")),
        ("cv a.csv -m m -q --no-cache --folds 2 --rule pa-i", "SIGTERM"),
        ("name given a.csv -o m", "SIGTERM"),
    ],
)
def test_a_signal_while_the_model_is_saved_waits(
    command: str, how: str, thresher: Thresher, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert thresher("train a.csv -m given -q").status == 0
    thresher.ok(f"{command} --json")
    content = (table / "m").read_bytes()
    (table / "m").unlink()
    before(monkeypatch, os, "replace", getattr(signal, how))
    ran = thresher(f"{command} --json")
    assert ran.status == 130
    named = " without the names of features; thresher name adds them" if "--names" in command else ""
    assert ran.err == f"{STOPPING}thresher: interrupted; the model is saved in m{named}\n"
    assert ran.json["model"] == "m"
    if not named:
        assert (table / "m").read_bytes() == content
    assert not [name for name in os.listdir(table) if ".checkpoint" in name or "partial" in name]
    assert thresher("weights m").status == 0


def test_a_signal_while_names_are_read_leaves_the_model_without(
    thresher: Thresher, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert thresher("train a.csv -m plain -q").status == 0

    def endless(*_: object) -> None:
        signal.raise_signal(signal.SIGTERM)
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(feature_names, "find_names", endless)
    ran = thresher("train a.csv -m m --names -q --curve c")
    assert ran.status == 130
    assert ran.err == (
        "thresher: interrupted; the model is saved in m without the names of features;"
        " thresher name adds them\n"
    )
    assert ran.out.startswith("examples  ")
    assert (table / "m").read_bytes() == (table / "plain").read_bytes()
    assert (table / "c").exists()


def test_names_that_cannot_be_read_do_not_cost_the_model(
    thresher: Thresher, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise DataError("a.csv: No such file or directory")

    monkeypatch.setattr(feature_names, "find_names", gone)
    ran = thresher("train a.csv -m m --names -q")
    assert ran.status == 1
    (line,) = ran.err.splitlines()
    assert line.startswith("thresher: a.csv: No such file or directory (the model is saved in m without")
    assert thresher("weights m").status == 0


def test_a_signal_between_the_last_example_and_the_saving_waits(
    thresher: Thresher, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(monkeypatch, Model, "end_passes", signal.SIGTERM)
    ran = thresher("train a.csv -m m -q")
    assert (ran.status, ran.err) == (130, f"{STOPPING}thresher: interrupted; the model is saved in m\n")
    assert (table / "m").exists()


def test_signals_are_given_back(thresher: Thresher, table: Path) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert thresher("train a.csv -m m -q").status == 0
    assert thresher("boost a.csv -m m -q").status == 0
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_two_signals_in_a_row_are_one() -> None:
    told: list[str] = []
    stopper = Stopper(told.append).listen()
    try:
        stopper.worth_keeping = True

        def twice() -> None:
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGINT)

        assert not stopper.unless_asked(twice)
        assert stopper.asked
        assert not told
    finally:
        stopper.close()


def test_an_ignored_signal_stays_ignored() -> None:
    old = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stopper = Stopper().listen()
    try:
        signal.raise_signal(signal.SIGTERM)
        assert not stopper.asked
    finally:
        stopper.close()
        signal.signal(signal.SIGTERM, old)


def interrupted(code: str, folder: Path) -> tuple[int, str]:
    """Status and standard error of a process that runs `code`, then ``thresher train train.svm -m m -q``."""
    program = f"""
import builtins, os, signal, sys, time
from thresher.cli import main
sys.argv = "thresher train train.svm -m m -q".split()
{code}
main.run()
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment(folder), capture_output=True
    )
    return ran.returncode, ran.stderr.decode()


@pytest.mark.parametrize("module", ["thresher.cli.app", "llvmlite.binding"])
def test_a_signal_during_an_import(module: str, folder: Path) -> None:
    code = f"""
real = builtins.__import__
def importing(name, *rest):
    found = [name, *(f"{{name}}.{{one}}" for one in (rest[2] if len(rest) > 2 and rest[2] else ()))]
    if {module!r} in found:
        os.kill(os.getpid(), signal.SIGTERM)
    return real(name, *rest)
builtins.__import__ = importing
"""
    assert interrupted(code, folder) == (130, "thresher: interrupted\n")
    assert not (folder / "m").exists()


def test_an_import_that_fails_of_a_signal_is_no_error_of_ours(folder: Path) -> None:
    code = """
real, first = builtins.__import__, [True]
def importing(name, *rest):
    if name == "llvmlite" and first:
        first.clear()  # the error is explained by modules that import it, too
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        except KeyboardInterrupt:
            raise ImportError("llvmlite: failed to import")
    return real(name, *rest)
builtins.__import__ = importing
"""
    assert interrupted(code, folder) == (130, "thresher: interrupted\n")


def test_what_cannot_be_interrupted_ends_with_the_process(folder: Path) -> None:
    code = """
import os, signal, time
from thresher.learning.model.model_set import ModelSet
from thresher.cli import signals
from thresher.engine.atomic import whole_file
signals._GRACE = 0.3
def compiling(*_, **__):
    with whole_file("half"):
        while True:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(60)
            except KeyboardInterrupt:
                pass
ModelSet.learn = compiling
"""
    code += RUN
    command = ("train", "train.svm", "-m", "m", "-q")
    assert run(*command, folder=folder, code=code) == (130, "", "thresher: interrupted\n")
    assert sorted(p.name for p in folder.iterdir()) == ["cache", "test.svm", "train.svm"]


def test_on_a_terminal_the_line_takes_the_place_of_the_bar(folder: Path) -> None:
    ours, theirs = os.openpty()
    try:
        code = "from thresher.cli.signals import say_at_once; say_at_once('thresher: stopping')"
        with_bar = environment(folder, TERM="xterm")
        subprocess.run([sys.executable, "-c", code], stderr=theirs, env=with_bar, check=True)
        assert os.read(ours, 100) == b"\r\x1b[Kthresher: stopping\r\n"
    finally:
        os.close(ours)
        os.close(theirs)


def test_an_interrupted_import_is_one_line(folder: Path) -> None:
    interrupting = """
import sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "gc":
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

sys.modules.pop("gc", None)
sys.meta_path.insert(0, Interrupting())
from thresher.cli.main import run

run()
"""
    ran = subprocess.run(
        [sys.executable, "-c", interrupting, "info", "m"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "thresher: interrupted\n")
