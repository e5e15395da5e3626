import gc
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from tests.data.reference import rows_of, same
from thresher import TroubleWarning, evaluate, train
from thresher.data import Chunk, DataError
from thresher.data.features.murmur import hash_bytes, seed_of
from thresher.data.inputs.any_data import as_source
from thresher.data.inputs.arrays import PairSource, chunk_of
from thresher.sklearn import SparseOnlineClassifier

DENSE = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [-1.5, 0.0, 4.0]])
LABELS = [1, -1, 1]
WANTED = Chunk.of_rows([(1, {1: 2.0}), (-1, {}), (1, {0: -1.5, 2: 4.0})], weights=[1, 2, 3])


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_sparse_matrices(index: type, form: str, kind: str) -> None:
    matrix = getattr(sparse, f"{form}_{kind}")(DENSE)
    for name in ("indices", "indptr"):
        if form in ("csr", "csc"):
            setattr(matrix, name, getattr(matrix, name).astype(index))
    assert same(chunk_of(matrix, LABELS, [1, 2, 3]), WANTED)


def test_unsorted_and_repeated_entries_are_put_right() -> None:
    matrix = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])))
    assert rows_of(chunk_of(matrix, [1])) == rows_of(Chunk.of_rows([(1, {0: 2.0, 2: 5.0})]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, object])
def test_dense_matrices(dtype: type) -> None:
    table: Any = (DENSE * 2).astype(dtype)
    assert same(chunk_of(table, LABELS), chunk_of(sparse.csr_array(DENSE * 2), LABELS))
    assert same(chunk_of(table.tolist(), LABELS), chunk_of(table, LABELS))


ROWS: list[dict[Any, Any]] = [
    {"age": 30, "city": "Rome", "new": True, 7: 2.5},
    {"age": 0, "city": None, "new": False},
    {"city": "Bonn", "age": 1.5},
]


def test_rows_of_named_features() -> None:
    age, new = hash_bytes(b"age"), hash_bytes(b"new")
    rome, bonn = (hash_bytes(name, seed_of("city")) for name in (b"Rome", b"Bonn"))
    wanted = Chunk.of_rows([(1, {age: 30, rome: 1, new: 1, 7: 2.5}), (-1, {}), (1, {bonn: 1, age: 1.5})])
    assert same(chunk_of(ROWS, LABELS), wanted)
    assert chunk_of(ROWS, LABELS, seed=1).keys.tolist() != wanted.keys.tolist()


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")  # a word tells the label
def test_texts() -> None:
    texts = ["A fine story", "", "no story"]
    fine, story, no = (hash_bytes(word, 3) for word in (b"fine", b"story", b"no"))
    wanted = Chunk.of_rows([(1, {fine: 1, story: 1}), (-1, {}), (1, {no: 1, story: 1})])
    for given in (texts, np.array(texts), np.array(texts, object)):
        assert same(chunk_of(given, LABELS, seed=3), wanted)
    assert chunk_of(texts, LABELS, text="words=1-2").nnz == 6
    assert train((texts * 200, LABELS * 200)).nonzero == 3
    with pytest.raises(DataError, match="example 2: expected a text, found 1"):
        chunk_of(["a", 1], [1, 1])
    with pytest.raises(DataError, match="n-grams are given as"):
        chunk_of(texts, LABELS, text="bigrams")


def test_members_of_enumerations_are_their_texts() -> None:
    colour: Any = Enum("colour", {"RED": "red"}, type=str)
    wanted = chunk_of([{"c": "red"}], [1])
    for value in (colour.RED, [colour.RED], ["red"], np.str_("red"), [np.str_("red")]):
        assert same(chunk_of([{"c": value}], [1]), wanted)


def test_long_texts_are_not_kept() -> None:
    text = "long " * 1000
    before = sys.getrefcount(text)
    chunk_of([{"c": text}], [1])
    gc.collect()
    assert sys.getrefcount(text) == before


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"a": 1}, {"b": [1.5]}], "row 2, feature 'b'"),
        ([{-1: 1.0}], "row 1, feature -1: a feature name must be"),
        ([{1.5: 1.0}], "row 1, feature 1.5: a feature name must be"),
        ([{None: 1.0}], "row 1, feature None: a feature name must be"),
        ([{("a", 1): 1.0}], r"row 1, feature \('a', 1\): a feature name must be"),
        ([{np.nan: 1.0}], "row 1, feature nan: a feature name must be"),
        ([{np.inf: 1.0}], "row 1, feature inf: a feature name must be"),
        ([{b"3": 1.0}], "row 1, feature b'3': a feature name must be"),
        ([{3: "x"}], "row 1, feature 3: a category needs a name"),
        ([{"\udc80": 1.0}], "row 1, feature .*half of a character"),
        ([{"a": 1}, {"a": "\udc80"}], "row 2, feature 'a': half of a character"),
        ([{"a": ["b", "\udc80"]}], "row 1, feature 'a': half of a character"),
        ([{"a": 1}, {"b": 1, "a": float("nan")}], "row 2, feature 'a': expected a finite number, found NaN"),
        ([{"a": float("-inf")}], "row 1, feature 'a': expected a finite number, found -inf"),
        (
            [{"a": 2}, {7: -1e39}],
            r"row 2, feature 7: expected a finite number, found -1e\+39, too large for float32",
        ),
    ],
)
def test_wrong_rows(rows: list[dict[Any, Any]], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        chunk_of(rows, [1] * len(rows))


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(3), np.zeros((2, 2, 2)), np.array([["a", "b"]]), np.array("a"), sparse.coo_array(np.zeros(3))],
)
def test_what_is_no_matrix(wrong: Any) -> None:
    with pytest.raises(DataError):
        chunk_of(wrong, [1])


def test_sparse_arrays_of_one_dimension_are_no_data_of_estimators_either() -> None:
    for form in (sparse.coo_array, sparse.csr_array):
        with pytest.raises(ValueError, match="two-dimensional"):
            SparseOnlineClassifier().fit(form(np.ones(3)), LABELS)


def test_a_damaged_matrix_is_refused() -> None:
    matrix = sparse.csr_array(DENSE)
    matrix.indices[-1] = 10**6
    last = (len(LABELS) - 1, DENSE.shape[1] - 1)
    with pytest.raises(DataError, match=rf"X\[{last[0]}, 1000000\] is beyond the last column, {last[1]}"):
        chunk_of(matrix, LABELS)


DAMAGE: list[tuple[str, str, int, int]] = [
    *[
        ("csc", "indptr", at, value)
        for at, value in ((1, 10**8), (1, -5), (-1, 10**8), (-1, -5), (2, 0), (0, 2))
    ],
    *[("csc", "indices", 1, value) for value in (3, -1, 10**6)],
    *[("coo", name, 2, value) for name in ("row", "col") for value in (3, 10**6, -3)],
    *[("bsr", "indptr", 1, 10**8), ("bsr", "indices", 0, 10**7), ("bsr", "indices", 0, -1)],
]


@pytest.mark.parametrize(("form", "name", "at", "value"), DAMAGE)
def test_what_scipy_would_convert_out_of_memory_is_refused(form: str, name: str, at: int, value: int) -> None:
    matrix = getattr(sparse, f"{form}_array")(DENSE)
    getattr(matrix, name)[at] = value
    with pytest.raises(DataError, match=f"a damaged {form.upper()} matrix"):
        chunk_of(matrix, LABELS)
    with pytest.raises(ValueError, match=f"a damaged {form.upper()} matrix"):
        SparseOnlineClassifier().fit(matrix, LABELS)


@pytest.mark.parametrize(
    ("form", "names"), [("csc", "indptr indices data"), ("coo", "row data"), ("dia", "offsets data")]
)
def test_arrays_of_other_lengths_are_refused(form: str, names: str) -> None:
    for name in names.split():
        matrix = getattr(sparse, f"{form}_matrix")(DENSE)
        setattr(matrix, name, getattr(matrix, name)[:1])
        with pytest.raises(DataError, match=f"a damaged {form.upper()} matrix"):
            chunk_of(matrix, LABELS)


class Foreign:
    """A sparse matrix of another library: all that is known of it is that it can be converted."""

    format = "coo"

    def tocsr(self) -> Any:
        return sparse.csr_array(DENSE)


def test_sparse_matrices_of_other_libraries() -> None:
    assert same(chunk_of(Foreign(), LABELS, [1, 2, 3]), WANTED)


def examples(count: int) -> list[tuple[dict[Any, Any], int]]:
    rng = np.random.default_rng(5)
    chosen = rng.integers(0, 40, (count, 4))
    return [({f"f{k}": 1.0 for k in row} | {"v": "odd"}, 1 if 3 in row else -1) for row in chosen.tolist()]


@pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")  # a feature tells the label
def test_training_on_what_is_in_memory() -> None:
    pairs = examples(9000)
    chunk = chunk_of([row for row, _ in pairs], [label for _, label in pairs])
    wanted = train(chunk)
    matrix = sparse.csr_array((chunk.values, chunk.keys.view(np.int64) >> 1 & (2**62 - 1), chunk.indptr))

    def stream() -> Iterator[tuple[dict[Any, Any], int, float]]:
        for row, label in pairs:
            yield row, label, 1.0

    for data in (pairs, stream(), ([row for row, _ in pairs], [label for _, label in pairs])):
        found = train(data)
        assert all((a == b).all() for a, b in zip(found.weights(), wanted.weights(), strict=True))
    assert train(pairs, passes=2).examples == 18_000
    labels = [label for _, label in pairs]
    assert evaluate(train((matrix, labels)), (matrix, labels))["error"] < 0.05
    with pytest.warns(TroubleWarning, match="have importance 0"):
        assert train((matrix, labels, np.zeros(9000))).tally.weight == 0


def test_a_stream_of_pairs_is_a_source() -> None:
    source = PairSource(examples(9000), "binary")
    chunks = list(source.chunks())
    assert [len(chunk) for chunk in chunks] == [4096, 4096, 808]
    assert source.report.examples == 9000
    (rest,) = source.chunks(chunks[1].after)
    assert same(rest, chunks[2])
    assert not PairSource(iter(examples(3))).rereadable
    with pytest.raises(DataError, match="no examples"):
        list(PairSource(iter([])).chunks())


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([({"a": 1}, 1), ({"a": 1}, 7)], "rows 1 to 2: example 2: expected a label -1, 0 or 1"),
        ([({"a": 1}, 1), ("a", 1)], "row 2: expected"),
        ([({"a": 1},)], "row 1: expected"),
        ([({"a": 1}, 1, -1.0)], "rows 1 to 1: example 1: the importance weight is negative"),
        ([({"a": {}}, 1)], "row 1, feature 'a'"),
    ],
)
def test_wrong_pairs(pairs: list[Any], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        list(as_source(pairs, "binary").chunks())


def test_nulls_of_a_table_of_numbers_are_missing() -> None:
    columns: dict[str, Any] = {"a": [1.5, None, 2.0], "b": [None, 2, 3]}
    whole = pd.DataFrame({"a": pd.array(columns["a"], "Float64"), "b": pd.array(columns["b"], "Int64")})
    for table in (pd.DataFrame(columns), whole, pl.DataFrame(columns), pa.table(columns)):
        chunk = chunk_of(table, [1, -1, 1])
        assert chunk.keys.tolist() == [0, 1, 0, 1]
        assert chunk.values.tolist() == [1.5, 2, 2, 3]
    for table in (pl.DataFrame({"a": [1.0, float("nan"), None]}), np.array([[1.0], [np.nan], [0]])):
        with pytest.raises(DataError, match="row 2, column 0: NaN is not allowed"):
            chunk_of(table, [1, -1, 1])
