"""Model: a loss, a rule, a store and a clock that learn from Chunks; Readout: its weights to predict with."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.chunk import Chunk
from thresher.engine import kernels
from thresher.engine.registry import in_dtype
from thresher.engine.stores import Store, make_store

Output = Literal["margin", "probability", "label"]
OUTPUTS: tuple[Output, ...] = ("margin", "probability", "label")
_PIECE = 1 << 19  # non-zeros resolved at a time: fewer calls, and their rows stay in a cache


class DivergedError(ArithmeticError):
    """The loss of an example is no longer a finite number."""


class Tally(NamedTuple):
    """What learning has met so far."""

    loss: float
    """sum of importance times progressive loss"""
    weight: float
    """sum of importances"""

    @property
    def average(self) -> float:
        """Progressive loss; NaN before the first example."""
        return self.loss / self.weight if self.weight else float("nan")


class Model:
    """A sparse linear model that learns from a stream.

    `rule`, `loss` and `rate` are SPECs (``"ftrl:alpha=0.5,l1=1"``) or parts. `store` is ``growing``
    (64-bit keys, memory follows the live weights), ``direct`` (the key is the row) or
    ``hashed:BITS``. `dtype` of the state is ``float32`` or ``float64``; a rule that needs exact
    counts makes it ``float64``. `seed` enters the hash of a hashed store.

    The intercept is learned by the same rule with its penalties at zero.

    Raises `SpecError` (a ValueError) for a SPEC that does not hold.

    >>> model = Model("sgd", "squared", rate="constant:0.1")
    >>> model.learn(Chunk.of_rows([(1.0, {7: 2.0})]))
    >>> model.predict(Chunk.of_rows([(1.0, {7: 2.0})]))  # 5 * (2 * 0.1 * 1)
    array([1.00000001])
    """

    def __init__(
        self,
        rule: Any = "ftrl",
        loss: Any = "logistic",
        *,
        rate: Any = None,
        store: str = "growing",
        intercept: bool = True,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        if dtype not in ("float32", "float64"):
            raise ValueError(f"dtype must be float32 or float64, not {dtype!r}")
        nested = {} if rate is None else {"rate": parts.make("rate", rate)}
        self.loss = parts.make("loss", loss)
        self.rule = parts.make("rule", rule, **nested)
        self.free = self.rule.intercept()
        self.dtype = np.dtype(max(dtype, self.rule.DTYPE))  # the names sort as the widths do
        self.seed = seed
        self.examples = 0
        self.lowest_label = 0.0
        self._store: Store = make_store(store, len(self.rule.SLOTS), self.dtype, seed)
        self._clock, self._bclock = self.rule.clock0(), self.free.clock0()
        self._B = np.zeros((int(intercept), len(self.free.SLOTS)), self.dtype)
        self._tally = np.zeros(3)
        self._rows = np.empty(0, np.uint32)
        self._narrow = in_dtype(self.rule, self.dtype)
        self._free_narrow = in_dtype(self.free, self.dtype)
        self._learn = kernels.learn.for_parts(self.loss, self.rule, self.free)
        self._settle = kernels.settle.for_parts(self.rule, self.free)

    def learn(self, chunk: Chunk, lo: int = 0, hi: int | None = None) -> None:
        """Predict, then learn, rows lo <= i < hi of `chunk` (all of them by default).

        Cutting a stream into chunks or ranges anywhere changes nothing, bit for bit.
        Raises `DivergedError` when a loss is not finite; that example has changed nothing.
        """
        stop = len(chunk) if hi is None else hi
        if chunk.nnz > self._rows.size:
            self._rows = np.empty(chunk.nnz, np.uint32)
        arrays = [_read_only(a) for a in (chunk.indptr, chunk.keys, chunk.values)]
        targets = _read_only(chunk.labels), _read_only(chunk.weights)
        if stop > lo:
            self.lowest_label = min(self.lowest_label, float(chunk.labels[lo:stop].min()))
        longest = int(np.diff(chunk.indptr[lo : stop + 1]).max(initial=0))
        while lo < stop:
            lo = self._learn_piece(arrays, targets, lo, stop, longest)

    def _learn_piece(self, arrays: Any, targets: Any, lo: int, stop: int, longest: int) -> int:
        indptr, keys, values = arrays
        hi = int(np.searchsorted(indptr, indptr[lo] + _PIECE, side="right")) - 1
        hi = min(max(hi, lo + 1), stop)
        resolved = self._store.resolve(keys, indptr, values, lo, hi, self._rows)
        done: int = self._learn(
            self.loss,
            self.rule,
            self._narrow,
            self.free,
            self._free_narrow,
            self._store.S,
            self._clock,
            self._B,
            self._bclock,
            _read_only(resolved.indptr),
            _read_only(resolved.rows),
            _read_only(resolved.values),
            *targets,
            lo,
            resolved.hi,
            longest,
            self._store.seen,
            self._tally,
        )
        self.examples += done - lo
        if done < resolved.hi and not self._store.extend(keys[indptr[done] : indptr[done + 1]]):
            raise DivergedError(
                f"the loss of example {self.examples + 1} is not finite: try a smaller step size, or scale"
                " the features"
            )
        if done == resolved.hi < hi:
            self._store.make_room(int(indptr[done + 1] - indptr[done]), self._sweep)
        return done

    def _sweep(self, S: NDArray[Any], keys: NDArray[np.uint64], first: int, count: int) -> int:
        sweep = kernels.sweep.for_parts(self.rule)
        return int(sweep(self._narrow, S, self._clock, keys, first, count))

    @property
    def tally(self) -> Tally:
        """Sums of progressive loss and importance."""
        return Tally(float(self._tally[kernels.LOSS_SUM]), float(self._tally[kernels.WEIGHT_SUM]))

    @property
    def last_margin(self) -> float:
        """Margin of the last example learned from, before it was learned from."""
        return float(self._tally[kernels.LAST_MARGIN])

    @property
    def features_seen(self) -> int:
        """Distinct features met so far (see the stores)."""
        return self._store.features_seen

    @property
    def nbytes(self) -> int:
        """Bytes that the store holds now."""
        return self._store.nbytes

    @property
    def store(self) -> str:
        """SPEC of the store."""
        return self._store.spec

    @property
    def nonzero(self) -> int:
        """Weights that are not zero, the intercept not counted."""
        return int(np.count_nonzero(self._settled()))

    @property
    def intercept(self) -> float:
        """Settled weight of the intercept; 0 without one."""
        return float(self._bias()[0])

    def weights(self) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """Keys, ascending, and weights of the non-zero coordinates: ``(nonzero,)`` uint64 and state dtype."""
        settled = self._settled()
        (alive,) = np.nonzero(settled)
        keys = self._store.features()[alive]
        order = np.argsort(keys)
        return keys[order], settled[alive][order]

    def predict(self, chunk: Chunk, output: Output = "margin") -> NDArray[np.float64]:
        """Predictions ``(n,)`` for the rows of `chunk`; changes nothing. See `Readout.predict`."""
        compiled = kernels.predict.for_parts(self.rule)
        margins = _margins(compiled, self._narrow, self._clock, self._store, self._bias(), chunk)
        return respond(self.loss, margins, output, self.lowest_label)

    def readout(self) -> Readout:
        """The settled weights, apart from the state that goes on learning."""
        keys, weights = self.weights()
        return Readout(self.loss, self.store, keys, weights, self._bias(), self.lowest_label)

    def _settled(self) -> NDArray[Any]:
        out = np.empty(len(self._store.features()), self.dtype)
        self._settle(self._narrow, self._store.S, self._clock, out)
        return out

    def _bias(self) -> NDArray[Any]:
        out = np.zeros(1, self.dtype)
        if len(self._B):
            self._settle(self._free_narrow, self._B, self._bclock, out)
        return out

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning goes on from, as arrays."""
        own = {"clock": self._clock, "bclock": self._bclock, "B": self._B, "tally": self._tally}
        counts = np.array([self.examples, self.lowest_label])
        return {**self._store.tensors(), **own, "counters": counts}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from `state`, taken from a model of the same parts, store and dtype."""
        self._store.restore(state)
        self._clock, self._bclock = state["clock"].copy(), state["bclock"].copy()
        self._B, self._tally = state["B"].copy(), state["tally"].copy()
        self.examples, self.lowest_label = int(state["counters"][0]), float(state["counters"][1])


class Readout:
    """Settled weights of a model: all that prediction needs.

    `keys` ascend, ``(nonzero,)`` uint64; `weights` are in the dtype of the state, as is the
    intercept `bias` ``(1,)``.
    """

    def __init__(
        self,
        loss: Any,
        store: str,
        keys: NDArray[np.uint64],
        weights: NDArray[Any],
        bias: NDArray[Any],
        lowest_label: float = 0.0,
    ) -> None:
        self.loss, self.store = loss, store
        self.keys, self.weights, self.bias = keys, weights, bias
        self.lowest_label = lowest_label
        self._store = make_store(store, 1, weights.dtype)
        self._store.fill(keys, weights)

    @property
    def intercept(self) -> float:
        """Weight of the intercept."""
        return float(self.bias[0])

    def predict(self, chunk: Chunk, output: Output = "margin") -> NDArray[np.float64]:
        """Predictions ``(n,)`` float64 for the rows of `chunk`.

        ``margin`` is the weighted sum, ``probability`` the link of the loss at it (only for losses
        that have one; ValueError otherwise), ``label`` the class as the training data wrote it, or
        for regression the predicted mean.
        """
        margins = _margins(
            kernels.predict,
            in_dtype(kernels.SETTLED, self.bias.dtype),
            np.zeros(1),
            self._store,
            self.bias,
            chunk,
        )
        return respond(self.loss, margins, output, self.lowest_label)

    def heaviest(self, top: int | None = None) -> tuple[NDArray[np.uint64], NDArray[Any]]:
        """Keys and weights, largest magnitude first, equal ones by key."""
        order = np.lexsort((self.keys, -np.abs(self.weights)))[:top]
        return self.keys[order], self.weights[order]


def _margins(
    compiled: Any, narrow: Any, clock: NDArray[Any], store: Any, bias: NDArray[Any], chunk: Chunk
) -> NDArray[np.float64]:
    found = store.find(_read_only(chunk.keys), _read_only(chunk.indptr), _read_only(chunk.values))
    out = np.empty(len(chunk))
    compiled(
        narrow,
        store.S,
        clock,
        bias,
        _read_only(found.indptr),
        _read_only(found.rows),
        _read_only(found.values),
        out,
    )
    return out


def respond(
    loss: Any, margins: NDArray[np.float64], output: Output, lowest_label: float
) -> NDArray[np.float64]:
    """Margins as `output` wants them; ValueError when the loss has no probabilities."""
    if output == "margin":
        return margins
    if output == "probability" and not loss.PROBABILITY:
        raise ValueError(f"the loss {parts.part_name(type(loss))} gives no probabilities; logistic does")
    if output == "label" and loss.DOMAIN == "binary":
        return np.where(margins > 0, 1.0, lowest_label)
    out = np.empty_like(margins)
    kernels.respond.for_parts(loss)(loss, margins, out)
    return out


def losses_of(loss: Any, margins: NDArray[np.float64], chunk: Chunk) -> NDArray[np.float64]:
    """Loss of each row times its importance."""
    out = np.empty(len(chunk))
    kernels.score.for_parts(loss)(loss, margins, _read_only(chunk.labels), _read_only(chunk.weights), out)
    return out


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written through: one compiled kernel serves both kinds of array."""
    view = array.view()
    view.flags.writeable = False
    return view
