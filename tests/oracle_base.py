"""The base of the dense recursions in `tests.oracles`: a step over all coordinates."""

import re
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Loss(Protocol):
    SHIFTS: bool

    def value_slope(self, margin: float, y: float) -> tuple[float, float]: ...


def soft(v: Vector, a: Vector | float) -> Vector:
    """sign(v) · max(|v| − a, 0)."""
    return np.sign(v) * np.maximum(np.abs(v) - a, 0.0)


class Oracle:
    """One recursion; `step` maps w_t to w_{t+1}, `read` gives the weights that are reported at the end.

    `meet` is what an example's features do to the weights before they predict.
    `ORIGIN` says that the intercept begins at the first label where the loss does not mind, `EACH` that the
    examples of a batch are measured one by one, by `measure`, and then `move` is the step.
    """

    ORIGIN = False
    EACH = False

    def __init__(self, rule: Any, mask: Vector) -> None:
        self.rule = rule
        self.mask = mask

    def meet(self, w: Vector, x: Vector) -> Vector:
        return w

    def begin_pass(self, number: int, w: Vector, passes: int) -> None:
        """Pass `number`, from 1, of `passes` over the same rows begins at the weights w."""

    def begin(self) -> Vector:
        """w_1."""
        return np.zeros_like(self.mask)

    def step(self, w: Vector, g: Vector, t: int, value: float) -> Vector:
        raise NotImplementedError

    def measure(self, w: Vector, x: Vector, slope: float, value: float) -> None:
        """Look at one example of a batch, predicted by w; slope and value are times the importance."""
        raise NotImplementedError

    def move(self, g: Vector, t: int) -> Vector:
        """Step t on the summed gradient of examples that have been measured."""
        raise NotImplementedError

    def look(self, x: Vector, margin: float, slope: float, importance: float) -> None:
        """Before `step`: what of the example its gradient does not tell; slope without importance."""

    def read(self, w: Vector) -> Vector:
        return w


def named(*oracles: type[Oracle]) -> dict[str, type[Oracle]]:
    """By the names of their rules: ``FobosLinf`` is that of fobos-linf."""
    return {re.sub(r"(?<=.)(?=[A-Z])", "-", one.__name__).lower(): one for one in oracles}


def from_origin(y: Vector, wanted: bool, loss: Any, offset: Vector | None = None) -> tuple[Any, Vector]:
    """Where margins start: at the first label without its offset, or its logarithm, or 0; labels from there.

    They are float32.
    """
    if not wanted or not len(y) or not (loss.SHIFTS or loss.SCALES):
        return 0.0, y
    first = np.log(np.float32(y[0])) if loss.SCALES else np.float32(y[0])
    start = y[0] if offset is None and loss.SHIFTS else np.float64(first)
    start = start if offset is None else np.float64(first - np.float32(offset[0]))
    found = y / np.exp(start) if loss.SCALES else y - start
    return start, found.astype(np.float32).astype(np.float64)


def spread(numbers: Vector, there: NDArray[np.bool_]) -> Vector:
    """One number for each row, 0 for rows that are not `there`."""
    out = np.zeros(len(there))
    out[there] = numbers
    return out
