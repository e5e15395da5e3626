"""Ensembles: models of one recipe, trained on different rows, that predict together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher._version import __version__
from thresher.cluster.elsewhere import reads_elsewhere
from thresher.data.chunk import Chunk
from thresher.data.errors import OneLineError
from thresher.data.inputs.any_data import Data
from thresher.data.layout import SettledLayout
from thresher.engine.atomic import whole_file
from thresher.learning.files import model_file, schema
from thresher.learning.files.folder import ENSEMBLE
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.inspection.frames import frame_of, identity_of
from thresher.learning.model.model import Model, as_model
from thresher.learning.model.objective import F64, Output
from thresher.learning.model.prediction import ModelOrFile, Predictor, Summands
from thresher.learning.model.weights import Readout
from thresher.learning.training.record import Record
from thresher.options.data import ReadOptions

if TYPE_CHECKING:
    import pandas as pd

    from thresher.learning.diagnostics.findings import Trouble

_FORMAT = 1
_TABLE = {
    "format": int,
    "models": schema.Positive,
    "rows": str,
    "record": dict | None,
}

M = TypeVar("M", Model, Readout)


class Ensemble(Predictor, Generic[M]):
    """Models that predict together: the margin of the ensemble is the mean of theirs.

    Everything else follows from that margin as for a single model: the probability is its link, the label its
    class. `spread` tells how much the models disagree.
    """

    def __init__(self, models: Sequence[M], rows: str, record: Record | None = None) -> None:
        self.models = [*models]
        self.head, self.names, self.numbering = models[0].head, None, models[0].numbering
        self.rows = rows
        """how rows were given to models: ``poisson`` or ``disjoint``"""
        self.record = record
        """how it was trained, if it came from a folder or from `thresher.ensemble`"""
        self.warnings: list[Trouble] = []
        """trouble found in training"""

    def __repr__(self) -> str:
        """The number of models, their rows, and the first of them."""
        return f"<Ensemble of {len(self.models)} models, {self.rows} rows: {self.models[0]!r}, ...>"

    def frame(self) -> pd.DataFrame:
        """A row per model, under the names that all results share. See docs/python.md.

        ImportError without pandas.
        """
        rows = []
        for number, model in enumerate(self.models):
            tally = getattr(model, "tally", None)
            rows.append(
                {
                    **identity_of(model),
                    "examples": getattr(model, "examples", None),
                    "nonzero": model.nonzero,
                    "progressive_loss": None if tally is None else tally.known,
                    "model": number,
                }
            )
        return frame_of(rows)

    @property
    def layout(self) -> SettledLayout | None:
        """How the training data became features, if they came from files or tables."""
        return self.models[0].layout

    @property
    def centres(self) -> bool:
        """Whether columns are centred."""
        return self.models[0].centres

    @property
    def classes(self) -> tuple[str, ...]:
        """Label words in the order of their classes; empty if labels are numbers."""
        return self.models[0].classes

    @property
    def lowest_label(self) -> float:
        """The lowest label that any of the models has seen, at most 0."""
        return min(model.lowest_label for model in self.models)

    @property
    def nonzero(self) -> int:
        """Mean number of nonzero weights of a model, rounded."""
        return round(sum(model.nonzero for model in self.models) / len(self.models))

    def margins(self, chunk: Chunk) -> F64:
        """Means of the models' margins: ``(n,)`` float64, or ``(n, outputs)`` for many outputs."""
        return _mean([model.margins(chunk) for model in self.models])

    def terms(self, chunk: Chunk) -> Summands:
        """What the margins of `chunk` are sums of: see `Predictor.terms`."""
        rows, *each = zip(*(model.terms(chunk) for model in self.models), strict=True)
        if not all(np.array_equal(one.values, rows[0].values) for one in rows):
            raise OneLineError(
                "the models of this ensemble scale columns differently: explain one of them, such as"
                f" {ENSEMBLE.model_file(0)} in its folder"
            )
        return Summands(rows[0], *map(_mean, each))

    def respond(self, margins: F64, output: Output) -> F64:
        """Turn `margins` into predictions: see `predict`."""
        return self.head.respond(margins, output, self.lowest_label)

    def _some_keys(self) -> NDArray[np.uint64]:
        return self.models[0]._some_keys()

    def _weights(self) -> Readout:
        raise TypeError("an ensemble has no weights of its own: look at those of its models")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Ensemble[Readout]:
        """Load the folder of an ensemble, to predict with; `ModelFileError`.

        `Model.load` loads one of its files as a model that can keep learning.
        """
        folder = Path(path)
        rows, record, files = cls.read(folder)
        models = [model_file.load_readout(file)[0] for file in files]
        meanings = [(parts.spec_of(model.loss), model.head.outputs) for model in models]
        for k, meaning in enumerate(meanings):
            if meaning != meanings[0]:
                raise ModelFileError(f"{folder}: {ENSEMBLE.model_file(k)} has another loss than the others")
        return Ensemble(models, rows, record)

    @staticmethod
    def read(folder: Path) -> tuple[str, Record | None, list[Path]]:
        """How rows were given to the models in a folder, their record, and their files. `ModelFileError`."""
        if not ENSEMBLE.is_at(folder):
            raise ModelFileError(f"{folder}: not the folder of an ensemble: it contains no {ENSEMBLE.table}")
        table = table_in(folder)
        record = None if table["record"] is None else Record.from_dict(table["record"])
        return table["rows"], record, files_of(folder, table)

    @reads_elsewhere
    def spread(self, data: Data, **reading: Unpack[ReadOptions]) -> F64:
        """Standard deviation of the models' predictions ``(n,)``, or ``(n, outputs)`` for many outputs.

        It is that of their probabilities; of their margins, if the loss has no probabilities. The divisor is
        the number of models less one. Arguments and errors are those of `predict`.
        """
        return self._of_all(data, self.spread, reading, self.spreads)

    def spreads(self, chunk: Chunk) -> F64:
        """The standard deviations that `spread` gives, for the rows of a chunk."""
        output: Output = "probability" if self.head.joint.PROBABILITY else "margin"
        each = [self.respond(model.margins(chunk), output) for model in self.models]
        mean = _mean(each)
        variance: F64 = _sum([(one - mean) ** 2 for one in each]) / (len(each) - 1)
        return np.sqrt(variance)

    def save(self, path: str | PathLike[str], *, state: bool = True) -> None:
        """Write the folder that ``thresher train --ensemble`` writes, replacing an older one.

        Args:
            path: the folder.
            state: write what the models need to keep learning, too.

        Raises OSError if writing fails, or if `path` is something else; `DivergedError` if a weight is not
        finite. An older folder is then unchanged.
        """
        ENSEMBLE.check(Path(path))
        record = None if self.record is None else self.record.as_dict()
        table = {"models": len(self.models), "rows": self.rows, "record": record}
        with ENSEMBLE.written(Path(path)) as temporary:
            for k, model in enumerate(self.models):
                model_file.save(model, temporary / ENSEMBLE.model_file(k), state=state)
            with whole_file(temporary / ENSEMBLE.table) as file:
                json.dump({"format": _FORMAT, "version": __version__, **table}, file, indent=1)


def _sum(given: Sequence[F64]) -> F64:
    """The sum, added in this order whatever the number of rows."""
    total = given[0].copy()
    for one in given[1:]:
        total += one
    return total


def _mean(given: Sequence[F64]) -> F64:
    return _sum(given) / len(given)


def load(path: str | PathLike[str]) -> Readout | Ensemble[Readout]:
    """The weights in a model file, or an ensemble in a folder, to predict with. `ModelFileError`."""
    return Ensemble.load(path) if ENSEMBLE.is_at(Path(path)) else model_file.load_readout(fspath(path))[0]


def ready(model: ModelOrFile) -> Model | Readout | Ensemble[Any]:
    """The model or ensemble itself, or the one in a file, a folder or an estimator. TypeError."""
    found = load(model) if isinstance(model, str | PathLike) else model
    return found if isinstance(found, Ensemble) else as_model(found)


def table_in(folder: Path) -> dict[str, Any]:
    """The table in the folder of an ensemble; `ModelFileError` if it is damaged."""
    path = folder / ENSEMBLE.table
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        schema.check(table, _TABLE, "ensemble")
        if table["record"] is not None:
            Record.from_dict(table["record"])
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path}: damaged, or not the table of an ensemble ({error})") from error
    if table["format"] != _FORMAT or table["models"] < 2:
        raise ModelFileError(f"{path}: not a table of an ensemble that this version reads")
    return table


def files_of(folder: Path, table: dict[str, Any]) -> list[Path]:
    """The files of the models."""
    return [folder / ENSEMBLE.model_file(k) for k in range(table["models"])]
