"""The objective and the settings of the batch solvers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

from thresher import parts
from thresher.learning.checks import MOST_SEED, check_whole

ORDERS = ("cyclic", "random", "parallel")


class Round(NamedTuple):
    """The state at the start of a round; round 0 is the model without features."""

    number: int
    sweeps: int
    """sweeps so far over the chosen columns"""
    objective: float
    certificate: float
    nonzero: int
    """nonzero weights, without the intercept"""
    seconds: float


@dataclass(frozen=True)
class Plan:
    """The objective and the settings of the solver.

    Raises ValueError for a number out of range or an unknown order.
    """

    l1: float = 1.0
    l2: float = 0.0
    order: str = "random"
    tolerance: float = 1e-4
    rounds: int = 1000
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("l1", "l2", "tolerance"):
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool):
                raise ValueError(f"{name} must be a number, not {value!r}")
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be >= 0, not {value:g}")
        check_whole("rounds", self.rounds, 1)
        check_whole("threads", self.threads, 1)
        check_whole("seed", self.seed, 0, MOST_SEED)
        if self.order not in ORDERS:
            raise ValueError(f"no order is called {self.order!r}; known: {', '.join(ORDERS)}")


def loss_of(spec: Any) -> Any:
    """The loss of a SPEC; raises ValueError unless the solver's bound holds for it."""
    loss = parts.make("loss", spec)
    if not loss.BOOSTABLE:
        able = [name for name in sorted(parts.REGISTRY["loss"]) if parts.lookup("loss", name).BOOSTABLE]
        raise ValueError(
            f"boost does not support the loss {parts.part_name(type(loss))}; choose {' or '.join(able)}"
        )
    return loss
