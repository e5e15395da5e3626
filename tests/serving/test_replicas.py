"""Copies that follow a server are always whole models; shadows and promotion."""

import json
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import thresher
from tests.commands import run
from tests.plain import not_compiled
from tests.serving.test_server import RED, Serving, started
from tests.streams import stream
from tests.waiting import until
from thresher.cli.main import status_of
from thresher.learning.files import model_file
from thresher.options.kinds import WrongValueError
from thresher.options.option import declared, settle
from thresher.options.serving import LearningOptions, Quantity, Shadow
from thresher.serving.following import Follower, FollowError, LostError, keep_fresh
from thresher.serving.server import settings_of
from thresher.serving.service import Settings

LABELLED = b'{"label": 1, "hour": 3, "colour": "red"}\n{"label": 0, "hour": 4, "colour": "blue"}\n' * 20


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
        counts = [
            f'thresher_shadow_learned_total{{model="{name}"}} 40.0\n' for name in ("-", "ftrl", "again")
        ]
        until(lambda: all(one in figures(serving) for one in counts))
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
    return declared(LearningOptions)[name].kind.read(text)


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
    found = settings_of(settle(LearningOptions, {**read, "shadow": both}).but(most_pending=7))
    assert (found.wait, found.unlabelled, found.keep_bytes, found.keep_seconds) == (
        *(5400, "negative", 1_500_000_000, None),
    )
    assert (found.snapshots.rows, found.snapshots.seconds) == (500, float("inf"))
    assert (found.most_kept, found.shadows) == (7, {"a": "ftrl", "b": "sgd"})
    assert settings_of(settle(LearningOptions, {}).but(most_pending=1_000_000)) == Settings()


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


class _Server(ThreadingHTTPServer):
    """Answers each request for the snapshot with what is next."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body, self.tag, self.status, self.length, self.location = b"", '"0"', 200, -1, ""
        self.asked = list[dict[str, str]]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        server.asked.append(dict(self.headers))
        same = self.headers.get("If-None-Match") == server.tag
        self.send_response(304 if same and server.status == 200 else server.status)
        self.send_header("ETag", server.tag)
        if server.location:
            self.send_header("Location", server.location)
        self.send_header("Content-Length", str(len(server.body) if server.length < 0 else server.length))
        self.end_headers()
        if not same:
            self.wfile.write(server.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server() as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    found = list[bytes]()
    for seed in (1, 2):
        path = tmp_path_factory.mktemp("models") / "a.model"
        thresher.train(stream(seed=seed, rows=20).chunk, passes=1).save(path)
        found.append(path.read_bytes())
    return found


def test_a_copy_is_as_the_server_has_it(server: _Server, models: list[bytes], tmp_path: Path) -> None:
    copy = tmp_path / "copy.model"
    follower = Follower(server.url, copy, token="secret")
    for number, body in enumerate(models):
        server.body, server.tag = body, f'"{number}"'
        assert follower.look()
        assert copy.read_bytes() == body
        assert not follower.look()
    assert all(one["Authorization"] == "Bearer secret" for one in server.asked)


def test_what_is_no_whole_model_replaces_nothing(server: _Server, models: Any, tmp_path: Path) -> None:
    copy = tmp_path / "copy.model"
    server.body = models[0]
    keep_fresh(Follower(server.url, copy), lambda: False, lambda line: None, once=True)
    broken = [(models[1][:-1], len(models[1]), 200), (b"<html>", -1, 200), (models[1], -1, 500)]
    header, tensors = model_file.from_bytes(models[1])
    endless = tensors | {"weights.values": np.full_like(tensors["weights.values"], np.inf)}
    broken += [(b"", -1, 429), (model_file.as_bytes(header, endless), -1, 200)]
    for server.body, server.length, server.status in broken:
        with pytest.raises(LostError):
            Follower(server.url, copy).look()
        assert copy.read_bytes() == models[0]
        assert [*tmp_path.iterdir()] == [copy]


ROWS = [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}] * 5


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        (ROWS, [0, 1] * 5, ""),
        (ROWS, [1.5, 2] * 5, "other labels"),
        (ROWS, ["no", "yes"] * 5, "other labels"),
        ([{"a": 1.0}] * 10, [0, 1] * 5, "other features .without column 'b'."),
        ([{**one, "c": 1} for one in ROWS], [0, 1] * 5, "other features .with column 'c'."),
        ([{"a": "u", "b": "x"}] * 10, [0, 1] * 5, "other features .column 'a' categorical, not numeric."),
    ],
)
def test_other_rows_are_refused(server: _Server, tmp_path: Path, rows: Any, labels: Any, words: str) -> None:
    copy, other = tmp_path / "copy.model", tmp_path / "other.model"
    loss = "squared" if labels[0] == 1.5 else "logistic"
    for path, given in ((copy, (ROWS, [0, 1] * 5, "logistic")), (other, (rows, labels, loss))):
        with not_compiled():
            table = pa.Table.from_pylist(given[0]).append_column("label", pa.array(given[1]))
            thresher.train(table, rule="ftrl", loss=given[2], passes=1).save(path)
    before, server.body = copy.read_bytes(), other.read_bytes()
    with pytest.raises(FollowError, match=f"a model of {words}") if words else nullcontext():
        Follower(server.url, copy).look()
    assert copy.read_bytes() == (before if words else server.body)


def test_a_model_that_is_too_large_replaces_nothing(server: _Server, models: Any, tmp_path: Path) -> None:
    copy, server.body = tmp_path / "copy.model", models[0]
    with pytest.raises(FollowError, match="bytes: if it is yours, allow it with --most-model"):
        Follower(server.url, copy, most=len(models[0]) - 1).look()
    assert not [*tmp_path.iterdir()]
    assert Follower(server.url, copy, most=len(models[0])).look()


def test_the_token_goes_to_no_other_server(server: _Server, tmp_path: Path) -> None:
    with _Server() as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        server.status, server.location = 302, other.url
        with pytest.raises(LostError, match="status 302"):
            Follower(server.url, tmp_path / "copy", token="secret").look()
        assert not other.asked
        other.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "words"), [(401, "wants a token"), (404, "not a server of thresher")])
def test_what_will_not_get_better_ends(server: _Server, tmp_path: Path, status: int, words: str) -> None:
    server.status = status
    with pytest.raises(FollowError, match=words):
        keep_fresh(Follower(server.url, tmp_path / "copy"), lambda: False, lambda line: None)


def test_a_server_that_is_away_is_asked_again(server: _Server, models: list[bytes], tmp_path: Path) -> None:
    said, turns = list[str](), iter([False, False, True])
    server.body, server.status = models[0], 503

    def wait() -> bool:
        server.status = 503 if len(said) < 1 or len(server.asked) < 2 else 200
        return next(turns)

    keep_fresh(Follower(server.url, tmp_path / "copy"), wait, said.append)
    assert said == [
        f"{server.url}/snapshot: status 503; asking again",
        f"{tmp_path / 'copy'} is as the server has it",
    ]


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(FollowError, match="refused"):
        keep_fresh(Follower("127.0.0.1:9", tmp_path / "copy"), lambda: False, lambda line: None, once=True)


@pytest.mark.parametrize("url", ["ftp://host", "file:///etc/passwd", "http://", ""])
def test_other_addresses_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(FollowError, match="not the address of a server"):
        Follower(url, tmp_path / "copy")
