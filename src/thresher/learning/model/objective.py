"""Head: the meaning of margins. A loss and its outputs; targets, responses, losses.

Calibration: the probability that a margin m means is 1 / (1 + exp(-(a m + b))).

a and b are learned while the model learns, from the margin of each example before it is learned, so that no
hold-out is lost (Platt, Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
Likelihood Methods (1999), who fits them to margins of held-out examples; Niculescu-Mizil and Caruana, ICML
2005). Of several classes, the probabilities are softmax(m / T), so that the likeliest class stays the
likeliest (Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural Networks, ICML 2017, section
4.2): a is 1 / T and b is 0. They are applied to losses that have probabilities only if they have made the
progressive log loss at least 1 % lower (of several classes 3 %): docs/calibration.md says what that prevents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.chunk import Chunk, read_only
from thresher.data.errors import OneLineError
from thresher.data.labels import (
    DOMAINS,
    MOST_CLASSES,
    MOST_MET,
    Domain,
    domain_of,
    give_back,
    list_words,
)
from thresher.data.source import Source
from thresher.engine import calibrating, kernels, outputs
from thresher.engine.sound import Array
from thresher.options.messages import mention

F64 = NDArray[np.float64]
_WORTH, _WORTH_OF_SEVERAL = 0.99, 0.97
"""Calibrate if the log loss becomes lower than by this factor"""
Output = Literal["margin", "probability", "label"]
_SPAN = r"(?:(-?[0-9]{1,18})-)?(-?[0-9]{1,18})"


class Outputs(NamedTuple):
    """What a model predicts.

    ``one`` number; one of the ``classes`` low to high; ``labels``: any subset of them; several ``values``;
    ``quantiles`` of one number, whose `levels` ascend.
    """

    kind: Literal["one", "classes", "labels", "values", "quantiles"] = "one"
    low: int = 0
    high: int = 0
    levels: tuple[float, ...] = ()
    most: int = 0
    """how many classes there may be, numbered from 0 as they come; 0 if they are given"""

    @classmethod
    def of(cls, spec: str) -> Outputs:
        """The outputs that `spec` says: the inverse of `spec`, or with K for 1 to K. ValueError."""
        text: Any = str(spec)
        kind, _, rest = text.partition(":")
        most, span = re.fullmatch(r"max=([0-9]{1,5})", rest), re.fullmatch(_SPAN, rest)
        if spec == "one":
            return cls()
        if spec == "classes" or (kind == "classes" and most):
            count = int(most[1]) if most else MOST_MET
            if not 2 <= count <= MOST_CLASSES:
                raise ValueError(f"{spec}: give at least 2 and at most {MOST_CLASSES}")
            return cls("classes", most=count)
        if kind == "quantiles":
            try:
                levels = tuple(map(float, rest.split(",")))
            except ValueError:
                levels = ()
            inside = all(0.0 < one < 1.0 for one in levels)
            if not inside or len(levels) < 2 or [*levels] != sorted({*levels}):
                form = "two or more ascending levels in (0, 1), such as quantiles:0.1,0.5,0.9"
                raise OneLineError(f"{spec}: give {form}")
            return cls("quantiles", 1, len(levels), levels)
        if span and kind == "values" and not span[1]:
            if not 1 <= int(span[2]) <= 1 << 16:
                raise ValueError(f"{spec}: give at least 1 and at most {1 << 16}")
            return cls("values", 1, int(span[2]))
        if span and kind in ("classes", "labels"):
            found = cls(kind, int(span[1] or 1), int(span[2]))
            domain_of(f"{kind}:{found.low}-{found.high}")
            return found
        raise ValueError(
            f"no outputs are called {spec!r}; known: one, classes, classes:max=N, classes:LO-HI,"
            " labels:LO-HI, values:K, quantiles:Q,..."
        )

    @property
    def spec(self) -> str:
        """The text that `of` accepts."""
        if self.levels:
            return "quantiles:" + ",".join(map(repr, self.levels))
        if self.most:
            return f"classes:max={self.most}"
        size = {"one": "", "values": f":{self.high}"}.get(self.kind, f":{self.low}-{self.high}")
        return self.kind + size


class FittedLink(NamedTuple):
    """The two numbers: margins times `slope` plus `intercept` are log odds, or those of softmax."""

    slope: float = 1.0
    intercept: float = 0.0

    @classmethod
    def learned(cls, state: F64, head: Objective, added: float = 0.0) -> FittedLink | None:
        """The numbers that `calibrate` has learned, for margins with so much `added`; None for the link."""
        raw, own = state[calibrating.RAW_LOSS], state[calibrating.OWN_LOSS]
        worth = _WORTH if head.count == 1 else _WORTH_OF_SEVERAL
        if head.joint.PROBABILITY and not own < worth * raw:
            return None
        slope = 1.0 + float(state[calibrating.SLOPE])
        return cls(slope, float(state[calibrating.INTERCEPT]) + added * (1.0 - slope))

    def log_odds(self, margins: F64) -> F64:
        """The log odds of the positive class, or of all, for margins ``(n,)`` or ``(n, classes)``."""
        return self.slope * margins + self.intercept


class Listener(Protocol):
    """Something that looks at examples and at what was predicted for them."""

    def add(self, chunk: Chunk, margins: F64) -> None:
        """Take the next examples and their margins."""


class Objective:
    """A loss over outputs.

    One output takes any loss of one margin; ``values`` apply it to each output; ``quantiles`` take that of a
    quantile; ``labels`` take a binary loss for each class; ``classes`` take a joint loss, or a binary one,
    applied one-against-rest. ValueError for other combinations.
    """

    def __init__(self, loss: Any, spec: str | Outputs = "one") -> None:
        self.outputs = spec if isinstance(spec, Outputs) else Outputs.of(spec)
        self.loss = own = parts.make("loss", loss)
        self.link: FittedLink | Callable[[], FittedLink | None] | None = None
        """what margins mean, if that was learned, or gives it at the time; None: the link of the loss"""
        name, kind, is_binary = parts.part_name(type(own)), self.outputs.kind, own.DOMAIN == "binary"
        self.classifies = kind == "classes" or is_binary
        """whether labels are classes"""
        is_joint = hasattr(own, "values_slopes")
        if is_joint and kind != own.DOMAIN:
            raise ValueError(f"the loss {name} is for several classes: it needs outputs classes:LO-HI")
        if not is_joint and kind in ("classes", "labels") and not is_binary:
            raise ValueError(f"the loss {name} is not for outputs {kind}; logistic, hinge and others are")
        levels = self.outputs.levels
        if levels and (own.LEVEL is None or own != type(own)()):
            raise OneLineError(f"outputs {self.outputs.spec} say the levels: use {mention(loss='quantile')}")
        each = "one-vs-rest" if kind == "classes" else "each"
        made = parts.make("loss", "quantiles", levels=levels) if levels else None
        self.joint = own if is_joint else made or parts.make("loss", each, loss=own)
        """the loss over all outputs; for one output, `Each` of its loss"""

    @property
    def count(self) -> int:
        """Number of margins of an example; at least two of classes that are met on the way."""
        return max(self.outputs.high - self.outputs.low + 1, 2 if self.outputs.most else 1)

    def meet(self, count: int) -> None:
        """Have at least `count` classes, if these are met on the way."""
        if self.outputs.most and count > self.outputs.high:
            self.outputs = self.outputs._replace(high=count - 1)

    @property
    def domain(self) -> Domain:
        """The allowed labels."""
        kind, low, high, _, most = self.outputs
        if most:
            return domain_of(f"classes:max={most}")
        if kind == "values":
            return domain_of(f"values:{high},{self.loss.DOMAIN}")
        if kind in ("one", "quantiles"):
            return DOMAINS[self.loss.DOMAIN]
        return domain_of(f"{kind}:{low}-{high}")

    @property
    def open_domain(self) -> Domain:
        """Labels of the same form that are not checked."""
        return DOMAINS[self.outputs.kind if self.outputs.kind in ("labels", "values") else "open"]

    def calibrated(self) -> FittedLink | None:
        """What margins mean at the time, if that was learned; None for the link of the loss."""
        return self.link() if callable(self.link) else self.link

    def with_calibration(self, found: FittedLink | None) -> Objective:
        """This head with a calibration that stays."""
        made = copy(self)
        made.link = found
        return made

    @property
    def has_probabilities(self) -> bool:
        """Whether margins mean probabilities."""
        return bool(self.joint.PROBABILITY) or self.calibrated() is not None

    @property
    def is_exponential(self) -> bool:
        """Whether the mean is exp(margin), or in proportion to it."""
        link = getattr(self.loss, "link", None)
        return link is not None and math.isclose(link(2.0), math.e * link(1.0), rel_tol=1e-6)

    @property
    def is_of_two(self) -> bool:
        """Whether the model tells two classes apart."""
        return self.classifies and self.outputs.kind == "one"

    def check_two(self, *options: str) -> None:
        """ValueError for these options, which are for two classes, if there are others."""
        if options and not self.is_of_two:
            raise OneLineError(f"{mention(*options)} is for a model of two classes, which this is not")

    def check_threshold(self, threshold: float | None) -> None:
        """ValueError for a threshold of decisions that this model cannot use."""
        if threshold is None:
            return
        if not self.classifies or self.outputs.kind == "classes":
            raise ValueError("a threshold is for two classes or lists of them; this model predicts neither")
        if self.has_probabilities and not 0.0 <= threshold <= 1.0:
            raise ValueError(f"the threshold of a probability must lie in 0..1, not {threshold:g}")

    @property
    def label(self) -> str:
        """The output `label` in a message, with what it is where nothing tells."""
        return "label" if self.classifies else "label (the predicted mean or quantile)"

    def to_lines(self, predicted: F64, output: Output, words: Sequence[str] = ()) -> list[str]:
        """One line of text for each row that `respond` gave for `output`; labels may be `words`."""
        if output == "label" and words:
            return [*map(str, self.to_words(predicted, words))]
        rows = predicted[:, np.newaxis] if predicted.ndim == 1 else predicted
        if output == "label" and self.outputs.kind == "labels":
            low = self.outputs.low
            return [",".join(str(k) for k in (np.flatnonzero(row > 0) + low).tolist()) for row in rows]
        return ["\t".join(f"{value:.9g}" for value in row) for row in rows.tolist()]

    def to_words(self, predicted: Array, words: Sequence[str]) -> Array:
        """The words ``(n,)`` of the classes that `respond` gave for ``label``.

        Classes that were met on the way are whole numbers if all words are.
        """
        numbers = predicted - self.outputs.low if self.outputs.kind == "classes" else predicted > 0
        known = give_back(tuple(words)) if self.outputs.most else np.array(words, object)
        return known[numbers.astype(np.int64)]

    def names(self, words: Sequence[str] = ()) -> list[str]:
        """Names of the classes or outputs: `words`, or else their levels or numbers."""
        if self.outputs.levels:
            return [f"{one:g}" for one in self.outputs.levels]
        return [*words, *map(str, range(self.outputs.low + len(words), self.outputs.high + 1))]

    def named(self, label: float, words: Sequence[str]) -> str:
        """A label as text: the word of its class, if it has one."""
        place = int(label - self.outputs.low if self.outputs.kind == "classes" else label > 0)
        return words[place] if words and self.classifies else f"{label:.6g}"

    def output_of(self, name: str, words: Sequence[str] = ()) -> int:
        """The place of a class or output in `names`. ValueError if there is none, or only one output."""
        known = self.names(words) if self.count > 1 else []
        if name not in known:
            there = f"give one of {list_words(known)}" if known else "the model has one output"
            raise OneLineError(f"no class is called '{name}': {there}")
        return known.index(name)

    def targets(self, chunk: Chunk) -> NDArray[np.float32]:
        """Targets for the joint loss: the class ``(n, 1)``, or a number for each output ``(n, outputs)``."""
        if self.outputs.kind == "classes":
            wanted, most = chunk.labels - np.float32(self.outputs.low), self.outputs.most or self.count
            if len(wanted) and not (wanted.min() >= 0 and wanted.max() < most):
                raise ValueError(f"a label is outside {self.outputs.spec}")
            return wanted[:, np.newaxis]
        if self.outputs.kind == "one":
            return chunk.labels[:, np.newaxis]
        if self.outputs.kind == "quantiles":
            return np.repeat(chunk.labels[:, np.newaxis], self.count, axis=1)
        if chunk.targets is None or chunk.targets.shape[1] != self.count:
            raise ValueError(f"{self.outputs.spec}: every example needs {self.count} labels")
        return chunk.targets

    def truth(self, chunk: Chunk) -> F64:
        """The labels as numbers: ``(n,)``, or ``(n, outputs)`` if each output has its own."""
        each = self.outputs.kind in ("labels", "values", "quantiles")
        return np.asarray(self.targets(chunk) if each else chunk.labels, np.float64)

    def losses(self, margins: F64, chunk: Chunk) -> F64:
        """Loss of each row times its importance ``(n,)``."""
        out, weights = np.empty(len(chunk)), read_only(chunk.weights)
        if self.outputs.most and len(chunk):  # classes that only these rows have
            more = int(chunk.labels.max()) + 1 - margins.shape[1]
            margins = np.pad(margins, ((0, 0), (0, max(more, 0))), constant_values=-np.inf)
        if margins.ndim == 1:
            kernels.score.for_parts(self.loss)(self.loss, margins, read_only(chunk.labels), weights, out)
        else:
            score = outputs.score_outputs.for_parts(self.joint)
            score(self.joint, margins, read_only(self.targets(chunk)), weights, out)
        return out

    def broken(self, margins: F64) -> NDArray[np.bool_]:
        """Which rows have margins that are not finite ``(n,)``; -inf is that of a class not met."""
        each = margins[:, np.newaxis] if margins.ndim == 1 else margins
        fine = np.isfinite(each)
        may = fine | np.isneginf(each) if self.outputs.kind == "classes" else fine
        found: NDArray[np.bool_] = np.logical_not(may.all(axis=1) & fine.any(axis=1))
        return found

    def positive(self, margins: F64, threshold: float | None = None) -> NDArray[np.bool_]:
        """Which of `margins` ``(n,)`` or ``(n, outputs)`` predict the class: those more likely than not.

        Or above a threshold: of a probability, or of a margin without any.
        """
        if threshold is not None:
            return (
                self.respond(margins, "probability" if self.has_probabilities else "margin", 0.0) > threshold
            )
        found = self.calibrated()
        decided: NDArray[np.bool_] = (margins if found is None else found.log_odds(margins)) > 0
        return decided

    def respond(self, margins: F64, output: Output, lowest_label: float) -> F64:
        """Convert margins ``(n,)`` or ``(n, outputs)`` to `output`.

        Quantiles are sorted, so that they never cross (Chernozhukov, Fernandez-Val and Galichon, Quantile and
        probability curves without crossing, Econometrica 78 (2010): their loss is not larger then).

        ValueError for an unknown output, or for probabilities if the loss has none.
        """
        if self.outputs.kind == "quantiles":
            margins = np.sort(margins, axis=1)
        if self.outputs.most:
            margins = margins[:, : self.outputs.high + 1]
        if output == "margin":
            return margins
        if output not in get_args(Output):
            raise ValueError(f"output must be margin, probability, {self.label}, not {output!r}")
        if output == "probability" and (found := self.calibrated()) is not None:
            return _of_log_odds(self.outputs).respond(found.log_odds(margins), output, lowest_label)
        if output == "probability" and not self.joint.PROBABILITY:
            raise ValueError(f"{parts.no_probabilities(self.loss)}: use margin or {self.label}")
        if output == "label" and self.outputs.kind == "classes":
            classes: F64 = np.argmax(margins, axis=1) + float(self.outputs.low)
            return classes
        if output == "label" and self.classifies:
            return np.where(self.positive(margins), 1.0, lowest_label)
        out = np.empty_like(margins)
        if margins.ndim == 1:
            kernels.respond.for_parts(self.loss)(self.loss, margins, out)
        else:
            outputs.respond_outputs.for_parts(self.joint)(self.joint, margins, out)
        return out

    def probabilities(self, margins: F64) -> F64:
        """Probabilities ``(n, classes)``: of the negative and positive class, or of each class.

        One-against-rest probabilities are divided by their sum; those of labels are independent ``(n,
        labels)``. ValueError for a loss without probabilities.
        """
        found = self.respond(margins, "probability", 0.0)
        if found.ndim == 1:
            return np.column_stack([1.0 - found, found])
        if self.outputs.kind == "labels":
            return found
        total = found.sum(axis=1, keepdims=True)
        shared: F64 = np.divide(found, total, out=np.full_like(found, 1 / found.shape[1]), where=total > 0)
        return shared

    def last_prediction(self, first: float, heaviest: float, lowest_label: float) -> float:
        """The table's prediction for the last example, given its first margin and its heaviest output.

        It is the heaviest class, or what the first output says: a probability, a number, or the margin of a
        class without probabilities.
        """
        if self.outputs.kind in ("classes", "labels"):
            return heaviest + self.outputs.low
        without: Output = "margin" if self.classifies else "label"
        shown = "probability" if self.has_probabilities else without
        margins = np.full((1, self.count), first) if self.count > 1 else np.array([first])
        return float(self.respond(margins, shown, lowest_label).flat[0])


@lru_cache
def _of_log_odds(outputs: Outputs) -> Objective:
    """The head whose margins are log odds."""
    return Objective("softmax" if outputs.kind == "classes" else "logistic", outputs)


def default_outputs(loss: object, spec: str | None) -> str:
    """The outputs asked for, or those of a loss (None: logistic): classes as they come if joint, else one."""
    if spec is not None:
        return spec
    part = parts.make("loss", "logistic" if loss is None else loss)
    return "classes" if hasattr(part, "values_slopes") else "one"


def classes_of(source: Source) -> str:
    """``classes:LO-HI`` from the lowest to the highest label of a source; ValueError for fewer than two."""
    low, high = np.inf, -np.inf
    for chunk in source.chunks():
        if len(chunk):
            low, high = min(low, float(chunk.labels.min())), max(high, float(chunk.labels.max()))
    if not low < high:
        raise ValueError("the labels have fewer than two classes")
    return f"classes:{int(low)}-{int(high)}"


def figures_of(head: Objective) -> dict[str, float] | None:
    """What a calibrated model has learned that margins mean; None if the link of its loss was kept."""
    found = head.calibrated()
    if found is None:
        return None
    return found._asdict() if head.count == 1 else {"temperature": 1 / found.slope}


def in_words(figures: dict[str, float] | None) -> str:
    """The same as text.

    >>> in_words({"slope": 2.0, "intercept": -1.0})
    '1 / (1 + exp(-(2 m - 1))) for a margin m'
    """
    if figures is None:
        return "that of the loss, as calibration hardly lowered the log loss"
    if "temperature" in figures:
        return f"softmax(m / {figures['temperature']:.6g}) for the margins m of the classes"
    sign, size = "-" if figures["intercept"] < 0 else "+", abs(figures["intercept"])
    return f"1 / (1 + exp(-({figures['slope']:.6g} m {sign} {size:.6g}))) for a margin m"


def check_calibrated(head: Objective, average: bool, corrected: bool) -> None:
    """ValueError for a model that cannot be calibrated; `corrected`: its intercepts are, for a sample."""
    if not head.classifies or head.outputs.kind not in ("one", "classes"):
        raise OneLineError(f"{mention(calibrate=True)} is for classes of which each row has one")
    needless = mention("average") if average else ""
    if corrected and head.count > 1:
        needless = f"correct in {mention('sample')}"
    if needless:
        raise OneLineError(f"{mention(calibrate=True)} does not work with {needless}: leave one of them out")
