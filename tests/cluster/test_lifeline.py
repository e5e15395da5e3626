"""A process that is connected to Ray notices that the node or the head has ended, and goes on alone."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.fake_ray import FakeConnection, FakeRay, readers_of
from tests.data.samples import PACKERS
from tests.data.test_laws_of_sources import ALL, alike, opened, read, written
from thresher.cluster import connection, reader, readers
from thresher.cluster.connection import Lifeline, LostRayError
from thresher.data.sources import reader as reading


class Server:
    def __init__(self, family: int, address: Any) -> None:
        self._listening = socket.socket(family, socket.SOCK_STREAM)
        self._listening.bind(address)
        self._listening.listen()
        self.address = self._listening.getsockname()

    def end(self) -> None:
        self._listening.close()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    server = Server(socket.AF_UNIX, "raylet")
    yield server
    server.end()


def soon(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + 3
    while not true() and time.monotonic() < until:
        time.sleep(0.005)
    return true()


def test_calls_under_way_end_before_the_connection_does(node: Server) -> None:
    ended = threading.Event()
    line = Lifeline(ended.set)
    line.watch(node.address)
    with line.calling():
        node.end()
        assert soon(lambda: line.lost)
        assert not ended.wait(0.05)
    assert ended.wait(10)
    with pytest.raises(LostRayError), line.calling():
        pytest.fail("Ray is called")


def test_a_head_out_of_reach_for_long_has_ended(node: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "EVERY", 0.02)
    monkeypatch.setattr(connection, "WITHOUT_HEAD", 0.1)
    head, ended = Server(socket.AF_INET, ("127.0.0.1", 0)), threading.Event()
    line = Lifeline(ended.set)
    line.watch(node.address, f"127.0.0.1:{head.address[1]}")
    assert not ended.wait(0.25)
    head.end()
    assert ended.wait(10)
    assert line.lost


@pytest.mark.parametrize("head", ["", "127.0.0.1:1", "nonsense"])
def test_a_head_that_cannot_be_reached_from_here_is_not_watched(
    node: Server, monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    monkeypatch.setattr(connection, "EVERY", 0.01)
    monkeypatch.setattr(connection, "WITHOUT_HEAD", 0.05)
    ended = threading.Event()
    line = Lifeline(ended.set)
    line.watch(node.address, head)
    assert not ended.wait(0.15)
    line.close()
    assert not ended.wait(0.05)
    assert not line.lost


def test_without_a_socket_on_this_machine_nothing_is_watched(tmp_path: Path) -> None:
    line = Lifeline(lambda: pytest.fail("disconnected"))
    line.watch(str(tmp_path / "none"))
    with line.calling():
        assert not line.lost
    line.close()


@pytest.mark.parametrize("name", ["svmlight", "parquet"])
@pytest.mark.parametrize("after", [0, 3, 8])
def test_the_learner_goes_on_alone(
    node: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: int
) -> None:
    monkeypatch.setattr(reading, "PIECE_BYTES", 2000)
    monkeypatch.setattr(reading, "PIECE_ROWS", 60)
    monkeypatch.setattr(reader, "BATCH_BYTES", 1)
    monkeypatch.setattr(readers, "POLL", 0.01)
    sample = ALL[name]
    paths = [written(sample, tmp_path / f"{k}{sample.ending}", sample.mixed(300, 30, k)[0]) for k in range(2)]
    if sample.packed:
        paths[1].write_bytes(PACKERS["gzip"](paths[1].read_bytes()))
    plain = read(opened(sample, paths, threads=1))
    ray, said, calls = FakeRay(), list[str](), iter(range(after))
    connection = FakeConnection(ray, node.address)

    def dies(number: int, call: str) -> bool:
        if call == "next" and next(calls, None) is None:
            node.end()
            assert soon(lambda: connection.lost)
        return False

    ray.dies = dies
    source = opened(sample, paths, threads=1)
    source.readers = readers_of(ray, said=said, connection=connection)
    assert alike(read(source), plain)
    assert said == ["the connection to Ray is lost; this process goes on alone"]
    assert alike(read(source), plain), "another pass"
    assert len(said) == 1
    source.readers.close()
