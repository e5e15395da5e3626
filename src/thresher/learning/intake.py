"""Intake: preparation of examples before they are learned. It may do nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.chunk import Chunk
from thresher.data.layout import SettledLayout
from thresher.engine.sound import MOST_STEPS, Tensors, given, require
from thresher.learning.admission import Admission
from thresher.learning.centring import Centring, Means
from thresher.learning.scaling import Divisors, make_scaling


class Intake:
    """Centres columns (`Centring`), scales them (`Scaling`), then drops rare features (`Admission`).

    All count the examples of the stream one by one, so it does not matter where the stream is cut.
    """

    def __init__(
        self, scale: str | None = None, admit: str | int | None = None, seed: int = 0, centre: bool = False
    ) -> None:
        self._centring = Centring() if centre else None
        self._scaling = None if scale is None else make_scaling(scale)
        self.admission = None if admit is None else Admission(admit, seed)
        """which features are admitted; None: all"""
        self._parts = [part for part in (self._centring, self._scaling, self.admission) if part is not None]
        self._rows = 0

    @property
    def waiting(self) -> int | None:
        """Features seen but not yet admitted; None if unknown."""
        return None if self.admission is None else self.admission.waiting

    def means(self) -> Means | None:
        """The current means of columns; None unless columns are centred."""
        return None if self._centring is None else self._centring.means()

    def start_from(self, means: Means) -> None:
        """Continue from the means of another model; RuntimeError unless columns are centred."""
        if self._centring is None:
            raise RuntimeError("columns are not centred")
        self._rows = self._centring.start_from(means)

    def divisors(self, needed: NDArray[np.uint64] | None = None) -> Divisors | None:
        """The current divisors of columns; None without a scale. See `Scaling.divisors`."""
        return None if self._scaling is None else self._scaling.divisors(self._rows, needed)

    def bind(self, layout: SettledLayout | None) -> None:
        """Set the layout of the data; `DataError` if such data cannot be scaled."""
        if self._centring is not None:
            self._centring.bind(layout)
        if self._scaling is not None:
            self._scaling.bind(layout)

    def learned(self, chunk: Chunk, again: bool) -> Chunk:
        """`chunk` prepared for learning. Its rows are counted unless they come `again`, in a later pass."""
        if not self._parts:
            return chunk
        before = self._rows
        if again:
            chunk = self.read(chunk)
        else:
            for part in (self._centring, self._scaling):
                chunk = chunk if part is None else part.running(chunk, before)
        self._rows += 0 if again else len(chunk)
        return chunk if self.admission is None else self.admission.kept(chunk, before, again)

    def read(self, chunk: Chunk) -> Chunk:
        """`chunk` prepared for prediction: by the current means and divisors, which do not change."""
        chunk = chunk if self._centring is None else self._centring.read(chunk)
        return chunk if self._scaling is None else self._scaling.read(chunk, self._rows)

    def state(self) -> dict[str, NDArray[Any]]:
        """The state that counting continues from."""
        whole = {"intake.rows": np.array([self._rows])} if self._parts else {}
        for part in self._parts:
            whole |= part.state()
        return whole

    def check(self, state: Tensors) -> None:
        """StateError if counting examples cannot lead to `state`."""
        if self._parts:
            (rows,) = given(state, "intake.rows", (1,), np.int64)
            require(0 <= rows <= MOST_STEPS, "intake.rows", "the number of examples is out of range")
        for part in self._parts:
            part.check(state)

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from `state`."""
        for part in self._parts:
            part.restore(state)
        self._rows = int(state["intake.rows"][0]) if self._parts else 0
