"""Datasets of Ray as tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

_ROWS = 1 << 16


def is_dataset(data: Any) -> bool:
    """Whether `data` is a ``ray.data.Dataset``; does not import Ray."""
    return type(data).__module__.startswith("ray.data.") and hasattr(data, "iter_batches")


class DatasetTable:
    """The rows of a ``ray.data.Dataset``, in its order, as a stream of Arrow batches: a new one each time."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow stream, for ``pyarrow.RecordBatchReader.from_stream``."""
        import pyarrow as pa

        batches = self._batches()
        first = [*islice(batches, 1)]
        schema = first[0].schema if first else pa.schema([])
        stream = pa.RecordBatchReader.from_batches(schema, chain(first, batches))
        return stream.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[Any]:
        from ray.data import DataContext

        options = DataContext.get_current().execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            for table in self._dataset.iter_batches(batch_size=_ROWS, batch_format="pyarrow"):
                yield from table.to_batches()
        finally:
            options.preserve_order = before
