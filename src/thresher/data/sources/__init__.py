"""Where Chunks come from: one module per format, and `open_source`, which finds it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from thresher.data.layout import Layout
from thresher.data.sources.formats import check_layout, format_of, parser_of
from thresher.data.sources.streams import expand

if TYPE_CHECKING:
    from thresher.data.sources.text import TextSource


def open_source(
    data: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    layout: Layout | None = None,
    domain: str = "binary",
    on_error: str = "fail",
    threads: int | None = None,
    block_bytes: int | None = None,
) -> TextSource:
    """The examples in files as a source of Chunks.

    `data` is a path, a glob or ``-`` for standard input, or several of them in order; gzip, bz2,
    xz and zstd are found by content. `layout` says the format and how its columns and names become features;
    without one the endings of the names tell the format, and all else is as `Layout` has it. `domain` says
    which labels there may be: ``binary`` (-1, 0 or 1), ``real``, ``nonnegative`` or another of
    `data.labels`. A bad line ends
    the pass (`on_error` ``fail``), is counted and passed over (``skip``), or also written to a file
    (``quarantine=FILE``). `threads` read and parse; None means one for each processor, at most four.
    `block_bytes` of text make a chunk.

    Raises `DataError` at once for files that are missing, directories, unreadable or empty.
    """
    from thresher.data.sources.blocks import BLOCK_BYTES
    from thresher.data.sources.text import TextSource

    names = expand(data)
    layout = layout or Layout("")
    layout = check_layout(layout if layout.format else replace(layout, format=format_of(names)))
    return TextSource(
        names,
        layout,
        parser_of(layout.format),
        domain=domain,
        on_error=on_error,
        threads=threads,
        block_bytes=block_bytes or BLOCK_BYTES,
    )
