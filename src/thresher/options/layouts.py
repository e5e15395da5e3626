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
from thresher.options.option import Options, UsageError, given_options


@contextmanager
def of_options(*kinds: type[ValueError]) -> Iterator[None]:
    """Within this block, a ValueError that is not about data, or is one of these `kinds`, is about options.

    It becomes a `UsageError`.
    """
    try:
        yield
    except UsageError:
        raise
    except ValueError as error:
        if type(error) not in (ValueError, OneLineError) and not isinstance(error, kinds):
            raise
        raise UsageError(str(error)) from error


def layout_asked(options: Options) -> AnyLayout | None:
    """The given layout, or one made of the given fields; None if neither is given. `UsageError`."""
    layout, given = options.get("layout"), given_options(options, LayoutOptions)
    if not isinstance(layout, AnyLayout | None):
        raise UsageError(f"layout must be a thresher.data.layout.Layout, not {layout!r}")
    if given and layout is not None:
        raise UsageError(f"{next(iter(given))} is a field of the layout: set it there, or leave out layout")
    with of_options(DataError):
        return Layout(**given) if given else layout


def layout_like(trained: SettledLayout | None, options: Options) -> AnyLayout | None:
    """The layout of the training data of a model, changed by the given options. `UsageError`."""
    found = layout_asked(options)
    if found is None or trained is None or options.get("layout") is not None:
        return found or trained
    given = given_options(options, LayoutOptions)
    names, kinds = given.pop("ignore", ()), dict(zip(trained.columns, trained.kinds, strict=True))
    if needed := [name for name in names if kinds.get(name) in FEATURES]:
        option = mention(ignore=as_list(needed[:1]))
        raise UsageError(f"{option}: the model was trained on this column and needs it")
    more = tuple(name for name in names if kinds.get(name, EMPTY) == EMPTY)
    with of_options(DataError):
        like = for_new_data(trained, {"format": None, **given})
    return replace(like, ignore=like.ignore + more)
