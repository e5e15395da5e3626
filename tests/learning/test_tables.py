"""One table in every format: one model, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import thresher
from tests.data.tables import WRITERS, Streamed, as_table, write_svmlight
from tests.data.test_tables import KINDS, LAYOUT, some_rows
from thresher.data.layout import Layout

SVMLIGHT = Layout("svmlight")


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


def test_every_format_has_the_same_columns_to_scale(tmp_path: Path) -> None:
    rows, found = some_rows(200), set()
    for name, write in WRITERS.items():
        write(rows, tmp_path / name)
        found.add(weights_of(tmp_path / name, LAYOUT, scale="standard", admit=2))
    found.add(weights_of(Streamed(as_table(rows)), LAYOUT, scale="standard", admit=2))
    assert len(found) == 1
    assert found != {weights_of(Streamed(as_table(rows)), LAYOUT, admit=2)}
