"""Shadows, promotion and copies, through the processes that a user starts."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import run
from tests.serving.test_server import RED, Serving, started
from thresher.cli.main import status_of
from thresher.options.kinds import WrongValueError
from thresher.options.option import declared, settle
from thresher.options.serving import LearningOptions, Quantity, Shadow
from thresher.serving.server import settings_of
from thresher.serving.service import Settings

LABELLED = b'{"label": 1, "hour": 3, "colour": "red"}\n{"label": 0, "hour": 4, "colour": "blue"}\n' * 20


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not met():
        assert time.monotonic() < end, "waited for 30 s"
        time.sleep(0.05)


def figures(serving: Serving) -> str:
    return serving.ask("GET", "/metrics")[1].decode()


def test_a_shadow_takes_over_and_a_replica_follows(clicks: Path, tmp_path: Path) -> None:
    shadows = "--shadow", "ftrl:alpha=0.5", "--shadow", f"again={clicks}"
    learning = "--learn", "--log", tmp_path / "log", "--snapshot-every", "40", *shadows
    with started(clicks, tmp_path, *learning) as process:
        serving = Serving(process)
        url, copy = f"http://127.0.0.1:{serving.port}", tmp_path / "copy.model"
        before = serving.predict(RED)
        assert serving.ask("POST", "/learn", LABELLED, content_type="application/json")[0] == 200
        until(lambda: figures(serving).count(" 40.0\n") >= 4)
        for name in ("-", "ftrl", "again"):
            assert f'thresher_shadow_learned_total{{model="{name}"}} 40.0\n' in figures(serving)
        assert run("follow", url, "-m", copy, "--once", folder=tmp_path)[0] == 0
        with started(copy, tmp_path) as other:
            replica = Serving(other)
            learned = serving.predict(RED)
            assert before != learned == replica.predict(RED)
            body = json.dumps({"model": "ftrl"}).encode()
            assert serving.ask("POST", "/promote", body)[0] == 200
            assert serving.predict(RED) != learned
            assert run("follow", url, "-m", copy, "--once", folder=tmp_path)[0] == 0
            until(lambda: replica.predict(RED) == serving.predict(RED))
            other.send_signal(signal.SIGTERM)
            assert other.wait(20) == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_copy_needs_the_token(clicks: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with started(clicks, tmp_path, "--token", tmp_path / "token") as process:
        command = "follow", f"127.0.0.1:{Serving(process).port}", "-m", tmp_path / "copy", "--once"
        status, _, told = run(*command, folder=tmp_path)
        assert (status, "the server wants a token, or another one" in told) == (1, True)
        assert run(*command, "--token", tmp_path / "token", folder=tmp_path)[0] == 0
    assert (tmp_path / "copy").read_bytes() == clicks.read_bytes()


def _read(name: str, text: str) -> Any:
    return declared(LearningOptions)[name].option.kind.read(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ftrl", Shadow("ftrl", "ftrl")),
        ("ftrl:l1=3,alpha=0.1", Shadow("ftrl", "ftrl:l1=3,alpha=0.1")),
        ("new-one=ftrl:l1=3", Shadow("new-one", "ftrl:l1=3")),
        ("old=models/a=b.model", Shadow("old", "models/a=b.model")),
    ],
)
def test_shadows_have_names(text: str, found: Shadow) -> None:
    assert _read("shadow", text) == found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("shadow", text) for text in ("", "=", "a=", "../a:b", "-", "models/a.model")),
        *(("wait", text) for text in ("", "1", "0s", "-1h", "1e400h", "h", "1h30m", "inf", "10GB")),
        *(("keep", text) for text in ("10", "10 rows", "GB", "1.GB", "nan")),
    ],
)
def test_values_that_mean_nothing_are_refused(name: str, text: str) -> None:
    with pytest.raises(WrongValueError):
        _read(name, text)


def test_options_are_settings() -> None:
    given = {"wait": "90m", "unlabelled": "negative", "keep": "1.5GB", "snapshot_every": "500"}
    read = {name: _read(name, text) for name, text in given.items()}
    assert read["wait"] == Quantity("seconds", 5400)
    both = (Shadow("a", "ftrl"), Shadow("b", "sgd"))
    found = settings_of(settle(LearningOptions, {**read, "shadow": both}) | {"most_pending": 7})
    assert (found.wait, found.unlabelled, found.keep_bytes, found.keep_seconds) == (
        *(5400, "negative", 1_500_000_000, None),
    )
    assert (found.snapshots.rows, found.snapshots.seconds) == (500, float("inf"))
    assert (found.most_kept, found.shadows) == (7, {"a": "ftrl", "b": "sgd"})
    assert settings_of(settle(LearningOptions, {}) | {"most_pending": 1_000_000}) == Settings()


def test_two_shadows_have_two_names(clicks: Path, tmp_path: Path) -> None:
    learning = "--learn", "--log", tmp_path / "log", "--shadow", "ftrl:l1=1", "--shadow", "ftrl:l1=2"
    status, _, told = run("serve", clicks, *learning, folder=tmp_path)
    assert (status, "two models are called ftrl: give one of them another name" in told) == (2, True)


def test_what_cannot_be_followed_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    copy = "-m", "copy.model", "--once"
    told = f"thresher: {url}/snapshot: Connection refused\n"
    assert run("follow", url, *copy, folder=tmp_path) == (1, "", told)
    told = "thresher: ftp://a: not the address of a server, such as http://127.0.0.1:8000\n"
    assert run("follow", "ftp://a", *copy, folder=tmp_path) == (1, "", told)
    assert not (tmp_path / "copy.model").exists()


def test_help_shows_amounts_as_they_are_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["serve", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("[default: 1m]", "[default: 1h]"):
        assert words in shown
