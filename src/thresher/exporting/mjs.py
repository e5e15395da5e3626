"""A model as JavaScript: an ES module."""

from __future__ import annotations

from thresher.exporting import js
from thresher.exporting.description import RawPrediction

_NAMES = "columns, outputs, labels, margins, predict, label"


def write(found: RawPrediction) -> str:
    """The text of the file."""
    return js.write(found, f"export const {{ {_NAMES} }} = thresher;\nexport default thresher;\n")
