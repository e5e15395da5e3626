"""Sparse DataFrames of pandas.

Only the values that are not 0 are read; columns are numeric and have names.
"""

from __future__ import annotations

from typing import Any

from thresher.data.chunk import Place
from thresher.data.columns import ABSENT, EMPTY, IGNORE, LABEL, NUMERIC, WEIGHT, check_same, kinds_in
from thresher.data.errors import DataError
from thresher.data.features.murmur import hash_bytes
from thresher.data.inputs.arrays import chunk_of
from thresher.data.labels import Domain
from thresher.data.layout import AnyLayout, SettledLayout, has_columns
from thresher.data.source import Chunks, MemorySource

_PLAIN = {NUMERIC, LABEL, WEIGHT, ABSENT, EMPTY, IGNORE}
"""Kinds of columns in a layout that a sparse frame can have."""
_NAME = "the table"


def is_sparse_frame(table: Any) -> bool:
    """Whether `table` is a sparse DataFrame. `DataError` if it is partly sparse."""
    if not hasattr(table, "iloc") or getattr(table, "ndim", 2) != 2:
        return False
    sparse = {kind for kind in set(table.dtypes) if str(kind).startswith("Sparse")}
    if not sparse:
        return False
    kinds = [kind in sparse for kind in table.dtypes]
    if not all(kinds):
        name = table.columns[kinds.index(True)]
        raise DataError(f"column {name!r} is sparse, but others are not: make it dense (.sparse.to_dense())")
    return True


def matrix_of(frame: Any) -> Any:
    """The values of a sparse frame as a sparse matrix; as a dense frame if they are not sparse around 0."""
    if all(kind.fill_value == 0 for kind in frame.dtypes):
        return frame.sparse.to_coo()
    return frame.sparse.to_dense()


def is_named(frame: Any) -> bool:
    """Whether the columns have names: anything but their positions."""
    return list(frame.columns) != list(range(frame.shape[1]))


def reads_sparsely(frame: Any, layout: AnyLayout | None) -> bool:
    """Whether a frame can be read with this layout without its zeros."""
    if not all(kind.fill_value == 0 for kind in frame.dtypes):
        return False
    return layout is None or (not layout.interact and (not has_columns(layout) or {*layout.kinds} <= _PLAIN))


class SparseFrameSource(MemorySource):
    """The rows of a sparse frame; the key of a column is the hash of its name, as in any table."""

    nameable = True

    def __init__(
        self, frame: Any, y: Any, weights: Any, domain: str | Domain, settled: SettledLayout
    ) -> None:
        """`settled`: the layout as `settled_for` gives it, with names for labels."""
        names = [str(name) for name in frame.columns]
        kinds = kinds_in(settled.unlabelled(), names, _NAME)
        check_same(settled, names, _NAME)
        used = [k for k, kind in enumerate(kinds) if kind == NUMERIC]
        self._keys = {hash_bytes(names[k].encode(), settled.seed) & settled.mask: names[k] for k in used}
        chunk = chunk_of(frame.iloc[:, used].sparse.to_coo(), y, weights, keys=[*self._keys])
        super().__init__(chunk, domain, layout=settled)

    def chunks(self, start: Place | None = None) -> Chunks:
        """The rows; names are those of the columns."""
        if self.namer is not None:
            self.namer.add({key: name.encode() for key, name in self._keys.items()})
        yield from super().chunks(start)


def settled_for(frame: Any, layout: AnyLayout | None) -> SettledLayout:
    """The layout of the training data; of new data, one in which all columns are numeric."""
    if layout is not None and has_columns(layout):
        return layout
    names = [str(name) for name in frame.columns]
    shared = {} if layout is None else layout.shared()
    return SettledLayout(**shared, columns=tuple(names), kinds=(NUMERIC,) * len(names))
