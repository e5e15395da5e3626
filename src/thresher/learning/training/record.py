"""Record: how a model was trained, beyond what its recipe says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from thresher.data.files.topics import Extent
from thresher.data.layout import as_option
from thresher.data.stored import said
from thresher.learning.files.choice import BY, LOSS, by_option
from thresher.learning.inspection.effects import Effects
from thresher.options.messages import mention

COUNTS = ("lines", "examples", "blank", "skipped", "merged")
"""The fields that are counts of lines, as a `Report` has them"""


class Difference(NamedTuple):
    """An option that was otherwise in the run that made something, which another run is to go on with."""

    option: str
    then: Any
    """its value there; None, or empty: it was not given"""
    given: tuple[str, ...] = ()
    """the options that say otherwise now; none: one is missing"""

    def told(self, whose: str) -> str:
        """The message; `whose`: what was made."""
        remedy = f"give {mention(self.option)} again"
        if self.given:
            remedy = f"leave {' and '.join(map(mention, self.given))} out"
        made = f"with {by_option(self.then)}" if self.option == BY else as_option(self.option, self.then)
        return f"{whose} was made {made}; {remedy}"


@dataclass(frozen=True)
class Optimum:
    """How good weights are that were solved in memory (`training.wide`), of all outputs together."""

    deviations: float
    """the penalty in standard deviations of noise"""
    objective: float
    """the sum of losses and penalties"""
    certificate: float
    """the largest violation of the conditions of optimality, over the largest gradient at first"""
    rounds: int
    """how often the noise was measured"""


@dataclass(frozen=True)
class Record:
    """How a model was trained, and on how much data. It is kept in the model file.

    The record does not depend on time, speed, file names, or on whether training was stopped and resumed: the
    same training leaves the same record. Early stopping is recorded only for rules whose last passes differ:
    with others it leaves the same model as training for `passes` passes. Nor is a hold-out file, because it
    changes no weight.

    >>> Record(lines=9, examples=8, skipped=1).after(Record(lines=3, skipped=3)).skipped
    4
    """

    UNSAID: ClassVar = ("topics", "effects", "varied")

    passes: int = 1
    """the number of passes that produced the weights"""
    order: str = "as-is"
    holdout: str = ""
    """which rows were held out: ``every-10th``; empty: none"""
    where: str = ""
    """the filter that selected rows; empty: all rows"""
    lines: int = 0
    """lines of the data in one pass; each is an example, blank or skipped"""
    examples: int = 0
    blank: int = 0
    skipped: int = 0
    merged: int = 0
    """examples with repeated or unsorted ids"""
    warnings: tuple[str, ...] = ()
    """messages about trouble with the data or the training"""
    planned: int = 0
    """the number of passes that were to be made, if Ctrl-C ended training in pass `passes`, or if that pass
    was the best and the rule depends on how many there are; else 0"""
    patience: int = 0
    """the passes without a better hold-out loss for which training waited; 0 unless `planned`, and if Ctrl-C
    ended it"""
    judge: str = LOSS
    """the figure of the hold-out that told which pass was the best, if there was `patience`"""
    continued: int = 0
    """how often training went on with other data; counts of lines are sums, all else is of the last data"""
    varied: bool = False
    """whether the models by value made passes of their own, of which `passes` is the most"""
    topics: tuple[Extent, ...] = ()
    """what was read of topics last, in this training or before"""
    solved: Optimum | None = None
    """of a model that was solved in memory after its pass"""
    effects: Effects = ()
    """what columns, namespaces and products do to the margin: see `inspection.effects`"""

    def after(self, earlier: Record | None) -> Record:
        """The record of a model that goes on from one with an `earlier` record."""
        if earlier is None:
            return self
        counts = {name: getattr(earlier, name) + getattr(self, name) for name in COUNTS}
        return replace(self, continued=earlier.continued + 1, **counts).with_topics_of(earlier)

    def with_topics_of(self, earlier: Record) -> Record:
        """With what an `earlier` record says was read of other topics."""
        names, ids = {one.name for one in self.topics}, {one.id for one in self.topics if one.id}
        others = [one for one in earlier.topics if one.name not in names and one.id not in ids]
        return replace(self, topics=(*others, *self.topics))

    def as_dict(self) -> dict[str, Any]:
        """The record as stored in the header."""
        return said(self) | {"warnings": list(self.warnings)}

    def of_pass(self, number: int) -> Record:
        """The record of the model of this pass."""
        if number == self.planned:
            return replace(self, passes=number, planned=0, patience=0, judge=LOSS)
        return replace(self, passes=number)


def solution_in_words(solved: Mapping[str, float]) -> str:
    """How a model was solved in memory, given the fields of its `Optimum`.

    >>> solution_in_words({"deviations": 2.0, "objective": 670.7, "certificate": 4.8e-7, "rounds": 7})
    'in memory, with 2 standard deviations of noise (measured 7 times): objective 670.7, certificate 4.8e-07'
    """
    how = f"with {solved['deviations']:g} standard deviations of noise (measured {solved['rounds']} times)"
    return f"in memory, {how}: objective {solved['objective']:.6g}, certificate {solved['certificate']:.2g}"


def passes_made(record: dict[str, Any]) -> int | str:
    """The passes of a record in a header, or where Ctrl-C ended training, or which of them was the best.

    >>> passes_made({"passes": 3, "planned": 0, "patience": 0, "solved": None})
    3
    >>> passes_made({"passes": 3, "planned": 40, "patience": 2, "solved": None})
    'pass 3 of 40, the best on the hold-out'
    """
    made: int = record["passes"]
    if record["solved"]:
        return f"{made}, then {solution_in_words(record['solved'])}"
    if record["patience"]:
        return f"pass {made} of {record['planned']}, the best on the hold-out"
    return f"stopped in pass {made} of {record['planned']}" if record["planned"] else made
