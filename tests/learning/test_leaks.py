"""Columns that tell the label alone are named, if the model is far better than a constant; others are not."""

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import thresher
from thresher.learning.diagnostics import run_findings
from thresher.learning.diagnostics.leaks import telling
from thresher.sklearn import SparseOnlineClassifier

pytestmark = pytest.mark.usefixtures("plainly")

N = 640
CHANCE = np.random.default_rng(4)
X = CHANCE.normal(size=(N, 2))
NUMBERS = X[:, 0] - X[:, 1] + CHANCE.normal(size=N)
Y = (NUMBERS > 0).astype(int)
TABLE = pd.DataFrame(X, columns=["a", "b"])


def leaks(data: Any, y: Any = Y, **options: Any) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = thresher.train(data, y, **{"passes": 3, **options}).warnings
    return [one.message for one in found if one.name == "leak"]


TELLING = {
    "copy": Y,
    "words": np.where(Y, "yes", "no"),
    "categories": np.where(Y, CHANCE.choice(["u", "v"], N), CHANCE.choice(["p", "q", "r"], N)),
    "filled": [f"d{k % 5}" if label else None for k, label in enumerate(Y)],
    "larger": np.where(Y, 5, 0) + CHANCE.random(N),
}


@pytest.mark.parametrize("name", TELLING)
@pytest.mark.parametrize("options", [{}, {"holdout": 0.2}])
def test_a_column_that_tells_the_class(name: str, options: dict[str, Any]) -> None:
    (message,) = leaks(TABLE.assign(refund=TELLING[name]), **options)
    assert message.startswith("the held-out loss is" if options else "the loss on rows seen before is")
    assert message.endswith(
        ", and column refund alone tells the label in the first rows: if it is filled in with the label or"
        ' after it, leave it out, ignore="refund"'
    )


def test_an_estimator_names_the_column_of_its_layout() -> None:
    table = TABLE.assign(text="some words", refund=TELLING["larger"])
    with pytest.warns(thresher.TroubleWarning, match="column refund alone tells the label"):
        SparseOnlineClassifier(layout={"text": ["text"]}).fit(table, Y)


@pytest.mark.parametrize(
    "column",
    [
        np.where(np.arange(N) % 25 == 0, 1 - Y, Y),  # wrong in 4 %
        [f"user {k // 2}" for k in range(N)],
        np.arange(N),
        np.zeros(N),
        NUMBERS + CHANCE.normal(size=N),
    ],
)
def test_columns_that_leave_something_open(column: Any) -> None:
    assert not leaks(TABLE.assign(other=column))


def test_several_that_tell_it_together_and_few_rows() -> None:
    both = TABLE.assign(c=Y ^ (np.arange(N) % 2), d=np.arange(N) % 2)
    assert not leaks(both.assign(e=both.c ^ both.d ^ (np.arange(N) % 3 == 0)))
    assert not leaks(TABLE[:400].assign(refund=Y[:400]), Y[:400])


FOR_ONE = (
    "column refund alone tells the label in the first rows: if it is filled in with the label or after it"
)


@pytest.mark.parametrize(("value", "share"), [(1, 1), (0, 0.99)])
def test_numbers_that_are_filled_for_one_class(value: int, share: float) -> None:
    filled = (value == Y) & (CHANCE.random(N) < share)
    (message,) = leaks(TABLE.assign(refund=np.where(filled, CHANCE.lognormal(size=N), np.nan)), passes=1)
    assert message.startswith(FOR_ONE)


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.05, 1], [0, 0.6]])
def test_numbers_that_are_missing_more_often_in_one_class(shares: list[float]) -> None:
    kept = CHANCE.random(N) < np.array(shares)[Y]
    assert not leaks(TABLE.assign(other=np.where(kept, CHANCE.lognormal(size=N), np.nan)), passes=1)


def test_features_without_columns(tmp_path: Path) -> None:
    (message,) = leaks(np.c_[X, Y])
    assert "feature 2 alone tells the label" in message
    (message,) = leaks(sparse.csr_matrix(np.c_[X, 3 * Y, 1 - Y]))
    assert "feature 2, feature 3 each tell the label" in message
    rows = "".join(f"{y} 1:{a:.3f}{' 7:1' if y else ''}\n" for y, a in zip(Y, X[:, 0], strict=True))
    (tmp_path / "d.svm").write_text(rows)
    (message,) = leaks(tmp_path / "d.svm", None)
    assert "feature 7 alone tells the label" in message
    (message,) = leaks(
        [{"a": float(a), **({"refund": 1.0} if y else {})} for y, a in zip(Y, X[:, 0], strict=True)]
    )
    assert "(refund) alone tells the label" in message


@pytest.mark.parametrize(
    ("column", "tells"),
    [
        (NUMBERS, True),
        (-3 * NUMBERS + 1, True),
        (NUMBERS * (1 + 1e-4 * X[:, 0]), True),
        (NUMBERS + 0.2 * X[:, 0], False),
        (np.zeros(N), False),
    ],
)
def test_a_column_that_tells_a_number(column: Any, tells: bool) -> None:
    assert bool(leaks(TABLE[["b"]].assign(k=column), NUMBERS, loss="squared", passes=8)) == tells


def test_what_is_counted_and_cut_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    TABLE.assign(refund=Y, label=Y).to_csv(path, index=False)
    with pytest.warns(thresher.TroubleWarning, match=r"column refund alone tells .* \[leak\]"):
        model = thresher.train(path, passes=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.warnings == thresher.train(path, passes=1, threads=1).warnings
        (warning,) = thresher.train(path, passes=2, cache=True).warnings
        assert warning.message.endswith(
            "column refund alone tells the label in the first rows: if it is filled"
            ' in with the label or after it, leave it out, ignore="refund"'
        )


def test_texts_take_their_own_room() -> None:
    """A long text among short ones: 640 as long as it would take 512 MB."""
    words = np.where(Y, "yes", "no").astype(object)
    words[3] += " " * 200_000 + "."
    tracemalloc.start()
    try:
        assert leaks(TABLE.assign(refund=words), passes=1)
        assert tracemalloc.get_traced_memory()[1] < 64e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("short", [False, True])
def test_a_search_that_fails_loses_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: bool
) -> None:
    path = tmp_path / "d.csv"
    TABLE.assign(refund=Y, label=Y).to_csv(path, index=False)

    def fail(*given: Any) -> list[str]:
        if short:
            raise MemoryError
        path.unlink()
        return telling(*given)

    monkeypatch.setattr(run_findings, "telling", fail)
    reason = "memory is short" if short else f".*{path}"
    with pytest.warns(thresher.TroubleWarning, match=f"whether a column alone tells the label: {reason}"):
        model = thresher.train(path, passes=1)
    assert [one.name for one in model.warnings] == ["unknown-leak"]
    low, high = model.predict(TABLE[:2].assign(refund=[0, 1]))
    assert low < high


COUNTS = CHANCE.poisson(0.4 * np.exp(X[:, 0] / 2))


@pytest.mark.parametrize(
    ("column", "tells"),
    [
        (COUNTS, True),
        (2.5 * COUNTS + 1, True),
        (COUNTS * CHANCE.gamma(2, 1000, N), True),
        (np.where(COUNTS > 0, CHANCE.choice(["fire", "water"], N), "none"), True),
        (np.where(COUNTS > 0, CHANCE.gamma(2, 1000, N), np.nan), True),
        (CHANCE.poisson(COUNTS + 0.1), False),
        (X[:, 0], False),
        (np.where(CHANCE.random(N) < 0.1, 1 - (COUNTS > 0), COUNTS), False),
    ],
)
@pytest.mark.parametrize("scale", [1, 20])
def test_a_column_that_tells_a_count(column: Any, scale: int, tells: bool) -> None:
    found = leaks(TABLE.assign(claims=column), scale * COUNTS, loss="poisson", passes=1)
    assert bool(found) == tells
    assert all("column claims alone tells the label in the first rows" in one for one in found)
