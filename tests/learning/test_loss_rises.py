"""When the progressive loss has risen: against every pair of rows, however the stream is cut."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.plain import not_compiled
from thresher.data.stored import read
from thresher.learning.diagnostics import loss_rises
from thresher.learning.diagnostics.loss_rises import FIRST, MOST, NOTICED, SURE, LossRises
from thresher.learning.training.progress import ProgressLines, Tally
from thresher.learning.training.trainer import Trainer, TrainingPlan
from thresher.options.messages import as_shown


def seen(losses: Any, weights: Any, at: Any, found: LossRises) -> list[tuple[int, loss_rises.Rise]]:
    """What is found in blocks of `FIRST` rows with these sums, looked at after these numbers of rows."""
    sums, told = np.cumsum([losses, weights], axis=1), list[tuple[int, loss_rises.Rise]]()
    for rows in at:
        whole = rows // FIRST - 1
        part = rows % FIRST / FIRST  # rows of a block are alike
        after = sums[:, whole] if whole >= 0 else np.zeros(2)
        if part:
            after = after + part * np.array([losses[whole + 1], weights[whole + 1]])
        if (rise := found.see(int(rows), Tally(*after.tolist()))) is not None:
            told.append((int(rows), rise))
    return told


def reference(losses: np.ndarray, weights: np.ndarray) -> list[tuple[int, int]]:
    """Rows at which a rise is noticed, and those since which: every pair of every split of every window."""
    blocks, size, first, found = list[tuple[float, float]](), FIRST, 0, list[tuple[int, int]]()
    waiting, rows = list[tuple[float, float]](), 0
    for loss, weight in zip(losses.tolist(), weights.tolist(), strict=True):
        rows += FIRST
        waiting.append((loss, weight))
        if len(waiting) * FIRST < size:
            continue
        blocks.append((sum(a for a, _ in waiting), sum(b for _, b in waiting)))
        waiting = []
        if len(blocks) == MOST:
            blocks = [(a + c, b + d) for (a, b), (c, d) in zip(blocks[::2], blocks[1::2], strict=True)]
            size *= 2
        if len(blocks) % 4:
            continue
        best, means = (0.0, 0, 0), [a / b for a, b in blocks]
        for n in (16, 32, 64, len(blocks)):
            own = means[-n:]
            for t in range(1, n) if 16 <= n <= len(blocks) else ():
                u = np.sign(np.subtract.outer(own[t:], own[:t])).sum()
                score = u / np.sqrt(t * (n - t) * (n + 1) / 3)
                best = max(best, (score, t - n, -n))
        score, split, begin = best
        if score < SURE:
            continue
        old, new = (
            sum(a for a, _ in some) / sum(b for _, b in some)
            for some in (blocks[begin:split], blocks[split:])
        )
        if new > old + NOTICED * abs(old):
            first += (len(blocks) + split) * size
            found.append((rows, first + 1))
            blocks = blocks[split:]
    return found


def losses_of(kind: str, blocks: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    weights = chance.gamma(3.0, 1.0, blocks) * FIRST
    means = chance.pareto(1.3, blocks) if kind == "tails" else chance.gamma(9.0, 0.05, blocks)
    means = np.round(means, 1) if kind == "ties" else means
    means[blocks // 2 :] *= {"still": 1.0, "twice": 1.0, "tails": 9.0}.get(kind, 3.0)
    if kind == "twice":
        means[blocks // 3 :] += 0.5
        means[3 * blocks // 4 :] += 0.5
    if kind == "falling":
        means += 8 / np.sqrt(1 + np.arange(blocks))
    return means * weights, weights


@pytest.mark.parametrize("kind", ["still", "risen", "tails", "ties", "falling", "twice"])
def test_rises_are_those_of_the_rank_test(kind: str) -> None:
    losses, weights = losses_of(kind, 150, np.random.default_rng(5))
    told = seen(losses, weights, FIRST * np.arange(1, 151), found := LossRises())
    expected = reference(losses, weights)
    assert [(rows, rise.row) for rows, rise in told] == expected
    assert len(told) == {"still": 0, "twice": 2}.get(kind, 1)
    if told:
        assert found.found is told[-1][1]
        assert abs(found.found.row - FIRST * {"twice": 112}.get(kind, 75)) < 12 * FIRST
        assert "since row" in str(found.found)


def test_neither_cuts_nor_stops_change_what_is_found() -> None:
    chance = np.random.default_rng(6)
    losses, weights = losses_of("twice", 150, chance)
    whole = seen(losses, weights, FIRST * np.arange(1, 151), LossRises())
    again, found, rows = [], LossRises(), 0
    while rows < 150 * FIRST:
        due = rows + found.until_due(rows)
        cuts = sorted({*chance.integers(rows + 1, due + 1, 2).tolist(), due})
        again += seen(losses, weights, cuts, found)
        rows, found = due, read(LossRises, json.loads(json.dumps(asdict(found))), "rises")
    assert [(at, rise.row) for at, rise in again] == [(at, rise.row) for at, rise in whole]
    assert again[-1][1] == pytest.approx(whole[-1][1])


@pytest.mark.parametrize("tail", ["normal", "heavy", "falling"])
def test_still_streams_do_not_alarm(tail: str) -> None:
    chance, blocks = np.random.default_rng(7), 1_000_000 // FIRST
    for _ in range(6):
        losses = chance.pareto(1.1, blocks) if tail == "heavy" else chance.gamma(FIRST, size=blocks)
        losses *= 1 + 3 / np.sqrt(1 + np.arange(blocks)) if tail == "falling" else 1
        weights = np.full(blocks, float(FIRST))
        assert not seen(losses, weights, FIRST * np.arange(1, blocks + 1), LossRises())


def rows_of(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Two features that tell the label, in the second half the other way."""
    chance = np.random.default_rng(seed)
    x = chance.integers(0, 2, count)
    y = np.where(chance.random(count) < 0.9, x, 1 - x)
    y[count // 2 :] = chance.random(count - count // 2) < 0.5
    return np.column_stack([x, 1 - x]).astype(float), y


def test_a_model_tells_since_when(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Once, in the progress of the first pass and among the warnings, wherever chunks end."""
    monkeypatch.setattr(loss_rises, "FIRST", 8)
    X, y = rows_of(1600)
    lines = [f"{int(b)} {1 + int(a[0])}:1\n" for a, b in zip(X, y, strict=True)]
    (tmp_path / "d.svm").write_text("".join(lines))
    found = list[tuple[list[str], list[str]]]()
    for size in (100, 1 << 20):
        said = list[str]()
        source = thresher.open_source(tmp_path / "d.svm", block_bytes=size)
        with not_compiled():
            trainer = Trainer(
                thresher.Model("sgd"), source, TrainingPlan(passes=2), ui=ProgressLines(said.append)
            )
            monkeypatch.setattr(trainer.ui, "say", said.append)
            warnings = [one.message for one in trainer.run().warnings if one.name == "loss-rises"]
        found.append(([line for line in said if "since row" in line], warnings))
    assert found[0] == found[1]
    (line,), (warning,) = found[0]
    assert 750 < trainer.loss_rise.row < 850
    assert f"since row {trainer.loss_rise.row:,} the progressive loss is higher: 1." in line
    assert warning.startswith(line)
    assert as_shown(warning).endswith('with rule="ft-ftrl:half_life=800", or train on the rows from there on')
