"""Errors that a user can cause, their one-line messages and exit statuses."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.options.option import Options

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
INTERRUPTED_LINE = "thresher: interrupted"


class Cancelled(Exception):  # noqa: N818  (not an error: the user asked for it)
    """Ctrl-C or SIGTERM when there is nothing to save."""


class StoppedAfterSaving(Exception):  # noqa: N818  (not an error: the user asked for it)
    """A signal arrived; what was learned is saved, or a checkpoint."""


def what_ended(stopped: KeyboardInterrupt) -> Exception:
    """`Cancelled`, unless a run says where it stopped, as `Interrupted` does; imports nothing."""
    return StoppedAfterSaving(str(stopped)) if stopped.args else Cancelled()


class WarnedError(Exception):
    """There were warnings and `--strict` was given; the result was saved anyway."""


class OutputClosedError(Exception):
    """The reader of our output, such as head, closed the pipe."""


def check_strictly(warnings: Sequence[object], options: Options) -> None:
    """`WarnedError` if the options are strict and there are warnings."""
    if options["strict"] and warnings:
        count = "a warning" if len(warnings) == 1 else f"{len(warnings)} warnings"
        saved = "" if options["model"] is None else f"; the result is saved in {options['model']}"
        raise WarnedError(f"{count}, and --strict was given{saved}")


def status_and_line(error: Exception) -> tuple[int, str]:
    """Exit status and message (empty if the pipe was closed); any other error is raised again."""
    if isinstance(error, Cancelled):  # may interrupt the imports below
        return INTERRUPTED, INTERRUPTED_LINE
    if isinstance(error, OutputClosedError | BrokenPipeError):
        return FAILED, ""
    import click

    from thresher.data.errors import NothingNewError, OneLineError, printable, reason_of
    from thresher.learning.model.divergence import DivergedError
    from thresher.options.messages import as_shown, on_the_command_line
    from thresher.options.option import UsageError
    from thresher.parts import SpecError

    with on_the_command_line():
        status, text = FAILED, str(error)
        if isinstance(error, click.ClickException):
            from thresher.cli.parser import line_of

            status, text = error.exit_code, line_of(error)
        elif isinstance(error, UsageError | SpecError):
            status = MISUSED
        elif isinstance(error, NothingNewError):
            status = 0
        elif isinstance(error, StoppedAfterSaving):
            status = INTERRUPTED
        elif isinstance(error, MemoryError):
            text = f"out of memory {error}".rstrip()
        elif isinstance(error, OSError):
            place = f"{error.filename}: " if error.filename else ""
            text = "; ".join([place + reason_of(error), *getattr(error, "__notes__", ())])
        elif not isinstance(error, OneLineError | DivergedError | OverflowError | WarnedError):
            raise error
        return status, printable(as_shown(f"thresher: {text}"))
