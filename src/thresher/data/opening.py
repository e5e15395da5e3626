"""`open_source`: files in any format as a source of Chunks.

Before training, `with_words` finds out whether labels are words, and which.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from thresher.data.columns import CATEGORICAL, IGNORE, LIST, TEXT
from thresher.data.errors import DataError, OddFileError, quote_bytes
from thresher.data.files.paths import STDIN, display_name, expand, is_stream
from thresher.data.files.streams import Previews
from thresher.data.files.topics import WITH, is_topic
from thresher.data.files.topics import settle_topic as topic_of
from thresher.data.formats import choosing
from thresher.data.formats.listing import FORMATS, TABLES
from thresher.data.labels import MOST_CLASSES, Domain, any_words, check_repeated, is_boolean, is_number
from thresher.data.layout import (
    DELIMITERS,
    AnyLayout,
    Extension,
    Layout,
    SettledLayout,
    has_columns,
    settle_without_columns,
)
from thresher.data.source import Source
from thresher.data.sources.parsed import ParsedSource, TextSource
from thresher.data.sources.reader import TAG, OpenOptions, RowsAsked
from thresher.options.messages import mention

if TYPE_CHECKING:
    from thresher.data.formats.tables.arrow_files import StreamSource

_HEAD = 1 << 16
"""Bytes of VW text whose labels are looked at"""
Opener = Callable[[Any, Domain], Source]
"""Opens a source, given a layout and a label domain"""


def table_source(
    table: Any, *, domain: str | Domain = "binary", **options: Unpack[OpenOptions]
) -> StreamSource:
    """A source of the rows of `table`, which has ``__arrow_c_stream__``: see `arrow_streams.StreamSource`."""
    from thresher.data.formats.tables.arrow_files import StreamSource

    return StreamSource(table, domain, **options)


def _with_hint(
    error: DataError, name: str, given: AnyLayout, layout: AnyLayout | None, previews: Previews
) -> DataError:
    """An error about the columns of a file, with a hint if its first line looks like another format.

    So too if it is about options for columns, and the format was not given but implied by the name.
    """
    implied = not (layout is not None and layout.format) and " has no columns: " in str(error)
    if isinstance(error, OddFileError) or not (implied or given.format in TABLES):
        return error
    trained = isinstance(given, SettledLayout | Extension)
    plain = implied or (not given.delimiter and (given.header or trained))
    head = previews.text(name) if plain and not is_stream(name) else b""
    if implied:
        from thresher.data.files.blocks import check_is_text

        check_is_text(head, name)
    hint = choosing.hint(head, given.format, trained) if head else ""
    if implied and hint:
        return DataError(f"{name}: {hint}")
    if implied:
        which = "standard input" if is_stream(name) else f"{name}, by its name,"
        hint = f"{which} is read as {given.format}: for a table, add {mention(format='csv')}"
    return DataError(f"{error}; {hint}") if hint else error


def _in_its_format(given: AnyLayout, names: list[str], previews: Previews) -> AnyLayout:
    """The layout in the format of the files: the one that their names imply, unless it is settled.

    New data for a model of another table format are in the one of their names if they look like it, too.
    """
    settled = isinstance(given, Extension) or has_columns(given)
    if not given.format:
        form = choosing.format_of(names)
        return given.in_format(form) if settled else replace(given, format=form)
    if not settled or given.format not in TABLES or is_stream(names[0]):
        return given
    form, *others = {choosing.format_of([name]) for name in names}
    if others or form == given.format or form not in TABLES or (given.delimiter and form in DELIMITERS):
        return given
    return given.in_format(form) if choosing.format_seen(previews.text(names[0])) == form else given


def check_ids(form: str, ids: str) -> None:
    """Raise `DataError` if rows in this format have no such ids."""
    if not ids or form in TABLES or (form, ids) == ("vw", TAG):
        return
    if form == "vw":
        raise DataError(
            f"{mention('id')}: in VW text, what identifies a row is its tag: use {mention(id=TAG)}, not {ids}"
        )
    raise DataError(
        f"{mention('id')}: {FORMATS[form].title} has no ids; every row gets a line, so leave"
        f" {mention('id')} out and join the lines by their numbers"
    )


def without_columns(what: str, marked: str) -> DataError:
    """The error for a hold-out that is a condition, and data without columns."""
    return DataError(
        f"{what} no columns, and the hold-out, {marked}, is a condition on one: hold out a share,"
        f" {mention(holdout=0.1)}, or the last rows, {mention(holdout='last:0.1')}"
    )


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
    ids: str = "",
    live: bool = False,
    marked: str = "",
    previews: Previews | None = None,
) -> TextSource:
    """Open files as a source of Chunks.

    Args:
        data: A path, a URL (``s3://``, ``gs://``, ``https://``, others), a glob of either, ``-`` for standard
            input, or several of these in order. Gzip, bz2, xz and zstd are detected by content.
        layout: The format, and how columns and names become features. If None, or if its format is ``""``,
            the file names decide the format.
        domain: Which labels are allowed: a `labels.Domain` or its name, such as ``binary`` (-1, 0 or 1),
            ``real``, ``nonnegative`` or ``positive``.
        on_error: What a bad line does: ``fail`` ends the pass, ``skip`` counts and skips the line, and
            ``quarantine=FILE`` also writes it to a file.
        threads: Number of threads that read and parse; None: one per processor, at most four.
        block_bytes: Bytes of text per chunk.
        unlabelled: Whether to ignore the label of a table, and use 0.
        where: Which rows of tables to read (see `tables.where`).
        ids: A column that identifies rows, by name or position; in VW text ``tag``. `TextSource.rows` yields
            what it contains.
        live: Whether rows are wanted as soon as they have arrived: chunks also end where standard input or a
            pipe pauses, and the rows before a bad one come before its error. What a stream looks like is then
            decided by the layout and its first row.
        marked: A condition on columns, as in `where`: the rows that meet it are in one group, others in none.
        previews: What has been looked at of these files, which is not read again.

    Raises `DataError` at once if a file is missing, a directory, unreadable or empty.
    """
    from thresher.data.files.blocks import BLOCK_BYTES, CROSSED_BYTES
    from thresher.data.sources.reader import current_readers

    names, previews = expand(data), previews or Previews()
    asked = RowsAsked(unlabelled, where, ids, marked, live)
    if names[0] != STDIN and os.path.isdir(names[0]):
        raise DataError(
            f"{names[0]}: a log of rows, not a file: give it to thresher.train or evaluate as it is"
        )
    if not isinstance(layout, AnyLayout | None):
        raise DataError(f"layout must be a thresher.data.layout.Layout, not {layout!r}")
    given = layout or AnyLayout()
    alone = [one for one in names if is_stream(one) or is_topic(one)]
    if alone and current_readers.get() is not None:
        what = "a topic" if is_topic(alone[0]) else "standard input or a pipe"
        raise DataError(f"{display_name(alone[0])}: other processes cannot read {what}; give a file")
    given = choosing.check_layout(_in_its_format(given, names, previews))
    if topic := next(filter(is_topic, names), None):
        if FORMATS[given.format].batches:
            raise DataError(f"{topic}: read as lines, in which there is no {FORMATS[given.format].title}")
        if WITH in topic_of(topic).url.options and given.format != "jsonl":
            raise DataError(
                f"{topic}: columns are taken from envelopes for rows of JSON only: leave ?{WITH}= out"
            )
        if given.format in DELIMITERS and given.header:
            raise DataError(f"{topic}: its lines have no header: add {mention(header=False)}")
    try:
        check_ids(given.format, ids)
        if where and given.format not in TABLES:
            raise DataError(f"{given.format} has no columns: {mention('where')} is only for tables")
        if marked and given.format not in TABLES:
            raise without_columns(f"{given.format} has", marked)
        if given.format not in TABLES:
            settled, form = settle_without_columns(given), choosing.module_of(given.format).parser
        else:
            unseen = ids and not has_columns(given)
            without = replace(given, ignore=(*given.ignore, ids)) if unseen else given
            settled, form = choosing.module_of(given.format).open_table(names, without, previews, asked)
    except DataError as error:
        if (hinted := _with_hint(error, names[0], given, layout, previews)) is error:
            raise
        raise hinted from error
    in_batches = FORMATS[settled.format].batches
    kind = import_module("thresher.data.formats.tables.arrow_files").TableSource if in_batches else TextSource
    source: TextSource = kind(
        *(names, settled, form, given, asked._replace(ids=ids or settled.grouped_by)),
        domain=domain,
        on_error=on_error,
        threads=threads,
        block_bytes=block_bytes or (CROSSED_BYTES if settled.interact else BLOCK_BYTES),
        previews=previews,
    )
    return source


def with_words(opened: Opener, layout: Any) -> object:
    """The layout with the label words, sorted, as `classes`; `layout` itself if labels are numbers.

    Labels count as words if at least half of the examples have a label that is not a number. The data are
    read to the end only if one of the first labels is not a number. Raises `DataError` as
    `classes_among` does.
    """
    source = opened(layout, any_words())
    if not isinstance(source, ParsedSource) or not (source.may_be_words or source.layout.format == "vw"):
        return layout
    if not source.may_be_words:
        from thresher.data.formats.lines.vw import is_word

        lines = source.previews.text(source.names[0])[:_HEAD].split(b"\n")
        if not any(is_word(line.partition(b"|")[0]) for line in lines if b"|" in line):
            return layout
    kinds = tuple(IGNORE if kind in (CATEGORICAL, LIST, TEXT) else kind for kind in source.layout.kinds)
    labels = replace(source.layout, kinds=kinds, interact=(), ngrams=Layout.ngrams)
    domain, counts = any_words(), np.zeros(MOST_CLASSES, np.int64)
    with closing(opened(labels, domain).chunks()) as chunks:
        for chunk in chunks:
            counts += np.bincount(chunk.labels.astype(np.int64), minlength=len(counts))
    assert domain.words is not None
    found = {label: int(counts[k]) for k, label in domain.words.words().items() if counts[k]}
    if source.layout.columns and all(is_boolean(str(label, "utf-8", "replace")) for label in found):
        return layout  # tables: true is 1, false is 0
    classes = classes_among(found, source.names[0])
    return replace(layout or Layout(), classes=classes) if classes else layout


def classes_among(counts: Mapping[bytes, int], name: str) -> tuple[str, ...]:
    """The distinct labels, sorted, or none if more than half of the examples have a number as label.

    `counts` has the number of examples of each label; `name` is the file, for messages. Raises
    `DataError` if there is only one label, one is not UTF-8, or very many occur once.
    """
    words = sum(count for label, count in counts.items() if not is_number(label))
    if 2 * words < sum(counts.values()):
        return ()
    if len(counts) == 1:
        raise DataError(f"{name}: all labels are {quote_bytes(*counts)}: there must be at least two classes")
    check_repeated(len(counts), sum(counts.values()), name)
    swapped = {ord("-"): "+", ord("+"): "-"}  # by code point, but + is the positive class of + and -
    try:
        return tuple(sorted((label.decode() for label in counts), key=lambda word: word.translate(swapped)))
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: the label {quote_bytes(error.object)} is not UTF-8") from error
