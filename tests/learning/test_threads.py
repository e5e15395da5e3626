"""A model belongs to one thread at a time: calls from others are refused."""

import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from thresher.data.chunk import Chunk
from thresher.engine.atomic import whole_file
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.model.prediction import source_for

pytestmark = pytest.mark.usefixtures("plainly")
ROWS = Chunk.of_rows([(1.0, {1: 1.0}), (-1.0, {2: 1.0})])


def meanwhile(model: Model, monkeypatch: pytest.MonkeyPatch, what: Callable[[], Any]) -> list[BaseException]:
    errors: list[BaseException] = []

    def done() -> None:
        try:
            what()
        except RuntimeError as error:
            errors.append(error)

    def learn(*args: Any) -> int:
        thread = threading.Thread(target=done)
        thread.start()
        thread.join()
        return whole(*args)

    whole = model.loop.learn
    with monkeypatch.context() as patch:
        patch.setattr(model.loop, "learn", learn)
        model.learn(ROWS)
    return errors


def test_others_neither_learn_nor_save_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, alone = Model("sgd", batch=2), Model("sgd", batch=2)
    path = tmp_path / "model"
    for what in (
        lambda: model.learn(ROWS),
        model.finish,
        lambda: model_file.save(model, path),
        lambda: pickle.dumps(model),
        lambda: copy.copy(model),
    ):
        (error,) = meanwhile(model, monkeypatch, what)
        assert str(error).startswith("another thread is learning with this model")
        alone.learn(ROWS)
        assert model.state()["S"].tobytes() == alone.state()["S"].tobytes()
    assert not path.exists()
    assert meanwhile(model, monkeypatch, lambda: Model("sgd").learn(ROWS)) == []


def test_nothing_is_learned_while_a_model_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model("sgd")
    model.learn(ROWS)

    def opened(*args: Any) -> Any:
        with pytest.raises(RuntimeError, match="another thread is learning with this model or saving it"):
            model.learn(ROWS)
        return whole_file(*args)

    monkeypatch.setattr(model_file, "whole_file", opened)
    model_file.save(model, tmp_path / "model")
    assert model_file.load(tmp_path / "model")[0].examples == 2


def test_a_model_learns_again_after_an_error() -> None:
    model = Model("sgd")
    with pytest.raises(TypeError):
        model.learn(ROWS, 0, "all")
    model.learn(ROWS)
    assert model.examples == 2


def test_threads_that_read_find_the_features_of_rows_to_predict(tmp_path: Path) -> None:
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n")
    model = Model("sgd")
    model.learn(ROWS)
    source = source_for(model, tmp_path / "rows.svm", model.head.open_domain)
    assert source.finder is not None
    (chunk,) = source.chunks()
    assert source.finder(chunk).found[0] is model.index
