"""Models on disk: safetensors with a JSON header. Loading a model runs no code that comes from the file.

A file holds one model, or many: a frontier, an ensemble, a selection. A checkpoint is such a file with the
state of training. ``header["models"]`` has what is known of each, and the names of its tensors begin with its
number; what all have in common stands once, in ``shared``, and what the run tells of them in ``run``.

A file under its own name is always complete. The header holds the CRC-32 of each tensor and of itself, so
damage is detected.
"""

from __future__ import annotations

import difflib
import json
import os
import stat
import struct
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, NotRequired, TypedDict, get_type_hints

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from thresher import parts
from thresher._version import __version__, upgrade, upgrade_hint
from thresher.data.errors import OneLineError, shorten
from thresher.data.features.names import Names
from thresher.data.files.paths import begins_a_model, is_log
from thresher.data.stored import read as read_as
from thresher.engine.atomic import whole_file
from thresher.engine.sound import PACKED, PackedSets, StateError, beneath, pack, under
from thresher.learning.files.choice import ALL, LOSS, FrontierTable, check_choice, choose, column_of, not_one
from thresher.learning.inspection.formatting import finite
from thresher.learning.model.agreement import Numbering
from thresher.learning.model.model import Model, as_model
from thresher.learning.model.objective import FittedLink, Objective
from thresher.learning.model.prediction import AnyModel, LinearPredictor, names_of
from thresher.learning.model.recipe import Header, Recipe, layout_of
from thresher.learning.training.progress import Curve
from thresher.learning.training.record import Record
from thresher.options.layouts import of_options
from thresher.options.messages import mention, mention_command, shell_or_python
from thresher.options.option import UsageError

FORMAT = 1
_HEAD = 64
"""Bytes needed to recognise a model"""
_LONGEST_HEADER = 100_000_000
"""What safetensors reads"""
_NO_TENSORS = (SafetensorError, ValueError, TypeError, AttributeError, OverflowError)
"""What reading raises for bytes that are not tensors of a type that NumPy has."""
Tensors = dict[str, NDArray[Any]]


class Edition(TypedDict):
    """Fields of every file, in any format version."""

    format: int
    version: str


class ModelFields(Edition):
    """Fields of a model; those of any type are checked where they are used."""

    recipe: dict[str, Any]
    lowest_label: float
    nonzero: int
    needs: NotRequired[tuple[parts.Need, ...]]
    examples: NotRequired[int]
    features_seen: NotRequired[int]
    features_freed: NotRequired[bool]
    left_out: NotRequired[int]
    progressive_loss: NotRequired[float | None]
    loss_of_later_passes: NotRequired[float]
    numbering: NotRequired[tuple[int, int, bool]]
    named: NotRequired[bool]
    warm: NotRequired[bool]
    calibration: NotRequired[tuple[float, float]]
    curve: NotRequired[Curve]
    intercept: NotRequired[Any]
    record: NotRequired[Record]
    solver: NotRequired[dict[str, Any]]


class EnsembleTable(TypedDict):
    """What a file knows of an ensemble."""

    rows: str
    record: Record | None
    examples: int
    values: list[str]


RUN = LANES, TRAINING, FRONTIER, ENSEMBLE, SELECTION = (
    *("lanes", "training", "frontier", "ensemble", "selection"),
)
"""What is known of the run that made the models"""
_OF_FILE = {*Edition.__annotations__, *RUN, "needs"}
"""Fields of a model's header that stand once in a file"""
_typed_dict: Any = TypedDict
_File = _typed_dict(
    "_File",
    {
        **get_type_hints(Edition),
        "models": list[dict[str, Any] | None],
        "shared": dict[str, Any],
        "run": _typed_dict("_Run", dict.fromkeys(RUN, dict[str, Any]), total=False),
        "crc32": dict[str, Any],
        "needs": NotRequired[tuple[parts.Need, ...]],
    },
)
_KINDS = get_type_hints(Recipe)
RECIPE = {
    **{one.name: _KINDS[one.name] for one in fields(Recipe)},
    "rule": str,
    "loss": str,
    "rate": str | None,
    "layout": dict[str, Any] | None,
    "sample": str | None,
}
"""Fields of the recipe of a model that can keep learning"""
OfRecipe = _typed_dict("OfRecipe", RECIPE)
_OfWeights = _typed_dict(
    "_OfWeights",
    {
        "rule": str | None,
        **{n: RECIPE[n] for n in ("loss", "outputs", "store", "intercept", "layout", "offset")},
    },
)
"""Fields of the recipe in a file with weights only."""
_LONGEST = 1000
"""Maximum length of a message: a file may contain text of any length in place of a name."""
_SHARED = "shared."
"""Prefix of the tensors that all models of a file have"""
NAMES = "names."
"""Prefix of the tensors that hold names."""


class ModelFileError(OneLineError):
    """Raised for a file that is not a model this version can read; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(shorten(message, _LONGEST))


@contextmanager
def naming_file(name: str | Path, header: Header | None = None) -> Iterator[None]:
    """Turn errors about the content of a file into a `ModelFileError` that names the file.

    With its header, the message says so if a later version of thresher has written it, and what to do about a
    part that is unknown.
    """
    try:
        yield
    except ModelFileError:
        raise
    except MemoryError as error:
        raise ModelFileError(f"{name}: not enough memory: {error}") from error
    except LookupError as error:
        raise ModelFileError(f"{name}: the header contradicts itself ({error})") from error
    except (
        ValueError,
        OverflowError,
    ) as error:  # StateError, SpecError, DataError, and what Model and Head refuse
        remedy = upgrade_hint(header and header.get("version"))
        if header is not None and isinstance(error, parts.SpecError):
            remedy = remedy or " (import the module that defines it first)"
        raise ModelFileError(f"{name}: {error}{remedy}") from error


def header_of(model: Model | LinearPredictor) -> Header:
    """The header of a model: its recipe and counts. Fields may be added.

    Of a LinearPredictor there are only weights, which no rule can keep training, and what it says of itself.
    """
    meant = model.head.calibrated()
    found = {
        "format": FORMAT,
        "version": __version__,
        "lowest_label": model.lowest_label,
        "nonzero": model.nonzero,
        **needing(model),
        **({} if model.numbering is None else {"numbering": [*model.numbering]}),
        **({"named": True} if model.named else {}),
        **({} if meant is None else {"calibration": [*meant]}),
    }
    if isinstance(model, LinearPredictor):
        recipe = {
            "rule": None,
            "loss": parts.spec_of(model.loss),
            "outputs": model.head.outputs.spec,
            "store": model.store,
            "intercept": model.has_intercept,
            "layout": None if model.layout is None else model.layout.as_dict(),
            "offset": model.shifted,
        }
        return {**found, "recipe": recipe, **model.said}
    return {
        **found,
        "recipe": model.recipe.as_dict(),
        "intercept": finite(np.asarray(model.intercept).tolist()),
        "examples": model.examples,
        "progressive_loss": model.tally.known,
        **({"loss_of_later_passes": model.repeated.average} if model.repeated.weight > 0 else {}),
        "features_seen": model.features_seen,
        **({"features_freed": True} if model.features_freed else {}),
        **({"left_out": model.left_out} if model.left_out else {}),
        **({"curve": [list(point) for point in model.curve]} if model.curve else {}),
        **({"warm": True} if model.warm else {}),
        **({} if model.record is None else {"record": model.record.as_dict()}),
    }


def needing(*models: Model | LinearPredictor) -> Header:
    """Where the parts of models come from that are not built in; nothing if all are."""
    rules = [one.rule for one in models if not isinstance(one, LinearPredictor)]
    needs = parts.needs_of([*rules, *(one.head.joint for one in models)])
    return {"needs": [[*one] for one in needs]} if needs else {}


def save(model: AnyModel, path: str | Path, *, state: bool = True) -> None:
    """Write a model file: see `thresher.save`."""
    ready = as_model(model)
    if isinstance(ready, LinearPredictor):
        ready.save(path)
    else:
        save_all([ready], path, state=state)


def save_all(
    models: Sequence[Model | LinearPredictor | None],
    path: str | Path,
    run: Header | None = None,
    beside: Tensors | None = None,
    *,
    state: bool = True,
) -> None:
    """Write a file of many models; None is one that was dropped. See `write_all` and `thresher.save`."""
    with ExitStack() as resting:
        for one in models:
            if isinstance(one, Model):  # which must not learn before all is written
                resting.enter_context(one.feed.at_rest())
        kept = [None if one is None else (header_of(one), tensors_of(one, state=state)) for one in models]
        write_all(path, kept, run, beside)


@contextmanager
def file_of(given: object, write: Callable[[Any, Path], None] = save) -> Iterator[Path]:
    """The given path, or a temporary file with the given model. Raises the errors of `write`."""
    if isinstance(given, str | PathLike):
        yield Path(given)
        return
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model"
        write(given, path)
        yield path


def tensors_of(model: Model | LinearPredictor, *, state: bool = True) -> Tensors:
    """Weights, and the state under ``state.*``. `DivergedError` if any of it is not finite."""
    if isinstance(model, Model):
        model.check_finite()
    predictor, names = model.predictor(), model.names
    named = {} if names is None else tensors_of_names(names.only(predictor.keys))
    own = beneath("state.", model.state()) if state and isinstance(model, Model) else {}
    return weights_of(predictor) | named | own


def tensors_of_names(names: Names) -> Tensors:
    """The tensors of feature names."""
    return {NAMES + "keys": names.features, NAMES + "ends": names.ends, NAMES + "letters": names.letters}


def weights_of(predictor: LinearPredictor) -> Tensors:
    """The tensors in every model file."""
    tensors: Tensors = {
        "weights.keys": predictor.keys,
        "weights.values": predictor.weights,
        "weights.intercept": predictor.centred_bias,
        "weights.unmet": predictor.unmet,
    }
    if predictor.divisors is not None:
        tensors |= {"scale.keys": predictor.divisors.keys, "scale.by": predictor.divisors.by}
    if predictor.means is not None:
        tensors |= predictor.means.tensors()
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
    there = [one for one in models if one is not None]
    common: Tensors = {}
    if len(there) > 1:  # lanes have one index
        (_, first), *others = there
        common = {
            name: array
            for name, array in first.items()
            if all(
                name in one and one[name].dtype == array.dtype and np.array_equal(one[name], array)
                for _, one in others
            )
        }
    own = [{n: a for n, a in one[1].items() if n not in common} if one else {} for one in models]
    every = (beside, beneath(_SHARED, common), pack(own))
    whole = {n: np.ascontiguousarray(a) for tensors in every for n, a in tensors.items()}
    header = _pack_headers([one and one[0] for one in models], run)
    sums = {name: _checksum(array) for name, array in whole.items()}
    sums["header"] = _header_sum({**header, "crc32": sums})
    names = sorted(whole, key=lambda name: (-whole[name].itemsize, name))  # so that all are aligned
    text = json.dumps({**header, "crc32": sums}, sort_keys=True)
    # a safetensors file: the length of a JSON object, which lists the tensors, the object, and the tensors
    entries: dict[str, Any] = {"__metadata__": {"thresher": text}}
    end = 0
    for name in names:
        array = whole[name]
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
    yield len(raw).to_bytes(8, "little") + raw
    for name in names:
        yield whole[name].reshape(-1).view(np.uint8).data


def _pack_headers(headers: Sequence[Header | None], run: Header) -> Header:
    """The header of a file: what all models have in common stands once."""
    there = [one for one in headers if one is not None]
    first = there[0] if there else {"format": FORMAT, "version": __version__}
    file: Header = {name: first[name] for name in Edition.__annotations__ if name in first}
    file |= {"run": {name: one[name] for one in (*there, run) for name in RUN if name in one}}
    if needs := {json.dumps(need): need for one in there for need in one.get("needs", [])}:
        file["needs"] = [*needs.values()]
    shared, own = _split([{n: v for n, v in one.items() if n not in _OF_FILE} for one in there])
    if len(there) > 1:
        shared["recipe"], recipes = _split([one["recipe"] for one in there])
        own = [{**one, "recipe": recipe} for one, recipe in zip(own, recipes, strict=True)]
    each = iter(own)
    return {**file, "shared": shared, "models": [None if one is None else next(each) for one in headers]}


def _split(headers: Sequence[Header]) -> tuple[Header, list[Header]]:
    """The fields that all of several have with the same value, and those of each beside them."""
    if len(headers) < 2:
        return {}, [*headers]
    first, *others = headers
    shared = {n: v for n, v in first.items() if all(n in one and one[n] == v for one in others)}
    return shared, [{n: v for n, v in one.items() if n not in shared} for one in headers]


def _header_sum(header: Header) -> int:
    """CRC-32 of the header without this checksum itself."""
    tensors = {name: value for name, value in header["crc32"].items() if name != "header"}
    return zlib.crc32(json.dumps({**header, "crc32": tensors}, sort_keys=True).encode())


def _checksum(array: NDArray[np.generic]) -> int:
    kind = zlib.crc32(f"{array.dtype.str} {array.shape}".encode())
    return zlib.crc32(array.reshape(-1).view(np.uint8).data, kind)


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


class Contents:
    """The content of a file, whose header is checked; a tensor is read, and checked, when it is asked for.

    Raises `ModelFileError`, which calls the file by its `name`.
    """

    def __init__(
        self, name: str, metadata: dict[str, str] | None, names: Collection[str], get: Callable[[str], Any]
    ) -> None:
        self.name, self._names, self._get = name, names, get
        if "thresher" not in (metadata or {}):
            raise ModelFileError(f"{name}: a safetensors file, but not a thresher model")
        try:
            # OverflowError: no whole number in a header is negative or has more than 64 bits
            self.header: Header = json.loads(
                (metadata or {})["thresher"], parse_int=lambda digits: int(np.uint64(int(digits)))
            )
            whole = self.header["crc32"]["header"] == _header_sum(self.header)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            whole = False
        if not whole:
            raise ModelFileError(f"{name}: damaged: the header does not match its checksum")
        header = self.header
        with naming_file(name):
            read_as(Edition, {n: header[n] for n in Edition.__annotations__ if n in header}, "header")
        if header["format"] != FORMAT:
            version, own = header["version"], f"thresher {__version__}"
            same = version == __version__
            writer = f"another development state of {own}" if same else f"thresher {version}"
            remedy = upgrade(version) or "train the model again, or use that version"
            raise ModelFileError(
                f"{name}: format {header['format']}, written by {writer}; {'this one' if same else own} reads"
                f" format {FORMAT}: {remedy}"
            )
        with naming_file(name, header):
            read_as(_File, header, "header")
        if not any([*header["models"], SELECTION in header["run"]]):
            raise ModelFileError(f"{name}: it holds no model")
        if wrong := {*header["crc32"]} - {"header"} ^ {*names}:
            raise ModelFileError(f"{name}: damaged: {min(wrong)} does not match its checksum")
        self.run: Header = header["run"]
        """what is known of the run that made the models"""
        self.there = [k for k, one in enumerate(header["models"]) if one is not None]
        """numbers of the models that were not dropped"""
        self._packed = PackedSets(names, self._tensor)

    @classmethod
    def of(cls, path: str | Path) -> Contents:
        """The content of the file at a path."""
        from safetensors import safe_open

        name = str(path)
        try:
            mode = os.stat(path).st_mode
            if not stat.S_ISREG(mode):
                shows = f"the log of a server, not a model: thresher log {name} shows what it holds"
                what = shows if is_log(name) else "a directory, pipe or device, not a model"
                raise ModelFileError(f"{name}: {what}")
            with open(path, "rb"):  # gives a clearer error than safetensors if it cannot be read
                pass
            file: Any = safe_open(name, "np")
            return cls(name, file.metadata(), file.keys(), file.get_tensor)
        except OSError as error:
            raise ModelFileError(f"{name}: {error.strerror or error}") from error
        except ModelFileError:
            raise
        except _NO_TENSORS as error:
            if not looks_like_ours(Path(path)):
                raise ModelFileError(f"{name}: not a thresher model") from error
            raise ModelFileError(f"{name}: a damaged or truncated model ({error})") from error

    def __len__(self) -> int:
        """The number of models, including those that were dropped."""
        return len(self.header["models"])

    def header_of(self, number: int) -> Header:
        """The header of a model, as `header_of` makes it, and what is known of the run."""
        with naming_file(self.name, self.header):
            own, shared = self.header["models"][number] or {}, self.header["shared"]
            parts_of = [read_as(dict[str, Any], one.get("recipe", {}), "recipe") for one in (shared, own)]
            found = {n: v for n, v in self.header.items() if n == "needs" or n in Edition.__annotations__}
            found |= {**shared, **own, "recipe": parts_of[0] | parts_of[1]}
            read_as(ModelFields, found, "model")
            learns = found["recipe"].get("rule") is not None
            read_as(OfRecipe if learns else _OfWeights, found["recipe"], "recipe")
        return found | self.run

    def tensors(self, prefix: str) -> Tensors:
        """The tensors whose names begin with a prefix, by the rest of their names."""
        names = [name for name in self._names if name.startswith(prefix)]
        return {name.removeprefix(prefix): self._tensor(name) for name in names}

    def extras(self) -> Tensors:
        """The tensors of no model."""
        heads = {name: name.partition(".")[0] for name in self._names}
        own = (_SHARED[:-1], *PACKED)
        return {n: self._tensor(n) for n, head in heads.items() if head not in own and not head.isdecimal()}

    def _tensor(self, name: str) -> NDArray[np.generic]:
        try:
            found: NDArray[Any] = self._get(name)
        except _NO_TENSORS as error:
            raise ModelFileError(f"{self.name}: a damaged or truncated model ({error})") from error
        if _checksum(found) != self.header["crc32"][name]:
            raise ModelFileError(f"{self.name}: damaged: {name} does not match its checksum")
        return found

    def model(self, number: int) -> tuple[Header, Tensors]:
        """Header and tensors of a model."""
        header = self.header_of(number)
        with naming_file(self.name, header):
            return header, self.tensors(_SHARED) | self._packed.of(number)

    def frontier(self) -> FrontierTable | None:
        """The table of a frontier; None if the models are none."""
        if FRONTIER not in self.run:
            return None
        with naming_file(self.name, self.header):
            found = read_as(FrontierTable, self.run[FRONTIER], FRONTIER)
            if [one.dropped is None for one in found.points] != [k in self.there for k in range(len(self))]:
                raise StateError("frontier: it has other models than the file")
            for one in (point for point in found.points if point.dropped is None):
                held = {LOSS, one.judge} if one.holdout is None else one.holdout.keys()
                if one.nonzero is None or not {LOSS, one.judge} <= held:
                    raise StateError(f"frontier: {one.spec} has no weights or figures, but was not dropped")
            if not found.choice.isdecimal():
                check_choice(found.choice)
        return found

    def ensemble(self) -> EnsembleTable | None:
        """The table of an ensemble; None if the models are none."""
        if ENSEMBLE not in self.run:
            return None
        with naming_file(self.name, self.header):
            found = read_as(EnsembleTable, self.run[ENSEMBLE], ENSEMBLE)
            if not 2 <= len(self.there) == len(self):
                raise StateError("ensemble: it has several models, none of which was dropped")
            if len(found["values"]) != (len(self) - 1 if column_of(found["rows"]) is not None else 0):
                raise StateError("values: one for each model but the first, if their rows have them")
        return found

    def chosen(self, which: str | None = None) -> int:
        """The number of the model that stands for all, or of the one that `which` selects.

        `UsageError` if no model is meant by `which`.
        """
        frontier, ensemble, there = self.frontier(), self.ensemble(), self.there
        values = ensemble["values"] if ensemble is not None else []
        if which is not None and values:
            if which not in (ALL, *values):
                near = difflib.get_close_matches(which, values, 1)
                meant = f"did you mean {near[0]}?" if near else f"{mention_command('info')} lists its values"
                raise UsageError(f"{self.name} has no model of {which or 'an empty value'}; {meant}")
            return 0 if which == ALL else values.index(which) + 1
        if which is not None and which.isdecimal() and there:
            if int(which) in there:
                return int(which)
            known = f"{there[0]} to {there[-1]}" if len(there) > 1 else ", ".join(map(str, there))
            raise UsageError(f"{self.name} has no model {which}: its models are {known}")
        if frontier is not None:
            with of_options():
                return frontier.chosen if which is None else choose(frontier.points, which)
        if which is None and LANES in self.run:
            raise ModelFileError(
                f"{self.name}: a checkpoint of many models: resume it with {mention(resume=True)} of the"
                " command that wrote it"
            )
        if which is None and len(there) == 1:
            return there[0]
        kind = "it holds one model, so there is nothing to choose"
        if ensemble is not None:
            one = shell_or_python(
                f"thresher choose {self.name} 0 -m MODEL takes out", "thresher.load(path).models[0] is"
            )
            kind = f"an ensemble, not one model: {one} one of its models"
            if values:
                kind = not_one(column_of(ensemble["rows"]) or "", self.name)
        elif SELECTION in self.run:
            kind = f"a selection, not a model: {mention_command('train')} learns one"
        if which is None:
            raise ModelFileError(f"{self.name}: {kind}")
        raise UsageError(f"{self.name}: {kind} (you asked for {which})")


def read(path: str | Path, which: str | None = None) -> tuple[Header, Tensors]:
    """Header and tensors of the model in a file, of many that of `which`: see `Contents.chosen`."""
    found = Contents.of(path)
    return found.model(found.chosen(which))


def from_bytes(data: bytes, name: str = "the model") -> tuple[Header, Tensors]:
    """Header and tensors from the output of `as_bytes`; `ModelFileError`, which calls the model `name`."""
    from safetensors.numpy import load as parsed

    try:
        tensors = parsed(data)
        (length,) = struct.unpack_from("<Q", data)
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    except _NO_TENSORS as error:
        raise ModelFileError(f"{name}: a damaged or truncated model ({error})") from error
    return Contents(name, metadata, tensors, tensors.__getitem__).model(0)


def check_parts(path: str | Path, header: Header, kinds: Collection[str] = parts.REGISTRY) -> None:
    """`ModelFileError`, which says what to install, unless the parts of these kinds are there."""
    with naming_file(path):
        parts.check_there([one for one in needs_in(header) if one.kind in kinds])


def needs_in(header: Header) -> tuple[parts.Need, ...]:
    """Where the parts of the model come from that are not built in."""
    return read_as(tuple[parts.Need, ...], header.get("needs", []), "needs")


def load_predictor(path: str | Path, which: str | None = None) -> tuple[LinearPredictor, Header]:
    """The weights for prediction, and the header; of the model that `which` selects, if there are many."""
    header, tensors = read(path, which)
    return predictor_of(path, header, tensors), header


def predictor_of(path: str | Path, header: Header, tensors: Tensors) -> LinearPredictor:
    """The LinearPredictor described by header and tensors."""
    recipe = header["recipe"]
    check_parts(path, header, ("loss", "joint loss"))
    with naming_file(path, header):
        head, layout = Objective(recipe["loss"], recipe["outputs"]), layout_of(recipe)
        if "calibration" in header:
            head = head.with_calibration(FittedLink(*header["calibration"]))
        head.meet(len(layout.classes) if layout is not None else 0)
        predictor = LinearPredictor.of(head, recipe["store"], header["lowest_label"], tensors)
        predictor.layout, predictor.names, predictor.shifted = (
            layout,
            names_of(tensors, NAMES),
            recipe["offset"],
        )
        predictor.numbering = Numbering(*header["numbering"]) if "numbering" in header else None
        predictor.named = header.get("named", False)
        predictor.record = record_of(header)
    return predictor


def record_of(header: Header) -> Record | None:
    """The record of the model's training, or None."""
    return read_as(Record, header["record"], "record") if "record" in header else None


def curve_in(header: Header) -> Curve:
    """How progressive loss and weights developed; empty where that was not kept."""
    return read_as(Curve, header.get("curve", []), "curve")


def load(path: str | Path, which: str | None = None) -> tuple[Model, Header]:
    """The model, ready to keep learning, and the header; the one that `which` selects, if there are many."""
    header, tensors = read(path, which)
    return revive(path, header, tensors), header


def revive(path: str | Path, header: Header, tensors: Tensors) -> Model:
    """The model described by header and tensors."""
    start, state = f"{mention('init')} can start a new model from them", under(tensors, "state.")
    weights = "contains only weights and cannot keep learning"
    if header["recipe"]["rule"] is None:
        raise ModelFileError(f"{path}: made by a batch solver: it {weights}: {start}")
    if not state:
        keeping = shell_or_python("thresher path --state", "save(path, state=True)")
        raise ModelFileError(f"{path}: {weights}: {start}; {keeping} keeps what learning needs")
    check_parts(path, header)
    with naming_file(path, header):
        model = Model(Recipe.from_dict(header["recipe"]))
        model.restore(state)
        model.names = names_of(tensors, NAMES)
        model.record, model.warm = record_of(header), header.get("warm", False)
        model.curve = curve_in(header)
        model.numbering = Numbering(*header["numbering"]) if "numbering" in header else None
        model.named = header.get("named", False)
    return model
