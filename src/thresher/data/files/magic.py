"""What a binary file is, from its first bytes."""

from __future__ import annotations

_MODEL = b'{"__metadata__":{"thresher":'
"""What follows the length of the header in a model file"""
_MAGIC = (
    (b"PAR1", "Parquet: try --format parquet"),
    (b"ARROW1", "Arrow: try --format arrow"),
    (b"PK\x03\x04", "zip, npz or Excel: unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file: save the sheet as CSV"),
    (b"\x93NUMPY", "a NumPy array: load it with numpy.load and pass it to thresher.train in Python"),
    (b"\x80", "perhaps a pickle: load it in Python and pass the data to thresher.train"),
    (b"\x89HDF", "HDF5: read it in Python and pass the arrays to thresher.train"),
    (b"SQLite format 3", "a SQLite database: see docs/formats/databases.md"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF"),
)  # fmt: skip


def begins_a_model(head: bytes) -> bool:
    """Whether a file with this beginning is a model or checkpoint of thresher."""
    return head[8:].startswith(_MODEL)


def binary_kind(head: bytes) -> str:
    """What a binary file that begins with `head` is, and how to read it; empty if unknown."""
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")
