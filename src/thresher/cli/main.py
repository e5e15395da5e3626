"""The command ``thresher``: how its process begins and ends, and what becomes of an error.

Nothing that takes time is imported before signals are heeded.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from typing import Any, NoReturn

from thresher.cli import signals, streams
from thresher.cli.errors import INTERRUPTED, INTERRUPTED_LINE, Cancelled


def run() -> NoReturn:
    """Run the command line of this process and exit with its status."""
    signals.heed()
    try:
        status = _run()
    except KeyboardInterrupt:  # while an error was being explained
        print(INTERRUPTED_LINE, file=sys.stderr)
        status = INTERRUPTED
    signals.ignore()
    for stream in (sys.stdout, sys.stderr):
        streams.let_go(stream)
    # Python's own way out takes modules and machine code apart, a fifth of a second, and a thread that
    # waits for input would hold it up. All files are closed and synced by now.
    os._exit(status)


def _run() -> int:
    streams.prepare()
    gc.set_threshold(200_000)  # imports make objects by the hundred thousand, and hardly any garbage
    # Numba looks for BLAS in scipy, at a fifth of a second, and reads a file of settings by yaml: no kernel
    # calls the one, and settings can be given by the environment.
    for module in ("scipy", "yaml"):
        sys.modules.setdefault(module, None)  # type: ignore[arg-type]
    # What pyarrow frees goes back: its own allocator keeps 100 MB of a Parquet file, and is no faster.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    warnings.showwarning = _show_warning
    from thresher.engine import notices

    notices.when_compiling(lambda message: print(f"thresher: {message}", file=sys.stderr))
    return status_of(sys.argv[1:])


def status_of(arguments: list[str]) -> int:
    """Run with these arguments: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    try:
        from thresher.cli import app

        result = app.run(arguments)
        if result == INTERRUPTED:  # what typer makes of KeyboardInterrupt before a command begins
            raise KeyboardInterrupt
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        return _explain(Cancelled(error))
    except Exception as error:  # noqa: BLE001  (raised again unless a user can cause it)
        return _explain(error)
    return result if isinstance(result, int) else 0


def _explain(error: Exception) -> int:
    """Print one line about an error that a user can cause; raise any other."""
    from thresher.cli.errors import status_and_line

    if os.environ.get("THRESHER_DEBUG"):
        raise error
    try:
        status, line = status_and_line(error)
    except Exception:
        if not signals.came():
            raise
        # an interrupted import says that it failed, not that it was interrupted
        status, line = status_and_line(Cancelled())
    if line:
        print(line, file=sys.stderr)
    return status


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from thresher.data.errors import printable

    print(printable(f"thresher: {message}"), file=sys.stderr)
