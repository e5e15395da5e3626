"""The entry point of the command ``thresher``: start-up, exit status and error reporting.

Signal handlers are installed before anything slow is imported; until then Ctrl-C ends the process here.
"""

from __future__ import annotations

import os

try:
    import gc
    import sys
    import warnings
    from typing import NoReturn

    from thresher.cli import signals
    from thresher.cli.errors import INTERRUPTED, INTERRUPTED_LINE, Cancelled, what_ended
except KeyboardInterrupt:
    os.write(2, b"thresher: interrupted\n")
    os._exit(130)


def run() -> NoReturn:
    """Run the command line of this process and exit with its status."""
    try:
        signals.install_handlers()
        status = _run()
    except KeyboardInterrupt:  # while an error was being reported
        print(INTERRUPTED_LINE, file=sys.stderr)
        status = INTERRUPTED
    signals.ignore()
    for stream in (sys.stdout, sys.stderr):
        signals.discard_unwritten(stream)
    # Python's normal exit frees modules and machine code, which takes 0.2 s, and would wait for a thread
    # that is blocked on input. All files are closed and synced by now.
    os._exit(status)


def _run() -> int:
    signals.prepare()
    gc.set_threshold(200_000)  # imports create many objects and hardly any garbage
    # Numba looks for BLAS in scipy (0.2 s) and reads a settings file with yaml. No kernel calls BLAS, and
    # the environment can hold the settings.
    for module in ("scipy", "yaml"):
        sys.modules.setdefault(module, None)  # type: ignore[arg-type]
    # NumPy's BLAS only adds up vectors here, and would start threads that wait busily for .05 s at first.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # pyarrow's own allocator would keep 100 MB after reading a Parquet file, and is no faster.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    warnings.showwarning = _show_warning
    from thresher.engine.compile import notices

    notices.when_compiling(lambda message: print(f"thresher: {message}", file=sys.stderr))
    return status_of(sys.argv[1:])


def status_of(arguments: list[str]) -> int:
    """Run with these arguments. Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    try:
        from thresher.cli import app
        from thresher.options.messages import on_the_command_line

        with on_the_command_line():
            result = app.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        return _explain(what_ended(error))
    except Exception as error:  # noqa: BLE001  (raised again unless a user can cause it)
        return _explain(error)
    return result if isinstance(result, int) else 0


def _explain(error: Exception) -> int:
    """Print one line about an error that a user can cause; re-raise any other."""
    from thresher.cli.errors import status_and_line

    if os.environ.get("THRESHER_DEBUG"):
        raise error
    try:
        status, line = status_and_line(error)
    except Exception:
        if not signals.INTERRUPTER.came:
            raise
        # an interrupted import raises an ordinary error
        status, line = status_and_line(Cancelled())
    if line:
        print(line, file=sys.stderr)
    return status


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    from thresher.data.errors import printable

    print(printable(f"warning: {message}"), file=sys.stderr)
