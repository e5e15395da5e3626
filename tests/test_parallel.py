"""The experiments beside the papers: parallel learning, images, sampled negatives, choosing parameters."""

import re
import runpy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.choice import climb, middle
from benchmarks.tasks import Split, Task, split_rows
from experiments import merging, sampling
from experiments.parallel import LEARNERS, Setting, Side, train
from tests.pages import text_of
from thresher.data import Chunk

SAMPLE = Path(__file__).parent.parent / "examples" / "data"
CASES = [
    pytest.param(rule, made[-1], id=f"{rule.name}_{name}")  # scheduled with the rest of the file
    for rule in (merging.FTRL, merging.ADAGRAD, merging.AROW)
    for name, made in merging.merges(rule)
]
H_OF: dict[str, merging.H] = {"ftrl": (2.0, 1.0, 0.3), "adagrad-fobos": (0.5, 1e-3, 0.0), "arow": (1.0,)}


@pytest.fixture(scope="module")
def side() -> Side:
    task = Task("RCV1-CCAT", "rcv1_train2000.dat.gz")
    split = task.split(SAMPLE)
    return Side(Split(task, split.train.rows(0, 250), split.test.rows(0, 300)))


def learned(side: Side, setting: Setting) -> merging.F64:
    order = np.random.default_rng(1).permutation(len(side.train.labels))
    return train(setting, H_OF[setting.rule.name], side.train, order, side.width)


class _Halved(merging.Rule):
    """Compared with thresher's rule at half the step."""

    def spec(self, h: merging.H) -> str:
        return super().spec((h[0] / 2, *h[1:]))


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("rule", [merging.ADAGRAD, merging.AROW], ids=lambda rule: rule.name.upper())
def test_one_learner_is_thresher(side: Side, rule: merging.Rule) -> None:
    h = H_OF[rule.name]
    side.check(rule, h)
    with pytest.raises(AssertionError, match="is not thresher's"):
        side.check(_Halved(*rule), h)


@pytest.mark.parametrize(("rule", "merge"), CASES)
@pytest.mark.parametrize("schedule", [1 / 8])
def test_one_part_is_one_learner(
    side: Side, rule: merging.Rule, merge: merging.Merge, schedule: float
) -> None:
    alone = learned(side, Setting(rule, passes=2))
    merged = learned(side, Setting(rule, 2, merge, schedule, parts=1))
    np.testing.assert_allclose(merged, alone, rtol=1e-9, atol=1e-12)
    assert (np.abs(learned(side, Setting(rule, 2, merge, schedule)) - alone) > 1e-3).any()


def after(rule: merging.Rule, before: merging.F64, gradients: merging.F64, h: merging.H) -> merging.F64:
    """The states of learners that each made a step on one gradient per feature."""
    parts = np.repeat(before[np.newaxis], len(gradients), axis=0)
    for part, gradient in zip(parts, gradients, strict=True):
        for j, g in enumerate(gradient):
            w = merging.settled(rule.weight, before, h)[j]
            rule.step(part, j, w, 1.0, g, 0.0, h)
    return parts


@pytest.mark.parametrize("rule", [merging.FTRL, merging.ADAGRAD], ids=lambda rule: rule.name.upper())
def test_adapted_sums_are_adaptive_revision(rule: merging.Rule) -> None:
    """One gradient per learner, all taken at the same weights: the algorithm of McMahan and Streeter."""
    random, h = np.random.default_rng(0), (0.7, 1.0, 0.0)
    gradients, before = random.normal(size=(LEARNERS, 6)), np.zeros((4, 6))
    for g in random.normal(size=(3, 6)):
        before = after(rule, before, g[np.newaxis], h)[0]
        before[merging.RAW], before[merging.SUM] = before[merging.TRUST], 0
    w, z, largest = (
        merging.settled(rule.weight, before, h),
        before[merging.RAW].copy(),
        before[merging.TRUST].copy(),
    )
    missed = np.zeros(6)
    for g in gradients:
        old = h[0] / (h[1] + np.sqrt(largest))
        z += g * g + 2 * g * missed
        largest = np.maximum(largest, z)
        step = h[0] / (h[1] + np.sqrt(largest))
        w += -step * g + (old - step) * missed
        missed += g
    merged = merging.adapted(before, after(rule, before, gradients, h), rule, h)
    np.testing.assert_allclose(merging.settled(rule.weight, merged, h), w, rtol=1e-10)
    np.testing.assert_allclose(merged[[merging.TRUST, merging.RAW]], [largest, z], rtol=1e-10)
    assert (largest > z).any()


def test_means_and_sums_of_two_parts() -> None:
    """Feature 0 changed in one part, feature 1 in both, feature 2 in none."""
    before = np.zeros((4, 3))
    before[[merging.VALUE, merging.TRUST], 2] = 5.0, 2.0
    parts = np.array([before, before])
    parts[0, merging.VALUE, :2], parts[0, merging.TRUST, :2] = (1.0, 1.0), (1.0, 1.0)
    parts[1, merging.VALUE, 1], parts[1, merging.TRUST, 1] = 2.0, 3.0
    expected: dict[tuple[str, str], tuple[list[float], list[float]]] = {
        ("mean", "mean"): ([0.5, 1.5, 5], [0.5, 2, 2]),
        ("mean", "sum"): ([0.5, 1.5, 5], [1, 4, 2]),
        ("trust", "mean"): ([1, 1.75, 5], [1, 2.5, 2]),
        ("gain", "sum"): ([1, 1.75, 5], [1, 4, 2]),
    }
    for (by, trust), (value, trusted) in expected.items():
        merged = merging.average(before, parts, merging.ADAGRAD, (1.0, 1.0, 0.0), by, trust)
        np.testing.assert_allclose(merged[[merging.VALUE, merging.TRUST]], [value, trusted])
    merged = merging.total(before, parts, merging.ADAGRAD, (1.0, 1.0, 0.0))
    np.testing.assert_allclose(merged[[merging.VALUE, merging.TRUST]], [[1, 3, 5], [1, 4, 2]])
    merged = merging.total(
        before, parts, merging.AROW, (1.0,)
    )  # precisions 1 + q: (2 * 1 + 4 * 2) / (1 + 1 + 3)
    np.testing.assert_allclose(merged[[merging.VALUE, merging.TRUST]], [[1, 2, 5], [1, 4, 2]])


ROOT = Path(__file__).parent.parent


def test_as_a_script_it_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "images.py"), run_name="__main__")
    (shown,) = re.findall(
        r"^\$ python examples/images.py\n(.*?)^```$", text_of("docs/outputs"), re.DOTALL | re.MULTILINE
    )
    assert capsys.readouterr().out == shown
    assert "<svg" in (ROOT / "build" / "images.svg").read_text(encoding="utf-8")[:1000]


def test_the_correction_undoes_the_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model that knows the share of positives in what was kept."""
    clicks = sampling.made(4000, 0.2)

    def known(learned: Any, test: Any, *_: Any, **__: Any) -> Any:
        share = (learned.labels > 0).mean()
        return np.full(len(test), np.log(share / (1 - share)))

    monkeypatch.setattr(sampling, "margins", known)
    kept = clicks.take((clicks.labels > 0) | (np.random.default_rng(1).random(len(clicks)) < 0.1))
    (_, margins), *_ = sampling.ways(kept, clicks, "ftrl", 0.1)
    share = (clicks.labels > 0).mean()
    assert sampling.link(margins).mean() == pytest.approx(share, rel=0.1)
    assert sampling.figures(margins, clicks.labels > 0)[2] == pytest.approx(1, rel=0.1)


def chunk(rows: int) -> Chunk:
    return Chunk.of_rows([((-1.0) ** i, {i: 1.0}) for i in range(rows)])


@pytest.mark.parametrize("target", list(product(range(5), range(4))))
def test_climbing_finds_the_bottom_of_a_bowl_and_tries_nothing_twice(target: tuple[int, int]) -> None:
    tried = []

    def value(place: tuple[int, ...]) -> tuple[float]:
        tried.append(place)
        a, b = (x - y for x, y in zip(place, target, strict=True))
        return (a * a + b * b + 0.5 * a * b,)

    assert climb((5, 4), middle((5, 4)), value) == target
    assert len(tried) == len(set(tried))


def test_parameters_are_chosen_without_the_test_rows() -> None:
    whole = chunk(53)
    train, test = split_rows(whole)
    split = Split(Task("", "", folds=5), train, test)
    assert set(train.keys.tolist()) | set(test.keys.tolist()) == set(range(53))
    held = []
    for inner in split.inner:
        used, judged = set(inner.train.keys.tolist()), set(inner.test.keys.tolist())
        assert not used & judged
        assert used | judged == set(train.keys.tolist())
        held.append(judged)
    assert len(held) == 5
    assert set.union(*held) == set(train.keys.tolist())
    assert sum(map(len, held)) == len(train)
    assert np.all(np.diff(test.keys.astype(np.int64)) == 5)
