"""A model as an SQL query over a table, for DuckDB and PostgreSQL.

Products are those of float32, but SQL adds them up in the order of the columns, not of the keys. A category
is compared by its name, so every weight needs one.

A table may have columns of any name. So its own are always qualified, and those of the query come before
them: of columns with one name, DuckDB takes the first, and PostgreSQL refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from thresher.data.columns import AS_BOOLEAN, AS_NUMBER, AS_TEXT, BINS, CATEGORICAL, NUMERIC, TEXT
from thresher.data.errors import DataError
from thresher.data.features.murmur import hash_bytes
from thresher.data.text.numbers import NUMBER
from thresher.engine.centring import FAR
from thresher.exporting import description
from thresher.exporting.description import OTHER_TARGETS, ExportedColumn, ExportedModel, Link, RawPrediction
from thresher.options.messages import mention, mention_command

_HEAD = """-- A model as a query, written by thresher. Put the name of your table in place of "rows" below.
-- Its columns have the names of the training data. NULL, and NaN in a column of numbers, are missing.
WITH thresher_input AS (SELECT * FROM rows)"""
_DOUBLE = "DOUBLE PRECISION"


def content_of(found: RawPrediction) -> str:
    """The text of the query. `DataError` for what SQL cannot say."""
    _check(found)
    categories = _categories(found)
    tables, joins, margins = list[str](), list[str](), [list[str]() for _ in _pairs(found)]
    for number, column in enumerate(found.columns):
        if column.kind == NUMERIC:
            for terms, (model, output) in zip(margins, _pairs(found), strict=True):
                terms += _number(found, column, model, output)
        elif rows := categories.get(number):
            tables.append(_table(found, number, rows))
            joins.append(
                f"LEFT JOIN thresher_category_{number} ON {_category(found, column)} ="
                f" thresher_category_{number}.category"
            )
            for place, terms in enumerate(margins):
                terms.append(f"COALESCE(thresher_category_{number}.weight_{place}, 0)")
    return "\n".join([",\n".join([_HEAD, *tables, _margins(found, margins, joins)]), *_select(found)]) + "\n"


def _pairs(found: RawPrediction) -> list[tuple[ExportedModel, int]]:
    return [(model, output) for model in found.models for output in range(len(found.names))]


def _check(found: RawPrediction) -> None:
    why = "" if found.columns else "features of this model have no columns, which SQL needs"
    for column in found.columns:
        if column.kind in (TEXT, BINS):
            why = why or f"column '{column.name}' is {column.kind}, which SQL cannot express"
        if not column.name:
            why = why or "a column has an empty name, which SQL cannot express"
    if found.products:
        why = why or "SQL cannot express products of columns"
    if found.store is not None or found.layout.bits:
        why = why or "categories share weights in this model, which SQL cannot express"
    if why:
        raise DataError(f"{why}: {OTHER_TARGETS}")
    several = [] if found.kind == "one" else found.names
    used = {*several, *(column.name for column in found.columns)}
    for what, names in (("columns", found.layout.columns), ("outputs", several)):
        alike = dict[bytes, str]()
        for name in names:
            raw = name.encode("utf-8", "surrogateescape")
            if name in used:
                _write_text(f"{what}: SQL cannot write the name", raw)
            if (first := alike.setdefault(raw.lower(), name)) != name and used & {first, name}:
                case = f"{what} '{first}' and '{name}' differ in case only, which DuckDB ignores"
                raise DataError(f"{case}: rename one, or {OTHER_TARGETS}")


def _write_text(what: str, raw: bytes) -> str:
    """Bytes as text; `DataError` for what a query cannot contain."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise DataError(f"{what} {raw!r:.60}: {OTHER_TARGETS}")
    return text


def _categories(found: RawPrediction) -> dict[int, dict[str, int]]:
    """The keys of the categories that have a weight, by column and name."""
    numeric = {one.key for one in found.columns if one.kind == NUMERIC}
    wanted = {key for model in found.models for key in model.keys.tolist()} - numeric
    befores = [one.name.encode("utf-8", "surrogateescape") + b"=" * bool(one.name) for one in found.columns]
    by_column = dict[int, dict[str, int]]()
    for names in found.known:
        ends, letters = names.ends.tolist(), names.letters.tobytes()
        for key, begin, end in zip(names.features.tolist(), [0, *ends], ends, strict=False):
            if key not in wanted:
                continue
            whole = letters[begin:end]
            for number, (column, before) in enumerate(zip(found.columns, befores, strict=True)):
                value = whole.removeprefix(before)
                fits = column.kind == CATEGORICAL and whole.startswith(before)
                if fits and hash_bytes(value, column.seed) == key:  # only of the true ones
                    text = _write_text(f"column '{column.name}': SQL cannot write the category", value)
                    by_column.setdefault(number, {})[text] = key
                    break
            else:
                raise DataError(f"no column has the category {whole!r:.60}")
    named = sum(map(len, by_column.values()))
    if named < len(wanted):
        raise DataError(
            f"{len(wanted) - named:,} categories have no names, which SQL needs: find them with"
            f" {mention_command('name')}, or train with {mention(names=True)}"
        )
    return by_column


def _number(found: RawPrediction, column: ExportedColumn, model: ExportedModel, output: int) -> Iterator[str]:
    """The term of a numeric column; none if its weight is zero."""
    place = int(np.searchsorted(model.keys, np.uint64(column.key)))
    if place == len(model.keys) or model.keys[place] != column.key or not model.weights[place, output]:
        return
    kind, x = (
        "REAL" if model.weights.dtype == np.float32 else _DOUBLE,
        f"CAST(thresher_input.{_name(column.name)} AS {_DOUBLE})",
    )
    value = f"CAST({x} AS REAL)"
    if (mean := model.means.get(column.key)) is not None:
        plain = f"CASE WHEN ABS({x}) < {FAR} THEN CAST({value} AS {_DOUBLE}) ELSE {x} END"
        value = f"CAST({plain} - {_literal(mean)} AS REAL)"
    if by := model.divisors.get(column.key):
        value = f"CAST(CAST({value} AS {_DOUBLE}) / {_literal(by)} AS REAL)"
    product = f"CAST(CAST({_literal(model.weights[place, output])} AS {kind}) * {value} AS {_DOUBLE})"
    absent = [f"({x} > 0 AND -{x} > 0)"]  # NaN, which is greater than all numbers, and so is its negative
    absent += [f"{x} = {_literal(word)}" for word in found.layout.missing if NUMBER.fullmatch(word.encode())]
    yield f"CASE WHEN {' OR '.join(absent)} THEN 0 ELSE COALESCE({product}, 0) END"


def _category(found: RawPrediction, column: ExportedColumn) -> str:
    """The text of a cell, in the one spelling that numbers and booleans have in the model."""
    text = f"CAST(thresher_input.{_name(column.name)} AS VARCHAR)"
    how = found.layout.spelling[column.place] if column.spelled else AS_TEXT
    if how == AS_NUMBER:
        plain = f"{text} LIKE '%.%' AND {text} NOT LIKE '%e%'"
        return f"CASE WHEN {plain} THEN RTRIM(RTRIM({text}, '0'), '.') ELSE {text} END"
    return f"LOWER({text})" if how == AS_BOOLEAN else text


def _table(found: RawPrediction, number: int, rows: dict[str, int]) -> str:
    if found.columns[number].numbers:  # DuckDB and PostgreSQL write exponents as Python does
        rows = {other: key for text, key in rows.items() if "e" in (other := repr(float(text)))} | rows
    weights = [dict(zip(one.keys.tolist(), one.weights.tolist(), strict=True)) for one in found.models]
    names = ", ".join(f"weight_{place}" for place in range(len(_pairs(found))))
    none = [0.0] * len(found.names)
    listed = ",\n  ".join(
        f"({_text(text)}, {', '.join(_literal(w) for each in weights for w in each.get(key, none))})"
        for text, key in rows.items()
    )
    return f"thresher_category_{number} (category, {names}) AS (VALUES\n  {listed})"


def _margins(found: RawPrediction, margins: list[list[str]], joins: list[str]) -> str:
    count, listed = len(found.names), list[str]()
    for output in range(count):
        each = [
            f"({' + '.join(terms) or '0'}) + {_literal(model.intercepts[output])}"
            for terms, (model, which) in zip(margins, _pairs(found), strict=True)
            if which == output
        ]
        whole = each[0] if len(each) == 1 else f"({' + '.join(f'({one})' for one in each)}) / {len(each)}"
        listed.append(f"    {whole} AS {_columns(found, 'margin')[output]}")
    body = ",\n".join([*listed, "    thresher_input.*"])
    return "\n  ".join([f"thresher_predicted AS (\n  SELECT\n{body}", "FROM thresher_input", *joins]) + ")"


def _select(found: RawPrediction) -> list[str]:
    margins = _columns(found, "margin")
    top = margins[0] if len(margins) == 1 else f"GREATEST({', '.join(margins)})"
    columns = list[str]()
    for margin, name in zip(margins, _columns(found, "prediction"), strict=True):
        columns.append(f"{_link(found, margin, margins, top)} AS {name}")
    if found.labels:
        one = len(margins) == 1
        low, high = found.labels if one else ("", "")
        pairs = zip(margins, found.labels, strict=not one)
        listed = " ".join(f"WHEN {margin} = {top} THEN {_text(label)}" for margin, label in pairs)
        chosen = f"WHEN {_log_odds(found, top)} > 0 THEN {_text(high)} ELSE {_text(low)}" if one else listed
        columns.append(f"CASE {chosen} END AS thresher_label")
    return ["SELECT\n  " + ",\n  ".join([*columns, "*"]), "FROM thresher_predicted"]


def _columns(found: RawPrediction, what: str) -> list[str]:
    """Columns of the result: of several outputs, with their names."""
    if found.kind == "one":
        return [f"thresher_{what}"]
    return [_name(f"thresher_{what}_{name}") for name in found.names]


def _link(found: RawPrediction, margin: str, margins: list[str], top: str) -> str:
    name, by, _ = found.link
    if name == description.SIGMOID:
        e = f"EXP({_literal(-by)} * ABS({margin}))"
        return f"CASE WHEN {margin} > 0 THEN 1 / (1 + {e}) ELSE {e} / (1 + {e}) END"
    if name == description.CALIBRATED:
        return _link(
            found._replace(link=Link(description.SIGMOID, 1.0)), f"({_log_odds(found, margin)})", margins, top
        )
    if name == description.RAMP:
        return f"0.5 * (1 + LEAST(GREATEST({margin}, -1), 1))"
    if name == description.EXP:
        return f"EXP({margin} + {_literal(by)})"
    if name == description.SOFTMAX:
        raised = {one: f"EXP({_literal(by)} * ({one} - {top}))" for one in margins}
        return f"{raised[margin]} / ({' + '.join(raised.values())})"
    return margin


def _log_odds(found: RawPrediction, margin: str) -> str:
    """What is positive if the positive one of two classes is predicted."""
    name, by, plus = found.link
    return f"{_literal(by)} * {margin} + {_literal(plus)}" if name == description.CALIBRATED else margin


def _literal(number: Any) -> str:
    """A float64 that is read back to the same bits; with an exponent, or it would be a decimal."""
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
