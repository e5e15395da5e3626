"""Checkpoints: a model together with the state of its training."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypedDict

from thresher.data.chunk import StreamPosition
from thresher.data.files.content import Content
from thresher.data.files.topics import Extent
from thresher.data.report import Report
from thresher.data.source import Source
from thresher.data.stored import read, said
from thresher.engine.sound import beneath, under
from thresher.learning.diagnostics.stream_statistics import StreamStatistics
from thresher.learning.files import model_file
from thresher.learning.files.choice import LOSS
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.inspection.effects import DrawnRows
from thresher.learning.model.bags import share_of
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet, Share
from thresher.learning.model.recipe import Recipe
from thresher.learning.training.progress import Curve, Recent, Row, Tally
from thresher.learning.training.record import Difference, Record
from thresher.learning.training.scores import Scored
from thresher.options.messages import function_of, mention_command, shell_or_python


class DataOrigin(NamedTuple):
    """Which data are read, and which of their rows."""

    names: str = ""
    size: int | None = 0
    """in bytes; None if unknown"""
    where: str = ""

    @classmethod
    def of(cls, source: Source | None) -> DataOrigin:
        """The origin of a source; that of no data, if there is none."""
        return cls() if source is None else cls(", ".join(source.names), source.total_bytes, source.where)


class Held(NamedTuple):
    """The hold-out: a share of the data, or separate data."""

    share: str
    """as `shares.as_text` writes it"""
    given: DataOrigin

    def __str__(self) -> str:
        """A description for messages."""
        return self.given.names or self.share


@dataclass(frozen=True)
class TrainingPosition:
    """A position between two examples of the stream."""

    number: int = 1
    """the pass, from 1"""
    place: StreamPosition | None = None
    """where the current chunk starts; None: at the beginning"""
    learned: int = 0
    """number of rows of that chunk learned"""
    report: Report = field(default_factory=Report)
    """line counts of the source before that chunk"""


@dataclass
class TrainingState:
    """The state of training, besides the model."""

    UNSAID: ClassVar = ("topics",)

    order: str
    patience: int
    data: DataOrigin = field(default=DataOrigin())
    read: list[Content] = field(default_factory=list)
    """content that was read, file by file"""
    holdout: Held = field(default=Held("", DataOrigin()))
    evaluated: list[Content] = field(default_factory=list)
    """content of the hold-out that was read"""
    passes: int = 1
    position: TrainingPosition = field(default_factory=TrainingPosition)
    label: float = float("nan")
    """label of the last example learned"""
    table: list[Row] = field(default_factory=list)
    reported: Tally = field(default=Tally(0.0, 0.0))
    """sums at the last row of the table"""
    scored: list[Scored] = field(default_factory=list)
    """the figures of each model after each pass, if training waits for better ones"""
    seen: StreamStatistics = field(default_factory=StreamStatistics)
    """statistics of the examples"""
    replay: int = 0
    """bytes of the rows that may be kept in memory; 0: none"""
    settled: bool = True
    """whether the number of passes is known"""
    earlier: Record | None = None
    """the record of the model that goes on, if it had learned other data before"""
    recent: Recent = field(default=Recent())
    judge: str = LOSS
    """the figure that tells which pass is better"""
    plan: str = "train"
    """what makes models of the data"""
    topics: tuple[Extent, ...] = ()
    """what this run reads of topics"""

    def check_same(self, before: TrainingState) -> None:
        """ValueError unless the data, the rows and their order are those of `before`.

        Content is checked as it is read.
        """
        then, now = before.data, self.data
        if then.names != now.names:
            raise ValueError(f"written while training on other data ({then.names})")
        if then.size != now.size:
            both = then.size and now.size
            sizes = f"of {then.size:,} bytes, which now have {now.size:,}" if both else "of a different size"
            raise ValueError(f"made while training on {then.names} {sizes}: train again from the start")
        for option, was, given in (
            ("where", then.where, now.where),
            ("holdout", str(before.holdout), str(self.holdout)),
            ("order", before.order, self.order),
        ):
            if was != given:
                raise ValueError(Difference(option, was, (option,) if given else ()).told("the checkpoint"))


_COMMANDS = {
    **{name: mention_command(name) for name in ("train", "path", "select")},
    "ensemble": shell_or_python("thresher train", function_of("ensemble")),
}
"""What writes the checkpoints of each plan"""
_STATE, _BEST, _DRAWN = "state.", "best.", "drawn."


class SavedSet(TypedDict):
    """What `ModelSet.described` tells of."""

    share: str
    recipes: list[dict[str, Any]]
    dropped: list[tuple[int, str]]
    resting: list[int]
    curves: list[Curve]


def save(path: Path, models: ModelSet, training_state: TrainingState) -> None:
    """Write everything that `load` needs to resume bit for bit. Raises OSError, `DivergedError`."""
    first = models.models[0]
    if first.is_alone and len(models.models) == 1:
        header, tensors = model_file.header_of(first), model_file.tensors_of(first)
        if first.names is not None:  # also those of weights that are zero now, and may not be at the end
            tensors |= model_file.tensors_of_names(first.names)
    else:
        models.check_finite()
        first = models.lead if isinstance(models.lead, Model) else first
        header = {**model_file.header_of(first), **model_file.needing(*models.models)}
        header[model_file.LANES] = models.described()
        tensors = model_file.weights_of(first.predictor()) | beneath(_STATE, models.state())
    scored = [one[:-1] for one in training_state.scored]  # whose states are tensors
    header["training"] = said(training_state) | {"scored": scored}
    for one in training_state.scored:
        tensors |= beneath(f"{_BEST}{one.model}.", one.state)
    tensors |= beneath(_DRAWN, training_state.seen.drawn.tensors())
    model_file.write(path, header, tensors)


def load(path: Path, plan: str = "train") -> tuple[ModelSet, TrainingState]:
    """The models in a checkpoint of this plan and the state of their training; `ModelFileError`."""
    if not path.exists():
        raise ModelFileError(f"{path}: no such file, so there is no training to resume")
    header, tensors = model_file.Contents.of(path).model(0)
    if "training" not in header:
        raise ModelFileError(f"{path}: a finished model, not a checkpoint")
    model_file.check_parts(path, header)
    with model_file.naming_file(path, header):
        training = read(TrainingState, header["training"], "training")
        if training.plan != plan:
            made = _COMMANDS.get(training.plan, "another command")
            raise ModelFileError(f"{path}: a checkpoint of {made}, which can resume it")
        training.seen.drawn = DrawnRows.of(under(tensors, _DRAWN))
        if model_file.LANES in header:
            saved = read(SavedSet, header[model_file.LANES], model_file.LANES)
            spec, dropped = saved["share"], dict(saved["dropped"])
            recipes = [Recipe.from_dict(read(model_file.OfRecipe, one, "recipe")) for one in saved["recipes"]]
            models = ModelSet(recipes, share_of(spec, recipes[0].seed) if spec else Share())
            for k, reason in dropped.items():
                models.parts[0].drop(k, reason)
            # which has the models of values, of which the recipes say nothing
            models.restore(under(tensors, _STATE))
            for k in saved["resting"]:
                models.parts[0].rest(k)
            for model, curve in zip(models.models, saved["curves"], strict=True):
                model.curve = curve
        else:
            models = ModelSet.of([model_file.revive(path, header, tensors)])
        scored = [one._replace(state=under(tensors, f"{_BEST}{one.model}.")) for one in training.scored]
        for one in scored:
            models.holder(one.model).check(one.state)
        return models, replace(training, scored=scored)


def bags_in(path: Path) -> str | None:
    """How many models the ensemble in a checkpoint has, and which rows they learn; None for another one."""
    run = model_file.Contents.of(path).run
    ensemble = run.get("training", {}).get("plan") == "ensemble"
    return run.get(model_file.LANES, {}).get("share") if ensemble else None
