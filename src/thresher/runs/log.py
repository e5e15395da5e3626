"""What a log holds: its figures, its last records, and whether it is whole."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from thresher.data.chunk import Chunk
from thresher.data.errors import DataError, printable
from thresher.data.features.names import numeric_keys
from thresher.data.labels import domain_of
from thresher.data.log import records, segments
from thresher.data.log.source import LogOrigin, check_rows
from thresher.data.offsets import may_have_offsets, split_offsets
from thresher.learning.inspection.formatting import figure_lines, shown
from thresher.options.messages import as_shown, flag_of

_ROWS_SHOWN, _FEATURES_SHOWN = 10, 20
"""maximum number of rows of a record, and of features of a row, as text"""


class LogInfo(dict[str, Any]):
    """The content of a log; printed, what ``thresher log`` prints."""

    def __repr__(self) -> str:
        """One line per figure, then the last records."""
        figures = {name: value for name, value in self.items() if name != "last" and value is not None}
        columns = figures.pop("columns", [])
        figures |= {"columns": ", ".join(columns)} if columns else {}
        lines = figure_lines(figures)
        for one in self["last"]:
            lines += ["", *_told_record(one)]
        return as_shown("\n".join(lines))


def contents_of(folder: str | Path, last: int = 0) -> LogInfo:
    """The content of ``thresher log --json``: all of a log is read and checked.

    `LogError` if the folder is not a log; what is damaged is among the figures.
    """
    paths = segments.segment_paths(folder)
    origin, segment = LogOrigin(None, "open", ""), None
    first: segments.LogRecord | None = None
    end: segments.LogRecord | None = None
    count = promoted = keys = 0
    waiting, newest, damage = set[str](), deque[segments.LogRecord](maxlen=last), None
    try:
        for some in segments.records_from(folder):
            path = max(one for one in paths if int(one.stem) <= some.begin.offset)
            if segment is None or path != segment.path:
                segment = segments.read_segment(path)
                origin = LogOrigin.of(segment.origin)
            try:
                check_rows(some.rows(), origin.domain, origin.layout)
                fit = True
            except DataError:  # of many records at once; which of them?
                fit = False
            for one in some:
                kind = one.head.kind
                try:
                    if kind in (records.KEPT, records.LABELS) or (kind == records.ROWS and not fit):
                        domain = "open" if kind == records.KEPT else origin.domain
                        check_rows(one.rows(), domain, origin.layout)
                    note = one.note()
                except DataError as error:
                    place = one.offset - segment.begin.offset + segment.header
                    where = f"{segment.path}: byte {place:,}, after row {one.head.row:,}"
                    raise segments.LogError(f"{where}: {error}") from error
                if kind == records.KEPT:
                    waiting.update(note.get("ids", []))
                else:
                    waiting.difference_update(note.get("ids", []), note.get("expired", ()))
                    waiting.update(note.get("kept", ()))
                count, promoted, keys = (
                    count + 1,
                    promoted + (kind == records.PROMOTED),
                    keys + ("key" in note),
                )
                first, end = first or one, one
            newest.extend(some)
    except segments.LogError as error:
        damage = str(error)
    begin, layout, unfinished = first.head.row if first else 0, origin.layout, None
    if damage is None:  # what is left of a write that was cut short
        tail = segments.read_segment(paths[-1])
        unfinished = tail.end - (end.end.offset if end else tail.begin.offset)
    found = {
        "log": str(folder),
        "rows": end.end.row - begin if end else 0,
        "first_row": begin + 1 if end else None,
        "last_row": end.end.row if end else None,
        "records": count,
        "waiting_for_labels": len(waiting),
        "keys": keys,
        "promoted": promoted,
        "first_time": _time(first.head.time) if first else None,
        "last_time": _time(end.head.time) if end else None,
        "segments": len(paths),
        "bytes": sum(path.stat().st_size for path in paths),
        "unfinished_bytes": unfinished,
        "model": origin.model,
        "labels": origin.domain,
        "format": layout.format if layout else None,
        "columns": [*layout.columns] if layout else [],
        "damage": damage,
    }
    names = numeric_keys(layout)
    return LogInfo({**found, "last": [_record(one, origin, names) for one in newest]})


def _time(microseconds: int) -> str | None:
    if not microseconds:
        return None
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} microseconds"
    return when.isoformat().replace("+00:00", "Z")


def _record(one: segments.LogRecord, origin: LogOrigin, names: dict[int, str]) -> dict[str, Any]:
    """A record as JSON shows it."""
    head, note = one.head, one.note()
    found = {"kind": records.KINDS[head.kind], "after_row": head.row, "time": _time(head.time), **note}
    if head.kind not in (records.ROWS, records.KEPT, records.LABELS):
        return found
    chunk = one.rows()
    ids = next((note[name] for name in ("ids", "kept", "expired") if name in note), None)
    found.pop("ids", None)
    rows = [_row(chunk.rows(k, k + 1), origin, names, head.kind != records.KEPT) for k in range(len(chunk))]
    for k, row in enumerate(rows):
        rows[k] = {"row": head.row + k + 1} | row if head.kind == records.ROWS else row
        rows[k] = {"id": ids[k]} | rows[k] if ids and len(ids) == len(rows) else rows[k]
    return {**found, "rows": rows}


def _row(chunk: Chunk, origin: LogOrigin, names: dict[int, str], labelled: bool) -> dict[str, Any]:
    found = dict[str, Any]()
    if labelled and chunk.targets is not None:
        found["label"] = chunk.targets[0].tolist()
    elif labelled:
        found["label"] = label = chunk.labels.item(0)
        words, domain = origin.layout and origin.layout.classes, domain_of(origin.domain)
        if words and domain.has_classes:  # those of the model
            step = (domain.high - domain.low) / (len(words) - 1)
            found["label"] = words[max(round((label - domain.low) / step), 0)]
    if may_have_offsets(chunk):
        chunk, offsets = split_offsets(chunk)
        found["offset"] = offsets.item(0)
    features = zip(chunk.keys.tolist(), chunk.values.tolist(), strict=True)
    named = {names.get(key, str(key)): value for key, value in features}
    return {**found, "importance": chunk.weights.item(0), "features": named}


def _told_record(one: dict[str, Any]) -> list[str]:
    """A record in lines."""
    more = [f"{name} {printable(one[name])}" for name in ("key", "model") if name in one]
    more += [f"ids {printable(', '.join(one['ids']))}"] if "ids" in one else []
    lines = ["  ".join([f"{one['kind']} after row {one['after_row']:,}", shown(one["time"]), *more])]
    rows = one.get("rows", [])
    lines += ["  " + _told_row(row) for row in rows[:_ROWS_SHOWN]]
    if len(rows) > _ROWS_SHOWN:
        lines.append(f"  ... and {len(rows) - _ROWS_SHOWN:,} more rows: {flag_of('json')} has all")
    return lines


def _told_row(row: dict[str, Any]) -> str:
    features = [f"{printable(name)}={shown(value)}" for name, value in row["features"].items()]
    more = len(features) - _FEATURES_SHOWN
    features[_FEATURES_SHOWN:] = [f"... and {more:,} more"] if more > 0 else []
    parts = [f"row {row['row']:,}"] if "row" in row else []
    parts += [f"id {printable(row['id'])}"] if "id" in row else []
    parts += [f"label {shown(row['label'])}"] if "label" in row else []
    parts += [f"importance {shown(row['importance'])}"] if row["importance"] != 1 else []
    return "  ".join([*parts, *features])
