"""Copies that follow a server are always whole models; a service does as its options say."""

import math
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import thresher
from tests.pages import blocks
from tests.serving.test_server import RED, Serving, started
from tests.streams import stream
from tests.waiting import until
from thresher.cli.main import status_of
from thresher.options.kinds import WrongValueError
from thresher.options.option import options_of
from thresher.options.serving import LearningOptions, Quantity
from thresher.serving.appending import MICRO
from thresher.serving.service import DEFAULTS, LearningService

LABELLED = b'{"label": 1, "hour": 3, "colour": "red"}\n{"label": 0, "hour": 4, "colour": "blue"}\n' * 20


def fetched(folder: Path, url: str) -> bool:
    """Whether the commands of the page have copied a model from a server into a folder."""
    (block,) = (one for one in blocks("docs/serving", "sh") if one.startswith("fetch() {"))
    function = block.partition("\nfetch\n")[0].replace("http://learner:8000", url)
    return subprocess.run(["sh", "-c", f"{function}\nfetch"], cwd=folder, check=False).returncode == 0


def figures(serving: Serving) -> str:
    return serving.ask("GET", "/metrics")[1].decode()


def test_a_replica_follows(clicks: Path, tmp_path: Path) -> None:
    learning = "--learn", "--log", tmp_path / "log", "--snapshot-every", "40"
    with started(clicks, tmp_path, *learning) as process:
        serving = Serving(process)
        url, copy = f"http://127.0.0.1:{serving.port}", tmp_path / "copy.model"
        assert fetched(tmp_path, url)
        with started(copy, tmp_path) as other:
            replica = Serving(other)
            before = serving.predict(RED)
            assert before == replica.predict(RED)
            assert serving.ask("POST", "/learn", LABELLED, content_type="application/json")[0] == 200
            until(lambda: fetched(tmp_path, url))
            assert serving.predict(RED) != before
            until(lambda: replica.predict(RED) == serving.predict(RED))
            other.send_signal(signal.SIGTERM)
            assert other.wait(20) == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def _read(name: str, text: str) -> Any:
    return options_of(LearningOptions)[name].kind.read(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("wait", text) for text in ("", "1", "0s", "-1h", "1e400h", "h", "1h30m", "inf", "10GB")),
        *(("keep", text) for text in ("10", "10 rows", "GB", "1.GB", "nan")),
    ],
)
def test_values_that_mean_nothing_are_refused(name: str, text: str) -> None:
    with pytest.raises(WrongValueError):
        _read(name, text)


def test_a_service_does_as_its_options_say(clicks: Path, tmp_path: Path) -> None:
    given = {"wait": "90m", "unlabelled": "negative", "keep": "1.5GB", "snapshot_every": "500"}
    read = {name: _read(name, text) for name, text in given.items()}
    assert read["wait"] == Quantity("seconds", 5400)
    for options, patience, kept, every, most in (
        (DEFAULTS, 3600, {"bytes": math.inf, "seconds": math.inf}, (1_000_000, 60), 1_000_000),
        (
            DEFAULTS.but(**read, most_pending=7),
            5400,
            {"bytes": 1.5e9, "seconds": math.inf},
            (500, math.inf),
            7,
        ),
    ):
        service = LearningService(clicks, tmp_path / f"log-{most}", options)
        service.start()
        try:
            assert (service._patience, service._keep) == (patience * MICRO, kept)
            assert service._learning._every == dict(zip(("rows", "seconds"), every, strict=True))
            assert (service.unlabelled, service._memory.most_kept) == (options["unlabelled"], most)
        finally:
            service.close()


def test_help_shows_amounts_as_they_are_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["serve", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("[default: 1m]", "[default: 1h]"):
        assert words in shown


class _Server(ThreadingHTTPServer):
    """Answers each request for the snapshot with what is next."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body, self.tag, self.status, self.length = b"", '"0"', 200, -1

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        same = self.headers.get("If-None-Match") == server.tag
        self.send_response(304 if same and server.status == 200 else server.status)
        self.send_header("ETag", server.tag)
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
    for number, body in enumerate(models):
        server.body, server.tag = body, f'"{number}"'
        assert fetched(tmp_path, server.url)
        assert not fetched(tmp_path, server.url)
        assert (tmp_path / "copy.model").read_bytes() == body


def test_what_is_not_whole_replaces_nothing(server: _Server, models: Any, tmp_path: Path) -> None:
    server.body = models[0]
    assert fetched(tmp_path, server.url)
    for server.tag, server.length, server.status in (
        ('"1"', len(models[1]) + 1, 200),
        ('"0"', -1, 200),
        ('"1"', -1, 500),
    ):
        server.body = models[1]
        assert not fetched(tmp_path, server.url)
        assert (tmp_path / "copy.model").read_bytes() == models[0]
    server.tag, server.length, server.status = '"1"', -1, 200
    assert fetched(tmp_path, server.url)
    assert (tmp_path / "copy.model").read_bytes() == models[1]


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert not fetched(tmp_path, f"http://127.0.0.1:{port}")
    assert not (tmp_path / "copy.model").exists()
