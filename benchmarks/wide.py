"""Tables of two rows and many columns in each format: training, and pyarrow reading the same columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import thresher
from benchmarks import report
from benchmarks.measure import Sample, timed
from benchmarks.report import Goal
from benchmarks.setting import Setting

COLUMNS = 10_000, 100_000
PEER = "pyarrow reads Parquet"


def twins(columns: int, folder: Path) -> dict[str, Any]:
    """The same two rows as files of each format and as a DataFrame."""
    names = ["label", *(f"c{k}" for k in range(1, columns))]
    rows = [[sign, *(k + 0.5 for k in range(1, columns))] for sign in (1.0, -1.0)]
    table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
    files = {kind: folder / f"{columns}.{kind}" for kind in ("csv", "jsonl", "parquet", "arrow")}
    lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
    files["csv"].write_text("\n".join(lines) + "\n")
    objects = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    files["jsonl"].write_text("\n".join(objects) + "\n")
    pq.write_table(table, files["parquet"])
    with pa.OSFile(str(files["arrow"]), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return {**files, "DataFrame": table.to_pandas()}


def _learn(data: Any) -> None:
    thresher.train(data, label="label")


def run(setting: Setting) -> list[Goal]:
    """Measure, print and check that ten times the columns take at most twenty times as long."""
    contenders: dict[str, Callable[[], Sample]] = {}
    setting.loads.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=setting.loads) as folder:
        for columns in COLUMNS:
            for kind, data in twins(columns, Path(folder)).items():
                contenders[f"{kind}, {columns:,}"] = partial(timed, partial(_learn, data))
                if kind == "parquet":
                    contenders[f"{PEER}, {columns:,}"] = partial(timed, partial(pq.read_table, data))
        found = setting.in_turn(contenders, warm=tuple(contenders))
    report.table(
        "two rows of many columns, to a model",
        ("columns", "wall s", "least", "cpu s", "peak MB"),
        [
            (name, *map(report.figure, (s.wall, s.least, s.cpu)), report.figure(s.peak, ".0f"))
            for name, s in found.items()
        ],
    )
    few, many = (f"{columns:,}" for columns in COLUMNS)
    goals = []
    for kind in ("csv", "jsonl", "parquet", "arrow", "DataFrame"):
        times, words = report.ratio(found, f"{kind}, {many}", f"{kind}, {few}")
        goals.append(Goal(f"{kind}: s for {many} columns : for {few}", "<= 20", words, times <= 20))
    return goals
