"""Orders of rows: their guarantees, compared with lists in plain Python."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.reference import rows_of, same
from thresher.data import Chunk, MemorySource, StreamPosition, concat
from thresher.data.order import CHUNK_ROWS, StoredRows, make_order

SHUFFLED = ["once", "every", "buffer:1", "buffer:7", "buffer:1000"]


def examples(count: int, seed: int = 0) -> Chunk:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 6, count)
    keys = [k for n in lengths for k in np.sort(random.choice(1 << 40, n, replace=False)).tolist()]
    values = random.normal(size=len(keys))
    return Chunk.from_csr(
        np.cumsum([0, *lengths]), keys, values, np.arange(count), random.integers(0, 3, count)
    )


def cut(chunk: Chunk, at: list[int]) -> MemorySource:
    places = sorted({0, len(chunk), *(a % (len(chunk) + 1) for a in at)})
    return MemorySource([chunk.rows(a, b) for a, b in pairwise(places)])


def ids(source: Any, start: StreamPosition | None = None) -> list[int]:
    return [int(label) for chunk in source.chunks(start) for label in chunk.labels]


def passes_of(spec: str, source: Any, numbers: range = range(1, 4), seed: int = 0) -> list[list[int]]:
    order = make_order(spec, seed)
    return [ids(order.over(source, number)) for number in numbers]


def buffered(count: int, size: int, chance: np.random.Generator) -> list[int]:
    """The buffered order as documented, row by row: one random number per row once the buffer is full."""
    buffer: list[int] = []
    out = []
    for row in range(count):
        if len(buffer) < size:
            buffer.append(row)
            continue
        slot = int(chance.random() * size)
        out.append(buffer[slot])
        buffer[slot] = row
    return [*out, *map(int, chance.permutation(buffer))]


@pytest.mark.parametrize("spec", SHUFFLED)
def test_every_row_comes_out_once_and_whole(spec: str) -> None:
    data = examples(500)
    rows = rows_of(data)
    for number in (1, 2):
        out = concat(list(make_order(spec).over(cut(data, [50, 51, 333]), number).chunks()))
        order = out.labels.astype(int).tolist()
        assert sorted(order) == list(range(500))
        assert rows_of(out) == [rows[k] for k in order]


@given(
    spec=st.sampled_from(SHUFFLED),
    at=st.lists(st.integers(0, 300), max_size=9),
    count=st.integers(1, 300),
    seed=st.integers(0, 2**70),
)
def test_cuts_of_the_source_change_no_order(spec: str, at: list[int], count: int, seed: int) -> None:
    data = examples(count)
    whole, pieces = MemorySource(data), cut(data, at)
    assert passes_of(spec, whole, seed=seed) == passes_of(spec, pieces, seed=seed)


@given(
    size=st.integers(1, 60) | st.just(1000),
    at=st.lists(st.integers(0, 200), max_size=9),
    number=st.integers(1, 5),
)
def test_the_buffer_is_the_one_told_of(size: int, at: list[int], number: int) -> None:
    (got,) = passes_of(f"buffer:{size}", cut(examples(200), at), range(number, number + 1), seed=3)
    assert got == buffered(200, size, np.random.default_rng([3, number]))
    assert all(row < place + size + 1 for place, row in enumerate(got))


def test_once_repeats_and_the_others_do_not() -> None:
    source = cut(examples(200), [20, 70])
    once, every = passes_of("once", source), passes_of("every", source)
    assert once[0] == once[1] == once[2] == every[0] != list(range(200))
    for spec in ("every", "buffer:50"):
        first, second, third = passes_of(spec, source)
        assert first != second != third != first
    assert passes_of("as-is", source) == [list(range(200))] * 3
    assert passes_of("once", source) != passes_of("once", source, seed=1)
    assert passes_of("once", source, seed=-1) == passes_of("once", source, seed=-1)


@pytest.mark.parametrize("spec", SHUFFLED)
def test_a_pass_can_be_gone_on_with_from_any_chunk(spec: str) -> None:
    count = CHUNK_ROWS + 5 if spec == "every" else 300
    source = cut(examples(count), [10, 90, 100, 290])

    def fresh() -> Any:
        return make_order(spec, 4).over(source, 2)

    whole = list(fresh().chunks())
    assert len(whole) > 1 or spec in ("once", "buffer:1000")
    for k, chunk in enumerate(whole):
        for start, rest in ((chunk.place, whole[k:]), (chunk.after, whole[k + 1 :])):
            found = list(fresh().chunks(start))
            assert all(same(a, b) for a, b in zip(found, rest, strict=True))


def test_permuted_rows_are_read_once_and_reported_in_every_pass() -> None:
    class Counted(MemorySource):
        read = 0

        def chunks(self, start: StreamPosition | None = None) -> Any:
            self.read += 1
            return super().chunks(start)

    source = Counted(examples(90))
    order = make_order("every")
    assert order.held
    assert [make_order(one).held for one in ("buffer:9", "as-is")] == [False, False]
    for number in (1, 2, 3):
        ordered = order.over(source, number)
        assert len(ids(ordered)) == ordered.report.examples == 90
        assert ordered.position_bytes == ordered.total_bytes == source.total_bytes
    assert source.read == 1


def test_rows_keep_what_is_kept() -> None:
    data, rows = examples(100), StoredRows()
    for chunk in cut(data, [1, 30, 31, 77]).chunks():
        rows.add(chunk)
    rows.trim()
    chosen = np.array([99, 3, 3, 50])
    rows.keep(chosen)
    rows.add(data.rows(10, 12))
    assert len(rows) == 6
    listed = rows_of(data)
    assert rows_of(rows.chunk().take(np.arange(6)[::-1])) == [listed[k] for k in [11, 10, 50, 3, 3, 99]]
    assert rows_of(rows.chunk().take(np.arange(0))) == []
