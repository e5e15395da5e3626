"""`open_source`: files in any format as a source of Chunks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thresher.data.errors import DataError
from thresher.data.files.looks import looks_like
from thresher.data.files.paths import expand, passes_by
from thresher.data.files.streams import head_of
from thresher.data.formats.choosing import (
    check_layout,
    format_of,
    is_in_batches,
    opener_of,
    parser_of,
    source_of,
)
from thresher.data.formats.listing import TABLES
from thresher.data.layout import AnyLayout, settled_without_columns

_FIRST = 1 << 12

if TYPE_CHECKING:
    from thresher.data.labels import Domain
    from thresher.data.sources.text import TextSource


def table_source(table: Any, **options: Any) -> TextSource:
    """The rows of `table`, which has ``__arrow_c_stream__``: see `arrow_streams.StreamSource`."""
    from thresher.data.formats.tables.arrow_streams import StreamSource

    return StreamSource(table, **options)


@contextmanager
def _hinting(name: str, said: AnyLayout) -> Iterator[None]:
    """Add to what is wrong with the columns of a file what its first line looks like."""
    try:
        yield
    except DataError as error:
        if is_in_batches(said.format) or said.delimiter or not said.header or passes_by(name):
            raise
        hint = looks_like(head_of(name, _FIRST, {}).partition(b"\n")[0], said.format)
        if not hint:
            raise
        raise DataError(f"{error}; {hint}") from error


def open_source(
    data: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    layout: AnyLayout | None = None,
    domain: str | Domain = "binary",
    on_error: str = "fail",
    threads: int | None = None,
    block_bytes: int | None = None,
    unlabelled: bool = False,
    where: str = "",
) -> TextSource:
    """The examples in files as a source of Chunks.

    `data` is a path, a URL (``s3://``, ``gs://``, ``https://``, others), a glob of either or ``-`` for
    standard input, or several of them in order; gzip, bz2, xz and zstd are found by content. `layout` says
    the format and how its columns and names become features;
    without one, or one of format ``""``, the endings of the names tell the format. `domain` says
    which labels there may be: the name of a `labels.Domain`, as ``binary`` (-1, 0 or 1), ``real`` and
    ``nonnegative``, or one itself. A bad line ends
    the pass (`on_error` ``fail``), is counted and passed over (``skip``), or also written to a file
    (``quarantine=FILE``). `threads` read and parse; None means one for each processor, at most four.
    `block_bytes` of text make a chunk. With `unlabelled`, the label of a table is not read, and 0. `where`
    says which rows of Parquet and Arrow are read (`tables.where`).

    Raises `DataError` at once for files that are missing, directories, unreadable or empty.
    """
    from thresher.data.files.blocks import BLOCK_BYTES, CROSSED_BYTES

    names = expand(data)
    said, passing = layout or AnyLayout(), dict[str, Any]()
    said = check_layout(said if said.format else replace(said, format=format_of(names)))
    chosen = {"where": where} if where else {}
    if where and not is_in_batches(said.format):
        raise DataError(f"{said.format}: rows are chosen (--where) of parquet and arrow")
    if said.format in TABLES:
        with _hinting(names[0], said):
            settled, form = opener_of(said.format)(names, said, passing, unlabelled, **chosen)
        worded = bool(form.worded)
    else:
        settled, form = settled_without_columns(said), parser_of(said.format)
        worded = False
    source: TextSource = source_of(settled)(
        names,
        settled,
        form,
        domain=domain,
        on_error=on_error,
        threads=threads,
        block_bytes=block_bytes or (CROSSED_BYTES if settled.interact else BLOCK_BYTES),
        passing=passing,
        where=where,
    )
    source.worded = worded
    return source
