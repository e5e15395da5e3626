"""A server killed at any moment, with clients who ask again until they are answered.

What was acknowledged is in its log, once, where the answer said; and its model is what `train` makes of that
log, byte for byte.
"""

import http.client
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import thresher
from tests.brokers import KafkaBroker, free_port, written
from tests.brokers import kafka as kafka
from tests.commands import run, start
from tests.hostile.conftest import Tried
from tests.pages import ROOT
from thresher.data.features.murmur import hash_bytes, seed_of
from thresher.data.log.records import ROWS
from thresher.data.log.segments import records_from
from thresher.serving.learning import MODEL

ROWS_AT_START = "".join(f"{k % 2},{'red' if k % 2 else 'blue'},start{k}\n" for k in range(60))
KILLS, MANY_KILLS, ROUND = 4, 1000, 100
LONGEST = 0.25
"""Seconds from a start, or from the first answer after it, to a kill"""
WAIT = 3
"""Seconds that a label is waited for, and that the id of a row is known once it is learned"""
LINES = "application/x-ndjson"
CONSUMER = ROOT / "examples" / "topic_to_server.py"


def clicks(folder: Path) -> Path:
    """A model of two words, one of which decides."""
    (folder / "clicks.csv").write_text(f"label,colour,who\n{ROWS_AT_START}")
    thresher.train(folder / "clicks.csv", passes=1, l1=0.01).save(folder / "clicks.model")
    return folder / "clicks.model"


class Asker:
    """A client who asks until there is an answer, and is told how often a connection broke."""

    def __init__(self, port: int) -> None:
        self.port, self._client = port, http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self.broken, self.patience = 0, math.inf
        """`patience`: seconds until it gives up; a busy machine may take a minute for a start"""

    def close(self) -> None:
        self._client.close()

    def ask(self, path: str, body: str, **headers: str) -> Any:
        """The lines of the answer."""
        named = {"content-type": LINES, **{name.replace("_", "-"): one for name, one in headers.items()}}
        begun = time.monotonic()
        while True:
            try:
                self._client.request("POST", path, body, named)
                answer = self._client.getresponse()
                told = answer.read()
            except (OSError, http.client.HTTPException):
                self._client.close()
                self.broken += 1
                if time.monotonic() - begun > self.patience:
                    raise
                time.sleep(0.01)
                continue
            if answer.status == 200:
                return [json.loads(line) for line in told.splitlines()]
            assert answer.status in (429, 503), (answer.status, told)
            time.sleep(0.01)


class Acknowledged(NamedTuple):
    """Rows, by their unique word, and where the server said that they are; 0 if it did not say."""

    words: list[str]
    first: int
    positive: bool = False
    """whether the server was told so, and said that the row waits"""


Work = Callable[[Asker, int, random.Random], list[Acknowledged]]


def row(word: str, chance: random.Random) -> dict[str, Any]:
    return {"label": chance.randrange(2), "colour": chance.choice(("red", "blue")), "who": word}


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in rows)


def labelled(asker: Asker, number: int, chance: random.Random) -> list[Acknowledged]:
    """Send labelled rows with a key; sometimes send them again."""
    words = [f"{number}.{k}" for k in range(chance.randint(1, 4))]
    body, key = lines([row(word, chance) for word in words]), f"key {number}"
    (told,) = asker.ask("/learn", body, idempotency_key=key)
    assert told["last"] - told["first"] + 1 == len(words)
    if chance.random() < 0.2:
        (again,) = asker.ask("/learn", body, idempotency_key=key)
        assert (again["first"], again["last"], again["repeated"]) == (told["first"], told["last"], True)
    return [Acknowledged(words, told["first"])]


def late(asker: Asker, number: int, chance: random.Random) -> list[Acknowledged]:
    """Predict rows, then send their labels one by one."""
    words = [f"{number}.{k}" for k in range(2)]
    rows = [{"event": word, **row(word, chance)} for word in words]
    told = asker.ask("/predict?ids=event", lines(rows))
    assert [one["id"] for one in told] == words
    found = list[Acknowledged]()
    for word in words:
        (told,) = asker.ask("/label", lines([{"id": word, "label": chance.randrange(2)}]))
        assert (told["learned"] + told["waiting"] + told["repeated"], told["unknown"]) == (1, [])
        found.append(Acknowledged([word], told["first"]))
    return found


def clicked(asker: Asker, number: int, chance: random.Random) -> list[Acknowledged]:
    """Predict rows where no label is negative, and tell that one of them is positive."""
    words, positive = [f"{number}.{k}" for k in range(2)], chance.randrange(2)
    begun = time.monotonic()
    asker.ask("/predict?ids=event", lines([{"event": word, **row(word, chance)} for word in words]))
    (told,) = asker.ask("/label", lines([{"id": words[positive], "label": 1}]))
    assert (told["learned"], told["waiting"] + told["repeated"] + len(told["unknown"])) == (0, 1)
    if time.monotonic() - begun > WAIT:  # what was sent again so late may have been learned before
        return []
    waits = not told["unknown"]
    return [Acknowledged([word], 0, waits and k == positive) for k, word in enumerate(words)]


def predicted(asker: Asker, number: int, chance: random.Random) -> list[Acknowledged]:
    """Predict rows, one of them without a label."""
    rows = [row(f"{number}", chance), {"colour": "red", "who": "start3"}]
    assert [one.keys() for one in asker.ask("/predict", lines(rows))] == [{"probability"}] * 2
    return []


class Clients:
    """Threads that do some work again and again."""

    def __init__(self, port: int, works: Sequence[Work]) -> None:
        self.acknowledged, self.errors = list[Acknowledged](), list[BaseException]()
        self._ended, self._count = threading.Event(), len(works)
        self.askers = [Asker(port) for _ in works]
        self._threads = [
            threading.Thread(target=self._work, args=(work, asker, k))
            for k, (work, asker) in enumerate(zip(works, self.askers, strict=True))
        ]
        for one in self._threads:
            one.start()

    def _work(self, work: Work, asker: Asker, thread: int) -> None:
        number = thread
        try:
            with closing(asker):
                while not self._ended.is_set():
                    self.acknowledged += work(asker, number, random.Random(number))
                    number += self._count
        except BaseException as error:
            self.errors.append(error)
            raise

    def end(self, patience: float = 60.0) -> None:
        """Let each finish what it does."""
        self._ended.set()
        for asker in self.askers:
            asker.patience = patience
        for one in self._threads:
            one.join()


def answers(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers."""
    while process.poll() is None:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        with closing(client), suppress(OSError, http.client.HTTPException):
            client.request("GET", "/health/live")
            if client.getresponse().status == 200:
                return
        time.sleep(0.005)
    raise AssertionError(process.stderr.read().decode())


@contextmanager
def serving(
    model: Path, folder: Path, port: int, *options: object, code: str = ""
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that learns, and is killed at the end if it has not ended."""
    words = ("serve", model, "--port", port, "--learn", "--log", "log")
    with start(*words, *options, folder=folder, code=code) as process:
        try:
            yield process
        finally:
            process.kill()


def learned_words(log: Path, words: list[str]) -> list[tuple[str, bool]]:
    """The unique words of the rows in a log, in order, and whether they are positive."""
    seed = seed_of("who")
    named = {hash_bytes(word.encode(), seed): word for word in words}
    found = list[tuple[str, bool]]()
    for some in records_from(log):
        for one in some:
            if one.head.kind == ROWS:
                chunk = one.rows()
                for k in range(len(chunk)):
                    keys = chunk.keys[chunk.indptr[k] : chunk.indptr[k + 1]].tolist()
                    word = next((named[key] for key in keys if key in named), "not acknowledged")
                    found.append((word, chunk.labels.item(k) > 0))
    return found


def check(model: Path, folder: Path, acknowledged: list[Acknowledged]) -> None:
    """All that was acknowledged is in the log, once and where it should be; the model is that of the log."""
    log, words = folder / "log", [word for one in acknowledged for word in one.words]
    pairs = learned_words(log, words)
    assert {word for one in acknowledged if one.positive for word in one.words} <= {
        word for word, positive in pairs if positive
    }
    found = [word for word, _ in pairs]
    counts = Counter(found)
    assert {word: counts[word] for word in words if counts[word] != 1} == {}
    for one in acknowledged:
        if one.first:
            assert found[one.first - 1 : one.first - 1 + len(one.words)] == one.words
    thresher.train(log, continue_from=model).save(folder / "again.model")
    assert (log / MODEL).read_bytes() == (folder / "again.model").read_bytes()


def waiting_at(port: int) -> float:
    """How many rows wait."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with closing(client):
        client.request("GET", "/metrics")
        return float(client.getresponse().read().partition(b"\nthresher_pending ")[2].split()[0])


def killed(
    folder: Path,
    kills: int,
    tried: Tried,
    works: Sequence[Work],
    longest: float,
    *options: object,
    ended: Callable[[int], bool] = lambda port: True,
) -> None:
    """`ended`: whether the server at a port has nothing more to wait for, once no client sends anything."""
    model, port, chance = clicks(folder), free_port(), random.Random(folder.name)
    clients = Clients(port, works)
    try:
        for _ in range(kills):
            every = "--snapshot-every", chance.choice([20, 100, "60s"])
            with serving(model, folder, port, *every, *options) as process:
                if chance.random() < 0.7:  # otherwise it is killed while it starts
                    answers(port, process)
                time.sleep(chance.uniform(0, longest))
                assert process.poll() is None
            assert clients.errors == []
        with serving(model, folder, port, *options) as process:
            answers(port, process)
            time.sleep(LONGEST)
            clients.end()
            while not ended(port):
                time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    finally:
        clients.end(0)
    assert clients.errors == []
    check(model, folder, clients.acknowledged)
    assert len(clients.acknowledged) > kills
    assert min(one.broken for one in clients.askers) > 0
    tried(kills)


WORKS: list[Work] = [labelled, labelled, labelled, late, late, predicted]
NEGATIVE = "--unlabelled", "negative", "--wait", f"{WAIT}s"


def test_nothing_acknowledged_is_lost_or_learned_twice(folder: Path, tried: Tried) -> None:
    killed(folder, KILLS, tried, WORKS, LONGEST)


def test_rows_that_wait_are_learned_once_with_their_labels(folder: Path, tried: Tried) -> None:
    # long enough that rows are over with their wait, some of them while the server is killed
    works = [clicked, clicked, labelled, predicted]
    killed(folder, KILLS // 2, tried, works, 2.5, *NEGATIVE, ended=lambda port: not waiting_at(port))


class Topic:
    """A topic of labelled rows, which the program of the documentation sends to the server."""

    def __init__(self, kafka: KafkaBroker) -> None:
        self._kafka, self._name, self._lock = kafka, kafka.topic(2), threading.Lock()
        self._words, self._last = list[str](), list[subprocess.Popen[bytes]]()

    def _consumer(self, port: int) -> subprocess.Popen[bytes]:
        to = self._kafka.host, self._name, f"127.0.0.1:{port}"
        return subprocess.Popen([sys.executable, CONSUMER, *to], stdin=subprocess.DEVNULL)

    def labelled(self, asker: Asker, number: int, chance: random.Random) -> list[Acknowledged]:
        words = [f"{number}.{k}" for k in range(2)]
        value = lines([row(word, chance) for word in words]).encode()
        with self._lock:  # each is a batch of its own, see `KafkaBroker`
            self._kafka.send(self._name, [*[[]] * chance.randrange(2), [value]])
            self._words += words
        return predicted(asker, number, chance) + [Acknowledged([word], 0) for word in words]

    def consumed(self, asker: Asker, number: int, chance: random.Random) -> list[Acknowledged]:
        """Let the program run for a while, and kill it."""
        with self._consumer(asker.port) as process:
            time.sleep(chance.uniform(0.2, 2))
            assert process.poll() is None
            process.kill()
        return predicted(asker, number, chance)

    def ended(self, log: Path, port: int) -> bool:
        """Whether all has been learned that was sent."""
        self._last = self._last or [self._consumer(port)]
        assert self._last[0].poll() is None
        if not {*self._words} <= {word for word, _ in learned_words(log, self._words)}:
            return False
        self._last[0].kill()
        self._last[0].communicate()
        return True


def test_what_a_topic_brings_is_learned_once(folder: Path, tried: Tried, kafka: KafkaBroker) -> None:
    topic = Topic(kafka)
    works = [topic.labelled, topic.labelled, topic.consumed, labelled]
    killed(folder, 2 * KILLS, tried, works, 4 * LONGEST, ended=partial(topic.ended, folder / "log"))


def test_a_job_and_a_server_that_are_killed(folder: Path, tried: Tried, kafka: KafkaBroker) -> None:
    """Runs on a topic go on from the file that a server reads again: each row is learned once."""
    topic, port, chance, sent = kafka.topic(1), free_port(), random.Random(0), list[bytes]()
    job = "train", kafka.url(topic), "--rule", "ftrl", "-q", "-m", "job.model"
    asked = lines([{"colour": "red", "who": "3"}])

    def send(count: int) -> None:
        new = [json.dumps(row(str(k % 9), chance)).encode() for k in range(count)]
        kafka.send(topic, [new])
        sent.extend(new)

    send(60)
    assert run(*job, folder=folder)[0] == 0
    for _ in range(KILLS // 2):
        with start("serve", "job.model", "--port", port, folder=folder) as server:
            answers(port, server)
            send(5)
            with start(*job, "--continue", "job.model", folder=folder) as process:
                time.sleep(chance.uniform(0, 1))
                process.kill()
            send(5)
            assert run(*job, "--continue", "job.model", folder=folder)[0] == 0
            with closing(Asker(port)) as asker:
                expected = thresher.load(folder / "job.model").predict_proba([json.loads(asked)])[0, 1]
                while asker.ask("/predict", asked) != [{"probability": expected}]:
                    time.sleep(0.05)
            server.kill()
        whole = thresher.train(written(folder / "all.jsonl", sent), rule="ftrl", passes=1)
        found = thresher.load(folder / "job.model")
        assert found.record.examples == len(sent)
        assert (found.predict(folder / "all.jsonl") == whole.predict(folder / "all.jsonl")).all()
    tried(KILLS // 2)


@pytest.mark.hostile
@pytest.mark.timeout(3600)
def test_nothing_is_lost_by_very_many_kills(folder: Path, tried: Tried, kafka: KafkaBroker) -> None:
    kills = int(os.environ.get("KILLS", MANY_KILLS))
    for begun in range(0, kills, ROUND):  # each checked, so that one that is stopped has shown something
        (own := folder / str(begun)).mkdir()
        topic, count = Topic(kafka), min(ROUND, kills - begun)
        works, ended = [*WORKS, topic.labelled, topic.consumed], partial(topic.ended, own / "log")
        killed(own, count, tried, works, LONGEST, ended=ended)
