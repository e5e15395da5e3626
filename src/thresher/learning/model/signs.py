"""Weights that keep their sign: which ones, from the names that options give and the layout of the data.

The sign of a weight stands in the row of its feature (see `parts.clamped`), so these rows are made before the
first example is learned, and never freed. That needs keys that are known beforehand: those of numeric
columns, ids, and names of numbers in dictionaries. Categories and words are met only in the data; ``*``
stands for all features, and needs no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.columns import FEATURES, NUMERIC, column_meant, matching
from thresher.data.errors import DataError, OneLineError
from thresher.data.feature_specs import ANY, as_list, names_in
from thresher.data.features.murmur import hash_columns
from thresher.data.formats.listing import kind_of_features
from thresher.data.layout import AnyLayout, has_columns
from thresher.engine.verbs import grouped
from thresher.options.messages import mention
from thresher.options.model import SIGNED

U64 = NDArray[np.uint64]
_SIGNS = {"nonnegative": parts.NONNEGATIVE, "nonpositive": parts.NONPOSITIVE}


def numbers_spec(option: str, given: object, width: int, named: Sequence[str]) -> str | None:
    """The numbers of the columns of a matrix that an option names; they are `named`, or numbered."""
    spec = None if given is None else replace(SIGNED, name=option).take(given)
    if spec in (None, ANY):
        return spec
    columns, found = [*map(str, range(width))], list[str]()
    places = dict(zip(named or columns, columns, strict=True))
    for name in names_in(spec):
        matched = matching(name, named) if named else [name] * (name in places)
        if not matched:
            raise OneLineError(f"{option}: no column is called '{name}'; {column_meant(name, [*places])}")
        found += [places[one] for one in matched]
    return as_list(found)


class Signs:
    """The signs of weights that a recipe asks for."""

    def __init__(self, nonnegative: str | None, nonpositive: str | None) -> None:
        asked = {"nonnegative": nonnegative, "nonpositive": nonpositive}
        listed = {option: names_in(text) for option, text in asked.items() if text is not None}
        self._asked = [(option, name) for option, names in listed.items() for name in names]
        self._listed: tuple[U64, NDArray[np.float64]] | None = None

    def __bool__(self) -> bool:
        return bool(self._asked)

    @property
    def of_class(self) -> float:
        """The sign of every weight, or `LISTED`."""
        every = [option for option, name in self._asked if name == ANY]
        return _SIGNS["nonnegative" if every == ["nonnegative"] else "nonpositive"] if every else parts.LISTED

    def check(self, rule: object, several: bool, signed: bool) -> None:
        """ValueError if the rule or a store that is `signed` cannot keep signs, or options disagree."""
        if not self:
            return
        options = [*dict.fromkeys(option for option, _ in self._asked)]
        if self.of_class != parts.LISTED and len(options) > 1:
            both = " and ".join(mention(option) for option in options)
            raise OneLineError(f"{ANY} is all columns: leave one of {both} out")
        parts.clamped(rule, self.of_class)
        if several and hasattr(rule, "group") and grouped(rule.group):
            raise parts.SpecError("a group norm does not work with signs of weights: leave one of them out")
        if signed:
            raise OneLineError(
                f"a signed store flips half of the signs of weights: leave signed out of {mention('store')}"
            )

    def check_matrix(self, width: int) -> None:
        """`DataError` for a name that is no column of a matrix of this width."""
        for option, name in self._asked:
            if name != ANY and not (name.isascii() and name.isdigit() and int(name) < width):
                raise DataError(f"{mention(option)}: '{name}' is no column of the matrix: 0 to {width - 1:,}")

    def bind(self, layout: AnyLayout | None) -> None:
        """Find the features in data of this layout. `DataError` for a column without one weight."""
        if self and self.of_class == parts.LISTED:
            found = dict[int, float]()
            for option, key, name in self._keys(layout):
                if found.setdefault(key, _SIGNS[option]) != _SIGNS[option]:
                    both = f"{mention('nonnegative')} and {mention('nonpositive')}"
                    raise DataError(f"'{name}' is listed in both {both}: leave one of them out")
            keys = np.array(sorted(found), np.uint64)
            self._listed = keys, np.array([found[key] for key in keys.tolist()])

    def keys_and_signs(self) -> tuple[U64, NDArray[np.float64]]:
        """Keys (n,), which ascend, and their signs (n,); none if all weights have one sign."""
        if self._listed is None:
            self.bind(None)
        return self._listed or (np.zeros(0, np.uint64), np.zeros(0))

    def awaited(self, layout: AnyLayout | None) -> list[int]:
        """The keys of the features that are named, where data of this layout need not have them."""
        if not self or self.of_class != parts.LISTED or (layout is not None and has_columns(layout)):
            return []
        return sorted({key for _, key, _ in self._keys(layout)})

    def named(self, keys: Sequence[int], layout: AnyLayout | None) -> list[str]:
        """Those options and names that mean one of these keys, for messages."""
        found = {name: option for option, key, name in self._keys(layout) if key in keys}
        return [mention(**{option: as_list([name])}) for name, option in found.items()]

    def clip_to_signs(self, keys: U64, weights: NDArray[np.generic]) -> NDArray[np.generic]:
        """The weights (n, ...) of features, with 0 for each that has the wrong sign."""
        signs, (listed, own) = np.full(len(keys), self.of_class), self.keys_and_signs()
        there = np.isin(keys, listed)
        signs[there] = own[np.searchsorted(listed, keys[there])]
        wrong = weights * signs.reshape(-1, *[1] * (weights.ndim - 1)) < 0
        return np.where(wrong, weights.dtype.type(0), weights)

    def _keys(self, layout: AnyLayout | None) -> Iterator[tuple[str, int, str]]:
        """Option, key and name of each feature that is listed, in data of this layout. `DataError`."""
        if layout is not None and has_columns(layout):
            for option, name in self._asked:
                matched, kind_of = matching(name, layout.columns), layout.kind_of
                if not matched:
                    meant = column_meant(name, layout.columns)
                    raise DataError(f"{mention(option)}: no column is called '{name}'; {meant}")
                columns = [one for one in matched if kind_of[one] in FEATURES] or matched
                if other := next((one for one in columns if kind_of[one] != NUMERIC), None):
                    what, every = _KINDS.get(kind_of[other], kind_of[other]), mention(**{option: ANY})
                    more = f", and {every} is all weights" if kind_of[other] in FEATURES else ""
                    wanted = f"only numeric columns have one weight{more}"
                    raise DataError(f"{mention(option)}: column '{other}' is {what}: {wanted}")
                keys = hash_columns(columns, layout.seed) & np.uint64(layout.mask)
                yield from zip(repeat(option), keys.tolist(), columns)
            return
        form, mask = ("", 2**64 - 1) if layout is None else (layout.format, layout.mask)
        kind = kind_of_features(form) if form else ""
        for option, name in self._asked:
            if name.isascii() and name.isdigit() and int(name) < 2**64 and kind != "names":
                yield option, int(name) & mask, name
            elif kind:
                every = mention(**{option: ANY})
                wanted = "an id" if kind == "ids" else "a feature whose key is known"
                raise DataError(
                    f"{mention(option)}: '{name}' is not {wanted} in {form} data; {every} is all features"
                )
            else:
                yield option, int(hash_columns([name], layout.seed if layout else 0)[0]) & mask, name


_KINDS = {
    "bins": "put in bins",
    "list": "a list",
    "text": "a text",
    "label": "the label",
    "weight": "the weight of rows",
    "offset": "the offset",
    "group": "the group of rows",
    "ignore": "ignored",
    "absent": "not read",
    "empty": "empty",
}
