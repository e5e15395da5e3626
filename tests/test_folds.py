"""Cross-validation: the models of a fold are trained without its rows and evaluated on them."""

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import thresher
from tests.streams import cut
from tests.test_lanes import WILD, alone, recipe_of
from tests.test_shares import DENSE, ROWS, WIDE, K, taught
from thresher import cv
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.learning.evaluation import evaluate
from thresher.learning.files.choice import choose
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.shares import Rows, folds_of
from thresher.plans import folds as module
from thresher.plans.folds import Folds, FoldScores, check_size, estimates_of
from thresher.plans.penalties import PenaltyRange

FOLDS: Rows = folds_of(0, ROWS, K, 0)


def folded(recipes: list[Recipe], chunk: Chunk, count: int = K, **options: Any) -> tuple[ModelSet, Folds]:
    share = Folds(count, **options)
    return taught(recipes, share, chunk), share


def judged(models: ModelSet, folds: Folds, chunks: Iterable[Chunk]) -> list[list[Any]]:
    return FoldScores(models, folds, chunks).figures


@pytest.mark.usefixtures("plainly")
def test_each_row_is_judged_by_the_models_that_have_not_learned_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 30)
    recipes = [recipe_of("fobos:l1=0.01"), recipe_of("fobos:l1=0.1")]
    found = judged(*folded(recipes, WIDE), cut(WIDE, [10, 40]))
    for number, recipe in enumerate(recipes):
        for k in range(K):
            model = alone(recipe, WIDE.take(np.not_equal(FOLDS, k)))
            expected = evaluate.score(model, [WIDE.take(np.equal(FOLDS, k))]).figures()
            assert found[number][k] == pytest.approx(expected, rel=1e-12)
            assert found[number][k]["examples"] == np.count_nonzero(k == FOLDS)


def test_means_and_standard_errors() -> None:
    recipes = [Recipe("ftrl", l1=l1) for l1 in (0.1, 1.0, 10.0)]
    folds = Folds(4)
    losses = np.array([[0.3, 0.5, 0.4, 0.4], [0.29, 0.51, 0.41, 0.37], [0.9, 0.9, 0.9, 0.9]])
    figures: Any = [
        [{"examples": 5, "loss": loss, "auc": None if k < 3 else 0.75} for k, loss in enumerate(row)]
        for row in losses
    ]
    found = estimates_of(ModelSet(recipes, folds), folds, figures)
    assert [one.penalty for one in found] == [0.1, 1.0, 10.0]
    for one, row in zip(found, losses, strict=True):
        assert one.loss == one.figures["loss"] == pytest.approx(row.mean())
        assert one.figures["loss_se"] == pytest.approx(np.sqrt(((row - row.mean()) ** 2).sum() / 3 / 4))
        assert (one.figures["auc"], one.figures["auc_se"]) == (0.75, None)
        difference = row - losses[1]
        assert one.paired_error == pytest.approx(difference.std(ddof=1) / 2)
        assert "examples" not in one.figures
    counts = [900, 901], [500], [3, 3, 3, 4]
    sizes = [replace(one, nonzero=float(np.mean(each))) for one, each in zip(found, counts, strict=True)]
    chosen = {which: choose(sizes, which) for which in ("best", "within:2%", "within:200%", "nnz:499", "1se")}
    assert chosen == {"best": 1, "within:2%": 1, "within:200%": 2, "nnz:499": 2, "1se": 1}
    close = replace(sizes[2], holdout={"loss": found[1].loss + 0.01}, paired_error=0.02)
    assert choose([*sizes[:2], close], "1se") == 2
    with pytest.raises(ValueError, match=r"at most 3 weights: the sparsest has 3\.25"):
        choose(sizes, "nnz:3")


def test_a_fold_whose_rows_weigh_nothing_has_no_loss() -> None:
    chunk = replace(DENSE, weights=np.where(FOLDS == 1, 0.0, 1.0).astype(np.float32))
    models, folds = folded([recipe_of("fobos:l1=0.01")], chunk)
    figures = judged(models, folds, [chunk])
    (found,) = estimates_of(models, folds, figures)
    assert found.loss == pytest.approx((figures[0][0]["loss"] + figures[0][2]["loss"]) / 2)
    assert (found.penalty, found.as_dict(None)["loss"]) == (0.01, found.loss)


@pytest.mark.usefixtures("small_tables", "plainly")
def test_a_penalty_that_diverges_in_a_fold_is_dropped_and_the_others_go_on() -> None:
    said: list[str] = []
    recipes = [recipe_of("fobos:l1=0.05", loss="squared"), WILD]
    with np.errstate(all="ignore"):
        folds = Folds(K, whole=True)
        models = taught(recipes, folds, WIDE, say=said.append)
        figures = judged(models, folds, [WIDE])
        assert list(models.dropped) == [1]
        assert len(said) == 1
        assert said[0].startswith(f"{WILD.rule}: without fold 1, the loss of example ")
        assert [len(one) for one in figures] == [K, 0]
        found = estimates_of(models, folds, figures)
        assert (found[1].dropped, found[1].loss) == (models.dropped[1], float("inf"))
        assert choose(found, "nnz:1000") == 0
        with pytest.raises(DivergedError, match="the loss of example"):
            folded([WILD], WIDE)


def test_more_folds_than_rows() -> None:
    chunk = DENSE.rows(0, 3)
    recipes = [recipe_of("fobos:l1=0.05")]
    assert len(judged(*folded(recipes, chunk, count=3), [chunk])[0]) == 3
    with pytest.raises(DataError, match="4 folds need at least 4 rows; rows read: 3"):
        judged(*folded(recipes, chunk, count=4), [chunk])


def test_how_many_there_may_be() -> None:
    with pytest.raises(ValueError, match="4,352: 4,096 at most"):
        check_size(Recipe("ftrl", l1=0.1), 17, 256, False)
    for count in (1, 0, 1001):
        with pytest.raises(ValueError, match=r"folds must be .* 2"):
            cv(DENSE, l1="0.1:1:3", folds=count)


def test_tables_that_no_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported before any is made; nothing is reported if the memory is unknown."""
    recipe = Recipe("ftrl", l1=0.1, store="hashed:10")
    size = 4 * 2 * 1024 * 4 * len(recipe.rule_part.SLOTS)
    for memory in (size, float("inf")):
        monkeypatch.setattr(os, "sysconf", lambda name, memory=memory: memory if "PAGES" in name else 1)
        check_size(recipe, 3, 2, True)
    monkeypatch.setattr(os, "sysconf", lambda name: size - 1 if "PAGES" in name else 1)
    check_size(recipe, 3, 2, False)
    with pytest.raises(MemoryError, match=r"for 3 folds of 2 models, which begin with .* GB of state: take"):
        check_size(recipe, 3, 2, True)
    monkeypatch.setattr(PenaltyRange, "find_range", None)
    with pytest.raises(MemoryError, match=r"for 10 folds of 16 models, .* take fewer folds or penalties"):
        cv("examples/data/rcv1_train2000.dat.gz", store="hashed:10")
    monkeypatch.delattr("os.sysconf", raising=False)
    check_size(recipe, 3, 2, True)


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
    for wrong in ({"folds": 1}, {"folds": 2.5}, {"l1": 5}, {"passes": 0}):
        with pytest.raises(
            ValueError,
            match=next(iter(wrong)) if "l1" not in wrong else "penalties must be a range",
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
    assert found.points[0].counts == [80] * 5


def test_cross_validation_is_saved_and_drawn_with_the_means_of_its_folds(tmp_path: Any) -> None:
    found = cv(DENSE, l1="0.1:1:3", rule="ftrl", folds=3, refit=True, choose="1se")
    found.save(tmp_path / "front.model")
    found.plot(tmp_path / "front.svg")
    kept = thresher.load(tmp_path / "front.model")
    assert kept.number() == found.number("1se")
    assert [kept.number(which) for which in ("best", "1se")] == [found.number("best"), found.number("1se")]
    for k, (point, own) in enumerate(zip(kept.points, found.points, strict=True)):
        assert point.holdout["loss"] == np.mean([fold["loss"] for fold in own.folds])
        assert (point.paired_error, point.nonzero) == (own.paired_error, own.model.nonzero)
        predictor, learned = kept.choose(k), found.choose(k).predictor()
        assert np.array_equal(predictor.keys, learned.keys)
        assert np.array_equal(predictor.weights, learned.weights)
    header, *rows = found.table().splitlines()
    at = header.split("\t").index("holdout_loss")
    assert [float(row.split("\t")[at]) for row in rows] == pytest.approx([one.loss for one in found.points])
    assert (tmp_path / "front.svg").read_text().count("<circle") >= 3
    with pytest.raises(ValueError, match="refit=True"):
        cv(DENSE, l1="0.1:1:3", rule="ftrl", folds=3).save(tmp_path / "front.model")
