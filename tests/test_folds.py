"""Cross-validation: the models of a fold are trained without its rows and evaluated on them."""

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import thresher
from tests import test_lanes
from tests.streams import KINDS, RULES, cut, settings_of
from tests.test_averaging import ABLE
from tests.test_lanes import FIRST, PLACES, UNBORN, WILD, recipe_of
from tests.test_laws_of_state import make_small
from thresher import cv
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.data.layout import Layout
from thresher.lanes import folds as module
from thresher.lanes.folds import Folds, Results, estimates_of
from thresher.lanes.penalties import PenaltyRange
from thresher.learning.evaluation import evaluate
from thresher.learning.files.choice import choose
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.shares import folds_of
from thresher.testing.laws import bits

K, ROWS = 3, 59  # not a multiple of K: if a pass continued counting, it would have other folds
DENSE, WIDE = test_lanes.DENSE.rows(0, ROWS), test_lanes.WIDE.rows(0, ROWS)
NUMBERS = np.arange(ROWS)
FOLDS = folds_of(0, ROWS, K, 0)
OUTSIDE: list[NDArray[np.bool_]] = [np.not_equal(FOLDS, k) for k in range(K)]
LINE = Chunk.of_rows([(1.0, {n: 1.0}) for n in range(9)])


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def test_what_was_found_is_shown_as_its_table() -> None:
    found = cv(LINE, "ftrl", l1="0.1:2:3", folds=K)
    head, *lines = repr(found).splitlines()[:4]
    assert head.split()[:5] == ["l1", "non-zero", "loss", "loss", "se"]
    assert [line.startswith("* ") for line in lines] == [k == found.number() for k in range(3)]


def folded(recipes: list[Recipe], chunk: Chunk, passes: int = 1, count: int = K, **options: Any) -> Folds:
    folds = Folds(recipes, count, **options)
    for number in range(1, passes + 1):
        folds.begin_pass(number, passes)
        for piece in cut(chunk, PLACES):
            folds.learn(piece, again=number > 1)
    folds.finish()
    folds.check_finite()
    return folds


def alone(recipe: Recipe, chunk: Chunk, passes: int = 1) -> Model:
    model = Model(recipe)
    for number in range(1, passes + 1):
        model.begin_pass(number, passes)
        model.learn(chunk, again=number > 1)
    model.finish()
    return model


def check(recipes: list[Recipe], chunk: Chunk, passes: int = 1) -> None:
    folds = folded(recipes, chunk, passes, whole=True)
    assert not folds.dropped
    for lanes, rows in [*zip(folds.lanes, OUTSIDE, strict=True), (folds.whole, NUMBERS >= 0)]:
        assert lanes is not None
        for recipe, model in zip(recipes, lanes.models, strict=True):
            own = alone(recipe, chunk.take(rows), passes)
            assert bits(model) == bits(own), recipe
            assert model.examples == own.examples == passes * rows.sum()


@pytest.mark.parametrize("store", ["growing", "hashed:6"])
@pytest.mark.usefixtures("small_tables", "plainly")
def test_all_rules_leave_out_what_is_in_their_fold(store: str) -> None:
    check([recipe_of(settings_of(name)[0], store=store) for name in RULES], DENSE)


@pytest.mark.usefixtures("small_tables", "plainly")
def test_averages() -> None:
    check([recipe_of(settings_of(name)[0], average=True, dtype="float64") for name in ABLE], WIDE)


def test_penalties_of_one_rule() -> None:
    """Compiled, in octets."""
    check([recipe_of("ft-ftrl:alpha=0.2", l1=0.03 * k) for k in range(5)], WIDE)


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.usefixtures("small_tables", "plainly")
def test_batches_many_outputs_and_passes(batch: int) -> None:
    rng = np.random.default_rng(5)
    chunk = replace(WIDE, targets=rng.choice([-1.0, 1.0], (ROWS, 3)).astype(np.float32))
    specs = [*(settings_of(name)[0] for name in KINDS[::2]), "ft-ftrl:alpha=0.2,l1=0.3,relax=1"]
    check([recipe_of(spec, outputs="labels:3", batch=batch) for spec in specs], chunk, passes=2)


@pytest.mark.usefixtures("small_tables", "plainly")
def test_a_feature_is_admitted_by_the_rows_that_are_learned() -> None:
    specs = [spec for spec in FIRST if spec.split(":")[0] not in UNBORN]
    check([recipe_of(spec, admit="3,bits=10") for spec in specs], WIDE, passes=2)


def test_scales_are_those_of_the_rows_that_are_learned(tmp_path: Any) -> None:
    rng = np.random.default_rng(8)
    x, size = rng.normal(size=40), np.where(folds_of(0, 40, 4, 0) == 1, 100.0, 1.0)  # fold 2 of 4 is large
    lines = [
        f"{int(a > 0)},{a * s:.4f},{b:.4f}" for a, s, b in zip(x, size, rng.normal(size=40), strict=True)
    ]
    options: dict[str, Any] = {"rule": "ftrl:l1=0.01", "scale": "max-abs"}
    (tmp_path / "all.csv").write_text("\n".join(["label,a,b", *lines]))
    found = cv(tmp_path / "all.csv", folds=4, refit=True, **options)
    for k in range(4):
        rest = [line for line, fold in zip(lines, folds_of(0, 40, 4, 0), strict=True) if fold != k]
        (tmp_path / "rest.csv").write_text("\n".join(["label,a,b", *rest]))
        own = thresher.train(tmp_path / "rest.csv", **options)
        assert bits(found.folds.lanes[k].models[0]) == bits(own)
        assert np.array_equal(found.folds.lanes[k].models[0].predict(LINE), own.predict(LINE))
    assert bits(found.choose()) == bits(thresher.train(tmp_path / "all.csv", **options))


@pytest.mark.usefixtures("plainly")
def test_each_row_is_judged_by_the_models_that_have_not_learned_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 30)
    recipes = [recipe_of("fobos:l1=0.01"), recipe_of("fobos:l1=0.1")]
    folds = folded(recipes, WIDE)
    judged = folds.judge(cut(WIDE, [10, 40]))
    for number, recipe in enumerate(recipes):
        for k in range(K):
            model = alone(recipe, WIDE.take(OUTSIDE[k]))
            expected = evaluate.score(model, [WIDE.take(~OUTSIDE[k])]).figures()
            assert judged[number][k] == pytest.approx(expected, rel=1e-12)
            assert judged[number][k]["examples"] == (~OUTSIDE[k]).sum()


def test_means_and_standard_errors() -> None:
    recipes = [Recipe("ftrl", l1=l1) for l1 in (0.1, 1.0, 10.0)]
    folds = Folds(recipes, 4)
    losses = np.array([[0.3, 0.5, 0.4, 0.4], [0.29, 0.51, 0.41, 0.37], [0.9, 0.9, 0.9, 0.9]])
    judged: Any = [
        [{"examples": 5, "loss": loss, "auc": None if k < 3 else 0.75} for k, loss in enumerate(row)]
        for row in losses
    ]
    found = estimates_of(Results.of(folds, judged), varied=True)
    assert [one.penalty for one in found] == [0.1, 1.0, 10.0]
    for one, row in zip(found, losses, strict=True):
        assert one.loss == one.figures["loss"] == pytest.approx(row.mean())
        assert one.figures["loss_se"] == pytest.approx(np.sqrt(((row - row.mean()) ** 2).sum() / 3 / 4))
        assert (one.figures["auc"], one.figures["auc_se"]) == (0.75, None)
        difference = row - losses[1]
        assert one.paired_error == pytest.approx(difference.std(ddof=1) / 2)
        assert "examples" not in one.figures
    sizes = [replace(one, nonzero=size) for one, size in zip(found, (900.5, 500.0, 3.25), strict=True)]
    chosen = {which: choose(sizes, which) for which in ("best", "within:2%", "within:200%", "nnz:499", "1se")}
    assert chosen == {"best": 1, "within:2%": 1, "within:200%": 2, "nnz:499": 2, "1se": 1}
    close = replace(sizes[2], figures={"loss": found[1].loss + 0.01}, paired_error=0.02)
    assert choose([*sizes[:2], close], "1se") == 2
    with pytest.raises(ValueError, match=r"at most 3 weights: the sparsest has 3\.25"):
        choose(sizes, "nnz:3")


def test_a_fold_whose_rows_weigh_nothing_has_no_loss() -> None:
    chunk = replace(DENSE, weights=np.where(FOLDS == 1, 0.0, 1.0).astype(np.float32))
    folds = folded([recipe_of("fobos:l1=0.01")], chunk)
    (found,) = estimates_of(Results.of(folds, folds.judge([chunk])), varied=False)
    judged = folds.judge([chunk])[0]
    assert found.loss == pytest.approx((judged[0]["loss"] + judged[2]["loss"]) / 2)  # type: ignore[operator]
    assert (found.penalty, found.as_dict(None)["loss"]) == (None, found.loss)


@pytest.mark.usefixtures("small_tables", "plainly")
def test_a_penalty_that_diverges_in_a_fold_is_dropped_and_the_others_go_on() -> None:
    said: list[str] = []
    recipes = [recipe_of("fobos:l1=0.05", loss="squared"), WILD]
    with np.errstate(all="ignore"):
        folds = folded(recipes, WIDE, whole=True, say=said.append)
        judged = folds.judge([WIDE])
        assert list(folds.dropped) == [1]
        assert len(said) == 1
        assert said[0].startswith(f"{WILD.rule}: without fold 1, the loss of example ")
        assert [len(one) for one in judged] == [K, 0]
        found = estimates_of(Results.of(folds, judged), varied=False)
        assert (found[1].dropped, found[1].loss) == (folds.dropped[1], float("inf"))
        assert choose(found, "nnz:1000") == 0
        with pytest.raises(DivergedError, match="the loss of example"):
            folded([WILD], WIDE)


def test_more_folds_than_rows() -> None:
    chunk = DENSE.rows(0, 3)
    assert len(folded([recipe_of("fobos:l1=0.05")], chunk, count=3).judge([chunk])[0]) == 3
    with pytest.raises(DataError, match="4 folds need at least 4 rows; rows read: 3"):
        folded([recipe_of("fobos:l1=0.05")], chunk, count=4).judge([chunk])


@pytest.mark.parametrize(
    ("count", "models", "words"),
    [(1, 1, "folds"), (0, 1, "folds"), (1001, 1, "folds"), (17, 256, "4,352: 4,096 at most")],
)
def test_how_many_there_may_be(count: int, models: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Folds([Recipe("ftrl", l1=0.1)] * models, count)


def test_tables_that_no_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported before any is made; nothing is reported if the memory is unknown."""
    recipes = [Recipe("ftrl", l1=0.1, store="hashed:10")] * 2
    size = 4 * 2 * 1024 * 4 * len(recipes[0].make_rule().SLOTS)
    for memory in (size, float("inf")):
        monkeypatch.setattr(os, "sysconf", lambda name, memory=memory: memory if "PAGES" in name else 1)
        Folds(recipes, 3, whole=True)
    monkeypatch.setattr(os, "sysconf", lambda name: size - 1 if "PAGES" in name else 1)
    Folds(recipes, 3)
    with pytest.raises(MemoryError, match=r"for 3 folds of 2 models, which begin with .* GB of state: take"):
        Folds(recipes, 3, whole=True)
    monkeypatch.setattr(PenaltyRange, "found_in", None)
    with pytest.raises(MemoryError, match=r"for 10 folds of 16 models, .* take fewer folds or penalties"):
        cv("examples/data/rcv1_train2000.dat.gz", store="hashed:10")
    monkeypatch.undo()
    assert module._memory() > 2**28
    monkeypatch.delattr("os.sysconf", raising=False)
    assert module._memory() == float("inf")


def test_a_call() -> None:
    path = "examples/data/rcv1_train2000.dat.gz"
    found = cv(path, "ftrl", l1="0.1:10:3", folds=4, passes=2, order="once")
    assert found.penalty == "l1"
    assert [one.penalty for one in found.points] == pytest.approx([0.1, 1.0, 10.0])
    counts = [one.nonzero or 0.0 for one in found.points]
    assert counts == sorted(counts, reverse=True)
    with pytest.raises(ValueError, match="refit=True"):
        found.choose()
    for single in ("sgd", "ftrl:l1=2", Model("ftrl").rule):
        found = cv(path, single, folds=4)
        assert (found.penalty, len(found.points)) == (None, 1)
    with pytest.raises(ValueError, match="sgd has no penalty"):
        cv(path, "sgd", l1="1:2:2")
    with pytest.raises(ValueError, match="in a different fold in each pass"):
        cv(path, passes=2, order="every")
    for wrong in ({"folds": 1}, {"folds": 2.5}, {"refit": 2}, {"l1": 5}, {"passes": 0}):
        with pytest.raises(
            ValueError, match=next(iter(wrong)) if "l1" not in wrong else "penalties must be a list"
        ):
            cv(path, **wrong)
    with pytest.raises(TypeError, match="cv has no option fold; did you mean folds"):
        cv(path, fold=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("order", ["once", "every", "buffer:30"])
def test_a_row_stays_in_its_fold(order: str) -> None:
    """Each row is judged once, by models that have not learned it, in any order."""
    rows = [(float(n % 2), {n: 1.0}) for n in range(100)]
    found = cv(Chunk.of_rows(rows), "sgd", rate="constant:1", folds=5, order=order, loss="logistic")
    assert found.points[0].figures["loss"] == pytest.approx(np.log(2), abs=0.3)
    learned = [set(lanes.models[0].weights()[0].tolist()) for lanes in found.folds.lanes]
    assert all(len(keys) == 80 for keys in learned)
    assert all(sum(n in keys for keys in learned) == 4 for n in range(100))


def test_layouts_are_those_of_the_data(tmp_path: Any) -> None:
    (tmp_path / "data").write_text("label,a\n" + "".join(f"{n % 2},{n % 2}\n" for n in range(20)))
    found = cv(tmp_path / "data", "sgd", folds=2, layout=Layout("csv"), refit=True)
    assert found.choose().layout == thresher.train(tmp_path / "data", "sgd", layout=Layout("csv")).layout
