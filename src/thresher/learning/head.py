"""Head: what margins mean. A loss and the outputs it is summed over; targets, responses, losses."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.chunk import Chunk
from thresher.data.labels import domain_of
from thresher.engine import kernels, outputs

F64 = NDArray[np.float64]
Output = Literal["margin", "probability", "label"]
OUTPUTS: tuple[Output, ...] = ("margin", "probability", "label")


class Outputs(NamedTuple):
    """What a model predicts: ``one`` number, one of ``classes`` low to high, ``values`` of high outputs."""

    kind: Literal["one", "classes", "values"] = "one"
    low: int = 0
    high: int = 0

    @classmethod
    def of(cls, spec: str) -> Outputs:
        """From ``one``, ``classes:LO-HI``, ``classes:K`` (1 to K) or ``values:K``; ValueError otherwise."""
        if spec == "one":
            return cls()
        found = re.fullmatch(r"(classes|values):(?:(-?\d+)-)?(-?\d+)", spec)
        if not found or (found[1] == "values" and found[2]):
            raise ValueError(
                f"no outputs are called {spec!r}; known: one, classes:LO-HI, classes:K, values:K"
            )
        low, high = int(found[2] or 1), int(found[3])
        if found[1] == "values":
            if not 1 <= high <= 1 << 16:
                raise ValueError(f"values:{high}: give at least 1 and at most {1 << 16}")
            return cls("values", 1, high)
        domain_of(f"classes:{low}-{high}")
        return cls("classes", low, high)

    @property
    def spec(self) -> str:
        """What `of` makes it of again."""
        return {"one": "one", "classes": f"classes:{self.low}-{self.high}", "values": f"values:{self.high}"}[
            self.kind
        ]

    @property
    def number(self) -> int:
        """How many margins an example has."""
        return self.high - self.low + 1


class Head:
    """A loss over outputs.

    One output takes any loss of one margin; ``values`` the same for each output; ``classes`` a joint
    loss, or a binary one, which then tells each class from the rest. ValueError for other pairs.
    """

    def __init__(self, loss: Any, spec: str | Outputs = "one") -> None:
        self.outputs = Outputs.of(spec) if isinstance(spec, str) else spec
        self.loss = parts.make("loss", loss)
        self.joint = self._joint()

    def _joint(self) -> Any:
        """The loss of all outputs; `Each` of the loss for one."""
        name, kind = parts.part_name(type(self.loss)), self.outputs.kind
        if hasattr(self.loss, "values_slopes"):
            if kind != self.loss.DOMAIN:
                raise ValueError(f"the loss {name} is for many outputs: say which by outputs classes:LO-HI")
            return self.loss
        if kind == "classes":
            if self.loss.DOMAIN != "binary":
                raise ValueError(
                    f"the loss {name} cannot tell classes apart; softmax, crammer-singer or logistic can"
                )
            return parts.make("loss", "one-vs-rest", loss=self.loss)
        return parts.make("loss", "each", loss=self.loss)

    @property
    def count(self) -> int:
        """How many margins an example has."""
        return self.outputs.number

    @property
    def domain(self) -> str:
        """The domain of labels, as readers know it."""
        if self.outputs.kind == "classes":
            return self.outputs.spec
        return str(self.loss.DOMAIN)

    @property
    def classifies(self) -> bool:
        """Whether labels are classes."""
        return self.outputs.kind == "classes" or bool(self.loss.DOMAIN == "binary")

    def targets(self, chunk: Chunk) -> NDArray[np.float32]:
        """What the joint loss reads: numbers of outputs ``(n, 1)`` or a number for each ``(n, outputs)``."""
        if self.outputs.kind == "classes":
            wanted = chunk.labels - np.float32(self.outputs.low)
            if len(wanted) and not (wanted.min() >= 0 and wanted.max() < self.count):
                raise ValueError(f"a label is no class of {self.outputs.spec}")
            return wanted[:, np.newaxis]
        if self.outputs.kind == "one":
            return chunk.labels[:, np.newaxis]
        if chunk.targets is None or chunk.targets.shape[1] != self.count:
            raise ValueError(f"{self.outputs.spec}: every example needs {self.count} labels")
        return chunk.targets

    def losses(self, margins: F64, chunk: Chunk) -> F64:
        """Loss of each row ``(n,)`` times its importance."""
        out, weights = np.empty(len(chunk)), read_only(chunk.weights)
        if margins.ndim == 1:
            kernels.score.for_parts(self.loss)(self.loss, margins, read_only(chunk.labels), weights, out)
        else:
            score = outputs.score_outputs.for_parts(self.joint)
            score(self.joint, margins, read_only(self.targets(chunk)), weights, out)
        return out

    def respond(self, margins: F64, output: Output, lowest_label: float) -> F64:
        """Margins ``(n,)`` or ``(n, outputs)`` as `output` wants them; ValueError without probabilities."""
        if output == "margin":
            return margins
        if output == "probability" and not self.joint.PROBABILITY:
            name = parts.part_name(type(self.loss))
            raise ValueError(f"the loss {name} gives no probabilities; logistic and softmax do")
        if output == "label" and self.outputs.kind == "classes":
            classes: F64 = np.argmax(margins, axis=1) + float(self.outputs.low)
            return classes
        if output == "label" and self.classifies:
            return np.where(margins > 0, 1.0, lowest_label)
        out = np.empty_like(margins)
        if margins.ndim == 1:
            kernels.respond.for_parts(self.loss)(self.loss, margins, out)
        else:
            outputs.respond_outputs.for_parts(self.joint)(self.joint, margins, out)
        return out

    def last_prediction(self, noted: float, lowest_label: float) -> float:
        """What the table shows of the last example, given what the loop noted of it."""
        if self.outputs.kind == "classes":
            return noted + self.outputs.low
        if self.outputs.kind == "values":
            return noted
        shown: Output = "probability" if self.joint.PROBABILITY else "margin"
        return float(self.respond(np.array([noted]), shown, lowest_label)[0])


def leaves_classes_open(loss: Any, spec: str | None) -> bool:
    """Whether classes are to be found in the data: ``classes``, or nothing said of a joint loss."""
    if spec is not None:
        return spec == "classes"
    return hasattr(parts.make("loss", loss), "values_slopes")


def classes_of(source: Any) -> str:
    """``classes:LO-HI`` from the least and the largest label of the source; ValueError for fewer than two."""
    low, high = np.inf, -np.inf
    for chunk in source.chunks():
        if len(chunk):
            low, high = min(low, float(chunk.labels.min())), max(high, float(chunk.labels.max()))
    if not low < high:
        raise ValueError("the labels name fewer than two classes")
    return f"classes:{int(low)}-{int(high)}"


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written through: one compiled kernel serves both kinds of array."""
    view = array.view()
    view.flags.writeable = False
    return view
