"""Comparing model files."""

from pathlib import Path

from thresher.learning.files import model_file


def without_record(path: str | Path) -> bytes:
    """The bytes of the file without the record of the data."""
    header, tensors = model_file.read(path)
    return model_file.as_bytes({k: v for k, v in header.items() if k not in ("record", "crc32")}, tensors)


def one_of(path: str | Path, number: int) -> bytes:
    """The file that ``thresher choose`` makes of a model of many."""
    header, tensors = model_file.Contents.of(path).model(number)
    return model_file.as_bytes({n: v for n, v in header.items() if n not in model_file.RUN}, tensors)
