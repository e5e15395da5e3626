"""Tables in every format yield the same chunks, however they are read; nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.reference import Row, bits, read_all, rows_of
from tests.data.tables import WRITERS, Bad, meaning, write_csv
from thresher.data import DataError, open_source
from thresher.data.formats.tables import arrow_files as tables_module
from thresher.data.layout import Layout

quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KINDS = {
    "label": "label",
    "w": "weight",
    "x": "numeric",
    "y": "numeric",
    "city": "categorical",
    "id": "categorical",
}
LAYOUT = Layout("", weight="w", numeric=("x", "y"), categorical=("id",))

FORMATS = pytest.mark.parametrize("name", WRITERS)

texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\r\t\0", exclude_categories=["Cs"]), max_size=12
)
numbers = st.floats(-1e6, 1e6, width=32).map(lambda x: float(str(np.float32(x))))
cells = st.fixed_dictionaries(
    {
        "label": st.sampled_from([-1, 0, 1]),
        "w": st.sampled_from([0.5, 1.0, 2.0]),
        "x": st.none() | numbers,
        "y": st.none() | st.integers(-(2**40), 2**40),
        "city": st.none() | texts,
        "id": st.none() | st.integers(-(2**62), 2**62),
    }
)


def some_rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    return [
        {
            "label": int(random.choice([-1, 1])),
            "w": float(random.choice([0.5, 1.0, 3.0])),
            "x": None if random.random() < 0.2 else float(f"{random.normal():.5g}"),
            "y": None if random.random() < 0.2 else int(random.integers(-4, 5)),
            "city": str(random.choice(["Ulm", "Köln", "a b", "Bad 'X', am Y", ""])) or None,
            "id": int(random.integers(0, 50)),
        }
        for _ in range(count)
    ]


def expected(rows: list[dict[str, Any]]) -> list[Any]:
    found = [meaning(row, KINDS) for row in rows]
    return bits([row for row in found if isinstance(row, Row)])


@FORMATS
@quick
@given(rows=st.lists(cells, min_size=1, max_size=12))
def test_every_format_means_the_same(tmp_path: Path, name: str, rows: list[dict[str, Any]]) -> None:
    rows = [*some_rows(1), *({column: row[column] for column in KINDS} for row in rows)]
    path = tmp_path / name
    WRITERS[name](rows, path)
    assert rows_of(read_all(path, layout=LAYOUT)) == expected(rows)


@quick
@given(
    rows=st.lists(st.lists(texts, min_size=3, max_size=3), min_size=1, max_size=8), quote=st.integers(0, 2)
)
def test_quoted_cells(tmp_path: Path, rows: list[list[str]], quote: int) -> None:
    table = [{"label": 1, **dict(zip("abc", row, strict=True))} for row in rows]
    write_csv(table, tmp_path / "q.csv", quoting=[0, 1, 2][quote])
    chunk = read_all(tmp_path / "q.csv", layout=Layout("csv", categorical=("a", "b", "c")))
    kinds = {"label": "label", "a": "categorical", "b": "categorical", "c": "categorical"}
    assert rows_of(chunk) == bits([row for one in table if isinstance(row := meaning(one, kinds), Row)])


def with_bad(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    bad: dict[int, dict[str, Any]] = {
        3: {"label": None},
        20: {"w": -1.0},
        21: {"label": 7},
        40: {"x": 1e39},
        41: {"w": None},
    }
    return [row | bad.get(k, {}) for k, row in enumerate(rows)]


@FORMATS
def test_bad_rows_are_told_and_the_others_learned(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_module, "BATCH", 16)
    rows = with_bad(some_rows(60))
    WRITERS[name](rows, tmp_path / name)
    source = open_source(
        tmp_path / name, layout=LAYOUT, on_error=f"quarantine={tmp_path / 'bad'}", block_bytes=500
    )
    found = [row for chunk in source.chunks() for row in rows_of(chunk)]
    wrong = [(k, one.column) for k, row in enumerate(rows) if isinstance(one := meaning(row, KINDS), Bad)]
    assert [k for k, _ in wrong] == [3, 20, 21, 40, 41]
    assert found == expected(rows)
    head = name.endswith((".csv", ".tsv"))
    report = source.report
    assert (report.lines, report.examples, report.skipped, report.blank) == (60 + head, 55, 5, int(head))
    assert [one.line for one in report.first_bad] == [k + 1 + head for k, _ in wrong]
    for told, (_, column) in zip(report.first_bad, wrong, strict=True):
        assert f"in column '{column}'" in str(told)
        assert str(tmp_path / name) in str(told)
    assert (tmp_path / "bad").read_bytes().count(b"\n") == 5
    assert (tmp_path / "bad").read_bytes() == b"".join(one.raw + b"\n" for one in report.first_bad)
    with pytest.raises(DataError, match="a label in column 'label'"):
        list(open_source(tmp_path / name, layout=LAYOUT).chunks())
