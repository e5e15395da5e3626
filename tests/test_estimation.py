"""Estimates of kept features: against a dense oracle on the other half of the rows, and where there are none.

The experiment `estimation` compares them with statsmodels, and measures how often intervals hold the truth.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import thresher
from thresher.data.chunk import Chunk
from thresher.data.source import groups_of
from thresher.engine.sound import StateError
from thresher.learning.model.objective import Objective
from thresher.learning.training.shares import groups_held_out, held_out
from thresher.options.messages import as_stored
from thresher.plans import select, stability
from thresher.plans.estimation import Estimates, estimate

F64 = NDArray[Any]
pytestmark = pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
ROWS = 300
CHANCE = np.random.default_rng(5)
X = CHANCE.normal(size=(ROWS, 8)).astype(np.float32)
X[:, 2] = X[:, 2] * 1e-3 + 4000
X[:, 5] = CHANCE.random(ROWS) < 0.3
MARGINS = 1.2 * X[:, 0] - 2 * X[:, 5] + 1500 * (X[:, 2] - 4000)
OFFSETS = CHANCE.normal(0, 0.5, ROWS).astype(np.float32)
WEIGHTS = CHANCE.choice([0.0, 0.5, 1.0, 2.5], ROWS)
GROUPS = np.repeat(np.arange(1, 101), 3)
MEANS: dict[str, Any] = {
    "squared": lambda m: m,
    "logistic": lambda m: 1 / (1 + np.exp(-m)),
    "poisson": np.exp,
}
LINKS: dict[str, Any] = {"squared": lambda m: m, "logistic": lambda m: np.log(m / (1 - m)), "poisson": np.log}
STEEP: dict[str, Any] = {"squared": np.ones_like, "logistic": lambda m: m * (1 - m), "poisson": lambda m: m}
Y: dict[str, F64] = {
    "squared": (MARGINS + CHANCE.normal(size=ROWS) * (0.2 + X[:, 0] ** 2 / 4)).astype(np.float32),
    "logistic": np.where(CHANCE.random(ROWS) < MEANS["logistic"](MARGINS), 1, -1),
    "poisson": CHANCE.poisson(np.exp(MARGINS / 2)),
}


def oracle(
    x: F64, y: F64, loss: str, weights: Any = 1.0, offsets: Any = 0.0, groups: Any = None, one: bool = True
) -> tuple[F64, F64]:
    """Estimates and errors by iteratively reweighted least squares, and a sandwich."""
    a = np.column_stack([x, np.ones(len(x))])[:, : x.shape[1] + one].astype(np.float64)
    mean, y = MEANS[loss], np.where(y > 0, 1, 0) if loss == "logistic" else y
    weights = np.broadcast_to(weights, len(y))
    centre, size = a.mean(axis=0) * one, a.std(axis=0)
    centre[x.shape[1] :], size[x.shape[1] :] = 0.0, 1.0
    z = (a - centre) / size
    means = (y + y.mean()) / 2 if loss == "poisson" else (y + 0.5) / 2 if loss == "logistic" else y
    margins = LINKS[loss](means)
    for _ in range(60):
        steep = STEEP[loss](means)
        root = np.sqrt(weights * steep)
        aims = root * (margins - offsets + (y - means) / steep)
        found = np.linalg.lstsq(z * root[:, np.newaxis], aims)[0]
        margins = z @ found + offsets
        means = mean(margins)
    own = found / size
    own[x.shape[1] :] -= centre[: x.shape[1]] @ own[: x.shape[1]]
    inverse = np.linalg.inv((z * (weights * steep)[:, np.newaxis]).T @ z)
    scores = z * (weights * (means - y))[:, np.newaxis]
    groups = np.arange(len(y)) if groups is None else groups
    together = np.array([scores[groups == group].sum(axis=0) for group in np.unique(groups)])
    n, k, g = np.count_nonzero(weights), z.shape[1], len(together)
    covariance = inverse @ together.T @ together @ inverse * g / (g - 1) * (n - 1) / (n - k)
    back = np.diag(1 / size)
    back[x.shape[1] :, : x.shape[1]] = -centre[: x.shape[1]] / size[: x.shape[1]]
    return own, np.sqrt(np.diag(back @ covariance @ back.T))


OPTIONS: dict[str, Any] = {"bags": 8, "passes": 2, "nonzero": 4, "false": 4, "l1": 0.2, "seed": 3}
BESIDE: dict[str, dict[str, Any]] = {
    "squared": {"sample_weight": WEIGHTS},
    "logistic": {"offsets": OFFSETS, "sample_weight": WEIGHTS},
    "poisson": {"groups": GROUPS, "scale": "max-abs", "centre": False},
}


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("loss", MEANS)
def test_the_other_half_estimates_what_one_half_has_chosen(loss: str) -> None:
    beside, y = BESIDE[loss], Y[loss]
    options = {**OPTIONS, "loss": loss}
    found = thresher.select(X, y, estimate=True, **options, **beside)
    apart = held_out(0, ROWS, 2, 3)
    if "groups" in beside:
        apart = groups_held_out(groups_of(GROUPS), 0, 2, 3)
        assert len({*zip(GROUPS.tolist(), apart.tolist(), strict=True)}) == 100
    one: Any
    other: Any
    one, other = (
        {name: array[those] if isinstance(array, np.ndarray) else array for name, array in beside.items()}
        for those in (~apart, apart)
    )
    alone = thresher.select(X[~apart], y[~apart], **options, **one)
    if "groups" not in beside:  # whose rows without a group would have other numbers
        assert [found.keys.tolist(), found.mean.tolist()] == [alone.keys.tolist(), alone.mean.tolist()]
    own = found.estimates
    assert own is not None
    assert own.keys.tolist() == found.keys[found.kept].tolist()
    assert {0, 5} <= {*own.keys.tolist()}
    assert loss == "poisson" or 2 in own.keys, "columns far from 0 are centred"
    given = other.get("sample_weight", np.ones(apart.sum()))
    used = given > 0
    estimate, error = oracle(
        X[apart][used][:, own.keys.astype(int)],
        y[apart][used],
        loss,
        given[used],
        other.get("offsets", np.zeros(apart.sum()))[used],
        other["groups"][used] if "groups" in other else None,
    )
    assert own.rows == used.sum()
    assert np.allclose(own.estimate, estimate, rtol=1e-7)
    assert np.allclose(own.error, error, rtol=1e-6)
    assert np.allclose(own.z, estimate / error, rtol=1e-6)
    assert np.allclose(own.p, 2 * norm.sf(np.abs(estimate / error)), rtol=1e-5)
    assert np.allclose([own.low, own.high], norm.interval(0.9, estimate, error), rtol=1e-6)


def rows_of(x: Any, y: Any, **beside: Any) -> Chunk:
    """Rows with a stored value wherever `x` is not 0."""
    x = np.asarray(x, np.float32)
    places, columns = np.nonzero(x)
    ends = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(x)))])
    rows = Chunk.from_csr(ends, columns.astype(np.uint64), x[places, columns], np.asarray(y, np.float32))
    return replace(rows, **beside)


def fitted(x: Any, y: Any, loss: str = "logistic", intercept: bool = True, **beside: Any) -> Estimates:
    keys = np.arange(np.shape(x)[1], dtype=np.uint64)
    return estimate(rows_of(x, y, **beside), keys, Objective(loss), gaps=False, intercept=intercept)


def told(found: Estimates) -> dict[str, str]:
    return {one.name: as_stored(one.message) for one in found.troubles({4: "x\ty"})}


PLAIN, SIGNS = X[:, [0, 1, 3, 4]], np.where(CHANCE.random(ROWS) < MEANS["logistic"](X[:, 0]), 1.0, -1.0)
RARE = (np.arange(ROWS) % 29 == 0) * 1.0


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_what_tells_labels_without_error_is_infinite_and_the_others_are_estimated(loss: str) -> None:
    y = np.where(RARE > 0, 1, SIGNS) if loss == "logistic" else np.where(RARE > 0, 0, Y[loss])
    found = fitted(np.column_stack([PLAIN, RARE]), y, loss)
    expected = oracle(PLAIN[RARE == 0], y[RARE == 0], loss)
    assert found.estimate[4] == (np.inf if loss == "logistic" else -np.inf)
    assert np.isnan([found.error[4], found.z[4], found.p[4]]).all()
    assert np.allclose(found.estimate[[0, 1, 2, 3, 5]], expected[0], rtol=1e-6)
    assert np.allclose(found.error[[0, 1, 2, 3, 5]], expected[1], rtol=1e-6)
    reason = r"no finite estimate of x\\ty, which tells labels of some rows without error: look for a leak"
    assert re.match(reason, told(found)["separated"])


def test_a_pair_of_features_that_separates_together() -> None:
    one = CHANCE.integers(0, 2, ROWS)
    other = np.where(RARE > 0, 1 - one, one)
    y = np.where(one != other, np.sign(one - other), SIGNS)
    found = fitted(np.column_stack([PLAIN[:, :2], one, other]), y)
    assert found.estimate[2:4].tolist() == [np.inf, -np.inf]
    rest = one == other
    expected = oracle(np.column_stack([PLAIN[:, :2], one])[rest], y[rest], "logistic")
    assert np.allclose(found.estimate[[0, 1, 4]], expected[0][[0, 1, 3]], rtol=1e-6)
    assert np.isinf(fitted(PLAIN, X[:, 0]).estimate[0]), "all rows are told apart"
    assert fitted(PLAIN, np.ones(ROWS)).estimate[-1] == np.inf, "there is one class"


def test_of_features_that_say_the_same_the_most_stable_is_estimated() -> None:
    sums = PLAIN[:, 0] + PLAIN[:, 1]
    many = np.column_stack([PLAIN, sums, np.full(ROWS, 7.0), np.zeros(ROWS)])
    found, expected = fitted(many, SIGNS), oracle(PLAIN, SIGNS, "logistic")
    assert np.isnan(found.estimate[4:7]).all()
    assert np.allclose(found.estimate[[0, 1, 2, 3, 7]], expected[0], rtol=1e-7)
    assert np.allclose(found.error[[0, 1, 2, 3, 7]], expected[1], rtol=1e-6)
    assert told(found)["collinear"].startswith(
        r"no estimate of x\ty, 5, 6, which is constant or a combination"
    )
    kinds = np.eye(3)[np.arange(ROWS) % 3]
    assert np.isnan(fitted(kinds, SIGNS).estimate).tolist() == [False, False, True, False]
    whole = fitted(kinds, Y["squared"], "squared", intercept=False)
    assert np.allclose(whole.estimate, [Y["squared"][k::3].mean() for k in range(3)], rtol=1e-6)


def test_few_rows() -> None:
    once = np.arange(ROWS) == 7
    found = fitted(np.column_stack([PLAIN, once]), X[:, 7], "squared")
    assert found.support[4] == pytest.approx(1.0, abs=0.1)
    assert "the standard error of x\\ty rests on few rows" in told(found)["few-rows"]
    assert not told(fitted(PLAIN, X[:, 7], "squared"))
    for count in (0, 1, 5):
        none = fitted(PLAIN[:count], SIGNS[:count])
        assert not np.isfinite(none.error).any()
        assert told(none)["no-estimates"].startswith(f"{count} rows do not determine 5 estimates: keep fewer")
    one = fitted(PLAIN, SIGNS, groups=np.full(ROWS, 4, np.uint64))
    assert np.isnan(one.error).all(), "one group has no variance"


@pytest.mark.parametrize(
    ("x", "y", "loss"),
    [
        (PLAIN * 1e15, SIGNS, "logistic"),
        (PLAIN * 1e-15, 1e9 * X[:, 7], "squared"),
        (np.round(PLAIN + 60_000, 1), SIGNS, "logistic"),
        (PLAIN, 1e5 * Y["poisson"], "poisson"),
        (PLAIN, X[:, 7] + 1e4, "squared"),
    ],
)
def test_any_scale_and_mean(x: F64, y: F64, loss: str) -> None:
    x, y = x.astype(np.float32), y.astype(np.float32).astype(np.float64)
    for one in (True, False) if loss != "poisson" else (True,):
        found, expected = fitted(x, y, loss, intercept=one), oracle(x, y, loss, one=one)
        assert np.allclose(found.estimate, expected[0], rtol=1e-5, atol=0)
        assert np.allclose(found.error, expected[1], rtol=1e-5, atol=0)


def frame() -> pd.DataFrame:
    values = X[:, 0].astype(float)
    values[::7] = np.nan
    return pd.DataFrame(
        {"y": Y["squared"], "x": values, "kind": np.where(X[:, 5] > 0, "a", "b"), "z": X[:, 1]}
    )


@pytest.mark.usefixtures("plainly")
def test_a_table_with_gaps_and_categories() -> None:
    """A missing number is the mean of its column in the half."""
    table = frame()
    options = {**OPTIONS, "nonzero": 2, "label": "y", "loss": "squared", "names": True}
    found = thresher.select(table, estimate=True, **options)
    own = found.estimates
    assert own is not None
    names = [found.name(key) for key in own.keys.tolist()]
    half = table[held_out(0, ROWS, 2, 3)]
    filled = half.assign(x=half.x.fillna(half.x.mean()))[["x", "kind", "z"]]
    dense = pd.get_dummies(filled, dtype=float, prefix_sep="=")[names].to_numpy()
    estimate, error = oracle(dense, half.y.to_numpy(np.float64), "squared")
    assert {"x", names[1].partition("=")[0]} == {"x", "kind"}
    assert np.allclose(own.estimate, estimate, rtol=1e-6)
    assert np.allclose(own.error, error, rtol=1e-6)


def test_how_rows_are_cut_changes_nothing() -> None:
    keys, rows = np.arange(8, dtype=np.uint64), rows_of(X, SIGNS, groups=GROUPS.astype(np.uint64))
    whole = estimate(rows, keys, Objective("logistic"), gaps=False, intercept=True)
    for many in (5, 64):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("thresher.plans.estimation.BLOCK", many)
            cut = estimate(rows, keys, Objective("logistic"), gaps=False, intercept=True)
        for one, other in zip(whole.tensors().values(), cut.tensors().values(), strict=True):
            assert np.allclose(one, other, rtol=1e-9)


def selected(**more: Any) -> Any:
    return thresher.select(X, Y["squared"], loss="squared", **{**OPTIONS, "estimate": True, **more})


@pytest.mark.usefixtures("plainly")
def test_the_file_the_table_and_the_page(tmp_path: Path) -> None:
    found = selected()
    own = found.estimates
    rows = found.estimated()
    assert [row["feature"] for row in rows] == [*own.keys.tolist(), "intercept"]
    found.save(tmp_path / "s")
    again = thresher.load(tmp_path / "s")
    assert again.estimated() == rows
    assert again.lines() == found.lines()
    assert again.plot() == found.plot() != found.picture()
    lines = [line.split("\t") for line in again.table().splitlines()]
    assert lines[0][8:] == ["estimate", "standard_error", "interval_low", "interval_high", "z", "p"]
    assert [float(line[8]) for line in lines[1:] if line[8]] == own.estimate.tolist()
    assert lines[-1][:3] == ["intercept", "", ""]
    assert found.frame()["standard_error"].tolist()[: len(own.keys)] == own.error[:-1].tolist()
    info = thresher.info(tmp_path / "s")
    assert info["estimates"] == rows
    assert f"rows of estimates      {ROWS // 2}" in repr(info)
    assert "interval low" in repr(info)
    thresher.report(tmp_path / "s", None, tmp_path / "s.html")
    page = (tmp_path / "s.html").read_text()
    assert "kept features, estimated from 150 rows that took no part in choosing them" in page
    assert 'id="estimates"' in page
    assert "Estimates of the kept features" in page
    for wrong in ({"rows": np.zeros(2, np.int64)}, {"error": own.error[1:]}, {"keys": own.keys[:1]}):
        with pytest.raises(StateError):
            Estimates.of({**own.tensors(), **wrong})


@pytest.mark.usefixtures("plainly")
def test_only_the_most_stable_are_estimated_if_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (select, stability):
        monkeypatch.setattr(module, "MOST", 2)
    found = selected()
    assert found.kept.sum() == 3
    assert found.estimates.keys.tolist() == found.keys[:2].tolist()
    assert "of the 3 kept features, only the 2 most stable were estimated" in found.warnings[-1].message


@pytest.mark.usefixtures("plainly")
def test_nothing_is_estimated_if_nothing_is_kept_or_asked_for() -> None:
    assert selected(l1=1e9).estimates is None
    assert selected(estimate=False).estimated() == []
