"""The version, in one place, and what is said of files that a later one has written."""

import re

__version__ = "0.1.0"
_VERSION = re.compile(r"\d+\.\d+[\w.+]{,20}")


def upgrade(version: object) -> str:
    """What to do to read what a version has written; empty if it is not later than this one.

    >>> upgrade("9.10.1")
    "pip install 'thresher>=9.10.1'"
    >>> upgrade(__version__)
    ''
    """
    later = isinstance(version, str) and _VERSION.fullmatch(version) and _release(version) > _release()
    return f"pip install 'thresher>={version}'" if later else ""


def upgrade_hint(version: object) -> str:
    """The end of a message about what a later version has written; empty if it is none."""
    remedy = upgrade(version)
    return f"; thresher {version} wrote it, and this is {__version__}: {remedy}" if remedy else ""


def _release(version: str = __version__) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]
