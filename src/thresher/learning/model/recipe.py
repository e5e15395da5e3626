"""Recipe: the definition of a model, before it has learned anything.

It is spelled out in full when it is created (`ftrl` with all its parameters, the dtype that rule and average
need), so that two recipes are equal if their models are. The command line has an option for each field, a
header stores `as_dict` and loading inverts it, `--resume` compares recipes, and estimators create one. Parts
are kept as SPECs, because named tuples of different classes are equal if their numbers are. The layout of the
data is a field too, set when the data are opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, fields
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from thresher import parts
from thresher.data.columns import check_settled
from thresher.data.errors import DataError, OneLineError
from thresher.data.formats.choosing import check_format
from thresher.data.layout import SettledLayout
from thresher.engine.index import HashedIndex, store_spec
from thresher.learning.model.objective import Objective, check_calibrated
from thresher.learning.model.preprocessing import admission_spec
from thresher.learning.model.sampling import Sample
from thresher.learning.model.signs import Signs
from thresher.options.kinds import Flag
from thresher.options.messages import mention
from thresher.options.model import RecipeOptions
from thresher.options.option import Option, options_of, settle

Spec = str | tuple[Any, ...]
"""A part or its SPEC (``"ftrl:alpha=0.5,l1=1"``) as an argument; the full SPEC as a field"""
Header = dict[str, Any]
_AS_GIVEN = (*("batch", "average", "dtype", "intercept", "seed", "calibrate", "nonnegative", "nonpositive"),)
_ALWAYS_SHOWN = ("rule", "loss", "outputs", "store", "dtype")


class _Given(RecipeOptions):
    """What is given for the fields of a recipe, and for parameters of its parts."""

    offset: Annotated[bool, Option(Flag(), default=False)]


@dataclass(frozen=True, repr=False)
class Recipe:
    """The definition of a model. Two models with equal recipes are the same until they learn.

    Every field is text, a number, a flag or a `SettledLayout`, and is stored in full: ``"ftrl"`` becomes
    ``"ftrl:alpha=0.1,..."``. What follows from other fields is not stored: the seed of a hashed store if it
    equals `seed`, a dtype required by the rule or by averaging. `alpha`, `l1` and `l2` change the rule and
    `eta0` its rate; they are not fields. Raises `SpecError` (a ValueError) for an invalid SPEC, ValueError
    for everything else that no model can have.

    >>> Recipe("ft-ftrl", l1=2.0).rule
    'ft-ftrl:alpha=3.0,l1=2.0,adapt=0.3,forget=0.0,group=single,relax=0.25,taper=1500.0,half_life=inf'
    >>> Recipe("pegasos", "hinge") == Recipe("pegasos", "hinge", dtype="float32")
    True
    """

    rule: Spec = "ft-ftrl"
    loss: Spec = "logistic"
    rate: Spec | None = None
    """the step size, for rules that have one"""
    outputs: str = "one"
    """``one``, ``classes``, ``classes:LO-HI`` (``classes:K``: 1 to K), ``labels:LO-HI``, ``values:K``"""
    batch: int = 1
    """The mini-batch size: the summed gradient of this many examples is one step (Daume, A Course in Machine
    Learning (2012), Algorithm 33)."""
    average: bool = False
    """Read the average of the weights, (w_1 + ... + w_T) / T, where w_t are the weights before
    example t, of one output without mini-batches. This is what predictions, weights and saved models use;
    learning and progressive loss use w_t. The state is then float64. (Langford, Li and Zhang (JMLR 2009),
    theorem 3.2 and the remark on it; Polyak and Juditsky (1992).)"""
    scale: str | None = None
    """Divide columns by a statistic of the values so far, ``max-abs`` or ``standard`` (`MaxAbs`, `Standard`):
    the numeric columns of the `layout`, or every feature if it has no columns."""
    centre: bool | None = None
    """Subtract from columns that are hardly ever zero the mean of their values so far (see `Centring`). None:
    if the rule is ``AUTOMATIC``, or with the scale ``standard``."""
    admit: str | int | None = None
    """A feature is learned from its N-th sighting on: ``N``, ``poisson:P``, or either with ``,bits=B``
    (see `Admission`)."""
    store: str = "growing"
    """``growing`` (64-bit keys, memory follows the live weights), ``direct`` (the key is the row),
    ``hashed:BITS`` or ``hashed:BITS,signed`` (see `HashedIndex`)"""
    intercept: bool = True
    """whether to learn an intercept; it uses the same rule without penalties"""
    dtype: str = "float32"
    """dtype of the state: ``float32`` or ``float64``, as text or NumPy dtype; see `numbers`"""
    seed: int = 0
    """seed for a hashed store and `admit`, for the order of rows, and for hold-outs and folds"""
    sample: str | Mapping[Any, float] | None = None
    """``LABEL=SHARE,...``: learn a share of the rows with a label, with larger importances or, with
    ``,correct``, intercepts that are corrected (see `Sample`)"""
    calibrate: bool = False
    """whether to learn what probability a margin means (see `FittedLink`)"""
    nonnegative: str | None = None
    """columns whose weights are never negative, a list; ``*`` for all: see `Signs`"""
    nonpositive: str | None = None
    """columns whose weights are never positive, a list; ``*`` for all"""
    layout: SettledLayout | None = None
    """how the training data became features, if they came from files or tables"""
    offset: bool = False
    """whether each example has an offset, which is added to its margin (see `Chunk.offsets`); it has if the
    layout says so"""
    alpha: InitVar[float | None] = None
    l1: InitVar[float | None] = None
    l2: InitVar[float | None] = None
    eta0: InitVar[float | None] = None

    def __post_init__(
        self, alpha: float | None, l1: float | None, l2: float | None, eta0: float | None
    ) -> None:
        """Store all fields in full; ValueError."""
        taken = settle(_Given, {name: getattr(self, name) for name in options_of(_Given)})
        if not isinstance(self.layout, SettledLayout | None):
            raise ValueError(f"layout must be the settled layout of a source, not {self.layout!r}")
        if self.layout is not None and self.layout.classes:
            self.objective.domain.check_words(self.layout.classes)
        head, rule = self.objective, parts.rule_of(self.rule, self.rate, eta0, alpha=alpha, l1=l1, l2=l2)
        rate, sample = getattr(rule, "rate", None), None if self.sample is None else Sample.of(self.sample)
        if sample is not None:
            sample.of_classes(head, self.layout.classes if self.layout else ())
        if taken["calibrate"]:
            check_calibrated(head, taken["average"], sample is not None and sample.correct)
        shifted = taken["offset"] or (self.layout is not None and self.layout.has_offsets)
        if shifted and self.outputs != "one":
            several = f"{mention(outputs=self.outputs)} has several"
            raise OneLineError(f"an offset is added to one margin, and {several}: leave one of them out")
        stored = dict[str, Any](
            rule=parts.spec_of(rule),
            rate=None if rate is None else parts.spec_of(rate),
            loss=parts.spec_of(head.loss),
            outputs=head.outputs.spec,
            centre=is_centred(rule, self.scale, taken["centre"]),
            admit=None if self.admit is None else admission_spec(self.admit),
            store=store_spec(taken["store"], taken["seed"], full=False),
            sample=sample and sample.spec,
            offset=shifted,
            **{name: taken[name] for name in _AS_GIVEN},
        )
        for name, value in stored.items():
            object.__setattr__(self, name, value)
        self.signs().check(rule, self.outputs != "one", self.store.endswith(HashedIndex.SIGNED))

    def __repr__(self) -> str:
        """The call that makes this recipe, without default values."""
        shown = {"rule": self.rule, "loss": self.loss, **self.chosen()}
        return f"Recipe({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def chosen(self) -> dict[str, Any]:
        """The fields that are not as they are by default, with this rule and scale."""
        plain = vars(Recipe()) | {"centre": is_centred(self.rule_part, self.scale, None)}
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in own.items() if value != plain[name]}

    @cached_property
    def objective(self) -> Objective:
        """Loss and outputs; ValueError if they cannot be combined."""
        return Objective(self.loss, self.outputs)

    @cached_property
    def rule_part(self) -> Any:
        """The rule, including its rate."""
        return parts.rule_of(self.rule, self.rate)

    def signs(self) -> Signs:
        """The signs that weights keep."""
        return Signs(self.nonnegative, self.nonpositive)

    @property
    def numbers(self) -> np.dtype[Any]:
        """The dtype of the state: float64 also if the rule needs exact counts or weights are averaged."""
        needed: str = max(self.dtype, self.rule_part.DTYPE, "float64" if self.average else "")
        return np.dtype(needed)  # the names sort in order of width

    def as_dict(self) -> Header:
        """The fields as stored in a header."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        own["store"] = store_spec(self.store, self.seed)  # a LinearPredictor has no seed
        return own | {"layout": None if self.layout is None else self.layout.as_dict()}

    @classmethod
    def from_dict(cls, given: Header) -> Recipe:
        """The inverse. ValueError, `DataError` for an invalid recipe; TypeError for unknown names."""
        return cls(**{**given, "layout": layout_of(given)})


def is_centred(rule: Any, scale: str | None, centre: bool | None) -> bool:
    """Whether columns are centred: as given, or by default."""
    return bool(rule.AUTOMATIC or scale == "standard") if centre is None else bool(centre)


def settings(stored: Header) -> dict[str, Any]:
    """The fields of a stored recipe to show: those that define every model, and others if not the default."""
    shown = {one.name: one.default for one in fields(Recipe) if one.name != "layout" and one.name in stored}
    shown |= {"centre": False} if "centre" in stored else {}  # models of boost have none
    return {
        name: stored[name]
        for name, default in shown.items()
        if name in _ALWAYS_SHOWN or stored[name] != default
    }


def layout_of(given: Header) -> SettledLayout | None:
    """The layout in the recipe of a header; None if the data were arrays. `DataError`."""
    if given["layout"] is None:
        return None
    layout = check_settled(SettledLayout.from_dict(given["layout"]))
    if layout.format:
        check_format(layout.format)
    if layout.has_offsets and not given.get("offset", False):
        raise DataError("the layout says where offsets are, but the recipe that there are none")
    return layout


def penalty_field(rule: Any) -> str | None:
    """The name of the parameter that makes a rule sparse; None for a rule without one."""
    if not rule.PENALTIES:
        return None
    return "l1" if "l1" in rule.PENALTIES else str(rule.PENALTIES[0])
