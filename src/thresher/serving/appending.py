"""The thread that writes the log: many requests with one sync, answered once they are on disk."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from thresher.data.log.records import packed
from thresher.data.log.segments import LogPosition
from thresher.data.log.writer import LogFailedError, LogFullError, LogWriter
from thresher.serving.errors import RefusedError
from thresher.serving.requests import Draft, Memory, Request

_MOST_AT_ONCE = 4096
_MOST_BYTES = 32 << 20
"""Of one write, approximately"""
_RETRY = 5.0
"""Seconds after which a client may try again whether the disk has room"""


class Appender:
    """Takes requests from any thread. `synced` is called with the new end of the log after each write."""

    def __init__(
        self, writer: LogWriter, memory: Memory, most_waiting: int, synced: Callable[[LogPosition], None]
    ) -> None:
        self.writer, self.memory = writer, memory
        self.trouble = ""
        """why nothing can be written at the moment"""
        self.sync_seconds, self.syncs = 0.0, 0
        self._most, self._synced = most_waiting, synced
        self._queue: queue.SimpleQueue[Request[Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="thresher-log", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def submit(self, request: Request[Any]) -> None:
        """Put a request in line. `RefusedError`."""
        if self._closed:
            raise RefusedError(503, "the server is stopping")
        if self._queue.qsize() >= self._most:
            raise RefusedError(429, f"{self._most:,} requests wait to be written already", 1.0)
        self._queue.put(request)

    def close(self) -> None:
        """Write what is in line, and end."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self.writer.close()

    def _work(self) -> None:
        going = True
        while going:
            some, size = [self._queue.get()], 0
            while some[-1] is not None and len(some) < _MOST_AT_ONCE and size < _MOST_BYTES:
                chunk = getattr(some[-1], "chunk", None)
                size += 0 if chunk is None else 12 * chunk.nnz
                try:
                    some.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            going = some[-1] is not None
            requests = [one for one in some if one is not None]
            if requests:
                self._write(requests)

    def _write(self, requests: list[Request[Any]]) -> None:
        draft, accepted = Draft(self.memory), list[Request[Any]]()
        for one in requests:
            try:
                one.draft(draft)
                accepted.append(one)
            except RefusedError as error:
                one.done.set_exception(error)
            except Exception as error:  # noqa: BLE001  one request must not end the thread of all
                one.done.set_exception(self._fault(error))
        try:
            rows = self._append(draft)
        except LogFullError as error:
            self.trouble = str(error)
            self._refuse(accepted, RefusedError(503, f"nothing can be learned: {error}", _RETRY))
            return
        except LogFailedError as error:
            self.trouble = str(error)
            self._refuse(accepted, RefusedError(503, f"nothing can be learned until a restart: {error}"))
            return
        except Exception as error:  # noqa: BLE001  likewise; nothing has been written
            self._refuse(accepted, self._fault(error))
            return
        self.trouble = ""
        for one in accepted:
            one.done.set_result(one.answer(rows))

    def _append(self, draft: Draft) -> list[tuple[int, int]]:
        """Write the entries, and let the memory know; the first and last row of each."""
        begin = self.writer.end
        self.writer.roll_if_due(draft.time)  # also of a log that does not grow, whose files get old
        if not draft.entries:
            return []
        bodies, started = [packed(one) for one in draft.entries], time.perf_counter()
        ends = self.writer.append(bodies)
        self.sync_seconds += time.perf_counter() - started
        self.syncs += 1
        begins = [begin, *ends[:-1]]
        rows = [(a.row + 1, b.row) for a, b in zip(begins, ends, strict=True)]
        draft.settle(rows, [one.offset for one in begins], bodies)
        self._synced(ends[-1])
        return rows

    @staticmethod
    def _fault(error: Exception) -> RefusedError:
        return RefusedError(500, f"this cannot be written to the log: {str(error) or type(error).__name__}")

    @staticmethod
    def _refuse(requests: list[Request[Any]], error: RefusedError) -> None:
        for one in requests:
            one.done.set_exception(error)
