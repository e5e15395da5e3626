"""A Ray in this process, which can lose readers and what they have read: the calls that `cluster` makes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

from thresher.cluster.connection import Connection
from thresher.cluster.readers import RayReaders


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class Reference:
    def __init__(
        self, value: Any = None, error: Exception | None = None, call: Callable[[], Reference] | None = None
    ) -> None:
        self.value, self.error, self.call = value, error, call
        """`call`: what is still to be carried out"""


class _Method:
    def __init__(self, actor: Actor, name: str, returns: int = 1) -> None:
        self._actor, self._name, self._returns = actor, name, returns

    def options(self, num_returns: int) -> _Method:
        return _Method(self._actor, self._name, num_returns)

    def remote(self, *given: Any) -> Any:
        return self._actor.carry_out(self._name, self._returns, given)


class Actor:
    """A reader; its calls are carried out at once, in order."""

    def __init__(self, ray: FakeRay, number: int, kind: type, given: Any) -> None:
        self.number, self.dead = number, False
        self._ray, self._inner = ray, kind(*given)

    def __getattr__(self, name: str) -> _Method:
        return _Method(self, name)

    def carry_out(self, name: str, returns: int, given: Any) -> Any:
        if self._ray.hangs(self.number):
            assert returns == 1, "it is only asked whether it runs"
            return Reference(call=lambda: self.carry_out(name, returns, given))
        arguments = [one.value if isinstance(one, Reference) else one for one in given]
        try:
            if self.dead or self._ray.dies(self.number, name):
                self.dead = True
                raise RayError(f"reader {self.number} died")
            found = getattr(self._inner, name)(*arguments)
        except RayError as error:
            references = [Reference(error=error) for _ in range(returns)]
        except Exception as error:  # noqa: BLE001  (as Ray does, it is raised where the result is asked for)
            references = [Reference(error=RayTaskError(str(error))) for _ in range(returns)]
        else:
            references = [Reference(one) for one in (found if returns > 1 else (found,))]
            self._ray.lose(references)
        return references if returns > 1 else references[0]


class FakeRay:
    """`dies(reader, call)` says whether a reader dies now; `loses(n)`, whether the n-th batch is lost.

    `hangs(reader)` says whether a reader answers no call, such as one for which no machine has room.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(
        self,
        dies: Callable[[int, str], bool] = lambda number, call: False,
        loses: Callable[[int], bool] = lambda number: False,
        hangs: Callable[[int], bool] = lambda number: False,
    ) -> None:
        self.dies, self._loses, self.hangs = dies, loses, hangs
        self.actors: list[Actor] = []
        self.ended = False
        self._batches, self._lock = 0, threading.Lock()

    def lose(self, references: list[Reference]) -> None:
        if len(references) == 2:
            with self._lock:
                self._batches += 1
                if self._loses(self._batches):
                    references[1].error = RayError("the object was lost")

    def remote(self, **_: Any) -> Callable[[type], Any]:
        def start(kind: type) -> Any:
            return SimpleNamespace(remote=lambda *given: self._start(kind, given))

        return start

    def _start(self, kind: type, given: Any) -> Actor:
        with self._lock:
            self.actors.append(Actor(self, len(self.actors), kind, given))
            return self.actors[-1]

    def put(self, value: Any) -> Reference:
        return Reference(value)

    def get(self, reference: Reference | list[Reference]) -> Any:
        if isinstance(reference, list):
            return [self.get(one) for one in reference]
        if reference.error is not None:
            raise reference.error
        return reference.value

    def wait(
        self, references: list[Reference], timeout: float, num_returns: int = 1
    ) -> tuple[list[Reference], list[Reference]]:
        for one in references:
            if one.call is not None:
                now = one.call()
                one.value, one.error, one.call = now.value, now.error, now.call
        found = [one for one in references if one.call is None]
        if not found:
            time.sleep(min(timeout, 0.01))
        return found, [one for one in references if one.call is not None]

    def kill(self, actor: Actor) -> None:
        actor.dead = True

    def shutdown(self) -> None:
        self.ended = True


class FakeConnection(Connection):
    """A connection to a `FakeRay`; that to its node ends with the server of `path`, if there is one."""

    def __init__(self, ray: Any, path: str = "") -> None:
        self.ray, self._unreturned, self._ends = ray, [], ExitStack()
        self.watch(path)


def readers_of(
    ray: FakeRay, count: int = 2, said: list[str] | None = None, connection: Connection | None = None
) -> RayReaders:
    said = [] if said is None else said
    readers = RayReaders(count, None, said.append, said.append)
    readers.start(connection or FakeConnection(ray))
    return readers
