"""Shared by the compiled readers of tables: kinds of columns, outcomes, numbers and labels of a row."""

# Numba infers the types of compiled code.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg, var-annotated"

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.data import columns
from thresher.data.chunk import Chunk, read_only
from thresher.data.errors import DataError
from thresher.data.feature_specs import Grams, grams_of
from thresher.data.features import crossing
from thresher.data.features.crossing import MOST_SPANS, Crosses, extra_of, of_columns
from thresher.data.features.murmur import hash_columns
from thresher.data.features.names import numeric_keys
from thresher.data.formats import line_status
from thresher.data.formats.lines.parse_loop import BlockParser
from thresher.data.labels import VALUES, Domain
from thresher.data.layout import SettledLayout
from thresher.data.report import LACKING, LATE, MOST_LATE
from thresher.data.text.numbers import FINE, OUT_OF_RANGE
from thresher.engine.centring import place_rests
from thresher.engine.compile.jit import scalar
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.data.formats.tables.where import Filter
    from thresher.data.sources.reader import Reading

IGNORE, ABSENT, EMPTY, GROUP, LIST, CATEGORICAL, TEXT, NUMERIC, BINS, LABEL, WEIGHT, OFFSET = range(12)
"""What the cells of a column become: the places of `columns.KINDS`. From `NUMERIC` on, they are numbers."""
WORD, CLASSES, GAPPED = range(12, 15)
"""Labels that are words, and lists; numbers of which a missing one is a stored 0."""
SPELLED, NUMERALS = 16, 32
"""Added to the code of a column whose cells are values that can be written in several ways:
booleans; numbers, of which NaN and infinity make the row bad."""

_ALL = np.uint64(2**64 - 1)
NOT_FINITE = range(line_status.LABEL_NUMBER, line_status.NUMBER_RANGE + 1)
"""Outcomes of numbers that may not be finite in float32."""


class ColumnEncodings(NamedTuple):
    """How the columns of a file are read, in file order. Arrays have the shape (columns,)."""

    names: list[str]
    what: list[str]
    """the kind of each column: see `columns`"""

    codes: NDArray[np.int64]
    keys: NDArray[np.uint64]
    """for a numeric column, the hash of its name; for one of several label columns, its index"""
    seeds: NDArray[np.uint64]
    """hash seeds for the values of other columns"""
    grams: Grams
    """n-grams of text columns"""
    mask: np.uint64
    """mask of the bits of a key that are kept"""
    crosses: Crosses | None
    """the interactions of its columns"""
    noticed: tuple[tuple[str, str, int, str], ...] = ()
    """how its columns differ from those of the layout: see `Parsed.noticed`"""
    ids: str = ""
    """the column that identifies rows; empty: none"""
    spelling: Sequence[str] = ()
    """what the values of each column are: see `columns`"""
    absent: Sequence[int] = ()
    """keys of the numeric columns that the file lacks, if a missing number is told from 0"""
    where: Filter | None = None
    """which rows of a file in batches are read; None: all"""
    marks: Filter | None = None
    """which rows are marked, by an id; None: none"""
    header: bytes = b""
    """the header of a delimited file, see `delimited.as_header`; empty if none could be repeated"""
    roles: Mapping[str, int] = {}
    """what the values of the fields of objects must be that are read: see `json_cells`"""
    words: bool = False
    """whether labels look like words"""

    def extra(self, naming: Any, spans: NDArray[np.int64]) -> tuple[Crosses | None, Any]:
        """Interactions (with space for the `spans` of a row) and `naming`, for compiled code."""
        return extra_of(self.crosses and self.crosses._replace(spans=spans), naming, len(self.names))

    def add_absent(self, chunk: Chunk) -> Chunk:
        """`chunk` with a missing value of each absent column in every row."""
        if not self.absent:
            return chunk
        ends, more = chunk.indptr, len(self.absent)
        at = np.repeat(ends[1:], more)
        keys = np.insert(chunk.keys, at, np.tile(np.array(self.absent, np.uint64), len(chunk)))
        starts = ends + more * np.arange(len(ends))
        rests = None if chunk.rests is None else np.insert(chunk.rests, at, 0)
        values = np.insert(chunk.values, at, np.float32(0))
        return replace(chunk, indptr=starts, keys=keys, values=values, rests=rests).ascending()

    def room_for_rests(self, most: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """An empty list of rests of at most so many numbers: see `note_rest`."""
        most = most if GAPPED in self.codes else 0
        places = np.empty((most + 1, 2), np.int64)
        places[0] = 0
        return places, np.empty(most + 1, np.float32)

    def with_rests(self, chunk: Chunk, far: tuple[Any, Any], skipped: Sequence[int] = ()) -> Chunk:
        """`chunk` with the rests in the list `far`, whose rows are numbered with those `skipped`."""
        if not (count := int(far[0][0, 0])):
            return chunk
        rows, keys = far[0][1 : count + 1].T
        rows = np.where(np.isin(rows, skipped), -1, rows - np.searchsorted(skipped, rows))
        places, rests = (rows, keys.astype(np.uint64) & self.mask), np.zeros(chunk.nnz, np.float32)
        place_rests(*places, far[1][1:], read_only(chunk.indptr), read_only(chunk.keys), rests)
        return replace(chunk, rests=rests)

    def side_columns(self, sliced: Sequence[str]) -> list[str]:
        """The columns `sliced`, and those whose cells identify, mark or, last, choose rows."""
        filters = (one.columns for one in (self.marks, self.where) if one)
        return [*dict.fromkeys([*sliced, *filter(None, [self.ids]), *chain.from_iterable(filters)])]


@dataclass(frozen=True)
class ParserMaker:
    """Makes the parsers of table files, each for one thread."""

    parser: Callable[[Sequence[ColumnEncodings], SettledLayout, Reading], Any]
    files: list[ColumnEncodings]
    heads: Sequence[Any] = ()
    """what files that are read in batches have shown"""

    def __call__(self, layout: SettledLayout, reading: Reading) -> Any:
        """Make a parser."""
        return self.parser(self.files, layout, reading)


def kinds_of(
    layout: SettledLayout, names: list[str], file: str, guesses: Sequence[str] = (), ids: str = ""
) -> ColumnEncodings:
    """How the columns of `file` are read; raises `DataError` unless they match the settled layout.

    `guesses` are the kinds that its columns look like, for messages. The column `ids`, a name or position,
    identifies rows; the training data need not have had it. Without it, that is the column of groups, if any.
    """
    identity = columns.identity(ids, names, file) if ids else layout.grouped_by
    kinds, hashes = columns.kinds_in(layout, names, file), hash_columns(names, layout.seed)
    labels, nameless = {name: k for k, name in enumerate(layout.labels)}, np.array([not one for one in names])
    keys = [labels.get(name, key) for name, key in zip(names, hashes.tolist(), strict=True)]
    looks = dict(zip(names, guesses, strict=False))
    late = [name for name in columns.unexpected(layout, names) if name != identity]
    noticed = [(LATE, name, 0, looks.get(name, "")) for name in late[:MOST_LATE]]
    noticed += [(LACKING, name, 0, "") for name in columns.lacking(layout, names)[:MOST_LATE]]
    there = {*names}
    codes = {kind: k for k, kind in enumerate(columns.KINDS)}
    if layout.gaps:
        codes[columns.NUMERIC] = GAPPED
    return ColumnEncodings(
        names,
        kinds,
        np.array([codes[kind] for kind in kinds], np.int64),
        np.array(keys, np.uint64),
        np.where(nameless, np.uint64(layout.seed), hashes),
        grams_of(layout.ngrams),
        np.uint64(layout.mask),
        of_columns(layout, names, kinds, file),
        tuple(noticed),
        identity,
        [layout.spelling_of.get(name) or columns.AS_TEXT for name in names],
        [key for key, name in numeric_keys(layout).items() if name not in there] if layout.gaps else (),
    )


def of_cells(kinds: ColumnEncodings, label: int, numerals: int = NUMERALS) -> ColumnEncodings:
    """`kinds` with `label` as the code of labels, and the codes of cells that are spelled marked as such."""
    numbers = np.array(kinds.spelling) == columns.AS_NUMBER
    marks = np.where(numbers, numerals, SPELLED * np.isin(kinds.spelling, columns.SPELLED))
    marked = np.isin(kinds.what, (columns.CATEGORICAL, columns.TEXT))
    return kinds._replace(codes=np.where(kinds.codes == LABEL, label, kinds.codes) + marks * marked)


class TableParser(BlockParser):
    """What the parsers of all tables hold: how the columns of files are read, and scratch space."""

    def __init__(self, files: Sequence[ColumnEncodings], layout: SettledLayout, reading: Reading) -> None:
        """Raises `DataError` unless the domain has as many labels as there are label columns."""
        super().__init__(reading)
        self._files, self._layout, domain = files, layout, reading.domain
        self._spans = np.zeros((MOST_SPANS + 1, 4), np.int64)  # each thread needs its own
        count = len(layout.labels) or 1
        if domain.kind == VALUES and domain.width != count and not domain.open:
            wanted = f"{domain.width} label columns ({mention(label='a,b,...')})"
            raise DataError(f"outputs values:{domain.width} needs {wanted}, not {count}")
        if domain.kind != VALUES and count > 1:
            raise DataError(f"expected one label column, found {count}; several need outputs values:{count}")


_EXPECTED = {
    line_status.NUMBER: "a finite number in column '{name}'",
    line_status.NUMBER_RANGE: "a number that is finite in float32 in column '{name}'",
    line_status.NO_LABEL: "a label in column '{name}'",
    line_status.LABEL_NUMBER: "a finite number as label in column '{name}'",
    line_status.LABEL_DOMAIN: "{meaning} in column '{name}'",
    line_status.LABEL_REPEATED: "each class once in column '{name}'",
    line_status.NO_WEIGHT: "an importance weight in column '{name}'",
    line_status.NO_OFFSET: "an offset in column '{name}'",
    line_status.OFFSET_NUMBER: "an offset that is finite in float32 in column '{name}'",
    line_status.WEIGHT_NUMBER: "an importance weight that is finite and not negative in column '{name}'",
    line_status.TOO_FEW: "{columns} columns",
    line_status.TOO_MANY: "{columns} columns",
    line_status.UNCLOSED: "a quote that ends column '{name}' on its line",
    line_status.AFTER_QUOTE: "a delimiter after the quoted column '{name}'",
    line_status.SUM_RANGE: "values of equal keys whose sum is finite in float32",
    line_status.PRODUCTS: crossing.EXPECTED,
    line_status.NUL: "text without NUL bytes",
}
"""What was expected of a row, by its outcome"""


def expected_of(outcome: int, name: str, domain: Domain, columns: int) -> str:
    """What was expected of a row, for messages."""
    return _EXPECTED[outcome].format(name=name, meaning=domain.meaning, columns=columns)


@scalar
def outcome_of(kind, value, status, empty, domain):
    """The outcome of a cell, given its number and whether it is `empty`."""
    if kind != LABEL and kind != WEIGHT and kind != OFFSET:
        if status == FINE:
            return line_status.EXAMPLE
        return line_status.NUMBER_RANGE if status == OUT_OF_RANGE else line_status.NUMBER
    if empty:
        return line_status.NO_LABEL + kind - LABEL
    if status == FINE and kind == LABEL:
        return line_status.check_label(value, domain)
    fits = status == FINE and (kind == OFFSET or value >= np.float32(0))
    return line_status.EXAMPLE if fits else line_status.LABEL_NUMBER + kind - LABEL


_SMALL = 1024
_BINS = np.array([v if v <= 2 else int(math.log(v) ** 2) + 2 for v in range(_SMALL)], np.int16)
"""Bins of small whole numbers, which most counts are."""


@scalar
def bin_of(value):
    """The bin of a number v: floor(|v|) up to 2, floor(ln(|v|)^2) + 2 above, with the sign of v."""
    size = abs(np.float64(value))
    whole = np.int64(min(size, _SMALL - 1.0))
    if whole == size:
        place = np.int64(_BINS[whole])
        return -place if value < 0 else place
    place = np.int64(math.log(size) ** 2) + 2 if size > 2.0 else np.int64(size)
    return -place if value < 0 else place


@scalar
def mask_keys(keys, start, stop, mask):
    """Keep only the bits of `mask` of the keys in [start, stop)."""
    if mask != _ALL:
        for k in range(start, stop):
            keys[k] &= mask
