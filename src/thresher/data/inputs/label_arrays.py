"""Labels in memory: one for each example, all of them text or all numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.errors import DataError, printable, shortened, shown
from thresher.data.labels import LISTED, Domain, hint_of_words

_LONGEST = 40
_MISSING = ("NoneType", "NAType", "NaTType")
"""Names of the types that mean a missing label in Python and pandas."""


def label_columns(array: NDArray[Any], domain: Domain) -> list[NDArray[Any]]:
    """Labels ``(n,)`` or ``(n, outputs)`` as columns of a table: sets of classes are one column of lists.

    Raises `DataError` for sets that are not given by 1 and 0 or -1 for each class.
    """
    if array.ndim == 1 or domain.kind != LISTED:
        return [array] if array.ndim == 1 else [*array.T]
    if not domain.open:
        domain.check(array[:, 0], array.astype(np.float32))
    lists = np.empty(len(array), object)
    lists[:] = [[] if domain.open else (int(domain.low) + np.flatnonzero(row > 0)).tolist() for row in array]
    return [lists]


def array_of(labels: Any) -> NDArray[Any]:
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
            f"labels y must be a sequence with one label per example, not {_described(labels)}{hint}"
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
        _check_alike(array.tolist())
    return array


def check_unmasked(what: str, numbers: Any) -> None:
    """Raise `DataError` for a masked array, of which numpy would take what is hidden, and 128-bit numbers."""
    if isinstance(numbers, np.ma.MaskedArray):
        raise DataError(f"{what} cannot be a masked array: remove the examples that are masked")
    if (kind := str(getattr(numbers, "dtype", ""))).endswith("Int128"):
        raise DataError(f"{what} have type {kind}, which numpy lacks: cast them, for example to Int64")


def _check_alike(labels: Sequence[Any]) -> None:
    for k, label in enumerate(labels):
        if type(label).__name__ in _MISSING or (isinstance(label, float) and label != label):
            raise DataError(f"example {k + 1} has no label ({label}): remove such examples")
        if isinstance(label, str) != isinstance(labels[0], str):
            raise DataError(
                f"labels must be all text or all numbers: example 1 has {_described(labels[0])},"
                f" example {k + 1} has {_described(label)}"
            )


def _described(value: Any) -> str:
    return shortened(printable(repr(value)), _LONGEST)


def texts_of(labels: Any) -> list[bytes] | None:
    """Labels as text, one for each example, stripped of blanks; None for numbers. Raises as `array_of`."""
    array = array_of(labels)
    if array.ndim != 1 or array.dtype.kind not in "OU" or not len(array) or not isinstance(array[0], str):
        return None
    texts = [one.strip(" \t").encode("utf-8", "surrogatepass") for one in array.tolist()]
    if b"" in texts:
        raise DataError(f"the label of example {texts.index(b'') + 1} is empty: remove such examples")
    return texts


def _whole(labels: Any) -> list[bytes] | None:
    """Whole numbers as text, one for each example; None for other labels."""
    array = array_of(labels)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or (array != np.floor(array)).any():
        return None
    return [b"%d" % number for number in array.tolist()]


def _without_words(labels: NDArray[Any], domain: Domain) -> NDArray[Any]:
    """The labels; `DataError` for a word, which has no number in this domain."""
    for k, label in enumerate(labels.tolist() if labels.dtype.kind in "OU" else ()):
        if isinstance(label, str) and (hint := hint_of_words(label.encode("utf-8", "replace"), domain)):
            raise DataError(f"the label of example {k + 1} is a word, {_described(label)}{hint}")
    return labels


def numbers_of(labels: Any, domain: Domain) -> Any:
    """Labels in memory as numbers: words become the classes of `domain`, or raise `DataError`."""
    if domain.words is None:
        array = _without_words(array_of(labels), domain)
        if domain.whole and array.dtype.kind in "iuf" and np.isfinite(array).all():
            domain.check(array, array if array.ndim == 2 else None)  # before they are rounded to float32
        return array
    texts = texts_of(labels) or (_whole(labels) if domain.words.are_numbers else None)
    if texts is None:
        return labels
    found = np.array([domain.words.number_of(text) for text in texts], np.float32)
    wrong = np.flatnonzero(~domain.allows(found))
    if len(wrong):
        raise DataError(f"example {wrong[0] + 1}: expected {domain.meaning}, found {shown(texts[wrong[0]])}")
    return found
