"""Layouts from options, as both faces make them."""

from typing import Any

from thresher.data.layout import AnyLayout, SettledLayout
from thresher.options.data import LayoutOptions, ReadOptions
from thresher.options.layouts import layout_asked
from thresher.options.option import settle
from thresher.plans.run_setup import layout_of_checkpoint


def layout_of(given: dict[str, Any]) -> AnyLayout | None:
    """The layout that these keywords describe."""
    return layout_asked(settle(ReadOptions, given))


def layout_again(before: SettledLayout, **given: Any) -> AnyLayout | None:
    """How data are read after a stop, with these keywords."""
    return layout_of_checkpoint(settle(LayoutOptions, given), before)
