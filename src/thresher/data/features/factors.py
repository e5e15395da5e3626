"""The interaction terms of a layout for compiled readers, over columns or namespaces."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from thresher.data.columns import BINS, CATEGORICAL, FEATURES, LIST, as_option_value, finder
from thresher.data.errors import DataError
from thresher.data.feature_specs import ANY, Terms, terms_of
from thresher.data.features.crossing import MOST_SPANS, Crosses
from thresher.data.features.name_table import Naming, no_names
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.options.messages import mention


def of_columns(
    layout: SettledLayout, names: Sequence[str], kinds: Sequence[str], file: str
) -> Crosses | None:
    """The terms over the columns `names` of a file, whose kinds are `kinds`; None if there are no terms.

    Raises `DataError` if a factor matches no feature column.
    """
    terms = terms_of(layout.interact)
    if not terms.terms:
        return None
    bits = dict.fromkeys(names, 0)
    known = {name for name, kind in zip(layout.columns, layout.kinds, strict=True) if kind in FEATURES}
    find = finder(layout.columns)
    for place, factor in enumerate(terms.factors):
        matched = find(factor)
        found = [name for name in matched if name in known]
        if not found:
            comes_late = matched or layout.format == "jsonl"
            value = as_option_value([factor], ())
            hint = f"; if its values come late, give its kind, such as {mention(categorical=value)}"
            where = f"{file}: {mention('interact')}: no feature column is called '{factor}'"
            raise DataError(f"{where}{hint if comes_late else ''}")
        for name in found:
            if name in bits:  # a file may lack it
                bits[name] |= 1 << place
    no_squares = [kind in (BINS, CATEGORICAL, LIST) for kind in kinds]
    return _crosses(
        terms,
        layout,
        bits=np.array([bits[name] for name in names], np.int64),
        no_squares=np.array(no_squares, np.int64),
    )


def of_namespaces(layout: AnyLayout, seed: Callable[[str], int]) -> Crosses | None:
    """The terms over namespaces, which readers identify by their `seed`; None if there are no terms."""
    terms = terms_of(layout.interact)
    if not terms.terms:
        return None
    wild = sum(1 << place for place, factor in enumerate(terms.factors) if factor == ANY)
    return _crosses(terms, layout, seeds=[seed(factor) for factor in terms.factors], wild=wild)


_SPACES = {"vw": re.compile(rb"\|([^\s|:]*)"), "libffm": re.compile(rb"[ \t]([0-9]+):[0-9]+:")}
"""What opens a namespace in a line"""


def namespaces_in(text: bytes, form: str) -> list[str]:
    """The namespaces in lines of a format that has some, by name."""
    found = {str(name, "utf-8", "backslashreplace") for name in _SPACES[form].findall(text)}
    return sorted(found, key=lambda name: (name.isdigit(), len(name), name) if form == "libffm" else (name,))


def extra_of(
    crosses: Crosses | None, naming: Naming | None, columns: int = 0
) -> tuple[Crosses, Naming] | tuple[None, None]:
    """What compiled readers of `columns` columns take for interactions and names.

    One without the other is an empty one, so that there are two kinds of compiled code, not four.

    Naming the features of a model with products then compiles nothing more, and a reader that names nothing
    asks once per feature, which cannot be measured (345 and 347 ns a row of seven columns with three terms).
    """
    if crosses is None and naming is None:
        return None, None
    return crosses or _no_crosses(columns), naming or no_names()


def _no_crosses(columns: int) -> Crosses:
    none = np.zeros(columns, np.int64)
    return _crosses(Terms([], []), AnyLayout(), none, none)


def _crosses(
    terms: Terms,
    layout: AnyLayout,
    bits: NDArray[np.int64] | None = None,
    no_squares: NDArray[np.int64] | None = None,
    seeds: Sequence[int] = (),
    wild: int = 0,
) -> Crosses:
    none = np.zeros(0, np.int64)
    return Crosses(
        np.array([(*term, -1)[:3] for term in terms.terms], np.int64).reshape(-1, 3),
        none if bits is None else bits,
        none if no_squares is None else no_squares,
        np.array(seeds, np.uint64),
        np.int64(wild),
        np.uint64(layout.mask),
        layout.hash == "vw",
        room_for_spans(),
    )


def room_for_spans() -> NDArray[np.int64]:
    """Space for the spans of a row; each thread needs its own."""
    return np.zeros((MOST_SPANS + 1, 4), np.int64)
