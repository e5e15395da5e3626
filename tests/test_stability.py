"""Stability selection: which rows a half learns, the bound, what the halves agree on, what is kept."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import thresher
from tests.streams import KINDS, settings_of
from thresher.data.chunk import Chunk, concat
from thresher.learning.files import model_file
from thresher.learning.files.model_file import Contents, ModelFileError
from thresher.learning.model.bags import Bags, make_bags, share_of
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.learning.model.scaling import Spreads
from thresher.options.messages import as_stored
from thresher.plans.stability import Selection, factor, most_selected, selection_of, threshold, troubles_of

ROWS, COLUMNS = 240, 30
CHANCE = np.random.default_rng(8)
X = (CHANCE.random((ROWS, COLUMNS)) < 0.3) * CHANCE.normal(1, 0.3, (ROWS, COLUMNS)).astype(np.float32)
Y = np.where(X[:, 3] - X[:, 7] + CHANCE.normal(0, 0.3, ROWS) > 0, 1, -1)


def test_the_models_of_a_pair_learn_groups_apart() -> None:
    groups = np.repeat(np.arange(1, 101, dtype=np.uint64), 10)
    draws = Bags.of("halves:4", 1).draw(0, 1000, groups)
    models = make_bags(Recipe("ftrl", l1=0.1), share_of("halves:4", 1))
    chunk = Chunk.of_rows([(1.0, {7: 1.0})] * 1000)
    models.learn(replace(chunk, groups=groups))
    assert [model.examples for model in models.models] == draws.sum(axis=1).tolist()


@pytest.mark.parametrize("pairs", [4, 9])
def test_the_bound_is_the_largest_tail_of_a_unimodal_distribution(pairs: int) -> None:
    """P(both halves of a share 2 tau - 1 of the pairs or more), given a mean of theta^2, as a linear program.

    A unimodal distribution is a mixture of uniform ones on intervals that hold its mode.
    """
    theta, values = 0.05, np.arange(pairs + 1) / pairs
    for count in range(pairs + 2, 2 * pairs + 1):
        tail, most = values >= 2 * count / (2 * pairs) - 1 - 1e-12, 0.0
        for mode in range(pairs + 1):
            spans = [(a, b) for a in range(mode + 1) for b in range(mode, pairs + 1)]
            laws = [(np.arange(pairs + 1) >= a) & (np.arange(pairs + 1) <= b) for a, b in spans]
            means = [[values[law].mean() for law in laws]]
            found = linprog(
                [-tail[law].mean() for law in laws],
                A_ub=means,
                b_ub=[theta**2],
                A_eq=[[1.0] * len(laws)],
                b_eq=[1.0],
            )
            most = max(most, -found.fun) if found.status == 0 else most
        assert factor(count / (2 * pairs), pairs) * theta**2 == pytest.approx(most, rel=1e-6)


def test_the_threshold_is_the_lowest_that_keeps_the_bound() -> None:
    for selected, false in ((30.0, 1.0), (100.0, 5.0), (220.0, 5.0)):
        share = threshold(selected, 10_000, 32, false)
        assert share is not None
        below = share - 1 / 32
        assert factor(share, 16) * selected**2 / 10_000 <= false
        assert below < 0.5 + 1 / 16 or factor(below, 16) * selected**2 / 10_000 > false
    most = most_selected(10_000, 32, 5.0)
    assert threshold(most, 10_000, 32, 5.0) == 1.0
    assert threshold(most + 1, 10_000, 32, 5.0) is None
    assert threshold(60, 100, 32, 1e9) is None, "the theorem is for theta up to 1 / sqrt(3)"


@pytest.mark.usefixtures("plainly")
def test_what_halves_agree_on() -> None:
    """The table equals one from dense weights of models trained alone on their halves."""
    models = make_bags(Recipe("ftrl", l1=0.5), share_of("halves:6", 2))
    models.learn(Chunk.from_csr(*csr(X), Y.astype(np.float32)))
    found = selection_of(models, 5.0, 4)
    dense = np.zeros((6, COLUMNS))
    for k, learned in enumerate(Bags.of("halves:6", 2).draw(0, ROWS)):
        model = Model("ftrl", l1=0.5)
        model.learn(X[learned > 0], Y[learned > 0])
        keys, weights = model.weights()
        dense[k, keys.astype(int)] = weights
    effects = np.abs(dense) * X.std(axis=0) / np.sqrt((X != 0).mean(axis=0))
    largest = np.argsort(-effects, axis=1, kind="stable")[:, :4]
    share = np.bincount(largest.ravel(), minlength=COLUMNS) / 6
    assert dict(zip(found.keys.tolist(), found.share, strict=True)) == {
        k: share[k] for k in np.flatnonzero(share)
    }
    own = dense[:, found.keys.astype(int)]
    assert np.allclose(found.mean, own.mean(axis=0))
    assert np.allclose([found.low, found.high], np.quantile(own, [0.05, 0.95], axis=0))
    assert found.sign_changes.tolist() == ((own.min(axis=0) < 0) & (own.max(axis=0) > 0)).tolist()
    assert found.sign_changes.any()
    assert (np.diff(found.share) <= 0).all()
    assert {3, 7} == {*found.keys[:2].tolist()}
    assert found.selected == 4.0
    assert found.features == COLUMNS


def test_spreads_of_features() -> None:
    """Far-off means, with what float32 has lost; missing numbers; rare features; any cuts and stops."""
    chance, rows = np.random.default_rng(3), 500
    rare = np.where(chance.random(rows) < 0.02, chance.normal(3e4, 1, rows), 0)
    columns = [chance.normal(1.7e9, 30, rows), chance.normal(1e-6, 1e-8, rows), rare, np.full(rows, 7.0)]
    dense = np.column_stack([*columns, chance.random(rows) < 0.9])
    dense[chance.random(rows) < 0.2, 1] = np.nan
    known = [column[~np.isnan(column)] for column in dense.T]
    expected = [np.sqrt(column.var() / (column != 0).mean()) for column in known]
    ends, keys, values = csr(dense)
    values = np.where(np.isnan(values), 0, values)  # as tables have missing numbers
    low = values.astype(np.float32)
    weights = np.r_[np.zeros(1), np.ones(rows)]
    first = Chunk.from_csr(np.array([0, 1]), np.array([9], np.uint64), np.ones(1), np.ones(1))
    chunk = concat([first, Chunk.from_csr(ends, keys, low, np.ones(rows))])
    rests = np.r_[0, values - low].astype(np.float32)
    chunk = replace(chunk, weights=weights.astype(np.float32), rests=rests)
    found = Spreads()
    for begin, end in pairwise([0, 1, 2, 40, 333, rows + 1]):
        found.add(chunk.rows(begin, end), gaps=True)
        state, found = found.state(), Spreads()
        found.check(state)
        found.restore(state)
    assert np.allclose(found.of(np.arange(5, dtype=np.uint64)), expected, rtol=1e-6, atol=0)
    assert found.of(np.array([9, 77], np.uint64)).tolist() == [0, 0], "of importance 0, and never there"
    whole = Spreads()
    whole.add(chunk, gaps=True)
    assert {n: a.tobytes() for n, a in whole.state().items()} == {n: a.tobytes() for n, a in state.items()}


UNITS = np.array([1.0, 1e3, 1e-3, 1.0, 1e-3, 1e3, 1.0, 1e3, 1e-3, 1.0])
WITHOUT_UNITS = ("coin", "ft-ftrl", "normalized")
"""Rules whose steps do not depend on the units of columns"""


def mixed() -> tuple[Any, Any]:
    """Columns that are always there, two of them far from 0, beside rare ones; 3, 4, 5 and 7 are true."""
    chance = np.random.default_rng(6)
    table = chance.normal(0, 1, (300, 10)) + 9 * np.isin(np.arange(10), [1, 4])
    table[:, 6:] *= chance.random((300, 4)) < 0.2
    margins = 2 * table[:, 3] - 1.5 * (table[:, 4] - 9) + table[:, 5] + 3 * table[:, 7]
    return table, np.where(margins + chance.logistic(0, 0.5, 300) > 0, 1, -1)


def shares(X: Any, labels: Any, options: dict[str, Any]) -> dict[int, float]:
    found = thresher.select(X, labels, bags=4, nonzero=4, passes=1, seed=2, **options)
    return dict(zip(found.keys.tolist(), found.share.tolist(), strict=True))


SCALED: list[dict[str, Any]] = [{"rule": settings_of(name)[0]} for name in WITHOUT_UNITS]
SCALED += [{"rule": settings_of(name)[0], "scale": "standard"} for name in KINDS[::3]]


@pytest.mark.parametrize("options", [*SCALED, {"scale": "max-abs"}, {"centre": False}, {"store": "direct"}])
@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
@pytest.mark.usefixtures("plainly")
def test_the_units_of_columns_do_not_matter(options: dict[str, Any]) -> None:
    table, labels = mixed()
    assert shares(table, labels, options) == shares(table * UNITS, labels, options)


@pytest.mark.usefixtures("plainly")
def test_what_has_the_largest_effect_is_selected_whatever_its_unit() -> None:
    table, labels = mixed()
    for units in (np.ones(10), UNITS, 1 / UNITS):
        found = thresher.select(table * units, labels, bags=4, nonzero=4, false=1.2, passes=3)
        assert sorted(found.keys[found.kept].tolist()) == [3, 4, 5, 7]


def csr(dense: Any) -> tuple[Any, Any, Any]:
    rows, columns = np.nonzero(dense)
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
    return ends, columns.astype(np.uint64), dense[rows, columns]


@pytest.mark.usefixtures("plainly")
def test_a_feature_lives_if_any_output_has_a_weight() -> None:
    labels = np.where(X[:, 3] > 0.5, 0, np.where(X[:, 7] > 0.5, 1, 2))
    found = thresher.select(
        X, labels, bags=4, outputs="classes:0-2", passes=2, nonzero=5, l1=1.0, centre=False
    )
    assert {3, 7} <= {*found.keys[found.share == 1.0].tolist()}
    output = dict(zip(found.keys.tolist(), found.output.tolist(), strict=True))
    assert (output[3], output[7]) != (output[7], output[3])
    assert found.outputs == ("0", "1", "2")
    assert found.rows()[0]["output"] in found.outputs


@pytest.mark.usefixtures("plainly")
def test_no_threshold(recwarn: pytest.WarningsRecorder) -> None:
    found = thresher.select(X, Y, bags=4, nonzero=17, l1=0.01, false=1, passes=1)
    assert found.threshold is None
    assert found.expected is None
    assert not found.kept.any()
    assert found.warnings[-1].name == "no-threshold"
    assert "use nonzero=" in str(recwarn[-1].message)


def stable(selected: float, kept: int = 10, others: int = 0) -> Selection:
    """Features of which the first `kept` live in every half, with a threshold of 3/4 for 1,000 features."""
    count = kept + others
    share, no = np.repeat([1.0, 0.5], [kept, others]), np.zeros(count)
    keys = np.arange(count, dtype=np.uint64)
    flags, output = no.astype(np.bool_), no.astype(np.int64)
    return Selection(keys, share, no, no, no, flags, output, 32, 5.0, 1000, selected, 0.75)


def test_many_false() -> None:
    """A third of ten kept features are 3.33; the bound is 16 / 15 q^2 / 1000."""
    assert stable(55).expected == pytest.approx(3.2267, rel=1e-4)
    assert troubles_of(stable(55)) == []
    (found,) = troubles_of(stable(57))
    assert found.name == "many-false"
    assert "of the 10 kept features is that on average at most 3.47 are false" in as_stored(found.message)
    assert "such as --false 1.0, keeps" in as_stored(found.message)
    assert troubles_of(stable(57, kept=0, others=3)) == [], "there is nothing to be false"


@pytest.mark.usefixtures("plainly")
@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
@pytest.mark.parametrize(("count", "false", "most"), [(3, 1 / 3, 1), (20, 1.0, 4), (40, 2.0, 8)])
def test_few_features_have_a_smaller_bound_unless_one_is_given(count: int, false: float, most: int) -> None:
    """A twentieth of them, so that each false one is kept with a chance of 5 % at most, on average."""
    X = np.random.default_rng(0).normal(size=(60, count))
    found = thresher.select((X, np.sign(X[:, 0] + X[:, 1])), bags=8, passes=1, l1=0.01)
    assert found.false == pytest.approx(false)
    assert found.selected <= most
    assert found.threshold is not None


def test_a_table_of_no_features_has_its_header() -> None:
    none = stable(57, kept=0, others=0)
    assert none.table() == "feature\tname\tkept\tshare\tmean\tlow\thigh\tsign_changes\n"
    assert none.lines() == ["no feature lives in any half"]


@pytest.mark.usefixtures("plainly")
def test_the_file(tmp_path: Path) -> None:
    rows = [{"a": float(x[3]), "b\tc": float(x[7]), "d": 1.0} for x in X]
    found = thresher.select(rows, Y, bags=4, names=True, passes=2)
    found.save(tmp_path / "s")
    again = thresher.load(tmp_path / "s")
    assert isinstance(again, Selection)
    assert again.figures() == found.figures()
    for name in ("keys", "share", "mean", "low", "high", "sign_changes", "output"):
        assert getattr(again, name).tolist() == getattr(found, name).tolist()
    assert again.called == found.called
    assert "have no names" not in str(thresher.info(tmp_path / "s"))
    assert again.table() == found.table()
    assert r"b\tc" in found.table()
    with pytest.raises(ValueError, match="a selection, not a model"):
        thresher.predict(tmp_path / "s", rows)
    whole, tensors = Contents.of(tmp_path / "s").run, Contents.of(tmp_path / "s").extras()
    for run, arrays in (
        ({"halves": "x"}, {}),
        ({"outputs": [1]}, {}),
        ({}, {"selection.share": np.zeros(1)}),
        ({}, {"selection.output": tensors["selection.output"] + 9}),
    ):
        table = {**whole["selection"], **run}
        model_file.write_all(tmp_path / "s", [], {"selection": table}, {**tensors, **arrays})
        with pytest.raises(ModelFileError, match=r"s: \S"):
            Selection.load(tmp_path / "s")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"bags": 5}, "bags must be an even number from 4 to 998, not 5"),
    ({"share": 0.6}, "share must be a share above 0, up to 0.5, not 0.6"),
    ({"false": 0}, "false must be a number above 0, not 0"),
    ({"nonzero": 0}, "nonzero must be a whole number of at least 1"),
    ({"store": "hashed:8"}, 'use store="growing"'),
    ({"order": "every", "passes": 2}, "go to different models in each pass"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_options_before_anything_is_read(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text("1 1:1\n0 bad\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        thresher.select(tmp_path / "d.svm", **options)


def test_a_stream_cannot_be_read_twice() -> None:
    rows = iter([(1, {"a": 1.0}), (-1, {"b": 1.0})])
    with pytest.raises(ValueError, match="a stream can be read only once"):
        thresher.select(rows, names=True)
    assert len([*rows]) == 1, "the first row was only looked at"
