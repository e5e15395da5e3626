"""Sampling: rows of common classes are left out by chance while a model learns, and what makes up for them.

A model of clicks learns little from its ten-thousandth row without one. If a share s of the rows of a class
is learned, each with importance 1 / s, sums over the sample are expected to be those over all rows, and so
are gradients and progressive losses (Horvitz and Thompson 1952). Or they are learned as they are, and what
the margin of class k is too large by is subtracted at the end: P(k | x, sampled) is proportional to
s_k P(k | x), so its log odds differ by log s_k, a constant (King and Zeng, Logistic Regression in Rare Events
Data, Political Analysis 9 (2001), section 4.1; Fithian and Hastie, Local Case-Control Sampling, Annals of
Statistics 42 (2014), section 2.2). The constant is no state: it is added where intercepts are read, so that
the stream can be continued. Data that were sampled before they came are corrected in the same way.

Rows are drawn where a model prepares them, by hashes of their numbers. So hold-outs and folds see all rows,
servers, lanes and estimators sample as `train` does, and every pass draws other rows. Whatever reads and
numbers rows counts all of them as given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher import parts
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError, OneLineError
from thresher.data.labels import list_words
from thresher.data.layout import SettledLayout
from thresher.engine.sound import MOST_STEPS, State, Tensors, check_tensor, require
from thresher.learning.model.objective import F64, Objective
from thresher.learning.training.shares import SAMPLE, bits_of, unit
from thresher.options.messages import mention

_CORRECT, _BEFORE = ",correct", ",before"
_SHARE = re.compile(r"=([^=,]+)(?:,|$)")
_FORM = "LABEL=SHARE, such as 0=0.1, or 0=0.1,correct or 0=0.1,before"
_TWO = "0 or -1, and 1"
_NUMBERS = {-1.0: 0, 0.0: 0, 1.0: 1}
"""The places of the labels of two classes, if these are numbers"""
OFFERED, LEFT_OUT, LAST_LABEL = range(3)


class Sample(NamedTuple):
    """Which share of the rows of some classes is learned.

    >>> Sample.of("0=10%,correct").spec
    '0=0.1,correct'
    """

    shares: dict[str, float]
    """by label, as the data write it"""
    correct: bool = False
    """whether intercepts are corrected, instead of importances"""
    before: bool = False
    """whether the data are such a sample, of which all rows are learned; their intercepts are corrected"""

    @classmethod
    def of(cls, wanted: object) -> Sample:
        """From ``LABEL=SHARE,...``, perhaps with ``,correct`` or ``,before``, or a mapping; ValueError."""
        if isinstance(wanted, Mapping):
            wanted = ",".join(f"{text_of(label)}={share}" for label, share in wanted.items())
        text = wanted if isinstance(wanted, str) else ""
        how = next((one for one in (_CORRECT, _BEFORE) if text.endswith(one)), "")
        plain = text.removesuffix(how)
        *pairs, rest = _SHARE.split(plain)
        if not pairs or rest or not all(pairs) or plain.endswith(","):
            raise OneLineError(f"{mention('sample')} must be {_FORM}, not {wanted!r}")
        shares = dict[str, float]()
        for label, share in zip(map(str.strip, pairs[::2]), map(str.strip, pairs[1::2]), strict=True):
            number = _number(share.removesuffix("%")) or 0.0
            shares[label] = number / 100.0 if share.endswith("%") else number
        if not all(0 < share < 1 for share in shares.values()) or len(shares) < len(pairs) // 2:
            raise OneLineError(f"{mention('sample')} {wanted}: give each label once, with a share in (0, 1)")
        return cls(shares, bool(how), how == _BEFORE)

    @property
    def spec(self) -> str:
        """The text that `of` accepts."""
        listed = ",".join(f"{label}={share!r}" for label, share in self.shares.items())
        return listed + (_BEFORE if self.before else _CORRECT * self.correct)

    def of_classes(self, head: Objective, words: Sequence[str] = (), known: bool = False) -> F64 | None:
        """The share of each class; None as long as labels may be words, unless it is `known` which.

        Of two classes, ``(2,)``, the negative one is the first. Classes that come later have their share when
        they come. ValueError for other labels, for models without classes, and for a correction that the loss
        does not have.
        """
        kind = head.outputs.kind
        with_outputs = "" if kind == "one" else f" with outputs {kind}"
        meant = f"the loss {parts.part_name(type(head.loss))}{with_outputs}"
        if not head.classifies or kind not in ("one", "classes"):
            raise OneLineError(f"{mention('sample')} is for classes, not for {meant}")
        if self.correct and not can_correct(head):
            instead = f"leave {_CORRECT[1:]} out of {mention('sample')}"
            if self.before:
                instead = f"give importances of 1/SHARE, {mention('weight')}, instead of {mention('sample')}"
            raise OneLineError(f"margins of {meant} are no log odds, and cannot be corrected: {instead}")
        count = head.outputs.most or max(2, head.count)
        numbered = {float(k + head.outputs.low): k for k in range(count)} if head.count > 1 else _NUMBERS
        places: dict[Any, int] = {word: k for k, word in enumerate(words)} or numbered
        shares, said = np.ones(count), set[int]()
        for label, share in self.shares.items():
            if head.outputs.most and label not in words:
                continue
            number = _number(label)
            k = places.get(label if words else number)
            may_be_word = not words and (number is None or head.count == 1)
            if k is None and may_be_word and not known:
                return None
            if k is None or k in said:
                every = list_words(words) if words else head.outputs.spec if head.count > 1 else _TWO
                what = f"is {'none of the classes' if k is None else 'a class given twice'} ({every})"
                if may_be_word and number is None:
                    what = "is a word, those of the data are numbers"
                raise DataError(f"{mention('sample')}: the label {label} {what}")
            said.add(k)
            shares[k] = share
        return shares


def can_correct(head: Objective) -> bool:
    """Whether margins are log odds, of which a constant can make up for a sample."""
    joint = hasattr(head.loss, "values_slopes")
    return bool(head.loss.LOG_ODDS) and joint == (head.outputs.kind == "classes")


def text_of(label: object) -> str:
    """A label as a text."""
    return f"{label:.9g}" if isinstance(label, float | np.floating) else str(label)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class Sampler:
    """Draws the rows that are learned, and counts those that are given and left out."""

    def __init__(self, sample: Sample, head: Objective, seed: int) -> None:
        self._sample, self._head, self._seed = sample, head, seed
        self._shares = sample.of_classes(head)
        self.noted = np.zeros(3)
        """how many rows were offered, and left out, and the label of the last one that was learned"""

    def bind(self, layout: SettledLayout | None) -> None:
        """Set the words that labels are. `DataError` for another one in the sample."""
        if layout is not None:
            self._shares = self._sample.of_classes(self._head, layout.classes, known=True)

    @property
    def correction(self) -> F64 | None:
        """What is added to the intercepts, of all classes that may come; None if they are not corrected."""
        if not self._sample.correct or self._shares is None:
            return None
        log = np.log(self._shares)
        return log[:1] - log[1:] if self._head.count == 1 else -log

    def transform(self, chunk: Chunk, before: int, again: bool) -> Chunk:
        """The rows of the next `chunk` to learn, with their importances: others in each pass."""
        if self._shares is None:
            self._shares = self._sample.of_classes(self._head, known=True)
        assert self._shares is not None
        low = self._head.outputs.low
        classes = chunk.labels > 0 if self._head.count == 1 else chunk.labels - np.float32(low)
        shares = self._shares[classes.astype(np.int64)]
        first = int(self.noted[OFFERED])
        numbers = np.arange(first, first + len(chunk), dtype=np.uint64)
        kept: NDArray[np.bool_] = unit(bits_of(numbers, self._seed, SAMPLE)) < shares
        kept |= self._sample.before
        rows = chunk if kept.all() else chunk.take(kept)
        self.noted[:LAST_LABEL] += len(chunk), len(chunk) - len(rows)
        if len(rows):
            self.noted[LAST_LABEL] = rows.labels[-1]
        if self._sample.correct:
            return rows
        return replace(rows, weights=(rows.weights / shares[kept]).astype(np.float32))

    def state(self) -> State:
        """The state that counting continues from."""
        return {"sample.rows": self.noted.copy()}

    def check(self, state: Tensors) -> None:
        """StateError for impossible counts."""
        offered, left_out, _ = check_tensor(state, "sample.rows", (3,), np.float64)
        whole = offered == np.floor(offered) and left_out == np.floor(left_out)
        sound = whole and 0 <= left_out <= offered <= MOST_STEPS
        require(sound, "sample.rows", "numbers of rows must be whole, and no more left out than given")

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.noted[:] = state["sample.rows"]
