"""Checkpoints: the model's state, and where in the stream it stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.data.chunk import Chunk, Place
from thresher.data.files.content import Content
from thresher.data.report import Report
from thresher.learning import header as headers
from thresher.learning import modelfile
from thresher.learning.holdout import Best, Holdout
from thresher.learning.model import Model, Tally
from thresher.learning.progress import Row

if TYPE_CHECKING:
    from thresher.learning.training import Trainer

_BEST = "best."
_LONG = 1 << 30
"""Bytes that take about a second to read again."""


@dataclass(frozen=True)
class Position:
    """A place between two examples of the stream."""

    number: int = 1
    """pass, from 1"""
    place: Place | None = None
    """where the chunk under way is read from; None: the beginning"""
    learned: int = 0
    """rows of that chunk that are learned"""
    report: dict[str, Any] = field(default_factory=lambda: Report().as_dict())
    """the source's account before that chunk"""

    def learned_to(self, row: int) -> Position:
        """Behind `row` learned rows of the chunk."""
        return replace(self, learned=row)

    def behind(self, chunk: Chunk, report: Report) -> Position:
        """At the end of the chunk."""
        return Position(self.number, chunk.after, 0, report.as_dict())

    def next_pass(self) -> Position:
        """At the beginning of the next pass."""
        return Position(self.number + 1)


def save(trainer: Trainer, path: Path) -> None:
    """Write what `restore` needs to go on bit for bit."""
    best = trainer.holdout.best
    header = {
        **modelfile.header_of(trainer.model),
        "training": {
            "data": _identity(trainer.source),
            "read": list(trainer.source.content),
            "holdout": _held(trainer.holdout),
            "evaluated": [] if trainer.holdout.given is None else list(trainer.holdout.given.content),
            "order": trainer.order.spec,
            "passes": trainer.plan.passes,
            "patience": trainer.plan.patience,
            "position": asdict(trainer.position),
            "label": trainer.label,
            "table": [list(row) for row in trainer.table],
            "reported": list(trainer.reported),
            "best": None if best is None else {"number": best.number, "figures": best.figures},
            "passes_since": trainer.holdout.passes_since,
        },
    }
    tensors = modelfile.tensors_of(trainer.model)
    if best is not None:
        tensors |= {f"{_BEST}{name}": array for name, array in best.state.items()}
    modelfile.write(path, header, tensors)


def load(path: Path) -> tuple[Model, modelfile.Header, modelfile.Tensors]:
    """Model, header and tensors of a checkpoint; `ModelFileError` when it is none."""
    if not path.exists():
        raise modelfile.ModelFileError(f"{path}: no such file, so there is no training to go on with")
    header, tensors = modelfile.read(path)
    if "training" not in header:
        raise modelfile.ModelFileError(f"{path}: a finished model, not a checkpoint")
    with modelfile.naming_file(path):
        headers.check_training(header["training"])
    return modelfile.revive(path, header, tensors), header, tensors


def restore(trainer: Trainer, path: Path, header: modelfile.Header, tensors: modelfile.Tensors) -> None:
    """Put a fresh trainer of the checkpoint's model where the checkpoint was taken."""
    saved = header["training"]
    _check_same(trainer, path, saved)
    position = dict(saved["position"])
    place = position.pop("place")
    if place is not None and place[0] >= len(trainer.source.names):
        raise modelfile.ModelFileError(f"{path}: stopped in file {place[0] + 1}, which there is not")
    with modelfile.naming_file(path):
        Report.from_dict(position["report"])
    trainer.position = Position(**position, place=None if place is None else Place(*place))
    trainer.label = saved["label"]
    trainer.table = [Row(*row) for row in saved["table"]]
    trainer.reported = Tally(*saved["reported"])
    trainer.holdout.passes_since = saved["passes_since"]
    if saved["best"] is not None:
        state = {name.removeprefix(_BEST): a for name, a in tensors.items() if name.startswith(_BEST)}
        with modelfile.naming_file(f"{path}: best"):
            trainer.model.check(state)
        trainer.holdout.best = Best(**saved["best"], state=state)


def _check_same(trainer: Trainer, path: Path, saved: dict[str, Any]) -> None:
    """Errors for other data, hold-out or order; what was read of the data is looked at when they are read."""
    before, size, where = saved["data"]
    now, size_now, said = _identity(trainer.source)
    if before != now:
        raise modelfile.ModelFileError(f"{path}: made while training on other data ({before})")
    if size != size_now:
        sizes = f"of {size:,} bytes, which now have {size_now:,}" if size and size_now else "of another size"
        raise modelfile.ModelFileError(f"{path}: made while training on {before} {sizes}: train anew")
    if where != said:
        raise modelfile.ModelFileError(f"{path}: made with {f'--where {where}' if where else 'no --where'}")
    if saved["holdout"] != _held(trainer.holdout):
        raise modelfile.ModelFileError(f"{path}: made with another --holdout ({_told(saved['holdout'])})")
    if saved["order"] != trainer.order.spec:
        raise modelfile.ModelFileError(f"{path}: made with another --order ({saved['order']})")
    read, evaluated = ([Content(*one) for one in saved[name]] for name in ("read", "evaluated"))
    if sum(content.size for content in [*read, *evaluated]) > _LONG:
        trainer.watcher.say(
            "reading the data again up to the checkpoint, to check that they have not changed"
        )
    trainer.resumed = trainer.owns_checkpoint = True
    trainer.source.expect(read, whole=saved["position"]["number"] > 1)
    if trainer.holdout.given is not None:
        trainer.holdout.given.expect(evaluated, whole=saved["position"]["number"] > 1, now=True)


def _identity(source: Any) -> list[Any]:
    """Names and size of the data, and which rows of them are read."""
    return [", ".join(source.names), source.total_bytes, source.where]


def _held(holdout: Holdout) -> list[Any]:
    """The same of what is held out, behind every how many examples of the data that is."""
    return [holdout.every, *(["", 0, ""] if holdout.given is None else _identity(holdout.given))]


def _told(held: list[Any]) -> str:
    every, names, *_ = held
    return names or (f"every-{every}th" if every else "none")
