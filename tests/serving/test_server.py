"""The process: its port, limits on clients, and how it ends."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.commands import RUN, said, start
from thresher.cli.main import status_of

READY = re.compile(rb"thresher: serving \S+ at http://127\.0\.0\.1:(\d+)\n")
CLIENTS = list[socket.socket]()
RED, BLUE = b'{"hour": 3, "colour": "red"}', b'{"hour": 3, "colour": "blue"}'


class Serving:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, told = process, b""
        assert process.stderr is not None
        while not (found := READY.search(told)):
            line = process.stderr.readline()
            assert line, told.decode()
            told += line
        self.port = int(found[1])

    def connect(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port))
        client.settimeout(20)
        CLIENTS.append(client)
        return client

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        client.request(method, path, body, named)
        told = client.getresponse()
        found = told.status, told.read()
        client.close()
        return found

    def predict(self, body: bytes) -> float:
        status, told = self.ask("POST", "/predict", body, content_type="application/json")
        assert status == 200
        found: float = json.loads(told)["probability"]
        return found

    def connections(self) -> float:
        page = self.ask("GET", "/metrics")[1]
        return float(re.search(rb"^thresher_connections (\S+)$", page, re.MULTILINE)[1])  # type: ignore[index]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while CLIENTS:
        CLIENTS.pop().close()


def post(body: bytes, path: str = "/predict", *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: a", "content-type: application/json", *headers]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


def until_closed(client: socket.socket) -> bytes:
    found = b""
    while part := client.recv(65_536):
        found += part
    return found


def bodies(text: bytes) -> list[Any]:
    """The bodies of several answers, each of which is JSON."""
    found = list[Any]()
    while text:
        head, _, rest = text.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
        found.append(json.loads(rest[:length]))
        text = rest[length:]
    return found


def limited(limits: str) -> str:
    """Code that serves with other limits."""
    return f"from thresher.serving import server\nserver.LIMITS = server.LIMITS._replace({limits})\n{RUN}"


@contextmanager
def started(
    clicks: Path, folder: Path, *options: object, code: str = ""
) -> Iterator[subprocess.Popen[bytes]]:
    with start("serve", clicks, "--port", 0, *options, folder=folder, code=code) as process:
        try:
            yield process
        finally:
            process.kill()  # does nothing once it has ended


@pytest.fixture(scope="module")
def serving(clicks: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    code = limited("rows=1000, connections=20, timeout=1.0")
    with started(clicks, tmp_path_factory.mktemp("serving"), "--most-body", "100KB", code=code) as process:
        yield Serving(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        told = "thresher: draining: no new connections; requests under way are answered\n"
        assert said(process.stderr.read()) == told


def test_a_body_that_is_announced_is_asked_for(serving: Serving) -> None:
    client, text = serving.connect(), post(RED, "/predict", "expect: 100-continue", "connection: close")
    client.sendall(text[: -len(RED)])
    assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(RED)
    assert bodies(until_closed(client)) == [{"probability": serving.predict(RED)}]
    client = serving.connect()
    client.sendall(post(RED, "/nowhere", "expect: 100-continue")[: -len(RED)])
    assert until_closed(client).startswith(b"HTTP/1.1 404 ")


def test_requests_that_wait_together_get_their_own_answers(serving: Serving) -> None:
    red, blue = serving.predict(RED), serving.predict(BLUE)
    wrong = b'{"hour": '
    rounds = [RED, BLUE, wrong, RED + b"\n" + BLUE] * 4

    def asked(body: bytes) -> list[tuple[int, bytes]]:
        return [serving.ask("POST", "/predict", body, content_type="application/json") for _ in range(10)]

    with ThreadPoolExecutor(len(rounds)) as pool:
        for body, answers in zip(rounds, pool.map(asked, rounds), strict=True):
            for status, told in answers:
                found = [json.loads(line) for line in told.splitlines()]
                expected = {RED: [red], BLUE: [blue], RED + b"\n" + BLUE: [red, blue]}.get(body)
                if expected is None:
                    assert "error" in found[0]
                else:
                    assert (status, [one["probability"] for one in found]) == (200, expected)


def test_requests_behind_others_find_what_these_left(clicks: Path, tmp_path: Path) -> None:
    row = b'{"id": "%d", "hour": 3, "colour": "red", "label": %d}'
    label = b'{"id": "%d", "label": 1}'
    with started(clicks, tmp_path, "--learn", "--log", "log") as process:
        client = Serving(process).connect()
        sent = [
            post(row % (1, 0), "/predict?ids=id"),
            post(label % 1, "/label"),
            post(row % (2, 1) + b"\n" + row % (3, 0), "/learn"),
            post(row % (4, 7), "/learn"),  # refused: no such label
            post(row % (4, 0), "/learn", "content-encoding: identity"),  # answered alone
            post(row % (5, 1), "/learn"),
            post(row % (6, 0), "/learn", "content-length: 1"),  # cannot be told from the next
            post(row % (7, 0), "/learn"),
        ]
        client.sendall(b"".join(sent))
        text = until_closed(client)
    found = bodies(text)
    assert (found[0]["id"], found[1]["learned"], found[1]["unknown"]) == ("1", 1, [])
    assert [one.get("first") for one in found[1:]] == [1, 2, None, 4, 5, None]
    assert [one.get("last") for one in found[1:]] == [1, 3, None, 4, 5, None]
    assert text.count(b"connection: close") == 1


@pytest.mark.parametrize(
    "sent",
    [
        *(b"", b"POST /pre", b"POST /predict HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n123"),
        b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n",
    ],
    ids=["nothing", "half a head", "half a body", "a request and then nothing"],
)
def test_slow_clients_are_cut_off(serving: Serving, sent: bytes) -> None:
    client = serving.connect()
    client.sendall(sent)
    begun = time.monotonic()
    told = until_closed(client)
    assert 0.5 < time.monotonic() - begun < 10
    assert told[:12] == (
        b"HTTP/1.1 408" if b"123" in sent or b"pre" in sent else b"HTTP/1.1 200"[: len(told)]
    )


def test_a_client_that_does_not_read_is_cut_off(serving: Serving) -> None:
    client, text = serving.connect(), post(b"\n".join([RED] * 900)) * 400
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sending = threading.Thread(target=sent_until_reset, args=(client, text))
    sending.start()
    begun = time.monotonic()
    while serving.connections() > 1 or time.monotonic() - begun < 1:
        assert time.monotonic() - begun < 20
        time.sleep(0.1)
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
    sending.join()
    assert serving.predict(RED)


def sent_until_reset(client: socket.socket, text: bytes) -> None:
    with suppress(OSError):
        client.sendall(text)


def test_there_are_not_too_many_connections(serving: Serving) -> None:
    time.sleep(1.6)  # those of other tests are gone
    others = [serving.connect() for _ in range(20)]
    assert serving.connect().recv(100).startswith(b"HTTP/1.1 429 ")
    others[0].sendall(post(RED, "/predict", "connection: close"))
    assert until_closed(others[0]).startswith(b"HTTP/1.1 200 ")
    assert serving.predict(RED)


def test_a_request_under_way_is_answered_before_the_end(clicks: Path, tmp_path: Path) -> None:
    with started(clicks, tmp_path) as process:
        serving = Serving(process)
        idle, client, text = serving.connect(), serving.connect(), post(RED)
        client.sendall(text[:-5])
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert until_closed(idle) == b""
        with pytest.raises(ConnectionError):
            serving.connect()
        client.sendall(text[-5:])
        told = until_closed(client)
        assert told.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in told
        assert process.wait(20) == 0


def test_a_token(clicks: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    with started(clicks, tmp_path, "--token", "token") as process:
        serving = Serving(process)
        for more in ({}, {"authorization": "Bearer s3cre"}, {"authorization": "Basic s3cret"}):
            assert serving.ask("POST", "/predict", RED, content_type="application/json", **more)[0] == 401
        given = {"authorization": "bearer s3cret", "content_type": "application/json"}
        assert serving.ask("POST", "/predict", RED, **given)[0] == 200
        assert serving.ask("GET", "/health/live")[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert b"s3cret" not in process.stderr.read()


def test_what_prevents_a_start(clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").write_text("\n")
    together = "use --learn and --log DIR"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for words, told in (
            (f"{clicks} --port {port}", f"cannot listen at 127.0.0.1, port {port}: address already in use"),
            (f"{clicks} --token {tmp_path / 'empty'}", "empty"),
            (f"{clicks} --learn", f"{together} together"),
            (f"{clicks} --wait 1h", f"--wait is for a server that learns: {together}\n"),
            (f"{tmp_path / 'none.model'}", "No such file"),
            (f"{clicks} --most-body 0", "--most-body: expected a size such as 64MB"),
        ):
            assert status_of(["serve", *words.split()]) in (1, 2)
            assert told in capsys.readouterr().err


def test_the_extra_may_be_missing(
    clicks: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    for name in ("endpoints", "metrics", "predicting"):
        monkeypatch.delitem(sys.modules, f"thresher.serving.{name}", raising=False)
    monkeypatch.delitem(sys.modules, "thresher.serving.server", raising=False)
    monkeypatch.delattr("thresher.serving.server", raising=False)
    assert status_of(["serve", str(clicks)]) == 1
    assert capsys.readouterr().err.endswith(
        "thresher serve needs prometheus-client: pip install prometheus-client\n"
    )
