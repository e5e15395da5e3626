"""Shards in other processes, through Ray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.batch.shards import SHARDS, Group, LostWorkerError
from thresher.cluster.elsewhere import Cluster
from thresher.cluster.lifeline import LostRayError
from thresher.cluster.reader import difference, versions
from thresher.data.chunk import Chunk
from thresher.data.errors import DataError

_WAITING = 8
"""Blocks of rows on their way to the workers at once."""


class Worker(Group):
    """Some of the shards, in a process of Ray."""

    def difference(self, wanted: dict[str, str]) -> str:
        """How versions here differ from `wanted`; empty if they do not."""
        return difference(wanted)


class There:
    """Holds the shards in the processes of a cluster. See `shards.Holder`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._ray = cluster, cluster.connection.ray
        self._count = min(cluster.workers, SHARDS)
        self._waiting: list[Any] = []
        kind = self._ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(Worker)
        with self._calling():
            self._workers = [kind.remote(range(k, SHARDS, self._count)) for k in range(self._count)]
        try:
            for found in self._all("difference", versions()):
                if found:
                    raise DataError(found)
        except BaseException:
            self.close()
            raise

    def add(self, number: int, chunk: Chunk) -> None:
        """Add rows to a shard."""
        with self._calling():
            self._waiting.append(self._workers[number % self._count].add.remote(number, chunk))
        if len(self._waiting) > _WAITING:
            self._get([self._waiting.pop(0)])

    def build(self, intercept: bool) -> list[tuple[NDArray[np.uint64], int, float]]:
        """Make the shards."""
        while self._waiting:
            self._get([self._waiting.pop()])
        return self._of_shards("build", intercept)

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every shard; the results are in the order of the shards."""
        return self._of_shards("call", method, *arguments)

    def close(self) -> None:
        """End the processes."""
        with suppress(LostWorkerError), self._calling():
            for worker in self._workers:
                self._ray.kill(worker)

    def _of_shards(self, method: str, *arguments: Any) -> list[Any]:
        results: list[Any] = [None] * SHARDS
        for first, found in enumerate(self._all(method, *arguments)):
            results[first :: self._count] = found
        return results

    def _all(self, method: str, *arguments: Any) -> list[Any]:
        """The results of all workers; large arguments are sent to each machine once."""
        with self._calling():
            sent = [self._ray.put(one) if isinstance(one, np.ndarray) else one for one in arguments]
            asked = [getattr(worker, method).remote(*sent) for worker in self._workers]
        return self._get(asked)

    def _get(self, references: list[Any]) -> list[Any]:
        with self._errors():
            return self._cluster.connection.get(references)

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """A block in which Ray may be called."""
        with self._errors(), self._cluster.connection.calling():
            yield

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what Ray raises into `LostWorkerError`, but for faults of the program."""
        try:
            yield
        except self._ray.exceptions.RayTaskError:
            raise
        except (LostRayError, self._ray.exceptions.RayError) as error:
            raise LostWorkerError(self._cluster.warn) from error
