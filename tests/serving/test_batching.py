"""Small requests that wait together."""

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from thresher.serving.batching import Answer, Batcher, BatchKind, Later, WaitingBody

KIND = BatchKind("/predict", "", "")


class Client:
    """Keeps what it is told."""

    client: tuple[str, int] | None = ("127.0.0.1", 1)

    def __init__(self) -> None:
        self.told = list[tuple[bytes, bytes]]()

    def answer(self, head: bytes, body: bytes) -> None:
        self.told.append((head, body))


@pytest.mark.parametrize("late", [False, True])
def test_a_fault_is_an_answer_to_all_who_wait(late: bool, capsys: pytest.CaptureFixture[str]) -> None:
    counted, broken = list[tuple[str, int, int]](), [True]
    done = Future[Any]()
    done.set_result(None)

    def answers() -> list[Answer]:
        raise KeyError("secret")

    def work(bodies: list[bytes], keys: list[str], kind: BatchKind) -> list[Answer] | Later:
        if not broken[0]:
            return [Answer(200, body) for body in bodies]
        return Later([done], answers) if late else answers()

    batcher = Batcher(work, lambda path, status, seconds: counted.append((path, status, len(seconds))))

    async def asked() -> list[Client]:
        clients = [Client() for _ in range(3)]
        for one in clients:
            batcher.add(KIND, WaitingBody(one, b"x", 0.0, ""))
        await asyncio.sleep(0.05)
        return clients

    clients = asyncio.run(asked())
    assert [len(one.told) for one in clients] == [1, 1, 1]
    assert all(one.told[0][0].startswith(b"HTTP/1.1 500 ") for one in clients)
    assert b"secret" not in clients[0].told[0][1]
    assert "fault: KeyError" in capsys.readouterr().err
    batcher.loop, broken[0] = None, False
    assert [one.told[0][1] for one in asyncio.run(asked())] == [b"x"] * 3
    assert counted == [("/predict", 500, 3), ("/predict", 200, 3)]
