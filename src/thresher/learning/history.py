"""What an averaged model remembers of its steps: how rules moved the weights that no step touched."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.engine import averaging
from thresher.engine.sound import Tensors, given, require

Array = NDArray[Any]
_RING = 1 << 14  # steps between two visits of all rows of an averaged model
_RINGS = 1 << 20  # the same times the number of clocks, at most


class History:
    """A ring and a place for each clock: `ring` (*clocks, steps, 2, drifts), `place` (*clocks, 2)."""

    def __init__(self, drifts: tuple[str, ...], clock: Array) -> None:
        clocks = clock.shape[:-1]
        steps = min(_RING, _RINGS // max(1, *clocks, 1)) if drifts else 0
        self.ring = np.zeros((*clocks, steps + 1, 2, len(drifts)))
        self.place = np.zeros((*clocks, 2), np.int64)

    def mean(self, B: Array) -> Array:
        """Of each intercept: ``(outputs,)``."""
        sums: Array = B[0, -averaging.COLUMNS].reshape(-1)
        return sums / self.steps

    @property
    def steps(self) -> int:
        """How many there were."""
        return int(self.place[..., averaging.SEEN].max())

    def state(self) -> dict[str, Array]:
        """What is in use; what lies behind it in a shorter ring is left over and written as zeros."""
        used = self.place[..., averaging.SEEN] - self.place[..., averaging.BASE]
        used = np.minimum(used, self.ring.shape[-3] - 1)
        within = np.arange(used.max() + 1) <= used[..., np.newaxis]
        kept = self.ring[..., : used.max() + 1, :, :]
        return {"ring": np.where(within[..., np.newaxis, np.newaxis], kept, 0.0), "place": self.place}

    def check(self, state: Tensors, steps: int) -> None:
        """StateError for places that are in no ring, and for a ring that does not reach as far as they do."""
        place = given(state, "place", self.place.shape, np.int64)
        base, seen = place[..., averaging.BASE], place[..., averaging.SEEN]
        sound = (base >= 0).all() and (base <= seen).all() and (seen <= steps).all()
        require(sound, "place", f"0 <= steps before the ring <= steps in all <= {steps}")
        *clocks, room, pair, drifts = self.ring.shape
        used = int((seen - base).max()) if drifts else 0
        require(used < room - 1 or not drifts, "place", f"{used} steps are too many for the ring")
        given(state, "ring", (*clocks, used + 1, pair, drifts), np.float64)

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from `state`."""
        ring = state["ring"]
        self.ring[..., : ring.shape[-3], :, :] = ring
        self.place = state["place"].copy()
