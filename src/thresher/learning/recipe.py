"""Recipe: what a model is, before it has learned anything."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, fields
from typing import Any

import numpy as np

from thresher import parts
from thresher.data.columns import check_settled
from thresher.data.layout import SettledLayout
from thresher.engine.stores import store_spec
from thresher.learning.admission import Terms
from thresher.learning.checks import check_flag, check_whole
from thresher.learning.head import Head
from thresher.learning.scaling import make_scaling

Spec = str | tuple[Any, ...]
"""A part or its SPEC (``"ftrl:alpha=0.5,l1=1"``) where it is given, the whole SPEC where it is kept"""
Header = dict[str, Any]
_DTYPES = ("float32", "float64")
_MOST_IN_A_BATCH = 1 << 31


@dataclass(frozen=True, repr=False)
class Recipe:
    """What a model is. Two models of equal recipes are the same until they learn.

    Every field is text, a number, a flag or a `SettledLayout`, and is kept in full: ``"ftrl"`` becomes
    ``"ftrl:alpha=0.1,..."``. What follows from other fields is not written down: the seed of a hashed store
    if it is `seed`, a dtype that rule or average need. `alpha`, `l1` and `l2` change the rule
    where they are given, `eta0` its rate, and are no fields. Raises `SpecError` (a ValueError) for a SPEC
    that does not hold, ValueError for all else that no model can be.

    >>> Recipe("ft-ftrl", l1=2.0).rule
    'ft-ftrl:alpha=3.0,l1=2.0,adapt=0.3,forget=0.0,group=single'
    >>> Recipe("pegasos", "hinge") == Recipe("pegasos", "hinge", dtype="float32")
    True
    """

    rule: Spec = "ft-ftrl"
    loss: Spec = "logistic"
    rate: Spec | None = None
    """the step size, of rules that have one"""
    outputs: str = "one"
    """``one``, ``classes:LO-HI`` (``classes:K``: 1 to K), ``labels:LO-HI`` or ``values:K``"""
    batch: int = 1
    """The summed gradient of so many examples is one step (Daume, A Course in Machine Learning (2012),
    Algorithm 33)."""
    average: bool = False
    """What is read (predictions, weights, what is saved) is the mean (w_1 + ... + w_T) / T of the weights
    that the T steps so far began with, one for each batch; learning and the progressive loss go on with w_t
    itself. The state is then float64. (Langford, Li and Zhang (JMLR 2009), theorem 3.2 and the remark on it;
    Polyak and Juditsky (1992).)"""
    scale: str | None = None
    """Divides columns by what they have shown so far, ``max-abs`` or ``standard`` (see `MaxAbs`, `Standard`):
    the numeric ones of the `layout`, or where it has no columns every feature."""
    admit: str | int | None = None
    """A feature is learned from its N-th sighting on: ``N``, ``poisson:P``, or either with ``,bits=B``
    (see `Admission`)."""
    store: str = "growing"
    """``growing`` (64-bit keys, memory follows the live weights), ``direct`` (the key is the row),
    ``hashed:BITS`` or ``hashed:BITS,signed`` (see `HashedIndex`)"""
    intercept: bool = True
    """whether one is learned, by the same rule with its penalties at zero"""
    dtype: str = "float32"
    """of the state, ``float32`` or ``float64``, or that of NumPy; see `numbers`"""
    seed: int = 0
    """of the hashes of a hashed store and of `admit`, and of the order of rows"""
    layout: SettledLayout | None = None
    """how the data learned from became features, where they came from files"""
    alpha: InitVar[float | None] = None
    l1: InitVar[float | None] = None
    l2: InitVar[float | None] = None
    eta0: InitVar[float | None] = None

    def __post_init__(
        self, alpha: float | None, l1: float | None, l2: float | None, eta0: float | None
    ) -> None:
        """Write all fields in full; ValueError."""
        if not isinstance(self.store, str):
            raise ValueError(f"store must be text such as growing, direct or hashed:20, not {self.store!r}")
        check_whole("batch", self.batch, 1, _MOST_IN_A_BATCH)
        check_whole("seed", self.seed, 0)
        check_flag("average", self.average)
        check_flag("intercept", self.intercept)
        if self.scale is not None:
            make_scaling(self.scale)
        if not isinstance(self.layout, SettledLayout | None):
            raise ValueError(f"layout must be that of data, as a source has it, not {self.layout!r}")
        head, rule = self.head(), parts.rule_of(self.rule, self.rate, eta0, alpha=alpha, l1=l1, l2=l2)
        rate = getattr(rule, "rate", None)
        self._keep(
            rule=parts.spec_of(rule),
            rate=None if rate is None else parts.spec_of(rate),
            loss=parts.spec_of(head.loss),
            outputs=head.outputs.spec,
            batch=int(self.batch),
            average=bool(self.average),
            admit=None if self.admit is None else Terms.of(self.admit).spec,
            store=store_spec(self.store, int(self.seed), full=False),
            intercept=bool(self.intercept),
            dtype=_checked_dtype(self.dtype),
            seed=int(self.seed),
        )

    def _keep(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """The call that makes it, without what it would say by itself."""
        plain = Recipe()
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        told = [f"{k}={v!r}" for k, v in own.items() if k in ("rule", "loss") or v != getattr(plain, k)]
        return f"Recipe({', '.join(told)})"

    def head(self) -> Head:
        """Loss and outputs; ValueError for a pair that there is not."""
        return Head(self.loss, self.outputs)

    def make_rule(self) -> Any:
        """The rule, with its rate."""
        return parts.rule_of(self.rule, self.rate)

    @property
    def numbers(self) -> np.dtype[Any]:
        """The dtype of the state: float64 too where a rule needs exact counts, and for an average."""
        needed: str = max(self.dtype, self.make_rule().DTYPE, "float64" if self.average else "")
        return np.dtype(needed)  # names are sorted as the widths are

    @property
    def store_in_full(self) -> str:
        """SPEC of the store with the seed of its hash."""
        return store_spec(self.store, self.seed)

    def as_dict(self) -> Header:
        """The fields as a header holds them."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        own["store"] = self.store_in_full  # for what knows no seed: a Readout
        return own | {"layout": None if self.layout is None else self.layout.as_dict()}

    @classmethod
    def from_dict(cls, given: Header) -> Recipe:
        """The inverse. ValueError, `DataError` for what describes no model; TypeError for unknown names."""
        return cls(**{**given, "layout": layout_of(given)})


def _checked_dtype(given: Any) -> str:
    """The name of a dtype that there is; ValueError."""
    name = given
    if isinstance(given, np.dtype) or (isinstance(given, type) and issubclass(given, np.generic)):
        name = np.dtype(given).name
    if name not in _DTYPES:
        raise ValueError(f"dtype must be {' or '.join(_DTYPES)}, not {given!r}")
    return str(name)


def layout_of(given: Header) -> SettledLayout | None:
    """The layout in a recipe of a header; None where the data came as arrays. `DataError`."""
    layout = given["layout"]
    return None if layout is None else check_settled(SettledLayout.from_dict(layout))
