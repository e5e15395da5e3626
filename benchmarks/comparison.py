"""Every rule and its peers on real data: test error and non-zeros. Needs --data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks import report
from benchmarks.chosen import BUDGETS, BY_TEST, PASSES, Choice, saved
from benchmarks.learners import PEERS, Figures, learner
from benchmarks.report import Goal
from benchmarks.setting import Setting
from benchmarks.tasks import TASKS, Split

GOALS = ((0.057, 5000), (0.063, 1300))
Scored = tuple[Choice, Figures]


def run(setting: Setting) -> list[Goal]:
    """Train the chosen settings on the whole training part, test, print and check the goals."""
    if setting.data is None:
        return []
    tasks = [task for task in TASKS if task.exists(setting.data)]
    scored = [pair for task in tasks for pair in _scored(task.split(setting.data))]
    for table in PASSES.values():
        columns = [_column(task.name, task.judge, table, scored) for task in tasks]
        names = sorted(
            {name for _, found in columns for name in found}, key=lambda name: (name in PEERS, name)
        )
        rows = [
            [name, *(cell for head, found in columns for cell in found.get(name, [""] * len(head)))]
            for name in names
        ]
        report.table(
            f"every rule on real data: {table}", ["", *(head for heads, _ in columns for head in heads)], rows
        )
    return [reach for goal in GOALS for reach in _frontier(*goal, scored)]


def _scored(split: Split) -> Iterator[Scored]:
    """Test every choice for a task."""
    passes = {table: number for number, table in PASSES.items()}
    for choice in saved():
        learn = learner(choice.name)
        if choice.task == split.task.name and learn is not None:
            yield choice, learn(split, choice.command, passes.get(choice.table, 1))


def _column(
    task: str, judge: str, table: str, scored: Iterable[Scored]
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the column heads of a task, and the cells of each learner."""
    found = {
        choice.name: figures for choice, figures in scored if (choice.task, choice.table) == (task, table)
    }
    if judge == "error":
        return [task, "non-zeros"], {name: [f"{f.error:.2%}", f"{f.nonzero:,}"] for name, f in found.items()}
    return [task, "AUC", "log-loss", "non-zeros"], {
        name: [f"{f.error:.2%}", f"{f.auc:.4f}", report.figure(f.loss, ".4f"), f"{f.nonzero:,}"]
        for name, f in found.items()
    }


def _frontier(error: float, budget: int, scored: list[Scored]) -> Iterator[Goal]:
    """Print the best commands within a budget of weights: chosen on training rows, and on test rows.

    The first one chosen on training rows is also the rule that training rows would choose.
    """
    for how, suffix in (("chosen on training rows", ""), ("best found when looking at test rows", BY_TEST)):
        found = [(choice, f) for choice, f in scored if choice.table == f"{BUDGETS}{budget}{suffix}"]
        if not found:
            continue
        found.sort(key=lambda pair: pair[1].error if suffix else pair[0].judged)
        report.table(
            f"RCV1-CCAT with at most {budget:,} weights, {how}",
            ("", "test error", "non-zeros", "command"),
            [(choice.name, f"{f.error:.2%}", f"{f.nonzero:,}", choice.command) for choice, f in found],
        )
        best, f = found[0]
        what = f"RCV1-CCAT, test error with at most {budget:,} weights, {how}"
        yield Goal(
            what, f"<= {error:.1%}", f"{f.error:.2%} with {f.nonzero:,} ({best.name})", f.error <= error
        )
