"""Tests of rules and losses of your own: the laws that hold for every built-in one.

``check_rule(MyRule())`` in a test is all that is needed; docs/own.md says more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from thresher import parts
from thresher.learning.model.model import Model
from thresher.learning.model.recipe import Spec
from thresher.testing import laws
from thresher.testing.laws import (
    NOT_COMPILED,
    SMALL_TABLES,
    Examples,
    LawError,
    Oracle,
    read_weights,
    set_to,
    stream,
)

__all__ = ["LawError", "check_loss", "check_rule"]

_ROWS, _FEATURES = 60, 40
_PLAIN: dict[str, Any] = {"dtype": "float32", "centre": False}
_NEAR = 1e-3
"""Compiled code in float32 and plain Python may differ by rounding"""


def check_rule(
    rule: Spec, *, oracle: Oracle | None = None, losses: Spec | Sequence[Spec] = ("logistic", "squared")
) -> None:
    """Try a rule on random examples: raise `LawError`, which says what is broken, or return.

    How the stream is cut, how rows are stored, and whether the model is looked at must not change a bit of
    it; rows that `idle` frees must be as good as new, averaged weights be the mean of all (if the rule
    defines `DRIFTS`), and compiled code must agree with plain Python. The first run compiles the rule, which
    takes some seconds.

    Args:
        rule: a part, such as ``MyRule(l1=0.1)``, or a SPEC. Its penalties should be strong enough to matter
            on 60 rows, and so small that weights remain.
        oracle: ``oracle(rule, loss, X, y, importance)`` returns the weights after learning the rows of X
            ``(n, features)``, in float64 and without an intercept, from the definition of the rule: every
            step changes every weight. ``loss.value_slope(margin, y)`` has the slope. The rule must give the
            same weights, but for rounding.
        losses: what to try the rule with, one or several.

    Raises `LawError`, an AssertionError; what `part` and the compiler raise about a class or a method;
    IndexError for a wrong index.

    >>> check_rule("ftrl:alpha=0.3,l1=0.1")
    """
    made = parts.make("rule", rule)
    one = isinstance(losses, str) or hasattr(losses, "value_slope")
    tried: list[Any] = [losses] if one else [*losses]
    if not tried:
        raise ValueError("losses is empty: a rule is tried with at least one loss")
    with _naming(parts.spec_of(made)):
        for loss in tried:
            make, data = partial(Model, made, loss, **_PLAIN), _examples(loss)
            with set_to(NOT_COMPILED), np.errstate(all="ignore"):
                if oracle is not None:
                    laws.dense(make, _examples(loss, 64, 12, density=0.3), oracle)
                laws.vanishing_values(make)
                laws.idle_rows(laws.learned(make, data.chunk, dtype="float64"))
                laws.stores(partial(make, dtype="float64"), data.chunk, _FEATURES)
                with set_to(SMALL_TABLES):
                    laws.cutting(make, data.chunk)
                    laws.cutting(partial(make, batch=7), data.chunk)
                if made.DRIFTS is not None:
                    laws.averaging(make, data)
        _check_compiled(made, tried[0])


def check_loss(loss: Spec) -> None:
    """Try a loss of one output: raise `LawError`, which says what is broken, or return.

    The slope must be the derivative of the loss, or lie between the slopes on both sides of a kink; the loss
    must not jump; with `SHIFTS`, margin and label can be shifted together, with `SCALES`, the margin by c
    and the label by a factor of exp(c); labels of 0 and -1 must mean the same if there are two classes; and
    compiled code must agree with plain Python.

    Args:
        loss: a part, such as ``MyLoss(scale=2.0)``, or a SPEC.

    Raises `LawError`, an AssertionError; what `part` and the compiler raise about a class or a method;
    TypeError for a loss of several outputs.

    >>> check_loss("huber:delta=0.5")
    """
    made = parts.make("loss", loss)
    if not hasattr(made, "value_slope"):
        raise TypeError(f"check_loss tries losses of one output; {parts.spec_of(made)} has several")
    with _naming(parts.spec_of(made)):
        for margin in np.linspace(-8.03, 8.01, 401):
            for y in laws.LABELS[made.DOMAIN]:
                laws.slope(made, float(margin), y)
                laws.without_jumps(made, float(margin), y, 0.05)
                laws.shifted(made, float(margin), y)
        _check_compiled(parts.make("rule", "ftrl:alpha=0.3,l1=0"), made)


def _examples(loss: Spec, rows: int = _ROWS, features: int = _FEATURES, **more: Any) -> Examples:
    return stream(11, rows, features, parts.make("loss", loss).DOMAIN, **{"density": 0.1, **more})


def _check_compiled(rule: Any, loss: Spec) -> None:
    make, data = partial(Model, rule, loss, **_PLAIN), _examples(loss)
    with set_to(NOT_COMPILED), np.errstate(all="ignore"):
        plain = laws.learned(make, data.chunk)
    if not plain.nonzero:
        raise LawError(f"nothing is learned from {_ROWS} rows: try larger steps or smaller penalties")
    with set_to(SMALL_TABLES):
        compiled = laws.cutting(make, data.chunk)
        laws.looking(make, data.chunk)
    found, expected = (read_weights(model, _FEATURES) for model in (compiled, plain))
    laws.require_near("compiled code is plain Python: compiled", found, expected, _NEAR)


@contextmanager
def _naming(spec: str) -> Iterator[None]:
    try:
        yield
    except LawError as error:
        raise LawError(f"{spec}: {error}") from error
