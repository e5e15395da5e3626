"""The dense recursions of `tests.oracles`, compiled: the same source, fast enough for a million steps."""

from collections import namedtuple
from types import FunctionType
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, overload_method

from tests import oracle_base, oracles_projection
from tests.oracle_base import Vector
from tests.oracles import ORACLES
from thresher.engine.compile import translate
from thresher.engine.compile.jit import kernel
from thresher.engine.verbs import value_slope

OPTIONS = translate.OPTIONS["helper"]
_CLASSES: dict[Any, Any] = {}


def _frame(name: str, oracle: Any) -> Any:
    """The attributes of an oracle as a named tuple, which Numba can type."""
    title = "Frame_" + name.replace("-", "_")
    if title not in globals():
        cls = namedtuple(title, vars(oracle))
        cls.__module__ = __name__
        globals()[title] = cls
        _CLASSES[cls] = ORACLES[name]
    return globals()[title](**vars(oracle))


@overload_method(types.BaseNamedTuple, "at", jit_options=OPTIONS)
def _at(self, t):
    return self.instance_class.at


def advance(self, w, g, t, value):
    raise NotImplementedError


@overload(advance, jit_options=OPTIONS)
def _advance(self, w, g, t, value):
    return _bare(_CLASSES[self.instance_class].step)


def look(self, x, margin, slope, importance):
    raise NotImplementedError


@overload(look, jit_options=OPTIONS)
def _look(self, x, margin, slope, importance):
    return _bare(_CLASSES[self.instance_class].look)


def meet(self, w, x):
    raise NotImplementedError


@overload(meet, jit_options=OPTIONS)
def _meet(self, w, x):
    return _bare(_CLASSES[self.instance_class].meet)


@overload(oracle_base.soft, jit_options=OPTIONS)
def _soft(v, a):
    return _bare(oracle_base.soft)


@overload(oracles_projection.threshold_of, jit_options=OPTIONS)
def _threshold_of(v, total):
    return _bare(oracles_projection.threshold_of)


def _bare(function: Any) -> Any:
    """The function without its annotations, which Numba would compare."""
    return FunctionType(function.__code__, function.__globals__, function.__name__)


@kernel
def _steps(frame, loss, X, y, importance, w, out):
    for i in range(len(y)):
        x = X[i % len(X)]
        w = meet(frame, w, x)
        margin = 0.0
        for j in range(len(w)):
            margin += w[j] * x[j]
        value, slope = value_slope(loss, margin, y[i])
        look(frame, x, margin, slope, importance[i])
        w = advance(frame, w, importance[i] * slope * x, i + 1, importance[i] * value)
    for j in range(len(w)):
        out[j] = w[j]


def run(
    name: str, rule: Any, loss: Any, X: Vector, y: Vector, importance: Vector, *, intercept: bool = False
) -> Vector:
    """The weights after the last row, followed by the intercept if there is one."""
    X, y, importance = (given[importance > 0] for given in (X, y, importance))
    rows, features = X.shape
    X = np.hstack([X, np.ones((rows, 1))]) if intercept else np.ascontiguousarray(X)
    oracle = ORACLES[name](rule, (np.arange(X.shape[1]) < features).astype(np.float64))
    frame = _frame(name, oracle)
    begin = oracle.begin()
    w = np.empty_like(begin)
    _steps(frame, loss, X, y, importance, begin, w)
    return oracle.read(w)
