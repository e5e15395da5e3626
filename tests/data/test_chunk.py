from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from tests.data.reference import rows_of, same
from thresher.data import Chunk, DataError, concat


def test_of_rows() -> None:
    chunk = Chunk.of_rows([(1, {5: 0.5, 2: 1.0}), (-1, {}), (1, {2**64 - 1: 3})], weights=[1, 2, 0])
    assert len(chunk) == 3
    assert chunk.nnz == 3
    assert chunk.indptr.tolist() == [0, 2, 2, 3]
    assert chunk.keys.tolist() == [2, 5, 2**64 - 1]
    assert chunk.values.tolist() == [1.0, 0.5, 3.0]
    assert chunk.weights.tolist() == [1, 2, 0]
    assert [a.dtype.str[1:] for a in (chunk.indptr, chunk.keys, chunk.values, chunk.labels)] == [
        "i8",
        "u8",
        "f4",
        "f4",
    ]


def test_pieces_are_the_rows_in_order_with_so_many_numbers_at_most() -> None:
    chunk = Chunk.of_rows([(k, {j: k + j for j in range(n)}) for k, n in enumerate([2, 0, 9, 1, 3, 3, 0])])
    assert same(concat(list(chunk.pieces(5))), chunk)
    assert [piece.nnz for piece in chunk.pieces(5)] == [2, 9, 4, 3]
    assert [len(piece) for piece in chunk.pieces(18)] == [7]
    assert [len(piece) for piece in Chunk.of_rows([]).pieces(5)] == [0]


def test_repeats_are_added_up_row_by_row() -> None:
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
        ([0, 1], [1], [np.nan], [1], None, "value 1 is not finite"),
        ([0, 1], [1], [1e39], [1], None, "value 1 is not finite"),
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
