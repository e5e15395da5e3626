"""Let commands and functions read their files in other processes: ``--workers`` and ``--ray``.

They reach sources through a context variable, set around the command or the call: as a parameter it would
have to pass through twenty functions that do nothing with it. Ray itself is imported, and started, when the
first file is read: after the process that compiles ahead was forked, since a process with the threads of Ray
should not be forked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from thresher.data.errors import NoPackageError
from thresher.data.sources.reader import current_readers
from thresher.options.data import ElsewhereOptions
from thresher.options.option import settle

F = TypeVar("F", bound=Callable[..., Any])
Say = Callable[[str], None]


@contextmanager
def reading_elsewhere(
    workers: int | None, ray: str | None, say: Say = lambda _: None, warn: Say = lambda _: None
) -> Iterator[None]:
    """Within this block, files are read by `workers` processes, of the cluster at `ray` or of this machine.

    Does nothing if both are None. Calls `say` with a line when processes are started, `warn` when some are
    lost or do not start. Raises `NoPackageError`, `NoRayError`.
    """
    if workers is None and ray is None:
        yield
        return
    from thresher.cluster.connection import NoRayError
    from thresher.cluster.readers import RayReaders

    if ray is not None and ray.strip() in ("", "local"):  # at which Ray would start a cluster, not find one
        raise NoRayError(f"'{ray}' is not the address of a Ray cluster: give HOST:PORT or auto")
    if find_spec("ray") is None:
        raise NoPackageError("reading by other processes", "ray")
    ready = RayReaders(workers, ray, say, warn)
    before = current_readers.set(ready)
    try:
        yield
    finally:
        current_readers.reset(before)
        ready.close()


def reads_elsewhere(function: F) -> F:
    """Decorate a function: it takes `workers` and `ray`, and reads its files as `reading_elsewhere` says."""

    @functools.wraps(function)
    def reading(*args: Any, workers: int | None = None, ray: str | None = None, **kwargs: Any) -> Any:
        if workers is None and ray is None:  # a row is predicted in 16 µs, and a context would take 2
            return function(*args, **kwargs)
        given = settle(ElsewhereOptions, {"workers": workers, "ray": ray})
        with reading_elsewhere(given["workers"], given["ray"]):
            return function(*args, **kwargs)

    return cast(F, reading)
