"""What is said if a model is measured on rows that it has learned."""

import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher
from tests.plain import not_compiled
from thresher import Chunk, TroubleWarning
from thresher.learning.diagnostics.row_sample import FIRST, LOWEST, RowSample

pytestmark = pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
HEAD = "label,size,shop,price"


@pytest.fixture(autouse=True)
def plainly() -> Iterator[None]:
    with not_compiled():
        yield


def lines(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [f"{rng.randrange(2)},{rng.random():.4f},{rng.choice('abc')},{k}" for k in range(count)]


def write(name: str, rows: list[str]) -> str:
    Path(name).write_text("\n".join([HEAD, *rows, ""]))
    return name


def warned(model: Any, data: Any) -> str:
    """The warning of `thresher.evaluate`."""
    with pytest.warns(TroubleWarning, match=r"\[learned-rows\]") as found:
        thresher.evaluate(model, data)
    (one,) = [str(each.message) for each in found if "learned-rows" in str(each.message)]
    return one


def caught(model: Any, data: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        thresher.evaluate(model, data)
    return [str(one.message) for one in found]


TRAINED: dict[str, Callable[[list[str]], Any]] = {
    "one file": lambda rows: thresher.train(write("a.csv", rows), passes=1),
    "held out": lambda rows: thresher.train(write("a.csv", rows), holdout=0.2, passes=1),
    "shuffled": lambda rows: thresher.train(write("a.csv", rows), order="once", passes=2),
    "a frontier": lambda rows: thresher.path(write("a.csv", rows), l1=[0.1, 1.0], passes=1),
    "an ensemble": lambda rows: thresher.ensemble(write("a.csv", rows), models=2, passes=1),
}


@pytest.mark.parametrize("how", TRAINED)
@pytest.mark.usefixtures("in_folder")
def test_the_data_again_their_beginning_and_a_part(how: str) -> None:
    rows = lines(600)
    model = TRAINED[how](rows)
    assert warned(model, "a.csv").endswith("such as holdout=0.1 [learned-rows]")
    assert warned(model, write("part.csv", rows[200:400]))
    if how != "shuffled":
        assert warned(model, write("first.csv", [*rows[:20], *lines(600, 3)])).startswith(
            "the model has learned the first of these rows, so"
        )
    assert "some " in warned(model, write("mixed.csv", [*rows[300:], *lines(300, 1)]))
    assert "learned-rows" not in "".join(caught(model, write("new.csv", lines(600, 2))))


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("in_folder")
def test_one_of_several_files_and_what_went_on(tmp_path: Path) -> None:
    files = [write(f"{name}.csv", lines(300, seed)) for seed, name in enumerate("abc")]
    model = thresher.train(files[:2], passes=1)
    assert warned(model, "b.csv")
    assert "learned-rows" not in "".join(caught(model, "c.csv"))
    thresher.save(model, tmp_path / "m")
    model = thresher.train("c.csv", continue_from=tmp_path / "m", passes=1)
    thresher.save(model, tmp_path / "m")
    for name in files:
        assert warned(tmp_path / "m", name)
    with pytest.warns(TroubleWarning, match="learned-before"):
        thresher.train("a.csv", continue_from=tmp_path / "m", passes=1)
    page = tmp_path / "r.html"
    with pytest.warns(TroubleWarning, match="learned-rows"):
        thresher.report(tmp_path / "m", "b.csv", page)
    assert "The model has learned these rows" in page.read_text()


@pytest.mark.usefixtures("in_folder")
def test_rows_that_are_alike_are_no_sign() -> None:
    def few(seed: int) -> str:
        rng = random.Random(seed)
        return write(f"{seed}.csv", [f"{rng.randrange(2)},{rng.randrange(9)},a,1" for _ in range(500)])

    model = thresher.train(few(1), passes=1)
    again = Path(few(1)).read_text().splitlines()[1:]
    assert "learned-rows" not in "".join(caught(model, few(2)) + caught(model, write("part.csv", again[9:])))
    assert warned(model, "1.csv")  # they begin with the same 16


def chunk(count: int, width: int, seed: int = 0) -> Chunk:
    rng = np.random.default_rng(seed)
    keys = [rng.choice(1000, width, replace=False) for _ in range(count)]
    rows = [(float(k % 2), dict.fromkeys(map(int, own), 1.0)) for k, own in enumerate(keys)]
    return Chunk.of_rows(rows)


@pytest.mark.parametrize("width", [3, 20])
def test_a_sample_is_of_the_rows_however_they_are_cut(width: int) -> None:
    rows = chunk(2000, width)
    whole, cut = RowSample().with_rows(rows), RowSample()
    for lo in range(0, 2000, 37):
        cut = cut.with_rows(rows.rows(lo, lo + 37))
    turned = RowSample().with_rows(rows.take(np.arange(2000)[::-1]))
    assert whole == cut
    assert whole.lowest == turned.lowest
    assert (len(whole.first), len(whole.lowest)) == (FIRST, LOWEST)
    halves = [RowSample().with_rows(rows.rows(*ends)) for ends in ((0, 1000), (1000, 2000))]
    assert halves[0].and_of(halves[1]).lowest == whole.lowest
    assert halves[0].share_in(whole) == halves[1].share_in(whole) == 1
    assert whole.share_in(halves[1]) == pytest.approx(0.5, abs=0.2)
    assert halves[0].share_in(halves[1]) == 0 == RowSample().share_in(whole) == whole.share_in(RowSample())


def test_chance_and_values_that_change_places() -> None:
    rows = [(1.0, {1: float(a), 2: float(b)}) for a in range(30) for b in range(a)]
    swapped = [(1.0, {1: row[2], 2: row[1]}) for _, row in rows]
    one, other = (RowSample().with_rows(Chunk.of_rows(each)) for each in (rows, swapped))
    assert one.share_in(other) == 0
