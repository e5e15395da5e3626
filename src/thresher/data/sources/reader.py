"""Reading and parsing blocks with several threads, in order."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from thresher.data.files.blocks import Block, BlockReader, TextBuffer
from thresher.data.sources.parsed import Parsed, Parser

_AHEAD = 2
"""Blocks in progress or waiting, in addition to one per thread."""
_PATIENCE = 0.2


def default_threads() -> int:
    """One thread per processor that this process may use, at most four."""
    try:
        usable = len(os.sched_getaffinity(0))  # type: ignore[attr-defined,unused-ignore]
    except AttributeError:
        usable = os.cpu_count() or 1
    return min(4, usable)


class Pipeline:
    """One pass over the blocks of a reader.

    Each thread in turn takes the next block under a lock, which serializes reading and decompressing, then
    parses it in parallel with the others while its text is warm in the cache. At most ``threads + 2`` parsed
    blocks wait, in order. If `live`, a block ends where a stream pauses, unless as many blocks as there are
    threads are being parsed or used: so a fast stream is read in large blocks, and a slow one row by row.
    """

    def __init__(
        self,
        blocks: BlockReader,
        parser: Callable[[], Parser],
        threads: int,
        size: int,
        live: bool = False,
    ) -> None:
        self._blocks = blocks
        self._busy = self._has_enough if live else None
        self._taken = self._used = 0
        self._parser = parser
        self._size = size
        self._turn = threading.Lock()
        self._room = threading.Semaphore(threads + _AHEAD)
        self._waiting: queue.SimpleQueue[Future[tuple[Block, Parsed] | None]] = queue.SimpleQueue()
        self._stopped = False
        self._threads = [
            threading.Thread(target=self._work, name=f"thresher-reader-{k}", daemon=True)
            for k in range(threads)
        ]

    def _work(self) -> None:
        try:
            buffer, parser = TextBuffer(self._size), self._parser()
        except Exception as error:  # noqa: BLE001 raised again in the thread that uses the chunks
            failed: Future[tuple[Block, Parsed] | None] = Future()
            failed.set_exception(error)
            self._waiting.put(failed)
            return
        while True:
            self._room.acquire()
            taken = self._take(buffer)
            if taken is None:
                return
            place, block = taken
            try:
                place.set_result((block, parser.parse(block)))
            except Exception as error:  # noqa: BLE001 likewise
                place.set_exception(error)

    def _take(self, buffer: TextBuffer) -> tuple[Future[tuple[Block, Parsed] | None], Block] | None:
        """Read the next block and reserve its place in the queue; None if there is nothing more to do."""
        place: Future[tuple[Block, Parsed] | None] = Future()
        with self._turn:
            if self._stopped:
                return None
            try:
                block = self._blocks.fill(buffer, self._busy)
            except Exception as error:  # noqa: BLE001 likewise
                place.set_exception(error)
                block = None
            else:
                if block is None:
                    place.set_result(None)
            self._waiting.put(place)
            if block is not None:
                self._taken += 1
                return place, block
        self._stop()
        return None

    def _has_enough(self) -> bool:
        """Whether each thread has a block that is being parsed, or is parsed and not used yet."""
        return self._taken - self._used >= len(self._threads) and not self._stopped

    def _stop(self) -> None:
        self._stopped = True
        for _ in self._threads:
            self._room.release()

    def __iter__(self) -> Iterator[tuple[Block, Parsed]]:
        """All blocks in order; the error of a block is raised in its turn."""
        for thread in self._threads:
            thread.start()
        while (done := self._waiting.get().result()) is not None:
            self._room.release()
            yield done
            self._used += 1

    def close(self, patient: bool = True) -> None:
        """Stop the threads and close the file. If not `patient`, abandon a thread that is stuck in a read."""
        self._stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(None if patient else _PATIENCE)
        if not any(thread.is_alive() for thread in self._threads):
            self._blocks.close()
