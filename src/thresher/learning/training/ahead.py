"""First run of a configuration: a second process compiles the learning code while this one compiles reading.

Numba compiles one function at a time per process. So on Linux, before any thread starts, this process forks;
the child trains a copy of the model on made-up examples. Everything it compiles goes to the disk cache, where
this process finds it when its first examples arrive. The child writes nothing else and does not have to
finish: what it did not compile is compiled here.

A mark in the cache says that no second process is needed next time. The child ends with its parent; losing it
only costs time. A first training run of 2,000 rows of svmlight text took 7.7 s with one process and 3.7 s
with two (6.6 s of processor). On two slower cores, with an empty cache and medians of three, it took 14.8 and
9.7 s, and 2,000 rows of CSV, whose parser takes longer to compile than learning, 25.6 and 18.1 s (once each).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from thresher.data.chunk import Chunk
from thresher.engine import kernels
from thresher.engine.compile import codecache
from thresher.engine.compile.machine import kind_of
from thresher.engine.compile.notices import LEARNING, OF_MANY, Work, compiling
from thresher.learning.evaluation.evaluate import score
from thresher.learning.model.eight_lanes import LaneState
from thresher.learning.model.model import Model
from thresher.learning.model.model_set import ModelSet

_DEATH_OF_PARENT = 1
"""PR_SET_PDEATHSIG in <linux/prctl.h>"""
LONGEST = 120
"""Seconds after which the child gives up: it may wait for ever for a lock that a thread of a library held"""
_UNTOLD = 0.5
"""Seconds of waiting that need no message"""
FEATURES = 1 << 13
"""More than a new table has room for, so that the code that grows it is compiled too."""


def waiting(process: int, kind: tuple[object, str], work: Work = LEARNING) -> Callable[[], None]:
    """What waits, once, until a process has ended, and records that this configuration needs no other."""
    left = [process]

    def wait() -> None:
        if not left:
            return
        process, end = left.pop(), time.monotonic() + _UNTOLD
        with compiling():  # it ends at once if all it needs is cached already
            while not (ended := os.waitpid(process, os.WNOHANG)[0] != 0) and time.monotonic() < end:
                time.sleep(0.01)
        if not ended:
            with compiling(work):
                os.waitpid(process, 0)
        codecache.keep(kernels.learn.function, *kind, b"")

    return wait


def compile_ahead(
    model: Model, predicts: bool, lanes: ModelSet | None = None, then: bool = False
) -> Callable[[], None]:
    """Start compiling the code for learning, and for predicting if `predicts`, in a process of its own.

    Does nothing if the code is cached already or a fork is not safe. The child trains the model, or `lanes`,
    and if it is learned by itself `then`, the model too. Call what is returned before examples are learned.
    """
    learners = list[Model | ModelSet]()
    if lanes is not None:
        learners += [lanes, model] if then else [lanes]
    loops = [] if lanes is None else [one.loop for one in lanes.models]
    parts = [loop.holder.parts for loop in loops if isinstance(loop, LaneState)]
    alone = threading.active_count() == 1 and (os.cpu_count() or 1) > 1
    kind = _kind(model, predicts, len(learners), parts)
    if sys.platform != "linux" or not alone or not codecache.lacks_mark(kernels.learn.function, *kind):
        return lambda: None
    parent = os.getpid()
    with warnings.catch_warnings():  # about threads: the only ones belong to numpy's libraries and survive it
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        _compile(model, predicts, learners, parent)
    return waiting(process, kind, OF_MANY if model.head.count > 1 or model.batch > 1 else LEARNING)


def compile_now(model: Model) -> None:
    """Compile what training and predicting with this model need; no process is forked for it later."""
    learn_anything(model, True)
    for predicts in (True, False):
        codecache.keep(kernels.learn.function, *_kind(model, predicts), b"")


def _compile(model: Model, predicts: bool, learners: Sequence[Model | ModelSet], parent: int) -> None:
    """Train on made-up examples, print nothing, end the process; also end if the parent does."""
    status = 1
    try:
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            signal.signal(one, signal.SIG_DFL)
        signal.alarm(LONGEST)
        ctypes.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGTERM)
        if os.getppid() != parent:
            return
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        learn_anything(model, predicts, learners)
        status = 0
    finally:
        os._exit(status)


def _kind(
    model: Model, predicts: bool, learners: int = 0, parts: Sequence[Any] = ()
) -> tuple[tuple[object, ...], str]:
    """What determines the compiled code: the types of the parts, and options as text."""
    kinds = kind_of((model.head.joint, model.rule, model.rule.intercept(), *parts))
    recipe, store = model.recipe, model.recipe.store.partition(":")[0]
    words = (learners, recipe.numbers, store, model.head.count > 1, recipe.batch > 1, recipe.average)
    more = (recipe.scale, recipe.offset, recipe.admit is None, predicts, model.feed.listener is not None)
    return kinds, " ".join(map(str, (*words, *more)))


def learn_anything(model: Model, predicts: bool, learners: Sequence[Model | ModelSet] = ()) -> None:
    """Run everything that training does with `model`, or the learners, on made-up examples."""
    keys, begins = np.arange(FEATURES, dtype=np.uint64), np.array([0, FEATURES, FEATURES + 1])
    values, (kind, low, *_) = np.full(FEATURES + 1, 1e-6, np.float32), model.head.outputs
    each = (2, model.head.count) if kind in ("labels", "values") else 2  # the outputs have their own labels
    labels = np.full(each, low if kind == "classes" else 1, np.float32)
    chunk = Chunk.from_csr(begins, np.append(keys, keys[:1]), values, labels)
    chunk = chunk.with_offsets(np.zeros(len(chunk))) if model.shifted else chunk
    for one in learners or [model]:
        one.learn(chunk)
        one.finish()
        one.check_finite()
    if predicts:
        for reader in (model, model.readout()):
            score(reader, [chunk])
            reader.predict(chunk, "probability" if model.head.has_probabilities else "margin")
    model.nonzero  # noqa: B018
    model.last_prediction  # noqa: B018
