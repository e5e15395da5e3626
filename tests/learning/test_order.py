"""Training in another order: which rows are learned when; nothing but the order changes."""

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands import own_cache
from tests.covering import covering
from tests.models import without_record
from tests.streams import Stream, stream
from thresher import Chunk, Model, open_source, train
from thresher.data import MemorySource
from thresher.data.order import StoredRows, make_order
from thresher.learning.files.model_file import save
from thresher.learning.training.passes import Passes
from thresher.learning.training.shares import held_out
from thresher.learning.training.trainer import Outcome, Trainer, TrainingPlan

SHUFFLED = ["once", "every", "buffer:30"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stream:
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path)))
    monkeypatch.chdir(tmp_path)
    found = stream(rows=400, weighted=False)
    lines = []
    for k in range(400):
        row = found.chunk.rows(k, k + 1)
        pairs = zip(row.keys.tolist(), row.values.tolist(), strict=True)
        lines.append(" ".join([f"{row.labels[0]:g}", *(f"{key}:{value!r}" for key, value in pairs)]))
    Path("data.svm").write_text("\n".join([*lines[:123], "no label", *lines[123:]]) + "\n")
    return found


def model_bytes(model: Model) -> bytes:
    save(model, "model")
    return without_record("model")


def permuted(chunk: Chunk, seed: int, number: int) -> Chunk:
    rows = StoredRows()
    rows.add(chunk)
    return rows.chunk().take(np.random.default_rng([seed, number]).permutation(len(chunk)))


@pytest.mark.parametrize("order", ["once", "every"])
def test_passes_learn_the_permutations(data: Stream, order: str) -> None:
    model = train(data.chunk, "rda", order=order, passes=3, seed=8)
    by_hand = Model("rda", seed=8)
    for number in (1, 2, 3):
        rows = permuted(data.chunk, 8, number if order == "every" else 1)
        by_hand.learn(rows, again=number > 1)
    by_hand.curve = model.curve  # training adds it
    assert model_bytes(model) == model_bytes(by_hand)


def trained(order: str, passes: int = 3, **options: Any) -> tuple[bytes, Outcome]:
    cached = options.pop("cached", False)
    plan = TrainingPlan(passes, holdout_every=options.pop("every", 0))
    shuffling = make_order(order, 6)
    source = open_source(options.pop("data", "data.svm"), on_error="skip", **options)
    ways = Passes(source, 1 if shuffling.held else passes, cached=cached)
    ready = Trainer(Model("rda", seed=6), ways.first, plan, reread=ways.later, order=shuffling)
    outcome = ready.run()
    return model_bytes(ready.model), outcome


@pytest.mark.parametrize(("order", "every"), covering(SHUFFLED, [0, 7, Fraction(5, 2)]))
def test_threads_blocks_and_the_cache_change_nothing(data: Stream, order: str, every: int | Fraction) -> None:
    found = [
        trained(order, every=every, **options)
        for options in (
            *({}, {"threads": 1, "block_bytes": 900}, {"threads": 3, "block_bytes": 3000}),
            {"block_bytes": 2000, "cached": True},  # written, and read by the later passes
            {"block_bytes": 2000, "cached": True},  # read by all
        )
    ]
    assert len({model for model, _ in found}) == 1
    for _, outcome in found:  # the loss is summed chunk by chunk
        assert outcome.holdout == (pytest.approx(found[0][1].holdout) if every else None)
    assert len(list(Path("cache/data").glob("*.rows"))) == (order == "buffer:30")
    for _, outcome in found:
        assert outcome.figures["examples"] == 3 * (400 - (held_out(0, 400, every, 6).sum() if every else 0))
        assert outcome.figures["skipped"] == 1
        (bad,) = outcome.reports[0].first_bad
        assert bad.line == 124


@pytest.mark.parametrize("order", SHUFFLED)
def test_the_same_rows_are_held_out_in_every_order(data: Stream, order: str) -> None:
    """Training with a hold-out equals training on the other rows, then evaluating on the held-out ones."""
    _, plain = trained("as-is", passes=1, every=5)
    held = held_out(0, 400, 5, 6)
    shuffling = make_order(order, 6)
    rest = MemorySource(data.chunk.take(~held))
    alone = Trainer(
        Model("rda", seed=6),
        rest,
        TrainingPlan(3),
        order=shuffling,
        holdout=MemorySource(data.chunk.take(held)),
    )
    outcome = alone.run()
    model, with_holdout = trained(order, every=5)
    assert model == model_bytes(alone.model)
    assert with_holdout.holdout == outcome.holdout
    assert plain.holdout is not None
    assert outcome.holdout is not None
    assert plain.holdout["examples"] == outcome.holdout["examples"] == 80
    assert plain.holdout["loss"] != outcome.holdout["loss"]


def test_a_pipe_can_be_permuted_without_a_cache(data: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    from_file, _ = trained("every")

    class Pipe:
        closed = False
        buffer = io.BytesIO(Path("data.svm").read_bytes())

    monkeypatch.setattr("sys.stdin", Pipe())
    assert trained("every", data="-")[0] == from_file
    assert not list(Path("cache").glob("data/*.arrow"))
