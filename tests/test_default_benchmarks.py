"""What is measured of the default rule: figures, ratios and goals, on small made data."""

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import defaults, narrow, sparser
from benchmarks.__main__ import BENCHMARKS
from benchmarks.corpora import Corpus, Parts
from benchmarks.defaults import AUTO, BATCH, ONE, OURS, Ratios, Result, Rows
from thresher.data import Chunk


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
            AUTO: Result(ours, 20),
            BATCH: Result(batch, 10),
            "vw": Result(peer, 9),
        }
        found[corpus(f"set {k}", chosen=k < chosen)] = one
    return found


def test_losses_are_those_of_the_definition() -> None:
    labels = np.array([1.0, -1.0])
    log = defaults.loss_of(corpus("a"), np.array([0.0, 2.0]), labels)
    assert log == pytest.approx((math.log(2) + math.log1p(math.exp(2))) / 2)
    assert defaults.loss_of(corpus("a", "value"), np.array([0.0, 2.0]), labels) == (1 + 9) / 2
    assert defaults.loss_of(corpus("a", "classes:1-3"), np.array([1.0, 2.0]), np.array([1.0, 3.0])) == 0.5


@pytest.mark.usefixtures("plainly")
def test_one_pass_is_one_pass_whatever_the_default_is() -> None:
    one, three = (defaults.ours(corpus("a"), PARTS, passes=passes) for passes in (1, 3))
    assert defaults.learners()[ONE](corpus("a"), PARTS) == one
    assert three.loss < one.loss
    assert 1 <= one.nonzero <= 3


def test_ratios_are_geometric_means_and_counts_above() -> None:
    found = Ratios.of(rows_of((1.0, 2.0, 1.0), (2.2, 2.0, 1.0), (2.0, 2.0, 1.0)).values(), OURS, BATCH)
    assert found.mean == pytest.approx((0.5 * 1.1) ** (1 / 3))
    assert found.above == 1
    assert [found.worst, found.weights] == pytest.approx([1.1, 2.0])


def test_goals_are_told_apart_for_sets_used_for_choosing_and_others() -> None:
    goals = defaults.judged(rows_of((0.5, 1.0, 0.5), (0.9, 1.0, 0.8), chosen=1), ["vw"])
    over = {goal.what: goal for goal in goals if BATCH in goal.what}
    assert [one.met for one in over.values()] == [True, False, True]
    assert [what.rsplit(", ", 1)[1] for what in over] == ["sets used for choosing", "other sets", "all sets"]
    online = [goal for goal in goals if "online" in goal.what]
    assert [goal.met for goal in online] == [True, False, False]
    assert "no worse on 50%" in online[-1].measured


@pytest.mark.usefixtures("plainly")
def test_narrow_tables_are_judged_by_the_default_alone(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    default, one_pass = narrow.compared({corpus("easy"): PARTS})
    assert default.met is not None
    assert one_pass.met is None
    assert "easy" in capsys.readouterr().out
    assert narrow.compared({}) == []


@pytest.mark.usefixtures("plainly")
def test_a_rule_needs_the_weights_of_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sparser, "GRID", [1.0, 2.0, 3.0])
    (goal,) = sparser.compared({corpus("easy"): PARTS}, ["ft-ftrl"])
    assert goal.measured.startswith("1.000")
    assert goal.met is False
    assert "easy, l1=2" in capsys.readouterr().out


def test_without_data_nothing_is_measured(tmp_path: Path) -> None:
    from benchmarks.setting import Setting

    setting = Setting(tmp_path, None, 1.0, 1, 0.0)
    assert [BENCHMARKS[name](setting) for name in ("defaults", "narrow", "frontier", "sparser")] == [[]] * 4
