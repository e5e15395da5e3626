"""The cache of compiled code never returns the code of another function or another user."""

import os
import stat
import tempfile
import threading
import warnings
from pathlib import Path

import pytest

from tests.processes import printed, run, start_code
from thresher.engine.atomic import CacheWarning, UnsafeFolderError, cache_folder, private_folder
from thresher.engine.compile import codecache

LINKS = {"logistic": 0.731059, "squared": 1.0, "poisson": 2.718282}
"""Loss -> what it makes of the margin 1."""
RESPOND = """
import json
import numpy as np
from thresher import parts
from thresher.engine import kernels

loss, out = parts.make("loss", {loss!r}), np.empty(1)
kernels.respond(loss, np.ones(1), out)
print(json.dumps([round(float(out[0]), 6), kernels.respond.loaded, kernels.respond.compiled]))
"""
PLANT = """
import numpy as np
from pathlib import Path
from thresher import parts
from thresher.engine import kernels
from thresher.engine.compile import codecache, machine

kind = machine.kind_of((parts.make("loss", {loss!r}), np.ones(1), np.ones(1)))
path, key = codecache.place_of(kernels.respond.function, kind)
codecache.write_code(path, key, Path({other!r}).read_bytes()[32:])
print("true")
"""
"""Keeps the machine code of another loss, as one who knows the form of a file would."""
DELAYED = """
import os, time
renamed = os.replace

def held(source, target):
    open({arrived!r}, "w").close()
    while not os.path.exists({go!r}):
        time.sleep(0.01)
    renamed(source, target)

os.replace = held
"""


def respond(loss: str, cache: Path) -> tuple[int, int]:
    """Cache hits and misses of a process with the correct result."""
    value, hits, misses = run(RESPOND.format(loss=loss), cache)
    assert value == LINKS[loss]
    return hits, misses


def files(cache: Path) -> list[Path]:
    found = (cache / "code").iterdir()
    return sorted(path for path in found if ".kernels.respond-" in path.name or path.suffix != ".nbc")


def test_five_cold_processes_each_run_their_own_code(tmp_path: Path) -> None:
    losses = [*LINKS, "logistic", "poisson"]
    processes = [start_code(RESPOND.format(loss=loss), tmp_path) for loss in losses]
    assert [printed(process)[0] for process in processes] == [LINKS[loss] for loss in losses]
    assert len(files(tmp_path)) == len(LINKS), "one file for each signature, no file left over"
    assert [respond(loss, tmp_path) for loss in LINKS] == [(1, 0)] * len(LINKS)


def test_a_writer_held_up_between_two_steps_harms_nobody(tmp_path: Path) -> None:
    arrived, go = str(tmp_path / "arrived"), str(tmp_path / "go")
    code = DELAYED.format(arrived=arrived, go=go) + RESPOND.format(loss="logistic")
    slow = start_code(code, tmp_path)
    while not os.path.exists(arrived):
        assert slow.poll() is None, slow.communicate()[1]
    assert respond("poisson", tmp_path) == (0, 1)
    Path(go).touch()
    assert printed(slow)[0] == LINKS["logistic"]
    assert [respond(loss, tmp_path) for loss in ("poisson", "logistic")] == [(1, 0), (1, 0)]


def test_a_file_of_other_code_or_damaged_is_not_run(tmp_path: Path) -> None:
    respond("logistic", tmp_path)
    (logistic,) = files(tmp_path)
    respond("poisson", tmp_path)
    (poisson,) = set(files(tmp_path)) - {logistic}
    poisson.write_bytes(logistic.read_bytes())
    assert respond("poisson", tmp_path) == (0, 1)
    assert respond("poisson", tmp_path) == (1, 0), "what was compiled anew has taken its place"
    whole = logistic.read_bytes()
    for wrong in (whole[:0], whole[:10], whole[:1000], whole[:-9] + b"!" + whole[-8:]):
        logistic.write_bytes(wrong)
        assert respond("logistic", tmp_path) == (0, 1)


def test_a_file_that_others_can_write_is_not_run(tmp_path: Path) -> None:
    respond("poisson", tmp_path)
    (other,) = files(tmp_path)
    respond("logistic", tmp_path)
    (path,) = set(files(tmp_path)) - {other}
    run(PLANT.format(loss="logistic", other=str(other)), tmp_path)
    assert run(RESPOND.format(loss="logistic"), tmp_path)[0] != LINKS["logistic"], (
        "it is run, if it is our own"
    )
    path.chmod(0o666)
    assert respond("logistic", tmp_path) == (0, 1)
    assert respond("logistic", tmp_path) == (1, 0), "what was compiled anew has taken its place"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o770])
def test_a_folder_that_others_can_write_to_is_not_used(mode: int, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code").chmod(mode)
    assert respond("logistic", tmp_path) == (0, 1)
    assert not files(tmp_path)


def test_code_that_cannot_be_kept_is_told_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecache, "NOT_WARNED", threading.Lock())
    with pytest.warns(CacheWarning, match="compiled code cannot be kept, .*a: full"):
        codecache._warn(OSError(28, "full", "a"))
    codecache._warn(OSError(28, "full", "b"))  # warnings are errors here


def test_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    for name in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


def test_a_folder_on_the_way_that_others_can_write_to_is_not_safe(tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    private_folder(outer / "inner")
    outer.chmod(0o777)
    with pytest.raises(UnsafeFolderError, match="outer; to make it safe: chmod go-w"):
        private_folder(outer / "inner")
    outer.chmod(0o1777)  # like /tmp: others cannot rename files that are not theirs
    private_folder(outer / "inner")


def test_a_folder_of_another_user_is_not_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = private_folder(tmp_path / "cache")
    if os.geteuid() == 0:
        os.chown(folder, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(UnsafeFolderError, match="belongs to another user"):
        private_folder(folder)


def test_a_link_is_as_safe_as_what_it_leads_to(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(open_to_all)
    with pytest.raises(UnsafeFolderError):
        private_folder(link)


def test_a_folder_that_may_only_be_read_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an image that root has built and another user runs: nobody else can write there."""
    with tempfile.TemporaryDirectory() as made:
        monkeypatch.setenv("THRESHER_CACHE_DIR", f"{made}/cache")
        place = private_folder(cache_folder() / "code")
        path = place / "a.nbc"
        codecache.write_code(path, b"key", b"code")
        for one in (path, place, place.parent, Path(made)):
            one.chmod(0o444 if one == path else 0o555)
        child = os.fork()
        if child == 0:
            os._exit(_what_another_user_finds(path))
        assert os.waitpid(child, 0)[1] == 0
        for one in (place, place.parent, Path(made)):
            one.chmod(0o700)


def _what_another_user_finds(path: Path) -> int:
    """0 if the file is read without a warning, and nothing can be written."""
    try:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        codecache.usable_folder.cache_clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = codecache.usable_folder() == path.parent and codecache.read_code(path, b"key") == b"code"
        return 0 if found and not os.access(path.parent, os.W_OK) else 1
    except BaseException:  # noqa: BLE001 - the child must not go on as a test
        return 2


WITHIN = """
from typing import NamedTuple

import numpy as np
from thresher import Model, part


def make():
    @part("loss")
    class Within(NamedTuple):
        scale: float = 1.0

        def value_slope(self, margin, y):
            return self.scale * (margin - y) ** 2 / 2, self.scale * (margin - y)

    return Within()
"""


def test_a_class_made_in_a_function_is_compiled_in_each_process(tmp_path: Path) -> None:
    """What is cached for its type would name a class that no other process finds."""
    (tmp_path / "within.py").write_text(WITHIN)
    code = "import json, numpy as np, within\nmodel = within.Model({!r}, within.make(), rate={!r})\n"
    code += "model.learn(np.eye(2), [1.0, -1.0])\nprint(json.dumps(model.examples))\n"
    for rule, rate in (("sgd", "constant"), ("perceptron", None), ("sgd", "constant")):
        assert run(code.format(rule, rate), tmp_path / "cache", tmp_path) == 2
