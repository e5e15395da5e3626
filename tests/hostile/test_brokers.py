"""Brokers that hang, are killed, or cannot be reached for a while, in the middle of what they send."""

import io
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

import thresher
from tests.brokers import KafkaBroker, NatsServer, Network, free_port, started_kafka, started_nats
from thresher.data.files.topic_lines import TopicFile
from thresher.serving.bodies import Bodies
from thresher.serving.learning import MODEL
from thresher.serving.service import LearningService, Settings

pytestmark = pytest.mark.filterwarnings(  # nats-py drops connections that it could not make use of
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
AWAY = 1.5
"""Seconds"""
COUNT = 3000


class Peer:
    """A broker behind a network, with a topic."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self._port, self._folder = kind, free_port(), folder
        self.network = Network(self._port)
        self.process = self.start()
        host = f"127.0.0.1:{self.network.port}"
        if kind == "kafka":
            self._kafka = KafkaBroker(host)
            self.url = self._kafka.url(self._kafka.topic(1, "rows"))
        else:
            self._nats = NatsServer(f"127.0.0.1:{self._port}")
            self.url = f"nats://{host}/{self._nats.stream('ROWS')}"

    def start(self) -> subprocess.Popen[bytes]:
        if self.kind == "kafka":
            return started_kafka(self._port, self.network.port)
        return started_nats(self._port, self._folder)

    def send(self, values: list[Any]) -> None:
        if self.kind == "kafka":
            self._kafka.send("rows", [values])
        else:
            self._nats.send("ROWS.a", values)

    def close(self) -> None:
        self.network.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Peer]:
    found = Peer(request.param, tmp_path / "jetstream")
    yield found
    found.close()


def cut(peer: Peer) -> None:
    peer.network.cut()
    time.sleep(AWAY)
    peer.network.mend()


def hung(peer: Peer) -> None:
    peer.process.send_signal(signal.SIGSTOP)
    time.sleep(AWAY)
    peer.process.send_signal(signal.SIGCONT)


def killed(peer: Peer) -> None:
    peer.process.kill()
    peer.process.wait()
    peer.process = peer.start()


@pytest.mark.parametrize(
    ("peer", "trouble"),
    [
        ("kafka", cut),
        ("nats", cut),
        *(pytest.param(*one, marks=pytest.mark.hostile) for one in (("kafka", hung), ("nats", hung))),
        pytest.param("nats", killed, marks=pytest.mark.hostile),
    ],
    indirect=["peer"],
)
def test_reading_goes_on(peer: Peer, trouble: Callable[[Peer], None]) -> None:
    """The broker of Kafka keeps all in memory, so it is not killed."""
    values = [b"%d %s" % (k, b"x" * 500) for k in range(COUNT)]
    peer.send(values)
    begun, free = peer.network.bytes, threading.Event()

    def read() -> bytes:
        with TopicFile(peer.url) as file:
            lines = io.BufferedReader(file, 1 << 12)
            found = lines.read(1 << 12)
            free.wait()
            return found + lines.read()

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(read)
        until(lambda: peer.network.bytes - begun > 1 << 14)
        Timer(0.1, free.set).start()
        trouble(peer)
        assert found.result() == b"".join(one + b"\n" for one in values)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("peer", [pytest.param("kafka", marks=pytest.mark.hostile), "nats"], indirect=True)
def test_a_server_goes_on(peer: Peer, tmp_path: Path) -> None:
    """It learns from clients while the broker is away, then what that has; from Kafka a row of 20 MB too."""
    rows = [json.dumps({"label": k % 2, "hour": k % 5, "colour": f"c{k}"}).encode() for k in range(90)]
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(rows[::-1]))
    thresher.train(tmp_path / "rows.jsonl", passes=1).save(tmp_path / "m")
    peer.send(rows[:30])
    said = list[str]()
    service = LearningService(tmp_path / "m", tmp_path / "log", Settings(sources=[peer.url]), say=said.append)
    service.start()
    try:
        learned(service, 30)
        peer.network.cut()
        until(lambda: "trying again" in service.status().reason)
        if peer.kind == "kafka":
            peer.network.mend()
            peer.send([b'{"padding": "%s", "label": 1, "hour": 3}' % (b"x" * (20 << 20))])
            learned(service, 31)
            peer.network.cut()
        chunk = Bodies(service.model, 10).read(rows[30], "", labelled=True).chunk
        service.learn(chunk).result()
        peer.network.mend()
        peer.send(rows[31:])
        learned(service, 90 + (peer.kind == "kafka"))
        until(lambda: service.status().reason == "")
    finally:
        service.close()
    assert [one for one in said if "trying again" in one]
    thresher.train(tmp_path / "log", continue_from=tmp_path / "m").save(tmp_path / "again")
    assert (tmp_path / "log" / MODEL).read_bytes() == (tmp_path / "again").read_bytes()


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not met():
        assert time.monotonic() < end, "waited for a minute"
        time.sleep(0.02)


def learned(service: LearningService, count: int) -> None:
    until(lambda: service.status().learned == count)
