"""Kernels run as plain Python: slow, but without compiling.

Tables start small, because some loops go over all rows. Passes of ``auto`` are as few as they ever are.
Compiled loops read the parts of a lane from the stack; here they are built once, not for every coordinate.
Nor is a clock that stands still rounded again for every coordinate, output and verb.

Laws over all pairs of rule and loss run like this. Compiling takes a second or more per pair, and there are
three hundred pairs, twice that with many outputs; the source is the same. Each rule is compiled with a few
losses.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import CodeType
from typing import Any

import pytest

from thresher.engine import index, lanes, verbs
from thresher.engine.protocol import PROTOCOL, snapshot
from thresher.learning.training import passes
from thresher.testing.laws import NOT_COMPILED


def compiled_if(wanted: bool) -> AbstractContextManager[None]:
    """Compiled if requested, otherwise the same source as plain Python."""
    return nullcontext() if wanted else not_compiled()


@contextmanager
def not_compiled() -> Iterator[None]:
    """Within the block, models run uncompiled; the index of the growing store stays compiled."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        compile_nothing(monkeypatch)
        yield


def direct_calls() -> dict[Any, CodeType]:
    """The code of each verb that calls the method of a part without a search for its name.

    A third less time in plain Python. Numba never looks at the code of a verb; its own is stamped by it.
    """
    codes = {}
    for name, declared in {name: verb for kind in PROTOCOL.values() for name, verb in kind.items()}.items():
        own, *others = declared.parameters
        taken = ", ".join([own, *others])
        text = f"def closed(name):\n def call({taken}): return {own}.{name}({', '.join(others)}); name"
        (closed,) = (one for one in compile(text, __file__, "exec").co_consts if isinstance(one, CodeType))
        (codes[getattr(verbs, name)],) = (one for one in closed.co_consts if isinstance(one, CodeType))
    return codes


DIRECT_CALLS = direct_calls()


def compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, until undone."""
    for one in NOT_COMPILED:
        monkeypatch.setattr(*one)
    for verb, code in DIRECT_CALLS.items():
        monkeypatch.setattr(verb, "__code__", code)
    monkeypatch.setattr(lanes.part_of, "function", _remembered(lanes.part_of.function))
    monkeypatch.setattr(snapshot, "function", _of_same_clocks(snapshot.function))
    monkeypatch.setattr(index, "FIRST_SIZE", min(index.FIRST_SIZE, 16))
    for name in ("MANY", "FEW"):
        monkeypatch.setattr(passes, name, passes.LEAST)


def _remembered(part_of: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    """`part_of`, called once for each lane of the same parts."""
    known: dict[int, tuple[Any, dict[int, Any]]] = {}

    def remembered(parts: Any, k: int) -> Any:
        kept = known.get(id(parts))
        if kept is None:
            if len(known) > 64:
                known.clear()
            kept = known[id(parts)] = (parts, {})  # keeps parts alive, so their id is not reused
        if k not in kept[1]:
            kept[1][k] = part_of(parts, k)
        return kept[1][k]

    return remembered


def _of_same_clocks(snapshot: Callable[..., Any]) -> Callable[..., Any]:
    """`snapshot`, called once for each state of a clock: the tuples are immutable."""
    known: dict[tuple[bytes, str], Any] = {}

    def same(self: Any, clock: Any, S: Any) -> Any:
        state = clock.tobytes(), S.dtype.char
        found = known.get(state)
        if found is None:
            if len(known) > 1024:
                known.clear()
            found = known[state] = snapshot(self, clock, S)
        return found

    return same
