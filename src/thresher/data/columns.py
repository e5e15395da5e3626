"""Tables: the kind of each column, settled once and kept in the layout."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from thresher.data.errors import DataError
from thresher.data.layout import (
    COLUMN_OPTIONS,
    FEATURE_FIELDS,
    SYNTAX_FIELDS,
    AnyLayout,
    Layout,
    SettledLayout,
    as_option,
)

IGNORE, NUMERIC, BINS, CATEGORICAL, LIST, TEXT, LABEL, WEIGHT, ABSENT = (
    *("ignore", "numeric", "bins", "categorical", "list", "text", "label", "weight", "absent"),
)
"""Kinds of columns. An absent column is not read and may be missing from the file."""
FEATURES = (NUMERIC, BINS, CATEGORICAL, LIST, TEXT)
"""Kinds of columns that yield features."""
_SHOWN, _LONGEST = 12, 60
_BY_STAR, _BY_PATTERN, _BY_NAME = 1, 2, 3
_WILD = re.compile(r"[*?\[]")


KINDS = (IGNORE, *FEATURES, LABEL, WEIGHT, ABSENT)


def check_settled(layout: SettledLayout) -> SettledLayout:
    """`layout`; raises `DataError` unless its columns and kinds are consistent."""
    if len(layout.kinds) != len(layout.columns):
        raise DataError(f"the layout has {len(layout.columns)} columns but {len(layout.kinds)} kinds")
    for kind in layout.kinds:
        if kind not in KINDS:
            raise DataError(f"unknown kind of column '{kind}'; known: {', '.join(KINDS)}")
    _check_once(layout.columns, "layout")
    return layout


def settle(given: AnyLayout, names: Sequence[str], guesses: Sequence[str], file: str) -> SettledLayout:
    """The layout with the kind of each of the columns `names`: as given by `given`, otherwise as guessed.

    Raises `DataError` if a name occurs twice, an option names no column, two options disagree about a
    column, or no column is the label.
    """
    layout = given.unsettled()
    _check_once(names, file)
    kinds, find = dict(zip(names, guesses, strict=True)), finder(names)
    chosen: dict[str, tuple[str, int]] = {}
    if not layout.label and "label" not in kinds:
        raise DataError(f"{file}: name the label column (--label COL); the columns are: {_listed(names)}")
    for kind, wanted in (
        (LABEL, _label_patterns(layout, names)),
        (WEIGHT, [layout.weight] if layout.weight else []),
        (NUMERIC, layout.numeric),
        (BINS, layout.bins),
        (CATEGORICAL, layout.categorical),
        (TEXT, layout.text),
        (IGNORE, layout.ignore),
    ):
        for pattern in wanted:
            found = find(pattern)
            if not found and not (kind == IGNORE and _WILD.search(pattern)):
                raise DataError(f"{file}: no column is called '{pattern}'; {column_meant(pattern, names)}")
            _assign(chosen, kind, found, _precision(pattern, found), file)
    kinds |= {name: kind for name, (kind, _) in chosen.items()}
    if TEXT not in kinds.values() and layout.ngrams != Layout.ngrams:
        raise DataError(f"{file}: n-grams need a text column (--text COL)")
    if sum(kind == WEIGHT for kind in kinds.values()) > 1:
        raise DataError(f"{file}: only one column can be the weight")
    labels = [name for pattern in _label_patterns(layout, names) for name in find(pattern)]
    _check_once(labels, f"{file}: --label")
    return SettledLayout(
        **layout.shared(),
        columns=tuple(names),
        kinds=tuple(kinds[name] for name in names),
        labels=tuple(labels) if len(labels) > 1 else (),
    )


def for_new_data(trained: SettledLayout, chosen: Mapping[str, Any]) -> AnyLayout:
    """How to read new data for a model `trained` on other data; `chosen` are the fields of `Layout` you give.

    The new data may have another format. Raises `DataError` if the options would change the features.
    """
    for name in (*FEATURE_FIELDS, "classes"):
        have = getattr(trained, name)
        if chosen.get(name, have) != have:
            raise DataError(f"the model was trained {as_option(name, have)}; leave --{name} out")
    columns = {name: chosen[name] for name in COLUMN_OPTIONS if chosen.get(name)}
    if columns and not (trained.columns and same_columns(Layout(**columns), trained, "the model")):
        which = "other columns" if trained.columns else "no columns"
        raise DataError(f"the model was trained with {which}; leave --{' --'.join(columns)} out")
    written = {name: chosen[name] for name in ("header", *SYNTAX_FIELDS) if name in chosen}
    return replace(trained.in_format(chosen.get("format") or trained.format), **written)


def same_columns(given: Layout, settled: SettledLayout, whose: str) -> bool:
    """Whether the column options `given` agree with the layout `settled` for the data `whose`.

    Raises `DataError` as `settle` does.
    """
    if not any(getattr(given, name) for name in COLUMN_OPTIONS):
        return True
    kinds = dict(zip(settled.columns, settled.kinds, strict=True))
    found = ",".join(settled.labels) or next((name for name, kind in kinds.items() if kind == LABEL), "")
    again = settle(replace(given, label=given.label or found), settled.columns, settled.kinds, whose)
    return (again.kinds, again.labels) == (settled.kinds, settled.labels)


def _label_patterns(layout: Layout, names: Sequence[str]) -> list[str]:
    """The names, positions and patterns of the label columns."""
    chosen = layout.label or "label"
    return [chosen] if chosen in names else [part for part in chosen.split(",") if part]


def _check_once(names: Sequence[str], file: str) -> None:
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise DataError(f"{file}: two columns are called '{name}'")


def _precision(pattern: str, found: Sequence[str]) -> int:
    """How precise a pattern is: a single name or number, a pattern or range, or ``*``."""
    if pattern in found or len(found) == 1:
        return _BY_NAME
    return _BY_STAR if pattern == "*" else _BY_PATTERN


def _assign(
    chosen: dict[str, tuple[str, int]], kind: str, names: Iterable[str], precision: int, file: str
) -> None:
    """Set the kind of columns: the more precise option wins, and among patterns ``--ignore``."""
    for name in names:
        before, was = chosen.get(name, (kind, 0))
        if before in (LABEL, WEIGHT) and name in chosen:
            was = _BY_NAME
        ignored = kind == IGNORE and precision == was == _BY_PATTERN
        if before != kind and precision == was and not ignored:
            raise DataError(f"{file}: '{name}' is listed in both --{before} and --{kind}")
        if precision > was or ignored:
            chosen[name] = kind, precision


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """The columns that match a name, a position (from 1), a range of positions or a pattern."""
    return finder(names)(pattern)


def finder(names: Sequence[str]) -> Callable[[str], list[str]]:
    """`matching` for many patterns and the same columns."""
    known = frozenset(names)

    def find(pattern: str) -> list[str]:
        if pattern in known:
            return [pattern]
        if found := re.fullmatch(r"(\d+)(?:-(\d+))?", pattern):
            first, last = int(found[1]), int(found[2] or found[1])
            return list(names[first - 1 : last]) if 1 <= first <= last <= len(names) else []
        return [*filter(_shape(pattern), names)] if _WILD.search(pattern) else []

    return find


def _shape(pattern: str) -> Callable[[str], object]:
    """Whether a name matches a pattern with ``*``, ``?`` or ``[``."""
    return re.compile(fnmatch.translate(pattern)).match


class Patterns:
    """Names and patterns of columns; contains the columns that they match."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names = frozenset(patterns)
        self._wild = [_shape(pattern) for pattern in self._names if _WILD.search(pattern)]

    def __contains__(self, name: str) -> bool:
        return name in self._names or any(match(name) for match in self._wild)


def kinds_in(layout: SettledLayout, names: Sequence[str], file: str) -> list[str]:
    """The kind of each column of a file; raises `DataError` unless it has the columns of `layout`."""
    there, known = set(names), dict(zip(layout.columns, layout.kinds, strict=True))
    _check_once(names, file)
    for name, kind in known.items():
        if name not in there and kind not in (IGNORE, ABSENT):
            raise DataError(
                f"{file}: no column '{name}' ({kind} in the training data); the columns are: {_listed(names)}"
            )
    ignored = Patterns(layout.ignore)
    for name in names:
        if name not in known and name not in ignored:
            raise DataError(f"{file}: column '{name}' was not in the training data (skip it with --ignore)")
    return [known.get(name, IGNORE) for name in names]


def column_meant(wanted_column: str, names: Sequence[str]) -> str:
    """The columns that a wrong name may mean, whatever their case; all columns if there are none."""
    if re.fullmatch(r"\d+(-\d+)?", wanted_column):
        return f"there {'are' if len(names) != 1 else 'is'} {len(names):,} column{'s' * (len(names) != 1)}"
    plain = {name.casefold(): name for name in names}
    near = get_close_matches(wanted_column.casefold(), plain, 1)
    return f"did you mean '{plain[near[0]]}'?" if near else f"the columns are: {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = (name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..." for name in names[:_SHOWN])
    return ", ".join(shown) + more
