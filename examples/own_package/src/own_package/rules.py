"""Stochastic gradient descent that forgets. Copy this package, and write your own rule in place of it."""

from typing import Any, NamedTuple

from thresher import part

W, PAID = range(2)  # columns of S
STEPS = 0  # the place in the clock


@part(
    "rule",
    SLOTS=("w", "paid"),  # state of a coordinate, initially all zeros
    CLOCK=("steps",),  # scalars shared by all coordinates
    PENALTIES=("decay",),  # not applied to the intercept
    DTYPE="float64",  # `paid` counts steps, which must be exact
)
class ForgetfulSgd(NamedTuple):
    """w' = (1 - decay) (w - eta g), for each coordinate.

    Lazy update: an untouched weight shrinks by the factor 1 - decay in each step, so after n of them it is
    (1 - decay)^n w. Its row stores the step at which it was last updated.
    """

    eta: float = 0.1
    decay: float = 1e-4

    def weight(self, S: Any, j: int, now: Any) -> Any:
        return S[j, W] * (1.0 - self.decay) ** (now[STEPS] - S[j, PAID])

    def step(self, S: Any, j: int, w: float, x: float, slope: float, now: Any) -> None:
        S[j, W] = w - self.eta * slope * x
        S[j, PAID] = now[STEPS]  # it shrinks from this step on

    def tick(self, clock: Any) -> None:
        clock[STEPS] += 1.0
