"""The first run of a kind compiles in two processes; apart from the time, nothing changes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands import SAMPLE, start
from tests.plain import not_compiled
from tests.streams import RULES, has_rate, settings_of
from tests.telling import notices_to
from thresher.data import open_source
from thresher.engine import kernels
from thresher.engine.atomic import cache_folder
from thresher.engine.compile import codecache, notices
from thresher.engine.compile.notices import compiling, seconds_compiling
from thresher.learning.model.eight_lanes import LaneState
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.training import ahead
from thresher.learning.training.ahead import compile_ahead

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux only")
HEADS = [
    *(("logistic", "one"), ("squared", "one"), ("poisson", "one"), ("wealth", "one")),
    ("softmax", "classes:3-5"),
]
HEADS += [("hinge", "labels:1-3"), ("absolute", "values:2"), ("logistic", "classes:2")]


@pytest.fixture
def few_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Number of functions compiled."""
    monkeypatch.setattr(ahead, "FEATURES", 64)


@pytest.mark.usefixtures("few_features")
@pytest.mark.parametrize(("loss", "outputs"), HEADS)
def test_any_model_learns_what_is_made_up(loss: str, outputs: str) -> None:
    for options in ({}, {"batch": 3}, {"average": True}, {"admit": 2}, {"store": "hashed:8"}):
        with not_compiled():
            model = Model("sgd", loss, outputs=outputs, **options)
            ahead.learn_anything(model, True)
        assert model.examples == 2
        assert np.isfinite(model.tally.loss)


@pytest.mark.usefixtures("few_features")
@pytest.mark.parametrize("name", RULES)
def test_any_rule_learns_what_is_made_up(name: str) -> None:
    spec = settings_of(name)[0]
    with not_compiled():
        model = Model(spec, rate="constant:0.1" if has_rate(spec) else None)
        ahead.learn_anything(model, True)
    assert model.examples == 2


def cold(folder: Path) -> dict[str, str]:
    (folder / "cache").mkdir()
    return {"THRESHER_CACHE_DIR": str(folder / "cache")}


def knows_reading(folder: Path) -> dict[str, str]:
    """As `cold`, but with the compiled parsers of other tests: reading compiles nothing."""
    list(open_source(SAMPLE).chunks())
    variables, code = cold(folder), folder / "cache" / "code"
    code.mkdir()
    for file in (cache_folder() / "code").glob("thresher.data.*.nbc"):
        (code / file.name).symlink_to(file.resolve())
    return variables


def train(folder: Path, **variables: str) -> Any:
    told = ("train", SAMPLE, "-m", folder / "a.model", "-q", "--no-cache", "--json", "--rule", "sgd")
    return start(*told, folder=folder, **variables)


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(word) for word in found.split()]


def first_child(process: Any) -> int:
    """The child of a running process; the test fails if none appears."""
    while process.poll() is None:
        if found := children(process.pid):
            return found[0]
        time.sleep(0.005)
    raise AssertionError("the process has ended and had no child")


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor compiles nothing beside")
def test_a_first_run_compiles_in_two_processes_and_can_lose_one(tmp_path: Path) -> None:
    variables = knows_reading(tmp_path)
    assert compiling_for(tmp_path, variables) > 0.3
    first = (tmp_path / "a.model").read_bytes()
    assert compiling_for(tmp_path, variables) == 0.0
    assert (tmp_path / "a.model").read_bytes() == first
    for lost in (tmp_path / "cache" / "code").glob("thresher.engine.kernels.learn-*"):
        lost.unlink()  # the kernel, and the mark that it needs no second process
    (tmp_path / "a.model").unlink()
    assert compiling_for(tmp_path, variables, killed=True) > 0.2
    assert (tmp_path / "a.model").read_bytes() == first


def compiling_for(folder: Path, variables: dict[str, str], *, killed: bool = False) -> float:
    """Seconds for which a training compiles, whose second process may be killed."""
    with train(folder, **variables) as process:
        if killed:
            os.kill(first_child(process), signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["examples"] == 2000
    return float(json.loads(out).get("seconds_compiling", 0.0))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor compiles nothing beside")
def test_the_second_process_ends_with_the_first(tmp_path: Path) -> None:
    with train(tmp_path, **cold(tmp_path)) as process:
        child = first_child(process)
        time.sleep(0.3)  # so that it has reported its parent
        process.kill()
        process.communicate()
    end = time.monotonic() + 5
    while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
        assert time.monotonic() < end, "still there"
        time.sleep(0.01)


def test_nobody_compiles_what_no_cache_can_keep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a process was begun"))
    monkeypatch.setattr("threading.active_count", lambda: 1)
    monkeypatch.setattr("thresher.engine.compile.codecache.usable_folder", lambda: None)
    compile_ahead(Model(), False)()
    monkeypatch.setattr("thresher.engine.compile.codecache.usable_folder", lambda: tmp_path)
    kind, words = ahead._kind(Model(), False)
    assert codecache.lacks_mark(kernels.learn.function, kind, words)
    codecache.keep(kernels.learn.function, kind, words, b"")
    compile_ahead(Model(), False)()


@pytest.mark.parametrize(("seconds", "told"), [("0.1", 0), ("0.8", 1)])
def test_a_second_process_that_finds_all_compiled_is_not_told_of(
    seconds: str, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, marks = list[str](), list[Any]()
    monkeypatch.setattr(codecache, "keep", lambda function, kind, words, code: marks.append((kind, words)))
    with notices_to(said.append), subprocess.Popen(["sleep", seconds]) as process:
        ahead.waiting(process.pid, ("this", "kind"))()
        process.returncode = 0  # it has been waited for
    assert (len(said), marks) == (told, [("this", "kind")])


@pytest.mark.parametrize(
    ("options", "work"),
    [
        ({}, notices.LEARNING),
        ({"batch": 4}, notices.OF_MANY),
        ({"loss": "softmax", "outputs": "classes:3"}, notices.OF_MANY),
    ],
)
def test_it_tells_what_is_compiled(options: Any, work: notices.Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecache, "lacks_mark", lambda function, *kind: True)
    monkeypatch.setattr("threading.active_count", lambda: 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.fork", lambda: 1 << 30)
    monkeypatch.setattr(ahead, "waiting", lambda process, kind, work: lambda: work)
    assert compile_ahead(Model("sgd", **options), False)() is work


def test_time_spent_compiling_is_counted_once_however_many_compile() -> None:
    before = seconds_compiling()
    with compiling(), compiling():
        time.sleep(0.05)
    found = seconds_compiling() - before
    assert 0.05 <= found < 0.09
    time.sleep(0.02)
    assert seconds_compiling() - before == pytest.approx(found)


@pytest.mark.usefixtures("few_features")
def test_lanes_learn_what_is_made_up_and_then_the_model_that_is_left() -> None:
    lanes, left = ModelSet([Recipe("ft-ftrl", l1=0.1 * k) for k in range(8)]), Model("ft-ftrl")
    with not_compiled():
        ahead.learn_anything(left, True, [lanes, left])
    assert [lanes.examples, left.examples] == [2, 2]


def test_lanes_that_differ_in_other_numbers_are_compiled_apart() -> None:
    def kind(*recipes: Recipe) -> Any:
        loops = [model.loop for model in ModelSet(recipes).models]
        parts = [loop.holder.parts for loop in loops if isinstance(loop, LaneState)]
        return ahead._kind(Model(recipes[0]), True, 1, parts)

    penalties = [Recipe("fobos", l1=0.1 * k) for k in range(4)]
    same = kind(*penalties)
    assert kind(*(Recipe("fobos", l1=0.2 * k) for k in range(4))) == same
    assert kind(*penalties[:3], Recipe("fobos", l1=1.0, rate="constant:0.1")) != same
    assert kind(*penalties[:2]) != same
    assert ahead._kind(Model("fobos"), True) != same


STUCK = """
import time
import thresher
from thresher.learning.training import ahead

ahead.LONGEST = 1
ahead.learn_anything = lambda *given: time.sleep(60)
begun = time.monotonic()
ahead.compile_ahead(thresher.Model(), False)()
print(0.9 < time.monotonic() - begun < 30)
"""


def test_a_process_that_is_stuck_gives_up(tmp_path: Path) -> None:
    """A library's thread may have held a lock when the process was copied."""
    known = {**os.environ, **cold(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", STUCK], env=known, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "True\n", done.stderr
