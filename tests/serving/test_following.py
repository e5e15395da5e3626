"""A copy that follows a server is always a whole model."""

from __future__ import annotations

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
from tests.plain import not_compiled
from tests.streams import stream
from thresher.learning.files import model_file
from thresher.serving.following import Follower, FollowError, LostError, keep_fresh


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


def test_what_is_no_whole_model_replaces_nothing(
    server: _Server, models: list[bytes], tmp_path: Path
) -> None:
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
def test_a_model_of_other_rows_replaces_nothing(
    server: _Server, tmp_path: Path, rows: list[Any], labels: list[Any], words: str
) -> None:
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


def test_a_model_that_is_too_large_replaces_nothing(
    server: _Server, models: list[bytes], tmp_path: Path
) -> None:
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
