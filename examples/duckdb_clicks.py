"""Clicks from a database: DuckDB joins Parquet files, and the model learns from the stream of rows.

Run it: ``python examples/duckdb_clicks.py`` (needs the package duckdb).

There is one Parquet file of ad views for each of seven days, and one file of ads. A query joins them,
computes the features and leaves out the last day; its result is never stored. Each pass runs the query
again, so it has an ``order by``: the same rows in the same order give the same model.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import thresher
from thresher.data.layout import Layout

DAYS, VIEWS, USERS, ADS, CAMPAIGNS = 7, 6000, 400, 60, 12
QUERY = """
    select clicked as label, hour, ln(price) as price, 'user ' || viewer as viewer, campaign
    from read_parquet('{folder}/views-*.parquet') join '{folder}/ads.parquet' using (ad)
    where day {days} order by view
"""
LAYOUT = Layout(categorical=("hour",))
RULE = "ftrl:alpha=0.3,l1=2"


def write(folder: Path, seed: int = 0) -> None:
    """Write the tables: few viewers click often, some campaigns do better, high prices get fewer clicks."""
    random = np.random.default_rng(seed)
    campaign, price = random.integers(0, CAMPAIGNS, ADS), np.exp(random.normal(2, 1, ADS))
    ads = {"ad": np.arange(ADS), "campaign": [f"campaign {c}" for c in campaign], "price": price}
    pq.write_table(pa.table(ads), folder / "ads.parquet")
    keen = np.where(random.random(USERS) < 0.1, 2.5, 0)
    liked = random.normal(0, 1, CAMPAIGNS)
    for day in range(DAYS):
        viewer, ad = random.integers(0, USERS, VIEWS), random.integers(0, ADS, VIEWS)
        margin = -0.5 + keen[viewer] + liked[campaign[ad]] - 0.5 * np.log(price[ad])
        views = {
            "view": day * VIEWS + np.arange(VIEWS),
            "day": np.full(VIEWS, day),
            "hour": random.integers(0, 24, VIEWS),
            "viewer": viewer,
            "ad": ad,
            "clicked": (random.random(VIEWS) < 1 / (1 + np.exp(-margin))).astype(int),
        }
        pq.write_table(pa.table(views), folder / f"views-{day}.parquet")


def rows(folder: Path, days: str) -> Any:
    """Return the rows of some days as a relation, which has ``__arrow_c_stream__``."""
    return duckdb.sql(QUERY.format(folder=folder, days=days))


def main() -> None:
    """Train on six days in three passes, and evaluate on the seventh."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        model = thresher.train(rows(folder, "< 6"), RULE, passes=3, layout=LAYOUT)
        figures = thresher.evaluate(model, rows(folder, "= 6"))
    print(f"learned from {model.examples // 3:,} views; {model.nonzero} weights")
    print(f"the next day, {figures['examples']:,} views: AUC {figures['auc']:.3f}")


if __name__ == "__main__":
    main()
