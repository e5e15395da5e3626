"""Invalid chunks and matrices are rejected before compiled code uses them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import thresher
from thresher.data.chunk import Chunk, StreamPosition
from thresher.data.errors import DataError
from thresher.data.source import Chunks, MemorySource, Source
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.model import Model
from thresher.sklearn import SparseOnlineClassifier

pytestmark = pytest.mark.usefixtures("plainly")
GOOD = Chunk.of_rows([(1.0, {1: 1.0, 2: 0.5}), (-1.0, {3: 1.0, 4: 0.25})])
TWO = replace(GOOD, targets=np.ones((2, 2), np.float32))
UNFIT: list[dict[str, Any]] = [
    {"indptr": np.array(ends, np.int64)}
    for ends in ([0, 2, 400], [0, 4, 2], [1, 2, 4], [-5, 2, 4], [0, 2, 3], [0, 4], [])
]
UNFIT += [{"indptr": np.array([0, 400, 4], np.int64)}, {"indptr": np.array([[0, 2, 4]], np.int64)}]
for name, other in (
    ("indptr", "int32"),
    ("keys", "int64"),
    ("values", "float64"),
    ("labels", "int64"),
    ("weights", ">f4"),
):
    good = getattr(GOOD, name)
    UNFIT += [
        {name: one} for one in (good.astype(other), good.tolist(), None, good[:-1], good[np.newaxis], good[0])
    ]
UNFIT += [
    {"targets": one}
    for one in (np.ones(2, np.float32), np.ones((3, 2), np.float32), np.ones((2, 2)), [[1.0]])
]


@pytest.mark.parametrize(
    "changes", UNFIT, ids=lambda changes: "-".join(map(repr, *changes.items())).replace("\\n", "")
)
def test_arrays_that_do_not_fit_are_refused_by_whatever_follows_them(changes: dict[str, Any]) -> None:
    broken, model = replace(GOOD, **changes), Model("sgd")
    uses: list[Any] = [model.learn, thresher.train, MemorySource, lambda chunk: chunk.take(np.arange(1))]
    for reader in (model, model.readout(), Ensemble([model, model], "")):
        uses += [
            reader.predict,
            reader.margins,
            reader.terms,
            lambda chunk, r=reader: r.predict(Given(chunk)),
        ]
    for use in uses:
        with pytest.raises(DataError, match="the arrays of a Chunk must be"):
            use(broken)
    assert model.examples == 0


class Given(Source):
    """A source of a user's own."""

    def __init__(self, chunk: Chunk) -> None:
        super().__init__()
        self._chunk = chunk

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        yield self._chunk


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"keys": np.array([2, 1, 3, 4], np.uint64)}, "keys of a row must be unique and ascending"),
        ({"keys": np.array([1, 2, 4, 4], np.uint64)}, "keys of a row must be unique and ascending"),
        ({"values": np.array([1, np.nan, 1, 1], np.float32)}, "value 2 is not finite"),
        ({"values": np.array([1, 1, 1, np.inf], np.float32)}, "value 4 is not finite"),
        ({"labels": np.array([1, np.nan], np.float32)}, "label 2 is not finite"),
        ({"weights": np.array([1, -1], np.float32)}, "example 2: the importance weight is negative"),
        ({"weights": np.array([np.nan, 1], np.float32)}, "weight 1 is not finite"),
        ({"targets": np.array([[1, 1], [np.inf, 1]], np.float32)}, "label 3 is not finite"),
    ],
)
def test_what_no_chunk_may_hold_is_found_where_it_enters(changes: dict[str, Any], said: str) -> None:
    broken = replace(GOOD, **changes)
    for data in (broken, [GOOD, broken]):
        with pytest.raises(DataError, match=said):
            thresher.train(data, loss="squared")


def test_what_fits_is_learned() -> None:
    gap = replace(GOOD, keys=np.array([5, 9, 3, 9], np.uint64))  # keys may fall from one row to the next
    empty = Chunk.of_rows([(1.0, {}), (1.0, {})])
    for chunk in (GOOD, gap, empty, GOOD.rows(0, 0), GOOD.rows(1, 2)):
        model = Model("sgd")
        model.learn(chunk)
        assert model.examples == len(chunk)
    assert thresher.train([gap, empty], passes=1).examples == 4
    many = Model("sgd", "squared", outputs="values:2")
    many.learn(TWO)
    assert many.examples == 2


@pytest.mark.parametrize("ends", [[0, 400, 4], [0, 4, 2], [1, 2, 4], [0, 2, 400]])
def test_matrices_with_rows_that_are_not_there(ends: list[int]) -> None:
    X, model = csr_matrix(np.eye(2, 4) + 1), SparseOnlineClassifier()
    model.fit(X, [0, 1])
    X.indptr = np.array(ends, np.int32)
    for use in (model.predict, lambda X: model.fit(X, [0, 1]), lambda X: model.partial_fit(X, [0, 1])):
        with pytest.raises(ValueError, match="ind"):
            use(X)
