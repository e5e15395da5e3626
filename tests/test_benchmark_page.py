"""The benchmarks: their runs, docs/benchmarks.md, what is measured of the default, the references in C."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import clickpass, limits, record, report, tables
from benchmarks.__main__ import BENCHMARKS
from benchmarks.clicks import LAYOUT
from benchmarks.corpora import Corpus, Parts
from benchmarks.defaults import BATCH, OURS, Ratios, Result, Rows
from benchmarks.learning import in_memory, slices
from benchmarks.page import FIGURE, HEADLINES, MARK, PAGE, drawn, figure
from benchmarks.record import kept
from benchmarks.report import Goal
from benchmarks.setting import Setting
from thresher.data import Chunk


def made(began: str, **seconds: str) -> dict[str, Any]:
    tables = {
        name: [{"title": f"pass of {name}", "head": ["", "wall s"], "rows": [["sgd --l1 2", wall]]}]
        for name, wall in seconds.items()
    }
    goals = [
        {"benchmark": name, "what": f"fast {name}", "goal": "<= 1", "measured": wall, "met": float(wall) <= 1}
        for name, wall in seconds.items()
    ]
    return {
        "machine": "a machine",
        "python": "3.11",
        "versions": {"thresher": "1.0", "river": None},
        "commit": "c0ffee",
        "began": began,
        "scale": 1.0,
        "repeat": 3,
        "benchmarks": tables,
        "goals": goals,
    }


def test_the_page_shows_the_kept_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert drawn(text, kept()) == text, "run `make pages`"
    shown = {mark.group(2) for mark in MARK.finditer(PAGE.read_text(encoding="utf-8"))}
    assert {*BENCHMARKS} <= shown
    rest = MARK.sub("", PAGE.read_text(encoding="utf-8"))
    assert len(re.findall(r"^\|---", rest, re.MULTILINE)) == 1, "that of the first run"
    runs = kept()
    named = [mark.groups() for mark in FIGURE.finditer(HEADLINES.read_text(encoding="utf-8"))]
    assert len(named) > 15
    assert all(figure(runs, *name) for name in named)


def test_a_table_is_of_the_newest_run_that_has_it() -> None:
    runs = [made("2026-02-02T10:00", days="2"), made("2026-01-01T10:00", days="3", tune="0.5")]
    page = "".join(
        f"<!-- run: {what} -->\nold\n<!-- end -->\n" for what in ("days", "tune", "goals", "machine")
    )
    text = drawn(page, runs)
    assert "old" not in text
    assert re.findall(r"`sgd --l1 2` \| (\S+)", text) == ["2", "0.5"]
    assert re.findall(r"fast (\w+) \| <= 1 \| (\S+) \| (\w+)", text) == [
        ("tune", "0.5", "yes"),
        ("days", "2", "no"),
    ]
    assert re.findall(r"^\* (.+?): .+(2026-\S+),", text, re.MULTILINE) == [
        ("`tune`", "2026-01-01"),
        ("`days`", "2026-02-02"),
    ]
    assert drawn(text, runs) == text


SETTING = Setting(Path("loads"), None, 0.1, 3, 20, ())


def run_with(path: Path, **walls: str) -> dict[str, Any]:
    report.taken()
    run = record.Run(SETTING, path)
    report.table("a pass", ("", "wall s", "least", "peak MB"), [(k, "1.0", v, "") for k, v in walls.items()])
    run.add("learning", report.taken(), [Goal("fast", "<= 1", "0.5", True)])
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_slowdown_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = run_with(tmp_path / "a", sgd="0.5", rda="1,000", pa="1", cw="1")
    new = run_with(tmp_path / "b", sgd="0.6", rda="1,020", pa="0.5", scw="1")
    assert [*record.compared(old, new)] == [
        ("learning", "sgd", "least", 0.5, 0.6),
        ("learning", "rda", "least", 1000.0, 1020.0),
        ("learning", "pa", "least", 1.0, 0.5),
    ]
    capsys.readouterr()
    record.show({**old, "scale": 1}, new)
    out = capsys.readouterr().out
    assert "differ in scale: 1 and 0.1" in out
    assert "2 of 3 figures differ by more than 10%" in out
    assert [line.split()[0] for line in out.splitlines()[-2:]] == ["sgd", "pa"]


def table(rows: int, seed: int) -> Chunk:
    X = np.random.default_rng(seed).normal(size=(rows, 3))
    indptr = np.arange(rows + 1) * 3
    keys, labels = np.tile(np.arange(3), rows), np.where(X[:, 0] > 0, 1.0, -1.0)
    return Chunk.from_csr(indptr, keys, X.ravel(), labels, np.ones(rows))


def corpus(name: str, outputs: str = "one", chosen: bool = False) -> Corpus:
    return Corpus(name, outputs, (), lambda folder: (table(60, 0), table(60, 1)), chosen)


PARTS: Parts = table(60, 0), table(60, 1)


def rows_of(*losses: tuple[float, float, float], chosen: int = 0) -> Rows:
    """A set each for losses of ours, LIBLINEAR and a peer; the first `chosen` are those used for choosing."""
    found = {}
    for k, (ours, batch, peer) in enumerate(losses):
        one = {
            OURS: Result(ours, 20),
            BATCH: Result(batch, 10),
            "vw": Result(peer, 9),
        }
        found[corpus(f"set {k}", chosen=k < chosen)] = one
    return found


def test_ratios_are_geometric_means_and_counts_above() -> None:
    found = Ratios.of(rows_of((1.0, 2.0, 1.0), (2.2, 2.0, 1.0), (2.0, 2.0, 1.0)).values(), OURS, BATCH)
    assert found.mean == pytest.approx((0.5 * 1.1) ** (1 / 3))
    assert found.above == 1
    assert [found.worst, found.weights] == pytest.approx([1.1, 2.0])


ROWS = 3_000


def rows() -> Iterator[list[int | str | None]]:
    """Clicks: a label, 13 counts, some of them large, and 26 categories; some cells are empty."""
    draw = random.Random(5)
    for _ in range(ROWS):
        counts = [draw.choice((None, 0, 1, 2, 3, draw.randrange(1_024), 1_024, 2**40)) for _ in range(13)]
        words = [draw.choice((None, "é", "x" * draw.randint(1, 40), f"{k}")) for k in range(25)]
        yield [draw.randint(0, 1), *counts, *words, f"{draw.randrange(ROWS):08x}"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    if limits.build() is None:
        pytest.skip("no C compiler on this system")
    folder = tmp_path_factory.mktemp("clicks")
    found = {kind: folder / f"clicks.{kind}" for kind in ("tsv", "jsonl")}
    with (
        open(found["tsv"], "w", encoding="utf-8") as tsv,
        open(found["jsonl"], "w", encoding="utf-8") as jsonl,
    ):
        for row in rows():
            tsv.write("\t".join("" if cell is None else str(cell) for cell in row) + "\n")
            named = {str(k): cell for k, cell in enumerate(row, 1)}
            jsonl.write(json.dumps(named, ensure_ascii=False) + "\n")
    return found


def test_plain_c_finds_what_thresher_does(files: dict[str, Path]) -> None:
    tables.check_keys("tsv", files["tsv"], LAYOUT)
    tables.check_keys("jsonl", files["jsonl"], replace(LAYOUT, header=True))
    clickpass.check_model(files["tsv"], slices(in_memory(files["tsv"], LAYOUT)))
    parts = [limits.run("ftrl", files["tsv"], 0.1, 1, part, 1) for part in clickpass.PARTS.values()]
    assert len({part["distinct"] for part in parts}) == 1
    assert parts[1]["progressive_loss"] == parts[2]["progressive_loss"] > 0


def test_other_work_is_refused(files: dict[str, Path]) -> None:
    with pytest.raises(RuntimeError, match=r"plain C \(tsv\) has nnz \d+, thresher \d+"):
        tables.check_keys("tsv", files["tsv"], replace(LAYOUT, bins=(), categorical=("15-39",)))
    chunks = slices(in_memory(files["tsv"], LAYOUT))
    with pytest.raises(RuntimeError, match="has rows"):
        clickpass.check_model(files["tsv"], [chunks[0].rows(0, 10)])
