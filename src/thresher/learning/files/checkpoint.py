"""Checkpoints: a model together with the state of its training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from thresher.data.chunk import Chunk, Place
from thresher.data.errors import BadLine
from thresher.data.files.content import Content
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.engine.sound import StateError, Tensors, beneath, under
from thresher.learning.diagnostics.stream_statistics import Seen
from thresher.learning.files import model_file, schema
from thresher.learning.files.schema import Form, Key, Positive, check_all, form_of, kinds_of
from thresher.learning.model.model import Model
from thresher.learning.training.holdout import Best, Holdout
from thresher.learning.training.learner import Recent, Tally
from thresher.learning.training.progress import Row
from thresher.learning.training.record import Record
from thresher.learning.training.shares import as_text, is_text
from thresher.options.messages import mention


class DataOrigin(NamedTuple):
    """Which data are read, and which of their rows."""

    names: str = ""
    size: int | None = 0
    """in bytes; None if unknown"""
    where: str = ""

    @classmethod
    def of(cls, source: Source) -> DataOrigin:
        """The origin of a source."""
        return cls(", ".join(source.names), source.total_bytes, source.where)


class Held(NamedTuple):
    """The hold-out: a share of the data, or separate data."""

    share: str
    """as `as_text` writes it"""
    given: DataOrigin

    @classmethod
    def of(cls, holdout: Holdout) -> Held:
        """The description of a hold-out."""
        return cls(
            as_text(holdout.every), DataOrigin() if holdout.given is None else DataOrigin.of(holdout.given)
        )

    def __str__(self) -> str:
        """A description for messages."""
        return self.given.names or self.share or "none"


class Sliced(NamedTuple):
    """What was counted by value of some columns."""

    columns: list[str]
    state: Tensors


def _is_held(given: Any) -> bool:
    whole = isinstance(given, list) and len(given) == 4
    return whole and is_text(given[0]) and form_of(DataOrigin).fits(given[1:])


def _is_table(given: Any) -> bool:
    return isinstance(given, list) and all(form_of(Row).fits(row) for row in given)


def _report(given: dict[str, Any]) -> dict[str, Any]:
    """Line counts in a header, once they have been checked."""
    check_all(given, {**kinds_of(Report), "first_bad": list}, "report")
    for bad in given["first_bad"]:
        check_all(bad, {**kinds_of(BadLine), "raw": str}, "first_bad")
    Report.from_dict(given)
    return given


BEST: schema.Fields = {"number": Positive, "figures": dict}
"""Fields of the best pass"""


def _best(given: dict[str, Any] | None) -> Best | None:
    """The best pass in a header, without its state."""
    if given is None:
        return None
    check_all(given, BEST, "best")
    figures = given["figures"]
    schema.check(figures, {**dict.fromkeys(figures, float | None), "loss": float}, "figures")
    return Best(**given, state={})


_CONTENTS = Form(
    "hashes and sizes", form_of(list[tuple[Key, Key]]).fits, lambda v: [Content(*one) for one in v]
)
_SLICED = form_of(list[str] | None)._replace(made=lambda v: None if v is None else Sliced(v, {}))
_HELD = Form("what is held out", _is_held, lambda v: Held(v[0], DataOrigin(*v[1:])))
_TABLE = Form("rows of numbers", _is_table, lambda v: [Row(*one) for one in v])


@dataclass(frozen=True)
class Position:
    """A position between two examples of the stream."""

    number: Positive = 1
    """the pass, from 1"""
    place: Place | None = None
    """where the current chunk starts; None: at the beginning"""
    learned: int = 0
    """number of rows of that chunk learned"""
    report: Annotated[dict[str, Any], form_of(dict)._replace(made=_report)] = field(
        default_factory=lambda: Report().as_dict()
    )
    """line counts of the source before that chunk"""

    def learned_to(self, row: int) -> Position:
        """The position after `row` rows of the chunk."""
        return replace(self, learned=row)

    def moved_past(self, chunk: Chunk, report: Report) -> Position:
        """The position at the end of the chunk."""
        return Position(self.number, chunk.after, 0, report.as_dict())

    def next_pass(self) -> Position:
        """The position at the start of the next pass."""
        return Position(self.number + 1)


@dataclass(frozen=True)
class TrainingState:
    """The state of training, besides the model."""

    data: DataOrigin
    read: Annotated[list[Content], _CONTENTS]
    """content that was read, file by file"""
    holdout: Annotated[Held, _HELD]
    evaluated: Annotated[list[Content], _CONTENTS]
    """content of the hold-out that was read"""
    order: str
    passes: Positive
    patience: int
    position: Position
    label: float
    """label of the last example learned"""
    table: Annotated[list[Row], _TABLE]
    reported: Tally
    """sums at the last row of the table"""
    best: Annotated[Best | None, form_of(dict | None)._replace(made=_best)]
    passes_since: int
    """passes since the best one"""
    seen: Seen
    """statistics of the examples"""
    replay: int = 0
    """bytes of the rows that may be kept in memory; 0: none"""
    settled: bool = True
    """whether the number of passes is known"""
    earlier: Record | None = None
    """the record of the model that goes on, if it had learned other data before"""
    slices: Annotated[Sliced | None, _SLICED] = None
    recent: Recent = field(default=Recent())

    def check_same(self, before: TrainingState) -> None:
        """Raise ValueError unless data, hold-out and order are those of `before`.

        Whether the content is the same is checked while it is read.
        """
        then, now = before.data, self.data
        if then.names != now.names:
            raise ValueError(f"written while training on other data ({then.names})")
        if then.size != now.size:
            both = then.size and now.size
            sizes = f"of {then.size:,} bytes, which now have {now.size:,}" if both else "of a different size"
            raise ValueError(f"made while training on {then.names} {sizes}: train again from the start")
        if then.where != now.where:
            raise ValueError(
                f"made with {mention(where=then.where) if then.where else 'no ' + mention('where')}"
            )
        if before.holdout != self.holdout:
            raise ValueError(f"made with another {mention('holdout')} ({before.holdout})")
        if before.order != self.order:
            raise ValueError(f"made with another {mention('order')} ({before.order})")
        sliced, own = ([] if one.slices is None else one.slices.columns for one in (before, self))
        if sliced != own:
            raise ValueError(f"made with another {mention('slices')} ({', '.join(sliced) or 'none'})")

    def as_dict(self) -> dict[str, Any]:
        """The form in a header, without the state of the best pass."""
        share, given = self.holdout
        best = None if self.best is None else {"number": self.best.number, "figures": self.best.figures}
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "holdout": [share, *given],
            "best": best,
            "position": asdict(self.position),
            "seen": self.seen.as_dict(),
            "earlier": None if self.earlier is None else self.earlier.as_dict(),
            "slices": None if self.slices is None else self.slices.columns,
        }

    @classmethod
    def from_dict(cls, given: Any) -> TrainingState:
        """The inverse, without the state of the best pass. StateError, `DataError` if it is not valid."""
        found = schema.read(cls, given, "training")
        number = found.position.number
        if number > found.passes:
            raise StateError(f"position: stopped in pass {number} of {found.passes}")
        if found.best is not None and found.best.number > number:
            raise StateError(f"best: pass {found.best.number} is not finished in pass {number}")
        return found

    def with_best(self, state: dict[str, Any], check: Callable[[dict[str, Any]], None]) -> TrainingState:
        """This, with the state of the best pass, if there is one, once `check` has accepted it."""
        if self.best is None:
            return self
        check(state)
        return replace(self, best=self.best._replace(state=state))


_BEST, _SLICES = "best.", "slices."


def save(path: Path, model: Model, training_state: TrainingState) -> None:
    """Write everything that `load` needs to resume bit for bit. Raises OSError, `DivergedError`."""
    header = {**model_file.header_of(model), "training": training_state.as_dict()}
    tensors = model_file.tensors_of(model)
    if model.names is not None:  # also those of weights that are zero now, and may not be at the end
        tensors |= model_file.tensors_of_names(model.names)
    if training_state.best is not None:
        tensors |= beneath(_BEST, training_state.best.state)
    if training_state.slices is not None:
        tensors |= beneath(_SLICES, training_state.slices.state)
    model_file.write(path, header, tensors)


def opened(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and tensors of a file; `ModelFileError` if it does not exist or is damaged."""
    if not path.exists():
        raise model_file.ModelFileError(f"{path}: no such file, so there is no training to resume")
    return model_file.Contents.of(path).model(0)


def load(path: Path) -> tuple[Model, TrainingState]:
    """The model in a checkpoint and the state of its training; `ModelFileError` if there is no checkpoint."""
    header, tensors = opened(path)
    if model_file.LANES in header:
        raise model_file.ModelFileError(f"{path}: a checkpoint of another command, with many models")
    if "training" not in header:
        raise model_file.ModelFileError(f"{path}: a finished model, not a checkpoint")
    with model_file.naming_file(path, header):
        training = TrainingState.from_dict(header["training"])
    if training.slices is not None:
        training = replace(training, slices=training.slices._replace(state=under(tensors, _SLICES)))
    model = model_file.revive(path, header, tensors)
    with model_file.naming_file(f"{path}: best", header):
        return model, training.with_best(under(tensors, _BEST), model.check)
