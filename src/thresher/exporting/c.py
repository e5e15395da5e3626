"""A model as a C file: C99 that needs nothing but the C library.

The code of `runtime.c` is the same for every model. Before it stand macros, which leave out what a model does
not need, and in its midst the model as constant tables.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.columns import BINS, CATEGORICAL, NUMERIC, TEXT
from thresher.exporting import description

_RUNTIME = Path(__file__).with_name("runtime.c")
_KINDS = {NUMERIC: "NUMERIC", BINS: "BINS", CATEGORICAL: "CATEGORICAL", TEXT: "TEXT"}
_ON_STACK = 1024
"""Maximum number of features of a row that need no memory from the heap"""
_PER_LINE = 8
_PLAIN = (string.ascii_letters + string.digits + " _-.,:").encode()
"""Bytes that mean themselves wherever they stand in a string or a comment"""


def content_of(found: description.RawPrediction) -> str:
    """The text of the file."""
    text = _RUNTIME.read_text(encoding="utf-8")
    head, rest = text.split("/* @macros */\n")
    before, after = rest.split("/* @model */\n")
    return "".join([head, *_macros(found), before, *_tables(found), after])


def _macros(found: description.RawPrediction) -> Iterator[str]:
    wide = found.models[0].weights.dtype == np.float64
    layout, grams, texts = found.layout, found.grams, found.has(TEXT)
    of_texts = {"WORDS_LOW": grams.words[0], "WORDS_HIGH": grams.words[1], "CHARS_LOW": grams.chars[0]}
    of_texts |= {"CHARS_HIGH": grams.chars[1], "LOWER": int(grams.lowercase), "SHORTEST": grams.shortest}
    of_texts |= {"SCALE": grams.code()[6], "NORM": int(grams.norm)}
    store, delimiter = found.store, layout.delimited_by
    label = "a label" if layout.classes else "a number as label"
    reads = f"features ID:VALUE with finite values, perhaps after {label}"
    if found.columns:  # of data that are not text with cells, a table separated by tabs
        by = {",": "commas", "\t": "tabs", "": "tabs"}.get(delimiter, f"'{delimiter}'")
        header = "after a header" if layout.header else "without a header"
        reads = f"rows of cells separated by {by}, {header}"
    macros = {
        "COLUMNS": len(found.columns),
        "ROOM": min(max(64, len(found.columns) + len(found.products)), _ON_STACK),
        "MASK": _word(found.mask),
        "GAPS": int(found.missing_is_mean),
        "MISSING": len(layout.missing),
        "SPELLED": int(any(one.spelled for one in found.columns)),
        "BINNED": int(found.has(BINS)),
        "PRODUCTS": len(found.products),
        "TEXTS": int(texts),
        **(of_texts if texts else {}),
        "HEADER": int(layout.header),
        "WIDTH": len(layout.columns),
        "BARE_WIDTH": sum(kind not in description.UNLABELLED for kind in layout.kinds),
        "DELIMITER": delimiter.encode()[0] if delimiter else ord("\t"),
        "QUOTES": int(layout.quoting and layout.format == "csv"),
        "LABEL_WEIGHTS": int(layout.label_weights),
        "WORDS": int(bool(layout.classes)),
        "READS": _text(reads),
        "OUTPUTS": len(found.names),
        "MODELS": len(found.models),
        "HASHED": store.bits if store else 0,
        "HASH_SEED": _word(store.seed if store else 0),
        "SIGNED": int(bool(store and store.signed)),
        "CENTRED": int(any(len(one.means) for one in found.models)),
        "SCALED": int(any(len(one.divisors) for one in found.models)),
        "LINK": description.LINKS.index(found.link.name),
        "LINK_BY": repr(found.link.by),
        "LINK_PLUS": repr(found.link.plus),
        "LABELS": len(found.labels),
        "LISTED": int(found.kind == "labels"),
        "LISTS": int(found.kind in ("labels", "values")),
        "PROBABILITIES": int(found.head.has_probabilities),
        "ROUNDED": "volatile" if wide else "",
    }
    yield from (f"#define THRESHER_{name} {value}\n" for name, value in macros.items())
    yield f"typedef {'double' if wide else 'float'} thresher_weight;\n"


def _tables(found: description.RawPrediction) -> Iterator[str]:
    if found.columns:
        names = [_name(one.name) for one in found.columns]
        yield from _array("name", "thresher_columns", names, static="")
        each = [(_KINDS[one.kind], one.spelled + one.numbers, one.key, one.seed) for one in found.columns]
        rows = (f"{{{kind}, {how}, {_word(key)}, {_word(seed)}}}" for kind, how, key, seed in each)
        yield from _array("column", "columns", rows)
        if not found.layout.header:
            places = [one.bare_place for one in found.columns], [one.place for one in found.columns]
            listed = ("{" + ", ".join(map(str, one)) + "}" for one in places)
            table = f"places[2][{len(found.columns)}] = {{{', '.join(listed)}}}"
            yield f"#ifdef THRESHER_MAIN\nstatic const int {table};\n#endif\n"
    if found.layout.missing and found.columns:
        yield from _array("name", "missing", map(_name, found.layout.missing))
    if found.products:
        listed = ("{" + ", ".join(map(str, (*one, -1)[:3])) + "}" for one in found.products)
        yield f"static const int products[][3] = {{{', '.join(listed)}}};\n"
    if found.has(TEXT):
        rows = (f"{{{a}, {b}, {c}}}" for a, b, c in description.letter_ranges(found.grams.tokens))
        yield from _array("letter_range", "letters", rows)
    for names, array in ((found.labels, "thresher_labels"), (found.names, "thresher_outputs")):
        if names:
            yield f"THRESHER_API const char *const {array}[] = {{{', '.join(map(_text, names))}}};\n"
    tables = list[str]()
    for number, model in enumerate(found.models):
        yield from _model(model, number, tables)
    yield from _array("table", "tables", tables)


def _model(model: description.ExportedModel, number: int, tables: list[str]) -> Iterator[str]:
    """The arrays of a model; adds the struct that points to them to `tables`."""
    suffix = "f" if model.weights.dtype == np.float32 else ""
    begins, shift = buckets(model.keys)
    places = (np.searchsorted(model.keys, np.array([*model.means], np.uint64)) + 1).tolist()
    means = zip(model.means.items(), places, strict=True)
    kinds = {
        "keys": ("uint64_t", map(_word, model.keys.tolist())),
        "begins": ("uint32_t", map(str, begins.tolist())),
        "weights": ("thresher_weight", _numbers(model.weights.ravel(), suffix)),
        "intercepts": ("thresher_weight", _numbers(model.intercepts, suffix)),
        "means": ("centred", (f"{{{_word(key)}, {at}, {mean!r}}}" for (key, mean), at in means)),
        "divisors": ("scaled", (f"{{{_word(key)}, {by!r}}}" for key, by in model.divisors.items())),
    }
    for name, (kind, values) in kinds.items():
        yield from _array(kind, f"{name}_{number}", values)
    counts = f"{len(model.keys)}, {shift}, {len(model.means)}, {len(model.divisors)}"
    tables.append(f"{{{counts}, {', '.join(f'{name}_{number}' for name in kinds)}}}")


def buckets(keys: Any) -> tuple[Any, int]:
    """Where the keys begin that share their highest bits, about one each, and how far keys are shifted."""
    if not len(keys):
        return np.zeros(2, np.int64), 63
    shift = max(int(keys[-1]).bit_length() - len(keys).bit_length(), 0)
    last = int(keys[-1]) >> shift
    return np.searchsorted(keys >> np.uint64(shift), np.arange(last + 2, dtype=np.uint64)), shift


def _array(kind: str, name: str, values: Iterable[str], static: str = "static ") -> Iterator[str]:
    """A constant array, which C does not allow to be empty: then it has an unused element."""
    yield f"{static or 'THRESHER_API '}const {kind} {name}[] = {{\n"
    listed = [*values] or ["{0}" if kind in ("centred", "scaled") else "0"]
    for at in range(0, len(listed), _PER_LINE):
        yield "    " + ", ".join(listed[at : at + _PER_LINE]) + ",\n"
    yield "};\n"


def _numbers(values: Any, suffix: str) -> Iterator[str]:
    """Numbers that are read back to the same bits; whole ones need a point."""
    for text in values.astype(str).tolist():
        yield (text if "." in text or "e" in text else text + ".0") + suffix


def _word(value: int) -> str:
    return f"UINT64_C({value:#x})"


def _name(name: str) -> str:
    return f"{{{_text(name)}, {len(name.encode('utf-8', 'surrogatepass'))}}}"


def _text(text: str) -> str:
    r"""A string of C. Whatever is not a plain letter is written in octal, with always three digits.

    >>> print(_text('a"*/??=b'))
    "a\042\052\057\077\077\075b"
    """
    raw = text.encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(b) if b in _PLAIN else f"\\{b:03o}" for b in raw) + '"'
