"""The three calls most people need: train, load, evaluate."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from thresher.data import Chunk, DataError, MemorySource, open_source, table_source
from thresher.data.arrays import PairSource, chunk_of
from thresher.data.layout import Layout
from thresher.data.order import make_order
from thresher.learning import metrics, modelfile
from thresher.learning.head import classes_of, leaves_classes_open
from thresher.learning.model import Model
from thresher.learning.passes import Passes
from thresher.learning.readout import Readout
from thresher.learning.training import Plan, Trainer

Data = str | os.PathLike[str] | Chunk | Iterable[Any] | Any


def as_source(data: Data, domain: str, **options: Any) -> Any:
    """What `data` is, as a source; one that is a source already, unchanged.

    Paths, globs and ``-`` by `open_source`; a Chunk or Chunks; a tuple ``(X, y)`` or ``(X, y, weights)`` as
    `chunk_of` takes them; an iterable of pairs of a mapping and a label, as `PairSource` does; and what
    has ``__arrow_c_stream__`` (a table of pandas, polars, pyarrow, a result of DuckDB) as a table. `where` of
    anything but files and tables is a `DataError`.
    """
    found = _as_source(data, domain, options)
    if options.get("where") and found.where != options["where"]:
        raise DataError("rows are chosen (where) of files and tables only")
    return found


def _as_source(data: Data, domain: str, options: dict[str, Any]) -> Any:
    if hasattr(data, "__arrow_c_stream__"):
        return table_source(data, domain=domain, **options)
    if hasattr(data, "chunks"):
        return data
    if isinstance(data, Chunk):
        return MemorySource(data, domain)
    if isinstance(data, str | os.PathLike):
        return open_source(data, domain=domain, **options)
    if isinstance(data, tuple) and not isinstance(next(iter(data), ""), str | os.PathLike | Chunk | tuple):
        return MemorySource(chunk_of(*data), domain)
    rest = iter(data)
    first = next(rest, None)
    again = chain([first], rest) if rest is data else data
    if isinstance(first, tuple):
        return PairSource(again, domain)
    items = list(again)
    if items and isinstance(items[0], Chunk):
        return MemorySource(items, domain)
    return open_source(items, domain=domain, **options)


def train(
    data: Data,
    rule: Any = "ftrl",
    loss: Any = "logistic",
    *,
    rate: Any = None,
    outputs: str | None = None,
    batch: int = 1,
    average: bool = False,
    scale: str | None = None,
    admit: str | int | None = None,
    passes: int = 1,
    order: str = "as-is",
    store: str = "growing",
    intercept: bool = True,
    dtype: str = "float32",
    seed: int = 0,
    holdout: Data | None = None,
    holdout_every: int = 0,
    patience: int = 0,
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: Layout | None = None,
    where: str = "",
) -> Model:
    """Train a model on `data`, one pass or more.

    `data` is a path, a glob, ``-``, a list of them, a Chunk, Chunks, ``(X, y)``, ``(X, y, weights)``,
    pairs of a mapping and a label, or an Arrow table: see `as_source`. `holdout` is data to evaluate on after
    each pass; `holdout_every` holds out every N-th example instead; `patience` stops after so many passes
    that were no better, and the model is then that of the best. `order`
    is ``as-is``, ``once`` or ``every`` (one permutation for all passes, or one each; all rows are then
    held in memory), or ``buffer:N``, by chance from `seed`; hold-out rows are chosen before it. Later
    passes read a binary `cache` of the first, and so does the next run over the same content. `layout` says
    how files and tables are read; by default the endings of names and the types of columns do; `where`, which
    rows of `data` are, of Parquet, Arrow and tables: ``"day < 20 and city in ('Ulm', 'Kiel')"``. The other
    arguments are those of `Model` (`scale` and `admit` count in the first pass only) and `open_source`.
    Raises `SpecError`, `DataError`, `DivergedError`.
    """
    if leaves_classes_open(loss, outputs):
        outputs = classes_of(as_source(data, "whole", threads=threads, layout=layout, where=where))
    kind: dict[str, Any] = {"outputs": outputs or "one", "batch": batch, "average": average, "store": store}
    kind |= {"scale": scale, "admit": admit}
    model = Model(rule, loss, rate=rate, **kind, intercept=intercept, dtype=dtype, seed=seed)
    domain = model.head.domain
    source = as_source(data, domain, on_error=on_error, threads=threads, layout=layout, where=where)
    held = None if holdout is None else as_source(holdout, domain, threads=threads, layout=source.layout)
    plan = Plan(passes, None, holdout_every=holdout_every, patience=patience)
    shuffling = make_order(order, seed)
    model.layout = source.layout
    passes_of = Passes(source, shuffling.reads(passes), cached=cache and hasattr(source, "identity"))
    Trainer(model, passes_of.first, plan, reread=passes_of.later, order=shuffling, holdout=held).run()
    return model


def load(path: str | Path) -> Readout:
    """The weights of a saved model, ready to predict."""
    return modelfile.load_readout(path)[0]


def evaluate(model: Model | Readout | str | Path, data: Data, **options: Any) -> dict[str, Any]:
    """``examples loss error auc`` (regression: ``examples loss rmse``) of a model on data."""
    ready = load(model) if isinstance(model, str | Path) else model
    options.setdefault("layout", ready.layout)
    return metrics.evaluate(ready, as_source(data, ready.head.domain, **options)).figures()
