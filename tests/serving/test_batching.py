"""Small requests that wait together."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from thresher.serving.endpoints import Limits
from thresher.serving.errors import Answer
from thresher.serving.predicting import BatchKind, Later
from thresher.serving.protocol import Site
from thresher.serving.reading import NOTHING, HttpRequest

KIND = BatchKind("/predict", "", "")


@pytest.mark.parametrize("late", [False, True])
def test_a_fault_is_an_answer_to_all_who_wait(late: bool, capsys: pytest.CaptureFixture[str]) -> None:
    broken, done = [True], Future[Any]()
    done.set_result(None)

    def answers() -> list[Answer]:
        raise KeyError("secret")

    def work(bodies: list[bytes], keys: list[str], kind: BatchKind) -> list[Answer] | Later:
        if not broken[0]:
            return [Answer(200, body) for body in bodies]
        return Later([done], answers) if late else answers()

    told = list[Answer]()
    some: Any = SimpleNamespace(
        work=work,
        kind_of=lambda asked: KIND,
        answer=told.append,
        asked=work,
        **dict.fromkeys(["watch", "answered"], lambda *given: None),
    )
    site = Site(some, some, Limits(10, 10, 10, 1.0), some)

    async def asked() -> list[Answer]:
        told.clear()
        for _ in range(3):
            site.take(HttpRequest(some, NOTHING, b"x", 0.0))
        await asyncio.sleep(0.05)
        return told

    assert [one.status for one in asyncio.run(asked())] == [500] * 3
    assert b"secret" not in told[0].body
    assert "fault: KeyError" in capsys.readouterr().err
    broken[0] = False
    assert [one.body for one in asyncio.run(asked())] == [b"x"] * 3
