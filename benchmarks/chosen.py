"""The parameters chosen by experiments/comparison.py, stored in benchmarks/chosen.tsv."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

CHOSEN = Path(__file__).parent / "chosen.tsv"
PASSES = {1: "one pass", 10: "ten passes"}
BUDGETS, BY_TEST = "weights <= ", ", by test"


class Choice(NamedTuple):
    """The command for one row of a table, and its error (or 1 - AUC) on held-out training rows."""

    task: str
    table: str
    name: str
    command: str
    judged: float


def saved() -> list[Choice]:
    """Read the file."""
    with open(CHOSEN, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    return [Choice(task, table, name, command, float(judged)) for task, table, name, command, judged in rows]


def write(choices: Iterable[Choice]) -> None:
    """Write the file."""
    with open(CHOSEN, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(Choice._fields)
        writer.writerows(choice._replace(judged=round(choice.judged, 5)) for choice in sorted(choices))
