"""Blocks read and parsed by several threads, handed over in order."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from thresher.data.files.blocks import Block, BlockReader, TextBuffer
from thresher.data.sources.parsed import Parsed, Parser

_AHEAD = 2
"""Blocks in work or waiting, beyond one for each thread."""
_PATIENCE = 0.2


def default_threads() -> int:
    """One for each processor this process may use, at most four."""
    try:
        usable = len(os.sched_getaffinity(0))  # type: ignore[attr-defined,unused-ignore]
    except AttributeError:
        usable = os.cpu_count() or 1
    return min(4, usable)


class Pipeline:
    """One pass over the blocks of a reader.

    Each thread takes the next block in turn, under a lock that makes reading and decompressing
    one after the other, then parses it beside the others while its text is warm in the cache.
    What the blocks became waits in their order, at most ``threads + 2`` of it.
    """

    def __init__(self, blocks: BlockReader, parser: Callable[[], Parser], threads: int, size: int) -> None:
        self._blocks = blocks
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
        except Exception as error:  # noqa: BLE001 it is raised again where the chunks are used
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
        """Read the next block and its place in the queue; None when there is nothing more to do."""
        place: Future[tuple[Block, Parsed] | None] = Future()
        with self._turn:
            if self._stopped:
                return None
            try:
                block = self._blocks.fill(buffer)
            except Exception as error:  # noqa: BLE001 likewise
                place.set_exception(error)
                block = None
            else:
                if block is None:
                    place.set_result(None)
            self._waiting.put(place)
            if block is not None:
                return place, block
        self._stop()
        return None

    def _stop(self) -> None:
        self._stopped = True
        for _ in self._threads:
            self._room.release()

    def __iter__(self) -> Iterator[tuple[Block, Parsed]]:
        """All blocks in order; what went wrong with one is raised at its turn."""
        for thread in self._threads:
            thread.start()
        while (done := self._waiting.get().result()) is not None:
            self._room.release()
            yield done

    def close(self, patient: bool = True) -> None:
        """Stop the threads and give the file back. Without patience, leave one stuck in a read behind."""
        self._stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(None if patient else _PATIENCE)
        if not any(thread.is_alive() for thread in self._threads):
            self._blocks.close()
