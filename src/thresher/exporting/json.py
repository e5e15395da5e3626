"""A prediction as JSON, from which anyone can write a predictor: docs/export.md has the fields.

Numbers of 64 bits are texts, because many readers of JSON keep 53 bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from thresher._version import __version__
from thresher.data.columns import NUMERIC, TEXT
from thresher.exporting.description import RawPrediction, letter_ranges

EDITION = 1
"""Raised when a reader of the last one would predict something else"""


def content_of(found: RawPrediction) -> str:
    """The text of the file."""
    return json.dumps(describe(found), indent=1) + "\n"


def describe(found: RawPrediction, word: Callable[[int], Any] = str) -> dict[str, Any]:
    """The fields, with the numbers of 64 bits that columns and the store have as `word` writes them."""
    layout = found.layout
    return {
        "thresher_export": EDITION,
        "written_by": f"thresher {__version__}",
        "rows": "columns" if found.columns else "ids",
        "mask": word(found.mask),
        "columns": [
            {"name": one.name, "kind": one.kind, "spelled": one.spelled, "numbers": one.numbers}
            | ({"key": word(one.key)} if one.kind == NUMERIC else {"seed": word(one.seed)})
            for one in found.columns
        ],
        "missing": [*layout.missing],
        "missing_is_mean": found.missing_is_mean,
        "products": [[*one] for one in found.products],
        "ngrams": found.grams._asdict() if found.has(TEXT) else None,
        "letters": letter_ranges(found.grams.tokens) if found.has(TEXT) else None,
        "store": found.store and {**found.store._asdict(), "seed": word(found.store.seed)},
        "dtype": str(found.models[0].weights.dtype),
        "models": [
            {
                "intercepts": one.intercepts.tolist(),
                "keys": [*map(str, one.keys.tolist())],
                "weights": one.weights.tolist(),
                "means": {str(key): mean for key, mean in one.means.items()},
                "divisors": {str(key): by for key, by in one.divisors.items()},
            }
            for one in found.models
        ],
        "kind": found.kind,
        "outputs": found.names,
        "labels": found.labels,
        "link": found.link._asdict(),
    }
