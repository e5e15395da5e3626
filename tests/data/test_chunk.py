"""Chunks: their rows, and that invalid ones are rejected before compiled code uses them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

import thresher
from tests.data.reference import rows_of, same
from thresher.data import Chunk, DataError, concat
from thresher.data.chunk import StreamPosition
from thresher.data.source import Chunks, MemorySource, Source
from thresher.learning.model.ensemble import Ensemble
from thresher.learning.model.model import Model
from thresher.sklearn import SparseOnlineClassifier

pytestmark = pytest.mark.usefixtures("plainly")


def test_of_rows() -> None:
    chunk = Chunk.of_rows([(1, {5: 0.5, 2: 1.0}), (-1, {}), (1, {2**64 - 1: 3})], weights=[1, 2, 0])
    assert len(chunk) == 3
    assert chunk.nnz == 3
    assert chunk.indptr.tolist() == [0, 2, 2, 3]
    assert chunk.keys.tolist() == [2, 5, 2**64 - 1]
    assert chunk.values.tolist() == [1.0, 0.5, 3.0]
    assert chunk.weights.tolist() == [1, 2, 0]
    assert [a.dtype.str[1:] for a in (chunk.indptr, chunk.keys, chunk.values, chunk.labels)] == [
        *("i8", "u8", "f4", "f4"),
    ]


def test_pieces_and_repeats() -> None:
    chunk = Chunk.of_rows([(k, {j: k + j for j in range(n)}) for k, n in enumerate([2, 0, 9, 1, 3, 3, 0])])
    assert same(concat(list(chunk.pieces(5))), chunk)
    assert [piece.nnz for piece in chunk.pieces(5)] == [2, 9, 4, 3]
    assert [len(piece) for piece in chunk.pieces(18)] == [7]
    assert [len(piece) for piece in Chunk.of_rows([]).pieces(5)] == [0]
    assert [len(piece) for piece in chunk.pieces(18, 3)] == [3, 3, 1]
    assert [chunk.end_within(0, most) for most in (0, 1, 18)] == [1, 1, 7]
    chunk = Chunk.from_csr([0, 4, 4, 6], [3, 1, 3, 2, 2, 2], [1, 2, 4, 8, 16, 32], [1, 0, -1])
    assert chunk.indptr.tolist() == [0, 3, 3, 4]
    assert chunk.keys.tolist() == [1, 2, 3, 2]
    assert chunk.values.tolist() == [2, 8, 5, 48]


def test_rows_and_concat_undo_each_other() -> None:
    chunk = Chunk.of_rows([(k, {j: k + j for j in range(k)}) for k in range(6)])
    for cut in range(7):
        parts = [chunk.rows(0, cut), chunk.rows(cut, 6)]
        assert same(concat(parts), chunk)
        assert np.shares_memory(parts[1].labels, chunk.labels) or cut == 6
    assert rows_of(chunk.rows(-2, 99)) == rows_of(chunk)[-2:]
    assert len(chunk.rows(4, 2)) == 0
    assert len(concat([])) == 0


@pytest.mark.parametrize(
    ("indptr", "keys", "values", "labels", "weights", "reason"),
    [
        ([0, 1], [1], [1], [1, 1], None, "must be equal"),
        ([0, 1], [1], [1], [1], [1, 1], "must be equal"),
        ([0, 2], [1], [1], [1], None, "indptr ends at 2"),
        ([1, 1], [1], [1], [1], None, "start at 0"),
        ([0, 2, 1], [1], [1], [1, 1], None, "never decrease"),
        ([0.0, 1.0], [1], [1], [1], None, "whole numbers"),
        ([0, 1], [-1], [1], [1], None, "must not be negative, found -1"),
        ([0, 1], [1.5], [1], [1], None, "whole numbers"),
        ([0, 1], [1], [np.nan], [1], None, "row 1, column 1: NaN is not allowed"),
        ([0, 1], [1], [1e39], [1], None, "column 1: 1e.39, too large for float32"),
        ([0, 1], [1], [1], [np.inf], None, "label 1 is not finite"),
        ([0, 1], [1], [1], [1], [-1], "weight is negative"),
        ([0, 1], [1], ["x"], [1], None, "not a number"),
        ([0, 2], [1, 1], [3e38, 3e38], [1], None, "too large for float32"),
        ([0, 1], [[1]], [1], [1], None, "one-dimensional"),
        ([0, 1], [1], [[1]], [1], None, "one-dimensional"),
    ],
)
def test_arrays_that_are_no_chunk(
    indptr: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    reason: str,
) -> None:
    with pytest.raises(DataError, match=reason):
        Chunk.from_csr(indptr, keys, values, labels, weights)


def test_keys_of_rows_are_whole_numbers() -> None:
    for key in (-1, 2**64, "a"):
        with pytest.raises(DataError, match="whole numbers"):
            Chunk.of_rows([(1, {key: 1.0})])  # type: ignore[dict-item]


GOOD = Chunk.of_rows([(1.0, {1: 1.0, 2: 0.5}), (-1.0, {3: 1.0, 4: 0.25})])
TWO = replace(GOOD, targets=np.ones((2, 2), np.float32))
UNFIT: list[dict[str, Any]] = [
    {"indptr": np.array(ends, np.int64)}
    for ends in ([0, 2, 400], [0, 4, 2], [1, 2, 4], [-5, 2, 4], [0, 2, 3], [0, 4], [])
]


UNFIT += [{"indptr": np.array([0, 400, 4], np.int64)}, {"indptr": np.array([[0, 2, 4]], np.int64)}]


for name, other in (
    *(("indptr", "int32"), ("keys", "int64"), ("values", "float64"), ("labels", "int64")),
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
    for reader in (model, model.predictor(), Ensemble([model, model], "")):
        uses += [
            *(reader.predict, reader.margins, reader.terms),
            lambda chunk, r=reader: r.predict(Given(chunk)),
        ]
    for use in uses:
        with pytest.raises(DataError, match="the arrays of a Chunk must be"):
            use(broken)
    assert model.examples == 0


class Given(Source):
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
