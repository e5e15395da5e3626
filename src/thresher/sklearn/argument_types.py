"""Types of the arguments of estimators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from thresher.data.inputs.any_data import ArrowTable, Matrix
from thresher.data.layout import AnyLayout

Examples = Matrix | ArrowTable | Iterable[Any]
"""n examples: a matrix, dense or sparse; a table; or rows of numbers, dictionaries or texts"""
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None
Columns = str | int | Sequence[str | int] | None
"""Columns of X, by name or number; ``"*"`` for all"""
RandomState = int | np.random.RandomState | None
Reading = AnyLayout | Mapping[str, Any] | None
"""How tables and texts become features"""
