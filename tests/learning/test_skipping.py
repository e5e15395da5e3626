"""Rows of a log that would make a model not finite: it stays as it was, whatever the cuts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.streams import cut, fingerprint, kinds_of, model_of, stream
from thresher import Chunk, DivergedError, Model
from thresher.parts.registry import REGISTRY

pytestmark = [
    pytest.mark.usefixtures("plainly"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.*changed nothing"),
]

ROWS = 60


def rows(domain: str) -> Chunk:
    chunk = stream(3, ROWS, domain=domain, weighted=False).chunk
    chance = np.random.default_rng(0)
    factors = np.where(chance.random(ROWS) < 0.2, 10.0 ** chance.uniform(5, 37, ROWS), 1).astype(np.float32)
    factors[0] = 1
    values = np.clip(chunk.values * np.repeat(factors, np.diff(chunk.indptr)), -3e38, 3e38)
    return replace(chunk, values=values.astype(np.float32))


def learned(model: Model, chunk: Chunk, places: list[int]) -> list[int]:
    found, before = list[int](), 0

    def skip(first: int, count: int, error: DivergedError) -> None:
        assert "is not finite" in str(error)
        found.extend(range(before + first, before + first + count))

    model.feed.skip = skip
    for piece in cut(chunk, places) if places else [chunk]:
        model.learn(piece)
        before += len(piece)
    model.finish()
    model.check_finite()
    return found


CASES: list[tuple[str, str, dict[str, Any]]] = [
    *[(kinds_of(name)[0], "squared", {}) for name in sorted(REGISTRY["rule"])],
    *(("sgd", "squared", {"average": True}), ("sgd", "squared", {"batch": 4})),
    *(("ftrl", "absolute", {"batch": 4}), ("fobos:l2=0.5", "squared", {"store": "hashed:4"})),
    *(("fobos:l2=0.5", "squared", {"store": "hashed:4,signed"}), ("sgd", "absolute", {"store": "direct"})),
]


@pytest.mark.parametrize(("spec", "loss", "options"), CASES)
def test_skipped_rows_leave_no_trace(spec: str, loss: str, options: dict[str, Any]) -> None:
    chunk = rows("real")

    def made() -> Model:
        return model_of(spec, loss, dtype="float32", rate="inverse-sqrt:eta0=0.5", **options)

    def state(model: Model) -> Any:
        return {
            n: v
            for n, v in fingerprint(model).items()
            if n in ("B", "clock", "bclock", "tally", "ring", "place")
        }

    whole = made()
    skipped = learned(whole, chunk, [])
    for places in (list(range(1, ROWS)), [7, 8, 31]):
        again = made()
        assert learned(again, chunk, places) == skipped
        assert fingerprint(again) == fingerprint(whole)
    left = made()
    keep = np.ones(ROWS, bool)
    keep[skipped] = False
    left.learn(chunk.take(keep))
    left.finish()
    assert state(left) == state(whole)
    ordinary = stream(4).chunk
    assert np.array_equal(left.margins(ordinary), whole.margins(ordinary), equal_nan=True)


@pytest.mark.parametrize("store", ["growing", "direct"])
def test_a_row_without_features_is_skipped(store: str) -> None:
    chunk = Chunk.of_rows([(1.0, {}), (3e38, {}), (1.0, {7: 1.0, 9: 2.0})])
    model, left = (
        model_of("sgd", "squared", dtype="float32", rate="constant:9", store=store) for _ in range(2)
    )
    assert learned(model, chunk, [1, 2]) == [1]
    left.learn(chunk.take(np.array([0, 2])))
    assert fingerprint(model) == fingerprint(left)
