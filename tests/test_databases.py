"""Query results as data: DuckDB on Parquet files, and ADBC."""

import runpy
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from adbc_driver_sqlite import dbapi

import thresher
from examples import duckdb_clicks as clicks
from thresher import Model
from thresher.data import DataError

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("clicks")
    clicks.write(place)
    return place


def weights(model: Model) -> tuple[bytes, bytes, float]:
    keys, values = model.weights()
    return keys.tobytes(), values.tobytes(), float(model.intercept)


def test_the_rows_of_a_query_are_those_of_its_result_in_a_file(folder: Path, tmp_path: Path) -> None:
    days = clicks.rows(folder, "< 2")
    days.write_parquet(str(tmp_path / "days.parquet"))
    query = thresher.train(days, clicks.RULE, passes=2, layout=clicks.LAYOUT)
    stored = thresher.train(tmp_path / "days.parquet", clicks.RULE, passes=2, layout=clicks.LAYOUT)
    assert query.examples == 4 * clicks.VIEWS
    assert weights(query) == weights(stored)
    late = thresher.train(clicks.rows(folder, "< 2"), clicks.RULE, layout=clicks.LAYOUT, where="hour >= 12")
    assert 0.4 < late.examples / (2 * clicks.VIEWS) < 0.6
    assert weights(late) != weights(stored)


def test_what_the_example_learns(folder: Path) -> None:
    model = thresher.train(clicks.rows(folder, "< 6"), clicks.RULE, passes=3, layout=clicks.LAYOUT)
    figures = thresher.evaluate(model, clicks.rows(folder, "= 6"))
    with pytest.warns(thresher.TroubleWarning, match="no feature has a weight"):
        nothing = thresher.train(clicks.rows(folder, "< 6"), "ftrl:l1=1e9", layout=clicks.LAYOUT)
    assert thresher.evaluate(nothing, clicks.rows(folder, "= 6"))["auc"] == 0.5
    assert figures["auc"] > 0.75
    assert model.nonzero < clicks.USERS + clicks.CAMPAIGNS + 24


def test_a_query_that_gives_other_rows_the_second_time_is_an_error() -> None:
    connection = duckdb.connect()
    connection.execute("create table t as select 1 as label, 'a' as c from range(50)")

    class Growing:
        def __arrow_c_stream__(self, schema: object = None) -> object:
            connection.execute("insert into t values (0, 'b')")
            return connection.sql("select * from t").__arrow_c_stream__(schema)

    with pytest.raises(DataError, match=r"the table: changed since it was first read \(from 52 rows to 53\)"):
        thresher.train(Growing(), passes=2)
    connection.close()


def test_it_prints_what_its_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "duckdb_clicks.py"), run_name="__main__")
    page = (ROOT / "docs/formats/databases.md").read_text(encoding="utf-8")
    assert f"$ python examples/duckdb_clicks.py\n{capsys.readouterr().out}" in page


def test_adbc(tmp_path: Path) -> None:
    with dbapi.connect(str(tmp_path / "a.db")) as connection, connection.cursor() as cursor:
        random = np.random.default_rng(0)
        cities = [["Ulm", "Kiel", "Bonn"][k] for k in random.integers(0, 3, 500)]
        table = pa.table({"label": [int(c == "Ulm") for c in cities], "city": cities, "n": range(500)})
        cursor.adbc_ingest("visits", table)
        cursor.execute("select label, city from visits where n < 400 order by n")
        model = thresher.train(cursor.fetch_record_batch(), "ftrl:alpha=1")
        same = thresher.train(table.slice(0, 400).select(["label", "city"]), "ftrl:alpha=1")
        assert weights(model) == weights(same)
        cursor.execute("select label, city from visits where n >= 400")
        assert thresher.evaluate(model, cursor.fetch_record_batch())["error"] == 0
        cursor.execute("select label, city from visits")
        with pytest.raises(DataError, match="once"):
            thresher.train(cursor.fetch_record_batch(), passes=2)
