"""Models that learn in several threads are those that learn one after the other, bit for bit (law 7)."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from thresher.data import open_source
from thresher.learning.model import batch_feeder as feed
from thresher.learning.model.bags import make_bags, share_of
from thresher.learning.model.batch_feeder import each
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.plans.folds import Folds

DATA = "examples/data/rcv1_train2000.dat.gz"
RECIPES = [Recipe(f"ftrl:alpha=1,l1={0.1 * (k + 1)}") for k in range(10)]


def with_processors(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(feed, "processors", lambda: count)
    monkeypatch.setattr(feed, "WORTH", 1)


def test_results_are_in_order_and_work_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with_processors(monkeypatch, 3)
    meeting = threading.Barrier(3, timeout=60)  # which nobody passes alone

    def name(_: int) -> str:
        return threading.current_thread().name

    def work(item: int) -> tuple[int, list[str]]:
        meeting.wait()
        return item, each(name, range(2), 1)

    found = each(work, range(3), 1)
    assert [item for item, _ in found] == [0, 1, 2]
    assert all(len(set(nested)) == 1 for _, nested in found), "nested work stays in its thread"
    assert not [one for one in threading.enumerate() if one.name.startswith("thresher-learner")]


@pytest.mark.parametrize(("processors", "items", "values"), [(1, 3, 9), (3, 1, 9), (3, 3, 0)])
def test_little_work_is_done_here(
    monkeypatch: pytest.MonkeyPatch, processors: int, items: int, values: int
) -> None:
    with_processors(monkeypatch, processors)
    assert set(each(lambda _: threading.get_ident(), range(items), values)) == {threading.get_ident()}


def test_the_first_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with_processors(monkeypatch, 3)

    def work(item: int) -> None:
        if item:
            raise ValueError(item)

    with pytest.raises(ValueError, match=r"^1$"):
        each(work, range(3), 1)


@pytest.mark.parametrize(
    "made",
    [
        lambda: ModelSet(RECIPES),
        lambda: ModelSet(RECIPES[:2], Folds(3, whole=True)),
        lambda: make_bags(RECIPES[0], share_of("3")),
    ],
    ids=["lanes", "folds", "bags"],
)
def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch, made: Callable[[], ModelSet]) -> None:
    states, pools, pool = list[Any](), list[int](), ThreadPoolExecutor

    def noted(count: int, *given: Any) -> Any:
        pools.append(count)
        return pool(count, *given)

    monkeypatch.setattr(feed, "ThreadPoolExecutor", noted)
    for processors in (1, 3):
        with_processors(monkeypatch, processors)
        models = made()
        for chunk in open_source(DATA, block_bytes=1 << 17).chunks():
            models.learn(chunk)
        models.finish()
        states.append({k: a.tobytes() for k, a in models.state().items()})
        assert bool(pools) == (processors > 1)
    assert states[0] == states[1]
