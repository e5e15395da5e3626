"""Topics that a server learns from: nothing is lost or learned twice, and the log is the training data."""

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import thresher
from tests.serving import test_service
from tests.waiting import until
from thresher import DataError
from thresher.data.files.topics import Messages, Topic, Url
from thresher.data.log.segments import records_from
from thresher.data.log.source import contents_of
from thresher.options.option import UsageError
from thresher.runs.files import LogInfo
from thresher.serving import sources
from thresher.serving.appending import FIRST as FIRST_MODEL
from thresher.serving.learning import MODEL
from thresher.serving.metrics import Metrics
from thresher.serving.service import LearningService, Settings

pytestmark = pytest.mark.usefixtures("plainly")

STORE: dict[str, list[list[Any]]] = {}
"""By path, the values in the partitions of topics in memory"""
FIRST: dict[str, int] = {}
"""The offset of the first value that is still there"""
MADE: dict[str, int] = {}
"""How often a topic was made anew"""
AWAY = set[str]()
"""Those that cannot be reached"""
STEP = 10
"""Offsets differ by that much"""


class Held(Topic, scheme="held"):
    """A topic in memory, whose messages come in pieces of any size, with gaps between their offsets."""

    form = "held:NAME"

    def __init__(self, url: Url) -> None:
        self._path, self._pieces = url.path, random.Random(0)

    def identity(self) -> str:
        return f"{self._path} {MADE.get(self._path, 0)}"

    def partitions(self) -> Mapping[str, tuple[int, int]]:
        if self._path in AWAY:
            raise DataError("no answer")
        first = FIRST.get(self._path, 0)
        return {str(k): (first, STEP * len(one)) for k, one in enumerate(STORE[self._path])}

    def read(self, begin: Mapping[str, int], end: Mapping[str, int]) -> Mapping[str, Iterator[Messages]]:
        return {one: self._read(int(one), at, end[one]) for one, at in begin.items()}

    def _read(self, partition: int, at: int, end: int) -> Iterator[Messages]:
        at = -(-at // STEP) * STEP
        time.sleep(0.3 * (self._path == "asked"))  # labels that do not wait are read before
        while at < end:
            count = min(self._pieces.choice([1, 2, 7]), (end - at) // STEP)
            offsets = range(at, at + STEP * count, STEP)
            yield Messages(offsets, [STORE[self._path][partition][one // STEP] for one in offsets])
            at += STEP * count


def serving(
    model: Path, folder: Path, *sources: str, said: list[str] | None = None, **settings: Any
) -> AbstractContextManager[LearningService]:
    return test_service.serving(model, folder, said, sources=sources, **settings)


def rows(names: Sequence[str]) -> list[bytes]:
    """Labelled rows, each with a word of its own."""
    return [
        json.dumps({"label": k % 2, "hour": k % 5, "colour": name}).encode() for k, name in enumerate(names)
    ]


def learned(service: LearningService, count: int) -> None:
    until(lambda: service.status().learned == count == service.status().sequence)


def colours(folder: Path) -> list[str]:
    """The words of the rows in a log, in order."""
    from thresher.data.features.murmur import hash_bytes, seed_of

    seed, found = seed_of("colour"), list[str]()
    named = {hash_bytes(one.encode(), seed): one for one in [f"c{k}" for k in range(500)]}
    for some in records_from(folder):
        for one in some:
            if one.head.kind == 1:
                chunk = one.rows()
                for k in range(len(chunk)):
                    keys = chunk.keys[chunk.indptr[k] : chunk.indptr[k + 1]].tolist()
                    found += [named[key] for key in keys if key in named]
    return found


def check_law(model: Path, folder: Path, place: Path) -> None:
    thresher.train(folder, continue_from=model).save(place)
    assert (folder / MODEL).read_bytes() == place.read_bytes()


def page_of(service: LearningService) -> str:
    return Metrics(service).page().decode()


def test_goes_on_where_its_log_ends(clicks: Path, tmp_path: Path) -> None:
    names, log = [f"c{k}" for k in range(60)], tmp_path / "log"
    some = rows(names)
    STORE["on"] = [[*some[:10]], [None, *some[10:20]]]
    with serving(clicks, log, "held:on") as service:
        learned(service, 20)
        STORE["on"][1] += some[20:30]
        learned(service, 30)
    STORE["on"][0] += [*some[30:40], None]
    for _ in range(3):
        with serving(clicks, log, "held:on") as service:
            learned(service, 40)
            until(lambda: not any(service.sources[0].lag.values()))
    assert 'thresher_source_lag{partition="0",source="held:on"} 0.0' in page_of(service)
    STORE["on"].append([*some[40:]])
    with serving(clicks, log, "held:on") as service:
        learned(service, 60)
        assert 'thresher_source_rows_total{fate="read",source="held:on"} 20.0' in page_of(service)
        assert 'thresher_source_reading{source="held:on"} 1.0' in page_of(service)
    assert sorted(colours(log)) == sorted(names)
    check_law(clicks, log, tmp_path / "again")


def test_begins_where_the_model_has_ended_and_keeps_every_place(clicks: Path, tmp_path: Path) -> None:
    """Of a model that has learned from the topic; later from the log, though only one partition has more."""
    some, log = rows([f"c{k}" for k in range(30)]), tmp_path / "log"
    STORE["ended"] = [[*some[:10]], [*some[10:20]]]
    model = tmp_path / "ended.model"
    thresher.train("held:ended", continue_from=clicks).save(model)
    with serving(model, log, "held:ended") as service:
        until(lambda: service.sources[0].complete > 0)
    STORE["ended"][0] += some[20:]
    for _ in range(2):
        with serving(model, log, "held:ended") as service:
            learned(service, 10)
    assert colours(log) == [f"c{k}" for k in range(20, 30)]
    STORE["later"] = [[*some[:10]], [*some[10:20]]]
    for _ in range(2):
        with serving(clicks, tmp_path / "other", "held:later?from=latest") as service:
            until(lambda: service.sources[0].complete > 0)
        STORE["later"][0] += some[20:25]
    with serving(clicks, tmp_path / "other", "held:later") as service:
        learned(service, 10)


@pytest.mark.parametrize("over", ["topic", "http"])
def test_rows_wait_for_their_labels(clicks: Path, tmp_path: Path, over: str) -> None:
    names, log = [f"c{k}" for k in range(20)], tmp_path / "log"
    STORE["asked"] = [[json.dumps({"id": one, "hour": 1, "colour": one}).encode() for one in names], []]
    STORE["told"] = [[json.dumps({"id": one, "label": 1}).encode() for one in [*names[:15], "other"]]]
    sources = ["held:asked?ids=id", *(["held:told?as=labels"] if over == "topic" else [])]
    with serving(clicks, log, *sources) as service:
        if over == "topic":
            learned(service, 15)
            unknown = 'thresher_source_rows_total{fate="unknown",source="held:told"} 1.0'
            until(lambda: unknown in page_of(service))
        until(lambda: service.status().pending == 20 - 15 * (over == "topic"))
    with serving(clicks, log, *sources) as service:
        label = np.ones(5, np.float32), np.ones(5, np.float32)
        if over == "topic":
            STORE["told"][0] += [json.dumps({"id": one, "label": 0}).encode() for one in [*names[15:], "c0"]]
        else:
            service.label(names[15:], *label).result()
        learned(service, 20 - 15 * (over == "http"))
    assert sorted(colours(log)) == sorted(names if over == "topic" else names[15:])
    check_law(clicks, log, tmp_path / "again")


def test_labels_make_room_for_rows(clicks: Path, tmp_path: Path) -> None:
    """As many rows wait as there is room for: labels of these are learned, others wait for their rows."""
    names = [f"c{k}" for k in range(40)]
    STORE["many"] = [[json.dumps({"id": one, "hour": 1, "colour": one}).encode() for one in names]]
    STORE["of many"] = [[json.dumps({"id": one, "label": 1}).encode() for one in [*names, "other"]]]
    urls = "held:many?ids=id", "held:of many?as=labels"
    with serving(clicks, tmp_path / "log", *urls, most_kept=7) as service:
        learned(service, 40)
        until(lambda: service.sources[1].rows["unknown"] == 1)
        until(lambda: service.status().reason == "")
    assert sorted(colours(tmp_path / "log")) == sorted(names)


def test_bad_messages_are_put_aside(clicks: Path, tmp_path: Path) -> None:
    some, said = rows([f"c{k}" for k in range(20)]), list[str]()
    bad = [b'{"label": 7, "hour": 1}', b"\xff\xfe", b'{"label": 1,', b"[1]", b'{"x": 3}']
    values: list[bytes | None] = [*some[:5], bad[0], *some[5:9], b"", some[9] + b"\n" + bad[1], *bad[2:]]
    STORE["bad"] = [[*some[10:15]], [*values, *some[15:]]]
    aside = tmp_path / "aside"
    with serving(clicks, tmp_path / "log", "held:bad", said=said, on_error=f"quarantine={aside}") as service:
        learned(service, 20)
        until(lambda: service.sources[0].rows == {"read": 20, "refused": 5, "unknown": 0})
    assert {*aside.read_bytes().splitlines()} >= {bad[0], *bad[2:]}
    assert said[0].startswith("bad rows: 1; held:bad, partition 1, offset 50:1:1: expected")
    with serving(clicks, tmp_path / "log", "held:bad", on_error=f"quarantine={aside}") as service:
        until(lambda: service.sources[0].complete > 0)
        assert service.sources[0].rows["refused"] == 0
    assert sorted(colours(tmp_path / "log")) == sorted(f"c{k}" for k in range(20))
    with serving(clicks, tmp_path / "fail", "held:bad", on_error="fail") as service:
        until(lambda: service.status().reason != "")
        assert "held:bad is not read any more: partition 1, offset 50:1:1" in service.status().reason
        assert service.status().learning
        assert 'thresher_source_reading{source="held:bad"} 0.0' in page_of(service)


def test_refused_before_anything_is_learned(clicks: Path, tmp_path: Path) -> None:
    some, log = rows([f"c{k}" for k in range(40)]), tmp_path / "log"
    STORE["gone"] = [[*some[:10]]]
    with serving(clicks, log, "held:gone") as service:
        learned(service, 10)
    STORE["gone"], FIRST["gone"] = [[*some[:30]]], 150
    with pytest.raises(DataError, match=r"up to 59 messages .* offset 150; \?from=earliest"):
        LearningService(clicks, log, Settings(sources=["held:gone"]))
    with pytest.warns(UserWarning, match="59 messages"):
        service = LearningService(clicks, log, Settings(sources=["held:gone?from=earliest"]))
    service.start()
    learned(service, 25)
    FIRST["gone"], said = 310, list[str]()
    STORE["gone"][0] += some[30:]
    until(lambda: "held:gone is not read any more: up to 1" in service.status().reason)
    service.close()
    FIRST["gone"], MADE["gone"] = 0, 1
    with pytest.raises(DataError, match="made anew"):
        LearningService(clicks, log, Settings(sources=["held:gone"]))
    AWAY.add("gone")
    with pytest.raises(DataError, match="no answer"):
        LearningService(clicks, tmp_path / "new", Settings(sources=["held:gone"]))
    with serving(clicks, log, "held:gone", said=said) as service:
        assert service.status().reason == "held:gone: no answer; trying again"
    for url, message in (
        ("clicks.jsonl", "expected a topic"),
        ("held:gone?as=rows", "expected .ids=COLUMN"),
        ("held:gone?as=labels&ids=a", "expected .ids=COLUMN"),
    ):
        with pytest.raises(UsageError, match=message):
            LearningService(clicks, tmp_path / "new", Settings(sources=[url]))
    with pytest.raises(UsageError, match="named twice"):
        LearningService(clicks, tmp_path / "new", Settings(sources=["held:on", "held:on?ids=a"]))
    assert not (tmp_path / "new").exists()


def test_arrow_streams_and_broken_ones(clicks: Path, tmp_path: Path) -> None:
    schema = pa.schema([("label", "int8"), ("colour", "string")])
    with pa.ipc.new_stream(sink := pa.BufferOutputStream(), schema) as to:
        to.write_table(pa.table([[0, 1, 1], ["c1", "c2", "c3"]], schema=schema))
    whole = sink.getvalue().to_pybytes()
    STORE["arrow"] = [[whole, whole[:100], *rows(["c4"])]]
    with serving(clicks, tmp_path / "log", "held:arrow") as service:
        learned(service, 4)
        until(lambda: service.sources[0].rows["refused"] == 1)
    assert colours(tmp_path / "log") == ["c1", "c2", "c3", "c4"]


def test_waits_while_learning_is_behind(
    clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "AHEAD", 20)
    STORE["fast"] = [rows([f"c{k}" for k in range(300)])]
    with serving(clicks, tmp_path / "log", "held:fast") as service, service._learning.gate.reading():
        until(lambda: service.status().sequence >= 20)
        time.sleep(0.1)
        assert service.status().sequence < 30
        assert service.sources[0].lag["0"] > 2000
    with serving(clicks, tmp_path / "log", "held:fast") as service:
        learned(service, 300)


def test_says_that_it_falls_behind(clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONG", 0.0)
    some, said = rows([f"c{k}" for k in range(60)]), list[str]()
    STORE["slow"] = [some[:20]]
    with serving(clicks, tmp_path / "log", "held:slow", said=said) as service:
        learned(service, 20)
        with service._learning.gate.reading():
            STORE["slow"][0] += some[20:]
            until(lambda: len(said) > 0)
    assert said[0].startswith("held:slow falls behind: 400 to be read, and 200 at the last look, ")


def test_a_log_that_is_put_back_takes_places_with_it(clicks: Path, tmp_path: Path) -> None:
    some, log = rows([f"c{k}" for k in range(30)]), tmp_path / "log"
    STORE["cut"] = [some[:10]]
    with serving(clicks, log, "held:cut") as service:
        learned(service, 10)
    copytree(log, tmp_path / "backup")
    STORE["cut"][0] += some[10:]
    with serving(clicks, log, "held:cut") as service:
        learned(service, 30)
    log.rename(tmp_path / "aside")
    (tmp_path / "backup").rename(log)
    with serving(clicks, log, "held:cut") as service:
        learned(service, 30)
    assert colours(log) == [f"c{k}" for k in range(30)]
    check_law(clicks, log, tmp_path / "again")


def test_places_outlast_files_of_the_log(clicks: Path, tmp_path: Path) -> None:
    """The file that says how far a topic was read may be removed."""
    STORE["kept"] = [rows([f"c{k}" for k in range(10)])]
    log, more = tmp_path / "log", rows(["c1"])[0] + b"\n"
    bodies = [more * 50] * 60
    settings: dict[str, Any] = {"keep_bytes": 40_000, "segment_bytes": 4000}
    with serving(clicks, log, "held:kept", **settings) as service:
        learned(service, 10)
        from thresher.serving.bodies import Bodies

        reader = Bodies(service.model, 100)
        for one in bodies:
            service.learn(reader.read(one, "", labelled=True).chunk).result()
        learned(service, 3010)
        service.models[FIRST_MODEL].save()
        service.tend(0)
        assert not (log / f"{0:020}.log").exists()
    with serving(clicks, log, "held:kept", **settings) as service:
        until(lambda: service.sources[0].complete > 0)
        assert service.status().sequence == 3010


def test_a_file_that_is_rotated(clicks: Path, tmp_path: Path) -> None:
    some, log, file = rows([f"c{k}" for k in range(40)]), tmp_path / "log", tmp_path / "rows.jsonl"
    file.write_bytes(b"\n".join(some[:10]) + b"\n" + some[10][:5])
    source = f"tail:{file}"
    with serving(clicks, log, source) as service:
        learned(service, 10)
        with file.open("ab") as more:
            more.write(some[10][5:] + b"\n" + b"\n".join(some[11:20]))
        file.rename(tmp_path / "rows.jsonl.1")
        file.write_bytes(some[20] + b"\n")
        learned(service, 21)
    (tmp_path / "rows.jsonl").rename(tmp_path / "rows.jsonl.0")
    file.write_bytes(b"\n".join(some[21:]) + b"\n")
    for _ in range(2):
        with serving(clicks, log, source) as service:
            learned(service, 40)
            until(lambda: not any(service.sources[0].lag.values()))
    assert colours(log) == [f"c{k}" for k in range(40)]
    told = repr(LogInfo(contents_of(log, 1)))
    assert f"  source {source}: rows.jsonl " in told
