"""A process that is connected to Ray notices that the node has ended, and says so."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.fake_ray import FakeConnection, FakeRay, readers_of
from tests.data.samples import PACKERS
from tests.data.test_laws_of_sources import ALL, opened, read, written
from thresher.cluster import reader
from thresher.cluster.connection import LostRayError
from thresher.data.sources import reader as reading


class Server:
    def __init__(self, address: str) -> None:
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(address)
        self._listening.listen()
        self.address = address

    def end(self) -> None:
        self._listening.close()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    server = Server("raylet")
    yield server
    server.end()


def lives(line: FakeConnection) -> bool:
    try:
        with line.calling():
            return True
    except LostRayError:
        return False


def test_a_node_that_has_ended_is_not_asked(node: Server) -> None:
    ray = FakeRay()
    line = FakeConnection(ray, node.address)
    assert lives(line)
    with line.borrowed(ray.put([1])) as found:
        node.end()
    assert found == [1], "memory that is given back to a dead node ends this process"
    assert ray.ended
    with (
        pytest.raises(LostRayError, match=r"^the connection to Ray is lost: .* with resume=True$"),
        line.calling(),
    ):
        pytest.fail("Ray is called")
    line.close()


def test_an_error_because_the_node_ends_says_so(node: Server) -> None:
    line = FakeConnection(FakeRay(), node.address)
    node.end()
    with pytest.raises(LostRayError), line.calling():
        raise BrokenPipeError
    line.close()
    line = FakeConnection(FakeRay())
    with pytest.raises(BrokenPipeError), line.calling():
        raise BrokenPipeError
    line.close()


def test_without_a_socket_on_this_machine_nothing_is_watched(tmp_path: Path) -> None:
    line = FakeConnection(FakeRay(), str(tmp_path / "none"))
    assert lives(line)
    line.close()


@pytest.mark.parametrize("name", ["svmlight", "parquet"])
@pytest.mark.parametrize("after", [0, 3, 8])
def test_the_run_ends_when_the_node_does(
    node: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: int
) -> None:
    monkeypatch.setattr(reading, "PIECE_BYTES", 2000)
    monkeypatch.setattr(reading, "PIECE_ROWS", 60)
    monkeypatch.setattr(reader, "BATCH_BYTES", 1)
    sample = ALL[name]
    paths = [written(sample, tmp_path / f"{k}{sample.ending}", sample.mixed(300, 30, k)[0]) for k in range(2)]
    if sample.packed:
        paths[1].write_bytes(PACKERS["gzip"](paths[1].read_bytes()))
    ray, said, calls = FakeRay(), list[str](), iter(range(after))

    def dies(number: int, call: str) -> bool:
        if call == "next" and next(calls, None) is None:
            node.end()
        return False

    ray.dies = dies
    source = opened(sample, paths, threads=1)
    source.readers = readers_of(ray, said=said, connection=FakeConnection(ray, node.address))
    with pytest.raises(LostRayError):
        read(source)
    with pytest.raises(LostRayError):
        read(source)
    assert not said
    source.readers.close()
