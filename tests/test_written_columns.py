"""Centred and scaled columns as docs/features.md defines them: `sgd`, computed from the page alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thresher

COLUMNS = {"a": (0.0, 0.2), "b": (0.03, 0.0), "c": (0.04, 0.3), "d": (0.12, 0.1), "e": (0.5, 0.0)}
"""The share of zeros, and that of missing cells"""
RATE = 0.001
Row = dict[str, float | None]


def rounded(x: float) -> float:
    return float(np.float32(x))


def table(rows: int) -> tuple[list[Row], list[float]]:
    rng = np.random.default_rng(3)

    def cell(zeros: float, missing: float) -> float | None:
        if rng.random() < missing:
            return None
        return 0.0 if rng.random() < zeros else rounded(rng.normal() + 5)

    found: list[Row] = [{name: cell(*shares) for name, shares in COLUMNS.items()} for _ in range(rows)]
    return found, [rounded(y) for y in rng.normal(size=rows)]


class Column:
    """What is known of a column."""

    def __init__(self, centred: bool, scale: str | None) -> None:
        self.centred, self.scale, self.cells, self.zeros, self.mean = centred, scale, 0, 0, 0.0
        self.seen: list[float] = []
        self.by = 1.0

    def of(self, x: float | None) -> float:
        """What the rule sees of the next cell."""
        v = 0.0
        if x is not None:
            v = x
            self.cells += 1
            self.zeros += x == 0
            self.mean += (x - self.mean) / self.cells
            if x == 0 and self.cells <= 100 and self.zeros > max(2, self.cells / 10):
                self.centred = False
            if self.centred:
                v = rounded(x - self.mean)
        self.seen.append(v)
        if self.scale == "standard":
            self.by = float(np.std(self.seen)) or abs(v) or 1.0
        elif self.scale:
            self.by = max(map(abs, self.seen)) or 1.0
        return rounded(v / self.by)


def learned(rows: list[dict[str, float]], labels: list[float]) -> tuple[dict[str, float], float]:
    """Weights and intercept of `sgd` with a constant rate and the squared loss."""
    w, b = dict.fromkeys(rows[0], 0.0), 0.0
    for x, y in zip(rows, labels, strict=True):
        slope = 2 * (sum(w[j] * x[j] for j in x) + b - y)
        w = {j: w[j] - RATE * slope * x[j] for j in x}
        b -= RATE * slope
    return w, b


def trained(file: Path, **options: Any) -> thresher.Model:
    options |= {"rate": f"constant:{RATE}", "dtype": "float64", "passes": 1}
    return thresher.train(file, rule="sgd", loss="squared", **options)


@pytest.mark.parametrize("scale", [None, "standard", "max-abs"])
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.filterwarnings("ignore:the progressive loss")
def test_columns_of_a_table(centre: bool, scale: str | None, tmp_path: Path, plainly: None) -> None:
    rows, labels = table(160)
    lines = [
        f"{y!r}," + ",".join("" if x is None else repr(x) for x in row.values())
        for row, y in zip(rows, labels, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join([f"label,{','.join(COLUMNS)}", *lines, ""]))
    model = trained(tmp_path / "t.csv", centre=centre, scale=scale, numeric=[*COLUMNS])
    columns = {name: Column(centre, scale) for name in COLUMNS}
    w, b = learned([{name: column.of(row[name]) for name, column in columns.items()} for row in rows], labels)
    found = model.weights_frame().set_index("feature")["weight"].to_dict()
    assert found == pytest.approx({name: weight for name, weight in w.items() if weight}, rel=1e-12)
    assert {name for name, one in columns.items() if one.centred} == ({"a", "b", "c"} if centre else set())
    b -= sum(w[name] * one.mean / one.by for name, one in columns.items() if one.centred)
    assert model.intercept == pytest.approx(b, rel=1e-11)


def test_products_in_data_without_columns_are_centred(tmp_path: Path, plainly: None) -> None:
    rows = [{"1": rounded(x), "2": rounded(z)} for x, z in np.random.default_rng(1).normal(5, 1, (40, 2))]
    labels = [float(k % 2) for k in range(len(rows))]
    text = [f"{y:g} 1:{x['1']!r} 2:{x['2']!r}\n" for x, y in zip(rows, labels, strict=True)]
    (tmp_path / "t.svm").write_text("".join(text))
    model = trained(tmp_path / "t.svm", centre=True, interact=["*,*"])
    pairs = (("1", "1"), ("1", "2"), ("2", "2"))
    wide = [row | {f"{j} × {k}": rounded(row[j] * row[k]) for j, k in pairs} for row in rows]
    columns = {name: Column(True, None) for name in wide[0]}
    w, _ = learned([{name: column.of(row[name]) for name, column in columns.items()} for row in wide], labels)
    assert sorted(model.weights()[1].tolist()) == pytest.approx(sorted(w.values()), rel=1e-12)
