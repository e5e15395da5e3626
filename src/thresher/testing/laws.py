"""What must hold for every rule, as functions that raise `LawError`, and random examples to try them on.

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
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.engine import index
from thresher.engine.compile.jit import Kernel
from thresher.engine.protocol import writes
from thresher.learning.files import model_file
from thresher.learning.model import batch_feeder as feed
from thresher.learning.model.model import Model

Vector = NDArray[np.float64]


class Examples(NamedTuple):
    """Examples as a chunk, and as float64 arrays of the same numbers."""

    chunk: Chunk
    X: Vector
    """``(n, features)``; zero where nothing is stored"""
    y: Vector
    importance: Vector


def stream_of(
    X: Vector, stored: NDArray[np.bool_], y: Vector, importance: Vector, keys: Any = None
) -> Examples:
    """The examples as a chunk and as float64 arrays of the same numbers; zero where nothing is `stored`."""
    row, column = np.nonzero(stored)
    names = np.arange(X.shape[1], dtype=np.uint64) if keys is None else keys
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    chunk = Chunk.from_csr(indptr, names[column], X[row, column], y, importance)
    exact = np.zeros(X.shape)
    exact[row, column] = X.astype(np.float32)[row, column]
    return Examples(chunk, exact, chunk.labels.astype(np.float64), chunk.weights.astype(np.float64))


def stream(
    seed: int = 0,
    rows: int = 120,
    features: int = 12,
    domain: str = "binary",
    *,
    density: float = 0.3,
    scale: float = 1.0,
    weighted: bool = True,
    keys: Any = None,
) -> Examples:
    """Random examples of a noisy linear model. Some rows are empty, and some stored values zero.

    Features have very different frequencies, so that some miss many steps. No two numbers tie: at
    a tie a rule may turn either way, and an oracle that adds in another order may turn the other.
    """
    rng = np.random.default_rng(seed)
    chances = np.minimum(1.0, density * 3.0 / np.arange(1, features + 1) ** 0.7)
    stored = rng.random((rows, features)) < chances
    stored[rng.random(rows) < 0.05] = False
    X = np.where(stored & (rng.random(stored.shape) < 0.95), scale * rng.uniform(-1, 1, stored.shape), 0.0)
    score = X @ rng.normal(size=features) / scale + 0.3 * rng.normal(size=rows)
    importance = rng.choice([0.5, 0.25, 1.0, 1.0, 1.7], rows) if weighted else np.ones(rows)
    return stream_of(X, stored, labels_of(domain, score, rng), importance, keys)


def labels_of(domain: str, score: Vector, rng: np.random.Generator) -> Vector:
    """Labels for a loss with this `DOMAIN`."""
    if domain == "binary":
        return np.where(score > 0, 1.0, -1.0)
    if domain == "positive":
        return np.exp(np.minimum(0.5 * score, 1.0))
    if domain == "nonnegative":
        return rng.poisson(np.exp(np.minimum(0.5 * score, 1.0))).astype(np.float64)
    return score


def cut(chunk: Chunk, places: Sequence[int]) -> Iterator[Chunk]:
    """The chunk in pieces that end at these rows."""
    for lo, hi in pairwise([0, *sorted(places), len(chunk)]):
        yield chunk.rows(lo, hi)


def read_weights(model: Model, features: int) -> Vector:
    """All weights of a model whose keys are 0..features-1, zeros included."""
    predictor = model.predictor()
    out = np.full(features, float(predictor.unmet[0]))
    out[predictor.keys.astype(np.int64)] = predictor.weights
    return out


def fingerprint(model: Model) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Every bit of the state from which learning continues."""
    return {
        name: (str(array.dtype), array.shape, np.ascontiguousarray(array).tobytes())
        for name, array in model.state().items()
    }


Setting = tuple[Any, str, Any]
"""An object, the name of an attribute, its value"""


NOT_COMPILED: tuple[Setting, ...] = ((Kernel, "for_parts", lambda self, *parts: self.function),)
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


Make = Callable[..., Model]
"""Makes a new model of a rule, with the options that it is given."""


def learned(make: Make, chunk: Chunk, **changes: Any) -> Model:
    """A model that has learned a chunk."""
    model = make(**changes)
    model.learn(chunk)
    return model


def require_same(law: str, expected: Model, found: Model, what: str) -> None:
    """LawError, which names what differs, unless the states of two models are the same, bit for bit."""
    if fingerprint(expected) == fingerprint(found):
        return
    first, second, rule = expected.state(), found.state(), expected.rule
    for name, was in first.items():
        now = second.get(name)
        if now is None or was.shape != now.shape:
            raise LawError(f"{law}: {what}, {name} has another size")
        if was.tobytes() != now.tobytes():
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


def stores(make: Make, chunk: Chunk, features: int) -> None:
    """Law 4: the store changes no weight, nor the clock, not even one that frees idle rows."""
    law, direct = "law 4, the store changes nothing", learned(make, chunk, store="direct")
    growing = learned(make, chunk, store="growing")
    with set_to(SMALL_TABLES):
        swept = learned(make, chunk, store="growing")
    was, clock = read_weights(direct, features), direct.state()["clock"].tobytes()
    for model, what in ((growing, "the growing store"), (swept, "a growing store that frees idle rows")):
        now = read_weights(model, features)
        for j in np.flatnonzero(was != now)[:1]:
            raise LawError(f"{law}: in {what}, the weight of feature {j} is {now[j]!r}, not {was[j]!r}")
        if model.state()["clock"].tobytes() != clock:
            raise LawError(f"{law}: in {what}, the clock differs")


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
            watched.predictor().predict(chunk)
            model_file.save(watched, Path(folder) / "model")
            if watched.nonzero > watched.features_seen or watched.intercept != watched.predictor().intercept:
                raise LawError(f"{law}: counts or intercept are not those of the weights that are read")
            if fingerprint(watched) != before:
                raise LawError(f"{law}: the state differs after predict, weights or save")
    require_same(law, alone, watched, "looked at in the middle")


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
        moves = writes(type(rule), "relocate")
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


def vanishing_values(make: Make) -> None:
    """Zeros, and numbers whose squares are zero in the state's dtype, leave the weights finite."""
    tiny = Chunk.of_rows([(1.0, {0: 0.0, 1: 1e-30, 2: 1e-45})])
    ones = Chunk.of_rows([(1.0, dict.fromkeys(range(3), 1.0))])
    model = make()
    for chunk in (tiny, tiny, tiny, ones):
        model.learn(chunk)
    if not (np.isfinite(model.state()["S"]).all() and np.isfinite(model.weights()[1]).all()):
        raise LawError("weights stay finite: after values of 0, 1e-30 and 1e-45 they are not")


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
        raise LawError(f"labels of 0 and -1 are one: at margin {margin:g} they differ; compare with y > 0")


def without_jumps(loss: Any, margin: float, y: float, width: float) -> None:
    """From margin to margin + width, the loss changes by what the slopes at both ends allow."""
    (before, left), (after, right) = loss.value_slope(margin, y), loss.value_slope(margin + width, y)
    change, mean = (after - before) / width, (left + right) / 2
    if not abs(change - mean) <= abs(right - left) + 1e-3 * (1 + abs(mean)):
        span = f"from margin {margin:g} to {margin + width:g} with label {y:g}"
        change = f"from {before:g} to {after:g}, with slopes of {left:g} and {right:g}"
        raise LawError(f"the loss does not jump: {span} it goes {change}")


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
