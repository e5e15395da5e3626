"""A model as JavaScript: a script, which is a CommonJS module too; or an ES module.

The code of `runtime.js` is the same for every model. The model is an object in its midst: what `json`
describes, with arrays as bytes in base64, so that numbers are read quickly and exactly, and keys as pairs of
32 bits.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np

from thresher.exporting.description import ExportedModel, RawPrediction
from thresher.exporting.json import describe

_RUNTIME = Path(__file__).with_name("runtime.js")
_COMMON = 'if (typeof module === "object") module.exports = thresher;\n'
_MODULE = """export const { columns, outputs, labels, margins, predict, label } = thresher;
export default thresher;
"""


def content_of(found: RawPrediction, *, module: bool = False) -> str:
    """The text of the file: of an ES `module`, or of a script."""
    told = describe(found, lambda number: [number >> 32, number & 0xFFFFFFFF]) | {
        "models": [*map(_model, found.models)]
    }
    # no text of the model can end the script that this may stand in
    text = json.dumps(told).replace("<", "\\u003c")
    whole = _RUNTIME.read_text(encoding="utf-8").replace("/* @model */ null", text, 1)
    return whole + (_MODULE if module else _COMMON)


def _model(one: ExportedModel) -> dict[str, str]:
    arrays = {"keys": one.keys, "weights": one.weights, "intercepts": one.intercepts}
    for name, numbers in (("mean", one.means), ("divisor", one.divisors)):
        arrays[f"{name}_keys"] = np.array([*numbers], np.uint64)
        arrays[f"{name}s"] = np.array([*numbers.values()], float)
    little = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    return {name: base64.b64encode(array.tobytes()).decode() for name, array in little.items()}
