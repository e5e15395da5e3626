"""``python -m tests.fuzz.models``: mutate models and checkpoints, fix their checksums, and use them.

A mutated file is rejected with a one-line error, or it predicts, continues learning and is saved again.
Kernels run as plain Python, where an index out of range is an IndexError, or compiled with ``--compiled``.
The work is done in other processes, so that a crash or a hang is noticed. To repeat mutation N:
``--first N --mutations 1``.
"""

import argparse
import copy
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.forks import forked
from tests.fuzz.mutations import mutated
from tests.intakes import LAYOUT, table
from tests.plain import compiled_if
from tests.streams import RULES, has_rate, settings_of, stream
from thresher import boost
from thresher.data import open_source
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError
from thresher.data.features.names import Names
from thresher.data.source import MemorySource
from thresher.engine import index
from thresher.learning.files import checkpoint, model_file
from thresher.learning.files.model_file import ModelFileError
from thresher.learning.model import batch_feeder as feed
from thresher.learning.model.divergence import DivergedError
from thresher.learning.model.model import Model
from thresher.learning.training.trainer import Trainer, TrainingPlan

ROWS = "\n".join(
    [",".join(LAYOUT.columns), *[",".join([str(row)] * len(LAYOUT.columns)) for row in range(5)]]
)
"""A delimited file, for models whose data had columns."""
SECONDS = 60
"""Seconds that one mutation may take before its process is killed."""
PLAN = TrainingPlan(passes=3, holdout_every=5, patience=2)
TRAINED, EVERY = 24, 23
"""Rows, and examples between checkpoints: the last is written in the third pass."""


@dataclass(frozen=True)
class Case:
    """A model to mutate."""

    spec: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in failure messages."""
        return " ".join([self.spec, *(f"{name}={value}" for name, value in self.options.items())])

    def model(self) -> Model:
        """A new model."""
        made = Model(self.spec, rate="power:0.2,10,0.5" if has_rate(self.spec) else None, **self.options)
        if made.recipe.scale is not None:
            made.layout = LAYOUT
        return made

    def data(self, seed: int, rows: int) -> Chunk:
        """Examples for the model."""
        chunk = (table(seed, rows) if "scale" in self.options else stream(seed, rows, 20)).chunk
        kind, _, size = self.options.get("outputs", "one").partition(":")
        labels = (np.arange(rows) % 3).astype(np.float32)
        if kind == "classes":
            return replace(chunk, labels=labels)
        if kind == "labels":
            targets = (labels[:, np.newaxis] >= np.arange(3)).astype(np.float32)
            return replace(chunk, labels=targets[:, 0].copy(), targets=targets)
        if kind == "values":
            return replace(chunk, targets=np.repeat(chunk.labels[:, np.newaxis], int(size), axis=1))
        return chunk

    def write(self, path: Path) -> None:
        """Write a checkpoint of a later pass, with the best state of an earlier one."""
        self.trainer(path).run()

    def trainer(self, path: Path, loaded: Any = None) -> Trainer:
        """A trainer in the middle of training or at its beginning."""
        plan = replace(PLAN, checkpoint=path, checkpoint_every=EVERY)
        model = loaded[0] if loaded else self.model()
        head = model.lead.head if loaded else model.head
        made = Trainer(model, MemorySource(self.data(3, TRAINED), head.domain), plan)
        if loaded:
            with model_file.naming_file(path):
                made.continue_from(loaded[1])
        return made


class Solved(Case):
    """A model with weights only, with names."""

    def write(self, path: Path) -> None:
        """Fit the model and write it."""
        found = boost(self.data(1, 60), "logistic", l1=0.1)
        found.save(path)
        header, tensors = model_file.read(path)
        names = Names.of({key: b"feature %d" % key for key in found.keys.tolist()})
        model_file.write(path, header, tensors | model_file.tensors_of_names(names))


_MANY: dict[str, Any] = {"outputs": "classes:0-2"}
CASES = [
    Solved("sgd"),
    *(Case(settings_of(name)[-1]) for name in RULES),
    *(
        Case(spec, {"average": True})
        for spec in ("fobos:l1=0.05,l2=0.5", "l1-ball:radius=0.5", "sgd", "fobos-l2norm:l2norm=0.3")
    ),
    *(
        Case(spec, _MANY)
        for spec in (
            *("ftrl", "l1-ball:radius=0.5", "fobos-linf:linf=0.1", "fobos:l1=0.02,group=l2", "subgradient"),
        )
    ),
    Case("fobos:l1=0.02,group=linf", _MANY),
    Case("adagrad-fobos:l1=0.02,l2=0.1,group=l2", {"outputs": "values:2", "batch": 3}),
    Case("simplex:features=45", {**_MANY, "batch": 4}),
    Case("l1-ball:radius=0.5", {"outputs": "labels:0-2", "batch": 4}),
    Case("fobos-linf:linf=0.1", {"batch": 7}),
    Case("stabilised:rejection=0.5,purging=0.4,every=2,stage=3", {"outputs": "values:2"}),
    Case("ftrl", {"outputs": "values:2", "batch": 4}),
    *(
        Case(spec, {"store": store})
        for store in ("direct", "hashed:6", "hashed:6,7,signed")
        for spec in ("l1-ball:radius=0.5", "ftrl")
    ),
    *(Case("fobos-linf:linf=0.1", {"store": store}) for store in ("direct", "hashed:6")),
    Case("eg:norm=2,features=50", {"store": "hashed:6", "intercept": False}),
    Case("simplex:features=50", {"store": "direct"}),
    *(Case("ftrl", {"admit": admit}) for admit in ("2,bits=10", "poisson:0.5,bits=11")),
    *(Case("ftrl", {"scale": scale, "admit": 2}) for scale in ("max-abs", "standard")),
    Case("sgd", {"scale": "standard", "store": "direct", "average": True}),
]
"""Every rule; rules that store positions also in other settings."""
COMPILED = [
    case
    for case in CASES
    if case.spec.partition(":")[0] in ("l1-ball", "fobos-linf", "simplex")
    or case.options in ({"average": True}, {"scale": "standard", "admit": 2})
]
"""The cases in which compiled code relies most on the file."""


class Strict(np.ndarray[Any, Any]):
    """An array that rejects negative indices, which compiled code may treat as large ones."""

    def _check(self, index: Any) -> None:
        whole = index if isinstance(index, tuple) else (index,)
        if all(isinstance(i, int | np.integer) for i in whole) and any(int(i) < 0 for i in whole):
            raise IndexError(f"index {index} is negative")

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        super().__setitem__(index, value)


def strict(model: Model) -> Model:
    """The model, with strict arrays wherever positions are stored or used as indices."""
    loop = model.loop
    loop.S, loop.clock = loop.S.view(Strict), loop.clock.view(Strict)
    if loop.history is not None:
        loop.history.ring = loop.history.ring.view(Strict)
    return model


@contextmanager
def small_and_plain(compiled: bool) -> Iterator[None]:
    """Use stores that are swept from the ninth row on, and plain Python unless compiled."""
    with compiled_if(compiled), pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "FIRST_SIZE", 8)
        patch.setattr(index, "ALWAYS_KEPT", 8)
        patch.setattr(feed, "PIECE", 50)
        yield


NUMERIC = (
    *("math domain", "math range", "division by zero", "out of range'", "nonnegative input"),
    "positive input",
)
"""Errors of plain Python where compiled code continues with infinity or NaN."""


def tried(use: Callable[[], None]) -> str:
    """``ran``, or the name of an expected error; other errors are raised."""
    try:
        use()
    except (ModelFileError, DataError, DivergedError, OverflowError, MemoryError) as error:
        if "\n" in str(error) or "cannot convert" in str(error):
            raise
        return type(error).__name__
    except (ArithmeticError, ValueError) as error:
        if not any(said in str(error) for said in NUMERIC):
            raise
        return "numbers"
    return "ran"


def used(case: Case, path: Path, compiled: bool) -> list[str]:
    """Predict with the weights in a file, continue learning, and resume; returns the result of each."""
    few, other = case.data(5, 6), path.with_suffix(".again")
    made = (lambda model: model) if compiled else strict

    def predicting() -> None:
        predictor = model_file.load_predictor(path)[0]
        shape = () if predictor.head.count == 1 else (predictor.head.count,)
        assert predictor.predict(few).shape == (len(few), *shape)
        predictor.heaviest(3)
        if predictor.names is not None:
            predictor.names.only(predictor.keys).get(int(predictor.keys[0]) if len(predictor.keys) else 0)
        if predictor.layout is not None:
            file, domain = path.with_name("rows.csv"), predictor.head.open_domain
            for chunk in open_source(file, layout=predictor.layout, domain=domain, unlabelled=True).chunks():
                predictor.predict(chunk)

    def going_on() -> None:
        model = made(model_file.load(path)[0])
        model.predict(few)
        if model.head.outputs == case.model().head.outputs:
            model.learn(few)
        model_file.save(model, other)
        model_file.load_predictor(other)

    def resuming() -> None:
        loaded = checkpoint.load(path)
        made(loaded[0].lead)
        trainer = case.trainer(path, loaded)
        trainer.plan = replace(PLAN, passes=min(trainer.state.position.number, PLAN.passes))
        trainer.run()
        model_file.save(trainer.model, other)

    return [tried(use) for use in (predicting, going_on, resuming)]


def corpus(cases: list[Case], folder: Path) -> None:
    for k, case in enumerate(cases):
        if not (folder / f"{k}").exists():
            case.write(folder / f"{k}")
    (folder / "rows.csv").write_text(ROWS)
    list(open_source(folder / "rows.csv", layout=LAYOUT, domain="open", unlabelled=True).chunks())


def work(numbers: range, folder: Path, compiled: bool) -> Counter[str]:
    """Make and use these mutations, announcing each before it is tried."""
    cases = COMPILED if compiled else CASES
    outcomes: Counter[str] = Counter()
    read = [model_file.read(folder / f"{k}") for k in range(len(cases))]
    with small_and_plain(compiled), np.errstate(all="ignore"):
        for number in numbers:
            print(f"{number} {cases[number % len(cases)].name}", flush=True)
            chance = random.Random(number)
            header, tensors = copy.deepcopy(read[number % len(cases)])
            header, tensors = mutated(chance, header, tensors, read, numbers=compiled)
            path = folder / f"tried-{numbers.start}"
            model_file.write(path, {name: v for name, v in header.items() if name != "crc32"}, tensors)
            signal.alarm(SECONDS)
            outcomes.update(used(cases[number % len(cases)], path, compiled))
            signal.alarm(0)
    return outcomes


def worker(numbers: range, folder: Path, compiled: bool) -> subprocess.CompletedProcess[str]:
    """Run `work` in a separate process."""
    words = ["--worker", str(folder), "--first", str(numbers.start), "--mutations", str(len(numbers))]
    words += ["--compiled"] if compiled else []
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    code, place = "from tests.fuzz.models import main\nmain()", Path(__file__).parents[2]
    with forked(words, code, cwd=place, env=os.environ, text=True, **pipes) as process:
        try:
            out, err = process.communicate(timeout=600 + SECONDS + len(numbers))
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def main() -> int:
    """Fuzz, or run as a worker."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.models", description=__doc__)
    options.add_argument("--first", type=int, default=0, help="number of the first mutation")
    options.add_argument("--mutations", type=int, default=10_000)
    options.add_argument("--compiled", action="store_true", help="run compiled code")
    options.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    numbers = range(chosen.first, chosen.first + chosen.mutations)
    if chosen.worker:
        print(json.dumps(work(numbers, chosen.worker, chosen.compiled)))
        return 0
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with small_and_plain(chosen.compiled):
            corpus(COMPILED if chosen.compiled else CASES, folder)
        first, failed = numbers.start, 0
        while first < numbers.stop:
            done = worker(range(first, min(first + 500, numbers.stop)), folder, chosen.compiled)
            last = done.stdout.strip().rpartition("\n")[2]
            if done.returncode == 0:
                outcomes.update(json.loads(last))
                first += 500
            else:
                print(f"mutation {last} ended with status {done.returncode}:\n{done.stderr[-3000:]}")
                first, failed = int(last.split()[0]) + 1, failed + 1
    print(f"{len(numbers)} mutations, {failed} failed, three uses each: {dict(outcomes)}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
