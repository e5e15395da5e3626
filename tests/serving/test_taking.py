"""Labelled rows of many clients, which are written together and answered one by one."""

import json
import re
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.serving.test_server import Serving, bodies, post, started, until_closed

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


def test_a_key_is_known_again_and_what_follows_rows_at_once_is_answered_after_them(
    learning: Serving,
) -> None:
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
