"""Layouts: how the bytes of a source become features, as it is said and as it was settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self, TypeGuard

from thresher.data.errors import DataError
from thresher.data.interactions import terms_of
from thresher.data.ngram_spec import grams_of

HASHES = ("64", "vw")
MOST_BITS = 61
"""Vowpal Wabbit's limit too"""
OF_CELLS = ("delimiter", "missing", "quoted_newlines")
"""Fields that say how cells between delimiters are written, and nothing of what they mean"""
WRITTEN = (*OF_CELLS, "label_weights")
"""Those of any format"""
OF_FEATURES = ("seed", "hash", "bits", "ngrams", "interact")
"""Those by which the same data would be other features"""
DELIMITERS = {"csv": ",", "tsv": "\t"}
_NO_DELIMITERS = (b'"', b"\n", b"\r", b"\0")
_LONGEST_TOKEN = 255
COLUMN_OPTIONS = ("label", "weight", "numeric", "bins", "categorical", "text", "ignore")


@dataclass(frozen=True)
class AnyLayout:
    """What is said of data and stays as it is said, whatever columns they have. All of it is JSON."""

    format: str = ""
    """one of `listing.FORMATS`; empty: told by the names of files"""
    seed: int = 0
    """of the hashes that names become keys by"""
    hash: str = "64"
    """``64``: names to 64 bits by MurmurHash3; ``vw``: to the index that Vowpal Wabbit has for them"""
    bits: int = 0
    """of a key, the lowest ones; 0 for all 64"""
    label_weights: bool = False
    """of svmlight: whether ``label:weight`` begins a line; otherwise a colon there is that of a feature"""
    ngrams: str = "words=1"
    """which n-grams of texts are features: see `grams_of`"""
    ignore: tuple[str, ...] = ()
    """columns that are not read"""
    interact: tuple[str, ...] = ()
    """products that are features too: ``A,B`` or ``A,B,C`` of namespaces or columns"""
    header: bool = True
    """whether the first line of a file of cells names the columns"""
    delimiter: str = ""
    """one byte between cells; empty: the comma of CSV, the tab of TSV"""
    missing: tuple[str, ...] = ()
    """cells that mean a missing value, beside the empty one"""
    quoted_newlines: bool = False
    """whether a quoted cell of CSV may have line breaks"""

    def __post_init__(self) -> None:
        """Raises `DataError` for what no data can be read by."""
        if not 0 <= self.seed < 1 << 64:
            raise DataError(f"the seed of hashes must lie in 0..2^64 - 1, not {self.seed}")
        if self.hash not in HASHES:
            raise DataError(f"no hash is called '{self.hash}'; known: {', '.join(HASHES)}")
        if not 0 <= self.bits <= MOST_BITS:
            raise DataError(f"keys have 1 to {MOST_BITS} bits, or 0 for all 64, not {self.bits}")
        if self.hash == "vw" and not self.bits:
            raise DataError("the hash vw needs a number of bits (18 is Vowpal Wabbit's own default)")
        byte = self.delimiter.encode()
        if len(byte) > 1 or byte in _NO_DELIMITERS:
            raise DataError(f"a delimiter is one byte, no quote and no line end, not {self.delimiter!r}")
        for one in self.missing:
            if not 0 < len(one.encode()) <= _LONGEST_TOKEN:
                raise DataError(f"a cell that means a missing value has 1 to {_LONGEST_TOKEN} bytes: {one!r}")
        grams_of(self.ngrams)
        terms_of(self.interact)

    @property
    def delimited_by(self) -> str:
        """What stands between cells; empty where there are none."""
        return self.delimiter or DELIMITERS.get(self.format, "")

    @property
    def mask(self) -> int:
        """The bits that a key may have."""
        return (1 << (self.bits or 64)) - 1

    def in_format(self, form: str) -> Self:
        """The same features from data in another format, whose way of writing is the default one."""
        if form == self.format:
            return self
        return replace(self, format=form, **{name: getattr(AnyLayout, name) for name in WRITTEN})

    def shared(self) -> dict[str, Any]:
        """The fields that all layouts have."""
        return {field.name: getattr(self, field.name) for field in fields(AnyLayout)}

    def as_said(self) -> Layout:
        """The same with nothing settled: a layout of columns that are still to be found."""
        return self if isinstance(self, Layout) else Layout(**self.shared())


@dataclass(frozen=True)
class Layout(AnyLayout):
    """How the bytes of a source become features, as you say it: columns may be names and patterns."""

    label: str = ""
    """of a table: which column is the label, or which columns, with commas; ``label`` if none is said"""
    weight: str = ""
    """which column is the importance weight"""
    numeric: tuple[str, ...] = ()
    """columns that are numbers, whatever they look like: names, positions from 1 on, ``2-14``, ``I*``"""
    bins: tuple[str, ...] = ()
    """columns of numbers, whose every logarithmic bin is a feature"""
    categorical: tuple[str, ...] = ()
    """columns whose every value is a feature"""
    text: tuple[str, ...] = ()
    """columns of text, whose n-grams are features"""


@dataclass(frozen=True)
class SettledLayout(AnyLayout):
    """How data were read: which column is what. It travels in the model file, and reads new data alike."""

    columns: tuple[str, ...] = ()
    """all columns; none where the format has none"""
    kinds: tuple[str, ...] = ()
    """what each of `columns` is"""
    labels: tuple[str, ...] = ()
    """those that are the label, if several are, in the order of the outputs"""

    def as_dict(self) -> dict[str, Any]:
        """What differs from the defaults, and the format."""
        given = asdict(self)
        return {
            f.name: given[f.name] for f in fields(self) if f.name == "format" or given[f.name] != f.default
        }

    def unlabelled(self) -> SettledLayout:
        """The same for data that are only predicted: a table needs neither labels nor importances."""
        return replace(
            self, kinds=tuple("absent" if kind in ("label", "weight") else kind for kind in self.kinds)
        )

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> SettledLayout:
        """The inverse of `as_dict`; `DataError` for what this version does not know."""
        unknown = sorted(given.keys() - {field.name for field in fields(cls)})
        if unknown:
            raise DataError(f"the data were read with {', '.join(unknown)}, which this version does not know")
        listed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
        for field in fields(cls):
            _check_kind(field.name, listed.get(field.name, field.default), type(field.default))
        return cls(**listed)


def as_option(name: str, value: Any) -> str:
    """How a field is said on the command line, for messages: ``with --bits 20``, ``without --missing``."""
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return f"with {flag}" if value else f"with {flag.replace('--', '--no-')}"
    if value in (None, "", ()) or (name, value) == ("bits", 0):
        return f"without {flag}"
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    return f"with {flag} {text}".replace("\t", r"\t")


def has_columns(layout: AnyLayout) -> TypeGuard[SettledLayout]:
    """Whether it is settled which columns there are and what each is."""
    return isinstance(layout, SettledLayout) and bool(layout.columns)


def settled_without_columns(layout: AnyLayout) -> SettledLayout:
    """The layout of data in a format that has no columns; `DataError` where something is said of any."""
    for name in (*COLUMN_OPTIONS, "ngrams"):
        default = getattr(Layout, name)
        if getattr(layout, name, default) != default:
            raise DataError(
                f"{layout.format} has no columns: --{name} is for csv, tsv, jsonl, parquet and arrow"
            )
    return layout if isinstance(layout, SettledLayout) else SettledLayout(**layout.shared())


def _check_kind(name: str, value: Any, kind: type) -> None:
    items = value if isinstance(value, tuple) else ()
    if type(value) is not kind or not all(isinstance(item, str) for item in items):
        wanted = {str: "text", tuple: "a list of texts", int: "a whole number", bool: "true or false"}
        raise DataError(f"the layout's {name} must be {wanted[kind]}, not {value!r:.60}")
