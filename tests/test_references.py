"""Reference counts in compiled code: no array is leaked or freed too early.

Some functions called by kernels do not count references (`engine.compile.jit`), so this must be tested.
"""

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]
from numba.core.runtime.nrt import rtsys

from tests.data.guarded import cases, parser
from tests.streams import RATE, stream
from thresher.data.files.blocks import LINES, PAD, Block
from thresher.data.sources.reader import Arenas
from thresher.engine.compile.jit import helper, kernel, scalar
from thresher.learning.files import model_file
from thresher.learning.model.model import Model

_runtime: Any = rtsys
SOFTMAX = {"loss": "softmax", "outputs": "classes:3"}
MODELS: list[tuple[str, dict[str, Any]]] = [  # many are compiled for other tests too
    ("fobos:l1=0.01", {"rate": RATE, "store": "growing"}),
    ("ft-ftrl:forget=20", {"admit": 2, "store": "growing"}),
    ("l1-ball:radius=0.5", {"store": "hashed:4", "rate": RATE}),
    ("ft-ftrl:group=l2", {**SOFTMAX, "store": "growing"}),
    (
        "perceptron",
        {
            "loss": "hinge",
            "outputs": "labels:1-3",
            "batch": 4,
            "store": "growing",
            "dtype": "float64",  # as other tests compile it
        },
    ),
]
CASES = list(cases())


def living() -> tuple[int, int]:
    """Allocations and arrays made by compiled code and not yet freed."""
    gc.collect()
    now: Any = _runtime.get_allocation_stats()
    return now.alloc - now.free, now.mi_alloc - now.mi_free


def check(work: Callable[[], Any], *lent: Any) -> None:
    """Run `work` once to compile, then a few times: nothing more may be allocated or referenced after."""
    _nrt_python.memsys_enable_stats()
    work()
    before = living(), [sys.getrefcount(array) for array in lent]
    for _ in range(3):
        work()
    assert (living(), [sys.getrefcount(array) for array in lent]) == before


@scalar
def _part(array):  # type: ignore[no-untyped-def]
    return array[1:]


@scalar
def _part_and_more(array):  # type: ignore[no-untyped-def]
    return array[1:], 1


@helper
def _counted_part(array):  # type: ignore[no-untyped-def]
    return array[1:]


@scalar
def _sum_of_part(array):  # type: ignore[no-untyped-def]
    return _counted_part(array).sum()


@kernel
def _lengths(array):  # type: ignore[no-untyped-def]
    return len(_part(array))


@kernel
def _tuples(array):  # type: ignore[no-untyped-def]
    return len(_part_and_more(array)[0])


@kernel
def _sums(array):  # type: ignore[no-untyped-def]
    return _sum_of_part(array)


@pytest.mark.parametrize(
    ("compiled", "hint"),
    [
        (_lengths, "Only accept returning of array passed into the function as argument"),
        (_tuples, "_part_and_more makes or returns .* make it a helper"),
        (_sums, "_sum_of_part makes or returns .* make it a helper"),
    ],
)
def test_what_does_not_count_makes_no_arrays(compiled: Any, hint: str) -> None:
    """Including views of an array: if returned they would be freed twice, if taken they would leak."""
    with pytest.raises(TypingError, match=hint):
        compiled(np.ones(3))


@pytest.mark.parametrize(("rule", "options"), MODELS)
def test_models(rule: str, options: dict[str, Any], tmp_path: Path) -> None:
    chunk = stream(seed=20, rows=60, features=12).chunk
    if options.get("outputs") == "labels:1-3":
        chunk = replace(chunk, targets=np.sign(np.sin(np.arange(1, 181.0))).reshape(60, 3).astype(np.float32))
    elif "outputs" in options:
        chunk = replace(chunk, labels=np.arange(60, dtype=np.float32) % 3 + 1)
    model = Model(rule, **{"loss": "logistic", "store": "direct", **options})
    model.learn(chunk)

    def work() -> None:
        model.learn(chunk)
        model.predict(chunk)
        model.weights()
        model.predictor().predict(chunk)
        model_file.save(model, tmp_path / "model")

    loop = model.loop
    check(work, chunk.indptr, chunk.keys, chunk.values, chunk.labels, loop.S, loop.clock, loop.B)


@pytest.mark.parametrize(("name", "sample", "layout", "domain"), CASES, ids=[case[0] for case in CASES])
def test_parsers(name: str, sample: Any, layout: Any, domain: str, tmp_path: Path) -> None:
    lines = [*sample.good(20, 0), *sample.bad.values()]
    text = b"".join(line + b"\n" for line in lines)
    reads = parser(sample, layout, tmp_path, Arenas(1), domain)
    memory = np.frombuffer(bytearray(text + b" " * PAD), np.uint8)  # writable, as read from files
    check(lambda: reads.parse(Block(memory, len(text), LINES, 0, 1, 0, 0)), memory)
