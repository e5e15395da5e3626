"""Checkpoints of lanes: all lanes, which have stopped, the best pass of each, and the state of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from thresher.engine.sound import StateError, Tensors, beneath, under
from thresher.lanes.judging import LanesHoldout
from thresher.lanes.lanes import Lanes
from thresher.lanes.race import Race
from thresher.learning.files import model_file, schema
from thresher.learning.files.checkpoint import BEST, TrainingState, opened
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.holdout import Best
from thresher.learning.training.progress import curve_of

_STATE, _BEST, _RACE = "lanes.", "best.", "race."
_FIELDS = ("recipes", "dropped", "resting", "bests", "waited", "curves", "beside")


class Loaded(NamedTuple):
    """The content of a checkpoint."""

    lanes: Lanes
    training: TrainingState
    holdout: LanesHoldout
    beside: list[float]
    """penalties of the finished models to which these lanes will be added"""


def save(
    path: Path,
    lanes: Lanes,
    training_state: TrainingState,
    holdout: LanesHoldout,
    beside: Sequence[float] = (),
) -> None:
    """Write everything that `load` needs to resume bit for bit. Raises OSError, `DivergedError`."""
    lanes.check_finite()
    saved = {
        "recipes": [model.recipe.as_dict() for model in lanes.models],
        "dropped": {str(k): reason for k, reason in lanes.dropped.items()},
        "resting": [k for k in range(len(lanes.models)) if k not in lanes.alive and k not in lanes.dropped],
        "bests": {str(k): {"number": one.number, "figures": one.figures} for k, one in holdout.bests.items()},
        "waited": {str(k): passes for k, passes in holdout.waited.items()},
        "curves": [model.curve for model in lanes.models],
        **({"beside": list(beside)} if beside else {}),
    }
    header = {
        **model_file.header_of(lanes.lead),
        **model_file.needing(*lanes.models),
        model_file.LANES: saved,
        "training": training_state.as_dict(),
    }
    tensors = model_file.weights_of(lanes.lead.readout())
    tensors |= beneath(_STATE, lanes.state())
    if lanes.race is not None:
        tensors |= beneath(_RACE, lanes.race.record.state())
    for k, one in holdout.bests.items():
        tensors |= beneath(f"{_BEST}{k}.", one.state)
    model_file.write(path, header, tensors)


def load(path: Path, race: Callable[[int], Race] | None = None) -> Loaded:
    """The lanes in a checkpoint, the state of their training and their hold-out; `ModelFileError`.

    `race` makes a race for a number of lanes, if the lanes were racing.
    """
    header, tensors = opened(path)
    if model_file.LANES not in header or "training" not in header:
        raise ModelFileError(f"{path}: not a checkpoint of a frontier")
    model_file.check_parts(path, header)
    racing = under(tensors, _RACE)
    if bool(racing) != (race is not None) or "ensemble" in header[model_file.LANES]:
        raise ModelFileError(f"{path}: a checkpoint of another command with many models")
    with model_file.naming_file(path, header):
        training = TrainingState.from_dict(header["training"])
        lanes = _lanes_of(header[model_file.LANES], under(tensors, _STATE), race)
        if lanes.race is not None:
            lanes.race.record.restore(racing)
        holdout = LanesHoldout()
        _judged(holdout, header[model_file.LANES], tensors, lanes)
        beside = _beside(header[model_file.LANES])
        return Loaded(lanes, training, holdout, beside)


def _lanes_of(saved: dict[str, Any], state: dict[str, Any], race: Callable[[int], Race] | None) -> Lanes:
    try:
        schema.check_known(saved, _FIELDS, model_file.LANES)
        recipes = [Recipe.from_dict(one) for one in saved["recipes"]]
        lanes = Lanes(recipes, race=race and race(len(recipes)))
        dropped = {_number(k, lanes): str(reason) for k, reason in saved["dropped"].items()}
        resting = [_number(k, lanes) for k in saved["resting"]]
        for curve in saved.get("curves", []):
            schema.check({"curve": curve}, model_file.CURVE, "lanes")
    except (KeyError, TypeError, AttributeError) as error:
        raise StateError(f"lanes: damaged ({error})") from error
    lanes.restore(state, dropped, resting)
    for model, curve in zip(lanes.models, saved.get("curves", []), strict=False):
        model.curve = curve_of(curve)
    return lanes


def _judged(holdout: LanesHoldout, saved: dict[str, Any], tensors: Tensors, lanes: Lanes) -> None:
    try:
        for k, one in saved["bests"].items():
            schema.check(one, BEST, "best")
            number, state = _number(k, lanes), under(tensors, f"{_BEST}{k}.")
            lanes.models[number].check(state)
            holdout.bests[number] = Best(int(one["number"]), dict(one["figures"]), state)
            holdout.waited[number] = int(saved["waited"][k])
    except (KeyError, TypeError, AttributeError) as error:
        raise StateError(f"lanes: damaged ({error})") from error


def _beside(saved: dict[str, Any]) -> list[float]:
    try:
        return [float(penalty) for penalty in saved.get("beside", [])]
    except (TypeError, ValueError) as error:
        raise StateError(f"lanes: damaged ({error})") from error


def _number(text: Any, lanes: Lanes) -> int:
    number = int(text)
    if not 0 <= number < len(lanes.models):
        raise StateError(f"lanes: there is no lane {number}")
    return number
