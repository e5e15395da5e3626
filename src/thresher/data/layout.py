"""Layouts: how the bytes of a source become features, as you specify it and as it was settled.

The syntax of cells (`--delimiter`, `--missing`, `--no-quoting`, the header) is separate
from their meaning. It is part of the layout that a model stores, but also an option of `predict` and
`evaluate`, and goes back to its default for another format.

A `SettledLayout` has all columns and the kind of each. A model stores only that, so no reader has to ask
which of the two it has. Both are an `AnyLayout`, which has the fields that do not change.

Tables have K numbers of an example in K columns, so ``values:K`` names K of them; lists are for any number of
classes. The layout stores their order, because other files may order columns differently.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeGuard

from thresher.data.errors import DataError
from thresher.data.feature_specs import as_list, grams_of, names_in, terms_of
from thresher.data.labels import check_words
from thresher.data.stored import read
from thresher.options.messages import mention

HASHES = ("64", "vw")
MOST_BITS = 61
"""Also Vowpal Wabbit's limit"""
CELL_FIELDS = ("delimiter", "missing", "quoting")
"""Fields about the syntax of delimited files, which do not change the features"""
SYNTAX_FIELDS = (*CELL_FIELDS, "label_weights")
"""Fields about syntax, of all formats"""
FEATURE_FIELDS = ("seed", "hash", "bits", "ngrams", "interact")
"""Fields that change the features of the same data"""
GROUPS = {"svmlight": "qid", "vw": "tag"}
"""The name of groups in formats without columns"""
BASE = "base"
"""The name of offsets in VW text"""
DELIMITERS = {"csv": ",", "tsv": "\t"}
_NO_DELIMITERS = (b'"', b"\n", b"\r", b"\0")
_LONGEST_TOKEN = 255
COLUMN_OPTIONS = ("label", "weight", "offset", "group", "numeric", "bins", "categorical", "text", "ignore")

_LISTS = ("numeric", "bins", "categorical", "text", "ignore", "missing", "classes", "interact")


@dataclass(frozen=True)
class AnyLayout:
    """The options for reading data that do not depend on its columns. All values can be written as JSON."""

    format: str = ""
    """one of `listing.FORMATS`; empty: chosen by file name"""
    seed: int = 0
    """seed of the hash that maps names to keys"""
    hash: str = "64"
    """``64``: 64-bit MurmurHash3 of the name; ``vw``: the index that Vowpal Wabbit computes"""
    bits: int = 0
    """number of low bits of a key that are kept; 0 for all 64"""
    label_weights: bool = False
    """svmlight: whether a line begins with ``label:weight``; otherwise that is read as a feature"""
    ngrams: str = "words=1"
    """which n-grams of texts are features: see `grams_of`"""
    group: str = ""
    """what keeps rows together in hold-outs and folds: a column; ``qid`` of svmlight; the ``tag``, or else a
    namespace, of VW"""
    offset: str = ""
    """what is added to the margin: a column; ``base`` of VW"""
    text: tuple[str, ...] = ()
    """columns of text, or namespaces of VW, whose n-grams are features"""
    ignore: tuple[str, ...] = ()
    """columns that are not read"""
    interact: tuple[str, ...] = ()
    """products to add as features: lists ``A,B`` or ``A,B,C`` of namespaces or columns"""
    header: bool = True
    """whether the first line of a delimited file names the columns"""
    delimiter: str = ""
    """one byte between cells; empty: comma for CSV, tab for TSV"""
    missing: tuple[str, ...] = ()
    """cells that mean a missing value, besides the empty one"""
    quoting: bool = True
    """whether a CSV cell may be quoted; otherwise a quote is a character like any other"""
    classes: tuple[str, ...] = ()
    """words used as labels, in the order of their classes; empty: labels are numbers"""
    gaps: bool = False
    """whether a missing number of a table is told from 0, for columns that are centred: it is a stored 0"""

    def __post_init__(self) -> None:
        """Raise `DataError` for an option that is out of range; a text is a list with commas between."""
        for name in _LISTS:
            if isinstance(value := getattr(self, name, ()), str):
                object.__setattr__(self, name, (value,) if name == "interact" else names_in(value))
        if not 0 <= self.seed < 1 << 64:
            raise DataError(f"the hash seed must be from 0 to 2^64 - 1, not {self.seed}")
        if self.hash not in HASHES:
            raise DataError(f"no hash is called '{self.hash}'; known: {', '.join(HASHES)}")
        if not 0 <= self.bits <= MOST_BITS:
            raise DataError(f"bits must be from 1 to {MOST_BITS}, or 0 for all 64, not {self.bits}")
        if self.hash == "vw" and not self.bits:
            raise DataError("the hash vw needs a number of bits (18 is Vowpal Wabbit's own default)")
        byte = self.delimiter.encode()
        if len(byte) > 1 or byte in _NO_DELIMITERS:
            raise DataError(f"a delimiter must be one byte, no quote or line break: {self.delimiter!r}")
        for one in self.missing:
            if not 0 < len(one.encode()) <= _LONGEST_TOKEN:
                raise DataError(f"a missing-value cell must have 1 to {_LONGEST_TOKEN} bytes, not {one!r}")
        if self.classes:
            check_words(self.classes)
        grams_of(self.ngrams)
        terms_of(self.interact)

    @property
    def delimited_by(self) -> str:
        """The delimiter between cells; empty for a format without cells."""
        return self.delimiter or DELIMITERS.get(self.format, "")

    @property
    def mask(self) -> int:
        """Mask of the bits of a key that are kept."""
        return (1 << (self.bits or 64)) - 1

    def in_format(self, form: str) -> Self:
        """This layout for another format, with that format's default syntax and the same features."""
        if form == self.format or (not self.format and form in DELIMITERS):
            return replace(self, format=form)
        kept = ("missing",) if {form, self.format} <= {*DELIMITERS} else ()
        own = [name for name in SYNTAX_FIELDS if name not in kept]
        return replace(self, format=form, **{name: getattr(AnyLayout, name) for name in own})

    def shared(self) -> dict[str, Any]:
        """The fields that every layout has."""
        return {field.name: getattr(self, field.name) for field in fields(AnyLayout)}

    def unsettle(self) -> Layout:
        """This layout before its columns are settled."""
        return self if isinstance(self, Layout) else Layout(**self.shared())


@dataclass(frozen=True)
class Layout(AnyLayout):
    """How the bytes of a source become features, as you specify it. Columns may be names or patterns."""

    label: str = ""
    """the label column of a table, or several in a list (see `listed`); default ``label``"""
    weight: str = ""
    """the column of importance weights"""
    numeric: tuple[str, ...] = ()
    """columns to read as numbers: names, positions (from 1), ``2-14``, ``C14-C21``, ``I*``"""
    bins: tuple[str, ...] = ()
    """columns of numbers in which each logarithmic bin is a feature"""
    categorical: tuple[str, ...] = ()
    """columns in which each value is a feature"""


@dataclass(frozen=True)
class SettledLayout(AnyLayout):
    """How data were read, with the kind of each column. The model file stores it, to read new data alike."""

    columns: tuple[str, ...] = ()
    """all columns; empty if the format has none"""
    kinds: tuple[str, ...] = ()
    """the kind of each of `columns`"""
    labels: tuple[str, ...] = ()
    """the label columns if there are several, in the order of the outputs"""
    awaited: tuple[str, ...] = ()
    """columns that the first file did not have when the layout was settled, and that options name"""
    spelling: tuple[str, ...] = ()
    """what the values of each of `columns` are, if they are categories or texts (see `columns`)"""
    UNSAID: ClassVar[tuple[str, ...]] = ()
    """fields that a file need not say: all"""

    def __post_init__(self) -> None:
        """As of every layout; columns of numbers need no spelling."""
        super().__post_init__()
        if not self.spelling:
            object.__setattr__(self, "spelling", ("",) * len(self.columns))

    @cached_property
    def kind_of(self) -> dict[str, str]:
        """The kind of each column, by its name."""
        return dict(zip(self.columns, self.kinds, strict=True))

    @cached_property
    def spelling_of(self) -> dict[str, str]:
        """What the values of each column are, by its name."""
        return dict(zip(self.columns, self.spelling, strict=True))

    @cached_property
    def features(self) -> dict[str, bool]:
        """The columns that features come from, and whether they hold numbers."""
        numbers, others = ("numeric", "bins"), ("categorical", "list", "text")
        return {name: kind in numbers for name, kind in self.kind_of.items() if kind in (*numbers, *others)}

    @property
    def grouped_by(self) -> str:
        """The column of groups, or ``qid`` or ``tag``; empty if rows have no groups."""
        return self.columns[self.kinds.index("group")] if "group" in self.kinds else self.group

    @property
    def has_offsets(self) -> bool:
        """Whether each row has an offset."""
        return bool("offset" in self.kinds or self.offset)

    def as_dict(self) -> dict[str, Any]:
        """The format, and all fields that differ from their defaults."""
        given = [(one, getattr(self, one.name)) for one in fields(self)]
        return {one.name: value for one, value in given if one.name == "format" or value != one.default}

    def with_kinds(self, kinds: Mapping[str, str], spelling: Mapping[str, str] = {}) -> SettledLayout:
        """This layout with these columns and their kinds; `spelling` of those that had none."""
        spelled, kept = {**spelling, **self.spelling_of}, ("categorical", "text", "ignore")
        own = tuple(spelled.get(name, "") if kind in kept else "" for name, kind in kinds.items())
        return replace(self, columns=tuple(kinds), kinds=tuple(kinds.values()), spelling=own)

    def unlabelled(self) -> SettledLayout:
        """This layout for prediction: a table needs neither labels, weights nor groups."""
        return self.without_groups("label", "weight")

    def without_groups(self, *unread: str) -> SettledLayout:
        """This layout for data that are held out or evaluated: no row needs a group, or what is `unread`."""
        kinds = tuple("absent" if kind in ("group", *unread) else kind for kind in self.kinds)
        return replace(self, kinds=kinds, group="")

    @classmethod
    def from_dict(cls, given: Mapping[str, object]) -> SettledLayout:
        """The inverse of `as_dict`; raises `DataError` for fields that this version does not know."""
        return read(cls, given, "layout")


SettledLayout.UNSAID = tuple(one.name for one in fields(SettledLayout))


@dataclass(frozen=True)
class Extension(Layout):
    """A layout for a new model that keeps the columns of another and may add new ones."""

    trained: SettledLayout = SettledLayout()
    """that of the other model"""
    known: tuple[tuple[str, str], ...] = ()
    """the columns that are kept, with their kinds"""

    def new(self, columns: Iterable[str]) -> list[str]:
        """Those of `columns` that the other model does not have."""
        known = dict(self.known)
        return [name for name in columns if name not in known]


def as_option(name: str, value: object) -> str:
    """A field as a command-line option, for messages: ``with --bits 20``, ``without --missing``."""
    if value in (None, "", ()) or (name, value) == ("bits", 0):
        return f"without {mention(name)}"
    if isinstance(value, tuple):
        value = (",".join if name == "interact" else as_list)(value)
    plain = value if isinstance(value, bool | int | float) else str(value).replace("\t", r"\t")
    return f"with {mention(**{name: plain})}"


def chosen_in(layout: AnyLayout | None) -> tuple[str, ...]:
    """The numeric and categorical columns that options name."""
    return layout.numeric + layout.categorical if isinstance(layout, Layout) else ()


def grouped_by(layout: AnyLayout | None) -> str:
    """What the rows of data with this layout are grouped by; empty if they have no groups."""
    return layout.grouped_by if isinstance(layout, SettledLayout) else layout.group if layout else ""


def has_columns(layout: AnyLayout | None) -> TypeGuard[SettledLayout]:
    """Whether the columns and their kinds are settled."""
    return isinstance(layout, SettledLayout) and bool(layout.columns)


def known_columns(layout: AnyLayout) -> Collection[str]:
    """The columns that are settled before the data are looked at, though there may be others."""
    known = dict(layout.known) if isinstance(layout, Extension) else ()
    return layout.columns if has_columns(layout) else known


def settle_without_columns(layout: AnyLayout) -> SettledLayout:
    """The layout of data in a format without columns; raises `DataError` if a column option is given."""
    spaced, known = layout.format == "vw", GROUPS[layout.format]
    if not spaced and layout.group not in ("", known):
        raise DataError(f"{layout.format} has no columns: groups are {mention(group=known)}")
    if spaced and layout.offset not in ("", BASE):
        raise DataError(f"vw has no columns: offsets are {mention(offset=BASE)}")
    if spaced and layout.text and layout.hash == "vw":
        raise DataError(f"n-grams have no indices of Vowpal Wabbit: leave {mention('hash')} out")
    if spaced and not layout.text and layout.ngrams != Layout.ngrams:
        raise DataError(f"n-grams need a namespace of text ({mention(text='NAME')})")
    own = ("group", *(("offset", "text", "ngrams") if spaced else ()))
    for name in (*COLUMN_OPTIONS, "ngrams"):
        default = getattr(Layout, name)
        if name not in own and getattr(layout, name, default) != default:
            tables = "csv, tsv, jsonl, parquet and arrow"
            raise DataError(f"{layout.format} has no columns: {mention(name)} is only for {tables}")
    return layout if isinstance(layout, SettledLayout) else SettledLayout(**layout.shared())
