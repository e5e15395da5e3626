"""Real clicks: one model from every format, and the hashed rows that Vowpal Wabbit made of them."""

from pathlib import Path

import pytest

from benchmarks.formats import hashed, models
from benchmarks.twins import WRITERS, rows_of
from thresher import TroubleWarning
from thresher.data.formats.choosing import format_of
from thresher.data.formats.listing import TABLES

DATA = Path(__file__).parents[2] / "examples" / "data"
RAW, HASHED = DATA / "criteo_first200.txt.gz", DATA / "criteo_hashed200.svm.gz"


def test_clicks_in_every_format_give_one_model(tmp_path: Path) -> None:
    with pytest.warns(TroubleWarning, match="features of very different scale"):
        found = models(rows_of(RAW), tmp_path)
    assert set(TABLES) <= {format_of([name]) for name in WRITERS}
    (header, tensors), *others = found.values()
    assert header["examples"] == 2 * 200
    assert header["nonzero"] > 10
    assert set(tensors) > {"weights.keys", "weights.values"}
    for name, other in zip(list(found)[1:], others, strict=True):
        assert other == (header, tensors), name


def test_names_hashed_as_vowpal_wabbit_does(tmp_path: Path) -> None:
    """If two names in a row share an index, thresher adds their values; that file has 1."""
    found = hashed(RAW, HASHED, 200, tmp_path)
    assert found.same
    assert (found.rows, found.others) == (200, 0)
    assert found.features > 6000
    assert found.doubled <= 1
