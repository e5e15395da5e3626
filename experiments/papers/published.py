"""Published files: their lines and bytes, read with care, and numbers that thresher reads."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from experiments.papers.together import write_together

PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_BOM = b"\xef\xbb\xbf"
# no two parts of these match the same text, so that a search takes time in proportion to the text
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_PAIR = rf"[0-9]+:{_NUMBER}"
_PAIRS = re.compile(rf"{_PAIR}(?:[ \t]+{_PAIR})*")
_MAY_BE_TOO_LARGE = re.compile(r"[eE]|[0-9]{20}")
LARGEST_ID, LARGEST = 2**64 - 1, float(np.finfo(np.float32).max)


class ConvertError(Exception):
    """A file that is not what it should be."""


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a file; `ConvertError` if it cannot be read."""
    try:
        with PACKED.get(path.suffix, open)(path, "rb") as file:
            yield file
    except OSError as error:
        raise ConvertError(f"{path}: {error.strerror or error}") from error
    except (EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise ConvertError(f"{path}: damaged or cut short: {error}") from error


def stem_of(path: Path) -> str:
    """The published name of a file, without the ending of its compression."""
    return path.stem if path.suffix in PACKED else path.name


def all_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line."""
    with opened(path) as file:
        content = file.read()
    lines = content.removeprefix(_BOM).decode("latin-1").split("\n")
    for number, line in enumerate(lines, 1):
        yield number, line.removesuffix("\r")


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is neither empty nor a comment."""
    for number, line in all_lines(path):
        text = line.partition("#")[0].rstrip()
        if text.strip():
            yield number, text


def number_of(where: str, text: str) -> float:
    """A decimal number that is finite in float32."""
    if not re.fullmatch(_NUMBER, text):
        raise ConvertError(f"{where}: {text!r} is not a number")
    value = float(text)
    if abs(value) > LARGEST:
        raise ConvertError(f"{where}: {text!r} is too large for float32")
    return value


def features_of(where: str, text: str) -> str:
    """The features of a line, ``id:value id:value ...``."""
    text = text.strip(" \t")
    if not text:
        return text
    if not _PAIRS.fullmatch(text):
        raise ConvertError(f"{where}: the features are not id:value pairs")
    if _MAY_BE_TOO_LARGE.search(text):
        for pair in text.split():
            key, _, value = pair.partition(":")
            digits = key.lstrip("0") or "0"
            if len(digits) > 20 or int(digits) > LARGEST_ID:
                raise ConvertError(f"{where}: the id {key} is not below 2^64")
            number_of(where, value)
    return text


def text_of(lines: Iterable[str], source: str) -> bytes:
    """The lines of a file made from the files `source`; it must have some."""
    content = "".join(f"{line}\n" for line in lines)
    if not content:
        raise ConvertError(f"{source}: no rows")
    return content.encode()


def save(contents: Mapping[Path, bytes]) -> None:
    """Write files of the data folder, all or none, as gzip: the same bytes for the same content."""
    try:
        write_together({path: gzip.compress(content, mtime=0) for path, content in contents.items()})
    except OSError as error:
        raise ConvertError(f"{error.filename}: {error.strerror}") from error
    for path in contents:
        print(path)
