"""The model on disk: safetensors with a JSON header. No code runs when one is loaded.

A file under its own name is always whole. The CRC-32 of every tensor and of
the header itself stand in the header, so damage is told from data.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher._version import __version__
from thresher.data.layout import Layout
from thresher.data.names import Names
from thresher.learning.head import Head
from thresher.learning.model import Model
from thresher.learning.readout import Readout
from thresher.learning.scaling import Columns, Divisors
from thresher.learning.wholefile import whole_file

FORMAT = 1
Tensors = dict[str, NDArray[Any]]
Header = dict[str, Any]
NAMES = "names."
"""What the tensors of names begin with."""


class ModelFileError(ValueError):
    """A file that is no model this version can read. One line."""


def header_of(model: Model) -> Header:
    """Parts, parameters and counts."""
    rate = getattr(model.rule, "rate", None)
    return {
        **_header_of_any(model),
        "rule": parts.spec_of(model.rule),
        "rate": None if rate is None else parts.spec_of(rate),
        "batch": model.batch,
        "average": model.average,
        "scale": model.scale,
        "admit": model.admit,
        "seed": model.seed,
        "dtype": str(model.dtype),
        "has_intercept": model.has_intercept,
        "intercept": np.asarray(model.intercept).tolist(),
        "examples": model.examples,
        "progressive_loss": model.tally.average if model.tally.weight else None,
        "nonzero": model.nonzero,
        "features_seen": model.features_seen,
    }


def header_of_weights(readout: Readout) -> Header:
    """Of a model of weights alone, which no rule goes on learning; more may be added."""
    return {**_header_of_any(readout), "rule": None, "rate": None}


def _header_of_any(model: Model | Readout) -> Header:
    return {
        "format": FORMAT,
        "version": __version__,
        "loss": parts.spec_of(model.loss),
        "outputs": model.head.outputs.spec,
        "store": model.store,
        "lowest_label": model.lowest_label,
        "layout": noted(model.layout),
    }


def save(model: Model, path: str | Path, *, state: bool = True) -> None:
    """Write `model`: settled non-zero weights, header and, with `state`, all that resuming needs.

    Raises OSError when the disk refuses; the file that stood there before is then untouched.
    """
    write(path, header_of(model), tensors_of(model, state=state))


def tensors_of(model: Model, *, state: bool = True) -> Tensors:
    """Weights, and the state under ``state.*``."""
    readout = model.readout()
    tensors = weights_of(readout)
    if model.names is not None:
        tensors |= tensors_of_names(model.names.only(readout.keys))
    if state:
        tensors |= {f"state.{name}": array for name, array in model.state().items()}
    return tensors


def tensors_of_names(names: Names) -> Tensors:
    """The names of features."""
    return {NAMES + "keys": names.keys, NAMES + "ends": names.ends, NAMES + "letters": names.letters}


def _names_of(tensors: Tensors) -> Names | None:
    found = [tensors.get(NAMES + name) for name in ("keys", "ends", "letters")]
    return None if found[0] is None else Names(*found)  # type: ignore[arg-type]


def weights_of(readout: Readout) -> Tensors:
    """What every model file holds."""
    tensors: Tensors = {
        "weights.keys": readout.keys,
        "weights.values": readout.weights,
        "weights.intercept": readout.bias,
        "weights.unmet": readout.unmet,
    }
    if readout.divisors is not None:
        tensors |= {"scale.keys": readout.divisors.columns.keys, "scale.by": readout.divisors.by}
    return tensors


def write(path: str | Path, header: Header, tensors: Tensors) -> None:
    """Write a whole file or none; no tensor is copied. Raises OSError."""
    with whole_file(path, "wb") as file:
        for piece in _pieces(header, tensors):
            file.write(piece)


def as_bytes(header: Header, tensors: Tensors) -> bytes:
    """What a file with these holds."""
    return b"".join(_pieces(header, tensors))


def _pieces(header: Header, tensors: Tensors) -> Iterator[bytes | memoryview]:
    """A file's bytes, tensor by tensor."""
    whole = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    sums = {name: _checksum(array) for name, array in whole.items()}
    sums["header"] = _header_sum({**header, "crc32": sums})
    names = sorted(whole, key=lambda name: (-whole[name].itemsize, name))  # so that all are aligned
    text = json.dumps({**header, "crc32": sums}, sort_keys=True)
    yield _safetensors_head(text, {name: whole[name] for name in names})
    for name in names:
        yield _bytes_of(whole[name])


def _safetensors_head(text: str, tensors: Tensors) -> bytes:
    """What a safetensors file begins with: the length of a JSON object, which says what follows."""
    told: dict[str, Any] = {"__metadata__": {"thresher": text}}
    end = 0
    for name, array in tensors.items():
        begin, end = end, end + array.nbytes
        kind = "BOOL" if array.dtype.kind == "b" else f"{array.dtype.kind.upper()}{8 * array.itemsize}"
        told[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [begin, end]}
    raw = json.dumps(told, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _header_sum(header: Header) -> int:
    """CRC-32 of the header but for this sum itself."""
    tensors = {name: value for name, value in header["crc32"].items() if name != "header"}
    return zlib.crc32(json.dumps({**header, "crc32": tensors}, sort_keys=True).encode())


def _checksum(array: NDArray[Any]) -> int:
    kind = zlib.crc32(f"{array.dtype.str} {array.shape}".encode())
    return zlib.crc32(_bytes_of(array), kind)


def read(path: str | Path) -> tuple[Header, Tensors]:
    """Header and tensors; `ModelFileError` with one line when there is no whole model of ours."""
    from safetensors import SafetensorError, safe_open

    name = str(path)
    try:
        with open(path, "rb"):  # says more plainly than safetensors why it cannot be read
            pass
        with safe_open(name, "np") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  (no mapping)
    except OSError as error:
        reason = "a directory, not a model" if Path(path).is_dir() else error.strerror or str(error)
        raise ModelFileError(f"{name}: {reason}") from error
    except (SafetensorError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ModelFileError(f"{name}: damaged, cut short, or not a model ({reason})") from error
    return _checked(name, metadata, tensors), tensors


def from_bytes(data: bytes, name: str = "the model") -> tuple[Header, Tensors]:
    """Header and tensors of what `as_bytes` gave; `ModelFileError`, in which it is called `name`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as parsed

    try:
        tensors = parsed(data)
        (length,) = struct.unpack_from("<Q", data)
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    except (SafetensorError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ModelFileError(f"{name}: damaged, cut short, or not a model ({reason})") from error
    return _checked(name, metadata, tensors), tensors


def _checked(name: str, metadata: dict[str, str], tensors: Tensors) -> Header:
    if "thresher" not in metadata:
        raise ModelFileError(f"{name}: a safetensors file, but not a thresher model")
    try:
        header: Header = json.loads(metadata["thresher"])
        whole = header["crc32"]["header"] == _header_sum(header)
    except (json.JSONDecodeError, KeyError, TypeError):
        whole = False
    if not whole:
        raise ModelFileError(f"{name}: damaged: the header does not match its checksum")
    if header["format"] != FORMAT:
        raise ModelFileError(
            f"{name}: model format {header['format']}, written by thresher {header['version']};"
            f" this version ({__version__}) reads format {FORMAT}"
        )
    sums = header["crc32"]
    for key in sorted({*sums, *tensors} - {"header"}):
        if key not in tensors or _checksum(tensors[key]) != sums.get(key):
            raise ModelFileError(f"{name}: damaged: {key} does not match its checksum")
    return header


def load_readout(path: str | Path) -> tuple[Readout, Header]:
    """What prediction needs, and the header."""
    header, tensors = read(path)
    return readout_of(path, header, tensors), header


def readout_of(path: str | Path, header: Header, tensors: Tensors) -> Readout:
    """The readout that header and tensors describe."""
    readout = Readout(
        Head(_part(path, "loss", header["loss"]), header["outputs"]),
        header["store"],
        tensors["weights.keys"],
        tensors["weights.values"],
        tensors["weights.intercept"],
        header["lowest_label"],
        tensors["weights.unmet"],
        Divisors(Columns(tensors["scale.keys"]), tensors["scale.by"]) if "scale.by" in tensors else None,
    )
    readout.layout, readout.names = layout_of(header), _names_of(tensors)
    return readout


def load(path: str | Path) -> tuple[Model, Header]:
    """The model as it was, ready to learn on, and the header."""
    header, tensors = read(path)
    return revive(path, header, tensors), header


def revive(path: str | Path, header: Header, tensors: Tensors) -> Model:
    """The model that header and tensors describe."""
    if header["rule"] is None:
        raise ModelFileError(f"{path}: made by a batch solver: weights only, nothing to go on learning from")
    state = {name.removeprefix("state."): a for name, a in tensors.items() if name.startswith("state.")}
    if not state:
        raise ModelFileError(f"{path}: holds weights only, nothing to go on learning from")
    nested = {} if header["rate"] is None else {"rate": _part(path, "rate", header["rate"])}
    model = Model(
        parts.make("rule", _part(path, "rule", header["rule"]), **nested),
        _part(path, "loss", header["loss"]),
        outputs=header["outputs"],
        batch=header["batch"],
        average=header["average"],
        scale=header["scale"],
        admit=header["admit"],
        store=header["store"],
        intercept=header["has_intercept"],
        dtype=header["dtype"],
        seed=header["seed"],
    )
    model.restore(state)
    model.layout, model.names = layout_of(header), _names_of(tensors)
    return model


def noted(layout: Layout | None) -> dict[str, Any] | None:
    """A layout as it stands in a header."""
    return None if layout is None else layout.as_dict()


def layout_of(header: Header) -> Layout | None:
    """How the training data became features; None where they came as arrays. `DataError`."""
    given = header["layout"]
    return None if given is None else Layout.from_dict(given)


def _part(path: str | Path, kind: str, spec: str) -> Any:
    try:
        return parts.make(kind, spec)
    except parts.SpecError as error:
        raise ModelFileError(f"{path}: {error} (import the module that defines it first)") from error
