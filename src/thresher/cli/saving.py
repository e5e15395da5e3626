"""A run that writes: what it may replace, and what is saved when a signal stops it.

Files of another kind are never overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli import signals
from thresher.cli.errors import StoppedAfterSaving
from thresher.options.option import Options, UsageError

if TYPE_CHECKING:
    from thresher.learning.training.interruption import Stopper


_HEAD = 1 << 12
_CURVE = b"examples\t"
_NUMBERS = re.compile(
    rb"[-+]?(?:nan|inf|[\d.]+(?:e[-+]?\d+)?)(?:[\t,][-+]?(?:nan|inf|[\d.]+(?:e[-+]?\d+)?))*"
)


def check_targets(path: Path | None, options: Options, inputs: Iterable[str | Path]) -> None:
    """Check that a model can be written, and the files in the options beside it.

    An existing file must be empty, a model or a checkpoint. OSError, UsageError.
    """
    from thresher.data.files.paths import begins_a_model
    from thresher.plans.run_setup import check_written

    held, started = options.get("holdout"), [options.get(name) for name in ("init", "continue_from")]
    check_written([path], options, [*inputs, "-" if held is None else str(held)])
    check_kind(path, "a model", begins_a_model)
    check_written([], options, [str(one) for one in started if one is not None])
    check_kind(options.get("curve"), "a curve", lambda head: head.startswith(_CURVE))
    check_drawn(options)


def check_drawn(options: Options) -> None:
    """UsageError if the picture or the table in the options exists, is not empty, and is of another kind."""
    check_kind(options.get("plot"), "an SVG picture", lambda head: b"<svg" in head)
    check_kind(options.get("table"), "a table", lambda head: b"\t" in head.partition(b"\n")[0])


def check_predictions(path: Path | None, words: Collection[str], identified: bool = False) -> None:
    """UsageError if the first line of `path` is not a prediction: numbers, or one of the class `words`.

    If `identified`, an id and a tab may come before it.
    """
    known = {word.encode() for word in words}

    def predicts(head: bytes) -> bool:
        line = head.partition(b"\n")[0]
        lines = [line, *line.split(b"\t", 1)[1:]] if identified else [line]
        return not line or any(one in known or _NUMBERS.fullmatch(one) is not None for one in lines)

    check_kind(path, "a file of predictions", predicts)


def check_kind(path: Path | None, kind: str, is_ours: Callable[[bytes], bool]) -> None:
    """UsageError if `path` exists, is not empty, and its beginning is not that of this kind of file."""
    if path is None or not path.is_file():
        return
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:  # removed meanwhile
        return
    if head and not is_ours(head):
        raise UsageError(f"{path} exists and is not {kind}: name another file, or remove it")


def check_model_first(model: Path, data: Sequence[str], command: str) -> None:
    """`UsageError` if the model and the data are swapped."""
    from thresher.learning.files.model_file import looks_like_ours

    found = [one for one in data if one != "-" and looks_like_ours(Path(one))]
    if found and model.is_file() and not looks_like_ours(model):
        first = f"thresher {command} {found[0]} {model}"
        raise UsageError(f"{model} is not a model, {found[0]} is one: the model comes first ({first})")


@contextmanager
def defer_signals(path: Path, stopper: Stopper | None = None) -> Iterator[None]:
    """Defer signals while the block writes `path`; without a `stopper`, nothing has handled them so far.

    Raises `StoppedAfterSaving` afterwards if one arrived in the block or before it.
    """
    from thresher.learning.training.interruption import Stopper

    waiting = stopper or Stopper(signals.say_at_once).listen()
    try:
        waiting.worth_keeping = True
        yield
        tell_interrupted(waiting.asked, path)
    finally:
        if stopper is None:
            waiting.close()


def tell_interrupted(came: bool, path: Path | None) -> None:
    """Raise `StoppedAfterSaving` if a signal came; the model is saved in `path`, if anywhere."""
    if came:
        raise StoppedAfterSaving(f"interrupted; the model is saved in {path}" if path else "interrupted")


@contextmanager
def say_saved(path: Path) -> Iterator[None]:
    """Within the block, an OSError is about another file: its message adds that the result is in `path`."""
    try:
        yield
    except OSError as error:
        error.add_note(f"the result is saved in {path}")
        raise


def finish(run: Any, save: Callable[[], object] | None = None, said: str = "") -> Any:
    """The outcome of a run; the progress bar is removed even if it fails.

    If a replay is stopped, the result, which has learned all rows, is saved first, as `said`.
    """
    from thresher.learning.model.divergence import DivergedError
    from thresher.learning.training.interruption import Interrupted

    trainer = run.trainer
    try:
        with closing(trainer.ui):
            return trainer.run()
    except Interrupted as stopped:
        number, passes = trainer.state.position.number, trainer.repetition.passes
        if save is None or number == 1 or not trainer.repetition.keeps:
            raise
        try:
            trainer.keep_best()
            save()
        except DivergedError:
            raise stopped from None
        except OSError as error:
            error.add_note(str(stopped))
            raise
        more = f", in pass {number} of {passes}; {said}"
        raise Interrupted(stopped.checkpoint, stopped.examples, more) from None
