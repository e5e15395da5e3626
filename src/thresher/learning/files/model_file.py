"""Models on disk: safetensors with a JSON header. Loading a model runs no code that comes from the file.

A file holds one model, or many: a frontier, an ensemble, a selection. A checkpoint is such a file with the
state of training. ``header["models"]`` has what is known of each, and the names of its tensors begin with its
number; what all have in common stands once, in ``shared``, and what the run tells of them in ``run``.

A file under its own name is always complete. The header holds the CRC-32 of each tensor and of itself, so
damage is detected.
"""

from __future__ import annotations

import json
import stat
import struct
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from thresher import parts
from thresher._version import __version__, told_of, upgrade
from thresher.data.errors import OneLineError, shortened
from thresher.data.features.names import Names
from thresher.data.files.paths import begins_a_model
from thresher.engine.atomic import whole_file
from thresher.engine.sound import StateError, beneath, under
from thresher.learning.files.choice import FrontierTable, choose
from thresher.learning.files.schema import (
    Fields,
    Finite,
    Form,
    Key,
    check,
    check_all,
    check_known,
    check_present,
    form_of,
    kinds_of,
)
from thresher.learning.inspection.formatting import size_shown
from thresher.learning.model.agreement import Numbering
from thresher.learning.model.calibration import FittedLink, check_calibrated
from thresher.learning.model.model import Model, as_model
from thresher.learning.model.objective import Objective
from thresher.learning.model.prediction import AnyModel, Readout, names_of
from thresher.learning.model.recipe import Header, Recipe, layout_of
from thresher.learning.model.sampling import Sample, Sampler
from thresher.learning.training.progress import Curve, curve_of, is_curve
from thresher.learning.training.record import Record
from thresher.options.messages import mention, spelled
from thresher.options.option import UsageError

FORMAT = 1
_HEAD = 64
"""Bytes needed to recognise a model"""
_LONGEST_HEADER = 100_000_000
"""What safetensors reads"""
_NO_TENSORS = (SafetensorError, ValueError, TypeError, AttributeError, OverflowError)
"""What reading raises for bytes that are not tensors of a type that NumPy has."""
Tensors = dict[str, NDArray[Any]]
EDITION: Fields = {"format": int, "version": str}
"""Fields of every file, in any format version."""
MODEL: Fields = {"recipe": dict, "lowest_label": Finite, "nonzero": int}
"""Fields of every model."""
CURVE: Fields = {"curve": Annotated[Curve, Form("points of a curve", is_curve, curve_of)]}
_NEEDS = tuple[parts.Need, ...]
_OPTIONAL: Fields = {
    "needs": _NEEDS,
    "examples": int,
    "features_seen": int,
    "left_out": int,
    "progressive_loss": float | None,
    "loss_of_later_passes": float,
    "numbering": tuple[Key, Key, bool],
    "warm": bool,
    "calibration": tuple[Finite, Finite],
    **CURVE,
}
_OTHERS = ("intercept", "record", "solver")
"""Fields of some models, which are checked where they are used."""
_FILE: Fields = {"models": list[dict[str, Any] | None], "shared": dict, "run": dict}
"""Fields of every file."""
LANES, TRAINING, FRONTIER, ENSEMBLE, SELECTION = "lanes", "training", "frontier", "ensemble", "selection"
"""What is known of a run"""
RUN = (LANES, TRAINING, FRONTIER, ENSEMBLE, SELECTION)
_OF_FILE = {*EDITION, *RUN, "needs"}
"""Fields of a model's header that stand once in a file"""
RECIPE: Fields = {
    **kinds_of(Recipe),
    "rule": str,
    "loss": str,
    "rate": str | None,
    "layout": dict | None,
    "sample": str | None,
}
"""Fields of the recipe of a model that can keep learning."""
_WEIGHTS = ("loss", "outputs", "store", "intercept", "layout")
"""Fields of the recipe in a file with weights only."""
_LONGEST = 1000
"""Maximum length of a message: a file may contain text of any length in place of a name."""
_SHARED = "shared."
"""Prefix of the tensors that all models of a file have"""
NAMES = "names."
"""Prefix of the tensors that hold names."""


_START = f"{mention('init')} can start a new model from them"
_KEEPING = spelled("thresher path --state", "save(path, state=True)")
OF_THE_COMMAND = spelled(
    "the printed command leaves it out with --weights-only", "save(path, state=False) leaves it out"
)
"""How to do without the learning state of a model that a command has chosen"""
LEAVES_OUT = spelled("--weights-only leaves it out", "save(path, state=False) leaves it out")
LEFT_OUT = spelled("without --state, it is left out", "without state=True, it is left out")
LARGE, MUCH, TIMES = 10**9, 10**7, 1000
"""Bytes of learning state that are told of: always, or if they are so many times those of the weights"""


class ModelFileError(OneLineError):
    """Raised for a file that is not a model this version can read; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message, _LONGEST))


@contextmanager
def naming_file(name: str | Path, header: Header | None = None) -> Iterator[None]:
    """Turn errors about the content of a file into a `ModelFileError` that names the file.

    With its header, the message says so if a later version of thresher has written it.
    """
    try:
        yield
    except ModelFileError:
        raise
    except MemoryError as error:
        raise ModelFileError(f"{name}: not enough memory: {error}") from error
    except ValueError as error:  # StateError, SpecError, DataError, and what Model and Head refuse
        raise ModelFileError(f"{name}: {error}{told_of(header and header.get('version'))}") from error


def check_format(name: str | Path, header: Header, reads: int) -> None:
    """`ModelFileError`, with a remedy, for a file of another format than the one that this version reads."""
    if header["format"] == reads:
        return
    version, own = header["version"], f"thresher {__version__}"
    same = version == __version__
    writer = f"another development state of {own}" if same else f"thresher {version}"
    remedy = upgrade(version) or "train the model again, or use that version"
    raise ModelFileError(
        f"{name}: format {header['format']}, written by {writer}; {'this one' if same else own} reads format"
        f" {reads}: {remedy}"
    )


def header_of(model: Model) -> Header:
    """The header of a model: its recipe and counts."""
    return {
        **_header_of_any(model),
        **needing(model),
        "recipe": model.recipe.as_dict(),
        "intercept": np.asarray(model.intercept).tolist(),
        "examples": model.examples,
        "progressive_loss": model.tally.known,
        **({"loss_of_later_passes": model.repeated.average} if model.repeated.weight > 0 else {}),
        "nonzero": model.nonzero,
        "features_seen": model.features_seen,
        **({"left_out": model.left_out} if model.left_out else {}),
        **({"curve": [list(point) for point in model.curve]} if model.curve else {}),
        **({"warm": True} if model.warm else {}),
        **({} if model.record is None else {"record": model.record.as_dict()}),
    }


def header_of_weights(readout: Readout, intercept: bool = True) -> Header:
    """The header of a model with weights only, which no rule can keep training; fields may be added."""
    recipe = {
        "rule": None,
        "loss": parts.spec_of(readout.loss),
        "outputs": readout.head.outputs.spec,
        "store": readout.store,
        "intercept": intercept,
        "layout": None if readout.layout is None else readout.layout.as_dict(),
        "offset": readout.shifted,
    }
    own = {"recipe": recipe, "nonzero": readout.nonzero}
    return {**_header_of_any(readout), **_needing([readout.head.joint]), **own}


def needing(*models: Model) -> Header:
    """Where the parts of models come from that are not built in; nothing if all are."""
    return _needing([part for one in models for part in (one.rule, one.head.joint)])


def _needing(made: list[Any]) -> Header:
    needs = parts.needs_of(made)
    return {"needs": [[*one] for one in needs]} if needs else {}


def _header_of_any(model: Model | Readout) -> Header:
    numbering = {} if model.numbering is None else {"numbering": [*model.numbering]}
    found = model.head.calibrated()
    calibration = {} if found is None else {"calibration": [*found]}
    own = {"format": FORMAT, "version": __version__, "lowest_label": model.lowest_label}
    return {**own, **numbering, **calibration}


def save(model: AnyModel, path: str | Path, *, state: bool = True) -> None:
    """Write a model file: see `thresher.save`."""
    ready = as_model(model)
    if isinstance(ready, Readout):
        ready.save(path)
        return
    save_all([ready], path, state=state)


def save_all(
    models: Sequence[Model | Readout | None],
    path: str | Path,
    run: Header | None = None,
    beside: Tensors | None = None,
    *,
    state: bool = True,
) -> None:
    """Write a file of many models; None is one that was dropped. See `write_all` and `thresher.save`."""
    with ExitStack() as resting:
        kept = [None if one is None else _contents(one, state, resting) for one in models]
        write_all(path, kept, run, beside)


def _contents(model: Model | Readout, state: bool, resting: ExitStack) -> tuple[Header, Tensors]:
    """Header and tensors of a model, which must not learn before these are written."""
    if isinstance(model, Model):
        resting.enter_context(model.at_rest())
        return header_of(model), tensors_of(model, state=state)
    return header_of_weights(model), _named_weights(model, model.names)


@contextmanager
def file_of(given: Any, write: Callable[[Any, Path], None] = save) -> Iterator[Path]:
    """The given path, or a temporary file with the given model. Raises the errors of `write`."""
    if isinstance(given, str | PathLike):
        yield Path(given)
        return
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model"
        write(given, path)
        yield path


def tensors_of(model: Model, *, state: bool = True) -> Tensors:
    """Weights, and the state under ``state.*``. `DivergedError` if any of it is not finite."""
    model.check_finite()
    own = beneath("state.", model.state()) if state else {}
    return _named_weights(model.readout(), model.names) | own


def tell_large_state(models: Sequence[Model], say: Callable[[str], None], otherwise: str) -> None:
    """Call `say` before the learning state of these models is written, if it is large.

    `otherwise` tells how to do without, or why it is written.
    """
    state = sum(array.nbytes for model in models for array in model.state().values())
    if state < MUCH:
        return
    weights = sum(array.nbytes for model in models for array in model.weights())
    if state >= min(LARGE, TIMES * weights):
        beside = f"{size_shown(state)} of learning state beside {size_shown(weights)} of weights"
        say(f"writing {beside}; {otherwise}")


def tensors_of_names(names: Names) -> Tensors:
    """The tensors of feature names."""
    return {NAMES + "keys": names.features, NAMES + "ends": names.ends, NAMES + "letters": names.letters}


def _named_weights(readout: Readout, names: Names | None) -> Tensors:
    return weights_of(readout) | ({} if names is None else tensors_of_names(names.only(readout.keys)))


def weights_of(readout: Readout) -> Tensors:
    """The tensors in every model file."""
    tensors: Tensors = {
        "weights.keys": readout.keys,
        "weights.values": readout.weights,
        "weights.intercept": readout.centred_bias,
        "weights.unmet": readout.unmet,
    }
    if readout.divisors is not None:
        tensors |= {"scale.keys": readout.divisors.keys, "scale.by": readout.divisors.by}
    if readout.means is not None:
        tensors |= readout.means.tensors()
    return tensors


def write(path: str | Path, header: Header, tensors: Tensors) -> None:
    """Write a file of one model, with what its header says of a run. Raises OSError."""
    write_all(path, [(header, tensors)])


def write_all(
    path: str | Path,
    models: Sequence[tuple[Header, Tensors] | None],
    run: Header | None = None,
    beside: Tensors | None = None,
) -> None:
    """Write a complete file or none, without copying tensors. Raises OSError.

    Args:
        models: header and tensors of each; None for one that was dropped.
        run: fields of RUN, in addition to those in headers.
        beside: tensors of no model.
    """
    with whole_file(path, "wb") as file:
        for piece in _pieces(models, run or {}, beside or {}):
            file.write(piece)


def as_bytes(header: Header, tensors: Tensors) -> bytes:
    """The content of a file of one model, with this header and these tensors."""
    return b"".join(_pieces([(header, tensors)], {}, {}))


def _pieces(
    models: Sequence[tuple[Header, Tensors] | None], run: Header, beside: Tensors
) -> Iterator[bytes | memoryview]:
    """The bytes of a file, tensor by tensor."""
    common = _in_all([one[1] for one in models if one is not None])
    own = [{} if one is None else {n: a for n, a in one[1].items() if n not in common} for one in models]
    named = [beneath(f"{k}.", one) for k, one in enumerate(own)]
    every = (beside, beneath(_SHARED, common), *named)
    whole = {n: np.ascontiguousarray(a) for tensors in every for n, a in tensors.items()}
    header = _packed([None if one is None else one[0] for one in models], run)
    sums = {name: _checksum(array) for name, array in whole.items()}
    sums["header"] = _header_sum({**header, "crc32": sums})
    names = sorted(whole, key=lambda name: (-whole[name].itemsize, name))  # so that all are aligned
    text = json.dumps({**header, "crc32": sums}, sort_keys=True)
    yield _safetensors_head(text, {name: whole[name] for name in names})
    for name in names:
        yield _bytes_of(whole[name])


def _in_all(models: Sequence[Tensors]) -> Tensors:
    """The tensors that are equal in all of several models; lanes have one index."""
    if len(models) < 2:
        return {}
    first, *others = models
    return {
        name: array
        for name, array in first.items()
        if all(name in one and _are_equal(one[name], array) for one in others)
    }


def _are_equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other)


def _packed(headers: Sequence[Header | None], run: Header) -> Header:
    """The header of a file: what all models have in common stands once."""
    there = [one for one in headers if one is not None]
    first = there[0] if there else {"format": FORMAT, "version": __version__}
    file: Header = {name: first[name] for name in EDITION if name in first}
    file |= {"run": {name: one[name] for one in (*there, run) for name in RUN if name in one}}
    if len(there) == 1 and "needs" in first:
        file["needs"] = first["needs"]
    elif needs := {json.dumps(need): need for one in there for need in one.get("needs", [])}:
        file["needs"] = [*needs.values()]
    own = [one and {name: value for name, value in one.items() if name not in _OF_FILE} for one in headers]
    shared: Header = {}
    if len(there) > 1:
        shared = _common([one for one in own if one is not None])
        shared["recipe"] = _common([one["recipe"] for one in there])
        own = [one and _without(one, shared) for one in own]
    return {**file, "shared": shared, "models": own}


def _common(headers: Sequence[Header]) -> Header:
    """The fields that all have with the same value."""
    first, *others = headers
    return {n: v for n, v in first.items() if all(n in one and one[n] == v for one in others)}


def _without(header: Header, shared: Header) -> Header:
    """What a model has beside what all have."""
    own = {name: value for name, value in header.items() if name not in shared}
    return {**own, "recipe": {n: v for n, v in header["recipe"].items() if n not in shared["recipe"]}}


def _safetensors_head(text: str, tensors: Tensors) -> bytes:
    """The start of a safetensors file: the length of a JSON object, and the object, which lists tensors."""
    entries: dict[str, Any] = {"__metadata__": {"thresher": text}}
    end = 0
    for name, array in tensors.items():
        begin, end = end, end + array.nbytes
        kind = "BOOL" if array.dtype.kind == "b" else f"{array.dtype.kind.upper()}{8 * array.itemsize}"
        entries[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [begin, end]}
    raw = json.dumps(entries, separators=(",", ":")).encode()
    if len(raw) > _LONGEST_HEADER:
        raise ModelFileError(
            f"the names of columns and classes take {len(raw) >> 20} MB in a model file, which has room for"
            f" {_LONGEST_HEADER >> 20}: use fewer or shorter names"
        )
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _header_sum(header: Header) -> int:
    """CRC-32 of the header without this checksum itself."""
    tensors = {name: value for name, value in header["crc32"].items() if name != "header"}
    return zlib.crc32(json.dumps({**header, "crc32": tensors}, sort_keys=True).encode())


def _checksum(array: NDArray[Any]) -> int:
    kind = zlib.crc32(f"{array.dtype.str} {array.shape}".encode())
    return zlib.crc32(_bytes_of(array), kind)


def looks_like_ours(path: Path) -> bool | None:
    """Whether a file starts like the models and checkpoints written by thresher; None if there is none.

    A pipe is not looked into: what is read from it would be lost.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with open(path, "rb") as file:
            return begins_a_model(file.read(_HEAD))
    except FileNotFoundError:
        return None
    except OSError:
        return False


def _is_special(path: Path) -> bool:
    """Whether it is a pipe, a device or the like, and not a file or a folder."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


class Contents:
    """The content of a file, whose header is checked; a tensor is read, and checked, when it is asked for.

    Raises `ModelFileError`, which calls the file by its `name`.
    """

    def __init__(self, name: str, metadata: dict[str, str], tensors: Mapping[str, Any]) -> None:
        self.name, self._tensors = name, tensors
        self.header = _checked(name, metadata, tensors)
        self.run: Header = self.header["run"]
        """what is known of the run that made the models"""

    @classmethod
    def of(cls, path: str | Path) -> Contents:
        """The content of the file at a path."""
        from safetensors import safe_open

        name = str(path)
        if _is_special(Path(path)):
            raise ModelFileError(f"{name}: a pipe or device, not a model file")
        try:
            with open(path, "rb"):  # gives a clearer error than safetensors if it cannot be read
                pass
            file = safe_open(name, "np")
            return cls(name, _metadata_of(file), _Reader(file))
        except OSError as error:
            reason = _of_directory(name) if Path(path).is_dir() else error.strerror or str(error)
            raise ModelFileError(f"{name}: {reason}") from error
        except _NO_TENSORS as error:
            if isinstance(error, ModelFileError):
                raise
            if not looks_like_ours(Path(path)):
                raise ModelFileError(f"{name}: not a thresher model") from error
            raise ModelFileError(f"{name}: a damaged or truncated model ({error})") from error

    def __len__(self) -> int:
        """The number of models, including those that were dropped."""
        return len(self.header["models"])

    @property
    def there(self) -> list[int]:
        """Numbers of the models that were not dropped."""
        return [k for k, one in enumerate(self.header["models"]) if one is not None]

    def header_of(self, number: int) -> Header:
        """The header of a model, as `header_of` makes it, and what is known of the run."""
        if number not in self.there:
            raise ModelFileError(f"{self.name}: damaged: it has no model {number}")
        own, shared = self.header["models"][number], self.header["shared"]
        with naming_file(self.name, self.header):
            check_present(shared, {"recipe": dict}, "shared")
            check(own, {"recipe": dict}, "model")
            recipe = {**shared.get("recipe", {}), **own["recipe"]}
            file = {name: self.header[name] for name in ("needs", *EDITION) if name in self.header}
            found = {**file, **shared, **own, "recipe": recipe}
        with naming_file(self.name, found):
            _check_model(found)
        return found | self.run

    def tensors(self, prefix: str) -> Tensors:
        """The tensors whose names begin with a prefix, by the rest of their names."""
        names = [name for name in self._tensors if name.startswith(prefix)]
        return {name.removeprefix(prefix): self._tensor(name) for name in names}

    def beside(self) -> Tensors:
        """The tensors of no model."""
        own = tuple(f"{k}." for k in self.there)
        return {n: self._tensor(n) for n in self._tensors if not n.startswith((_SHARED, *own))}

    def _tensor(self, name: str) -> NDArray[Any]:
        try:
            found: NDArray[Any] = self._tensors[name]
        except _NO_TENSORS as error:
            raise ModelFileError(f"{self.name}: a damaged or truncated model ({error})") from error
        if _checksum(found) != self.header["crc32"][name]:
            raise ModelFileError(f"{self.name}: damaged: {name} does not match its checksum")
        if ".weights." in name and not np.isfinite(found).all():
            raise ModelFileError(f"{self.name}: {name} contains a number that is not finite")
        return found

    def model(self, number: int) -> tuple[Header, Tensors]:
        """Header and tensors of a model."""
        return self.header_of(number), self.tensors(_SHARED) | self.tensors(f"{number}.")

    def frontier(self) -> FrontierTable | None:
        """The table of a frontier; None if the models are none."""
        if FRONTIER not in self.run:
            return None
        with naming_file(self.name, self.header):
            found = FrontierTable.from_dict(self.run[FRONTIER])
            if [one.dropped is None for one in found.points] != [k in self.there for k in range(len(self))]:
                raise StateError("frontier: it has other models than the file")
        return found

    def chosen(self, which: str | None = None) -> int:
        """The number of the model that stands for all, or of the one that `which` selects.

        `UsageError` if no model is meant by `which`.
        """
        frontier = self.frontier()
        if which is not None and which.isdecimal():
            if int(which) in self.there:
                return int(which)
            raise UsageError(f"{self.name} has no model {which}: its models are {_spans(self.there)}")
        if which is not None and frontier is None:
            raise UsageError(f"{self.name}: {self._kind()} (you asked for {which})")
        if frontier is not None:
            return frontier.chosen if which is None else choose(frontier.points, which)
        if LANES in self.run:
            raise ModelFileError(
                f"{self.name}: a checkpoint of many models: resume it with {mention(resume=True)} of the"
                " command that wrote it"
            )
        if len(self.there) != 1:
            raise ModelFileError(f"{self.name}: {self._kind()}")
        return self.there[0]

    def _kind(self) -> str:
        """What the file holds, and how to do without a choice of one model, in words."""
        if ENSEMBLE in self.run:
            one = spelled(
                f"thresher choose {self.name} 0 -m MODEL takes out", "thresher.load(path).models[0] is"
            )
            return f"an ensemble, not one model: {one} one of its models"
        if SELECTION in self.run and not self.there:
            learns = spelled("thresher select --keep", "thresher.select(..., keep=True)")
            return f"a selection without a model: {learns} learns one"
        return "it holds one model, so there is nothing to choose"


def _metadata_of(file: Any) -> dict[str, str]:
    return file.metadata() or {}


class _Reader(Mapping[str, Any]):
    """The tensors of an open file."""

    def __init__(self, file: Any) -> None:
        self._file, self._names = file, dict.fromkeys(file.keys())

    def __getitem__(self, name: str) -> Any:
        return self._file.get_tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _spans(numbers: Sequence[int]) -> str:
    """Numbers, in words."""
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else ", ".join(map(str, numbers))


def read(path: str | Path, which: str | None = None) -> tuple[Header, Tensors]:
    """Header and tensors of the model in a file, of many that of `which`: see `Contents.chosen`."""
    found = Contents.of(path)
    return found.model(found.chosen(which))


def _of_directory(name: str) -> str:
    """Why a directory cannot be read, as text."""
    from thresher.data.log.segments import is_log

    if is_log(Path(name)):
        return f"the log of a server, not a model: thresher log {name} shows what it holds"
    return "a directory, not a model"


def from_bytes(data: bytes, name: str = "the model") -> tuple[Header, Tensors]:
    """Header and tensors from the output of `as_bytes`; `ModelFileError`, which calls the model `name`."""
    from safetensors.numpy import load as parsed

    try:
        tensors = parsed(data)
        (length,) = struct.unpack_from("<Q", data)
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    except _NO_TENSORS as error:
        raise ModelFileError(f"{name}: a damaged or truncated model ({error})") from error
    return Contents(name, metadata, tensors).model(0)


def check_parts(path: str | Path, header: Header, kinds: Collection[str] = parts.REGISTRY) -> None:
    """`ModelFileError`, which says what to install, unless the parts of these kinds are there."""
    with naming_file(path):
        parts.check_there([one for one in needs_in(header) if one.kind in kinds])


def needs_in(header: Header) -> tuple[parts.Need, ...]:
    """Where the parts of the model come from that are not built in."""
    found: tuple[parts.Need, ...] = form_of(_NEEDS).made(header.get("needs", []))
    return found


def _checked(name: str, metadata: dict[str, str], tensors: Collection[str]) -> Header:
    """The header of a file with tensors of these names."""
    if "thresher" not in metadata:
        raise ModelFileError(f"{name}: a safetensors file, but not a thresher model")
    try:
        header: Header = json.loads(metadata["thresher"])
        whole = header["crc32"]["header"] == _header_sum(header)
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    except RecursionError as error:
        raise ModelFileError(f"{name}: the header is nested too deeply") from error
    if not whole:
        raise ModelFileError(f"{name}: damaged: the header does not match its checksum")
    with naming_file(name):
        check(header, EDITION)
    check_format(name, header, FORMAT)
    with naming_file(name, header):
        check(header, _FILE)
        check_present(header, {"needs": _NEEDS})
        check_known(header, {*EDITION, *_FILE, "needs", "crc32"}, "header")
        check_known(header["run"], RUN, "run")
    if wrong := {*header["crc32"]} - {"header"} ^ {*tensors}:
        raise ModelFileError(f"{name}: damaged: {min(wrong)} does not match its checksum")
    return header


def _check_model(given: Any) -> None:
    """Check the header of a model. Raises StateError."""
    check(given, MODEL, "model")
    check_present(given, _OPTIONAL, "model")
    check_known(given, {*EDITION, *MODEL, *_OPTIONAL, *_OTHERS}, "model")
    record_of(given)
    recipe = given["recipe"]
    check(recipe, {"rule": str | None}, "recipe")
    if recipe["rule"] is None:
        known = {name: RECIPE[name] for name in (*_WEIGHTS, "offset")}
        check_all(recipe, {**known, "rule": str | None}, "recipe")
    else:
        check_all(recipe, RECIPE, "recipe")


def load_readout(path: str | Path, which: str | None = None) -> tuple[Readout, Header]:
    """The weights for prediction, and the header; of the model that `which` selects, if there are many."""
    header, tensors = read(path, which)
    return readout_of(path, header, tensors), header


def readout_of(path: str | Path, header: Header, tensors: Tensors) -> Readout:
    """The Readout described by header and tensors."""
    recipe = header["recipe"]
    check_parts(path, header, ("loss", "joint loss"))
    with naming_file(path, header), _naming_unknown_parts(path, header):
        head, numbers = Objective(recipe["loss"], recipe["outputs"]), header.get("calibration")
        _check_learning(recipe, head, calibrated=numbers is not None)
        if numbers is not None and head.count > 1 and not numbers[0] > 0:
            raise ValueError("the inverse of a temperature must be > 0")
        if numbers is not None:
            head = head.with_calibration(FittedLink(*numbers))
        readout = Readout.of(head, recipe["store"], header["lowest_label"], tensors)
        readout.layout, readout.names = layout_of(recipe), names_of(tensors, NAMES)
        readout.numbering, readout.shifted = numbering_in(header), recipe["offset"]
        readout.made = None if recipe["rule"] is None else (recipe["rule"], recipe["seed"])
        if readout.layout is not None and head.domain.has_classes:
            head.domain.of_words(readout.layout.classes)  # a word for each class
    return readout


def _check_learning(recipe: Header, head: Objective, *, calibrated: bool) -> None:
    """Check what only learning uses, so that all commands refuse the same files. ValueError."""
    own = {} if recipe["rule"] is None else recipe
    sample = None if own.get("sample") is None else Sample.of(own["sample"])
    if calibrated or own.get("calibrate", False):
        check_calibrated(head, own.get("average", False), sample is not None and sample.correct)
    if sample is not None:
        Sampler(sample, head, own["seed"]).bind(layout_of(own))


def record_of(header: Header) -> Record | None:
    """The record of the model's training, or None."""
    return Record.from_dict(header["record"]) if "record" in header else None


def numbering_in(header: Header) -> Numbering | None:
    """The ids that the model was trained on; None if that was not kept, or features have names."""
    return Numbering(*header["numbering"]) if "numbering" in header else None


def curve_in(header: Header) -> Curve:
    """How progressive loss and weights developed; empty where that was not kept."""
    return curve_of(header.get("curve", []))


def load(path: str | Path, which: str | None = None) -> tuple[Model, Header]:
    """The model, ready to keep learning, and the header; the one that `which` selects, if there are many."""
    header, tensors = read(path, which)
    return revive(path, header, tensors), header


def revive(path: str | Path, header: Header, tensors: Tensors) -> Model:
    """The model described by header and tensors."""
    if header["recipe"]["rule"] is None:
        raise ModelFileError(
            f"{path}: made by a batch solver: it contains only weights and cannot keep learning: {_START}"
        )
    state = under(tensors, "state.")
    if not state:
        reason = "contains only weights and cannot keep learning"
        raise ModelFileError(f"{path}: {reason}: {_START}; {_KEEPING} keeps what learning needs")
    check_parts(path, header)
    with naming_file(path, header), _naming_unknown_parts(path, header):
        model = Model(Recipe.from_dict(header["recipe"]))
        model.restore(state)
        model.names = names_of(tensors, NAMES)
        model.record, model.warm = record_of(header), header.get("warm", False)
        model.curve, model.numbering = curve_in(header), numbering_in(header)
    return model


@contextmanager
def _naming_unknown_parts(path: str | Path, header: Header) -> Iterator[None]:
    """Add to the error about an unknown part where the part could be defined."""
    try:
        yield
    except parts.SpecError as error:
        remedy = told_of(header["version"]) or " (import the module that defines it first)"
        raise ModelFileError(f"{path}: {error}{remedy}") from error
