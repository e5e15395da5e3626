"""Law 13: a topic is a file. Training on a topic, in runs that go on, is training on its lines in a file."""

import io
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import pyarrow as pa
import pytest
from confluent_kafka import Producer

import thresher
from tests import commands
from tests.brokers import KafkaBroker, NatsServer, free_port, in_turns, written
from tests.brokers import jetstream as jetstream
from tests.brokers import kafka as kafka
from tests.pages import ROOT
from tests.test_law_of_continuing import check_same
from thresher import DataError, Model
from thresher.data.files import topic_lines
from thresher.data.files.topics import Extent, Messages, Topic, TopicName, Url, settle_topic
from thresher.data.sources.reader import current_readers

EXAMPLES = ROOT / "examples"
ROWS = 90
FORMATS = ("jsonl", "svmlight", "vw")
RULES = ("ft-ftrl", "ftrl", "fobos:l1=0.001", "coin")


def lines_of(form: str, seed: int, count: int = ROWS) -> list[bytes]:
    draw = random.Random(seed)
    found = list[bytes]()
    for _ in range(count):
        x, colour = draw.gauss(0, 1), draw.choice(["red", "blue", "green"])
        y = int(x + (colour == "red") > 0)
        number = {"red": 2, "blue": 3, "green": 4}[colour]
        text = {
            "jsonl": f'{{"label": {y}, "size": {x:.3f}, "colour": "{colour}"}}',
            "svmlight": f"{2 * y - 1} 1:{x:.3f} {number}:1",
            "vw": f"{2 * y - 1} |a size:{x:.3f} |b {colour}",
        }[form]
        found.append(text.encode())
    return found


def dealt(lines: Sequence[bytes], partitions: int, seed: int) -> list[list[bytes]]:
    """Lines in partitions, some of which may have none."""
    draw, found = random.Random(seed), [list[bytes]() for _ in range(partitions)]
    for one in lines:
        found[min(draw.randrange(partitions), draw.randrange(partitions))].append(one)
    return found


def trained(data: Any, form: str, rule: str, before: Model | None = None) -> Model:
    """A model that has learned the data in one pass, perhaps after others."""
    if before is None:
        return thresher.train(data, rule=rule, format=form, passes=1)
    return thresher.train(data, continue_from=before)


STORE: dict[str, list[list[bytes | None]]] = {}
"""By path, the values in the partitions of topics in memory"""
FIRST: dict[str, int] = {}
"""The offset of the first value that is still there"""
STEP = 10
"""Offsets differ by that much"""


class InMemory(Topic, scheme="memory"):
    """A topic of tests, whose messages come in pieces of any size, with gaps between their offsets."""

    form = "memory:NAME"
    pieces = random.Random(0)

    def __init__(self, url: Url) -> None:
        self._path = url.path

    def identity(self) -> str:
        return f"made {self._path}"

    def partitions(self) -> Mapping[str, tuple[int, int]]:
        begin = FIRST.get(self._path, 0)
        return {str(k): (begin, STEP * len(one)) for k, one in enumerate(STORE[self._path])}

    def read(self, begin: Mapping[str, int], end: Mapping[str, int]) -> Mapping[str, Iterator[Messages]]:
        return {one: self._read(int(one), at, end[one]) for one, at in begin.items()}

    def _read(self, partition: int, at: int, end: int) -> Iterator[Messages]:
        values = STORE[self._path][partition]
        while at < end:
            count = min(self.pieces.choice([1, 2, 7, 1000]), (end - at) // STEP)
            offsets = range(at, at + STEP * count, STEP)
            yield Messages(offsets, [values[one // STEP] for one in offsets])
            at += STEP * count


@pytest.mark.parametrize("partitions", [1, 2, 4])
def test_lines_of_any_pieces(partitions: int) -> None:
    """Values of several lines, without any and empty; places of lines; read at once and byte by byte."""
    draw = random.Random(partitions)
    values = [
        [draw.choice([None, b"", b"a\n", b"b\nc", b"longer text", b"%d" % k]) for k in range(57 * (p + 1))]
        for p in range(partitions)
    ]
    STORE["pieces"] = values
    known = [
        (f"partition {p}, offset {STEP * k}", one) for p, of in enumerate(values) for k, one in enumerate(of)
    ]
    order = sorted(known, key=lambda one: (int(one[0].split()[-1]), one[0]))
    expected = [
        (place, k, line)
        for place, one in order
        if one is not None
        for k, line in enumerate(one.removesuffix(b"\n").split(b"\n"), 1)
    ]
    for size in (1, 1 << 16):
        with topic_lines.TopicFile("memory:pieces") as file, io.BufferedReader(file, size) as lines:
            assert lines.read() == b"".join(line + b"\n" for _, _, line in expected)
            found = [file.places.of(k) for k in range(1, len(expected) + 1)]
    assert [(one.replace(",", ""), k) for one, k in found] == [
        (place.replace(",", ""), k) for place, k, _ in expected
    ]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.usefixtures("plainly")
def test_a_topic_is_a_file(form: str, kafka: KafkaBroker, tmp_path: Path) -> None:
    """Four rules; 1 to 4 partitions; one run to four, the last without anything new."""
    for k, rule in enumerate(RULES):
        partitions = 1 + (k + FORMATS.index(form)) % 4
        lines, draw = lines_of(form, k), random.Random(k)
        cuts = [*sorted(draw.sample(range(20, ROWS), k)), ROWS]
        topic, all_lines, begin = kafka.topic(partitions), list[bytes](), 0
        model: Model | None = None
        for cut in cuts:
            values = dealt(lines[begin:cut], partitions, k)
            kafka.send(topic, values, ("snappy", "gzip", "lz4", "zstd")[k])
            all_lines, begin = all_lines + in_turns(values), cut
            model = trained(kafka.url(topic), form, rule, model)
        assert model is not None
        check_same(model, trained(written(tmp_path / "lines", all_lines), form, rule))
        again = trained(kafka.url(topic), form, rule, model)
        check_same(again, model)
        assert again.record == model.record
        (extent,) = model.record.topics
        assert sum(extent.end.values()) == ROWS


@pytest.mark.usefixtures("plainly")
def test_several_topics_and_files(kafka: KafkaBroker, tmp_path: Path) -> None:
    """Each goes on where it ended, also if a run had nothing of it, or only files."""
    lines = lines_of("jsonl", 3)
    parts = [lines[k : k + 15] for k in range(0, 90, 15)]
    one, other = kafka.topic(1), kafka.topic(1)
    file = written(tmp_path / "a.jsonl", parts[1])
    kafka.send(one, [parts[0]])
    model = trained([kafka.url(one), file], "jsonl", "ftrl")
    kafka.send(other, [parts[2]])
    model = trained([kafka.url(one), kafka.url(other)], "jsonl", "ftrl", model)
    model = trained(written(tmp_path / "b.jsonl", parts[3]), "jsonl", "ftrl", model)
    kafka.send(other, [parts[5]])
    kafka.send(one, [parts[4]])
    model = trained([kafka.url(one), kafka.url(other)], "jsonl", "ftrl", model)
    check_same(model, trained(written(tmp_path / "lines", lines), "jsonl", "ftrl"))
    with pytest.raises(DataError, match="named twice"):
        trained([kafka.url(one), kafka.url(one)], "jsonl", "ftrl")


@pytest.mark.usefixtures("plainly")
def test_passes_over_a_topic(kafka: KafkaBroker, tmp_path: Path) -> None:
    """One pass unless more are asked for, which read the same messages again; so do a hold-out and words."""
    lines, topic = lines_of("jsonl", 4), kafka.topic(2)
    lines = [
        one.replace(b'"label": 1', b'"label": "yes"').replace(b'"label": 0', b'"label": "no"')
        for one in lines
    ]
    values = dealt(lines, 2, 1)
    kafka.send(topic, values)
    file = written(tmp_path / "lines.jsonl", in_turns(values))
    assert thresher.train(kafka.url(topic)).record.passes == 1
    for more in ({"cache": False}, {"holdout": 0.2}):
        found, expected = (thresher.train(one, passes=3, **more) for one in (kafka.url(topic), file))
        check_same(found, expected)
    assert found.classes == ("no", "yes")
    assert thresher.evaluate(found, kafka.url(topic)) == thresher.evaluate(found, file)
    assert (thresher.predict(found, kafka.url(topic)) == thresher.predict(found, file)).all()


@pytest.mark.usefixtures("plainly")
def test_resumed_though_more_has_come(kafka: KafkaBroker, tmp_path: Path) -> None:
    """A run that is resumed ends where it would have ended: the turns of partitions depend on that."""
    from tests.stopping import once_learned, stopping

    lines, topic, place = lines_of("jsonl", 5), kafka.topic(3), tmp_path / "c"
    values = dealt(lines, 3, 2)
    kafka.send(topic, values)
    expected = thresher.train(kafka.url(topic), checkpoint=place)
    with stopping(once_learned(30)), pytest.raises(thresher.Interrupted):
        thresher.train(kafka.url(topic), checkpoint=place)
    kafka.send(topic, [lines_of("jsonl", 6)[:9], [], [b"not a row"]])
    model = thresher.train(kafka.url(topic), checkpoint=place, resume=True)
    check_same(model, expected)
    assert model.record == expected.record


SMALL_BLOCKS = """
from thresher.data.files import blocks
from thresher.data import opening
blocks.BLOCK_BYTES = 2000
"""
SLOWLY = """
from thresher.data.files import kafka
kafka.MOST = 5
poll = kafka.Kafka._poll
def slowly(self, *given):
    import time
    time.sleep(0.005)
    return poll(self, *given)
kafka.Kafka._poll = slowly
"""


def test_killed_while_it_reads(kafka: KafkaBroker, tmp_path: Path) -> None:
    """`kill -9`, then --resume: the bytes of a run that was not killed."""
    topic = kafka.topic(2)
    kafka.send(topic, dealt(lines_of("jsonl", 8, 600), 2, 3))
    command = ["train", kafka.url(topic), "-q", "--checkpoint-every", 50, "-m"]
    code = SMALL_BLOCKS + commands.RUN
    assert commands.run(*command, "whole", folder=tmp_path, code=code)[0] == 0
    process = commands.start(*command, "m", folder=tmp_path, code=SLOWLY + code)
    place, begun = tmp_path / "m.checkpoint", time.monotonic()
    while not place.exists():
        assert process.poll() is None
        assert time.monotonic() - begun < 60
        time.sleep(0.002)
    process.kill()
    process.communicate()
    assert not (tmp_path / "m").exists()
    kafka.send(topic, [lines_of("jsonl", 9, 20), [b"more"]])
    status, _, errors = commands.run(*command, "m", "--resume", folder=tmp_path, code=code)
    assert status == 0, errors
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.usefixtures("plainly")
class TestRefused:
    """Nothing is learned if what comes next is not there; ``?from=`` accepts it, and the record says so."""

    def refused(self, url: str, model: Model, message: str) -> None:
        with pytest.raises(DataError, match=message):
            thresher.train(url, continue_from=model)

    def test_messages_that_are_gone(self) -> None:
        lines = lines_of("jsonl", 10)
        STORE["gone"] = [[*lines[:40]]]
        model = trained("memory:gone", "jsonl", "ftrl")
        STORE["gone"] = [[*lines]]
        FIRST["gone"] = 470
        self.refused(
            "memory:gone", model, r"up to 70 messages that come next are gone: .*offset 470; \?from=earliest"
        )
        with pytest.warns(UserWarning, match="70 messages"):
            found = thresher.train("memory:gone?from=earliest", continue_from=model)
        assert (found.record.examples, found.record.topics[0].lost) == (40 + 43, 70)
        assert found.record.topics[0].begin == {"0": 470}

    def test_an_end_before_what_was_learned(self) -> None:
        lines = lines_of("jsonl", 13)
        STORE["short"] = [[*lines[:40]]]
        model = trained("memory:short", "jsonl", "ftrl")
        STORE["short"] = [[*lines[:30]]]
        self.refused("memory:short", model, r"ends at partition 0, offset 300, .* up to 400; \?from=latest")
        with pytest.warns(UserWarning, match="ends at"):
            found = thresher.train("memory:short?from=latest", continue_from=model)
        assert (found.record.examples, found.record.topics[0].end) == (40, {"0": 300})

    def test_a_topic_made_anew(self, kafka: KafkaBroker) -> None:
        topic = kafka.topic(1, "anew")
        kafka.send(topic, [lines_of("jsonl", 14)[:40]])
        model = trained(kafka.url(topic), "jsonl", "ftrl")
        kafka.remove(topic)
        kafka.topic(1, "anew")
        kafka.send(topic, [lines_of("jsonl", 15)[:50]])
        self.refused(kafka.url(topic), model, "made anew")
        with pytest.warns(UserWarning, match="made anew"):
            found = thresher.train(kafka.url(topic) + "?from=earliest", continue_from=model)
        assert found.record.examples == 40 + 50
        assert found.record.topics[0].id != model.record.topics[0].id


@pytest.mark.usefixtures("plainly")
def test_where_a_first_run_begins(kafka: KafkaBroker, tmp_path: Path) -> None:
    lines, topic = lines_of("jsonl", 16), kafka.topic(1)
    url = kafka.url(topic)
    kafka.send(topic, [lines[:30]])
    with pytest.raises(DataError, match="no messages yet"):
        thresher.train(url + "?from=latest")
    later = written(tmp_path / "a.jsonl", lines[30:60])
    model = thresher.train([later, url + "?from=latest"], rule="ftrl", passes=1)
    assert model.record.examples == 30
    kafka.send(topic, [lines[60:]])
    found = thresher.train(url, continue_from=model)
    check_same(found, trained(written(tmp_path / "b.jsonl", lines[30:]), "jsonl", "ftrl"))


@pytest.mark.usefixtures("plainly")
def test_a_first_run_from_a_time_on(kafka: KafkaBroker, tmp_path: Path) -> None:
    lines, topic = lines_of("jsonl", 16), kafka.topic(2)
    kafka.send(topic, [lines[:10], lines[10:30]])
    time.sleep(0.01)
    since = f"?from={datetime.now(UTC).isoformat(timespec='milliseconds').replace('+00:00', 'Z')}"
    with pytest.raises(DataError, match="no messages yet"):
        thresher.train(kafka.url(topic) + since)
    kafka.send(topic, [lines[30:60], []])
    model = thresher.train(kafka.url(topic) + since, rule="ftrl", passes=1)
    check_same(model, trained(written(tmp_path / "a.jsonl", lines[30:60]), "jsonl", "ftrl"))
    old = thresher.train(kafka.url(topic) + "?from=2001-01-01", rule="ftrl", passes=1)
    assert old.record.examples == 60


def test_a_topic_with_another_host_is_the_same(kafka: KafkaBroker) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, [[b"1", b"2", b"3"]])
    extent = settle_topic(kafka.url(topic)).extent
    elsewhere = kafka.url(topic).replace("127.0.0.1", "localhost")
    found = settle_topic(elsewhere, [extent._replace(end={"0": 2})])
    assert isinstance(found, TopicName)
    assert found.extent == Extent(elsewhere, extent.id, {"0": 2}, {"0": 3})


def test_bad_lines(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic, good = kafka.topic(2), lines_of("jsonl", 17)
    kafka.send(topic, [[*good[:20], b"{oops", *good[20:30]], [good[30] + b"\n" + b'{"label": 1,}']])
    with pytest.raises(DataError, match=rf"/{topic}, partition 1, offset 0:2:13: expected"):
        thresher.train(kafka.url(topic))
    rejected = tmp_path / "bad"
    model = thresher.train(kafka.url(topic), on_error=f"quarantine={rejected}")
    assert model.record.skipped == 2
    assert rejected.read_bytes() == b'{"label": 1,}\n{oops\n'
    kafka.send(topic := kafka.topic(1), [[*good[:20], b"{oops"]])
    with pytest.raises(DataError, match=rf"/{topic}, partition 0, offset 20:1:2: expected"):
        thresher.evaluate(model, kafka.url(topic))


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("bad", [b"[", b"sep=;", b"0,1,2,3", b'"0,1', b"<html>"])
def test_a_bad_first_message_is_one_of_many(bad: bytes, tmp_path: Path) -> None:
    """It is no header, and does not show what the others are; also where a run goes on."""
    for form, lines in (
        ("jsonl", lines_of("jsonl", 25, 20)),
        ("csv", [b"%d,%d" % (k % 2, k) for k in range(20)]),
    ):
        options: dict[str, Any] = {"label": "1", "header": False} if form == "csv" else {}
        options |= {"format": form, "rule": "ftrl", "passes": 1}
        STORE["first"] = [[bad, *lines[:10]]]
        model = thresher.train("memory:first", on_error="skip", **options)
        STORE["first"][0] += [bad, *lines[10:]]
        found = thresher.train("memory:first", on_error="skip", continue_from=model)
        check_same(found, thresher.train(written(tmp_path / "lines", lines), **options))
        assert found.record.skipped == 2
        with pytest.raises(DataError, match="memory:first, partition 0, offset 110:1:"):
            thresher.train("memory:first", continue_from=model)


def test_large_messages_and_long_queues(kafka: KafkaBroker) -> None:
    """A message of 20 MB; partitions that are paused while others have their turns."""
    from thresher.data.files import kafka as module

    topic = kafka.topic(3)
    values = [[b"%d %s" % (k, b"x" * 3000) for k in range(n)] for n in (1500, 1500, 3)]
    values[2][0] = b"y" * (20 << 20)
    kafka.send(topic, values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEPT", 3 << 19)
        with topic_lines.TopicFile(kafka.url(topic)) as file:
            assert io.BufferedReader(file, 1 << 20).read() == b"".join(
                one + b"\n" for one in in_turns(values)
            )


@pytest.mark.usefixtures("plainly")
def test_columns_from_envelopes(kafka: KafkaBroker, tmp_path: Path) -> None:
    """Keys, times and headers are columns of rows of JSON, those that a message lacks missing cells."""
    lines, topic, sent = lines_of("jsonl", 21, 40), kafka.topic(1), list[bytes]()
    producer = Producer({"bootstrap.servers": kafka.host, "linger.ms": 0})
    for k, one in enumerate(lines):
        more: dict[str, Any] = {"key": b"\xc3\xa4%d" % (k % 3)} if k % 4 else {}
        headers: Any = [("page", b"old"), ("page", b"p%d" % (k % 2))] if k % 5 else None
        value = b" {} \n\n[1]" if k == 7 else one + b"\n" + one
        producer.produce(topic, value, timestamp=1000 * k + 500, headers=headers, partition=0, **more)
        assert producer.flush(20) == 0
        key, page = f'"_key": "ä{k % 3}", ' * bool(more), f'"_page": "p{k % 2}", ' * bool(headers)
        envelope = f'{{{key}{page}"_timestamp": {k + 0.5}, '.encode()
        sent += (
            [envelope.replace(b"5, ", b"5}"), b"", b"[1]"] if k == 7 else [one.replace(b"{", envelope)] * 2
        )
    url = kafka.url(topic) + "?with=_key,_timestamp,_page"
    model = thresher.train(url, rule="ftrl", passes=1, on_error="skip")
    expected = thresher.train(written(tmp_path / "a.jsonl", sent), rule="ftrl", passes=1, on_error="skip")
    assert model.record.skipped == expected.record.skipped == 2
    check_same(model, expected)
    with pytest.raises(DataError, match="columns are taken from envelopes for rows of JSON only"):
        thresher.train(url, format="vw")
    with pytest.raises(DataError, match="with takes _key, _timestamp and _NAME for a header, not 'key'"):
        thresher.train(kafka.url(topic) + "?with=key")


def test_arrow_streams_are_rows(kafka: KafkaBroker, tmp_path: Path) -> None:
    topic, lines = kafka.topic(1), lines_of("jsonl", 22, 60)
    batch = pa.RecordBatch.from_pylist([json.loads(one) for one in lines])
    streams = list[bytes]()
    for k in range(0, 60, 20):
        with pa.ipc.new_stream(sink := pa.BufferOutputStream(), batch.schema) as stream:
            stream.write_batch(batch.slice(k, 10))
            stream.write_batch(batch.slice(k + 10, 10))
        streams.append(sink.getvalue().to_pybytes())
    kafka.send(topic, [[streams[0], lines[20], *streams[1:], streams[0][:100]]])
    with pytest.raises(DataError, match="partition 0, offset 4"):
        thresher.train(kafka.url(topic), rule="ftrl", passes=1)
    found = thresher.train(kafka.url(topic), rule="ftrl", passes=1, on_error="skip")
    lines.insert(20, lines[20])
    check_same(found, trained(written(tmp_path / "lines", lines), "jsonl", "ftrl"))


class Entries:
    """Streams of Redis, as its package shows them."""

    RedisError = OSError
    streams: ClassVar[dict[str, list[tuple[bytes, dict[bytes, bytes]]]]] = {}
    added: ClassVar[int] = 25

    @classmethod
    def from_url(cls, url: str, socket_timeout: float) -> "Entries":
        assert url == "redis://somewhere:6379"
        return cls()

    def close(self) -> None: ...

    def xinfo_stream(self, name: str) -> dict[str, Any]:
        if name not in self.streams:
            raise OSError("no such key")
        found = self.streams[name]
        more = {"first-entry": found[0], "length": len(found), "entries-added": self.added}
        return {"last-generated-id": found[-1][0], **more}

    def xrange(self, name: str, low: str, high: str, count: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        def key(id: bytes | str) -> list[int]:
            return [*map(int, (id if isinstance(id, str) else id.decode()).split("-"))]

        return [one for one in self.streams[name] if key(low) <= key(one[0]) <= key(high)][:count]


@pytest.mark.usefixtures("plainly")
def test_the_example_of_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams of Redis: `examples/redis_stream.py`, with what the package redis would return."""
    monkeypatch.setitem(sys.modules, "redis", Mock(Redis=Entries, RedisError=OSError))
    module = EXAMPLES / "redis_stream.py"
    lines, url = lines_of("jsonl", 18, 60), "redis://somewhere:6379/clicks"
    ids = [b"17%d-%d" % (k // 3, k % 3) for k in range(60)]
    entries = [(id, {b"row": line}) for id, line in zip(ids, lines, strict=True)]
    Entries.streams["clicks"] = entries[:25]
    model = thresher.train(url, rule="ftrl", modules=str(module))
    Entries.streams["clicks"], Entries.added = entries, 60
    found = thresher.train(url, continue_from=model)
    check_same(found, trained(written(tmp_path / "lines", lines), "jsonl", "ftrl"))
    assert settle_topic(url + "?from=1970-01-01T00:00:00.175Z").extent.begin == {"0": 175 << 20}
    Entries.streams["clicks"] = entries[30:]
    with pytest.raises(DataError, match="are gone"):
        thresher.train(url, continue_from=model)
    with pytest.raises(DataError, match="redis://somewhere:6379/other: no such key"):
        thresher.train("redis://somewhere:6379/other")


@pytest.mark.usefixtures("plainly")
def test_the_example_of_a_server(jetstream: NatsServer, tmp_path: Path) -> None:
    """Streams of NATS: `examples/nats_stream.py`, with a real server."""
    lines, stream, module = lines_of("jsonl", 7), jetstream.stream("CLICKS"), str(EXAMPLES / "nats_stream.py")
    url = f"nats://{jetstream.host}/{stream}/CLICKS.rows"
    jetstream.send("CLICKS.rows", lines[:40])
    model = thresher.train(url, rule="ftrl", modules=module)
    time.sleep(0.01)
    since = f"?from={datetime.now(UTC).isoformat(timespec='milliseconds').replace('+00:00', 'Z')}"
    jetstream.send("CLICKS.other", [b"not a row"])
    jetstream.send("CLICKS.rows", lines[40:])
    found = thresher.train(url, continue_from=model)
    check_same(found, trained(written(tmp_path / "lines", lines), "jsonl", "ftrl"))
    assert thresher.train(url + since, rule="ftrl").record.examples == 50
    jetstream.send("CLICKS.other", [b"not a row"])
    check_same(thresher.train(url, continue_from=found), found)
    jetstream.do(lambda one: one.purge_stream(stream, seq=50))
    with pytest.raises(DataError, match="up to 9 messages that come next are gone: it begins at sequence 50"):
        thresher.train(url, continue_from=model)
    jetstream.do(lambda one: one.delete_stream(stream))
    jetstream.stream("CLICKS")
    with pytest.raises(DataError, match="made anew"):
        thresher.train(url, continue_from=model)
    port = free_port()
    for name, message in (
        (f"nats://127.0.0.1:{port}/X/x", f"no answer from 127.0.0.1:{port}: "),
        (f"nats://{jetstream.host}/CLICK/x", "there is no stream 'CLICK'"),
        (url, "no messages yet"),
    ):
        with pytest.raises(DataError, match=message):
            thresher.train(name)


class Table:
    """A table of Delta, as its package shows it: by version, the rows of a kind of change."""

    versions: ClassVar[list[tuple[str, list[bytes]]]] = []

    def __init__(self, path: str) -> None:
        assert path == "/lake/orders"

    def metadata(self) -> Any:
        return Mock(id="made once")

    def update_incremental(self) -> None: ...

    def version(self) -> int:
        return len(self.versions) - 1

    def load_cdf(self, starting_version: int, ending_version: int) -> Any:
        kind, lines = self.versions[starting_version]
        assert starting_version == ending_version
        rows = [json.loads(one) | {"_change_type": kind, "_commit_version": ending_version} for one in lines]
        return pa.Table.from_pylist(rows).to_reader()


@pytest.mark.usefixtures("plainly")
def test_the_example_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of Delta: `examples/delta_table.py`, with what the package deltalake would return."""
    package = Mock(DeltaTable=Table, exceptions=Mock(DeltaError=OSError))
    monkeypatch.setitem(sys.modules, "deltalake", package)
    monkeypatch.setitem(sys.modules, "deltalake.exceptions", package.exceptions)
    lines, module = lines_of("jsonl", 23, 60), str(EXAMPLES / "delta_table.py")
    Table.versions = [("insert", lines[:25]), ("delete", lines[:2])]
    model = thresher.train("delta:/lake/orders", rule="ftrl", modules=module)
    Table.versions += [("insert", lines[25:40]), ("insert", lines[40:])]
    found = thresher.train("delta:/lake/orders", continue_from=model)
    check_same(found, trained(written(tmp_path / "lines", lines), "jsonl", "ftrl"))
    assert (model.record.topics[0].end, found.record.topics[0].end) == ({"0": 2}, {"0": 4})


@pytest.mark.usefixtures("plainly")
def test_change_events(kafka: KafkaBroker, tmp_path: Path) -> None:
    """Events of Debezium: the rows within them, without those of rows that were changed or deleted."""
    lines, topic = lines_of("jsonl", 24, 40), kafka.topic(1)
    events: list[bytes | None] = [b'{"op": "c", "before": {"size": 9}, "after": %b}' % one for one in lines]
    kafka.send(
        topic, [[*events[:20], b'{"op": "d", "before": {"size": 9}, "after": null}', None, *events[20:]]]
    )
    options: dict[str, Any] = {"rule": "ftrl", "passes": 1}
    given: dict[str, Any] = {"label": "after.label", "ignore": ["op", "before"], "where": "op = 'c'"}
    model = thresher.train(kafka.url(topic), **options, **given)
    flat = [json.dumps({f"after.{k}": v for k, v in json.loads(one).items()}).encode() for one in lines]
    rows = written(tmp_path / "a.jsonl", flat)
    expected = thresher.train(rows, **options, label="after.label")
    assert (model.record.examples, model.record.topics[0].end) == (40, {"0": 42})
    assert (thresher.predict(model, rows) == thresher.predict(expected, rows)).all()


def test_what_a_newcomer_meets(kafka: KafkaBroker, monkeypatch: Any) -> None:
    kafka.topic(1, "purchases")
    port = free_port()
    for name, message in (
        (kafka.url("purchase"), "there is no topic 'purchase'; did you mean purchases"),
        (kafka.url("x"), "there is no topic 'x'; there are "),
        (kafka.url("purchases"), "no messages yet"),
        (kafka.url("purchases?form=latest"), "no option is called 'form'; known: from, config"),
        (kafka.url("purchases?from=today"), "from must be earliest, latest or a time such as"),
        (f"kafka://u:secret@{kafka.host}/purchases", "write user and password into a file"),
        (kafka.url("purchases?config=/none"), "/none: No such file"),
        ("kafka:purchases", "expected kafka://HOST:PORT/TOPIC"),
        (f"kafka://{kafka.host}", "expected kafka://HOST:PORT/TOPIC"),
        (f"kafka://127.0.0.1:{port}/x", f"no answer from 127.0.0.1:{port}: .*refused"),
        ("tail:/none", "no such file"),
    ):
        with pytest.raises(DataError, match=message) as caught:
            thresher.train(name)
        assert "secret" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(DataError, match=r"needs confluent-kafka: pip install confluent-kafka$"):
        thresher.train(f"kafka://127.0.0.1:{port}/x/y")


def test_options_that_files_alone_have(kafka: KafkaBroker) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, [[b"a,b", b"1,2"]])
    for form, message in (
        ("csv", "its lines have no header: add header=False"),
        ("parquet", "read as lines, in which there is no Parquet"),
    ):
        with pytest.raises(DataError, match=message):
            thresher.train(kafka.url(topic), format=form)
    token = current_readers.set(Mock())
    try:
        with pytest.raises(DataError, match="other processes cannot read a topic"):
            thresher.open_source(kafka.url(topic))
    finally:
        current_readers.reset(token)
