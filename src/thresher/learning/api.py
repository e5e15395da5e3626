"""What calls of the package take: data, options; load, evaluate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

from thresher.data import Chunk, DataError, MemorySource, open_source, table_source
from thresher.data.arrays import PairSource, chunk_of
from thresher.data.labels import Domain
from thresher.data.layout import AnyLayout
from thresher.learning import modelfile
from thresher.learning.assessment import assess
from thresher.learning.checks import check_whole
from thresher.learning.head import classes_of, leaves_classes_open
from thresher.learning.model import Model, as_model
from thresher.learning.readout import Readout
from thresher.learning.recipe import Recipe
from thresher.learning.shares import Every, every_of
from thresher.learning.training import Plan
from thresher.learning.words import meant

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
        check_whole("threads", threads, 1, 1024)
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


def check_names(function: Callable[..., Any], options: Iterable[str]) -> None:
    """TypeError for a name that is no option, with the one that may have been meant."""
    own = [name for name in signature(function).parameters if name != "options"]
    for name in options:
        if name not in (known := [*dict.fromkeys([*own, *Recipe.names()])]):
            near = meant(name, known)
            hint = f"; did you mean {' or '.join(near)}?" if near else f"; it has {', '.join(known)}"
            raise TypeError(f"{function.__name__} has no option {name}{hint}")


def held_apart(holdout: Any, holdout_every: int | None, default: int = 0) -> tuple[Every, Data | None]:
    """What is held out: every N-th example (0: none), and data of their own or None. ValueError.

    `holdout` may be a share of the examples; `default` holds where nothing is said.
    """
    every = every_of(holdout)
    if every is None:
        unsaid = default if holdout is None else 0
        return unsaid if holdout_every is None else holdout_every, holdout
    if holdout_every:
        raise ValueError(f"holdout={holdout!r} and holdout_every={holdout_every!r}: give one of them")
    return every, None


def planned(
    passes: int, patience: int, holdout: Any = None, holdout_every: int | None = None, default: int = 0
) -> tuple[Plan, Data | None]:
    """The plan, and data of their own to evaluate on. ValueError for patience with nothing to judge by."""
    every, given = held_apart(holdout, holdout_every, default)
    plan = Plan(passes, None, holdout_every=every, patience=patience)
    if patience and not plan.judges(given):
        raise ValueError("patience needs examples that are held out: give holdout or holdout_every")
    return plan, given


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


def _ready(model: Any) -> Model | Readout:
    """A model itself, or that of a file or an estimator."""
    return as_model(load(os.fspath(model)) if isinstance(model, str | os.PathLike) else model)


def readout_of(model: Any) -> Readout:
    """The weights of a model itself, or that of a file or an estimator. As `load`; TypeError for others."""
    ready = _ready(model)
    return ready.readout() if isinstance(ready, Model) else ready


def evaluate(model: Any, data: Data, *, threshold: float | None = None, **options: Any) -> dict[str, Any]:
    """What a model is worth on data: the figures of ``thresher evaluate --json``, see docs/evaluate.md.

    `model` is a Model, a Readout, the path of a saved one, or a fitted estimator. The positive class is
    predicted above `threshold`: a probability (0.5 if none is given), or a margin (0) where the loss gives no
    probabilities. `options` are those of `open_source`. Raises `ModelFileError`, `DataError`, ValueError for
    wrong options, TypeError for what is no model.
    """
    ready = _ready(model)
    options.setdefault("layout", ready.layout)
    return assess(ready, as_source(data, ready.head.domain, **options), threshold)
