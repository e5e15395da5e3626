"""The history of an averaged model: how the rule moved weights in steps that did not touch them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.engine import averaging
from thresher.engine.sound import Tensors, given, require

Array = NDArray[Any]
_RING = 1 << 14  # steps between two sweeps over all rows of an averaged model
_RINGS = 1 << 20  # upper limit for that number times the number of clocks


class History:
    """A ring and a position for each clock: `ring` (*clocks, steps, 2, drifts), `place` (*clocks, 2)."""

    def __init__(self, drifts: tuple[str, ...], clock: Array) -> None:
        clocks = clock.shape[:-1]
        steps = min(_RING, _RINGS // max(1, *clocks, 1)) if drifts else 0
        self.ring = np.zeros((*clocks, steps + 1, 2, len(drifts)))
        self.place = np.zeros((*clocks, 2), np.int64)

    def mean(self, B: Array) -> Array:
        """Mean of each intercept ``(outputs,)``."""
        sums: Array = B[0, -averaging.COLUMNS].reshape(-1)
        return sums / self.steps

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return int(self.place[..., averaging.SEEN].max())

    def state(self) -> dict[str, Array]:
        """The part in use; unused entries of shorter rings are written as zeros."""
        used = self.place[..., averaging.SEEN] - self.place[..., averaging.BASE]
        used = np.minimum(used, self.ring.shape[-3] - 1)
        within = np.arange(used.max() + 1) <= used[..., np.newaxis]
        kept = self.ring[..., : used.max() + 1, :, :]
        return {"ring": np.where(within[..., np.newaxis, np.newaxis], kept, 0.0), "place": self.place}

    def check(self, state: Tensors, steps: int) -> None:
        """StateError for a position outside the ring, or a ring too short for the positions."""
        place = given(state, "place", self.place.shape, np.int64)
        base, seen = place[..., averaging.BASE], place[..., averaging.SEEN]
        sound = (base >= 0).all() and (base <= seen).all() and (seen <= steps).all()
        require(sound, "place", f"expected 0 <= steps before the ring <= all steps <= {steps}")
        *clocks, room, pair, drifts = self.ring.shape
        used = int((seen - base).max()) if drifts else 0
        require(used < room - 1 or not drifts, "place", f"{used} steps do not fit in the ring")
        given(state, "ring", (*clocks, used + 1, pair, drifts), np.float64)

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from `state`."""
        ring = state["ring"]
        self.ring[..., : ring.shape[-3], :, :] = ring
        self.place = state["place"].copy()
