"""The laws of `thresher.testing`, and those that rules of users cannot break: of files, stores and lanes."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thresher.data.chunk import Chunk
from thresher.engine import lookup
from thresher.learning.files import model_file
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet
from thresher.learning.model.recipe import Recipe
from thresher.learning.modelbytes import as_bytes
from thresher.testing.laws import LABELS as LABELS
from thresher.testing.laws import SMALL_TABLES as SMALL_TABLES
from thresher.testing.laws import Examples, LawError, Make, cut, labels_of, learned, require_same, stream_of
from thresher.testing.laws import cutting as cutting
from thresher.testing.laws import idle_rows as idle_rows
from thresher.testing.laws import looking as looking
from thresher.testing.laws import set_to as set_to
from thresher.testing.laws import slope as slope
from thresher.testing.laws import vanishing_values as vanishing_values


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


def saving(make: Make, chunk: Chunk, unseen: Chunk, predicted: Callable[[Path], Any] | None = None) -> None:
    """Law 8: a saved model predicts like the model, here or as `predicted` says; zeros are zeros."""
    law, model = "law 8, what is saved is what predicts", learned(make, chunk)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model_file.save(model, path, state=False)
        margins = model.predict(unseen)
        found = model_file.load_predictor(path)[0].predict(unseen) if predicted is None else predicted(path)
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
    if len(weights) != header["nonzero"] and not model.predictor().unmet.any():
        raise LawError(f"{law}: there are zeros in the file")
    if not (np.diff(tensors["weights.keys"].astype(object)) > 0).all():
        raise LawError(f"{law}: keys are not in order")


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


ORDINARY = "normals", "prices", "counts"


def ordinary(what: str, rows: int, domain: str = "binary", seed: int = 0) -> Examples:
    """Columns as tables have them, unlike those of `stream`: `ORDINARY` says which there are."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    if what == "prices":
        X = np.exp(X + 3.0).round(2)
    if what == "counts":
        X = rng.poisson([0.3, 3.0, 30.0], size=X.shape).astype(np.float64)
    units = (X - X.mean(axis=0)) / X.std(axis=0)
    score = units[:, 0] - units[:, 1] + 0.5 * rng.normal(size=rows)
    return stream_of(X, X != 0.0, labels_of(domain, score, rng), np.ones(rows))
