"""Layouts from options: how data are read, as the user says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from thresher.data.columns import EMPTY, FEATURES, for_new_data
from thresher.data.errors import DataError, OneLineError
from thresher.data.feature_specs import as_list
from thresher.data.layout import AnyLayout, Layout, SettledLayout
from thresher.options.data import LayoutOptions
from thresher.options.messages import mention
from thresher.options.option import Options, UsageError, given_in


@contextmanager
def of_options() -> Iterator[None]:
    """Within this block, a ValueError that is not about data is about options: `UsageError`."""
    try:
        yield
    except ValueError as error:
        if type(error) not in (ValueError, OneLineError):
            raise
        raise UsageError(str(error)) from error


def layout_asked(options: Options) -> AnyLayout | None:
    """The given layout, or one made of the given fields; None if neither is given. `UsageError`."""
    layout, given = options.get("layout"), given_in(options, LayoutOptions)
    if not isinstance(layout, AnyLayout | None):
        raise UsageError(f"layout must be a thresher.data.layout.Layout, not {layout!r}")
    if given and layout is not None:
        raise UsageError(f"{next(iter(given))} is a field of the layout: set it there, or leave out layout")
    with of_layouts():
        return Layout(**given) if given else layout


@contextmanager
def of_layouts() -> Iterator[None]:
    """Within this block, a `DataError` is about options for reading: `UsageError`."""
    try:
        yield
    except UsageError:
        raise
    except DataError as error:
        raise UsageError(str(error)) from error


def layout_like(trained: SettledLayout | None, options: Options) -> AnyLayout | None:
    """The layout of the training data of a model, changed by the given options. `UsageError`."""
    found = layout_asked(options)
    if found is None or trained is None or options.get("layout") is not None:
        return found or trained
    given = given_in(options, LayoutOptions)
    names, kinds = given.pop("ignore", ()), dict(zip(trained.columns, trained.kinds, strict=True))
    if needed := [name for name in names if kinds.get(name) in FEATURES]:
        option = mention(ignore=as_list(needed[:1]))
        raise UsageError(f"{option}: the model was trained on this column and needs it")
    more = tuple(name for name in names if kinds.get(name, EMPTY) == EMPTY)
    with of_layouts():
        like = for_new_data(trained, {"format": None, **given})
    return replace(like, ignore=like.ignore + more)
