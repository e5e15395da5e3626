"""Brokers that hang, are killed, or cannot be reached for a while, in the middle of what they send.

Also clusters whose partitions move to other brokers.
"""

import io
import itertools
import json
import signal
import subprocess
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from confluent_kafka import Producer

import thresher
from examples import nats_stream as nats_stream
from tests.brokers import (
    Cluster,
    KafkaBroker,
    NatsServer,
    Network,
    free_port,
    started_kafka,
    started_nats,
    written,
)
from tests.test_law_of_continuing import check_same
from tests.test_law_of_topics import trained
from tests.waiting import until
from thresher import DataError
from thresher.data.files import kafka as module
from thresher.data.files.topic_lines import TopicFile
from thresher.data.files.topics import settle_topic

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
@pytest.mark.parametrize("peer", ["kafka"], indirect=True)
def test_transactions(peer: Peer, tmp_path: Path) -> None:
    """Only what is committed is learned. The last offsets are those of a transaction that was aborted.

    This broker does not say which were, as others do in each answer with messages; so the network adds it.
    """
    rows = [json.dumps({"label": k % 2, "hour": k % 5, "colour": f"c{k}"}).encode() for k in range(30)]
    host = f"127.0.0.1:{peer.network.port}"
    producer = Producer({"bootstrap.servers": host, "transactional.id": "t", "linger.ms": 100})
    producer.init_transactions(20)
    aborted = list[int]()

    def sent(first: int, end: Callable[[], None]) -> None:
        producer.begin_transaction()
        for one in rows[first : first + 10]:
            producer.produce("rows", one, partition=0)
        producer.flush(20)
        end()

    def told(answer: bytes) -> bytes:
        if answer[16:32] != topic or len(answer) < 121:
            return answer
        first, producer = int.from_bytes(answer[70:78]), answer[113:121]
        there = [one for one in aborted if one + 10 >= first]
        entries = b"".join(producer + one.to_bytes(8) + b"\0" for one in there)
        return answer[:63] + bytes([1 + len(there)]) + entries + answer[64:]

    model: thresher.Model | None = None
    sent(0, producer.commit_transaction)
    topic = b64decode(settle_topic(peer.url).extent.id + "==")
    peer.network.change = told
    for k in (1, 2):
        aborted.append(settle_topic(peer.url).extent.end["0"])
        sent(10 * k, producer.abort_transaction)
        model = trained(peer.url, "jsonl", "ftrl", model)
        assert model.record.topics[0].end == {"0": 11 * (k + 1)}
    assert model is not None
    check_same(model, thresher.train(written(tmp_path / "a.jsonl", rows[:10]), rule="ftrl", passes=1))
    sent(20, producer.commit_transaction)
    model = thresher.train(peer.url, continue_from=model)
    lines = written(tmp_path / "b.jsonl", rows[:10] + rows[20:])
    check_same(model, thresher.train(lines, rule="ftrl", passes=1))


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


FETCH, LIST_OFFSETS = 1, 2
"""Kinds of requests"""
PASSING = 5, 6, 7, 9, 56, 74, 75, 78
"""Errors of brokers that end by themselves"""
FORBIDDEN = 29


def send(cluster: Cluster, topic: str, values: Sequence[Sequence[bytes]]) -> str:
    """Append values to the partitions of a topic; its URL."""
    producer = Producer({"bootstrap.servers": cluster.host, "batch.num.messages": 10, "linger.ms": 50})
    for partition, some in enumerate(values):
        for one in some:
            producer.produce(topic, one, partition=partition)
    assert producer.flush(20) == 0
    return f"kafka://{cluster.host}/{topic}"


def moved(cluster: Cluster, topic: str) -> None:
    cluster.do("partition_set_leader", topic, 0, 3)


def failed_over(cluster: Cluster, topic: str) -> None:
    cluster.do("broker_set_down", 2)
    Timer(0.3, moved, (cluster, topic)).start()
    Timer(0.6, cluster.do, ("broker_set_up", 2)).start()


def restarted(cluster: Cluster, topic: str) -> None:
    cluster.do("broker_set_down", 2)
    Timer(0.3, cluster.do, ("broker_set_up", 2)).start()


def failing(cluster: Cluster, topic: str) -> None:
    cluster.fail(FETCH, *PASSING)


@pytest.mark.parametrize(
    "trouble",
    [moved, *(pytest.param(one, marks=pytest.mark.hostile) for one in (failed_over, failing)), restarted],
)
def test_reading_goes_on_at_another_broker(
    cluster: Cluster, trouble: Callable[[Cluster, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 20)
    values = [b"%d %s" % (k, b"x" * 500) for k in range(COUNT)]
    url = send(cluster, topic := cluster.topic(1), [values])
    with TopicFile(url) as file:
        lines = io.BufferedReader(file, 1 << 12)
        found = lines.read(1 << 12)
        trouble(cluster, topic)
        assert found + lines.read() == b"".join(one + b"\n" for one in values)


@pytest.mark.usefixtures("plainly")
def test_a_run_begins_while_leaders_change(cluster: Cluster, tmp_path: Path) -> None:
    """Ends of partitions are asked for again, for a while; a model of two runs is that of a file."""
    rows = [json.dumps({"label": k % 2, "hour": k % 5, "colour": f"c{k % 3}"}).encode() for k in range(60)]
    url = send(cluster, cluster.topic(2), [rows[:20], rows[20:40]])
    cluster.fail(LIST_OFFSETS, *PASSING[:3])
    model = thresher.train(url, rule="ftrl")
    turns = [*itertools.chain(*zip(rows[:20], rows[20:40], strict=True))]
    check_same(model, thresher.train(written(tmp_path / "a.jsonl", turns), rule="ftrl", passes=1))
    cluster.fail(LIST_OFFSETS, FORBIDDEN)
    with pytest.raises(DataError, match="Topic authorization failed"):
        thresher.train(url, continue_from=model)


@pytest.mark.usefixtures("plainly")
def test_messages_that_the_broker_has_removed(cluster: Cluster) -> None:
    """Before a run and during one, which ends rather than leave any out."""
    rows = [json.dumps({"label": k % 2, "hour": k % 5}).encode() for k in range(60)]
    url = send(cluster, topic := cluster.topic(1), [rows[:20]])
    model = thresher.train(url, rule="ftrl")
    send(cluster, topic, [rows[20:]])
    with TopicFile(settle_topic(url, model.record.topics)) as file:
        cluster.do("partition_delete_records", topic, 0, 30)
        with pytest.raises(DataError, match=r"partition 0: .*Offset out of range"):
            file.readall()
    with pytest.raises(
        DataError, match="up to 10 messages that come next are gone: it begins at partition 0, offset 30"
    ):
        thresher.train(url, continue_from=model)
