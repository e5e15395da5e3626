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
    from thresher.api import (
        boost,
        cv,
        ensemble,
        evaluate,
        export,
        info,
        load,
        name_features,
        path,
        predict,
        report,
        save,
        select,
        train,
        tune,
    )
    from thresher.batch.solving import Boosted
    from thresher.data import Chunk, open_source
    from thresher.data.errors import DataError
    from thresher.learning.diagnostics.findings import TroubleWarning
    from thresher.learning.files.model_file import ModelFileError
    from thresher.learning.model.divergence import DivergedError
    from thresher.learning.model.ensemble import Ensemble
    from thresher.learning.model.model import Model
    from thresher.learning.model.prediction import Readout
    from thresher.learning.training.interruption import Interrupted
    from thresher.options.option import UsageError
    from thresher.parts.origins import SpecError
    from thresher.parts.registry import part
    from thresher.plans.models import Frontier, Tuned
    from thresher.plans.stability import Selection

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
    "Readout": "thresher.learning.model.prediction",
    "Selection": "thresher.plans.stability",
    "SpecError": "thresher.parts.origins",
    "TroubleWarning": "thresher.learning.diagnostics.findings",
    "Tuned": "thresher.plans.models",
    "UsageError": "thresher.options.option",
    "open_source": "thresher.data",
    "part": "thresher.parts.registry",
}
"""Where names are that are not functions of `thresher.api`"""
__all__ = [
    "Boosted",
    "Chunk",
    "DataError",
    "DivergedError",
    "Ensemble",
    "Frontier",
    "Interrupted",
    "Model",
    "ModelFileError",
    "Readout",
    "Selection",
    "SpecError",
    "TroubleWarning",
    "Tuned",
    "UsageError",
    "__version__",
    "boost",
    "cv",
    "ensemble",
    "evaluate",
    "export",
    "info",
    "load",
    "name_features",
    "open_source",
    "part",
    "path",
    "predict",
    "report",
    "save",
    "select",
    "train",
    "tune",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'thresher' has no attribute {name!r}")
    found: object = getattr(_importlib.import_module(_HOMES.get(name, "thresher.api")), name)
    return found


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return [*__all__]
