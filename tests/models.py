"""Comparing model files."""

from pathlib import Path

from thresher.learning import modelfile


def without_record(path: str | Path) -> bytes:
    """The bytes of the file without the record of the data."""
    header, tensors = modelfile.read(path)
    return modelfile.as_bytes({k: v for k, v in header.items() if k not in ("record", "crc32")}, tensors)
