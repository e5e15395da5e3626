"""`passes="auto"`: rows that fit in memory are passed over again, as if the data had been read again."""

import gzip
import signal
from dataclasses import replace
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import thresher
from tests.commands import own_cache
from tests.covering import covering
from tests.data.tables import WRITERS
from tests.data.test_tables import some_rows
from tests.learning.test_checkpoints import BLOCK, ROWS, Case, prepare
from tests.stopping import checkpoints_kept, in_pass, stopping
from thresher import Chunk, Model, open_source
from thresher.data import DataError, MemorySource, concat
from thresher.data import order as orders
from thresher.data.chunk import StreamPosition
from thresher.data.inputs.matrices import DistinctKeys
from thresher.data.layout import AnyLayout
from thresher.data.order import StoredRows, make_order
from thresher.data.source import Chunks, SourceWrapper
from thresher.learning.files import checkpoint, model_file
from thresher.learning.training import passes as passes_module
from thresher.learning.training.interruption import Interrupted
from thresher.learning.training.passes import (
    AUTO,
    Passes,
    ReplayBuffer,
    Size,
    bytes_of,
    passes_for,
    settle_passes,
)
from thresher.learning.training.shares import LastRows
from thresher.learning.training.trainer import Trainer, TrainingPlan
from thresher.parts import REGISTRY
from thresher.parts.rules.ft_ftrl import FtFtrl

pytestmark = pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
MADE = 3
"""Passes over rows that fit"""
TRIED = 3
"""Runs are resumed from every third checkpoint and the last two; every other one with other chunks."""
USUAL = {name: getattr(passes_module, name) for name in ("MANY", "FEW")}
ENOUGH = 64_000_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plainly: None) -> None:
    """A folder with 160 rows in two files, 40 others in ``held.svm``, and an automatic default rule."""
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(FtFtrl, "AUTOMATIC", True)
    monkeypatch.setattr("thresher.learning.training.passes.passes_for", lambda size: MADE)
    narrow = [b" ".join(row.split()[:5]) + b"\n" for row in ROWS]
    Path("a.svm").write_bytes(b"".join(narrow[:90]))
    Path("b.svm.gz").write_bytes(gzip.compress(b"".join(narrow[90:160])))
    Path("held.svm").write_bytes(b"".join(narrow[240:280]))


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many passes as users see, which are too many for plain Python."""
    for name, passes in USUAL.items():
        monkeypatch.setattr(passes_module, name, passes)
    monkeypatch.setattr("thresher.learning.training.passes.passes_for", passes_for)


@pytest.fixture
def automatic(monkeypatch: pytest.MonkeyPatch) -> None:
    for rule in REGISTRY["rule"].values():
        monkeypatch.setattr(rule, "AUTOMATIC", True)


CASES = {
    "plain": Case(),
    "two of five, buffer": Case(TrainingPlan(holdout_every=Fraction(5, 2)), order="buffer:17"),
    "the last, quarantine": Case(
        TrainingPlan(holdout_every=LastRows(Fraction(1, 3))), on_error="quarantine=bad.txt"
    ),
    "the last, every": Case(TrainingPlan(holdout_every=LastRows(50)), order="every"),
    "groups": Case(TrainingPlan(holdout_every=4), grouped=True),
    "a file, early stop": Case(
        TrainingPlan(patience=1), lambda: Model("sgd", "hinge", rate="constant:9"), held=True
    ),
    "buffer, cached": Case(order="buffer:40", cached=True),
    "batches": Case(model=lambda: Model("rda", batch=7)),
    "averages": Case(model=lambda: Model("sgd", average=True, rate="constant:0.1")),
    "scaled, admitted": Case(model=lambda: Model("ftrl", scale="standard", admit="poisson:0.5,bits=16")),
    "centred": Case(TrainingPlan(holdout_every=3), lambda: Model(centre=True)),
    "relaxed": Case(TrainingPlan(holdout_every=3), lambda: Model("ft-ftrl:relax=0.5")),
}


def trainer(case: Case, passes: int | str = AUTO, loaded: Any = None, **reading: Any) -> Trainer:
    """A training of the two files, with so many passes or the automatic number."""
    layout = AnyLayout(group="qid") if case.grouped else None
    read = {"block_bytes": BLOCK, "threads": 2, "on_error": case.on_error, "layout": layout, **reading}
    source = open_source(["a.svm", "b.svm.gz"], **read)
    plan = replace(case.plan, replay=ENOUGH) if passes == AUTO else replace(case.plan, passes=int(passes))
    model = loaded[0] if loaded else case.model()
    order = make_order(case.order, model.recipe.seed)
    ways = Passes(source, 1 if order.held else plan.passes, cached=case.cached)
    held = open_source("held.svm", block_bytes=BLOCK) if case.held else None
    plan = replace(plan, checkpoint=Path("checkpoint"))
    made = Trainer(model, ways.first, plan, reread=ways.later, order=order, holdout=held)
    if loaded:
        made.continue_from(loaded[1])
    return made


def end(ready: Trainer) -> Any:
    outcome = ready.run()
    model_file.save(ready.model, "model")
    timed = ("seconds", "seconds_compiling", "examples_per_second")
    figures = {k: v for k, v in outcome.figures.items() if k not in timed}, outcome.holdout
    table = [row[:-1] for row in outcome.table]
    reports = [report.as_dict() for report in outcome.reports]
    told = [one.name for one in outcome.warnings if one.name != "overfitting"]  # said sooner of chosen passes
    return Path("model").read_bytes(), figures, repr(table), reports, told


def caches() -> list[Path]:
    return list(Path("cache").rglob("*.rows"))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_equals_passes_that_read_the_data_again(case: Case, automatic: None) -> None:
    prepare(case)
    whole = end(trainer(case))
    bad = Path("bad.txt").read_bytes() if Path("bad.txt").exists() else b""
    assert whole[1][0]["passes"] == MADE or case.plan.patience
    assert not caches()
    assert end(trainer(case, MADE)) == whole
    other = end(trainer(case, threads=3, block_bytes=900))
    assert other[0] == whole[0]  # the loss on a hold-out is summed chunk by chunk
    assert not bad or Path("bad.txt").read_bytes() == bad
    if case.cached and case.order == "as-is":
        assert caches()
        assert end(trainer(case)) == whole  # it reads the cache


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_goes_on_from_any_checkpoint(case: Case, automatic: None, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(case)
    monkeypatch.setattr(orders, "CHUNK_ROWS", 30)
    with checkpoints_kept() as taken:
        whole = end(trainer(replace(case, plan=replace(case.plan, checkpoint_every=55))))
    bad = Path("bad.txt").read_bytes() if Path("bad.txt").exists() else b""
    assert len(taken) >= 4
    for k, content in enumerate([*taken[1:-1:TRIED], *taken[-2:]]):
        Path("checkpoint").write_bytes(content)
        cut = {"block_bytes": 900, "threads": 1} if checkpoint_pass() > 1 and k % 2 else {}
        found = end(trainer(case, loaded=checkpoint.load(Path("checkpoint")), **cut))
        assert found[0] == whole[0]
        assert cut or found == whole
        assert not bad or Path("bad.txt").read_bytes() == bad
    assert checkpoint_pass() > 1


@pytest.mark.parametrize("order", ["as-is", "buffer:17"])
def test_a_run_whose_rows_do_not_fit_goes_on_without_them(order: str) -> None:
    case = Case(TrainingPlan(checkpoint_every=30), order=order)

    def small(loaded: Any = None) -> Trainer:
        ready = trainer(case, loaded=loaded, block_bytes=900)
        ready.repetition.budget = 3000
        return ready

    whole = end(small())
    assert whole[1][0]["passes"] == 1
    _, state = loaded = checkpoint.load(Path("checkpoint"))
    assert (state.passes, state.settled, state.position.number) == (1, True, 1)
    resumed = small(loaded)
    assert not resumed.repetition.keeps
    assert end(resumed) == whole


def checkpoint_pass() -> int:
    return checkpoint.load(Path("checkpoint"))[1].position.number


def test_other_rows_are_noticed_when_a_replay_is_resumed() -> None:
    ready = trainer(Case())
    stop_in_pass(ready, 2)
    content = Path("a.svm").read_bytes()
    Path("a.svm").write_bytes(content.replace(b"-1 ", b"+1 ", 1))
    with pytest.raises(DataError, match="changed since it was first read"):
        trainer(Case(), loaded=checkpoint.load(Path("checkpoint"))).run()


def stop_in_pass(ready: Trainer, number: int) -> None:
    with stopping(in_pass(number)), pytest.raises(Interrupted):
        ready.run()


def rows_of(name: str) -> Any:
    """120 rows in a form, and the options that name their columns."""
    table = some_rows(120)
    if name.startswith("data."):
        WRITERS[name](table, Path(name))
        return name, {"weight": "w", "numeric": "x,y", "categorical": "id"}
    if name == "lists.svm":
        labels = ["1,2", "3", "1", "2,3", ""]
        Path(name).write_text("".join(f"{labels[k % 5]} {k % 7 + 1}:1 9:{k}\n" for k in range(120)))
        return name, {"outputs": "labels:1-3"}
    chance = np.random.default_rng(0)
    X = chance.normal(size=(120, 4))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
    dictionaries = [{f"f{k % 5}": float(k), "b": 1.0} for k in range(120)]
    return {
        "matrix": ((X, y), {}),
        "csr": ((sp.csr_matrix(X), y), {}),
        "frame": (frame, {}),
        "arrow": (pa.table(frame), {}),
        "dictionaries": ((dictionaries, y), {}),
        "pairs": ([*zip(dictionaries, y.tolist(), strict=True)], {}),
        "chunks": ([Chunk.from_csr([0, 1, 2], [3, 4], [1.0, 2.0], [1, -1]) for _ in range(60)], {}),
        "several outputs": ((X, np.column_stack([y, 1 - y])), {"outputs": "values:2", "loss": "squared"}),
        "classes": ((X, np.arange(120) % 3), {"loss": "softmax"}),
        "groups": ((X, y), {"groups": np.arange(120) // 4, "holdout": 0.25}),
    }[name]


KINDS = ["matrix", "csr", "frame", "arrow", "dictionaries", "pairs", "chunks", "several outputs", "classes"]
KINDS += ["groups", "lists.svm", "data.csv", "data.jsonl", "data.parquet", "data.arrows"]


@pytest.mark.parametrize(("kind", "order"), covering(KINDS, ("as-is", "every")))
def test_it_equals_a_number_of_passes_over_data_of_any_kind(kind: str, order: str) -> None:
    data, options = rows_of(kind)
    found = [thresher.train(data, passes=passes, order=order, **options) for passes in ("auto", MADE, 1)]
    for k, model in enumerate(found):
        model_file.save(model, f"model{k}")
    assert found[0].record.passes == MADE
    assert Path("model0").read_bytes() == Path("model1").read_bytes() != Path("model2").read_bytes()


@pytest.mark.parametrize("more", [{"rule": "sgd"}, {"replay": 0}, {"replay": "1KB"}])
def test_there_is_one_pass_for_other_rules_and_rows_that_do_not_fit(more: Any) -> None:
    data, _ = rows_of("matrix")
    model = thresher.train(data, **more)
    assert model.record.passes == 1
    assert (model.weights()[1] == thresher.train(data, passes=1, **{**more, "replay": 0}).weights()[1]).all()


def test_ensembles_replay_too() -> None:
    data, _ = rows_of("matrix")
    for order, passes in (("as-is", MADE), ("once", MADE), ("every", 1)):
        ensembles = [thresher.ensemble(data, models=2, order=order, passes=n) for n in ("auto", passes)]
        assert ensembles[0].models[0].examples == ensembles[1].models[0].examples
        assert (ensembles[0].predict(data[0]) == ensembles[1].predict(data[0])).all()
        assert ensembles[0].models[0].examples > 50 * passes


def test_a_hold_out_that_can_be_read_once_is_evaluated_after_the_last_pass() -> None:
    pairs, _ = rows_of("pairs")
    found = [thresher.train(pairs[40:], holdout=iter(pairs[:40])), thresher.train(pairs[40:])]
    assert found[0].holdout is not None
    assert found[0].holdout["loss"] == thresher.evaluate(found[1], pairs[:40])["loss"]
    assert (found[0].weights()[1] == found[1].weights()[1]).all()


class Elsewhere(SourceWrapper[MemorySource]):
    """Chunks that are not in memory, as far as one can tell."""

    def __init__(self, source: MemorySource) -> None:
        super().__init__(source)
        self.in_memory, self.total_bytes = False, None

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        yield from self._source.chunks(start)


def test_rows_are_dropped_as_soon_as_they_do_not_fit() -> None:
    pieces = [Chunk.from_csr([0, 1], [k], [1.0], [1]) for k in range(10)]
    kept = ReplayBuffer(Elsewhere(MemorySource(pieces)), 28 * 5)
    assert [len(kept._rows or ()) for _ in kept.chunks()] == [1, 2, 3, 4, 5, 0, 0, 0, 0, 0]
    assert kept.dropped


@pytest.mark.parametrize("order", ["as-is", "buffer:7", "every"])
def test_files_that_seem_too_long_are_not_kept_but_read_again_if_they_are_not(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, notes = Path("a.svm").read_bytes(), b"# nothing\n" * 9000
    read = {"block_bytes": 900, "threads": 1}
    Path("a.svm").write_bytes(rows + notes)
    ready = trainer(Case(order=order), **read)
    ready.repetition.budget = 20_000
    kept: list[int] = []

    class Noted(StoredRows):
        def add(self, chunk: Chunk) -> None:
            kept.append(len(chunk))
            super().add(chunk)

    monkeypatch.setattr(passes_module, "StoredRows", Noted)
    found = end(ready)
    assert len(kept) == 0 if order == "every" else len(kept) > 8  # in the second reading
    assert found == end(trainer(Case(order=order), MADE, **read))
    Path("a.svm").write_bytes(rows * 30)
    ready, kept[:] = trainer(Case(order=order), **read), []
    ready.repetition.budget = 20_000
    assert ready.run().figures["passes"] == 1
    assert not kept


@given(st.integers(1, 9), st.lists(st.integers(1, 7), min_size=1), st.integers(0, 50))
def test_kept_rows_are_the_rows_however_they_are_cut(most: int, cuts: Any, first: int) -> None:
    ones = np.arange(50, dtype=np.float32)
    stream = replace(
        Chunk.from_csr(np.cumsum([0, *(k * 7 % 5 for k in range(50))]), np.arange(100), ones.repeat(2), ones),
        targets=np.arange(100, dtype=np.float32).reshape(50, 2),
        groups=np.arange(50, dtype=np.uint64),
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("CHUNK_ROWS", most), ("CHUNK_VALUES", 2 * most)):
            patch.setattr(orders, name, value)
        rows, at = StoredRows(), 0
        for size in cycle(cuts):
            rows.add(stream.rows(at, at + size))
            if (at := at + size) >= 50:
                break
        whole = StoredRows()
        whole.add(stream)
        found, other = [*rows.chunks(first)], [*whole.chunks(first)]
    assert [one.place for one in found] == [one.place for one in other]
    joined = concat(found) if found else stream.rows(50, 50)
    rest = stream.rows(first, 50)
    for name in ("indptr", "keys", "values", "labels", "weights", "targets", "groups"):
        assert (getattr(joined, name) == getattr(rest, name)).all()


PASSED: list[dict[str, Any]] = [
    *({"store": "hashed:1"}, {"store": "direct"}, {"order": "every"}, {"order": "buffer:9"}),
    *({"admit": 3}, {"rule": "ft-ftrl:l1=9"}),
]


@pytest.mark.parametrize(("options", "columns"), covering(PASSED, (1, 3)), ids=str)
@pytest.mark.usefixtures("usual")
def test_the_number_of_passes_depends_on_the_rows_alone(columns: int, options: Any) -> None:
    Path("wide.svm").write_text(
        "".join(f"{k % 2} {k % columns + 1}:1 {columns + 1}:{k + 1}\n" for k in range(60))
    )
    for data in ("wide.svm", [*open_source("wide.svm").chunks()]):
        model = thresher.train(data, **options)
        assert model.record.passes == (40 if columns == 1 else 5)


@given(st.sets(st.integers(0, 2**64 - 1), max_size=300), st.integers(1, 40))
def test_different_keys_are_counted_however_often_they_come(found: set[int], piece: int) -> None:
    keys, counted = np.array([*sorted(found), *found], np.uint64), DistinctKeys()
    for first in range(0, len(keys), piece):
        counted.add(keys[first : first + piece])
    assert counted.count == pytest.approx(len(found), abs=2)


def test_the_share_that_is_done_counts_all_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    for replay, passes in ((ENOUGH, MADE), (2000, 1)):
        ready, shares = trainer(Case(), block_bytes=900), list[Any]()
        ready.repetition.budget = replay
        monkeypatch.setattr(ready.ui, "advance", lambda examples, done, to=shares: to.append(done))
        ready.run()
        assert shares == sorted(shares)
        assert shares[0] < 0.2 / passes
        assert shares[-1] == 1.0


def test_passes_are_those_of_the_rows_that_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Size] = []

    def note(size: Size) -> int:
        found.append(size)
        return 1

    monkeypatch.setattr("thresher.learning.training.passes.passes_for", note)
    chunk = Chunk.of_rows([(1, {1: 1.0, 2: 1.0}), (-1, {1: 1.0}), (1, {3: 2.0, 4: 1.0})], [1, 0, 2])
    for pieces in ([chunk], [chunk.rows(k, k + 1) for k in range(3)]):
        for order in ("as-is", "every", "buffer:2"):
            Trainer(Model(), MemorySource(pieces), TrainingPlan(replay=100), order=make_order(order)).run()
            assert found[-1] == Size(2, 4, 2 * 16 + 4 * 12, features=4)


@pytest.mark.parametrize(
    ("replay", "size"), [("64MB", 64 * 10**6), ("1gb", 10**9), ("0.5 KB", 500), ("12", 12), (7, 7), ("0", 0)]
)
def test_sizes(replay: int | str, size: int) -> None:
    assert bytes_of(replay) == size


@pytest.mark.parametrize("replay", ["", "MB", "64 M B", "-1", "1XB", -1, 1.5, None, "9999TB"])
def test_sizes_that_are_none(replay: Any) -> None:
    with pytest.raises(ValueError, match="replay must be"):
        bytes_of(replay)


def test_a_budget_is_for_automatic_passes() -> None:
    with pytest.raises(ValueError, match="replay has no effect with passes=3"):
        thresher.train(rows_of("matrix")[0], passes=3, replay="1GB")
    assert settle_passes(3, 0) == settle_passes(3, "64MB") == (3, 0)


def during(monkeypatch: pytest.MonkeyPatch, number: int, signals: int = 1) -> None:
    """Send Ctrl-C in a pass, with nothing of an earlier test that still waits for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    handle = Trainer.handle_due

    def watch(self: Trainer) -> None:
        if self.state.position.number == number and self.models.examples % 60 == 8:
            for _ in range(signals):
                signal.raise_signal(signal.SIGINT)
        handle(self)

    monkeypatch.setattr(Trainer, "handle_due", watch)
    monkeypatch.setattr("thresher.learning.training.progress.until_due", lambda done: 1)


@pytest.mark.parametrize("holdout", [None, 0.5])
def test_ctrl_c_in_a_replay_ends_it(holdout: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = rows_of("matrix")
    during(monkeypatch, 2)
    before = signal.getsignal(signal.SIGINT)
    with pytest.warns(thresher.TroubleWarning, match=f"interrupted in pass 2 of {MADE}"):
        model = thresher.train(data, holdout=holdout)
    assert signal.getsignal(signal.SIGINT) is before
    assert "ended-early" in [one.name for one in model.warnings]
    assert (model.record.passes, model.record.planned) == (2, MADE)
    assert model.examples == (68 if holdout else 128)
    assert (model.holdout or {}).get("examples") == (60 if holdout else None)


def test_ctrl_c_in_the_first_pass_or_chosen_passes_is_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = rows_of("matrix")
    for number, passes in ((1, "auto"), (2, 2)):
        with monkeypatch.context() as patch:
            during(patch, number)
            with pytest.raises(KeyboardInterrupt):
                thresher.train(data, passes=passes)


def test_programs_that_handle_ctrl_c_themselves_go_on_doing_so(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = rows_of("matrix")
    during(monkeypatch, 2)
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        assert thresher.train(data).examples == 120 * MADE
    finally:
        signal.signal(signal.SIGINT, before)
    assert came
