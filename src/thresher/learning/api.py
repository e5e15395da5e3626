"""What calls of the package take: data, options; load, evaluate."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

from thresher.data import Chunk, DataError, MemorySource, open_source, table_source
from thresher.data.arrays import PairSource, chunk_of
from thresher.data.files.paths import reads_once
from thresher.data.first_look import classes_among
from thresher.data.labels import Domain, domain_of, numbers_of, texts_of
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.learning import modelfile
from thresher.learning.assessment import assess
from thresher.learning.checks import check_whole
from thresher.learning.classes import look
from thresher.learning.model import Model, as_model
from thresher.learning.readout import Readout
from thresher.learning.recipe import Recipe
from thresher.learning.training import Plan

CAPSULE = "__arrow_c_stream__"
"""What tables have."""
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
    _check_layout(options.get("layout"))
    threads = options.get("threads")
    if threads is not None:
        check_whole("threads", threads, 1)
    found = _as_source(data, domain, options)
    if options.get("where") and found.where != options["where"]:
        raise DataError("rows are chosen (where) of files and tables only")
    return found


def _is_memory(data: Any) -> bool:
    """Whether it is ``(X, y)``."""
    return isinstance(data, tuple) and not isinstance(next(iter(data), ""), str | os.PathLike | Chunk | tuple)


def _check_layout(layout: Any) -> None:
    if not isinstance(layout, AnyLayout | None):
        raise ValueError(f"layout must be a thresher.data.layout.Layout, not {layout!r}")


def _as_source(data: Data, domain: str | Domain, options: dict[str, Any]) -> Any:
    if hasattr(data, CAPSULE):
        return table_source(data, domain=domain, **options)
    if hasattr(data, "chunks"):
        return data
    if isinstance(data, Chunk):
        return MemorySource(data, domain)
    if isinstance(data, str | os.PathLike):
        return open_source(data, domain=domain, **options)
    if isinstance(data, tuple) and _is_memory(data):
        if len(data) not in (2, 3) or data[1] is None:
            raise DataError("a tuple of examples in memory is (X, y) or (X, y, weights), with labels y")
        return _in_memory(*data, domain=domain, layout=options.get("layout"))
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


def _in_memory(
    X: Any, y: Any, weights: Any = None, *, domain: str | Domain, layout: AnyLayout | None
) -> MemorySource:
    """Examples in memory, whose labels may be the words of the layout."""
    words = layout.classes if layout else ()
    source = MemorySource(chunk_of(X, numbers_of(y, domain_of(domain).of_words(words)), weights), domain)
    if words:
        source.layout = SettledLayout(classes=words)
    return source


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


def classes_in(
    data: Any, loss: Any, outputs: str | None, on_error: str, read: Mapping[str, Any]
) -> tuple[Any, str, dict[str, Any]]:
    """Loss, outputs, how to `read`: with classes that are left open found in `data`.

    ValueError where they do not fit; `DataError`.
    """
    _check_layout(read["layout"])
    lenient = "fail" if on_error == "fail" else "skip"
    worded = _may_have_words(data)

    def opened(layout: Any, domain: Any) -> Any:
        options = {**read, "layout": layout} | ({"on_error": lenient} if worded else {})
        return as_source(data, domain, **options)

    once = isinstance(data, Iterator) or (worded and not hasattr(data, CAPSULE) and reads_once(data))
    layout = read["layout"]
    texts = texts_of(data[1]) if _is_memory(data) and len(data) > 1 else None
    if texts and not (layout and layout.classes):
        classes = classes_among(Counter(texts), "memory")
        layout = replace(layout or SettledLayout(), classes=classes) if classes else layout
    found = look(None if once else opened, layout, loss, outputs, words=worded)
    return found.loss, found.outputs, {**read, "layout": found.layout}


def _may_have_words(data: Data) -> bool:
    """Whether `data` are files or a table, whose labels may be words."""
    if hasattr(data, CAPSULE) or isinstance(data, str | os.PathLike):
        return True
    return isinstance(data, list | tuple) and all(isinstance(one, str | os.PathLike) for one in data)


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
