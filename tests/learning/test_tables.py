"""One table in every format: one model, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.commands import own_cache
from tests.data.tables import WRITERS, Streamed, as_table, write_parquet, write_svmlight
from tests.data.test_tables import KINDS, LAYOUT, as_svmlight, some_lists, some_rows, some_values
from thresher import Model
from thresher.data import DataError, open_source
from thresher.data.formats.tables import arrow_files as tables_module
from thresher.data.layout import Layout
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.training.passes import Passes
from thresher.learning.training.trainer import Trainer, TrainingPlan

pytestmark = pytest.mark.usefixtures("plainly")

SVMLIGHT = Layout("svmlight", label_weights=True)


def weights_of(data: Any, layout: Layout, **options: Any) -> tuple[bytes, bytes, bytes]:
    model = thresher.train(data, rule="ftrl:alpha=0.5,l1=0.1", layout=layout, passes=2, **options)
    keys, weights = model.weights()
    return keys.tobytes(), weights.tobytes(), np.float64(model.intercept).tobytes()


def test_every_format_gives_one_model(tmp_path: Path) -> None:
    rows = some_rows(400)
    write_svmlight(rows, tmp_path / "data.svm", KINDS)
    expected = weights_of(tmp_path / "data.svm", SVMLIGHT)
    assert len(expected[0]) > 8 * 40
    for name, write in WRITERS.items():
        write(rows, tmp_path / name)
        assert weights_of(tmp_path / name, LAYOUT) == expected, name
    assert weights_of(Streamed(as_table(rows)), LAYOUT) == expected


def test_a_filter_stays_when_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "BATCH", 30)
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(own_cache(tmp_path)))
    data, kept = tmp_path / "data.parquet", tmp_path / "checkpoint"
    write_parquet(some_rows(400), data)

    def trainer(where: str, first: int | None = None) -> Trainer:
        loaded = checkpoint.load(kept) if first is None else None
        plan = TrainingPlan(2, 0, checkpoint=kept, checkpoint_every=first or 0)
        passes = Passes(open_source(data, layout=LAYOUT, where=where), 2, cached=False)
        model = loaded[0] if loaded else Model("ftrl:l1=0.1")
        made = Trainer(model, passes.first, plan, reread=passes.later)
        if loaded:
            with model_file.naming_file(kept):
                made.continue_from(loaded[1])
        return made

    whole = trainer("y >= 0", 70)
    examples = whole.run().figures["examples"]
    assert 200 < examples < 700
    rest = trainer("y >= 0")
    assert rest.state.position.place is not None
    assert rest.run().figures["examples"] == examples
    assert np.array_equal(rest.model.weights()[1], whole.model.weights()[1])
    with pytest.raises(ModelFileError, match='made with where="y >= 0"'):
        trainer("")


def test_a_filter_of_what_has_no_columns_is_refused() -> None:
    with pytest.raises(DataError, match="where works only with files and tables"):
        thresher.train(([{"a": 1.0}], [1]), where="a = 1")
    table = as_table(some_rows(50))
    model = thresher.train(table, layout=LAYOUT, where="y > 0", passes=1)
    assert model.examples == thresher.evaluate(model, table, where="y > 0")["examples"] < 50
    assert thresher.evaluate(model, table)["examples"] == 50


def test_several_labels_give_the_model_of_lists_in_text(tmp_path: Path) -> None:
    def weights(data: Any, layout: Layout, outputs: str, loss: str) -> bytes:
        model = thresher.train(data, rule="ftrl:l1=0.1", outputs=outputs, loss=loss, layout=layout)
        return b"".join(array.tobytes() for array in model.weights())

    values, lists = some_values(200), some_lists(200)
    (tmp_path / "a.svm").write_text(as_svmlight(values, "b", "c", "a"))
    wanted = weights(tmp_path / "a.svm", SVMLIGHT, "values:3", "squared")
    for name, write in WRITERS.items():
        write(values, tmp_path / name)
        found = weights(tmp_path / name, Layout(label="b,c,a"), "values:3", "squared")
        assert found == wanted, name
    (tmp_path / "a.svm").write_text(as_svmlight(lists))
    write_parquet(lists, tmp_path / "a.parquet")
    wanted = weights(tmp_path / "a.svm", SVMLIGHT, "labels:3-7", "logistic")
    assert weights(tmp_path / "a.parquet", Layout(), "labels:3-7", "logistic") == wanted


def test_every_format_has_the_same_columns_to_scale(tmp_path: Path) -> None:
    rows, found = some_rows(200), set()
    for name, write in WRITERS.items():
        write(rows, tmp_path / name)
        found.add(weights_of(tmp_path / name, LAYOUT, scale="standard", admit=2))
    found.add(weights_of(Streamed(as_table(rows)), LAYOUT, scale="standard", admit=2))
    assert len(found) == 1
    assert found != {weights_of(Streamed(as_table(rows)), LAYOUT, admit=2)}
