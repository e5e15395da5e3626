"""A frontier on disk: a folder with a table, a picture and a model for each penalty."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher._version import __version__
from thresher.engine.atomic import whole_file
from thresher.lanes.budget import use_of
from thresher.lanes.frontier import Learned, Point, picture
from thresher.learning.files import model_file
from thresher.learning.files.folder import FRONTIER
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.inspection.plots import write
from thresher.learning.model.model import Model

TABLE, PICTURE = FRONTIER.table, "frontier.svg"
_FORMAT, _FIELDS = 1, ("lanes", "chosen", "choice", "penalty")


@dataclass(frozen=True)
class FrontierTable:
    """The content of the table in a folder."""

    penalty: str
    """name of the penalty parameter"""
    points: list[Point]
    chosen: int
    choice: str

    @property
    def use(self) -> dict[str, Any] | None:
        """What the chosen model uses of a budget of weights, if it was chosen by one."""
        return use_of(self.points, self.chosen, self.choice)

    def draw(self, path: Path | None) -> None:
        """Write the picture, if a path is given. OSError."""
        if path is not None:
            write(path, picture(self.points, self.chosen))

    def as_dict(self) -> dict[str, Any]:
        """The content in JSON."""
        return {
            "lanes": [point.as_dict(self.penalty) for point in self.points],
            "chosen": self.chosen,
            "choice": self.choice,
            "penalty": self.penalty,
        }


def is_frontier(path: Path) -> bool:
    """Whether `path` is a folder with a frontier."""
    return FRONTIER.is_at(path)


def file_of(number: int) -> str:
    """Name of the model file of a lane."""
    return FRONTIER.model_file(number)


def check_folder(path: Path) -> None:
    """Raise OSError if `path` is something other than a frontier, or cannot be replaced.

    Folders left behind by killed runs are removed.
    """
    FRONTIER.check(path)


def save(path: Path, frontier: FrontierTable, models: Sequence[Model], state: bool) -> None:
    """Write the whole folder, replacing an older frontier; call `check_folder` first. Raises OSError.

    With the `state` of the models, which is many times the weights, they can continue learning.
    """
    with FRONTIER.written(path) as temporary:
        for k, model in enumerate(models):
            if frontier.points[k].dropped is None:
                model_file.save(model, temporary / file_of(k), state=state)
        frontier.draw(temporary / PICTURE)
        with whole_file(temporary / TABLE) as file:
            json.dump({"format": _FORMAT, "version": __version__, **frontier.as_dict()}, file, indent=1)


def load(path: Path) -> FrontierTable:
    """The table of a folder; `ModelFileError` if it is damaged."""
    given = model_file.read_table(path / TABLE, _FORMAT, _FIELDS, "the table of a frontier")
    try:
        points = [Point.from_dict(given["penalty"], one) for one in given["lanes"]]
        whole = 0 <= given["chosen"] < len(points)
        frontier = FrontierTable(str(given["penalty"]), points, int(given["chosen"]), str(given["choice"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{path / TABLE}: damaged, or not the table of a frontier ({error})") from error
    if not whole:
        raise ModelFileError(f"{path / TABLE}: damaged: no lane has the number of the chosen one")
    return frontier


def load_models(path: Path, frontier: FrontierTable) -> Learned:
    """The models of a folder, which can continue learning; dropped ones are models that know nothing.

    Raises OSError; `ModelFileError`, also if the folder was written without their state.
    """
    there = [k for k, point in enumerate(frontier.points) if point.dropped is None]
    loaded = {k: model_file.load(path / file_of(k))[0] for k in there}
    empty = {k: Model(loaded[there[0]].recipe) for k in range(len(frontier.points)) if k not in loaded}
    return Learned(frontier.points, [model for _, model in sorted((loaded | empty).items())])


def take(path: Path, number: int, target: Path) -> None:
    """Copy the model of a point out of the folder."""
    with open(path / file_of(number), "rb") as source, whole_file(target, "wb") as file:
        shutil.copyfileobj(source, file)
