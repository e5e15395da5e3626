"""Models as queries predict what Python does."""

import math
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import thresher
from thresher.data.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::thresher.TroubleWarning")
WORDS = ["Oslo", "St. John's", 'say "hi"', "a\\b", "--", "Zürich", "x'); DROP TABLE rows; --", "*/", "😀"]
ROWS = 400


def table(path: Path, rows: int, seed: int) -> Path:
    """A table of numbers, some missing and some large, and of categories with odd names."""
    chance = np.random.default_rng(seed)
    lines = ['label,age,"od""d, name",city,n']
    for _ in range(rows):
        age = "" if chance.random() < 0.1 else f"{chance.normal(40, 12):.4f}"
        city = WORDS[chance.integers(len(WORDS))].replace('"', '""')
        label = "it's" if chance.random() < 0.5 else "no"
        lines.append(f'{label},{age},{chance.normal(1e6, 1e5):.3f},"{city}",{chance.integers(5)}')
    path.write_text("\n".join(lines) + "\n")
    return path


def answers(query: str, path: Path) -> dict[str, Any]:
    with duckdb.connect() as base:
        base.execute(f"CREATE TABLE rows AS SELECT * FROM read_csv('{path}', quote='\"', escape='\"')")
        found: dict[str, Any] = base.execute(query).fetchnumpy()
        return found


def within(found: Any, expected: Any, ulps: int = 2) -> bool:
    """SQL adds up in another order: compared with the largest of the numbers."""
    return bool((abs(found - expected) <= ulps * np.spacing(np.maximum(abs(expected), 1))).all())


@pytest.mark.parametrize(
    "options",
    [{"scale": "standard"}, {"loss": "softmax", "rule": "sgd", "scale": "max-abs", "models": 3}],
    ids=str,
)
def test_a_query_over_a_table(tmp_path: Path, options: dict[str, Any]) -> None:
    data, new = table(tmp_path / "d.csv", 300, 1), table(tmp_path / "new.csv", ROWS, 2)
    train: Any = thresher.ensemble if "models" in options else thresher.train
    model = train(data, categorical="city,n", passes=1, **options)
    for one in getattr(model, "models", [model]):
        thresher.name_features(one, data)
    found = answers(str(thresher.export(model, "sql")), new)
    for what, output in (("margin", "margin"), ("prediction", "probability")):
        expected = model.predict(new, output).reshape(ROWS, -1)
        names = [name for name in found if name.startswith(f"thresher_{what}")]
        assert len(names) == expected.shape[1]
        assert all(within(found[name], expected[:, k]) for k, name in enumerate(names))
    assert [*found["thresher_label"]] == [*model.predict(new, "label")]


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        ("{y},{k},a{y}", {}, "categories have no names"),
        ("{y},{k},a{y}", {"bins": "x"}, "column 'x' is bins"),
        ("{y},{k},a{y}", {"interact": "x,c"}, "SQL cannot express products"),
        ("{y},{k},a{y}", {"bits": 20, "centre": False}, "categories share weights"),
        ("{y},{k},a{y}", {"store": "hashed:9"}, "categories share weights"),
        ("{y},{k},a{y} b", {"text": "c"}, "column 'c' is text"),
        ("{y},{k},a{y}\\xff", {"names": True}, "column 'c': SQL cannot write the category"),
    ],
)
def test_what_sql_cannot_say(tmp_path: Path, line: str, options: dict[str, Any], said: str) -> None:
    data, path = tmp_path / "d.csv", tmp_path / "model.sql"
    lines = ["label,x,c"] + [line.format(y=k % 2, k=k % 7) for k in range(60)]
    data.write_bytes("\n".join(lines).replace("\\xff", "\xff").encode("latin-1") + b"\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = thresher.train(data, passes=1, **options)
    with pytest.raises(DataError, match=said):
        thresher.export(model, "sql", path)
    assert not path.exists()


ODD_NAMES = (
    *("thresher_margin", "THRESHER_Prediction", "thresher_label", "thresher_margin_1", "thresher_input"),
    *("category", "weight_0", "select", "a.b", 'x"y', "a;b--", " lead", "1"),
)


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_column_may_have_any_name(tmp_path: Path, name: str, database: str, plainly: None) -> None:
    """Also one of those that the query gives to its results."""
    quoted = '"' + name.replace('"', '""') + '"'
    rows = [(f"{k % 7}.5", "abc"[k % 3]) for k in range(60)]
    lines = (f"{'no' if k % 7 < 3 + k % 2 else 'yes'},{x},{c}" for k, (x, c) in enumerate(rows))
    (tmp_path / "d.csv").write_text("\n".join([f"label,{quoted},c", *lines]) + "\n")
    model = thresher.train(tmp_path / "d.csv", passes=1, names=True, rule="ftrl:l1=0", scale="standard")
    assert model.nonzero == 4
    base: Any = duckdb.connect() if database == "duckdb" else sqlite3.connect(":memory:")
    base.execute(f"CREATE TABLE rows ({quoted} DOUBLE, c VARCHAR)")
    base.executemany(f"INSERT INTO rows ({quoted}, c) VALUES (?, ?)", rows)
    query = str(thresher.export(model, "sql"))
    found = base.execute(
        f"SELECT thresher_margin, thresher_prediction, thresher_label FROM ({query})"
    ).fetchall()
    base.close()
    margins, predictions, labels = zip(*found, strict=True)
    np.testing.assert_allclose(margins, model.predict(tmp_path / "d.csv"), rtol=1e-5)  # SQLite has no float32
    np.testing.assert_allclose(predictions, model.predict(tmp_path / "d.csv", "probability"), rtol=1e-5)
    assert [*labels] == [*model.predict(tmp_path / "d.csv", "label")]


def test_missing_numbers(tmp_path: Path, plainly: None) -> None:
    """NaN, and a number that stands for a missing one; infinity is none."""
    lines = (f"{k % 2},{-999 if k % 9 == 0 else k % 7 + k % 2}" for k in range(60))
    (tmp_path / "d.csv").write_text("\n".join(["label,x", *lines]) + "\n")
    model = thresher.train(tmp_path / "d.csv", passes=1, missing="-999")
    assert model.nonzero == 1
    with duckdb.connect() as base:
        base.execute("CREATE TABLE rows (x DOUBLE)")
        base.executemany("INSERT INTO rows VALUES (?)", [[math.nan], [None], [-999.0], [math.inf], [2.0]])
        found = base.execute(str(thresher.export(model, "sql"))).fetchnumpy()["thresher_margin"].tolist()
    *missing, infinite, two = found
    (tmp_path / "new.csv").write_text('x\n""\n2\n')
    absent, expected = model.predict(tmp_path / "new.csv")
    assert missing == [absent] * 3
    assert np.isinf(infinite)
    assert within(two, expected)


@pytest.mark.parametrize(
    ("head", "label", "said"),
    [
        ("label,x,X", "{k}", "columns 'x' and 'X' differ in case only"),
        ("Label,label,x", "{k}", "columns 'Label' and 'label' differ in case only"),
        ("label,x,", "{k}", "a column has an empty name"),
        ("label,x,z", "{c}", "outputs 'B' and 'b' differ in case only"),
    ],
)
def test_names_alike_to_a_database(tmp_path: Path, head: str, label: str, said: str, plainly: None) -> None:
    lines = (label.format(k=k % 2, c="bBc"[k % 3]) + f",{k % 5},{k % 7}" for k in range(60))
    (tmp_path / "d.csv").write_bytes("\n".join([head, *lines]).encode("latin-1") + b"\n")
    model = thresher.train(tmp_path / "d.csv", passes=1, label=head.split(",")[0], numeric="2-3")
    with pytest.raises(DataError, match=said):
        thresher.export(model, "sql")


def test_a_name_that_no_query_can_hold(tmp_path: Path, plainly: None) -> None:
    (tmp_path / "d.jsonl").write_text(
        r'{"label":1,"a\u0000b":2}{"label":0,"a\u0000b":1}'.replace("}", "}\n") * 30
    )
    with pytest.raises(DataError, match="columns: SQL cannot write the name"):
        thresher.export(thresher.train(tmp_path / "d.jsonl", passes=1), "sql")


def test_ids_have_no_columns(tmp_path: Path) -> None:
    (tmp_path / "d.svm").write_text("1 1:1\n-1 2:1\n" * 20)
    with pytest.raises(DataError, match="no columns, which SQL needs"):
        thresher.export(thresher.train(tmp_path / "d.svm", passes=1), "sql")


CASTS = {
    "DOUBLE": (["1", "2.5", "10000000000000000", "0.00001", "-300"], "number"),
    "FLOAT": (["1", "2.5", "100"], "number"),
    "DECIMAL(9, 3)": (["1", "2.5", "100", "0.125"], "number"),
    "TIMESTAMP": (["2020-01-01 10:00:00", "2020-01-02 00:00:00", "2020-01-02 00:00:00.5"], "date"),
    "DATE": (["2020-01-01", "2020-01-02"], "date"),
    "BOOLEAN": (["true", "false"], "boolean"),
    "VARCHAR": (["2020-01-01 10:00:00", "2020-01-02", "2020-01-03T10:00:00+01:00"], "date"),
    "VARCHAR ": (["TRUE", "False"], "boolean"),
    "VARCHAR  ": (["1.50", "2.50", "100"], "number"),
    "INTEGER": (["1", "20", "300"], "number"),
}


@pytest.mark.parametrize("kind", CASTS)
def test_a_category_is_known_whatever_its_type_in_the_table(kind: str, tmp_path: Path, plainly: None) -> None:
    values, how = CASTS[kind]
    lines = [f"{k % len(values) + k % 7},{values[k % len(values)]}" for k in range(120)]
    (tmp_path / "d.csv").write_text("\n".join(["label,c", *lines]) + "\n")
    model = thresher.train(tmp_path / "d.csv", passes=1, categorical="c", names=True, loss="squared")
    assert model.recipe.layout.spelling[1] == how
    (tmp_path / "new.csv").write_text("\n".join(["c", *values]) + "\n")
    expected = model.predict(tmp_path / "new.csv")
    assert len({*expected.tolist()}) == len(values)
    with duckdb.connect() as base:
        base.execute(f"CREATE TABLE rows (n INTEGER, c {kind})")
        base.executemany("INSERT INTO rows VALUES (?, ?)", [*enumerate(values)])
        query = f"SELECT thresher_margin FROM ({thresher.export(model, 'sql')!s}) ORDER BY n"
        found = base.execute(query).fetchnumpy()["thresher_margin"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
