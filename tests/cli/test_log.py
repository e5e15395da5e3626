"""``thresher log`` tells what a log holds, and finds all damage."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Thresher
from tests.data.logs import NOON, LogEntry, write_log
from thresher.data.chunk import Chunk, concat
from thresher.data.features.names import numeric_keys
from thresher.data.layout import SettledLayout
from thresher.data.log.origin import LogOrigin
from thresher.data.log.records import GONE, KEPT, ROWS
from thresher.data.log.source import LogSource
from thresher.data.log.writer import LogWriter

LAYOUT = SettledLayout(
    "csv", columns=("click", "size", "city"), kinds=("label", "numeric", "categorical"), classes=("no", "yes")
)
(SIZE,) = numeric_keys(LAYOUT)


def rows(count: int, first: int = 0) -> Chunk:
    return Chunk.of_rows([((-1.0) ** k, {SIZE: k + 0.5, 7: 1.0}) for k in range(first, first + count)])


ENTRIES = [
    LogEntry(ROWS, rows(2), {"key": "a\tb"}, NOON),
    LogEntry(KEPT, rows(3, 2), {"ids": ["x", "y", "z"]}, NOON + 1_500_000),
    LogEntry(ROWS, rows(1, 2), {"ids": ["x"]}, NOON + 2_000_000),
    LogEntry(GONE, note={"ids": ["z"]}, time=NOON + 3_000_000),
    LogEntry(ROWS, rows(4, 5), {}, NOON + 4_000_000),
]


@pytest.fixture(params=[1, 1 << 20], ids=["a segment each", "one segment"])
def log(folder: Path, request: pytest.FixtureRequest) -> Path:
    return write_log(folder / "c.log", ENTRIES, LAYOUT, segment_bytes=request.param)


def test_it_tells_what_a_log_holds(log: Path, thresher: Thresher) -> None:
    found = thresher("log c.log --json")
    size = sum(path.stat().st_size for path in log.glob("*.log"))
    segments = len([*log.glob("*.log")])
    expected: dict[str, Any] = {"rows": 7, "first_row": 1, "last_row": 7, "records": 5, "keys": 1}
    expected |= {
        "waiting_for_labels": 1,
        "first_time": "2026-03-01T12:00:00Z",
        "last_time": "2026-03-01T12:00:04Z",
    }
    expected |= {"segments": segments, "bytes": size, "unfinished_bytes": 0, "damage": None, "last": []}
    expected |= {"model": "c0ffee", "labels": "binary", "format": "csv", "columns": [*LAYOUT.columns]}
    assert found.status == 0
    assert {name: found.json[name] for name in expected} == expected


def test_it_prints_the_last_records(log: Path, thresher: Thresher) -> None:
    told = thresher("log c.log --last 4").out.split("\n\n")[1:]
    assert told == [
        "kept after row 2  2026-03-01T12:00:01.500000Z\n"
        "  id x  7=1  size=2.5\n  id y  7=1  size=3.5\n  id z  7=1  size=4.5",
        "rows after row 2  2026-03-01T12:00:02Z\n  row 3  id x  label yes  7=1  size=2.5",
        "gone after row 3  2026-03-01T12:00:03Z  ids z",
        "rows after row 3  2026-03-01T12:00:04Z\n  row 4  label no  7=1  size=5.5\n"
        "  row 5  label yes  7=1  size=6.5\n  row 6  label no  7=1  size=7.5\n"
        "  row 7  label yes  7=1  size=8.5\n",
    ]
    (last,) = thresher("log c.log --last 1 --json").json["last"]
    assert last["rows"][0] == {"row": 4, "label": "no", "importance": 1, "features": {"size": 5.5, "7": 1}}
    assert "key a\\tb" in thresher("log c.log --last 9").out


def test_what_was_never_synced_is_no_damage(log: Path, thresher: Thresher) -> None:
    last = max(log.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-5])
    found = thresher("log c.log --json")
    assert (found.status, found.json["rows"], found.json["damage"]) == (0, 3, None)
    assert found.json["unfinished_bytes"] > 0


def damaged(log: Path) -> Path:
    for path in sorted(log.glob("*.log")):
        whole = path.read_bytes()
        if (place := whole.find(b'{"ids":["x"]}')) >= 0:
            path.write_bytes(whole.replace(b'{"ids":["x"]}', b'{"ids":["w"]}'))
            return path
    raise AssertionError(place)


def test_damage_is_found_and_can_be_taken_off(log: Path, thresher: Thresher) -> None:
    path = damaged(log)
    before = {one.name: one.read_bytes() for one in log.glob("*.log")}
    found = thresher("log c.log --json")
    assert (found.status, found.json["rows"], found.json["waiting_for_labels"]) == (1, 2, 3)
    place = before[path.name].index(b'{"ids":["w"]}') - 72
    assert found.json["damage"].startswith(f"c.log/{path.name}: damaged")
    assert f"at byte {place:,}, after row 2" in found.json["damage"]
    os.truncate(path, place)  # as docs/log.md says
    for one in log.glob("*.log"):
        if one > path:
            one.unlink()
    found = thresher("log c.log --json")
    assert (found.status, found.json["rows"], found.json["damage"]) == (0, 2, None)
    write_log(log, [rows(4, 2)], LAYOUT)
    assert len(concat([*LogSource(log).chunks()])) == 6


def test_a_damaged_header_and_a_missing_segment(folder: Path, thresher: Thresher) -> None:
    log = write_log(folder / "c.log", ENTRIES, LAYOUT, segment_bytes=1)
    paths = sorted(log.glob("*.log"))
    kept = paths[2].read_bytes()
    paths[2].write_bytes(kept.replace(b'"origin"', b'"0rigin"'))
    found = thresher("log c.log --json")
    assert (found.status, found.json["rows"]) == (1, 2)
    assert found.json["damage"] == f"c.log/{paths[2].name}: the header is damaged"
    paths[2].unlink()
    found = thresher("log c.log --json")
    assert (found.status, found.json["rows"]) == (1, 2)
    assert "a segment after it is missing" in found.json["damage"]


def test_a_log_in_use_is_shown(log: Path, thresher: Thresher) -> None:
    with closing(LogWriter(log, LogOrigin(LAYOUT, "binary", "c0ffee"))):
        assert thresher("log c.log").status == 0
    with closing(LogWriter(log.with_name("new.log"), LogOrigin(LAYOUT, "binary", "c0ffee"))):
        found = thresher("log new.log --json").json
    assert (found["rows"], found["model"], found["labels"], found["format"]) == (0, "c0ffee", "binary", "csv")


def test_what_no_model_can_learn_is_damage(folder: Path, thresher: Thresher) -> None:
    strange = rows(2)
    strange.labels[1] = 3
    write_log(folder / "c.log", [rows(3), strange, rows(1)], LAYOUT)
    found = thresher("log c.log --json")
    assert (found.status, found.json["rows"]) == (1, 3)
    assert ", after row 3: example 2: expected a label -1, 0 or 1" in found.json["damage"]


def test_other_folders_are_no_logs(folder: Path, thresher: Thresher) -> None:
    (folder / "empty").mkdir()
    for name in ("empty", "train.svm", "nowhere"):
        found = thresher(f"log {name}")
        assert found.status == 1
        assert found.err.startswith(f"thresher: {name}: ")
