"""Which errors a user can cause, the line that tells of each, and the exit status."""

from __future__ import annotations

import errno

FAILED, MISUSED, INTERRUPTED = 1, 2, 130


class UsageError(ValueError):
    """Options that do not go together."""


class Cancelled(Exception):  # noqa: N818  (not an error: the user asked for it)
    """Ctrl-C or SIGTERM where there is nothing to keep."""


class OutputClosedError(Exception):
    """The reader of our output, such as head, has enough."""


def status_and_line(error: Exception) -> tuple[int, str]:
    """Exit status and message (none for a reader who has enough); any other error is raised again."""
    from thresher.data.errors import DataError
    from thresher.learning.model import DivergedError
    from thresher.learning.modelfile import ModelFileError
    from thresher.learning.stopping import Interrupted
    from thresher.parts import SpecError

    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # typer's own
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        message = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
        return int(error.exit_code), f"thresher: {message}{hint}"
    if isinstance(error, UsageError | SpecError):
        return MISUSED, f"thresher: {error}"
    if isinstance(error, Interrupted):
        return INTERRUPTED, f"thresher: {error}"
    if isinstance(error, Cancelled):
        return INTERRUPTED, "thresher: interrupted"
    if isinstance(error, OutputClosedError | BrokenPipeError):
        return FAILED, ""
    if isinstance(error, DataError | DivergedError | ModelFileError | OverflowError):
        return FAILED, f"thresher: {error}"
    if isinstance(error, MemoryError):
        return FAILED, f"thresher: out of memory {error}".rstrip()
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
        return FAILED, f"thresher: {place}{reason}"
    raise error
