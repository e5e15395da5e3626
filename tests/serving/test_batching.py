"""Requests that wait: small ones together, labelled rows for one write, readers for a turn."""

import asyncio
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import thresher
from tests.serving.test_server import Serving, bodies, post, started, until_closed
from thresher.serving.endpoints import Limits
from thresher.serving.errors import Answer, RefusedError
from thresher.serving.learning import MODEL, Gate
from thresher.serving.metrics import Metrics
from thresher.serving.predicting import BatchKind, Later, Predictions
from thresher.serving.protocol import Site
from thresher.serving.reading import NOTHING, HttpRequest
from thresher.serving.service import DEFAULTS, LearningService

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
        count_answers=lambda *given: None,
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


def in_line(gate: Gate) -> None:
    """Return once a reader waits."""
    while not gate._waiting:
        time.sleep(0.001)


@pytest.mark.parametrize("pauses", [False, True])
def test_a_reader_comes_before_the_next_turn_and_in_a_pause(pauses: bool) -> None:
    gate, order = Gate(patience=60), list[str]()  # as long as a busy machine needs to let a thread run

    def reads() -> None:
        with gate.reading():
            order.append("read")

    reader = threading.Thread(target=reads)
    with gate.learning():
        gate.pause()  # nobody waits
        reader.start()
        in_line(gate)
        order.append("first")
        if pauses:
            gate.pause()
            order.append("second")
    with gate.learning():
        order.append("last")
    reader.join()
    assert order == ["first", "read", *["second"] * pauses, "last"]


def test_readers_without_end_do_not_stop_learning() -> None:
    gate, over = Gate(), threading.Event()

    def reads() -> None:
        while not over.is_set():
            with gate.reading():
                time.sleep(0.0005)

    readers = [threading.Thread(target=reads) for _ in range(4)]
    for one in readers:
        one.start()
    for _ in range(10):
        with gate.learning():
            gate.pause()
    over.set()
    for one in readers:
        one.join()


GOOD, BAD = b'{"label": 1, "hour": 3, "colour": "red"}', b'{"label": "x", "hour": 3}'
BROKEN = b'{"label": '


@pytest.fixture
def learning(clicks: Path, tmp_path: Path) -> Iterator[Serving]:
    with started(clicks, tmp_path, "--learn", "--log", "log") as process:
        try:
            yield Serving(process)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()


def figure(serving: Serving, name: str) -> int:
    page = serving.ask("GET", "/metrics")[1].decode()
    return int(float(re.search(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)[1]))  # type: ignore[index]


def test_each_client_is_told_of_its_own_rows(learning: Serving) -> None:
    sent = [GOOD, b"\n".join([GOOD, BAD, GOOD]), BAD, BROKEN, b"\n".join([GOOD] * 3)]

    def asked(k: int) -> list[tuple[bytes, int, Any]]:
        key = {"idempotency_key": f"key {k}"} if k % 3 == 0 else {}
        path, found = "/learn", []
        for body in sent:
            status, told = learning.ask("POST", path, body, content_type="application/json", **key)
            found.append((body, status, json.loads(told)))
            key = {name: f"{one}+" for name, one in key.items()}
        return found

    with ThreadPoolExecutor(16) as pool:
        answers = [one for some in pool.map(asked, range(48)) for one in some]
    rows = list[int]()
    for body, status, told in answers:
        good, bad = body.count(GOOD), body.count(BAD)
        assert status == (200 if good else 400), told
        if good:
            assert (told["learned"], told["refused"], told["repeated"]) == (good, bad, False)
            assert [one["line"] for one in told["errors"]] == [2] * bad
            rows += range(told["first"], told["last"] + 1)
        else:
            assert told.keys() == {"error"}
    assert sorted(rows) == [*range(1, 48 * 6 + 1)]
    assert figure(learning, "thresher_sequence_total") == figure(
        learning, 'thresher_rows_total{fate="labelled"}'
    )
    assert figure(learning, 'thresher_requests_total{path="/learn",status="200"}') == 48 * 3


def test_a_key_is_known_again_and_what_follows_rows_at_once_is_answered_after_them(learning: Serving) -> None:
    for k, more in enumerate(({}, {}, {"content_encoding": "identity"})):  # which is answered alone
        told = learning.ask(
            "POST", "/learn", GOOD, content_type="application/json", idempotency_key="a", **more
        )[1]
        assert (json.loads(told)["first"], json.loads(told)["repeated"]) == (1, k > 0)
    client = learning.connect()
    client.sendall(post(GOOD) + post(GOOD, "/learn") + post(GOOD, "/learn") + post(GOOD))
    client.shutdown(socket.SHUT_WR)
    first, second, third, fourth = bodies(until_closed(client))
    assert first.keys() == fourth.keys() == {"probability"}
    assert [(one["first"], one["last"]) for one in (second, third)] == [(2, 2), (3, 3)]
    assert figure(learning, "thresher_sequence_total") == 3


@pytest.fixture
def service(clicks: Path, tmp_path: Path) -> Iterator[LearningService]:
    service = LearningService(clicks, tmp_path / "kept", DEFAULTS.but(most_pending=8))
    service.start()
    try:
        yield service
    finally:
        service.close()
    thresher.train(tmp_path / "kept", continue_from=clicks).save(tmp_path / "expected")
    assert (tmp_path / "kept" / MODEL).read_bytes() == (tmp_path / "expected").read_bytes()


def answered(predicting: Predictions, kind: BatchKind, sent: list[bytes]) -> list[tuple[int, Any]]:
    """The status and content of the answers to bodies that have come at one time, once they are given."""
    found = predicting.work(sent, [""] * len(sent), kind)
    while isinstance(found, Later):
        for one in found.work:
            with suppress(RefusedError):
                one.result()
        found = found.answers()
    return [(one.status, [json.loads(line) for line in one.body.splitlines()]) for one in found]


def row(name: str) -> bytes:
    return b'{"id": %s, "hour": 3, "colour": "red"}' % name.encode()


def test_rows_that_come_at_once_are_kept_together_and_learned_together(service: LearningService) -> None:
    predicting = Predictions(service, 100, Metrics(service))
    keep, label = BatchKind("/predict", "application/json", "", "id"), BatchKind("/label", "")
    alone = answered(predicting, BatchKind("/predict", "application/json"), [row("1")])[0][1][0]
    synced, sent = service.status().syncs, [row('"a"'), row('"b"') + b"\n" + row('"c"'), row("7"), row('"a"')]
    told = answered(predicting, keep, sent)
    ids = [[one["id"] for one in lines] for _, lines in told]
    assert ids == [["a"], ["b", "c"], ["7"], ["a"]]
    assert all(one["probability"] == alone["probability"] for _, lines in told for one in lines)
    assert (service.status().pending, service.status().syncs) == (4, synced + 1)

    odd = [
        row('"null"'),
        b'{"hour": 3}',
        row("null"),
        b"{",
        row('"x"') + b'\n{"id": "y", "hour": 3, "colour": []}',
    ]
    together = answered(predicting, keep, odd)  # nothing of which is read together
    assert [status for status, _ in together] == [200, 400, 400, 400, 200]
    assert service.status().pending == 4 + len({"null", "x"})

    told = answered(predicting, keep, [row("1"), row("2"), row("3")])  # only two of which have room
    assert [status for status, _ in told] == [200, 200, 429]

    sent = [b'{"id": "a", "label": 1}', b'{"id": "c", "label": -1}\n{"id": "?", "label": 1}']
    sent += [b'{"id": "b", "label": 1, "weight": 2}', b'{"id": "a", "label": 1}']
    synced = service.status().syncs
    told = answered(predicting, label, sent)
    expected = [(1, 1, 1, 0, []), (2, 2, 1, 0, ["?"]), (3, 3, 1, 0, []), (0, 0, 0, 1, [])]
    names = ["first", "last", "learned", "repeated", "unknown"]
    assert [(status, *(lines[0][name] for name in names)) for status, lines in told] == [
        (200, *one) for one in expected
    ]
    assert service.status().syncs == synced + 1

    told = answered(
        predicting, label, [b'{"id": "7", "label": 1}', b'{"id": "7", "label": "x"}', b'{"id": "1"}']
    )
    assert [status for status, _ in told] == [200, 400, 400]
    assert told[0][1][0]["learned"] == 1
    assert answered(predicting, label, [b"{", b"["])[1][0] == 400
