"""The three calls most people need: train, load, evaluate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

from thresher.data import Chunk, DataError, MemorySource, open_source, table_source
from thresher.data.arrays import PairSource, chunk_of
from thresher.data.labels import Domain
from thresher.data.layout import AnyLayout
from thresher.data.order import make_order
from thresher.learning import metrics, modelfile
from thresher.learning.checks import check_whole
from thresher.learning.head import classes_of, leaves_classes_open
from thresher.learning.model import Model
from thresher.learning.passes import Passes
from thresher.learning.readout import Readout
from thresher.learning.recipe import Recipe, Spec
from thresher.learning.training import Plan, Trainer
from thresher.learning.warmstart import check_data, layout_from, start_from

Data = str | os.PathLike[str] | Chunk | Iterable[Any] | Any
_NOTHING = object()
_KINDS = "a path, paths, a Chunk, Chunks, (X, y), pairs of a mapping and a label, or a table"


def as_source(data: Data, domain: str | Domain, **options: Any) -> Any:
    """What `data` is, as a source; one that is a source already, unchanged.

    Paths, globs and ``-`` by `open_source`; a Chunk or Chunks; a tuple ``(X, y)`` or ``(X, y, weights)`` as
    `chunk_of` takes them; an iterable of pairs of a mapping and a label, as `PairSource` does; and what
    has ``__arrow_c_stream__`` (a table of pandas, polars, pyarrow, a result of DuckDB) as a table. Anything
    else, and `where` of anything but files and tables, is a `DataError`; ValueError for wrong options.
    """
    layout, threads = options.get("layout"), options.get("threads")
    if not isinstance(layout, AnyLayout | None):
        raise ValueError(f"layout must be a thresher.data.layout.Layout, not {layout!r}")
    if threads is not None:
        check_whole("threads", threads, 1)
    found = _as_source(data, domain, options)
    if options.get("where") and found.where != options["where"]:
        raise DataError("rows are chosen (where) of files and tables only")
    return found


def _as_source(data: Data, domain: str | Domain, options: dict[str, Any]) -> Any:
    if hasattr(data, "__arrow_c_stream__"):
        return table_source(data, domain=domain, **options)
    if hasattr(data, "chunks"):
        return data
    if isinstance(data, Chunk):
        return MemorySource(data, domain)
    if isinstance(data, str | os.PathLike):
        return open_source(data, domain=domain, **options)
    if isinstance(data, tuple) and not isinstance(next(iter(data), ""), str | os.PathLike | Chunk | tuple):
        if len(data) not in (2, 3) or data[1] is None:
            raise DataError("a tuple of examples in memory is (X, y) or (X, y, weights), with labels y")
        return MemorySource(chunk_of(*data), domain)
    if isinstance(data, bytes | Mapping) or hasattr(data, "read") or not hasattr(data, "__iter__"):
        raise DataError(f"data must be {_KINDS}, not {type(data).__name__}")
    rest = iter(data)
    first = next(rest, _NOTHING)
    again = chain([first], rest) if rest is data else data
    if isinstance(first, tuple):
        return PairSource(again, domain)
    items = [] if first is _NOTHING else _all_alike(first, again)
    if isinstance(first, Chunk):
        return MemorySource(items, domain)
    return open_source(items, domain=domain, **options)


def _all_alike(first: Any, items: Iterable[Any]) -> list[Any]:
    """All of `items`, Chunks or paths as the first is. `DataError` at the first that is something else."""
    kind, name = (Chunk, "a Chunk") if isinstance(first, Chunk) else (str | os.PathLike, "a path")
    found: list[Any] = []
    for item in items:
        if not isinstance(item, kind):
            wanted = name if found else _KINDS
            raise DataError(f"item {len(found) + 1} of data is {type(item).__name__}: expected {wanted}")
        found.append(item)
    return found


def train(
    data: Data,
    rule: Recipe | Spec = "ft-ftrl",
    loss: Spec | None = None,
    *,
    outputs: str | None = None,
    passes: int = 1,
    order: str = "as-is",
    holdout: Data | None = None,
    holdout_every: int = 0,
    patience: int = 0,
    on_error: str = "fail",
    threads: int | None = None,
    cache: bool = True,
    layout: AnyLayout | None = None,
    where: str = "",
    init: Model | Readout | str | Path | None = None,
    **options: Any,
) -> Model:
    """Train a model on `data`, one pass or more.

    `rule`, `loss`, `outputs` and whatever else is given by name (``l1=1.0``, ``batch=10``, ``average=True``,
    ``seed=1`` ...) say what the model is: see `Recipe`, which may be given in place of the rule. Outputs that
    are left open are found in the data.

    `data` is a path, a glob, ``-``, a list of them, a Chunk, Chunks, ``(X, y)``, ``(X, y, weights)``,
    pairs of a mapping and a label, or an Arrow table: see `as_source`. `holdout` is data to evaluate on after
    each pass; `holdout_every` holds out every N-th example instead; `patience` stops after so many passes
    that were no better, and the model is then that of the best. `order`
    is ``as-is``, ``once`` or ``every`` (one permutation for all passes, or one each; all rows are then
    held in memory), or ``buffer:N``, by chance from `seed`; hold-out rows are chosen before it. Later
    passes read a binary `cache` of the first, and so does the next run over the same content. `layout` says
    how files and tables are read; by default the endings of names and the types of columns do; `where`, which
    rows of `data` are, of Parquet, Arrow and tables: ``"day < 20 and city in ('Ulm', 'Kiel')"``; `on_error`
    and `threads` are those of `open_source`. `init` is a model, or the file of one, with whose weights to
    begin, whatever its rule: see `start_from`; files and tables are then read as its were, but for what
    `layout` says, and have its features. `scale` and `admit` count in the first pass only.
    Raises `SpecError`, `DataError` (ValueErrors both), ValueError for other arguments, `DivergedError`.
    """
    plan = planned(passes, patience, holdout_every, holdout is not None)
    check_names(train, options)
    begun = None if init is None else _readout(init)
    if isinstance(rule, Recipe):
        layout = layout or rule.layout
    layout = layout if begun is None else layout_from(begun, layout)
    read: dict[str, Any] = {"threads": threads, "layout": layout, "where": where}
    model = Model(replace(_recipe(rule, loss, outputs, options, data, read), layout=None))
    if begun is not None:
        start_from(model, begun)
    domain = model.head.domain
    source = as_source(data, domain, on_error=on_error, **read)
    if begun is not None:
        check_data(begun, source.layout)
    held, shuffling = held_of(holdout, domain, source, threads), make_order(str(order), model.recipe.seed)
    model.layout = source.layout
    passes_of = Passes(source, shuffling.reads(passes), cached=cache and hasattr(source, "identity"))
    Trainer(model, passes_of.first, plan, reread=passes_of.later, order=shuffling, holdout=held).run()
    return model


def _recipe(
    rule: Recipe | Spec, loss: Spec | None, outputs: str | None, options: Any, data: Data, read: Any
) -> Recipe:
    """What is said of a model. ValueError for what is said beside a recipe and would be dropped."""
    if not isinstance(rule, Recipe):
        loss = Recipe.loss if loss is None else loss
        return Recipe(rule, loss, outputs=outputs_of(loss, outputs, data, **read), **options)
    if loss is not None or outputs is not None:
        raise ValueError("a recipe says its loss and outputs: change them in it, by dataclasses.replace")
    return replace(rule, **options)


def check_names(function: Callable[..., Any], options: Iterable[str]) -> None:
    """TypeError for a name that is no option, with the one that may have been meant."""
    own = [name for name in signature(function).parameters if name != "options"]
    for name in options:
        if name not in (known := [*dict.fromkeys([*own, *Recipe.names()])]):
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known)}"
            raise TypeError(f"{function.__name__} has no option {name}{hint}")


def planned(passes: int, patience: int, holdout_every: int, given: bool) -> Plan:
    """The plan; ValueError for patience with nothing to judge by."""
    plan = Plan(passes, None, holdout_every=holdout_every, patience=patience)
    if patience and not (given or holdout_every):
        raise ValueError("patience needs examples that are held out: give holdout or holdout_every")
    return plan


def held_of(holdout: Data | None, domain: str | Domain, source: Any, threads: int | None) -> Any:
    """The source of what is held out, which lines set aside may not overwrite; None for none."""
    if holdout is None:
        return None
    held = as_source(holdout, domain, threads=threads, layout=source.layout)
    if hasattr(source, "on_error"):
        source.on_error.check_spares(held.names)
    return held


def outputs_of(loss: Any, outputs: str | None, data: Data, **options: Any) -> str:
    """SPEC, with classes that are left open found in `data`; `DataError` if to read would use it up."""
    if not leaves_classes_open(loss, outputs):
        return outputs or "one"
    if isinstance(data, Iterator):
        raise DataError("data that can be read only once: name their classes, outputs='classes:LO-HI'")
    return classes_of(as_source(data, "whole", **options))


def load(path: str | Path) -> Readout:
    """The weights of a saved model, ready to predict. `ModelFileError`; TypeError for what is no path."""
    return modelfile.load_readout(os.fspath(path))[0]


def check_model(given: Any) -> None:
    """TypeError unless `given` is a Model or a Readout."""
    if not isinstance(given, Model | Readout):
        raise TypeError(f"expected a Model or a Readout, not {type(given).__name__}")


def _ready(model: Model | Readout | str | Path) -> Model | Readout:
    """A model itself, or that of a file."""
    ready = load(model) if isinstance(model, str | os.PathLike) else model
    check_model(ready)
    return ready


def _readout(model: Model | Readout | str | Path) -> Readout:
    ready = _ready(model)
    return ready.readout() if isinstance(ready, Model) else ready


def evaluate(model: Model | Readout | str | Path, data: Data, **options: Any) -> dict[str, Any]:
    """``examples loss error auc`` (regression: ``examples loss rmse``) of a model on data.

    `options` are those of `open_source`. Raises `ModelFileError`, `DataError`, ValueError for wrong options,
    TypeError for what is neither a model nor the path of one.
    """
    ready = _ready(model)
    options.setdefault("layout", ready.layout)
    return metrics.evaluate(ready, as_source(data, ready.head.domain, **options)).figures()
