"""Examples in memory: sparse and dense matrices, rows as dictionaries of features, texts; and labels."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher.data.chunk import Chunk, StreamPosition, ascends, check_starts
from thresher.data.errors import DataError, nonfinite, printable, quote_bytes, shorten
from thresher.data.feature_specs import grams_of
from thresher.data.features.murmur import hash_bytes, seed_of
from thresher.data.features.ngrams import rows_of_texts
from thresher.data.labels import Domain, domain_of, hint_of_words
from thresher.data.layout import AnyLayout, SettledLayout
from thresher.data.report import Report
from thresher.data.source import Chunks, Source
from thresher.data.text.numbers import OVERFLOW
from thresher.engine.centring import FAR as FAR
from thresher.engine.centring import FARTHEST

MATRIX, TABLE, ROWS, TEXTS = "a matrix", "a table", "dictionaries", "texts"
"""Forms of examples"""
STREAM = "__arrow_c_stream__"
"""The method that marks a table."""
_ROWS = 1 << 12
"""Rows per chunk when reading a stream of pairs."""
_NAMES = 1 << 20
"""How many names `RowReader` remembers the keys of."""
_SHORT = 100
"""Characters of a name whose key is remembered for longer."""
Csr = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Starts of rows (n + 1,), keys or columns (nnz,), values (nnz,)"""


def form_of(X: object) -> str:
    """The form of examples: `TABLE` if Arrow can read them; `ROWS` or `TEXTS` by the first; else `MATRIX`."""
    sides = getattr(X, "ndim", 1 if hasattr(X, "num_chunks") else len(getattr(X, "shape", (0, 0))))
    if hasattr(X, STREAM) and sides == 2:
        return TABLE
    is_one = hasattr(X, "tocsr") or isinstance(X, str | bytes | Mapping | Set)
    if is_one or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__iter__"):
        return MATRIX
    first = next((one for one in X if not is_missing(one)), None)
    return ROWS if isinstance(first, Mapping) else TEXTS if isinstance(first, str) else MATRIX


def chunk_of(
    X: Any,
    y: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    seed: int = 0,
    text: str = "words=1",
    gaps: bool = False,
    naming: object = None,
) -> Chunk:
    """Convert a matrix, rows of named features, or texts to one Chunk.

    `X` is ``(n, d)``: a scipy sparse matrix or array of any format and index type (explicit zeros are
    kept), anything dense that numpy can convert, a sequence of n mappings (see `RowReader`), or a
    sequence of n strings; `text` sets which n-grams are features (see `grams_of`). The key of a matrix
    column is its index, that of a name or n-gram its hash, seeded by `seed`. With `gaps`, for columns that
    are centred, a row says what is missing and what float32 loses of large numbers (see `engine.centring`).
    `naming` receives the names of n-grams (see `rows_of_bytes`).
    `y` is ``(n,)`` or ``(n, outputs)``, default zeros; `weights` ``(n,)`` are importance weights. Raises
    `DataError` if shapes disagree or a number is not finite in float32.

    >>> chunk_of(np.array([[0.0, 2.0], [3.0, 0.0]]), [1, -1]).keys
    array([1, 0], dtype=uint64)
    """
    form, missing = form_of(X), None
    if hasattr(X, "tocsr"):
        check_stored(X)
        matrix = X.tocsr()
        # `Chunk.from_csr` checks the rest
        indptr, places, values = matrix.indptr, matrix.indices, matrix.data
        if places.dtype == np.int64 and places.min(initial=0) >= 0:
            places = places.view(np.uint64)
    elif form == ROWS:
        indptr, places, values = RowReader(seed).rows(X)
    elif form == TEXTS:
        texts = ["" if is_missing(one) else one for one in X]
        indptr, places, values = rows_of_texts(texts, grams_of(text), seed, naming)
    else:
        (indptr, places, values), missing = nonzeros(_numbers_in(X), X, gaps)
    labels = np.zeros(len(indptr) - 1, np.float32) if y is None else y
    starts = np.asarray(indptr, np.int64)
    rests = rests_of(values, missing) if gaps else None
    return Chunk.from_csr(starts, places, values, labels, weights, rests)


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, and NA and NaT of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def check_stored(X: Any) -> None:
    """Refuse a sparse matrix that is not two-dimensional, or is damaged, before SciPy converts it to CSR.

    SciPy does not check arrays that were changed after the matrix was made, and would access memory outside
    them. Matrices of other libraries are left to their own checks.
    """
    if (sides := getattr(X, "ndim", 2)) != 2:
        raise DataError(f"a matrix of examples must be two-dimensional, not {sides}-dimensional")
    if not any(base.__module__.startswith("scipy.sparse") for base in type(X).__mro__):
        return

    def within(indices: NDArray[Any], size: int) -> bool:
        unsigned = indices.view(indices.dtype.str.replace("i", "u"))  # in which negative ones are large
        return not indices.size or int(unsigned.max()) < size

    (rows, columns), sound = X.shape, True
    if X.format == "coo":
        sound = len(X.row) == len(X.col) == len(X.data) and within(X.row, rows) and within(X.col, columns)
    elif X.format in ("csc", "bsr"):
        high, wide = X.blocksize if X.format == "bsr" else (1, 1)
        lines, across = (columns, rows) if X.format == "csc" else (rows // high, columns // wide)
        starts, last = X.indptr, min(len(X.indices), len(X.data))
        sound = len(starts) == lines + 1 and ascends(starts, last) and within(X.indices[: starts[-1]], across)
    elif X.format == "dia":
        sound = len(X.offsets) == len(X.data)
    elif X.format == "csr":
        check_starts(X.indptr, min(len(X.indices), len(X.data)))
        if not within(X.indices, columns):
            wrong = int(np.argmax(X.indices.astype(np.uint64)))
            row = int(np.searchsorted(X.indptr, wrong, "right")) - 1
            raise DataError(f"X[{row}, {X.indices[wrong]}] is beyond the last column, {columns - 1}")
    if not sound:
        kind = X.format.upper()
        raise DataError(f"a damaged {kind} matrix: an index is out of range or an array is too short")


def rests_of(
    values: NDArray[np.generic], missing: NDArray[np.bool_] | None = None
) -> NDArray[np.float32] | None:
    """What float32 loses of large `values` (nnz,): see `engine.centring`; NaN for what is `missing`."""
    rests, wide = np.zeros(len(values), np.float32), np.asarray(values)
    if wide.dtype.kind in "fiu" and (wide.dtype.itemsize > 4 or wide.dtype.kind != "f"):
        with np.errstate(all="ignore"):
            wide = wide.astype(np.float64, copy=False)
            far = (np.abs(wide) >= FAR) & (np.abs(wide) < FARTHEST)
            rests[far] = (wide - wide.astype(np.float32))[far]
    if missing is not None:
        rests[missing] = np.nan
    return rests if (rests != 0).any() else None


_NO_NUMBERS = {
    "c": ": take real and imaginary parts as columns of their own",
    "M": ": make numbers of the times, such as hours since the first",
    "m": ": make numbers of the durations, such as hours",
}
"""Kinds of dtypes that numpy would convert to numbers which say something else."""


def _numbers_in(X: Any) -> NDArray[Any]:
    """The numbers of a dense matrix ``(n, d)``."""
    if isinstance(X, np.ma.MaskedArray):
        raise DataError("masked arrays are not supported: fill in what is masked, for example X.filled(0.0)")
    try:
        table = np.asarray(X)
        if table.dtype.kind in _NO_NUMBERS:
            raise TypeError(f"its dtype is {table.dtype}{_NO_NUMBERS[table.dtype.kind]}")
        if table.dtype.kind not in "fiub":
            table = X.to_numpy(np.float64, na_value=np.nan) if _is_pandas(X) else table.astype(np.float64)
    except (TypeError, ValueError) as error:
        how = '; for features with names give rows, such as .to_dict("records")' * hasattr(X, "to_dict")
        what = f"the matrix of examples contains a value that is not a number: {error}{how}"
        raise DataError(what) from error
    if table.shape == (0,):
        raise DataError("no examples")
    if table.ndim != 2:
        raise DataError(f"a matrix of examples must be two-dimensional, found shape {table.shape}")
    return table


def nonzeros(numbers: NDArray[Any], X: Any, gaps: bool) -> tuple[Csr, NDArray[np.bool_] | None]:
    """CSR arrays of `numbers` (n, d), converted from X, and, with `gaps`, which of them are missing, as 0.

    Conversion turned a null of a table, which adds no feature otherwise, into NaN. In pandas every NaN is a
    null; other tables distinguish the two, and there a NaN stays NaN.
    """
    there, nulls = numbers != 0, None
    if hasattr(X, STREAM) and numbers.dtype.kind == "f" and np.isnan(numbers).any():
        if _is_pandas(X):
            nulls = np.asarray(X.isna(), bool)
        else:
            import pyarrow as pa

            columns = pa.RecordBatchReader.from_stream(X).read_all().columns
            nulls = np.column_stack([column.is_null().to_numpy() for column in columns])
        there, numbers = there & (gaps | ~nulls), np.where(nulls, numbers.dtype.type(0), numbers)
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(there, axis=1))])
    width = numbers.shape[1]
    if starts[-1] == numbers.size:  # as of most tables of numbers, in a fifth of the time
        keys = np.tile(np.arange(width, dtype=np.uint64), len(numbers))
        return (starts, keys, numbers.reshape(-1)), None if nulls is None else nulls.reshape(-1)
    rows, places = np.nonzero(there)
    found = starts, np.ascontiguousarray(places).view(np.uint64), numbers[rows, places]
    return found, nulls[rows, places] if gaps and nulls is not None else None


def _is_pandas(X: object) -> bool:
    return hasattr(X, "isna") and hasattr(X, "iloc")


_TEXTS = str, bytes  # quicker than the type of both


def _describe_wrong(name: str, value: Any) -> str:
    """A value that is no feature, and what to do."""
    what = f"{value!r:.40} ({type(value).__name__})"
    if isinstance(value, Mapping):
        inner = next(iter(value), "name")
        return f"{what}: give its values names of their own, such as {name + '.' + str(inner)!r}"
    if hasattr(value, "isoformat"):
        return f"{what}: give a text, or a number such as days since the first"
    return what


@dataclass
class RowReader:
    """Converts rows given as dictionaries to keys and values.

    A feature is ``name: number`` (a bool is 0 or 1), whose key is the hash of the name; ``name: text``, a
    category, with value 1 and as key the hash of the text in the namespace of the name; or
    ``id: number``, whose key is the whole number `id`. In ``name: list``, also a tuple or a set, each text or
    whole number is a category. None (missing) and 0 add no feature.
    """

    seed: int = 0
    known: dict[Any, int] = field(default_factory=dict)
    """the keys of names, as far as they are remembered"""

    def rows(self, rows: Iterable[Mapping[Any, Any]], before: int = 0) -> Csr:
        """CSR arrays of the rows, which are numbered after the `before` earlier ones.

        Raises `DataError`, naming the row and feature.
        """
        starts, keys, values = [0], list[int](), list[float]()
        for place, row in enumerate(rows, before + 1):
            if type(row) is not dict and not isinstance(row, Mapping):
                raise DataError(f"row {place}: expected a mapping of names to values, found {row!r:.40}")
            self.add(row, keys, values, place)
            starts.append(len(keys))
        return np.array(starts, np.int64), np.array(keys, np.uint64), np.array(values, np.float64)

    def add(self, row: Mapping[Any, Any], keys: list[int], values: list[float], place: int) -> None:
        """Add the features of row number `place` to `keys` and `values`. `DataError`."""
        known = self.known
        for name, value in row.items():
            kind = type(value)  # shortcuts for what is known
            if kind is float or kind is int:
                if name in known and 0 < abs(value) < OVERFLOW and type(name) is str:
                    keys.append(known[name])
                    values.append(value)
                    continue
            elif kind is str:
                if (name, value) in known:
                    keys.append(known[name, value])
                    values.append(1.0)
                    continue
            elif value is None:
                continue
            try:
                found, amount = self._feature(name, value)
            except (TypeError, ValueError, OverflowError) as error:
                raise DataError(f"row {place}, feature {name!r}: {error}") from error
            keys += found
            values += [amount] * len(found)

    def _feature(self, name: Any, value: Any) -> tuple[list[int], float]:
        """The keys that ``name: value`` adds, and the value of each."""
        named = isinstance(name, str)
        if name == "":  # whose hash would pass for the id 0
            raise ValueError("a feature needs a name")
        if isinstance(value, _TEXTS):
            if not named:
                raise TypeError("a category needs a name, not a number")
            return [self._key((name, value if isinstance(value, str) else value.decode()))], 1.0
        if not named:
            whole = isinstance(name, int | float | np.integer | np.floating) and 0 <= name < 1 << 64
            if not whole or name != int(name):
                raise ValueError("a feature name must be text or a whole number from 0 to 2**64 - 1")
        if named and isinstance(value, list | tuple | Set):
            there = [one for one in value if not is_missing(one) and one != ""]
            for one in there:
                if isinstance(one, bool) or not isinstance(one, str | int | np.integer):
                    raise TypeError(
                        f"a list must hold texts or whole numbers, found {_describe_wrong(name, one)}"
                    )
            return [self._key((name, one if isinstance(one, str) else str(one))) for one in there], 1.0
        try:
            amount = float(value)
        except (TypeError, ValueError) as error:
            if is_missing(value):
                return [], 0.0
            if not named:
                raise
            expected = "expected a number, a text or a list of texts"
            raise TypeError(f"{expected}, found {_describe_wrong(name, value)}") from error
        if not abs(amount) < OVERFLOW:
            hint = "; for a missing value, give None or leave it out" if amount != amount else ""
            raise ValueError(f"expected a finite number, found {nonfinite(amount)}{hint}")
        key = self._key(name) if named else int(name)
        return [key] if amount else [], amount

    def names(self) -> dict[int, bytes]:
        """Names of the features read, by key, as far as they are remembered."""
        return {
            key: (name if isinstance(name, str) else "=".join(name)).encode()
            for name, key in self.known.items()
        }

    def _key(self, name: str | tuple[str, str]) -> int:
        """The key of a feature, or of a text in the namespace of a name. `DataError`."""
        found = self.known.get(name)
        if found is None:
            if len(self.known) >= _NAMES:
                self.known = {}  # not cleared: another thread may be in a row
            size = len(name) if isinstance(name, str) else sum(map(len, name))
            try:
                found = (_hash_of if size <= _SHORT else _hash_of.__wrapped__)(name, self.seed)
            except UnicodeEncodeError as error:
                raise DataError(f"half of a character (a lone surrogate) in {error.object!a:.40}") from error
            self.known[name] = found
        return found


@lru_cache(1 << 16)  # a model that learns row by row meets the same names in reader after reader
def _hash_of(name: str | tuple[str, str], seed: int) -> int:
    if isinstance(name, str):
        return hash_bytes(name.encode(), seed)
    return hash_bytes(name[1].encode(), seed_of(name[0], seed))


class PairSource(Source):
    """A source that reads ``(row, label)`` or ``(row, label, weight)`` pairs, with rows as in `RowReader`.

    An iterator can be read once; any other iterable is rereadable. Chunks have 4,096 rows. In a
    `StreamPosition`, `offset` counts chunks and `line` counts rows.
    """

    nameable = True

    def __init__(
        self,
        pairs: Iterable[Any],
        domain: str | Domain = "real",
        layout: AnyLayout | None = None,
        seed: int = 0,
    ) -> None:
        """The `layout` says which words are labels, and whether gaps are kept."""
        super().__init__()
        words, self._gaps = (layout.classes, layout.gaps) if layout else ((), False)
        self._pairs, self._domain, self._seed = pairs, domain_of(domain).of_words(words), seed
        self.rereadable = iter(pairs) is not pairs
        self.words = self._domain.words if self._domain.most else None
        self.layout = SettledLayout(classes=words) if words else None

    def chunks(self, start: StreamPosition | None = None) -> Chunks:
        """The rows in order; raises `DataError` at the first chunk with an invalid row."""
        if start is None:
            self.report = Report()
        place = start or StreamPosition(0, 0, 0)
        reader, pairs = RowReader(self._seed), iter(self._pairs)
        deque(islice(pairs, place.line), 0)
        while taken := list(islice(pairs, _ROWS)):
            for number, pair in enumerate(taken, place.line + 1):
                if not (isinstance(pair, tuple) and len(pair) in (2, 3) and isinstance(pair[0], Mapping)):
                    raise DataError(f"row {number}: expected (mapping, label) or (mapping, label, weight)")
            rows = reader.rows((pair[0] for pair in taken), place.line)
            try:
                weights = [pair[2] if len(pair) == 3 else 1.0 for pair in taken]
                labels = numbers_of([pair[1] for pair in taken], self._domain)
                rests = rests_of(rows[2]) if self._gaps else None
                chunk = Chunk.from_csr(*rows, labels, weights, rests)
                self._domain.check(chunk.labels, chunk.targets)
            except DataError as error:
                last = place.line + len(taken)
                raise DataError(f"rows {place.line + 1} to {last}: {error}") from error
            if self.namer is not None:
                self.namer.add(reader.names())
                reader = RowReader(self._seed)
            after = StreamPosition(0, place.offset + 1, place.line + len(taken))
            self.report.add(len(taken), len(taken))
            yield chunk.at(place, after)
            place = after
        if self.report.examples == 0:
            raise DataError("no examples")


_LONGEST = 40


def array_of(labels: object) -> NDArray[Any]:
    """Labels as an array ``(n,)`` or ``(n, outputs)``; text is stored as objects.

    Raises `DataError` if labels are not a sequence, mix text and numbers, or are missing.
    """
    check_unmasked("labels y", labels)
    try:
        array = np.asarray(labels)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"labels y cannot be converted to an array: {error}") from error
    if array.ndim == 0:
        hint = f"; if that is a column of the data, use label={labels!r}" if isinstance(labels, str) else ""
        raise DataError(
            f"labels y must be a sequence with one label per example, not {_describe(labels)}{hint}"
        )
    if array.dtype.kind in "Mm":
        raise DataError(
            f"labels y are times ({array.dtype}): convert them to numbers, such as hours since the first"
        )
    if array.dtype.kind not in "OU":
        return array
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    elif array.ndim == 1 and isinstance(labels, list | tuple):
        array = np.fromiter(labels, object, len(labels))  # numpy turns the numbers in [1, "a"] to text
    if array.ndim == 1 and array.dtype.kind == "O":
        listed = array.tolist()
        for k, label in enumerate(listed):
            if is_missing(label):
                raise DataError(f"example {k + 1} has no label ({label}): remove such examples")
            if isinstance(label, str) != isinstance(listed[0], str):
                raise DataError(
                    f"labels must be all text or all numbers: example 1 has {_describe(listed[0])},"
                    f" example {k + 1} has {_describe(label)}"
                )
    return array


def check_unmasked(what: str, numbers: object) -> None:
    """Raise `DataError` for a masked array, of which numpy would take what is hidden, and 128-bit numbers."""
    if isinstance(numbers, np.ma.MaskedArray):
        raise DataError(f"{what} cannot be a masked array: remove the examples that are masked")
    if (kind := str(getattr(numbers, "dtype", ""))).endswith("Int128"):
        raise DataError(f"{what} have type {kind}, which numpy lacks: cast them, for example to Int64")


def _describe(value: object) -> str:
    return shorten(printable(repr(value)), _LONGEST)


def label_texts(labels: object) -> list[bytes] | None:
    """Labels as text, one for each example, stripped of blanks; None for numbers. Raises as `array_of`."""
    array = array_of(labels)
    if array.ndim != 1 or array.dtype.kind not in "OU" or not len(array) or not isinstance(array[0], str):
        return None
    texts = [one.strip(" \t").encode("utf-8", "surrogatepass") for one in array.tolist()]
    if b"" in texts:
        raise DataError(f"the label of example {texts.index(b'') + 1} is empty: remove such examples")
    return texts


def numbers_of(labels: object, domain: Domain) -> Any:
    """Labels in memory as numbers: words become the classes of `domain`, or raise `DataError`."""
    array = array_of(labels)
    if domain.words is None:
        for k, label in enumerate(array.tolist() if array.dtype.kind in "OU" else ()):
            if isinstance(label, str) and (hint := hint_of_words(label.encode("utf-8", "replace"), domain)):
                raise DataError(f"the label of example {k + 1} is a word, {_describe(label)}{hint}")
        if domain.whole and array.dtype.kind in "iuf" and np.isfinite(array).all():
            domain.check(array, array if array.ndim == 2 else None)  # before they are rounded to float32
        return array
    texts = label_texts(array)
    if not texts and (domain.most or domain.words.are_numbers):
        plain = array.ndim == 1 and array.dtype.kind in "iuf" and np.isfinite(array).all()
        if plain and (array == np.floor(array)).all():
            texts = [b"%d" % number for number in array.tolist()]
    if texts is None and domain.most:
        raise DataError("labels are texts or whole numbers: one class for each example")
    if texts is None:
        return labels
    found = np.array([domain.words.number_of(text) for text in texts], np.float32)
    wrong = np.flatnonzero(~domain.allows(found))
    if len(wrong):
        raise DataError(
            f"example {wrong[0] + 1}: expected {domain.meaning}, found {quote_bytes(texts[wrong[0]])}"
        )
    return found
