"""Warnings about rows that are held out: other classes than those learned, and groups that no row has."""

import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from thresher.data import Chunk
from thresher.learning.training.holdout import difference
from thresher.learning.training.shares import groups_held_out

ROWS = 400
X = np.eye(7)[np.arange(ROWS) % 7]
Y = np.where(np.arange(ROWS) % 5 < 2, 1, -1)
SORTED = np.sort(Y)
USERS = np.arange(ROWS) // 2

pytestmark = pytest.mark.usefixtures("plainly")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(tmp_path / "cache"))


def told(function: Any, y: Any = Y, **options: Any) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = function(X, y, **options)
    names = ("unlike-holdout", "no-groups", "empty-holdout")
    return {one.name: one.message for one in found.warnings if one.name in names}


def counts(positive: int, negative: int) -> Counter[float]:
    return Counter({1.0: positive, -1.0: negative})


@pytest.mark.parametrize(
    ("held", "learned", "words"),
    [
        (counts(20, 0), counts(50, 50), "all 20 held-out rows have the label 1, of the rows learned 50 %"),
        (
            counts(0, 20),
            counts(50, 50),
            "none of 20 held-out rows have the label 1, of the rows learned 50 %",
        ),
        (counts(9, 0), counts(50, 50), ""),  # fewer than ten of the other class are missing
        (counts(0, 500), counts(10, 990), ""),  # one class is rare
        (
            counts(40, 360),
            counts(800, 800),
            "10 % of the held-out rows have the label 1, of the rows learned 50 %",
        ),
        (counts(60, 40), counts(500, 500), ""),  # two standard errors
        (counts(5400, 4600), counts(50000, 50000), ""),  # eight standard errors, but a small difference
        (
            counts(60, 9940),
            counts(100, 99900),
            "0.6 % of the held-out rows have the label 1, of the rows learned 0.1 %",
        ),
        (counts(9, 991), counts(1, 8999), ""),  # too few to say
        (counts(50, 50), counts(0, 0), ""),
        (
            Counter({0.0: 50}),
            Counter({0.0: 300, 3.0: 100, 5.0: 50}),
            "all 50 held-out rows have the label 0, of",
        ),
        (Counter({2.0: 90, 3.0: 10}), Counter({2.0: 300, 3.0: 300}), "have the label"),
    ],
)
def test_what_is_told(held: Counter[float], learned: Counter[float], words: str) -> None:
    found = difference(held, learned)
    assert words in found
    assert bool(words) == bool(found)


def test_classes_are_called_by_their_words() -> None:
    assert "the label spam, of" in difference(counts(50, 0), counts(50, 50), words=("ham", "spam"))


def test_chance_is_not_told() -> None:
    """Rows drawn at random, many times, with common and rare classes."""
    rng = np.random.default_rng(7)
    for share in (0.5, 0.1, 0.01, 0.001):
        for held, learned in ((100, 900), (1000, 9000), (20, 80)):
            for _ in range(300):
                a, b = rng.binomial(held, share), rng.binomial(learned, share)
                assert not difference(counts(a, held - a), counts(b, learned - b))


def test_the_last_rows_of_sorted_labels() -> None:
    found = told(thresher.train, SORTED, holdout="last:0.2")
    reason = (
        "all 80 held-out rows have the label 1, of the rows learned 25 %: if they are not in the order of"
    )
    assert found["unlike-holdout"] == f"{reason} time, draw the rows to hold out, holdout=0.1"
    assert not told(thresher.train, SORTED, holdout=0.1)
    assert not told(thresher.train, holdout="last:0.2")
    assert "unlike-holdout" in told(thresher.path, SORTED, l1=[0.1, 1.0], holdout="last:0.2")
    assert "unlike-holdout" in told(thresher.tune, SORTED, rules=["ftrl"], budget=2, holdout="last:0.2")
    assert not told(thresher.train, np.sort(np.arange(ROWS) % 9), loss="squared", holdout="last:0.2")


def test_folds() -> None:
    found = told(thresher.cv, SORTED, folds="forward:4", rule="ftrl:l1=0.1")
    assert (
        "rows of fold 3 have the label 1, of the rows learned 0 %: if rows are not" in found["unlike-holdout"]
    )
    assert not told(thresher.cv, SORTED, folds=4, rule="ftrl:l1=0.1")
    assert not told(thresher.cv, folds="forward:4", rule="ftrl:l1=0.1")
    found = told(thresher.cv, folds=2, rule="ftrl:l1=0.1", groups=Y, seed=5)
    assert "use another seed, or leave group out" in found["unlike-holdout"]
    assert not told(thresher.cv, folds=4, rule="ftrl:l1=0.1", groups=USERS)
    assert "no-groups" in told(thresher.cv, folds=4, rule="ftrl:l1=0.1", groups=[None] * ROWS)


WEIGHTLESS = np.where(np.arange(ROWS) < 320, 1, 0)


@pytest.mark.parametrize("held", ["last:0.2", Chunk.from_csr([0, 1, 2], [0, 1], [1, 1], [1, -1], [0, 0])])
@pytest.mark.parametrize(
    ("function", "options"),
    [
        (thresher.train, {"early_stop": 1, "passes": 3}),
        (thresher.path, {"l1": [0.1, 1.0], "early_stop": 1, "passes": 3}),
        (thresher.ensemble, {"models": 2, "passes": 2}),
        (thresher.tune, {"rules": ["ftrl"], "budget": 2}),
    ],
)
def test_rows_that_are_held_out_and_do_not_count(function: Any, options: Any, held: Any) -> None:
    found = told(function, sample_weight=WEIGHTLESS, holdout=held, **options)
    reason = "no held-out row has an importance above 0, so there is nothing to judge by"
    assert found["empty-holdout"].startswith(reason)
    assert found.keys() == {"empty-holdout"}


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
def test_a_model_that_nothing_judges_makes_all_passes() -> None:
    model = thresher.train(X, Y, sample_weight=WEIGHTLESS, holdout="last:0.2", early_stop=1, passes=3)
    assert model.holdout is None
    assert model.examples == 3 * 320


def test_rows_that_do_not_count_change_no_figure() -> None:
    held, weights = np.arange(ROWS) % 4 == 1, np.where(np.arange(ROWS) % 8 == 1, 0, 1)
    found = []
    for which in (held, held & (weights > 0)):
        judge = (X[which], Y[which], weights[which])
        held_out = Chunk.from_csr(
            np.arange(len(judge[1]) + 1), judge[0].argmax(axis=1), np.ones(len(judge[1])), *judge[1:]
        )
        frontier = thresher.path(X[~held], Y[~held], holdout=held_out, l1=[0.1, 1.0], passes=2)
        found.append([(point.holdout, point.paired_error) for point in frontier.points])
    assert found[0] == found[1]


def test_folds_that_nothing_judges() -> None:
    options: dict[str, Any] = {"rule": "ftrl:l1=0.1", "folds": "forward:4"}
    found = told(thresher.cv, sample_weight=WEIGHTLESS, **options)
    assert found["empty-holdout"].startswith("no row of fold 4 has an importance above 0, so the figures are")
    ones = np.where(np.arange(ROWS) % 80 == 3, 1, -1)
    found = told(thresher.cv, ones, **(options | {"folds": 30}))
    assert re.match(r"the rows of \d+ folds, such as fold \d+, have one class only", found["unlike-holdout"])


def test_separate_data_of_one_class() -> None:
    held = Chunk.from_csr(np.arange(51), np.zeros(50, int), np.ones(50), np.ones(50))
    assert "has rows of one class only" in told(thresher.train, holdout=held)["unlike-holdout"]
    both = Chunk.from_csr(np.arange(51), np.zeros(50, int), np.ones(50), Y[:50])
    assert not told(thresher.train, holdout=both)
    assert not told(thresher.train, holdout=held.rows(0, 9))


def test_groups_that_no_row_has() -> None:
    assert "no row has a group" in told(thresher.train, groups=[""] * ROWS, holdout=0.1)["no-groups"]
    assert not told(thresher.train, groups=USERS, holdout=0.1)


def test_namespaces_of_vw_text() -> None:
    """Their text is the group, and they stay features; another name is reported."""
    lines = [f"{y} |user u{k // 4} x:a |item i{k % 7}\n" for k, y in enumerate(Y)]
    Path("rows.vw").write_text("".join(lines))
    groups = [f"u{k // 4} x:a" for k in range(ROWS)]
    found = thresher.train("rows.vw", "ft-ftrl:l1=0.01", group="user", holdout=0.2, passes=1)
    held = groups_held_out(_hashes(groups), 0, 5, 0)
    assert found.examples == ROWS - held.sum()
    with pytest.warns(
        thresher.TroubleWarning, match=r"no row has a group \(usr\), so rows were drawn one by one"
    ):
        thresher.train("rows.vw", "ft-ftrl:l1=0.01", group="usr", holdout=0.2, passes=1)


def _hashes(groups: list[str]) -> Any:
    from thresher.data.source import groups_of

    return groups_of(groups)


def test_a_holdout_that_is_learned_too(tmp_path: Path, plainly: None) -> None:
    file = tmp_path / "a.svm"
    file.write_text("1 1:1 2:1\n0 2:1\n" * 60)
    (tmp_path / "b.svm").write_text(file.read_text())
    (tmp_path / "link.svm").symlink_to(file)
    for held in (file, tmp_path / "link.svm"):
        with pytest.warns(thresher.TroubleWarning, match=rf"the hold-out is among the data \({held}\)"):
            thresher.train(str(tmp_path / "[ab].svm"), rule="sgd", holdout=str(held))
    model = thresher.train(str(file), rule="sgd", holdout=str(tmp_path / "b.svm"))
    assert model.holdout is not None
    assert model.holdout["loss"] == thresher.evaluate(model, str(tmp_path / "b.svm"))["loss"]
    assert model.frame()["holdout_loss"].tolist()[-1] == model.holdout["loss"]
    assert thresher.train(str(file), rule="sgd").holdout is None
