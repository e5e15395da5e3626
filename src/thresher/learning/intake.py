"""Intake: what examples go through before they are learned. Without scale and admission it is nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.layout import SettledLayout
from thresher.engine.sound import MOST_STEPS, Tensors, given, require
from thresher.learning.admission import Admission
from thresher.learning.scaling import Divisors, make_scaling


class Intake:
    """Columns are scaled (`Scaling`), then features that are rare so far are left out (`Admission`).

    Both count the examples of the stream one by one, so where it is cut does not show.
    """

    def __init__(self, scale: str | None, admit: str | int | None, seed: int) -> None:
        self._scaling = None if scale is None else make_scaling(scale)
        self._admission = None if admit is None else Admission(admit, seed)
        self._parts = [part for part in (self._scaling, self._admission) if part is not None]
        self._rows = 0

    @property
    def waiting(self) -> int | None:
        """Features that were seen and are not in yet; None where that is not known."""
        return None if self._admission is None else self._admission.waiting

    def divisors(self, needed: NDArray[np.uint64] | None = None) -> Divisors | None:
        """What columns are divided by as of now; None without a scale. See `Scaling.divisors`."""
        return None if self._scaling is None else self._scaling.divisors(self._rows, needed)

    def bind(self, layout: SettledLayout | None) -> None:
        """The data are those of `layout`; `DataError` where they cannot be scaled."""
        if self._scaling is not None:
            self._scaling.bind(layout)

    def learned(self, chunk: Chunk, again: bool) -> Chunk:
        """What is learned of `chunk`. Its rows are counted, unless they were in an earlier pass (`again`)."""
        if not self._parts:
            return chunk
        before = self._rows
        if self._scaling is not None:
            chunk = self.read(chunk) if again else self._scaling.running(chunk, before)
        self._rows += 0 if again else len(chunk)
        return chunk if self._admission is None else self._admission.kept(chunk, before, again)

    def read(self, chunk: Chunk) -> Chunk:
        """What is predicted from: scaled by what is known now, which does not change."""
        return chunk if self._scaling is None else self._scaling.read(chunk, self._rows)

    def state(self) -> dict[str, NDArray[Any]]:
        """All that counting goes on from."""
        whole = {"intake.rows": np.array([self._rows])} if self._parts else {}
        for part in self._parts:
            whole |= part.state()
        return whole

    def check(self, state: Tensors) -> None:
        """StateError for what counting examples cannot leave."""
        if self._parts:
            (rows,) = given(state, "intake.rows", (1,), np.int64)
            require(0 <= rows <= MOST_STEPS, "intake.rows", "no such number of examples can be counted")
        for part in self._parts:
            part.check(state)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from `state`."""
        for part in self._parts:
            part.restore(state)
        self._rows = int(state["intake.rows"][0]) if self._parts else 0
