"""A server on a full disk, stopped, started twice, with thousands of connections, and asked for nonsense."""

import http.client
import json
import random
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import Popen

import pytest

from tests.brokers import free_port
from tests.commands import said
from tests.hostile.conftest import SmallDisk, Tried
from tests.hostile.test_serving_kills import LINES, answers, check, clicks, serving
from tests.serving.test_server import limited
from tests.waiting import until

ROW = '{"label": 1, "colour": "red", "who": "a"}\n'
IDLE = 2000
MEDIA = (LINES, "application/json", "text/csv", "text/x-vw", "text/x-svmlight")
ARROW = "application/vnd.apache.arrow.stream"


def asked(port: int, path: str, body: str | bytes, media: str = LINES) -> tuple[int, bytes]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("POST", path, body, {"content-type": media})
    told = client.getresponse()
    found = told.status, told.read()
    client.close()
    return found


def memory(process: Popen[bytes]) -> int:
    (line,) = (x for x in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmRSS" in x)
    return int(line.split()[1]) >> 10


def ended(process: Popen[bytes]) -> str:
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    return said(err)


def test_a_full_disk_stops_learning_until_there_is_room(folder: Path, small_disk: SmallDisk) -> None:
    model, port, disk = clicks(folder), free_port(), small_disk(1 << 20)
    (folder / "log").symlink_to(disk)
    filler = disk / "filler"
    with serving(model, folder, port) as process:
        answers(port, process)
        assert asked(port, "/learn", ROW)[0] == 200
        with suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 12))
        refused = 0
        for _ in range(200):  # until what is left of a page is full too
            status, told = asked(port, "/learn", ROW * 20)
            refused += status == 503
            assert status in (200, 503), told
        assert refused > 100
        assert b"the disk is full" in told
        assert asked(port, "/predict", ROW)[0] == 200
        filler.unlink()
        until(lambda: asked(port, "/learn", ROW)[0] == 200)
        ended(process)
    check(model, folder, [])


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many open files as this process may have."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    if before[1] < IDLE + 500:
        pytest.skip("too few files may be open")
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_thousands_of_idle_connections(folder: Path, many_files: None, tried: Tried) -> None:
    model, port = clicks(folder), free_port()
    with (
        serving(model, folder, port, code=limited(f"connections={IDLE + 10}")) as process,
        ExitStack() as stack,
    ):
        answers(port, process)
        before = memory(process)
        for _ in range(IDLE):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        assert asked(port, "/predict", ROW)[0] == asked(port, "/learn", ROW)[0] == 200
        assert memory(process) - before < 60
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        turned_away = socket.create_connection(("127.0.0.1", port), timeout=30)
        assert turned_away.recv(100).startswith(b"HTTP/1.1 429 ")
        turned_away.close()
        stack.close()
        ended(process)
    tried(IDLE)


def nonsense(chance: random.Random) -> bytes:
    """Bytes that are nearly a request."""
    body = chance.choice((ROW.encode(), b"{", b"", b"1 1:1\n", chance.randbytes(50)))
    text = bytearray(
        b"%b %b HTTP/1.%d\r\nhost: a\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b"
        % (
            chance.choice((b"GET", b"POST", b"PUT", b"HEAD", b"OPTIONS", b"X")),
            chance.choice((b"/predict", b"/learn", b"/label", b"/metrics", b"*")),
            chance.choice((0, 1, 1, 1, 9)),
            chance.choice((*MEDIA, ARROW, "")).encode(),
            len(body) + chance.choice((0, 0, 0, -1, 5)),
            body,
        )
    )
    for _ in range(chance.choice((0, 1, 3, 30))):
        text[chance.randrange(len(text))] = chance.randrange(256)
    return bytes(text[: chance.randrange(len(text))] if chance.random() < 0.2 else text)


def hurled(folder: Path, count: int, tried: Tried) -> None:
    """Send nonsense: each is answered or cut off, no fault is told, and memory is bounded."""
    model, port = clicks(folder), free_port()
    with serving(model, folder, port, code=limited("timeout=1.0")) as process:
        answers(port, process)
        assert asked(port, "/learn", ROW)[0] == 200
        before = memory(process)
        for k in range(count):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client, suppress(OSError):
                client.sendall(nonsense(random.Random(k)))
                if k % 20 == 0:
                    client.shutdown(socket.SHUT_WR)
                    told = client.recv(1 << 16)
                    assert told[:9] in (b"", b"HTTP/1.1 ")
                    assert told[9:12] != b"500"
        assert asked(port, "/predict", ROW)[0] == 200
        assert memory(process) - before < 60
        assert "fault" not in ended(process)
    check(model, folder, [])
    tried(count)


def test_bytes_that_are_no_request(folder: Path, tried: Tried) -> None:
    hurled(folder, 500, tried)


@pytest.mark.hostile
@pytest.mark.timeout(3600)
def test_very_many_bytes_that_are_no_request(folder: Path, tried: Tried) -> None:
    hurled(folder, 50_000, tried)


BODIES = [
    *(b"", b"\0", b"\xff\xfe", b"[", b"[]", b"{}", b"null", b"1e999", b'{"label": 1e999}'),
    *(b'{"label": {}}', b'{"label": 1, "who": ["a", 3, null]}', b'{"id": "x", "label": 1}'),
    *(b'{"id": "x", "label": "\xd8"}', b'{"id": 3, "label": -1e400, "weight": "a"}'),
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"\n" * 100_000,
    b"a,b,c\n1,2\n",
    b"label,colour,who\n" + b"9" * 5000 + b",red,a\n",
    *(b'label,colour,who\n1,"red,a\n', b"1 | a:1e40 b:nan\n", b"1 99999999999999999999:1\n"),
    *(b"\xff\xff\xff\xff\x00\x00\x00\x00", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b'{"inputs": []}'),
    *(b'{"model": 3}', b'{"model": "\\u0000"}'),
]


def test_bodies_of_every_wrong_kind(folder: Path, tried: Tried) -> None:
    model, port = clicks(folder), free_port()
    paths = ("/predict", "/predict?ids=who", "/learn", "/label")
    with serving(model, folder, port) as process:
        answers(port, process)
        assert asked(port, "/learn", ROW)[0] == 200
        for path in paths:
            for media in (*MEDIA, ARROW, "", "a/b", "\x7f;=;"):
                for body in BODIES:
                    status, told = asked(port, path, body, media)
                    assert status < 500, (path, media, body[:100], told)
                    assert status == 200 or "error" in json.loads(told.splitlines()[0])
        assert asked(port, "/predict", ROW)[0] == 200
        assert "fault" not in ended(process)
    check(model, folder, [])
    tried(len(paths) * (len(MEDIA) + 4) * len(BODIES))
