"""NaN and infinity are bad rows in every format; digits that float32 does not have."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import thresher
from tests.covering import covering
from tests.data.reference import rows_of
from tests.data.tables import WRITERS
from thresher.data import DataError
from thresher.data.chunk import concat
from thresher.data.inputs.any_data import as_source
from thresher.data.layout import Layout
from thresher.data.text.numbers import read_double
from thresher.data.text.words import address
from thresher.engine.centring import rest_of
from thresher.engine.compile.jit import kernel
from thresher.serving.bodies import Bodies

GOOD = [1.5, 2.0, 0.1, 7.0] * 30
KINDS = ("numeric", "bins", "categorical", "text")
FORMS = [*WRITERS, "blank.jsonl", "pandas", "pandas category", "polars", "pyarrow", "rows"]
# no other test compiles texts in TSV
TRIED = {"pandas category": KINDS[2:], "data.tsv": KINDS[:3]}


def rows_with(odd: float | None) -> list[dict[str, Any]]:
    """Rows with numbers in column c; the fourth has this one."""
    cells = [*GOOD[:3], odd, *GOOD[3:]]
    return [{"label": k % 2, "d": "x", "c": cell} for k, cell in enumerate(cells)]


def given_as(form: str, odd: float | None, folder: Path) -> Any:
    rows = rows_with(odd)
    if form in WRITERS:
        WRITERS[form](rows, folder / form)
        return str(folder / form)
    if form == "blank.jsonl":  # which is read line by line
        lines = "\n".join(map(json.dumps, rows)) + "\n\n"
        (folder / form).write_text(lines)
        return str(folder / form)
    if form == "pandas category":
        return pd.DataFrame(rows).astype({"c": "category"})
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table.from_pylist, "rows": list}[
        form
    ](rows)


def read(data: Any, layout: Any, **options: Any) -> Any:
    source = as_source(data, "binary", layout=layout, **options)
    return rows_of(concat([*source.chunks()])), source


@pytest.mark.parametrize(
    ("form", "odd"), [*((form, math.nan) for form in FORMS), *covering(FORMS, [math.inf, -math.inf])]
)
def test_one_rule_for_all_formats(form: str, odd: float, tmp_path: Path) -> None:
    for kind in TRIED.get(form, KINDS):
        layout = Layout("", label="label", **{kind: ("c",)})  # type: ignore[arg-type]
        missing, source = read(given_as(form, None, tmp_path), layout)
        rows = given_as(form, odd, tmp_path)
        if math.isnan(odd) and form in ("pandas", "pandas category", "rows"):
            assert read(rows, layout)[0] == missing
            continue
        without = missing[:3] + missing[4:]
        found, read_by = read(rows, layout, on_error="skip")
        assert found == without
        assert read_by.report.skipped == 1
        new, read_by = read(rows, source.layout, on_error="skip", unlabelled=True)
        assert [row[2:] for row in new] == [row[2:] for row in without]
        with pytest.raises(DataError, match=r"finite number.* in column 'c', found"):
            read(rows, layout)


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_too(kind: str, tmp_path: Path) -> None:
    options: Any = {kind: "c", "rule": "sgd", "passes": 1}
    bodies = Bodies(thresher.train(rows_with(None), label="label", **options), 10)
    for number in ("NaN", "Infinity", "-Infinity"):
        rows = bodies.read(b'{"c": %s}\n{"c": 1.5}' % number.encode(), "application/json", labelled=False)
        assert [one.line for one in rows.bad] == [1]
        assert rows.good == 1
    for number in ("1e400", "9" * 500):  # a category or a text as it is written, but no number
        rows = bodies.read(b'{"c": %s}\n{"c": 1.5}' % number.encode(), "application/json", labelled=False)
        assert rows.good == 2 - (kind in ("numeric", "bins"))
    rows = bodies.read(b"c,d\nnan,x\n1.5,x\n,x\n", "text/csv", labelled=False)
    assert [one.line for one in rows.bad] == [2]
    assert rows.good == 2


@pytest.mark.parametrize(("form", "remedy"), [("data.jsonl", "write null"), ("data.csv", "--missing nan")])
def test_the_remedy_works(form: str, remedy: str, tmp_path: Path) -> None:
    layout, data = Layout("", label="label", categorical=("c",)), given_as(form, math.nan, tmp_path)
    with pytest.raises(DataError, match=remedy):
        read(data, layout)
    if form == "data.csv":
        missing = Layout("", label="label", categorical=("c",), missing=("nan",))
        assert read(data, missing)[0] == read(given_as(form, None, tmp_path), layout)[0]


@pytest.mark.parametrize("form", ["data.csv", "data.jsonl", "data.parquet", "pandas", "polars"])
def test_nan_is_a_word_among_words(form: str, tmp_path: Path) -> None:
    rows = [{"label": k % 2, "d": "x", "c": ("Ulm", "nan", "inf")[k % 3]} for k in range(30)]
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
    data: Any = frame[form](rows) if form in frame else str(tmp_path / form)
    if form not in frame:
        WRITERS[form](rows, tmp_path / form)
    found, _ = read(data, Layout("", label="label", categorical=("c",)))
    assert len({tuple(row[2]) for row in found}) == 3


@pytest.mark.parametrize("given", [{}, {"numeric": "a"}, {"categorical": "a"}], ids=str)
def test_nan_is_bad_in_a_column_of_json_that_has_nothing_else(given: Any, tmp_path: Path) -> None:
    for other in ("NaN", "null"):
        lines = [f'{{"label":{k % 2},"b":{k % 3},"a":{other if k % 2 else "NaN"}}}\n' for k in range(100)]
        (tmp_path / "a.jsonl").write_text("".join(lines))
        with pytest.raises(DataError, match=r"a\.jsonl:1:.* in column 'a', found '?NaN"):
            thresher.train(tmp_path / "a.jsonl", **given)
    thresher.train(tmp_path / "a.jsonl", ignore="a")


@kernel
def _doubles(text: Any, starts: Any, out: Any) -> None:
    at: Any = address(text)
    for k in range(starts.size):
        out[k] = read_double(at, starts[k])


def test_decimals_become_the_nearest_float64() -> None:
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.normal(size=400) * 10.0 ** rng.integers(1, 21, 400), 2.0 ** np.arange(70)])
    words = [*map(repr, numbers.tolist()), *(f"{x:.18e}" for x in numbers), *(f"{x:+.4f}" for x in numbers)]
    words += [str(2**53 + 1), str(2**63 - 1), "1600000000123456789", "-16e8", "1.6e+09", "0012345678.90"]
    words = [word for word in words if sum(map(str.isdigit, word.partition("e")[0].lstrip("+-0"))) <= 19]
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    text = np.frombuffer(" ".join(words).encode() + b" " * 80, np.uint8).copy()
    found = np.empty(len(words))
    _doubles(text, starts[:-1], found)
    np.testing.assert_array_equal(found, [float(word) for word in words])


@pytest.mark.parametrize(
    ("number", "rest"), [(2.0**24 + 1, 1.0), (65536.0, 0.0), (0.1, 0.0), (-1.6e9 - 3, -3.0), (1e300, 0.0)]
)
def test_a_rest_is_what_float32_loses_of_a_large_number(number: float, rest: float) -> None:
    with np.errstate(over="ignore"):
        assert rest_of(number, np.float32(number)) == rest
