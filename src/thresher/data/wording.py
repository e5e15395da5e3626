"""Options in messages, as written on the command line or in Python: ``--scale max-abs``, ``scale="max-abs"``.

Messages are created, and stored in model files, with command-line options. They are translated when shown
in Python.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sys import _getframe

_FLAGS = frozenset(
    {
        "average",
        "cache",
        "header",
        "intercept",
        "label_weights",
        "names",
        "quoting",
        "quoted_newlines",
        "resume",
    }
)
OPTIONS = _FLAGS | frozenset(
    {
        *("admit", "alpha", "batch", "bins", "bits", "categorical", "checkpoint_every", "classes"),
        *("delimiter", "dtype"),
        *(
            "early_stop",
            "eta0",
            "folds",
            "format",
            "group",
            "hash",
            "holdout",
            "ignore",
            "init",
            "interact",
            "l1",
            "l2",
        ),
        *("label", "loss", "missing", "ngrams", "numeric", "on_error", "order", "outputs", "passes", "rate"),
        *(
            "ray",
            "replay",
            "rounds",
            "tolerance",
            "rule",
            "scale",
            "seed",
            "store",
            "text",
            "threads",
            "weight",
            "where",
            "workers",
        ),
    }
)
"""Options of the command line that are keywords in Python."""
PROSE = "|".join(("alone", "and", "are", "at", "for", "has", "is", "it", "keeps", "needs", "or", "out", "to"))
_VALUE = rf"(?: (?!-|\[|(?:{PROSE})\b)('(?:[^']|'\\'')*'|[^\s();]*[^\s();:,.](?:,\.\.\.)?))?"
_OPTION = rf"--([a-z][a-z0-9-]*){_VALUE}"
_RUN = re.compile(rf"(?<![\w`-]){_OPTION}(?: {_OPTION})*")
_ONE = re.compile(_OPTION)
_OF_LAYOUT = frozenset(
    {"bins", "bits", "categorical", "hash", "ignore", "interact", "ngrams", "numeric", "text"}
)
"""Options that estimators take in their parameter `layout`."""
_OF_ESTIMATORS = (
    ("--order once, or --order buffer:N for a stream", "shuffle=True"),
    (
        r"use -{2}numeric .* -{2}on-error skip to leave out such rows",
        "leave out such rows, and let it hold numbers",
    ),
    (r"use -{2}no-header", "read the file with header=None"),
    ("--early-stop 1", "early_stopping=True, patience=1"),
)
"""What estimators call by another name."""
_LEFT_OUT = re.compile(r"leave --[a-z0-9-]+(?: and --[a-z0-9-]+)* out")
_NAMES = "with thresher.name_features,"
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
_PACKAGE = str(Path(__file__).parents[1] / "_").removesuffix("_")
_here = "python"


@contextmanager
def on_the_command_line() -> Iterator[None]:
    """Within this block, messages show options as on the command line."""
    global _here
    before, _here = _here, "command"
    try:
        yield
    finally:
        _here = before


def are_shown() -> bool:
    """Whether messages show options as on the command line."""
    return _here == "command"


def as_shown(message: str) -> str:
    """The message as shown here: in Python, with keywords in place of options."""
    return message if _here == "command" else in_python(message)


def in_python(message: str) -> str:
    """The message with keyword arguments in place of the options that Python has.

    >>> in_python("take --rule ft-ftrl or normalized; try --format csv --no-header --label N, or --json")
    'take rule="ft-ftrl" or normalized; try format="csv", header=False, label="N", or --json'
    >>> in_python("or a larger --tolerance [no-certificate]")
    'or a larger tolerance [no-certificate]'
    """
    message = _LEFT_OUT.sub(lambda found: found[0].replace("--", "").replace("-", "_"), message)
    found = _RUN.sub(lambda run: ", ".join(map(_keyword, _ONE.finditer(run[0]))), message)
    return found.replace("let thresher tune", "let thresher.tune").replace("with thresher name,", _NAMES)


def in_estimators(message: str) -> str:
    """The message with parameters of estimators in place of options.

    >>> in_estimators("use --categorical zip, or --scale max-abs")
    'use layout={"categorical": "zip"}, or scale="max-abs"'
    """
    for option, parameter in _OF_ESTIMATORS:
        message = re.sub(option, parameter, message)
    return in_python(_RUN.sub(lambda run: _in_layout(run[0]), message))


def _in_layout(run: str) -> str:
    """Options as the parameter `layout`, if they all belong to it; else as they are."""
    options = [(one[1], one[2]) for one in _ONE.finditer(run)]
    if not all(name in _OF_LAYOUT and value for name, value in options):
        return run
    fields = ", ".join(f'"{name}": {_quoted(value)}' for name, value in options)
    return f"layout={{{fields}}}"


def _keyword(found: re.Match[str]) -> str:
    flag, value = found[1].replace("-", "_"), found[2]
    name = flag.removeprefix("no_")
    if name not in OPTIONS:
        return found[0]
    if name in _FLAGS:
        return f"{name}={flag == name}" + (f" {value}" if value else "")
    if value is None or name == "where":  # its text may contain blanks
        return name + (f" {value}" if value else "")
    if _NUMBER.fullmatch(value):
        return f"{name}={value}"
    return f"{name}={_quoted(value)}"


def _quoted(value: str) -> str:
    """A value of the command line as a text of Python."""
    text = value[1:-1].replace(r"'\''", "'") if value[0] == "'" else value
    return repr(text) if re.search(r'["\\]', text) else f'"{text}"'


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the caller's own code: the innermost frame outside this package."""
    level, frame = 1, _getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(as_shown(message), category, stacklevel=level)
