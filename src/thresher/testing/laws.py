"""What must hold for every rule, as functions that raise `LawError`; the project's own tests call them too.

With `set_to(NOT_COMPILED)`, kernels run as plain Python, and with `SMALL_TABLES`, tables are small: quick
tests without a compiler. The source is the same; a wrong index is an IndexError there, where compiled code
would read other memory.

`make` makes a new model of the rule; keyword arguments are options of `Model`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

import numpy as np

from thresher.data.chunk import Chunk
from thresher.engine import calibrating, index, kernels, lookup
from thresher.engine.compile.jit import Kernel
from thresher.engine.protocol import PROTOCOL
from thresher.learning.files import model_file
from thresher.learning.model import batch_feeder as feed
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes
from thresher.testing.streams import Examples, Vector, cut, fingerprint, read_weights

Setting = tuple[Any, str, Any]
"""An object, the name of an attribute, its value"""


NOT_COMPILED: tuple[Setting, ...] = (
    (Kernel, "for_parts", lambda self, *parts: self.function),
    (calibrating, "learn", kernels.learn.function),
)
"""Models run uncompiled; the index of the growing store stays compiled."""
SMALL_TABLES: tuple[Setting, ...] = (
    (index, "FIRST_SIZE", 8),
    (index, "ALWAYS_KEPT", 8),
    (feed, "PIECE", 30),
)
"""The growing store sweeps from its ninth row on, and examples are resolved in small pieces."""


@contextmanager
def set_to(settings: Iterable[Setting]) -> Iterator[None]:
    """Within this block, attributes have other values."""
    with ExitStack() as stack:
        for one in settings:
            stack.enter_context(mock.patch.object(*one))
        yield


Oracle = Callable[[Any, Any, Vector, Vector, Vector], Any]
"""``oracle(rule, loss, X, y, importance)``: the weights after all rows, without intercept"""


class LawError(AssertionError):
    """A rule or a loss breaks a law. The message says which, and what differs."""


class Make(Protocol):
    """Makes a new model of a rule."""

    def __call__(self, **options: Any) -> Model:
        """The model with these options."""


def learned(make: Make, chunk: Chunk, **options: Any) -> Model:
    """A model that has learned a chunk."""
    model = make(**options)
    model.learn(chunk)
    return model


def require_same(law: str, expected: Model, found: Model, what: str) -> None:
    """LawError, which names what differs, unless the states of two models are the same, bit for bit."""
    if fingerprint(expected) == fingerprint(found):
        return
    first, second = expected.state(), found.state()
    for name in first:
        if name not in second or first[name].shape != second[name].shape:
            raise LawError(f"{law}: {what}, {name} has another size")
        if first[name].tobytes() != second[name].tobytes():
            was, now, rule = first[name], second[name], expected.rule
            columns = {"S": rule.SLOTS, "B": rule.SLOTS, "clock": rule.CLOCK, "bclock": rule.CLOCK}
            names = columns.get(name, ())
            bytes_of = (each.view(np.uint8).reshape(*each.shape, -1) for each in (was, now))
            place = tuple(int(k) for k in np.argwhere(np.not_equal(*bytes_of))[0][:-1])
            slot = f" '{names[place[-1]]}'" if place and place[-1] < len(names) else ""
            where = f" of row {place[0]}" if name == "S" else ""
            raise LawError(f"{law}: {what}, {name}{slot}{where} is {now[place]!r}, not {was[place]!r}")
    raise LawError(f"{law}: {what}, there is more state")


def cutting(make: Make, chunk: Chunk, places: Sequence[int] = (0, 1, 1, 30, 31)) -> Model:
    """Law 2: rows one by one, as ranges of a chunk or as chunks of their own, are one chunk, bit for bit."""
    law = "law 2, cutting changes nothing"
    whole, ones, ranges, pieces = learned(make, chunk), make(), make(), make()
    for i in range(len(chunk)):
        ones.learn(chunk.rows(i, i + 1))
    ends = [0, *sorted(places), len(chunk)]
    for lo, hi in pairwise(ends):
        ranges.learn(chunk, lo, hi)
    for piece in cut(chunk, places):
        pieces.learn(piece)
    require_same(law, whole, ones, "learned row by row")
    require_same(law, whole, ranges, f"learned in ranges that end at rows {[*places]}")
    require_same(law, whole, pieces, f"learned in chunks that end at rows {[*places]}")
    return whole


def stopping(make: Make, chunk: Chunk, places: Sequence[int] = (36, 37)) -> None:
    """Law 3: a model that is saved and loaded, or restored, and goes on is one that was never stopped."""
    law = "law 3, stopping changes nothing"
    through, by_file, in_memory = make(), make(), make()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        for piece in cut(chunk, places):
            through.learn(piece)
            by_file.learn(piece)
            model_file.save(by_file, file)
            by_file, _ = model_file.load(file)
            in_memory.learn(piece)
            taken = {name: array.copy() for name, array in in_memory.state().items()}
            in_memory = make()
            in_memory.restore(taken)
        whole = as_bytes(through)
        require_same(law, through, by_file, f"saved and loaded at rows {[*places]}")
        require_same(law, through, in_memory, f"restored at rows {[*places]}")
        if not whole == as_bytes(by_file) == as_bytes(in_memory) == file.read_bytes():
            raise LawError(f"{law}: saved and loaded at rows {[*places]}, the file differs")


BITS, SEED = 12, 5
"""Of a hashed store without collisions of the ids 0 to 39"""


def stores(make: Make, chunk: Chunk, features: int) -> int:
    """Law 4: the store changes no weight. Return how many rows were freed by the one that sweeps."""
    law = "law 4, the store changes nothing"
    direct = learned(make, chunk, store="direct")
    hashed = learned(make, chunk, store=f"hashed:{BITS}", seed=SEED)
    growing = learned(make, chunk, store="growing")
    with set_to(SMALL_TABLES):
        swept = learned(make, chunk, store="growing")
    expected = comparable(direct, features)
    for model, what, key in (
        (hashed, "in the hashed store", lambda j: hashed_key(j, BITS, SEED)),
        (growing, "in the growing store", int),
        (swept, "in a growing store that frees idle rows", int),
    ):
        if comparable(model, features, key) != expected:
            was, now = _by_feature(direct, features, int), _by_feature(model, features, key)
            (differ,) = np.nonzero(was != now)
            if not differ.size:
                raise LawError(f"{law}: {what}, clock or intercept differ")
            j = differ[0]
            raise LawError(f"{law}: {what}, the weight of feature {j} is {now[j]!r}, not {was[j]!r}")
    if not growing.features_seen == direct.features_seen == hashed.features_seen:
        raise LawError(f"{law}: features are counted differently")
    return int(swept.state()["counts"][1])


def comparable(model: Model, features: int, key: Callable[[int], int] = int) -> tuple[bytes, ...]:
    """Settled weights of the features 0, 1, ..., whose keys are `key`, and the shared state."""
    own = model.state()
    shared = (own["clock"], own["bclock"], own["B"], own["tally"])
    return tuple(a.tobytes() for a in (_by_feature(model, features, key), *shared))


def _by_feature(model: Model, features: int, key: Callable[[int], int]) -> Any:
    keys, weights = model.weights()
    by_key = dict(zip(keys.tolist(), weights, strict=True))
    row = np.array([by_key.pop(int(key(j)), 0) for j in range(features)], model.dtype)
    if by_key:
        raise LawError(
            f"law 4, the store changes nothing: {len(by_key)} weights under keys that were never met"
        )
    return row


def hashed_key(key: object, bits: int, seed: int) -> int:
    """The row of a key in a hashed store."""
    mixed = lookup.mix(np.array([key], np.uint64) ^ lookup.mix(np.array([seed], np.uint64)))
    return int(mixed[0] >> np.uint64(64 - bits))


def looking(make: Make, chunk: Chunk) -> None:
    """Law 6: predicting, reading weights and saving in the middle of training change nothing."""
    law = "law 6, looking changes nothing"
    alone, watched = learned(make, chunk), make()
    with tempfile.TemporaryDirectory() as folder:
        for piece in cut(chunk, [len(chunk) // 2]):
            watched.learn(piece)
            before = fingerprint(watched)
            watched.predict(chunk)
            watched.weights()
            watched.readout().predict(chunk)
            model_file.save(watched, Path(folder) / "model")
            if watched.nonzero > watched.features_seen or watched.intercept != watched.readout().intercept:
                raise LawError(f"{law}: counts or intercept are not those of the weights that are read")
            if fingerprint(watched) != before:
                raise LawError(f"{law}: the state differs after predict, weights or save")
    require_same(law, alone, watched, "looked at in the middle")


def saving(make: Make, chunk: Chunk, unseen: Chunk, predicted: Callable[[Path], Any] | None = None) -> None:
    """Law 8: a saved model predicts like the model, here or as `predicted` says; zeros are zeros."""
    law, model = "law 8, what is saved is what predicts", learned(make, chunk)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model_file.save(model, path, state=False)
        margins = model.predict(unseen)
        found = model_file.load_readout(path)[0].predict(unseen) if predicted is None else predicted(path)
        header, tensors = model_file.read(path)
    exactly = model.recipe.store == "growing"
    near = 1e-6 * max(1.0, float(np.abs(margins).max()))
    if np.abs(found - margins).max() > near or (exactly and found.tobytes() != margins.tobytes()):
        raise LawError(f"{law}: margins differ by up to {np.abs(found - margins).max():g}")
    weights = tensors["weights.values"]
    if not np.count_nonzero(weights) == header["nonzero"] == model.nonzero:
        raise LawError(
            f"{law}: {np.count_nonzero(weights)} weights in the file, {model.nonzero} in the model"
        )
    if len(weights) != header["nonzero"] and not model.readout().unmet.any():
        raise LawError(f"{law}: there are zeros in the file")
    if not (np.diff(tensors["weights.keys"].astype(object)) > 0).all():
        raise LawError(f"{law}: keys are not in order")


def idle_rows(model: Model) -> None:
    """What `idle` frees reads as zero now, and steps like a row of zeros."""
    law = "rows that idle() frees are as good as new"
    S, rule = model.state()["S"].copy(), model.rule
    now = tuple(model.state()["clock"])
    for j in range(len(S)):
        w = rule.weight(S, j, now)
        if not rule.idle(S, j, w, now):
            continue
        fresh = np.zeros((1, S.shape[1]))
        if not w == rule.weight(fresh, 0, now) == 0.0:
            raise LawError(f"{law}: the weight of row {j} is {w!r}, not 0")
        rule.step(S, j, w, 0.5, -0.3, now)
        rule.step(fresh, 0, 0.0, 0.5, -0.3, now)
        # columns that point to rows are rebuilt when rows move: there only the weight counts
        moves = type(rule).relocate is not PROTOCOL["rule"]["relocate"][1]
        same = (
            rule.weight(S, j, now) == rule.weight(fresh, 0, now) if moves else bytes(S[j]) == bytes(fresh[0])
        )
        if not same:
            raise LawError(f"{law}: after a step, row {j} is {S[j]}, a new one {fresh[0]}")


def dense(make: Make, data: Examples, oracle: Oracle, tolerance: float = 1e-9) -> None:
    """Law 1: the weights are those of a dense recursion in float64."""
    model = learned(make, data.chunk, intercept=False, dtype="float64")
    expected = np.asarray(oracle(model.rule, model.loss, data.X, data.y, data.importance), np.float64)
    found = read_weights(model, data.X.shape[1])
    if expected.shape != found.shape:
        raise LawError(
            f"law 1, lazy is eager: the oracle returns {expected.shape}, not {found.shape} numbers"
        )
    require_near("law 1, lazy is eager: after all rows", found, expected, tolerance)


def averaging(make: Make, data: Examples, tolerance: float = 1e-9) -> None:
    """The averaged weights are the mean of the weights before each example."""
    watched, features = make(dtype="float64", store="direct"), data.X.shape[1]
    averaged, path = learned(make, data.chunk, average=True), list[Vector]()
    for i in range(len(data.y)):
        # what the next example is learned with, which `shown` may show otherwise
        state, found = watched.state(), np.zeros(features)
        now = tuple(state["clock"])
        for j in range(min(features, len(state["S"]))):
            found[j] = watched.rule.weight(state["S"], j, now)
        path.append(found)
        watched.learn(data.chunk.rows(i, i + 1))
    law = "averaging is the mean of the path: with average=True"
    require_near(law, read_weights(averaged, features), np.mean(path, axis=0), tolerance)


def require_near(law: str, found: Vector, expected: Vector, tolerance: float) -> None:
    """LawError, which names a feature, unless weights are near."""
    off = np.abs(found - expected)
    bound = tolerance * max(1.0, float(np.abs(expected).max(initial=0.0)))
    j = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
    if not off[j] <= bound:
        raise LawError(f"{law}, the weight of feature {j} is {found[j]!r}, not {expected[j]!r}")


def side_by_side(
    recipes: Sequence[Recipe], chunk: Chunk, places: Sequence[int] = (0, 7, 7, 30, 31)
) -> ModelSet:
    """Models that have learned side by side."""
    lanes = ModelSet(recipes)
    for piece in cut(chunk, places):
        lanes.learn(piece)
    lanes.finish()
    return lanes


def lanes_are_runs(recipes: Sequence[Recipe], chunk: Chunk) -> ModelSet:
    """Law 7: models that learn side by side are those that learn alone, bit for bit."""
    law, lanes = "law 7, lanes are runs", side_by_side(recipes, chunk)
    if lanes.dropped:
        raise LawError(f"{law}: dropped lanes {lanes.dropped}")
    for recipe, model in zip(recipes, lanes.models, strict=True):
        own = Model(recipe)
        own.learn(chunk)
        own.finish()
        if bits(model) != bits(own) or model.examples != own.examples:
            raise LawError(f"{law}: side by side with others, {recipe.rule} is another model than alone")
        if not np.array_equal(model.predict(chunk), own.predict(chunk)):
            raise LawError(f"{law}: side by side with others, {recipe.rule} predicts otherwise than alone")
    return lanes


def bits(model: Model) -> tuple[bytes, ...]:
    """Weights by key, in any row order, and all shared state."""
    keys, weights = model.weights()
    state = model.loop.state()
    shared = [state[name] for name in sorted(state) if not name.endswith("S")]
    return tuple(np.ascontiguousarray(a).tobytes() for a in (keys, weights, *shared))


def vanishing_values(make: Make) -> None:
    """Zeros, and numbers whose squares are zero in the state's dtype, leave the weights finite."""
    tiny = Chunk.of_rows([(1.0, {0: 0.0, 1: 1e-30, 2: 1e-45})])
    ones = Chunk.of_rows([(1.0, dict.fromkeys(range(3), 1.0))])
    model = make()
    for chunk in (tiny, tiny, tiny, ones):
        model.learn(chunk)
    if not (np.isfinite(model.state()["S"]).all() and np.isfinite(model.weights()[1]).all()):
        raise LawError(
            "vanishing values leave weights finite: after values of 0, 1e-30 and 1e-45 they are not"
        )


def progressive(model: Model, data: Examples) -> float:
    """The mean progressive loss; NaN if the model diverges, or is far worse than none."""
    try:
        model.learn(data.chunk)
    except ArithmeticError:  # `DivergedError`; in plain Python, exp raises OverflowError
        return np.nan
    at_zero = np.abs([model.loss.value_slope(0.0, y) for y in data.y[:100].tolist()]).max(axis=1).mean()
    return model.tally.average if model.tally.average <= 2 * at_zero else np.nan


def rounding(expected: float, model: Model, data: Examples) -> bool:
    """A model learns ordinary data as well as another in float64, whose progressive loss is `expected`.

    Weights need not be near: at a kink of the loss, a rounded margin may turn a step. False if the other one
    has not learned: NaN.
    """
    found = np.nan if np.isnan(expected) else progressive(model, data)
    if not abs(found - expected) <= 0.1 * abs(expected) + 1e-3 and not np.isnan(expected):
        raise LawError(
            f"rounding matters little: in {model.dtype}, with {model.recipe.rule}, the progressive loss is"
            f" {model.tally.average:g}, not {expected:g}"
        )
    return not np.isnan(expected)


LABELS = {"binary": (-1.0, 0.0, 1.0), "real": (-2.5, 0.0, 1.3), "nonnegative": (0.0, 1.0, 4.0)}
LABELS["positive"] = (0.2, 1.0, 4.0)
"""By `DOMAIN`: some labels that a loss takes"""


def slope(loss: Any, margin: float, y: float, h: float = 1e-6) -> None:
    """The slope is the derivative; at a kink it lies between the slopes on both sides."""
    law = "the slope is the derivative of the loss"
    (lower, left), (higher, right) = loss.value_slope(margin - h, y), loss.value_slope(margin + h, y)
    found, at = loss.value_slope(margin, y)[1], f"at margin {margin:g} and label {y:g}"
    if abs(right - left) > 1e-3 * (1 + abs(found)):  # a kink between margin - h and margin + h
        if not left - 1e-9 <= found <= right + 1e-9:
            raise LawError(f"{law}: {at} it is {found:g}, not from {left:g} to {right:g}")
        return
    expected = (higher - lower) / (2 * h)
    if not abs(found - expected) <= max(1e-5 * abs(expected), 2 * h):  # a kink of the slope
        raise LawError(f"{law}: {at} it is {found:g}, not {expected:g}")
    if loss.DOMAIN == "binary" and loss.value_slope(margin, 0.0) != loss.value_slope(margin, -1.0):
        raise LawError(
            f"labels of 0 and -1 mean the same: at margin {margin:g} they differ; compare with y > 0"
        )


def without_jumps(loss: Any, margin: float, y: float, width: float) -> None:
    """From margin to margin + width, the loss changes by what the slopes at both ends allow."""
    (before, left), (after, right) = loss.value_slope(margin, y), loss.value_slope(margin + width, y)
    change, mean = (after - before) / width, (left + right) / 2
    if not abs(change - mean) <= abs(right - left) + 1e-3 * (1 + abs(mean)):
        raise LawError(
            f"the loss does not jump: from margin {margin:g} to {margin + width:g} with label {y:g} it goes"
            f" from {before:g} to {after:g}, with slopes of {left:g} and {right:g}"
        )


def shifted(loss: Any, margin: float, y: float, by: float = 1.5) -> None:
    """What `SHIFTS` and `SCALES` promise: a margin and a label that are moved together have the same loss."""
    expected = loss.value_slope(margin, y)
    moves = {"SHIFTS": (y + by, f"shifted by {by:g}"), "SCALES": (y * np.exp(by), f"times exp({by:g})")}
    for name, (label, how) in moves.items():
        found = loss.value_slope(margin + by, label)
        if getattr(loss, name) and not np.allclose(found, expected, rtol=1e-6, atol=1e-9):
            raise LawError(
                f"{name}: with margin {margin:g} shifted by {by:g} and label {y:g} {how}, the loss and its"
                f" slope are {found[0]:g} and {found[1]:g}, not {expected[0]:g} and {expected[1]:g}"
            )
