"""What columns do to the margin, against NumPy on the whole data, and the rows that are drawn for it."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import thresher
from tests.plain import not_compiled
from thresher.data.chunk import Chunk
from thresher.learning.inspection.effects import ROWS, VALUES, DrawnRows, effects_of
from thresher.learning.model.prediction import source_for

N = 300
pytestmark = pytest.mark.filterwarnings("ignore::thresher.learning.diagnostics.findings.TroubleWarning")
KINDS: dict[str, Any] = {
    "label": "y",
    "numeric": "euros,cents,far,rare",
    "categorical": "town",
    "text": "note",
}


def rows_of(seed: int) -> list[dict[str, str]]:
    """Numbers of any size, far from 0, missing and rare; categories; words that come together."""
    chance, found = np.random.default_rng(seed), list[dict[str, str]]()
    for k in range(N):
        euros, town = chance.normal(40000, 9000), ["Ulm", "Bonn", "a=b"][int(chance.integers(3))]
        words = ["red car"] * int(chance.integers(3)) + ["blue"] * int(chance.integers(2))
        score = (euros - 40000) / 9000 + (town == "Ulm") + len(words) - 1 + chance.normal()
        found.append(
            {
                "y": str(int(score > 0)),
                "euros": f"{euros:.0f}",
                "cents": f"{100 * euros:.0f}",
                "far": "" if k % 7 == 0 else f"{1e5 + chance.normal():.4f}",
                "rare": f"{1e3 * chance.normal():.3f}" if k % 50 == 0 else "0",
                "town": town,
                "note": " ".join(words),
            }
        )
    return found


def as_csv(rows: list[dict[str, str]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def oracle(model: thresher.Model, rows: list[dict[str, str]], centred: bool) -> dict[str, float]:
    """The deviation of the contribution of each column, of the weights by name and the text of the data."""
    weights = dict(
        zip(*(model.weights_frame()[name].tolist() for name in ("feature", "weight")), strict=True)
    )
    found = dict[str, float]()
    for column in rows[0].keys() - {"y"}:
        cells = [row[column] for row in rows]
        if column == "town":
            each = [weights.get(f"town={cell}", 0.0) for cell in cells]
        elif column == "note":
            each = [sum(weights.get(f"note={word}", 0.0) for word in cell.split()) for cell in cells]
        else:
            numbers = np.array([float(cell or "nan") for cell in cells])
            middle = np.nanmean(numbers) if centred else 0.0
            each = (weights.get(column, 0.0) * np.nan_to_num(numbers - middle)).tolist()
        found[column] = float(np.std(each))
    return found


@pytest.mark.parametrize(
    "options", [{}, {"rule": "sgd", "rate": "constant:1e-12"}, {"rule": "ftrl", "scale": "standard"}]
)
def test_effects_of_columns_are_those_of_all_rows(tmp_path: Path, options: dict[str, Any]) -> None:
    rows = rows_of(1)
    (tmp_path / "t.csv").write_text(as_csv(rows))
    with not_compiled():
        model = thresher.train(tmp_path / "t.csv", **KINDS, **options, names=True)
    expected = oracle(model, rows, "rule" not in options or "scale" in options)
    assert model.record is not None
    found = dict(model.record.effects)
    if "scale" in options:  # the weight of a scaled column is that of a deviation
        divisors = model.predictor().divisors
        assert divisors is not None
        names = thresher.data.features.names.numeric_keys(model.layout)
        for key, by in zip(divisors.keys.tolist(), divisors.by.tolist(), strict=True):
            expected[names[key]] /= by
    assert found == pytest.approx({name: found_ for name, found_ in expected.items() if found_}, rel=1e-4)
    assert [*found.values()] == sorted(found.values(), reverse=True)


def test_products_namespaces_and_several_outputs(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    draws = zip(
        chance.integers(2, size=80), chance.integers(3, size=80), chance.normal(size=(80, 2)), strict=True
    )
    lines = [f"{1 + k % 3} |a {a} |b {b}:{x:.3f} | bare:{y:.3f}" for k, (a, b, (x, y)) in enumerate(draws)]
    (tmp_path / "t.vw").write_text("\n".join(lines))
    with not_compiled():
        options: dict[str, Any] = {
            "rule": "sgd",
            "outputs": "classes:1-3",
            "loss": "softmax",
            "interact": "a,b",
        }
        model = thresher.train(tmp_path / "t.vw", names=True, **options)
        chunk = next(iter(source_for(model, tmp_path / "t.vw", model.head.domain).chunks()))
        weights = model.weights_frame()
        assert model.record is not None
        found = dict(model.record.effects)
        assert {*found} == {"a", "b", "", "a × b"}
        for group, effect in found.items():
            own = [n for n in weights["feature"].unique() if _group(n) == group]
            keys = np.unique(weights["key"][weights["feature"].isin(own)]).astype(np.uint64)
            there = np.isin(chunk.keys, keys)
            ends = np.concatenate([[0], np.cumsum(there)])[chunk.indptr]
            alone = replace(chunk, indptr=ends, keys=chunk.keys[there], values=chunk.values[there])
            margins = model.predict(alone) - np.asarray(model.intercept)
            assert effect == pytest.approx(np.sqrt(margins.var(axis=0).mean()), rel=1e-5, abs=1e-9)


def _group(name: str) -> str:
    parts = [part.partition("=")[0] if "=" in part else "" for part in name.split(" × ")]
    return " × ".join(parts)


def chunk_of(sizes: list[int]) -> Chunk:
    ends = np.cumsum([0, *sizes])
    keys = np.concatenate([np.arange(size, dtype=np.uint64) for size in [*sizes, 0]])
    return Chunk.from_csr(ends, keys, np.arange(ends[-1]) % 1000 + 1.0, np.zeros(len(sizes)))


@pytest.mark.parametrize("most", [3, 80])
def test_which_rows_are_drawn_does_not_depend_on_cuts(most: int) -> None:
    chance = np.random.default_rng(most)
    rows = chunk_of(chance.integers(0, most, 2 * ROWS + 7).tolist())
    drawn = list[DrawnRows]()
    for most_at_once in (1 << 20, 700):
        own, at = DrawnRows(), 0
        while at < len(rows):
            size = int(chance.integers(1, most_at_once + 1))
            own.add(rows.rows(at, at + size), at)
            at += size
            if chance.random() < 0.3:
                own = DrawnRows.of(own.tensors())
        drawn.append(own)
    first, second = (one.tensors() for one in drawn)
    for name, array in first.items():
        assert_allclose(array, second[name], 0, 0)
    found = drawn[0].rows
    assert len(found) == ROWS if most == 3 else VALUES - most < found.nnz <= VALUES
    # of the numbers of rows, which a value tells where rows are short, as many are in each half
    mean = found.nnz / len(found)
    assert abs(mean - (most - 1) / 2) < 5 * most / np.sqrt(12 * len(found))


def test_too_few_rows_have_no_effects() -> None:
    drawn = DrawnRows()
    drawn.add(chunk_of([2]), 0)
    with not_compiled():
        model = thresher.train([{"a=x": 1.0}] * 9, [1.0, 0.0, 1.0] * 3, names=True)
        assert effects_of(model, drawn) == ()
        assert effects_of(model, DrawnRows()) == ()
