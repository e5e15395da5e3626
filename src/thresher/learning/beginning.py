"""The first steps of every training function: find the classes, make the recipe, open the source."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from thresher import parts
from thresher.data import DataError
from thresher.data.files.paths import reads_once
from thresher.data.first_look import classes_among
from thresher.data.given_labels import texts_of
from thresher.data.labels import Domain
from thresher.data.layout import AnyLayout, Layout
from thresher.data.sources.pieces import current_readers
from thresher.learning.checks import MOST_SEED, check_whole
from thresher.learning.classes import look
from thresher.learning.given import Data, as_source, check_layout, is_bare, is_table, labels_beside
from thresher.learning.keywords import layout_given, parted
from thresher.learning.recipe import Recipe, Spec, with_gaps


def opened(data: Data, domain: str | Domain, **read: Any) -> Any:
    """The source for a new model. As `as_source`; `DataError` if a layout is given for data without one."""
    source = as_source(data, domain, **read)
    layout: AnyLayout | None = read.get("layout")
    if not is_bare(layout) and is_bare(source.layout):
        raise DataError("a layout is for files and tables, not for matrices, Chunks and pairs")
    if current_readers() is not None and getattr(source, "readers", None) is None:
        raise DataError("--workers and --ray are for files; these data are in memory")
    return source


def labels_or_part(data: Any, y: Any, kind: str, given: Any, default: Any) -> tuple[Any, Any]:
    """Split `y` into labels and a part of this kind, which may be given in place of labels.

    TypeError for two parts, and for the name of a column of a table.
    """
    if not isinstance(y, str | Recipe) and type(y) not in parts.REGISTRY[kind].values():
        return y, given
    if isinstance(y, str) and y in _column_names(data) and y.partition(":")[0] not in parts.REGISTRY[kind]:
        raise TypeError(f"{y!r} is a column of the data: did you mean label={y!r}?")
    if given != default:
        raise TypeError(f"two {'losses' if kind == 'loss' else 'rules'} are given, {y!r} and {given!r}")
    return None, y


def _column_names(data: Any) -> list[str]:
    """The names of the columns of a table of pandas, polars or pyarrow."""
    found = getattr(data, "column_names", getattr(data, "columns", ()))
    return [name for name in found if isinstance(name, str)] if isinstance(found, Iterable) else []


def prepared_for_lanes(
    data: Data,
    rule: Spec,
    loss: Spec | None,
    outputs: str | None,
    options: Mapping[str, Any],
    *,
    on_error: str,
    threads: int | None,
    layout: AnyLayout | None,
    where: str,
    marked: str = "",
) -> tuple[Recipe, Any]:
    """What `prepared` returns, with `options` of layout and model together; the recipe has the layout."""
    of_layout, of_model = parted(options)
    read = {"threads": threads, "layout": layout_given(layout, of_layout), "where": where}
    read["marked"] = marked
    base, source = prepared(data, rule, loss, outputs, of_model, on_error, read)
    return replace(base, layout=source.layout), source


def prepared(
    data: Data,
    rule: Spec,
    loss: Spec | None,
    outputs: str | None,
    of_model: Mapping[str, Any],
    on_error: str,
    read: Mapping[str, Any],
) -> tuple[Recipe, Any]:
    """The recipe and the source. Classes that the options leave open are found in `data`."""
    check_whole("seed", of_model.get("seed", 0), 0, MOST_SEED)
    loss, outputs, found = classes_in(data, loss, outputs, on_error, read)
    recipe = Recipe(rule, loss, outputs=outputs, **of_model)
    found = found | {"layout": with_gaps(found["layout"], recipe.centre)}
    return recipe, opened(data, recipe.head().domain, on_error=on_error, **found)


def classes_in(
    data: Any, loss: Any, outputs: str | None, on_error: str, read: Mapping[str, Any]
) -> tuple[Any, str, dict[str, Any]]:
    """Loss, outputs and reading options, with classes that the options leave open found in `data`.

    ValueError if the classes do not fit the options; `DataError`.
    """
    layout = read["layout"]
    check_layout(layout)
    lenient = "fail" if on_error == "fail" else "skip"
    files = are_files(data)
    worded = files or is_table(data, layout)

    def opener(layout: Any, domain: Any) -> Any:
        options = {**read, "layout": layout} | ({"on_error": lenient} if worded else {})
        return as_source(data, domain, **options)

    once = isinstance(data, Iterator) or (files and reads_once(data))
    beside = labels_beside(data)
    texts = None if beside is None else texts_of(beside)
    if texts and not (layout and layout.classes):
        classes = classes_among(Counter(texts), "memory")
        layout = replace(layout or Layout(), classes=classes) if classes else layout
    found = look(None if once else opener, layout, loss, outputs, words=worded)
    return found.loss, found.outputs, {**read, "layout": found.layout}


def are_files(data: Any) -> bool:
    """Whether `data` consist of paths."""
    if isinstance(data, list | tuple):
        return all(isinstance(one, str | os.PathLike) for one in data)
    return isinstance(data, str | os.PathLike)
