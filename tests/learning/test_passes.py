"""Later passes see the rows of the first, and no cache serves rows that are no longer in the data."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import thresher
from tests.commands import own_cache
from tests.covering import covering
from tests.learning.test_checkpoints import ROWS
from tests.learning.test_identity import CHANGED, FORMS, Form, trainer
from thresher import open_source
from thresher.data import CacheWriter, Chunk, DataError, open_cache
from thresher.data.layout import Layout
from thresher.data.source import Source
from thresher.learning.training.passes import Passes
from thresher.learning.training.trainer import Trainer


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path)))
    monkeypatch.chdir(tmp_path)


def between_passes(ready: Trainer, change: Callable[[], object]) -> None:
    reread = ready.reread

    def changed() -> Source:
        if ready.state.position.number == 2:
            change()
        return reread()

    ready.reread = changed
    ready.run()


@pytest.mark.parametrize(
    ("form", "change"), covering(FORMS.values(), [{"rows": 300}, {"rows": 200}, {"changed": 150}])
)
def test_later_passes_must_find_what_the_first_has_found(form: Form, change: Any) -> None:
    form.write()
    order = "buffer:20" if (len(form.name) + len(change)) % 2 else "as-is"
    with pytest.raises(DataError, match=CHANGED):
        between_passes(trainer(form, 3, order=order), lambda: form.write(**change))


@pytest.mark.parametrize("form", [FORMS["text"], FORMS["parquet"]])
def test_passes_from_memory_or_a_cache_need_no_data(form: Form) -> None:
    form.write()
    between_passes(trainer(form, 3, order="every"), lambda: os.unlink(form.name))
    form.write()
    between_passes(trainer(form, 3, cached=True), lambda: os.unlink(form.name))


def test_a_touch_between_passes_does_no_harm() -> None:
    form = FORMS["parquet"]
    form.write()
    between_passes(trainer(form, 2), lambda: os.utime(form.name, ns=(1, 1)))


def test_a_hold_out_file_must_stay_the_same_between_passes() -> None:
    form = FORMS["text"]
    form.write()
    Path("held.svm").write_bytes(b"".join(ROWS[280:]))
    ready = trainer(form, 3, held="held.svm")
    passed = ready.ui.passed

    def change(*end: Any) -> None:
        Path("held.svm").write_bytes(b"".join(ROWS[270:]))
        passed(*end)

    ready.ui.passed = change  # type: ignore[assignment,method-assign]
    with pytest.raises(DataError, match=f"held.svm: {CHANGED}"):
        ready.run()


class Pairs:
    """The rows for each reading: two first looks, and the passes."""

    def __init__(self, *passes: list[tuple[dict[str, float], int]]) -> None:
        self._passes = iter(passes)

    def __iter__(self) -> Iterator[Any]:
        return iter(next(self._passes))


def pairs(n: int = 9) -> list[tuple[dict[str, float], int]]:
    return [({"a": 1.0, f"b{k}": k + 1.0}, k % 2) for k in range(n)]


@pytest.mark.parametrize(
    "second", [pairs(8), pairs(10), [*pairs(8), ({"a": 1.0, "b8": 9.0}, 1)], [*pairs(8), ({"a": 1.0}, 0)]]
)
def test_rows_of_an_iterable_must_be_the_same(second: list[tuple[dict[str, float], int]]) -> None:
    with pytest.raises(DataError, match=CHANGED):
        thresher.train(Pairs(pairs(), pairs(), pairs(), second), "sgd", passes=2)
    assert thresher.train(Pairs(pairs(), pairs(), pairs(), pairs()[::-1]), "sgd", passes=2).examples == 18


class Batches:
    def __init__(self, *tables: Any) -> None:
        self._tables = iter(tables)

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return next(self._tables).__arrow_c_stream__(schema)


def test_rows_of_a_table_must_be_the_same() -> None:
    table = pa.table({"label": [0, 1, 1, 0], "c": ["a", "b", "c", "d"], "w": [1.0, 2.0, 3.0, 4.0]})
    mixed = table.take([2, 0, 3, 1])
    layout = Layout(weight="w")
    assert thresher.train(Batches(table, table, mixed), "sgd", passes=2, layout=layout).examples == 8
    for column, values in (("label", [0, 1, 1, 1]), ("c", ["a", "b", "c", "e"]), ("w", [1.0, 2.0, 3.0, 5.0])):
        other = table.set_column(table.schema.get_field_index(column), column, pa.array(values))
        with pytest.raises(DataError, match="the table: changed since it was first read"):
            thresher.train(Batches(table, table, other), "sgd", passes=2, layout=layout)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_file_cut_off_while_it_is_read_is_an_error(form: Form) -> None:
    form.write(rows=300)
    size = os.path.getsize(form.name)
    source = open_source(form.name, layout=form.layout, block_bytes=1 << 9, threads=1)
    source.keep_hash = True

    def read() -> None:
        for _ in source.chunks():
            os.truncate(form.name, size // 2)

    with pytest.raises(DataError, match=r"cut off|changed"):
        read()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_file_changed_while_it_is_read_is_an_error_and_leaves_no_cache(form: Form) -> None:
    form.write()
    source = open_source(form.name, layout=form.layout, block_bytes=form.block, threads=1)
    writer = CacheWriter(source)

    def read() -> None:
        for k, chunk in enumerate(source.chunks()):
            writer.write(chunk)
            if k == 0:
                content = bytearray(Path(form.name).read_bytes())
                content[5] ^= 1
                with open(form.name, "r+b") as file:
                    file.write(content)

    with pytest.raises(DataError, match="changed while it was read"):
        read()
    writer.abandon()
    form.write()
    assert open_cache(open_source(form.name, layout=form.layout, block_bytes=form.block)) is None


def test_a_file_may_grow_while_it_is_read() -> None:
    form = FORMS["text"]
    form.write()
    source = open_source(form.name, block_bytes=form.block, threads=1)
    source.keep_hash, rows = True, 0
    for k, chunk in enumerate(source.chunks()):
        rows += len(chunk)
        if k == 0:
            with open(form.name, "ab") as file:
                file.write(b"".join(ROWS[:5]))
    assert rows == 285
    with open(form.name, "ab") as file:
        file.write(ROWS[0])
    with pytest.raises(DataError, match=CHANGED):
        list(source.chunks())


def edit_in_place(name: str) -> None:
    status = os.stat(name)
    content = Path(name).read_bytes()
    with open(name, "r+b") as file:
        file.write(content.replace(b"e-02", b"e-03"))
    os.utime(name, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_rename(name: str) -> None:
    status = os.stat(name)
    Path("aside").write_bytes(Path(name).read_bytes().replace(b"e-02", b"e-03"))
    os.utime("aside", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace("aside", name)


def through_a_hard_link(name: str) -> None:
    os.link(name, "other-name")
    edit_in_place("other-name")


def through_a_symbolic_link(name: str) -> None:
    os.rename(name, "target")
    os.symlink("target", name)
    edit_in_place("target")


EDITS = [edit_in_place, replace_by_rename, through_a_hard_link, through_a_symbolic_link]


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("settled", [True, False])
def test_no_cache_serves_rows_before_edits(edit: Any, settled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if settled:
        monkeypatch.setattr("thresher.data.files.content.SETTLED", 0)
    names = ["a.svm", "b.svm"]
    Path("a.svm").write_bytes(b"".join(ROWS[:150]))
    Path("b.svm").write_bytes(b"".join(ROWS[150:]))
    for name in names:
        os.utime(name, ns=(10**18, 10**18))
    time.sleep(0.02)

    def read() -> tuple[bool, list[Chunk]]:
        source = open_source(names, block_bytes=1 << 14)
        passes = Passes(source, 2, cached=True)
        list(passes.first.chunks())
        return passes.first is not source, list(passes.later().chunks())

    before = read()[1]
    time.sleep(0.02)
    edit("b.svm")
    after, fresh = read()[1], list(open_source(names, block_bytes=1 << 14).chunks())
    values = [b"".join(chunk.values.tobytes() for chunk in chunks) for chunks in (before, after, fresh)]
    assert values[1] == values[2] != values[0]


def test_a_damaged_cache_is_not_made_up_for_by_other_rows() -> None:
    form = FORMS["text"]
    form.write()
    source = open_source(form.name, block_bytes=form.block)
    passes = Passes(source, 2, cached=True)
    count = sum(1 for _ in passes.first.chunks())
    cached = open_cache(open_source(form.name, block_bytes=form.block))
    form.write(changed=200)
    content = bytearray(cached.path.read_bytes())
    content[len(content) // 2] ^= 64
    with open(cached.path, "r+b") as file:
        file.write(content)
    assert count > 3
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(DataError, match=CHANGED):
        list(cached.chunks())
