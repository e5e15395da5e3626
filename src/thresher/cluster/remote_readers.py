"""Let commands and functions read their files in other processes: ``--workers`` and ``--ray``.

They reach sources through a context variable, set around the command or the call: as a parameter it would
have to pass through twenty functions that do nothing with it. Ray itself is imported, and started, when the
first file is read: after the process that compiles ahead was forked, since a process with the threads of Ray
should not be forked.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from thresher.data.sources.reader import RemoteBlocks, current_readers, reading_with

if TYPE_CHECKING:
    from thresher.cluster.connection import Connection
    from thresher.cluster.readers import RayReaders
    from thresher.data.chunk import StreamPosition
    from thresher.data.files.content import Watches
    from thresher.data.sources.parsed import TextSource

F = TypeVar("F", bound=Callable[..., Any])
MOST_WORKERS = 1024
Say = Callable[[str], None]


class Cluster(NamedTuple):
    """Where work other than reading can be done."""

    connection: Connection
    workers: int
    warn: Say


class _Workers:
    """Readers that are started when the first file is read. See `data.sources.pieces.Readers`."""

    def __init__(self, count: int | None, address: str | None, say: Say, warn: Say) -> None:
        self._count, self._address, self._say, self._warn = count, address, say, warn
        self._readers: RayReaders | None = None

    def read(self, source: TextSource, start: StreamPosition, watches: Watches | None) -> RemoteBlocks:
        return self._started().read(source, start, watches)

    def prepare(self) -> None:
        self._started().prepare()

    def _started(self) -> RayReaders:
        if self._readers is None:
            from thresher.cluster.connection import Connection
            from thresher.cluster.readers import RayReaders

            here = self._address is None
            self._say("starting Ray on this machine" if here else f"connecting to Ray at {self._address}")
            connection = Connection(self._address, self._count)
            self._readers = RayReaders(
                connection, self._count or connection.processors, self._say, self._warn
            )
        return self._readers

    def cluster(self) -> Cluster:
        readers = self._started()
        return Cluster(readers.connection, readers.count, self._warn)

    def close(self) -> None:
        if self._readers is not None:
            self._readers.close()


def current_cluster() -> Cluster | None:
    """The cluster within a block of `reading_elsewhere`; None if everything is done in this process."""
    readers = current_readers()
    return readers.cluster() if isinstance(readers, _Workers) else None


@contextmanager
def reading_elsewhere(
    workers: int | None, ray: str | None, say: Say = lambda _: None, warn: Say = lambda _: None
) -> Iterator[None]:
    """Within this block, files are read by `workers` processes, of the cluster at `ray` or of this machine.

    Does nothing if both are None. Calls `say` with a line when processes are started and on how fast they
    are, `warn` when some are lost or do not start. Raises `NoRayError`, ValueError for a wrong number,
    TypeError for wrong types.
    """
    if workers is None and ray is None:
        yield
        return
    from thresher.cluster.connection import check_possible

    if not isinstance(ray, str | None):
        raise TypeError(f"ray must be the address of a cluster, such as 'auto', not {ray!r}")
    if workers is not None:
        if isinstance(workers, bool) or not hasattr(workers, "__index__"):
            raise TypeError(f"workers must be a whole number, not {workers!r}")
        if not 1 <= operator.index(workers) <= MOST_WORKERS:
            raise ValueError(f"workers must be from 1 to {MOST_WORKERS}, not {workers}")
        workers = operator.index(workers)
    check_possible(ray)
    ready = _Workers(workers, ray, say, warn)
    try:
        with reading_with(ready):
            yield
    finally:
        ready.close()


def reads_elsewhere(function: F) -> F:
    """Decorate a function: it takes `workers` and `ray`, and reads its files as `reading_elsewhere` says."""

    @functools.wraps(function)
    def reading(*args: Any, workers: int | None = None, ray: str | None = None, **options: Any) -> Any:
        if workers is None and ray is None:
            return function(*args, **options)
        with reading_elsewhere(workers, ray):
            return function(*args, **options)

    return cast(F, reading)
