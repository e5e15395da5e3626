"""The plain C references find the keys and learn the models that thresher does."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import clickpass, limits, tables
from benchmarks.clicks import LAYOUT
from benchmarks.learning import in_memory, slices

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
