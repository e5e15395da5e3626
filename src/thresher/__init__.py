"""thresher: sparse linear models, learned from streams.

>>> import thresher
>>> model = thresher.train("examples/data/rcv1_train2000.dat.gz", rule="ftrl:alpha=0.5,l1=1")
>>> model.nonzero < model.features_seen
True

Names are imported on first use, so importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

from thresher._version import __version__

if _TYPE_CHECKING:
    from thresher.api import boost as boost
    from thresher.api import cv as cv
    from thresher.api import ensemble as ensemble
    from thresher.api import evaluate as evaluate
    from thresher.api import export as export
    from thresher.api import info as info
    from thresher.api import load as load
    from thresher.api import name_features as name_features
    from thresher.api import path as path
    from thresher.api import predict as predict
    from thresher.api import report as report
    from thresher.api import save as save
    from thresher.api import select as select
    from thresher.api import train as train
    from thresher.api import tune as tune
    from thresher.batch.solving import Boosted as Boosted
    from thresher.data import Chunk as Chunk
    from thresher.data import open_source as open_source
    from thresher.data.errors import DataError as DataError
    from thresher.learning.diagnostics.findings import TroubleWarning as TroubleWarning
    from thresher.learning.files.model_file import ModelFileError as ModelFileError
    from thresher.learning.model.divergence import DivergedError as DivergedError
    from thresher.learning.model.ensemble import Ensemble as Ensemble
    from thresher.learning.model.model import Model as Model
    from thresher.learning.model.prediction import LinearPredictor as LinearPredictor
    from thresher.learning.training.interruption import Interrupted as Interrupted
    from thresher.options.option import UsageError as UsageError
    from thresher.parts.origins import SpecError as SpecError
    from thresher.parts.registry import part as part
    from thresher.plans.models import Frontier as Frontier
    from thresher.plans.models import Tuned as Tuned
    from thresher.plans.stability import Selection as Selection

_API = (
    "boost",
    "cv",
    "ensemble",
    "evaluate",
    "export",
    "info",
    "load",
    "name_features",
    "path",
    "predict",
    "report",
    "save",
    "select",
    "train",
    "tune",
)
_HOMES = {
    "Boosted": "thresher.batch.solving",
    "Chunk": "thresher.data",
    "DataError": "thresher.data.errors",
    "DivergedError": "thresher.learning.model.divergence",
    "Ensemble": "thresher.learning.model.ensemble",
    "Frontier": "thresher.plans.models",
    "Interrupted": "thresher.learning.training.interruption",
    "Model": "thresher.learning.model.model",
    "ModelFileError": "thresher.learning.files.model_file",
    "LinearPredictor": "thresher.learning.model.prediction",
    "Selection": "thresher.plans.stability",
    "SpecError": "thresher.parts.origins",
    "TroubleWarning": "thresher.learning.diagnostics.findings",
    "Tuned": "thresher.plans.models",
    "UsageError": "thresher.options.option",
    "open_source": "thresher.data",
    "part": "thresher.parts.registry",
    **dict.fromkeys(_API, "thresher.api"),
}
"""The modules of the public names"""
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'thresher' has no attribute {name!r}")
    found: object = getattr(_importlib.import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return [*__all__]
