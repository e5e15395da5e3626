"""The classes: given by the user, or found by a first look at the data."""

from __future__ import annotations

from typing import Any, NamedTuple

from thresher import parts
from thresher.data.class_words import listed_words
from thresher.data.first_look import Opener, with_words
from thresher.data.labels import DOMAINS
from thresher.learning.head import classes_of, leaves_classes_open


class Found(NamedTuple):
    """The resolved layout, loss and outputs."""

    layout: Any
    """how to read the data, including the label words"""
    loss: Any
    outputs: str
    note: str = ""
    """one line about classes that were found rather than given"""


def look(opened: Opener | None, layout: Any, loss: Any, outputs: str | None, words: bool = True) -> Found:
    """Find what the options leave open about classes, reading the data with `opened`; None if read-once.

    `loss` and `outputs` are None if not given; `words` says whether labels may be words.
    Raises ValueError, `DataError`.
    """
    known = layout.classes if layout is not None else ()
    if words and not known and opened is not None and _may_have_classes(loss, outputs):
        layout = with_words(opened, layout)
    classes = layout.classes if layout is not None else ()
    if classes:
        found = Found(layout, *_of_words(classes, loss, outputs))
        return found if known else found._replace(note=_note(classes, found))
    loss = "logistic" if loss is None else loss
    if not leaves_classes_open(loss, outputs):
        return Found(layout, loss, outputs or "one")
    if opened is None:
        raise ValueError(
            "the data can be read only once: give the classes, --outputs classes:LO-HI or --classes A,B,..."
        )
    return Found(layout, loss, classes_of(opened(layout, DOMAINS["whole"])))


def _may_have_classes(loss: Any, outputs: str | None) -> bool:
    """Whether a label may be one of several classes, or of two."""
    if not isinstance(outputs, str | None):
        raise ValueError(f"outputs must be a text such as 'classes', not {outputs!r}")
    part = parts.make("loss", "logistic" if loss is None else loss)
    one = outputs is None or outputs == "one" or outputs.startswith("classes")
    return one and (hasattr(part, "values_slopes") or part.DOMAIN == "binary")


def _of_words(words: tuple[str, ...], loss: Any, outputs: str | None) -> tuple[Any, str]:
    """Loss and outputs for labels that are words; ValueError if the given ones do not fit them."""
    count = len(words)
    if not _may_have_classes(loss, outputs):
        raise ValueError(
            f"labels are words ({listed_words(words)}), which are classes: leave loss and outputs out"
        )
    joint = loss is not None and hasattr(parts.make("loss", loss), "values_slopes")
    several = f"classes:1-{count}"
    if outputs == "classes" or (outputs is None and joint):
        return loss or "logistic", several
    if outputs is None and loss is None and count > 2:
        return "softmax", several
    if outputs in (None, "one") and count > 2:
        given = f"loss {parts.part_name(type(parts.make('loss', loss)))}" if loss else "outputs one"
        raise ValueError(
            f"labels are {count:,} words ({listed_words(words)}), but {given} is for two:"
            f" leave loss and outputs out for softmax, or add outputs classes"
        )
    return loss or "logistic", outputs or "one"


def _note(words: tuple[str, ...], found: Found) -> str:
    if found.outputs == "one":
        return f"labels are words: '{words[1]}' is the positive class, '{words[0]}' the negative one"
    chosen = f"--outputs {found.outputs} --loss {found.loss}"
    return f"labels are {len(words):,} words ({listed_words(words)}): {chosen}"
