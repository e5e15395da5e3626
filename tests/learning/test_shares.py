"""Holding out a share of the rows: which rows are chosen, whatever else changes."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from thresher.data import Chunk, MemorySource
from thresher.learning.training.holdout import Holdout
from thresher.learning.training.shares import held_out, part_of

ROWS = 1000
CHUNK = Chunk.from_csr(
    np.arange(ROWS + 1), np.arange(ROWS) % 40, np.ones(ROWS), np.where(np.arange(ROWS) % 40 % 3, 1.0, -1.0)
)
SHARES = [0.2, "0.4", 0.29, 1 / 3, 0.999, "1e-3", 0.123456, np.float32(0.1), "every-7th", Fraction(2, 3)]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def model_bytes(model: thresher.Model) -> bytes:
    thresher.save(model, "model")
    return Path("model").read_bytes()


def exactly(share: Any) -> Fraction:
    if share == "every-7th":
        return Fraction(1, 7)
    return Fraction(1, 3) if share == 1 / 3 else Fraction(str(share))


@pytest.mark.parametrize("share", SHARES, ids=str)
def test_which_rows_are_held_out(share: Any) -> None:
    p = exactly(share)
    every = part_of(share)
    assert isinstance(every, int | Fraction)
    chosen = held_out(0, ROWS, every, 5)
    expected, others = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    assert np.abs(np.cumsum(chosen) - np.arange(1, ROWS + 1) * float(p)).max() < 2
    holdout = Holdout(every)
    holdout.seed = 5
    for cut in (1 if share == "every-7th" else 7, ROWS):  # later passes hold out the same rows
        pieces = [CHUNK.rows(lo, min(lo + cut, ROWS)) for lo in range(0, ROWS, cut)]
        rest = [int(row) for chunk in holdout.rest(MemorySource(pieces)).chunks() for row in chunk.keys]
        source = holdout.source()
        held = [int(row) for chunk in source.chunks() for row in chunk.keys]
        assert held == [i % 40 for i in expected]
        assert rest == [i % 40 for i in others]


def test_the_first_of_ten_are_in_every_fold() -> None:
    """Positives at every tenth row: each fold and hold-out has its share of them."""
    labels = np.where(np.arange(ROWS) % 10 == 0, 1.0, -1.0)
    rows = Chunk.from_csr(np.arange(ROWS + 1), np.arange(ROWS) % 40, np.ones(ROWS), labels)
    found = thresher.cv(rows, "ft-ftrl", l1="0.1:1:2", folds=10)
    assert all(point.figures["auc"] is not None for point in found.points)
    assert found.points[0].loss < 0.5
    held = thresher.path(rows, l1="0.1:1:2").points[0].holdout
    assert held is not None
    assert held["auc"] is not None


def test_a_fifth_is_every_fifth() -> None:
    assert part_of(0.2) == part_of("20%") == part_of("every-5th") == 5
    data = (CHUNK, "ftrl")
    assert model_bytes(thresher.train(*data, holdout=0.2)) == model_bytes(
        thresher.train(*data, holdout="every-5th")
    )
    assert [p.holdout for p in thresher.path(*data, holdout=0.2, l1="0.1:0.2:2").points] == [
        p.holdout for p in thresher.path(*data, holdout="every-5th", l1="0.1:0.2:2").points
    ]


@pytest.mark.usefixtures("plainly")
def test_tune_reports_on_a_share_that_it_does_not_learn() -> None:
    chunk = CHUNK.rows(0, 200)
    found = thresher.tune(chunk, rules=["ft-ftrl"], budget=4, holdout=0.4)
    head, *lines, report = repr(found).splitlines()
    assert head.split()[:2] == ["round", "rows"]
    assert [line.startswith("* ") for line in lines] == [k == found.chosen for k in range(4)]
    assert all(trial.rule in line for line, trial in zip(lines, found.trials, strict=True))
    assert report.startswith("rows not used for choosing: examples ")
    held = held_out(0, 200, Fraction(5, 2), 0)
    other = thresher.tune(
        chunk.take(~held), rules=["ft-ftrl"], budget=4, holdout=MemorySource(chunk.take(held))
    )
    assert found.report["examples"] == 80
    assert found.report == pytest.approx(other.report)
    for one, same in zip(found.model.weights(), other.model.weights(), strict=True):
        assert np.array_equal(one, same)


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1, float("nan"), float("inf"), "0", "1e-9", "-0.1"])
@pytest.mark.parametrize("call", [thresher.train, thresher.path, thresher.tune])
def test_what_is_no_share(call: Any, share: Any) -> None:
    with pytest.raises(ValueError, match=f"holdout {share}: a share of the rows lies between 0 and 1"):
        call(CHUNK, holdout=share)


def test_shares_that_are_misunderstood() -> None:
    with pytest.raises(ValueError, match="passes must be auto or a whole number from 1 to 1,000,000,000"):
        thresher.train(CHUNK, passes=10**30)
    Path("0.2").write_text("1 1:1\n-1 3:1\n")
    found = thresher.path(CHUNK, "ft-ftrl", holdout="./0.2", l1="0.1:0.2:2")
    assert [point.holdout and point.holdout["examples"] for point in found.points] == [2, 2]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("user=u0001", "write text in quotes: \"user='u0001'\""),
        ("day!=mon", "write text in quotes: \"day!='mon'\""),
    ],
)
def test_a_condition_without_quotes_is_not_just_a_missing_file(
    given: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="there is no such file") as error:
        part_of(given)
    assert str(error.value).endswith(meant)
    assert part_of(meant.partition('"')[2].rstrip('"')) is not None
    Path(given).touch()
    assert part_of(given) is None


@pytest.mark.parametrize("name", ["test", "test.svm", "day=20/part.parquet", "s3://b/last", "last*", "a,b"])
def test_other_names_are_files(name: str) -> None:
    assert part_of(name) is None
